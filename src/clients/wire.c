/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "clients/client.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ANSWER_MS 3000 /* for a client to say that the time of a command was over */

int wire_read(int fd, void *buf, size_t len, int64_t until)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = recv(fd, (char *)buf + done, len - done, 0);

		if (n == 0)
			return -ECONNRESET;
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		int rc = await_fd(fd, POLLIN, until);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int wire_write(int fd, const void *buf, size_t len, int64_t until)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, (const char *)buf + done, len - done, MSG_NOSIGNAL);

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EPIPE)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		int rc = await_fd(fd, POLLOUT, until);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int wire_read_text(int fd, char **ret, size_t *ret_len, int64_t until)
{
	cleanup_free char *text = NULL;
	uint32_t len;
	int rc = wire_read(fd, &len, sizeof(len), until);

	if (rc < 0)
		return rc;
	len = ntohl(len);
	if (len > CLIENT_TEXT_MAX)
		return -EMSGSIZE;
	text = xcalloc(1, (size_t)len + 1);
	rc = wire_read(fd, text, len, until);
	if (rc < 0)
		return rc;
	*ret = TAKE_PTR(text);
	*ret_len = len;
	return 0;
}

int wire_write_json(int fd, const json_t *o, int64_t until)
{
	cleanup_free char *text = json_text(o);
	size_t len = strlen(text);
	uint32_t prefix = htonl((uint32_t)len);
	int rc;

	if (len > CLIENT_TEXT_MAX)
		return -EMSGSIZE;
	rc = wire_write(fd, &prefix, sizeof(prefix), until);
	return rc < 0 ? rc : wire_write(fd, text, len, until);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

union one_fd {
	char buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int wire_give_fd(int fd, int given, int64_t until)
{
	char byte = 0;
	union one_fd u = { 0 };
	struct iovec io = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &given, sizeof(int));
	while (sendmsg(fd, &m, MSG_NOSIGNAL) < 0) {
		int rc = errno == EPIPE			     ? -ECONNRESET
			 : errno != EAGAIN && errno != EINTR ? -errno
							     : await_fd(fd, POLLOUT, until);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int wire_take_fd(int fd, int *ret, int64_t until)
{
	char byte;
	union one_fd u = { 0 };
	struct iovec io = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = u.buf,
			    .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c;
	ssize_t n;

	while ((n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC)) < 0) {
		int rc = errno != EAGAIN && errno != EINTR ? -errno : await_fd(fd, POLLIN, until);

		if (rc < 0)
			return rc;
		m.msg_controllen = sizeof(u.buf);
	}
	if (n == 0)
		return -ECONNRESET;
	/* there is room for one: of more the kernel has closed the rest */
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EBADMSG;
	memcpy(ret, CMSG_DATA(c), sizeof(int));
	return 0;
}

/* ---- the asking side ------------------------------------------------------------------------ */

void client_reply_done(struct client_reply *r)
{
	json_decref(r->text);
	free(r->out);
	free(r->err);
	*r = (struct client_reply){ 0 };
}

static int dial(const char *dir, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_close int fd = -1;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CLIENT_SOCKET, dir) >=
	    (int)sizeof(address.sun_path))
		return error_set(err, ENAMETOOLONG, "%s is too long for a socket's directory", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_errno(err, errno, "cannot make a socket");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return TAKE_FD(fd);
	/* a socket that nobody listens on, or none (yet), are the same to whoever asks */
	return error_errno(err, errno == ENOENT ? ECONNREFUSED : errno, "no client listens on %s",
			   address.sun_path);
}

bool client_listens(const char *dir)
{
	cleanup_close int fd = dial(dir, NULL);

	return fd >= 0;
}

void clients_find(const char *dir, struct strv *ret)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	strv_add(ret, dir);
	while (d && (e = readdir(d)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			strv_add_take(ret, xasprintf("%s/%s", dir, e->d_name));
	if (d)
		closedir(d);
}

static int read_bytes(int fd, const json_t *text, const char *key, char **ret, int64_t until)
{
	json_int_t len = jint(text, key);
	int rc;

	if (len < 0 || len > CLIENT_OUTPUT_MAX)
		return -EMSGSIZE;
	*ret = xcalloc(1, (size_t)len + 1);
	rc = wire_read(fd, *ret, (size_t)len, until);
	return rc;
}

static int read_reply(int fd, struct client_reply *reply, int64_t until, struct error *err)
{
	cleanup_free char *text = NULL;
	size_t len;
	json_int_t code;
	int rc = wire_read_text(fd, &text, &len, until);

	if (rc < 0)
		return rc;
	rc = json_parse(text, len, &reply->text, err);
	if (rc < 0)
		return -EBADMSG;
	code = jint(reply->text, "error");
	if (code) {
		const char *message = jstr(reply->text, "message");

		return error_set(err, code > 0 && code < 4096 ? (int)code : EIO, "%s",
				 message ? message : "the client says no more");
	}
	rc = read_bytes(fd, reply->text, "outLength", &reply->out, until);
	return rc < 0 ? rc : read_bytes(fd, reply->text, "errLength", &reply->err, until);
}

struct call {
	const json_t *request;
	const void *input;
	size_t input_len;
	int given; /* a descriptor, or -1 */
	int *ret_fd; /* or NULL */
};

static int send_request(int fd, const struct call *c, int64_t until)
{
	int rc = wire_write_json(fd, c->request, until);

	if (rc == 0)
		rc = wire_write(fd, c->input, c->input_len, until);
	return rc == 0 && c->given >= 0 ? wire_give_fd(fd, c->given, until) : rc;
}

static int ask(int fd, const char *dir, const struct call *c, int timeout_ms,
	       struct client_reply *ret, struct error *err)
{
	int64_t until = clock_mono_ms(&clock_real) + timeout_ms + ANSWER_MS;
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	struct error why = ERROR_INIT;
	int rc = send_request(fd, c, until);

	/* one that refuses answers before it has read all: its answer is what counts */
	if (rc == 0 || rc == -ECONNRESET) {
		int read = read_reply(fd, &reply, until, &why);

		rc = rc < 0 && read == 0 ? rc : read;
	}
	if (rc == 0 && c->ret_fd)
		rc = wire_take_fd(fd, c->ret_fd, until);
	if (rc < 0)
		return why.code == -rc
			       ? error_set(err, -rc, "%s", why.message)
			       : error_errno(err, -rc, "the client on %s did not answer", dir);
	*ret = reply;
	reply = (struct client_reply){ 0 };
	return 0;
}

int client_call(const char *dir, const json_t *request, const void *input, size_t input_len,
		int timeout_ms, struct client_reply *ret, struct error *err)
{
	struct call c = { .request = request, .input = input, .input_len = input_len, .given = -1 };
	cleanup_close int fd = dial(dir, err);

	return fd < 0 ? fd : ask(fd, dir, &c, timeout_ms, ret, err);
}

int client_call_fd(const char *dir, const json_t *request, int given, int timeout_ms,
		   struct client_reply *ret, int *ret_fd, struct error *err)
{
	struct call c = { .request = request, .given = given, .ret_fd = ret_fd };
	cleanup_close int fd = dial(dir, err);

	return fd < 0 ? fd : ask(fd, dir, &c, timeout_ms, ret, err);
}

int client_watch(const char *dir, int timeout_ms, struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *request = json_pack("{s:s}", "op", "watch");
	struct call c = { .request = request, .given = -1 };
	cleanup_close int fd = dial(dir, err);
	int rc = fd < 0 ? fd : ask(fd, dir, &c, timeout_ms, &reply, err);

	return rc < 0 ? rc : TAKE_FD(fd);
}
