/* SPDX-License-Identifier: Apache-2.0 */
/* Which device carries a brick's file system, whatever its name is today. */
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/device.h"
#include "systems/glusterfs/mount.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

/* How good a device that shows the file system is; the best is taken. */
enum fit {
	FIT_NONE,
	FIT_HELD, /* by something else: whoever tries it says what is wrong */
	FIT_FREE,
	FIT_NAMED, /* and it is the disk that it was on */
};

struct search {
	const struct disk_wanted *wanted;
	enum fit fit; /* of the best so far */
	struct device_facts facts;
	char device[DEVICE_PATH_MAX];
	char other[DEVICE_PATH_MAX]; /* another one that is as good */
	char unreadable[DEVICE_PATH_MAX];
};

/* A name with a slash in /dev has a ! in sysfs. */
static void path_of(const char *name, char path[static DEVICE_PATH_MAX])
{
	snprintf(path, DEVICE_PATH_MAX, "/dev/%s", name);
	for (char *p = path; (p = strchr(p, '!'));)
		*p = '/';
}

/* Of a mirror or a volume group: what it shows is also on the device above. */
static bool is_member(const struct device_facts *f)
{
	return strstr(f->signature, "raid_member") || strstr(f->signature, "LVM2_member") ||
	       strstr(f->signature, "mpath_member");
}

/*
 * It cannot be read, and may be the one that is looked for: not one that is not there, or has no
 * medium, nor one that says that it is another, nor one that we may not open, since nobody made a
 * brick there (a container's, or a sandbox's, system disk). What is held is not asked: a path that
 * stands by cannot be read, and what is on it is on the device above.
 */
static bool is_unreadable(const struct disk_wanted *w, const struct device_facts *f)
{
	const char *wwn = f->partition ? f->disk_wwn : f->wwn;

	return f->error && f->error != ENOENT && f->error != ENXIO && f->error != ENODEV &&
	       f->error != ENOMEDIUM && f->error != EMEDIUMTYPE && f->error != EPERM &&
	       f->error != EACCES &&
	       !(w->wwn && wwn[0] && !streq(w->wwn, wwn));
}

static bool shows(const struct disk_wanted *w, const struct device_facts *f)
{
	return !f->error && strcasecmp(f->uuid, w->uuid) == 0;
}

static enum fit fit_of(const struct disk_wanted *w, const struct device_facts *f, bool held)
{
	if (held)
		return FIT_HELD;
	return w->wwn && f->wwn[0] && streq(w->wwn, f->wwn) ? FIT_NAMED : FIT_FREE;
}

/* A disk that was copied shows the same file system twice: only its own name tells the brick's. */
static void consider(struct search *s, const char *path, const struct device_facts *f, bool held)
{
	enum fit fit = fit_of(s->wanted, f, held);

	if (fit > s->fit) {
		s->fit = fit;
		s->facts = *f;
		snprintf(s->device, sizeof(s->device), "%s", path);
		s->other[0] = '\0';
	} else if (fit == s->fit && fit == FIT_FREE && !device_same(&s->facts, f)) {
		snprintf(s->other, sizeof(s->other), "%s", path);
	}
}

/*
 * Partitions and whole devices alike. A path of a multipath map, or a member of a mirror, shows the
 * file system too; it is in use by the map for ever, and what is written to it alone breaks the
 * mirror. A member without its array is none of ours.
 */
static int look_through(struct search *s, const char *sysfs,
			void (*probe)(const char *device, struct device_facts *ret),
			struct error *err)
{
	cleanup_free char *list = xasprintf("%s/class/block", sysfs);
	DIR *dir = opendir(list);
	const struct dirent *e;

	if (!dir)
		return error_errno(err, errno,
				   "Cannot list the block devices of this machine in %s", list);
	while (s->fit < FIT_NAMED && (e = readdir(dir))) {
		struct device_facts f;
		char path[DEVICE_PATH_MAX];
		bool held;

		if (e->d_name[0] == '.' || str_has_prefix(e->d_name, "ram") ||
		    str_has_prefix(e->d_name, "zram"))
			continue;
		held = device_held(sysfs, e->d_name);
		if (held && s->fit > FIT_NONE)
			continue;
		path_of(e->d_name, path);
		probe(path, &f);
		if (!held && is_unreadable(s->wanted, &f))
			snprintf(s->unreadable, sizeof(s->unreadable), "%s", path);
		if (shows(s->wanted, &f) && (held || !is_member(&f)))
			consider(s, path, &f, held);
	}
	closedir(dir);
	return 0;
}

static int conclude(const struct search *s, char device[static DEVICE_PATH_MAX], struct error *err)
{
	const char *uuid = s->wanted->uuid;

	if (s->other[0])
		return error_set(err, ENOTUNIQ,
				 "The brick's file system %s is on %.100s and on %.100s, and which "
				 "of them is the brick cannot be told: neither is mounted; take "
				 "away the copy, or the older of them",
				 uuid, s->device, s->other);
	if (s->fit > FIT_NONE) {
		snprintf(device, DEVICE_PATH_MAX, "%s", s->device);
		return 0;
	}
	if (s->unreadable[0])
		return error_set(err, EIO,
				 "No device of this machine shows the brick's file system %s, but "
				 "%.200s cannot be read, and may be its disk",
				 uuid, s->unreadable);
	return error_set(err, ENOENT,
			 "No device of this machine carries the brick's file system %s: attach its "
			 "disk",
			 uuid);
}

int device_find_in(const char *sysfs, void (*probe)(const char *device, struct device_facts *ret),
		   const struct disk_wanted *wanted, char device[static DEVICE_PATH_MAX],
		   struct error *err)
{
	struct search s = { .wanted = wanted };
	int rc = look_through(&s, sysfs, probe, err);

	return rc < 0 ? rc : conclude(&s, device, err);
}

/* What is in use is it, whatever else shows up; and the others need not be looked at. */
static bool find_mounted(const struct disk_wanted *wanted, char device[static DEVICE_PATH_MAX])
{
	cleanup_free char *link = NULL, *path = NULL;
	struct device_facts f;
	char name[DEVICE_PATH_MAX];
	dev_t dev;

	if (!wanted->mountpoint || mount_device_at(wanted->mountpoint, &dev, NULL) <= 0)
		return false;
	link = xasprintf("/sys/dev/block/%u:%u", major(dev), minor(dev));
	path = realpath(link, NULL);
	if (!path)
		return false;
	path_of(strrchr(path, '/') + 1, name);
	device_probe(name, &f);
	if (f.held || !shows(wanted, &f))
		return false;
	memcpy(device, name, DEVICE_PATH_MAX);
	return true;
}

int device_find(const struct disk_wanted *wanted, char device[static DEVICE_PATH_MAX],
		struct error *err)
{
	return find_mounted(wanted, device) ?
		       0 :
		       device_find_in("/sys", device_probe, wanted, device, err);
}
