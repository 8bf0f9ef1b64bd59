/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * File systems on block devices. A device is formatted only when it could be read and nothing at
 * all was found on it, or an XFS without files whose making was interrupted. What may hang runs in
 * a child with a deadline.
 */
#define FS_NAME_MAX 32

/* 1 and the name of what is on the device ("ext4"; "dos" of a partition table), 0: nothing. */
int filesystem_probe(const char *device, char ret[static FS_NAME_MAX], struct error *err);
/* ext4, ext3 or xfs; others are -EINVAL. */
int filesystem_make(const char *device, const char *type, struct error *err);

/*
 * Before it is mounted for writing: mends what can be mended without asking (ext2, 3 and 4; others
 * do that themselves as they are mounted). -EIO: that takes a person.
 */
int filesystem_check(const char *device, const char *type, struct error *err);

struct filesystem_mount {
	const char *device, *type, *target;
	const char *options; /* of the file system, separated by commas; or "" */
	bool read_only;
	uint64_t attributes; /* MOUNT_ATTR_… */
};
int filesystem_mount(const struct filesystem_mount *m, struct error *err);
/*
 * To the device's size, while nobody has it mounted, after a full check where resize2fs asks for
 * one: ext2, 3 and 4. That takes no CAP_SYS_RESOURCE, as growing them while they are mounted does,
 * which a container may not have. But no journal covers it: whoever dies in the middle may leave
 * work for a person. -EUCLEAN: that is so now, and it must not be mounted.
 */
int filesystem_grow_unmounted(const char *device, const char *type, struct error *err);
bool filesystem_grows_unmounted(const char *type);
/* To the device's size; while mounted at mount_point: the kernel does it, and its journal covers that. */
int filesystem_grow(const char *device, const char *type, const char *mount_point,
		    struct error *err);
