/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/tunnel.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define ANSWER_MAX 8192

struct tunnel *tunnel_new(const struct h2_target *target)
{
	struct tunnel *t = xcalloc(1, sizeof(*t));
	bool v6 = strchr(target->host, ':') != NULL;
	cleanup_free char *to = xasprintf(v6 ? "[%s]:%d" : "%s:%d", target->host, target->port);

	t->request = xasprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", to, to,
			       target->proxy_auth ? "Proxy-Authorization: " : "",
			       target->proxy_auth ? target->proxy_auth : "",
			       target->proxy_auth ? "\r\n" : "");
	return t;
}

void tunnel_free(struct tunnel *t)
{
	if (!t)
		return;
	explicit_bzero(t->request, strlen(t->request)); /* it may hold a password */
	free(t->request);
	buf_done(&t->answer);
	free(t);
}

bool tunnel_wants_write(const struct tunnel *t)
{
	return t->request[t->sent] != 0;
}

static int judge(const struct tunnel *t, struct error *err)
{
	int status = 0;

	if (sscanf(t->answer.data, "HTTP/1.%*1d %3d", &status) != 1)
		return error_set(err, EPROTO, "The proxy does not speak HTTP");
	if (status >= 200 && status < 300)
		return 0;
	if (status == 407)
		return error_set(err, EACCES,
				 "The proxy wants other credentials (HTTP status 407); check the "
				 "user and password in its URL");
	return error_set(err, EHOSTUNREACH, "The proxy refused the way with HTTP status %d",
			 status);
}

/* Byte by byte, once a connection: what follows the answer belongs to TLS. */
static int receive(struct tunnel *t, int fd, struct error *err)
{
	char c;

	for (;;) {
		ssize_t n = recv(fd, &c, 1, 0);

		if (n == 0)
			return error_set(err, ECONNRESET, "The proxy closed the connection");
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return -EAGAIN;
		if (n < 0)
			return error_errno(err, errno, "The connection to the proxy broke");
		buf_add(&t->answer, &c, 1);
		if (str_has_suffix(t->answer.data, "\r\n\r\n"))
			return judge(t, err);
		if (t->answer.len >= ANSWER_MAX)
			return error_set(err, EPROTO, "The proxy's answer is too long");
	}
}

int tunnel_work(struct tunnel *t, int fd, struct error *err)
{
	while (tunnel_wants_write(t)) {
		ssize_t n =
			send(fd, t->request + t->sent, strlen(t->request + t->sent), MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return -EAGAIN;
		if (n < 0)
			return error_errno(err, errno, "The connection to the proxy broke");
		t->sent += (size_t)n;
	}
	return receive(t, fd, err);
}
