/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tar.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <zlib.h>

#define BLOCK 512

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

struct tar {
	gzFile gz;
	char *path;
	int64_t now_s;
};

int tar_create(const char *path, struct tar **ret, struct error *err)
{
	cleanup_close int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct tar *t;
	gzFile gz;

	if (fd < 0)
		return error_errno(err, errno, "cannot write %s", path);
	gz = gzdopen(fd, "wb");
	if (!gz)
		return error_set(err, ENOMEM, "cannot compress %s", path);
	(void)TAKE_FD(fd);
	t = xcalloc(1, sizeof(*t));
	t->gz = gz;
	t->path = xstrdup(path);
	t->now_s = clock_wall_ms(&clock_real) / 1000;
	*ret = t;
	return 0;
}

static int put(struct tar *t, const void *data, size_t len, struct error *err)
{
	int n = len ? gzwrite(t->gz, data, (unsigned)len) : 0;

	if (n >= 0 && (size_t)n == len)
		return 0;
	return error_set(err, EIO, "cannot write %s; is the disk full?", t->path);
}

/* A long name is split at a slash: what stands before goes to prefix. */
static int set_name(struct header *h, const char *name)
{
	size_t len = strlen(name), cut;

	if (len <= sizeof(h->name)) {
		memcpy(h->name, name, len);
		return 0;
	}
	for (cut = len - sizeof(h->name) - 1; cut < len && cut <= sizeof(h->prefix); cut++) {
		if (name[cut] != '/' || cut == 0)
			continue;
		memcpy(h->prefix, name, cut);
		memcpy(h->name, name + cut + 1, len - cut - 1);
		return 0;
	}
	return -ENAMETOOLONG;
}

static void octal(char *field, size_t size, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%0*llo", (int)size - 1, (unsigned long long)value);
	memcpy(field, text, size);
}

int tar_add(struct tar *t, const char *name, const void *data, size_t len, struct error *err)
{
	static const char zeros[BLOCK];
	struct header h = { .type = '0', .magic = "ustar", .version = { '0', '0' } };
	unsigned sum = 0;
	int rc;

	if (set_name(&h, name) < 0)
		return error_set(err, ENAMETOOLONG, "the name %s is too long for an archive", name);
	octal(h.mode, sizeof(h.mode), 0600);
	octal(h.uid, sizeof(h.uid), 0);
	octal(h.gid, sizeof(h.gid), 0);
	octal(h.size, sizeof(h.size), len);
	octal(h.mtime, sizeof(h.mtime), (uint64_t)t->now_s);
	memset(h.checksum, ' ', sizeof(h.checksum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	octal(h.checksum, 7, sum);
	rc = put(t, &h, sizeof(h), err);
	if (rc == 0)
		rc = put(t, data, len, err);
	if (rc == 0 && len % BLOCK)
		rc = put(t, zeros, BLOCK - len % BLOCK, err);
	return rc;
}

int tar_close(struct tar *t, struct error *err)
{
	static const char end[2 * BLOCK];
	int rc = put(t, end, sizeof(end), err);

	if (gzclose(t->gz) != Z_OK && rc == 0)
		rc = error_set(err, EIO, "cannot write %s; is the disk full?", t->path);
	free(t->path);
	free(t);
	return rc;
}
