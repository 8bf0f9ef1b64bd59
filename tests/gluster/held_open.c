/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before qm-gluster by worker_files.sh: a worker that opens a file to write to it waits until the file that
 * QM_HOLD names is gone, and says by QM_HOLD.held that it does. So it stands between its look at
 * the file and what it does to it, as one that was frozen there.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <glusterfs/api/glfs-handles.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef glfs_fd_t *(*open_fn)(glfs_t *fs, glfs_object_t *object, int flags);

static void hold(const char *path)
{
	char held[4096];
	snprintf(held, sizeof(held), "%s.held", path);
	int fd = open(held, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	while (access(path, F_OK) == 0)
		poll(NULL, 0, 20);
}

__attribute__((visibility("default"))) glfs_fd_t *
glfs_h_open(glfs_t *fs, glfs_object_t *object, int flags)
{
	open_fn next = (open_fn)dlsym(RTLD_NEXT, "glfs_h_open");
	const char *path = getenv("QM_HOLD");
	if (path && (flags & O_ACCMODE) == O_RDWR)
		hold(path);
	return next(fs, object, flags);
}
