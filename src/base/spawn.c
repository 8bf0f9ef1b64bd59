/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"
#include "base/spawn_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUTPUT_LIMIT_DEFAULT (8u << 20)

/* Appends to b up to limit; what is beyond is read and dropped. Bytes read, 0 at the end. */
static ssize_t collect(int fd, struct buf *b, size_t limit)
{
	char chunk[16384];
	ssize_t n;
	size_t keep;

	do
		n = read(fd, chunk, sizeof(chunk));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	keep = (size_t)n < limit - b->len ? (size_t)n : limit - b->len;
	if (b->len + keep + 1 > b->cap) {
		size_t cap = (b->len + keep) * 2 + 64;
		char *data = realloc(b->data, cap);

		if (!data)
			return -ENOMEM;
		b->data = data;
		b->cap = cap;
	}
	memcpy(b->data + b->len, chunk, keep);
	b->len += keep;
	b->data[b->len] = '\0';
	return n;
}

/* What the child wrote before it ended, and no more: a daemon that it left may write for ever. */
static int drain(int fd, struct buf *b, size_t limit)
{
	int left = 0;

	if (ioctl(fd, FIONREAD, &left) < 0)
		return -errno;
	while (left > 0) {
		ssize_t n = collect(fd, b, limit);

		if (n <= 0)
			return (int)n;
		left -= (int)n;
	}
	return 0;
}

/* Reads both streams until the child ends. */
static int watch(int pidfd, const int fds[static 2], int64_t end, size_t limit,
		 struct spawn_result *result)
{
	struct pollfd p[3] = {
		{ .fd = pidfd, .events = POLLIN },
		{ .fd = fds[0], .events = POLLIN },
		{ .fd = fds[1], .events = POLLIN },
	};
	struct buf *bufs[] = { &result->out, &result->err };
	int r;

	while (!p[0].revents) {
		if (time_left(end) == 0)
			return -ETIMEDOUT;
		if (poll(p, 3, time_left(end)) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		for (int i = 0; i < 2; i++) {
			ssize_t n = p[i + 1].revents ? collect(fds[i], bufs[i], limit) : 1;

			if (n < 0)
				return (int)n;
			if (n == 0)
				p[i + 1].fd = -1;
		}
	}
	r = drain(fds[0], bufs[0], limit);
	return r < 0 ? r : drain(fds[1], bufs[1], limit);
}

static int memory_file(const void *data, size_t len)
{
	cleanup_close int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const char *)data + done, len - done, (off_t)done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return TAKE_FD(fd);
}

/*
 * The input comes in a memory file and not in a pipe: nothing to feed, and no SIGPIPE where
 * the program does not read it.
 */
