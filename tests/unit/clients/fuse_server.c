/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE server that can take over a descriptor: fuse_server DIRECTORY /dev/fd/3
 * shows the regular files of a directory, and makes and removes them. What the kernel refers to
 * means the same to the next one: a node's number is that of the file below, and there are no
 * handles. So each file is looked for again at every request; that is slow, and nothing is lost.
 */
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* newer than the headers that this is built with */
#define NOTIFY_RESEND 7
#define UNIQUE_RESEND (1ULL << 63)

enum { DATA_MAX = 128 << 10, BUFFER = DATA_MAX + 4096, VALID_S = 1 };

static int device, root;
static char in[BUFFER], out[BUFFER];

struct request {
	struct fuse_in_header h;
	const char *body;
};

static void reply(const struct request *q, int error, const void *body, size_t len)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + (error ? 0 : len)),
				     .error = -error,
				     .unique = q->h.unique };
	struct iovec io[] = { { &h, sizeof(h) }, { (void *)body, error ? 0 : len } };

	/* ENOENT: nobody waits for it any more */
	if (writev(device, io, 2) < 0 && errno != ENOENT)
		_exit(errno == ENODEV ? 0 : 1);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_node(uint64_t node, int flags)
{
	int fd = -1;
	DIR *dir;
	struct dirent *e;

	if (node == FUSE_ROOT_ID)
		return openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fdopendir(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!dir)
		return -1;
	errno = ESTALE;
	while (fd < 0 && (e = readdir(dir)))
		if (e->d_ino == node && e->d_type == DT_REG)
			fd = openat(root, e->d_name, flags | O_CLOEXEC | O_NOFOLLOW);
	closedir(dir);
	return fd;
}

static void fill_attr(const struct stat *st, struct fuse_attr *ret)
{
	*ret = (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.blksize = 4096,
	};
}

static void do_lookup(const struct request *q, const char *name)
{
	struct fuse_entry_out o = { .entry_valid = VALID_S, .attr_valid = VALID_S };
	struct stat st;

	if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		reply(q, errno, NULL, 0);
		return;
	}
	o.nodeid = st.st_ino;
	fill_attr(&st, &o.attr);
	reply(q, S_ISREG(st.st_mode) ? 0 : EPERM, &o, sizeof(o));
}

static void reply_attr(const struct request *q, int fd)
{
	struct fuse_attr_out o = { .attr_valid = VALID_S };
	struct stat st;

	if (fstat(fd, &st) < 0) {
		reply(q, errno, NULL, 0);
		return;
	}
	fill_attr(&st, &o.attr);
	reply(q, 0, &o, sizeof(o));
}

static void do_attr(const struct request *q)
{
	const struct fuse_setattr_in *a = (const void *)q->body;
	bool set = q->h.opcode == FUSE_SETATTR;
	cleanup_close int fd = open_node(q->h.nodeid, set ? O_WRONLY : O_RDONLY);

	if (fd < 0 || (set && (a->valid & FATTR_SIZE) && ftruncate(fd, (off_t)a->size) < 0))
		reply(q, errno, NULL, 0);
	else
		reply_attr(q, fd);
}

/* One that is sent again may have been carried out: that it is there then is no error. */
static void do_create(const struct request *q)
{
	const struct fuse_create_in *a = (const void *)q->body;
	const char *name = q->body + sizeof(*a);
	bool again = q->h.unique & UNIQUE_RESEND;
	int excl = a->flags & O_EXCL && !again ? O_EXCL : 0;
	cleanup_close int fd = openat(root, name, O_RDWR | O_CREAT | O_CLOEXEC | excl, 0600);
	struct {
		struct fuse_entry_out e;
		struct fuse_open_out o;
	} o = { .e = { .entry_valid = VALID_S, .attr_valid = VALID_S } };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		reply(q, errno, NULL, 0);
		return;
	}
	o.e.nodeid = st.st_ino;
	fill_attr(&st, &o.e.attr);
	reply(q, 0, &o, sizeof(o));
}

static void do_unlink(const struct request *q)
{
	bool again = q->h.unique & UNIQUE_RESEND;

	reply(q, unlinkat(root, q->body, 0) == 0 || (again && errno == ENOENT) ? 0 : errno, NULL,
	      0);
}

static void do_rename(const struct request *q, size_t head)
{
	const char *from = q->body + head, *to = from + strlen(from) + 1;
	bool again = q->h.unique & UNIQUE_RESEND;

	reply(q, renameat(root, from, root, to) == 0 || (again && errno == ENOENT) ? 0 : errno,
	      NULL, 0);
}

