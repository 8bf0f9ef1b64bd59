/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/device.h"

#include "base/mem.h"
#include "base/quantity.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 5))) static void verdict(struct device_verdict *v,
							  const char *state, const char *reason,
							  const char *format, ...)
{
	va_list ap;

	v->state = state;
	v->reason = reason;
	va_start(ap, format);
	vsnprintf(v->message, sizeof(v->message), format, ap);
	va_end(ap);
}

static void judge_directory(const char *source, const struct device_facts *f,
			    struct device_verdict *ret)
{
	char size[QUANTITY_TEXT_MAX];

	if (f->symlink)
		verdict(ret, "Refused", "SymbolicLink",
			"%s leads through a symbolic link, which could be turned elsewhere: name "
			"the directory itself",
			source);
	else if (!f->block)
		verdict(ret, "Refused", "NotADirectory",
			"%s is not a directory: name a directory, or a place for one", source);
	else if (f->inside_brick)
		verdict(ret, "Refused", "InsideBrick",
			"%s lies inside another brick: name a directory outside of bricks", source);
	else if (f->read_only)
		verdict(ret, "Refused", "ReadOnly",
			"%s is on a file system that is mounted read-only: mount it writable",
			source);
	else if (f->free < DEVICE_SIZE_MIN)
		verdict(ret, "Refused", "TooSmall",
			"%s has %s free; a brick needs at least 1Gi: make room there", source,
			quantity_human(f->free, size));
	else
		verdict(ret, "Available", "", "%s", "");
}

static void judge_device(const char *source, const struct device_facts *f, bool wipe,
			 struct device_verdict *ret)
{
	char size[QUANTITY_TEXT_MAX];

	if (!f->block)
		verdict(ret, "Refused", "NotABlockDevice",
			"%s is not a block device: name a device, or put a directory under "
			"spec.directories",
			source);
	else if (f->in_use)
		verdict(ret, "Refused", "InUse",
			"%s is in use (mounted, or part of LVM, RAID, swap or another volume): "
			"free it first; it stays untouched",
			source);
	else if (f->size < DEVICE_SIZE_MIN)
		verdict(ret, "Refused", "TooSmall",
			"%s has %s; a brick needs at least 1Gi: name a larger device", source,
			quantity_human(f->size, size));
	else if (f->read_only)
		verdict(ret, "Refused", "ReadOnly",
			"%s is read-only: make it writable or name another device", source);
	else if (f->signature[0] && !wipe)
		verdict(ret, "Refused", "Signature",
			"%s carries data (%s) and stays untouched: to give it up, erase it with "
			"`wipefs -a %s` or list it "
			"under spec.glusterfs.wipe",
			source, f->signature, source);
	else
		verdict(ret, "Available", "", "%s", "");
}

void device_judge(const char *source, const struct device_facts *f, bool wipe,
		  struct device_verdict *ret)
{
	if (f->error == ENOENT || f->error == ENXIO || f->error == ENODEV)
		verdict(ret, "Missing", "NotFound",
			"%s is not there: attach it, or correct the name in the spec", source);
	else if (f->error)
		verdict(ret, "Failed", "ProbeFailed",
			"%s cannot be examined: %s; look for disk errors in the kernel's log",
			source, strerror(f->error));
	else if (f->directory)
		judge_directory(source, f, ret);
	else
		judge_device(source, f, wipe, ret);
}

bool device_unchanged(const struct device_facts *seen, const struct device_facts *now)
{
	return !seen->error && !now->error && seen->block && now->block &&
	       seen->major == now->major && seen->minor == now->minor && seen->size == now->size &&
	       streq(seen->wwn, now->wwn) && streq(seen->signature, now->signature) &&
	       strcasecmp(seen->uuid, now->uuid) == 0;
}

bool device_same(const struct device_facts *a, const struct device_facts *b)
{
	if (a->error || b->error || a->directory != b->directory || !a->block || !b->block)
		return false;
	if (a->directory)
		return a->inode != 0 && a->inode == b->inode && a->major == b->major &&
		       a->minor == b->minor;
	if (a->major == b->major && a->minor == b->minor)
		return true;
	return a->wwn[0] && strcmp(a->wwn, b->wwn) == 0;
}

bool device_in(const struct device_facts *a, const struct device_facts *b)
{
	if (a->error || b->error || !a->partition)
		return device_same(a, b);
	return device_same(a, b) || (a->disk_major == b->major && a->disk_minor == b->minor) ||
	       (b->wwn[0] && streq(a->disk_wwn, b->wwn)); /* on another path */
}
