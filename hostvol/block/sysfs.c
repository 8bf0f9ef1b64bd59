/* SPDX-License-Identifier: Apache-2.0 */
#include "sysfs.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define PATH_TEXT 600
#define READY_MS 5000 /* for a disk to say its size */
#define WRITE_MS 30000 /* of one write to the kernel */

/* The path of format and its arguments, into a local buffer; -ENAMETOOLONG ends the function. */
#define FORMAT_PATH(path, format)                                                                  \
	char path[PATH_TEXT];                                                                      \
	do {                                                                                       \
		va_list args_;                                                                     \
		int n_;                                                                            \
                                                                                                   \
		va_start(args_, format);                                                           \
		n_ = vsnprintf(path, sizeof(path), format, args_);                                 \
		va_end(args_);                                                                     \
		if (n_ < 0 || n_ >= (int)sizeof(path))                                             \
			return -ENAMETOOLONG;                                                      \
	} while (0)

int sys_line(const struct call *c, char *buf, size_t size, const char *format, ...)
{
	buf[0] = '\0';
	FORMAT_PATH(path, format);
	return host_read_line(c->host, path, buf, size);
}

int sys_number(const struct call *c, uint64_t *ret, const char *format, ...)
{
	char line[64], *end;
	uint64_t value;
	int r;

	FORMAT_PATH(path, format);
	r = host_read_line(c->host, path, line, sizeof(line));
	if (r < 0)
		return r;
	if (line[0] < '0' || line[0] > '9')
		return -EBADMSG;
	errno = 0;
	value = strtoull(line, &end, str_has_prefix(line, "0x") ? 16 : 10);
	if (errno || *end)
		return -EBADMSG;
	*ret = value;
	return 0;
}

static int rooted(const struct call *c, const char *path, char *buf, size_t size)
{
	return snprintf(buf, size, "%s%s", c->host->root, path) < (int)size ? 0 : -ENAMETOOLONG;
}

static int exists(const struct call *c, const char *path)
{
	char full[PATH_TEXT * 2];
	struct stat st;

	return rooted(c, path, full, sizeof(full)) >= 0 && stat(full, &st) == 0;
}

bool sys_exists(const struct call *c, const char *format, ...)
{
	char path[PATH_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return exists(c, path);
}

int sys_resolve(const struct call *c, char *buf, size_t size, const char *format, ...)
{
	char full[PATH_TEXT * 2], found[PATH_MAX];
	size_t root = strlen(c->host->root);
	int r;

	buf[0] = '\0';
	FORMAT_PATH(path, format);
	r = rooted(c, path, full, sizeof(full));
	if (r < 0)
		return r;
	if (!realpath(full, found))
		return -errno;
	if (strncmp(found, c->host->root, root) != 0)
		return -EXDEV;
	return snprintf(buf, size, "%s", found + root) < (int)size ? 0 : -ENAMETOOLONG;
}

int sys_each(const struct call *c, const char *path, int (*fn)(const char *name, void *userdata),
	     void *userdata)
{
	char full[PATH_TEXT * 2];
	struct dirent *e;
	DIR *dir;
	int r = rooted(c, path, full, sizeof(full));

	if (r < 0)
		return r;
	dir = opendir(full);
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (r == 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			r = fn(e->d_name, userdata);
	closedir(dir);
	return r;
}

int sys_write(const struct call *c, const char *path, const char *text, struct error *err)
{
	int r = call_left(c, WRITE_MS, err);

	if (r < 0)
		return r;
	r = c->host->write_kernel(c->host, path, text, r);
	if (r < 0)
		return error_errno(err, -r, "cannot write \"%.40s\" to %s", text, path);
	return 0;
}

int disk_read(const struct call *c, const char *name, struct disk *ret)
{
	struct disk d = { 0 };
	char line[64];
	uint64_t sectors;

	if (snprintf(d.name, sizeof(d.name), "%s", name) >= (int)sizeof(d.name) ||
	    strchr(name, '/'))
		return -ENODEV;
	sys_line(c, line, sizeof(line), "/sys/block/%s/dev", name);
	if (sscanf(line, "%u:%u", &d.major, &d.minor) != 2 ||
	    sys_number(c, &sectors, "/sys/block/%s/size", name) < 0)
		return -ENODEV;
	snprintf(d.path, sizeof(d.path), "/dev/%s", name);
	for (char *p = d.path; (p = strchr(p, '!'));) /* sysfs' slash */
		*p = '/';
	d.size = sectors * 512; /* whatever the disk's own sectors are */
	*ret = d;
	return 0;
}

bool disk_is_ready(const struct call *c, const char *name)
{
	struct host_stat st;
	struct disk d;
	int left = call_left(c, READY_MS, NULL);

	return left >= 0 && disk_read(c, name, &d) >= 0 && d.size &&
	       c->host->stat(c->host, d.path, &st, left) >= 0 && st.type == HOST_FILE_BLOCK &&
	       st.size && st.major == d.major && st.minor == d.minor;
}

struct link_search {
	const struct call *c;
	const char *target; /* the device */
	const char *const *prefixes; /* best first */
	size_t best;
	char name[256];
};

static int consider_link(const char *name, void *userdata)
{
	struct link_search *s = userdata;
	char target[PATH_TEXT];
	size_t i;

	for (i = 0; s->prefixes[i] && !str_has_prefix(name, s->prefixes[i]); i++)
		;
	if (!s->prefixes[i] || i >= s->best || strlen(name) >= sizeof(s->name))
		return 0;
	if (sys_resolve(s->c, target, sizeof(target), "/dev/disk/by-id/%s", name) < 0 ||
	    !streq(target, s->target))
		return 0;
	s->best = i;
	snprintf(s->name, sizeof(s->name), "%s", name);
	return 0;
}

int disk_link(const struct call *c, const struct disk *d, char *buf, size_t size)
{
	static const char *const prefixes[] = { "dm-uuid-mpath-", "wwn-",	 "nvme-uuid.",
						"nvme-eui.",	  "nvme-nguid.", "scsi-3",
						"scsi-",	  "nvme-",	 NULL };
	struct link_search s = {
		.c = c, .target = d->path, .prefixes = prefixes, .best = ARRAY_SIZE(prefixes)
	};
	int r = sys_each(c, "/dev/disk/by-id", consider_link, &s);

	if (r < 0 || !s.name[0])
		snprintf(buf, size, "%s", d->path);
	else
		snprintf(buf, size, "/dev/disk/by-id/%s", s.name);
	return 0;
}
