/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/storage.h"

#include "base/clock.h"
#include "base/daemon.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/glusterd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define READERS_MAX 16
#define RESTART_MIN_MS 500
#define RESTART_MAX_MS 30000
#define STEADY_MS 60000 /* having run that long, the next end is a new story */
#define END_MS 15000 /* for bricks to end by themselves */
#define SECURE_FILE "/var/lib/glusterd/secure-access"

struct storage {
	const struct storage_options *options;
	int signals, listener;
	int readers[READERS_MAX];
	int reader_count;
	pid_t glusterd; /* 0: does not run */
	int64_t started_ms, next_ms; /* when it was, and when it is to be started */
	int delay_ms;
	char *told; /* the last line */
};

/* ---- what runs ----------------------------------------------------------------------------- */
/* The argument after --brick-name of a brick process; caller frees. NULL: it is none. */
static char *brick_of(const char *pid)
{
	cleanup_free char *path = xasprintf("/proc/%s/cmdline", pid), *text = NULL;
	size_t len = 0, i;

	if (!process_is(atoi(pid), GLUSTERD_BRICK_FLAG) ||
	    file_read(path, 1 << 16, &text, &len, NULL) < 0)
		return NULL;
	for (i = 0; i < len; i += strlen(text + i) + 1)
		if (streq(text + i, GLUSTERD_BRICK_FLAG))
			break;
	i += sizeof(GLUSTERD_BRICK_FLAG);
	return i < len ? xstrdup(text + i) : NULL;
}

static json_t *bricks(void)
{
	json_t *all = json_object();
	DIR *proc = opendir("/proc");
	const struct dirent *e;

	while (proc && (e = readdir(proc))) {
		cleanup_free char *path =
			isdigit((unsigned char)e->d_name[0]) ? brick_of(e->d_name) : NULL;

		if (path)
			json_object_set_new(all, path, json_integer(atoi(e->d_name)));
	}
	if (proc)
		closedir(proc);
	return all;
}

static char *state_line(const struct storage *s)
{
	cleanup_json json_t *state =
		json_pack("{s:i, s:o}", "glusterd", (int)s->glusterd, "bricks", bricks());
	cleanup_free char *text = json_text(state);

	return xasprintf("%s\n", text);
}

/* ---- who wants to know --------------------------------------------------------------------- */
static bool tell(int fd, const char *line)
{
	size_t len = strlen(line);

	/* a reader that does not read is cut off: it connects again and is told then */
	return send(fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

static void drop_reader(struct storage *s, int i)
{
	close(s->readers[i]);
	s->readers[i] = s->readers[--s->reader_count];
}

static void tell_all(struct storage *s)
{
	char *line = state_line(s);

	if (streq(line, s->told)) {
		free(line);
		return;
	}
	free(s->told);
	s->told = line;
	for (int i = s->reader_count - 1; i >= 0; i--)
		if (!tell(s->readers[i], line))
			drop_reader(s, i);
}

static void greet(struct storage *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	cleanup_free char *line = state_line(s);

	if (fd < 0)
		return;
	if (s->reader_count == READERS_MAX || !tell(fd, line))
		close(fd);
	else
		s->readers[s->reader_count++] = fd;
}

static int listen_at(const char *path, struct error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = mkdir_parents("/run/quartermaster", 0700, err);

	if (rc < 0)
		return rc;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	unlink(path); /* of a former life: there is one storage pod on a node, and its name is ours */
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || chmod(path, 0600) < 0 ||
	    listen(fd, READERS_MAX) < 0)
		return error_errno(err, errno, "Cannot listen on %s", path);
	return TAKE_FD(fd);
}

/* ---- glusterd ------------------------------------------------------------------------------ */
/* Pid files of a former life: in a new process namespace their numbers mean others. */
static void forget_pids(const char *dir_path, bool all)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		cleanup_free char *path = xasprintf("%s/%s", dir_path, e->d_name);

		if (e->d_name[0] == '.')
			continue;
		if (all && str_has_suffix(e->d_name, ".pid"))
			unlink(path);
		else if (e->d_type == DT_DIR && all)
			forget_pids(path, true);
		else if (e->d_type == DT_DIR)
			glusterd_forget_dead(e->d_name);
	}
	if (dir)
		closedir(dir);
}

