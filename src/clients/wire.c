/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "clients/client.h"

#include <arpa/inet.h>
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

int client_call(const char *dir, const json_t *request, const void *input, size_t input_len,
		int timeout_ms, struct client_reply *ret, struct error *err)
{
	int64_t until = clock_mono_ms(&clock_real) + timeout_ms + ANSWER_MS;
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	struct error why = ERROR_INIT;
	cleanup_close int fd = dial(dir, err);
	int rc;

	if (fd < 0)
		return fd;
	rc = wire_write_json(fd, request, until);
	if (rc == 0)
		rc = wire_write(fd, input, input_len, until);
	/* one that refuses answers before it has read all: its answer is what counts */
	if (rc == 0 || rc == -ECONNRESET) {
		int read = read_reply(fd, &reply, until, &why);

		rc = rc < 0 && read == 0 ? rc : read;
	}
	if (rc < 0)
		return why.code == -rc
			       ? error_set(err, -rc, "%s", why.message)
			       : error_errno(err, -rc, "the client on %s did not answer", dir);
	*ret = reply;
	reply = (struct client_reply){ 0 };
	return 0;
}