static int open_input(const struct spawn *s)
{
	int fd;

	if (s->input)
		return memory_file(s->input, s->input_len);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct pipes {
	int in;
	int out[2], err[2], failure[2];
};

#define PIPES_INIT                                                                                 \
	{                                                                                          \
		-1, { -1, -1 }, { -1, -1 },                                                        \
		{                                                                                  \
			-1, -1                                                                     \
		}                                                                                  \
	}

static void pipes_close_child_ends(struct pipes *p)
{
	close_fd(&p->in);
	close_fd(&p->out[1]);
	close_fd(&p->err[1]);
	close_fd(&p->failure[1]);
}

static void pipes_done(struct pipes *p)
{
	pipes_close_child_ends(p);
	close_fd(&p->out[0]);
	close_fd(&p->err[0]);
	close_fd(&p->failure[0]);
}

static int pipes_open(struct pipes *p, const struct spawn *s)
{
	p->in = open_input(s);
	if (p->in < 0)
		return p->in;
	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0 ||
	    pipe2(p->failure, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static _Noreturn void run_child(const struct program *prog, const struct pipes *p, pid_t parent)
{
	int fds[3] = { p->in, p->out[1], p->err[1] }, failure;
	int r;

	setpgid(0, 0);
	child_die_with(parent);
	/* out of the way of 0-2, which are about to be replaced */
	failure = fcntl(p->failure[1], F_DUPFD_CLOEXEC, 3);
	r = child_take_fds(fds, -1);
	if (r == 0) {
		execve(prog->path, prog->argv, prog->env);
		r = -errno;
	}
	child_report(failure, r);
}

/* What the child said about a failed exec; 0: it was done. The child has ended by now. */
static int read_failure(int fd)
{
	int value;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static int run_program(const struct spawn *s, const struct program *prog, struct pipes *p,
		       struct spawn_result *result)
{
	int64_t end = clock_mono_ms(&clock_real) + s->timeout_ms;
	cleanup_close int pidfd = -1;
	pid_t parent = getpid(), pid;
	int r, status;

	pid = child_fork();
	if (pid < 0)
		return pid;
	if (pid == 0)
		run_child(prog, p, parent);
	pidfd = child_pidfd(pid);
	pipes_close_child_ends(p);
	r = pidfd < 0 ? pidfd
		      : watch(pidfd, (int[]){ p->out[0], p->err[0] }, end,
			      s->output_limit ? s->output_limit : OUTPUT_LIMIT_DEFAULT, result);
	status = child_reap(pid, pidfd, r < 0, NULL, NULL);
	if (r < 0)
		return r;
	if (status < 0)
		return status;
	r = read_failure(p->failure[0]);
	result->status = status;
	return r;
}

int spawn_run(const struct spawn *s, struct spawn_result *ret, struct error *err)
{
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	cleanup_with(pipes_done) struct pipes pipes = PIPES_INIT;
	struct program prog;
	int r;

	r = hung_check(NULL, NULL, err);
	if (r == 0)
		r = program_init(&prog, s->argv, s->env, err);
	if (r < 0)
		return r;
	r = pipes_open(&pipes, s);
	if (r == 0)
		r = run_program(s, &prog, &pipes, &result);
	program_done(&prog);
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "%s did not end within %d ms and was killed",
				 s->argv[0], s->timeout_ms);
	if (r < 0)
		return error_errno(err, -r, "cannot run %s", s->argv[0]);
	*ret = result;
	result = (struct spawn_result){ 0 };
	return 0;
}

void spawn_result_done(struct spawn_result *r)
{
	free(r->out.data);
	free(r->err.data);
	*r = (struct spawn_result){ 0 };
}

/* The last line that is not empty, at most max bytes of it. */
static int last_line(const struct buf *b, int max, const char **ret)
{
	size_t end = b->len, start;

	while (end && strchr(" \t\r\n", b->data[end - 1]))
		end--;
	start = end;
	while (start && b->data[start - 1] != '\n')
		start--;
	*ret = b->data ? b->data + start : "";
	return end - start > (size_t)max ? max : (int)(end - start);
}

int spawn_check(const struct spawn *s, struct spawn_result *ret, struct error *err)
{
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	const char *line;
	int r, len;

	r = spawn_run(s, &result, err);
	if (r < 0)
		return r;
	if (result.status != 0) {
		len = last_line(&result.err, 300, &line);
		return error_set(err, EIO, "%s failed with status %d%s%.*s", s->argv[0],
				 result.status, len ? ": " : "", len, line);
	}
	if (ret) {
		*ret = result;
		result = (struct spawn_result){ 0 };
	}
	return 0;
}

#define KEEP_ALL (-2)

struct to_call {
	int (*fn)(void *arg);
	void *arg;
	int keep_fd; /* -1: none */
	const char *about;
};

/* All from 3 on but two, in ascending order. */
static int close_all_but(int one, int two)
{
	unsigned from[] = { 3, (unsigned)one + 1, (unsigned)two + 1 };
	unsigned to[] = { (unsigned)one, (unsigned)two, UINT_MAX }; /* one past the last */

	for (int i = 0; i < 3; i++) {
		unsigned first = from[i] < 3 ? 3 : from[i];

		if (first < to[i] && close_range(first, to[i] - (i < 2), 0) < 0)
			return -errno;
	}
	return 0;
}

static _Noreturn void call_child(const struct to_call *c, int fd, pid_t parent)
{
	int keep = c->keep_fd < 0 ? fd : c->keep_fd, r = 0;

	setpgid(0, 0);
	child_die_with(parent);
	if (c->keep_fd != KEEP_ALL)
		r = close_all_but(keep < fd ? keep : fd, keep < fd ? fd : keep);
	child_report(fd, r < 0 ? r : c->fn(c->arg));
}

static int call(const struct to_call *c, int timeout_ms, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;
	int ends[2], value = 0, r;
	cleanup_close int from = -1, to = -1, pidfd = -1;
	pid_t parent = getpid(), pid;

	r = hung_check(c->fn, c->about, err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(err, errno, "cannot make a pipe");
	from = ends[0];
	to = ends[1];
	pid = child_fork();
	if (pid < 0)
		return error_errno(err, -pid, "cannot start a process");
	if (pid == 0)
		call_child(c, to, parent);
	pidfd = child_pidfd(pid);
	close(TAKE_FD(to));
	r = pidfd < 0 ? pidfd : child_read_report(from, end, &value);
	child_reap(pid, pidfd, r != 1, c->fn, c->about);
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "a system call did not return within %d ms",
				 timeout_ms);
	if (r < 0)
		return error_errno(err, -r, "cannot wait for a process");
	if (r == 0)
		return error_set(err, EIO, "the process that made a system call was killed");
	if (value < 0)
		return error_errno(err, -value, "a system call failed");
	return value;
}

int spawn_call(int (*fn)(void *arg), void *arg, int timeout_ms, struct error *err)
{
	return call(&(struct to_call){ .fn = fn, .arg = arg, .keep_fd = KEEP_ALL }, timeout_ms,
		    err);
}

int spawn_call_keeping(int (*fn)(void *arg), void *arg, int keep_fd, const char *about,
		       int timeout_ms, struct error *err)
{
	return call(&(struct to_call){ fn, arg, keep_fd, about }, timeout_ms, err);
}

bool program_installed(const char *program)
{
	static const char *const dirs[] = { "/usr/sbin", "/usr/bin",	    "/sbin",
					    "/bin",	 "/usr/local/sbin", "/usr/local/bin" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dirs[i], program);

		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}
