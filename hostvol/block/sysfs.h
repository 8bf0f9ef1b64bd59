/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/handle.h"

/* What the kernel says of devices, below the host's root. Nothing here talks to a device. */

#define DISK_NAME_MAX 32

/* A line of a file; "" and -errno where it cannot be read. */
int sys_line(const struct call *c, char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A number of a file (decimal, or hexadecimal with 0x); -errno. */
int sys_number(const struct call *c, uint64_t *ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool sys_exists(const struct call *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The whole path to which a link leads, without the host's root; "" and -errno. */
int sys_resolve(const struct call *c, char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/*
 * Calls fn with every name in a directory, in no order, until it returns other than 0, which is
 * returned. A directory that is not there has no names.
 */
int sys_each(const struct call *c, const char *dir, int (*fn)(const char *name, void *userdata),
	     void *userdata);
/* One write; -errno and a message that names the file. */
int sys_write(const struct call *c, const char *path, const char *text, struct error *err);

/* A whole disk: sdb, dm-3, nvme0n1, etherd!e7.3. */
struct disk {
	char name[DISK_NAME_MAX];
	char path[DISK_NAME_MAX + 8]; /* /dev/NAME, a ! in it as / */
	unsigned major, minor;
	uint64_t size; /* bytes, as the kernel knows it */
};

/* -ENODEV: the kernel has no such disk. */
int disk_read(const struct call *c, const char *name, struct disk *ret);
/*
 * Whether it has a size and a node. For a moment after that it may not be possible yet to open it
 * (-ENXIO).
 */
bool disk_is_ready(const struct call *c, const char *name);
/*
 * The link below /dev/disk/by-id that udev made for the disk, where it made one: for a map its
 * UUID's, else the one by world wide name. Else the device itself.
 */
int disk_link(const struct call *c, const struct disk *d, char *buf, size_t size);
