/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/dial.h"

#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

int dial_init(struct dial *d, const struct h2_target *target, struct error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char port[16];
	int r;

	*d = (struct dial){ 0 };
	if (target->unix_path)
		return 0;
	snprintf(port, sizeof(port), "%d", target->proxy_host ? target->proxy_port : target->port);
	r = getaddrinfo(target->proxy_host ? target->proxy_host : target->host, port, &hints,
			&d->addresses);
	if (r != 0)
		return error_set(err, r == EAI_AGAIN ? EAGAIN : ENXIO, "Cannot find the %s: %s",
				 target->proxy_host ? "proxy" : "host", gai_strerror(r));
	d->next = d->addresses;
	return 0;
}

void dial_done(struct dial *d)
{
	if (d->addresses)
		freeaddrinfo(d->addresses);
	*d = (struct dial){ 0 };
}

bool dial_has_next(const struct dial *d)
{
	return d->next != NULL;
}

static int dial_socket(const struct sockaddr *addr, socklen_t len)
{
	cleanup_close int fd =
		socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (addr->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (connect(fd, addr, len) < 0 && errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

static int dial_unix(const char *path, struct error *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return error_set(err, ENAMETOOLONG,
				 "Cannot connect: a socket's path has at most %zu bytes",
				 sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	fd = dial_socket((struct sockaddr *)&addr, sizeof(addr));
	if (fd < 0)
		return error_errno(err, -fd, "Cannot connect");
	return fd;
}

int dial_next(struct dial *d, const struct h2_target *target, struct error *err)
{
	int fd = -ENXIO;

	if (target->unix_path)
		return dial_unix(target->unix_path, err);
	while (fd < 0 && d->next) {
		fd = dial_socket(d->next->ai_addr, d->next->ai_addrlen);
		d->next = d->next->ai_next;
	}
	if (fd < 0)
		return error_errno(err, -fd, "Cannot connect");
	return fd;
}
