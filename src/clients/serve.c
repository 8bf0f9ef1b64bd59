/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/serve.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "clients/client.h"
#include "core/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define REQUEST_MS 10000 /* for a peer to say what it wants, and to take the answer */

/* ---- answers -------------------------------------------------------------------------------- */

static void answer(int fd, json_t *reply)
{
	wire_write_json(fd, reply, clock_mono_ms(&clock_real) + REQUEST_MS);
	json_decref(reply);
}

static void refuse(int fd, int code, const char *message)
{
	answer(fd, json_pack("{s:i, s:s?}", "error", code, "message", message));
}

static void serve_run(int fd, const struct client_request *r, const char *input)
{
	cleanup_free char *out = xcalloc(1, r->out_size + 1);
	struct host_command command = { .argv = r->argv,
					.env = r->env,
					.input = input,
					.input_len = r->input_len,
					.timeout_ms = r->timeout_ms,
					.out = out,
					.out_size = r->out_size + 1 };
	struct host_result result;
	int64_t until;
	int rc;

	rc = process_run(&command, &result);
	if (rc < 0) {
		cleanup_free char *why =
			xasprintf("cannot run %.100s: %s", r->argv[0], strerror(-rc));

		refuse(fd, -rc, why);
		return;
	}
	answer(fd,
	       json_pack("{s:i, s:i, s:I, s:I}", "error", 0, "status", result.status, "outLength",
			 (json_int_t)strlen(out), "errLength", (json_int_t)strlen(result.err)));
	until = clock_mono_ms(&clock_real) + REQUEST_MS;
	if (wire_write(fd, out, strlen(out), until) == 0)
		wire_write(fd, result.err, strlen(result.err), until);
}

static void serve_await_end(int fd, const struct client_request *r)
{
	int rc = process_await_end(r->program, r->last_arg, r->kill, r->timeout_ms);

	refuse(fd, -rc, rc < 0 ? "some are left" : NULL);
}

static void serve_info(const struct serve *s, int fd)
{
	json_t *daemons = daemons_list(s->pid);

	fuse_name_daemons(s, daemons);
	answer(fd, json_pack("{s:i, s:i, s:s, s:s, s:b, s:i, s:i, s:o, s:o}", "error", 0, "pid",
			     (int)s->pid, "version", QM_VERSION, "image", s->image, "ending",
			     (int)s->ending, "requests", s->running, "users",
			     daemons_users(daemons) + keep_users(s), "daemons", daemons, "fuse",
			     fuse_list(s)));
}

static void serve_take_fuse(const struct serve *s, int fd, const struct client_request *r)
{
	const struct fuse_server *f = fuse_find(s, r->mount_point);

	if (!f) {
		refuse(fd, ENOENT, "no file system is served there");
		return;
	}
	answer(fd, json_pack("{s:i, s:O}", "error", 0, "argv", json_object_get(f->text, "argv")));
	wire_give_fd(fd, f->fd, clock_mono_ms(&clock_real) + REQUEST_MS);
}

/* ---- what is handed up ---------------------------------------------------------------------- */

#define HANDED_MAX (64 << 10) /* the request's text: a message is not split */

union two_fds {
	char buf[CMSG_SPACE(2 * sizeof(int))];
	struct cmsghdr align;
};

int serve_open(struct serve *s, struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->up) < 0)
		return error_errno(err, errno, "cannot begin");
	return 0;
}

/* The request with its connection and, of serveFuse, its descriptor. */
static void hand_up(const struct serve *s, int fd, const struct client_request *r, int given)
{
	cleanup_free char *text = json_text(r->text);
	int fds[2] = { fd, given };
	size_t len = (given < 0 ? 1 : 2) * sizeof(int);
	union two_fds u = { 0 };
	struct iovec io = { .iov_base = text, .iov_len = strlen(text) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = CMSG_SPACE(len) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), fds, len);
	if (io.iov_len > HANDED_MAX)
		refuse(fd, EMSGSIZE, "the request is too long");
	else if (sendmsg(s->up[1], &m, MSG_NOSIGNAL) < 0)
		refuse(fd, errno, "the client cannot take it");
}

static void serve_serve_fuse(const struct serve *s, int fd, const struct client_request *r,
			     int64_t until)
{
	cleanup_close int given = -1;
	int rc = wire_take_fd(fd, &given, until);

	if (rc == -EBADMSG)
		refuse(fd, EINVAL, "no descriptor came with the request");
	else if (rc == 0)
		hand_up(s, fd, r, given);
}

static int add_watcher(struct serve *s, int fd, struct error *err)
{
	for (int i = 0; i < SERVE_WATCHERS; i++) {
		struct pollfd p = { .fd = s->watchers[i] };

		if (p.fd && poll(&p, 1, 0) > 0) { /* its other end went away */
			close(p.fd);
			s->watchers[i] = 0;
		}
		if (s->watchers[i])
			continue;
		s->watchers[i] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return s->watchers[i] < 0 ? -errno : 0;
	}
	return error_set(err, EBUSY, "too many watch this client");
}

