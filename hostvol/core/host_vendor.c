/* SPDX-License-Identifier: Apache-2.0 */
/* This machine, as drivers of storage vendors need it. */
#include "host_vendor.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* ---- devices -------------------------------------------------------------------------------- */

struct control_call {
	const char *path;
	unsigned request;
	void *buf; /* shared with the child */
};

static int do_control(void *arg)
{
	struct control_call *call = arg;
	int fd = open(call->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || ioctl(fd, call->request, call->buf) < 0 ? -errno : 0;
}

int vendor_control_device(const struct hostvol_host *host, const char *path, unsigned request,
			  void *buf, size_t size, int timeout_ms)
{
	struct control_call call = { .path = path, .request = request };
	int r;

	call.buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (call.buf == MAP_FAILED)
		return -errno;
	memcpy(call.buf, buf, size);
	r = process_call(do_control, &call, path, timeout_ms);
	memcpy(buf, call.buf, size);
	munmap(call.buf, size);
	return r;
}

static int do_claim(void *arg)
{
	return open(arg, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC) < 0 ? -errno : 0;
}

int vendor_device_in_use(const struct hostvol_host *host, const char *path, int timeout_ms)
{
	int r = process_call(do_claim, (void *)path, path, timeout_ms);

	return r == -EBUSY ? 1 : r;
}

int vendor_find_name(const struct hostvol_host *host, const char *dir, const char *prefix,
		     const char *suffix, char *name, size_t size)
{
	struct dirent *e;
	int n = 0, r = 0;
	DIR *d = opendir(dir);

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (r >= 0 && (e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len < strlen(prefix) + strlen(suffix) || !str_has_prefix(e->d_name, prefix) ||
		    !str_has_suffix(e->d_name, suffix))
			continue;
		if (n++ > 0 && strcmp(e->d_name, name) > 0)
			continue;
		if (len >= size)
			r = -ENAMETOOLONG;
		else
			memcpy(name, e->d_name, len + 1);
	}
	closedir(d);
	return r < 0 ? r : n;
}

/* ---- network -------------------------------------------------------------------------------- */

struct wire {
	int fd;
	int64_t end_ms;
};

static int wire_connect(struct wire *w, const struct addrinfo *a)
{
	socklen_t len = sizeof(int);
	int problem = 0, r;

	w->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0)
		return -errno;
	if (connect(w->fd, a->ai_addr, a->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR)
		return -errno;
	r = await_fd(w->fd, POLLOUT, w->end_ms);
	if (r < 0)
		return r;
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
		return -errno;
	return -problem;
}

static int wire_send(const struct wire *w, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(w->fd, data, len, MSG_NOSIGNAL);

		if (n >= 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			int r = await_fd(w->fd, POLLOUT, w->end_ms);

			if (r < 0)
				return r;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int wire_receive(const struct wire *w, char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = recv(w->fd, data, len, 0);

		if (n > 0) {
			data += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return -ECONNRESET;
		} else if (errno == EAGAIN) {
			int r = await_fd(w->fd, POLLIN, w->end_ms);

			if (r < 0)
				return r;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int vendor_exchange(const struct hostvol_host *host, const char *address, unsigned port,
		    const void *request, size_t request_len, void *reply, size_t reply_len,
		    int timeout_ms)
{
	/* a name would be asked for without a deadline */
	static const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
					       .ai_socktype = SOCK_STREAM };
	struct wire w = { .fd = -1, .end_ms = clock_mono_ms(&clock_real) + timeout_ms };
	struct addrinfo *found;
	char service[16];
	int r;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(address, service, &hints, &found) != 0)
		return -EADDRNOTAVAIL;
	r = wire_connect(&w, found);
	freeaddrinfo(found);
	if (r >= 0)
		r = wire_send(&w, request, request_len);
	if (r >= 0)
		r = wire_receive(&w, reply, reply_len);
	if (w.fd >= 0)
		close(w.fd);
	return r;
}

static bool same_address(const struct sockaddr *have, const char *wanted)
{
	unsigned char want[16];
	const void *bytes;
	int family = strchr(wanted, ':') ? AF_INET6 : AF_INET;

	if (!have || have->sa_family != family || inet_pton(family, wanted, want) != 1)
		return false;
	bytes = family == AF_INET ? (const void *)&((const struct sockaddr_in *)have)->sin_addr
				  : (const void *)&((const struct sockaddr_in6 *)have)->sin6_addr;
	return memcmp(bytes, want, family == AF_INET ? 4 : 16) == 0;
}

bool vendor_has_address(const struct hostvol_host *host, const char *address)
{
	struct ifaddrs *list;
	bool found = false;

	if (getifaddrs(&list) < 0)
		return false;
	for (struct ifaddrs *a = list; a && !found; a = a->ifa_next)
		found = !(a->ifa_flags & IFF_LOOPBACK) && same_address(a->ifa_addr, address);
	freeifaddrs(list);
	return found;
}