static void do_read(const struct request *q)
{
	const struct fuse_read_in *a = (const void *)q->body;
	cleanup_close int fd = open_node(q->h.nodeid, O_RDONLY);
	ssize_t n = fd < 0 || a->size > DATA_MAX ? -1 : pread(fd, out, a->size, (off_t)a->offset);

	reply(q, n < 0 ? errno : 0, out, n < 0 ? 0 : (size_t)n);
}

static void do_write(const struct request *q)
{
	const struct fuse_write_in *a = (const void *)q->body;
	cleanup_close int fd = open_node(q->h.nodeid, O_WRONLY);
	ssize_t n = fd < 0 ? -1 : pwrite(fd, q->body + sizeof(*a), a->size, (off_t)a->offset);
	struct fuse_write_out o = { .size = n < 0 ? 0 : (uint32_t)n };

	reply(q, n < 0 ? errno : 0, &o, sizeof(o));
}

static void do_readdir(const struct request *q)
{
	const struct fuse_read_in *a = (const void *)q->body;
	DIR *dir = fdopendir(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	size_t used = 0;

	if (!dir) {
		reply(q, errno, NULL, 0);
		return;
	}
	if (a->offset)
		seekdir(dir, (long)a->offset);
	while ((e = readdir(dir))) {
		struct fuse_dirent d = { .ino = e->d_ino,
					 .off = (uint64_t)telldir(dir),
					 .namelen = (uint32_t)strlen(e->d_name),
					 .type = e->d_type };
		size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen);

		if (used + size > a->size)
			break;
		memset(out + used, 0, size);
		memcpy(out + used, &d, FUSE_NAME_OFFSET);
		memcpy(out + used + FUSE_NAME_OFFSET, e->d_name, d.namelen);
		used += size;
	}
	closedir(dir);
	reply(q, 0, out, used);
}

/* ---- */

static void do_init(const struct request *q)
{
	const struct fuse_init_in *a = (const void *)q->body;
	struct fuse_init_out o = { .major = FUSE_KERNEL_VERSION,
				   .minor = FUSE_KERNEL_MINOR_VERSION,
				   .max_readahead = a->max_readahead,
				   .flags = a->flags & FUSE_BIG_WRITES,
				   .max_write = DATA_MAX };

	reply(q, 0, &o, sizeof(o));
}

static void answer(const struct request *q)
{
	static const struct fuse_open_out opened;
	struct fuse_statfs_out fs = { .st = { .bsize = 4096, .namelen = 255 } };

	switch (q->h.opcode) {
	case FUSE_INIT:
		do_init(q);
		return;
	case FUSE_LOOKUP:
		do_lookup(q, q->body);
		return;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		do_attr(q);
		return;
	case FUSE_CREATE:
		do_create(q);
		return;
	case FUSE_UNLINK:
		do_unlink(q);
		return;
	case FUSE_RENAME:
	case FUSE_RENAME2:
		do_rename(q, q->h.opcode == FUSE_RENAME ? sizeof(struct fuse_rename_in)
							: sizeof(struct fuse_rename2_in));
		return;
	case FUSE_READ:
		do_read(q);
		return;
	case FUSE_WRITE:
		do_write(q);
		return;
	case FUSE_READDIR:
		do_readdir(q);
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(q, 0, &opened, sizeof(opened));
		return;
	case FUSE_STATFS:
		reply(q, 0, &fs, sizeof(fs));
		return;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FSYNC:
		reply(q, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		reply(q, ENOSYS, NULL, 0);
	}
}

/* What the one before us had read and not answered is ours to answer. */
static void ask_again(void)
{
	struct fuse_out_header h = { .len = sizeof(h), .error = NOTIFY_RESEND };

	if (write(device, &h, sizeof(h)) < 0)
		fprintf(stderr, "fuse_server: the kernel cannot send again: %s\n", strerror(errno));
}

int main(int argc, char **argv)
{
	if (argc != 3 || sscanf(argv[2], "/dev/fd/%d", &device) != 1)
		return 2;
	root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return 2;
	/* memory that is there: a signal cannot end the kernel's copying halfway */
	memset(in, 0, sizeof(in));
	memset(out, 0, sizeof(out));
	ask_again();
	for (;;) {
		ssize_t n = read(device, in, sizeof(in));
		struct request q;

		if (n < 0 && errno == ENODEV)
			return 0;
		if (n < (ssize_t)sizeof(q.h)) {
			if (errno == EINTR || errno == EAGAIN || errno == ENOENT)
				continue;
			return 1;
		}
		memcpy(&q.h, in, sizeof(q.h));
		q.body = in + sizeof(q.h);
		answer(&q);
	}
}
