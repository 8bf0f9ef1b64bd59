/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/listen.h"

#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BACKLOG 128

int listener_unix(const char *path, mode_t mode, struct listener *ret, struct error *err)
{
	cleanup_close int fd = -1;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;

	if (strlen(path) >= sizeof(addr.sun_path))
		return error_set(err, ENAMETOOLONG,
				 "Cannot listen on %s: a socket's path has at most %zu bytes", path,
				 sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_errno(err, errno, "Cannot make a socket for %s", path);
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return error_errno(err, errno, "Cannot listen on %s", path);
	if (chmod(path, mode) < 0 || lstat(path, &st) < 0 || listen(fd, BACKLOG) < 0) {
		int code = errno;

		unlink(path);
		return error_errno(err, code, "Cannot listen on %s", path);
	}
	*ret = (struct listener){
		.fd = TAKE_FD(fd),
		.is_unix = true,
		.path = xstrdup(path),
		.dev = st.st_dev,
		.ino = st.st_ino,
	};
	return 0;
}

int listener_tcp(int port, struct listener *ret, int *ret_port, struct error *err)
{
	cleanup_close int fd = -1;
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);

	if (port < 0 || port > UINT16_MAX)
		return error_set(err, EINVAL, "Cannot listen on port %d: no such port", port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_errno(err, errno, "Cannot make a socket for 127.0.0.1:%d", port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return error_errno(err, errno, "Cannot listen on 127.0.0.1:%d", port);
	*ret_port = ntohs(addr.sin_port);
	*ret = (struct listener){ .fd = TAKE_FD(fd) };
	return 0;
}

int listener_accept(const struct listener *l, struct h2_peer *ret_peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	*ret_peer = (struct h2_peer){ .is_unix = l->is_unix, .uid = (uid_t)-1 };
	if (!l->is_unix) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
		ret_peer->uid = cred.uid;
		ret_peer->pid = cred.pid;
	}
	return fd;
}

void listener_done(struct listener *l)
{
	struct stat st;

	if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	if (l->fd >= 0)
		close(l->fd);
	free(l->path);
	*l = (struct listener){ .fd = -1 };
}