static void tell_watchers(struct serve *s, int ended)
{
	cleanup_json json_t *o = json_pack("{s:i}", "daemonsEnded", ended);

	for (int i = 0; i < SERVE_WATCHERS; i++)
		/* nobody is waited for: who does not read is dropped, and learns it by that */
		if (s->watchers[i] && wire_write_json(s->watchers[i], o, 0) < 0) {
			close(s->watchers[i]);
			s->watchers[i] = 0;
		}
}

static void take_handed(struct serve *s, const char *text, size_t len, int connection, int given)
{
	cleanup_with(client_request_done) struct client_request r = { 0 };
	struct error err = ERROR_INIT;
	int rc = client_request_decode(text, len, &r, &err);

	if (rc == 0 && r.op == CLIENT_SERVE_FUSE && given >= 0) {
		rc = fuse_serve(s, r.text, given, &err);
	} else {
		if (given >= 0)
			close(given);
		if (rc == 0)
			rc = add_watcher(s, connection, &err);
	}
	refuse(connection, -rc, rc < 0 ? error_text(&err, rc) : NULL);
}

void serve_handed_up(struct serve *s)
{
	static char text[HANDED_MAX];
	int fds[2] = { -1, -1 };
	union two_fds u = { 0 };
	struct iovec io = { .iov_base = text, .iov_len = sizeof(text) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c;
	ssize_t n = recvmsg(s->up[0], &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
	if (!c)
		return;
	memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	take_handed(s, text, (size_t)n, fds[0], fds[1]);
	close(fds[0]);
}

/* ---- one connection ------------------------------------------------------------------------- */

static void serve_request(const struct serve *s, int fd, struct client_request *r, int64_t until)
{
	cleanup_free char *input = xcalloc(1, r->input_len + 1);

	switch (r->op) {
	case CLIENT_RUN:
		if (wire_read(fd, input, r->input_len, until) == 0)
			serve_run(fd, r, input);
		explicit_bzero(input, r->input_len);
		break;
	case CLIENT_AWAIT_END:
		serve_await_end(fd, r);
		break;
	case CLIENT_INFO:
		serve_info(s, fd);
		break;
	case CLIENT_WATCH:
		hand_up(s, fd, r, -1);
		break;
	case CLIENT_SERVE_FUSE:
		serve_serve_fuse(s, fd, r, until);
		break;
	case CLIENT_TAKE_FUSE:
		serve_take_fuse(s, fd, r);
		break;
	}
}

static void serve_connection(const struct serve *s, int fd)
{
	int64_t until = clock_mono_ms(&clock_real) + REQUEST_MS;
	cleanup_with(client_request_done) struct client_request r = { 0 };
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;
	size_t len;
	int rc = wire_read_text(fd, &text, &len, until);

	if (rc == -EMSGSIZE) {
		refuse(fd, EMSGSIZE, "the request is too long");
		return;
	}
	if (rc < 0)
		return;
	rc = client_request_decode(text, len, &r, &err);
	if (rc < 0)
		refuse(fd, -rc, err.message);
	else
		serve_request(s, fd, &r, until);
}

/* Root alone: whoever asks is obeyed with all that this container may do. */
static bool peer_may(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == 0)
		return true;
	log_warn("a peer that is not root was refused");
	return false;
}

/* In the same process group, which is what tells it from a daemon. */
static int start(struct serve *s, int socket, int fd)
{
	pid_t pid;
	int i = 0;

	while (i < SERVE_MAX && s->servers[i])
		i++;
	if (i == SERVE_MAX)
		return -EBUSY;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(socket);
		if (getppid() == s->pid)
			serve_connection(s, fd);
		_exit(0);
	}
	s->servers[i] = pid;
	s->running++;
	return 0;
}

void serve_accept(struct serve *s, int socket)
{
	cleanup_close int fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (!peer_may(fd))
		refuse(fd, EPERM, "only root may ask this client");
	else if (start(s, socket, fd) < 0)
		refuse(fd, EBUSY, "too many commands run at once");
}

static bool request_ended(struct serve *s, pid_t pid)
{
	for (int i = 0; i < SERVE_MAX; i++)
		if (s->servers[i] == pid) {
			s->servers[i] = 0;
			s->running--;
			return true;
		}
	return false;
}

void serve_reap(struct serve *s)
{
	pid_t pid;
	int daemons = 0;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		if (!request_ended(s, pid) && !fuse_ended(s, pid) && !keep_ended(s, pid))
			daemons++;
	if (daemons)
		tell_watchers(s, daemons);
}

/* Renamed into its place when it listens, so that nobody ever meets one that does not. */
int serve_listen(const char *dir, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/" CLIENT_SOCKET, dir);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_close int fd = -1;
	int rc = mkdir_parents(dir, 0700, err);

	if (rc < 0)
		return rc;
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path) >=
	    (int)sizeof(address.sun_path))
		return error_set(err, ENAMETOOLONG, "%s is too long for a socket's directory", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(address.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(address.sun_path, 0600) < 0 || listen(fd, SERVE_MAX) < 0 ||
	    rename(address.sun_path, path) < 0)
		return error_errno(err, errno, "cannot listen on %s", path);
	return TAKE_FD(fd);
}