/* Whether GlusterFS's own connections use TLS is decided by a file, for all programs of the pod. */
static int choose_security(bool secure, struct error *err)
{
	int rc = mkdir_parents("/var/lib/glusterd", 0755, err);

	if (rc < 0)
		return rc;
	if (secure)
		return file_write(SECURE_FILE, "", 0, 0600, err);
	if (unlink(SECURE_FILE) < 0 && errno != ENOENT)
		return error_errno(err, errno, "Cannot remove %s", SECURE_FILE);
	return 0;
}

static void start_glusterd(struct storage *s)
{
	int64_t now = clock_mono_ms(&clock_real);
	struct error err = ERROR_INIT;
	int rc;

	if (s->glusterd || now < s->next_ms)
		return;
	rc = glusterd_launch(s->options->config_path, s->options->address, &s->glusterd, &err);
	if (rc < 0) {
		log_err("%s", error_text(&err, rc));
		s->glusterd = 0;
	}
	s->started_ms = now;
}

static void glusterd_ended(struct storage *s, int status)
{
	int64_t now = clock_mono_ms(&clock_real);

	s->glusterd = 0;
	s->delay_ms =
		now - s->started_ms > STEADY_MS || !s->delay_ms ? RESTART_MIN_MS : s->delay_ms * 2;
	if (s->delay_ms > RESTART_MAX_MS)
		s->delay_ms = RESTART_MAX_MS;
	s->next_ms = now + s->delay_ms;
	log_warn("glusterd has ended (%s %d); its bricks go on; it is started again in %d ms",
		 WIFSIGNALED(status) ? "signal" : "status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), s->delay_ms);
}

static void reap(struct storage *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == s->glusterd)
			glusterd_ended(s, status);
	forget_pids(GLUSTERD_RUN_DIR "/vols", false);
}

/* ---- process 1 ----------------------------------------------------------------------------- */
static int begin(struct storage *s, struct error *err)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0)
		return error_errno(err, errno, "Cannot take signals");
	unlink(GLUSTERD_PID_FILE);
	forget_pids(GLUSTERD_RUN_DIR, true);
	rc = choose_security(s->options->secure, err);
	if (rc < 0)
		return rc;
	s->listener = listen_at(STORAGE_SOCKET, err);
	return s->listener < 0 ? s->listener : 0;
}

/* True when it is time to end. */
static bool take_signals(struct storage *s)
{
	struct signalfd_siginfo info;
	bool children = false, end = false;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		children |= info.ssi_signo == SIGCHLD;
		end |= info.ssi_signo != SIGCHLD;
	}
	if (children)
		reap(s);
	return end;
}

static int collect(const struct storage *s, struct pollfd fds[static READERS_MAX + 2])
{
	int n = 0;

	fds[n++] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = s->listener, .events = POLLIN };
	for (int i = 0; i < s->reader_count; i++)
		fds[n++] = (struct pollfd){ .fd = s->readers[i], .events = POLLIN };
	return n;
}

static void serve(struct storage *s)
{
	struct pollfd fds[READERS_MAX + 2];
	bool end = false;

	while (!end) {
		int64_t wait = s->glusterd ? -1 : s->next_ms - clock_mono_ms(&clock_real);
		int n = collect(s, fds);

		if (poll(fds, (nfds_t)n,
			 s->glusterd ? -1
			 : wait < 0  ? 0
				     : (int)wait) < 0 &&
		    errno != EINTR)
			return;
		/* readers say nothing: what can be read is their end */
		for (int i = n - 1; i >= 2; i--)
			if (fds[i].revents)
				drop_reader(s, i - 2);
		if (fds[0].revents)
			end = take_signals(s);
		if (fds[1].revents)
			greet(s);
		if (!end)
			start_glusterd(s);
		tell_all(s);
	}
}

/* SIGTERM to each child of ours and theirs; in a pod that is all there is. */
static void end_all(void)
{
	int64_t end = clock_mono_ms(&clock_real) + END_MS;

	if (getpid() == 1)
		kill(-1, SIGTERM);
	while (clock_mono_ms(&clock_real) < end && waitpid(-1, NULL, WNOHANG) >= 0)
		poll(NULL, 0, 50);
}

int storage_run(const struct storage_options *options, struct error *err)
{
	struct storage s = { .options = options, .listener = -1, .signals = -1 };
	int rc;

	daemon_begin();
	rc = begin(&s, err);
	if (rc == 0) {
		serve(&s);
		log_info("ending: bricks and glusterd are told to");
		end_all();
		unlink(STORAGE_SOCKET);
	}
	while (s.reader_count)
		drop_reader(&s, 0);
	if (s.listener >= 0)
		close(s.listener);
	if (s.signals >= 0)
		close(s.signals);
	free(s.told);
	return rc;
}
