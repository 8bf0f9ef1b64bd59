/* SPDX-License-Identifier: Apache-2.0 */
#include "local/demo.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "local/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

enum { DETACH_TRIES = 250, DETACH_PAUSE_MS = 20 };

static const long long disk_size = 4LL << 30;

static char *disk_path(int node, int disk)
{
	return state_path("demo/node%d-disk%d.img", node, disk);
}

/* The loop device whose backing file this is ("/dev/loop3"), or NULL. */
static char *find_loop(const struct stat *file)
{
	glob_t found = { 0 };
	char *device = NULL;

	glob("/dev/loop[0-9]*", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && !device; i++) {
		struct loop_info64 info = { 0 };
		cleanup_close int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 &&
		    info.lo_inode == file->st_ino && info.lo_device == file->st_dev)
			device = xstrdup(found.gl_pathv[i]);
	}
	globfree(&found);
	return device;
}

/* Another process may take the free device first; then the next free one is asked for. */
static int attach(int file, const char *path, char **ret, struct error *err)
{
	cleanup_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = { .fd = (unsigned)file };

	if (control < 0)
		return error_errno(err, errno, "opening /dev/loop-control");
	snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "%s", path);
	for (int tries = 0; tries < 20; tries++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		cleanup_free char *name = xasprintf("/dev/loop%d", number);
		cleanup_close int fd = number < 0 ? -1 : open(name, O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return error_errno(err, errno, "getting a free loop device");
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
			*ret = TAKE_PTR(name);
			return 0;
		}
		if (errno != EBUSY)
			return error_errno(err, errno, "attaching %s to %s", path, name);
	}
	return error_set(err, EBUSY, "no loop device stays free for %s", path);
}

static int ensure_disk(int node, int disk, char **ret, struct error *err)
{
	cleanup_free char *path = disk_path(node, disk);
	cleanup_close int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0)
		return error_errno(err, errno, "opening the demo's disk %s", path);
	if (st.st_size == 0 && ftruncate(file, disk_size) < 0)
		return error_errno(err, errno, "sizing the demo's disk %s", path);
	*ret = find_loop(&st);
	return *ret ? 0 : attach(file, path, ret, err);
}

static json_t *node_object(const char *ns, int node, json_t *devices)
{
	char name[16], ip[32];

	snprintf(name, sizeof(name), "node%d", node);
	snprintf(ip, sizeof(ip), "10.117.%d.%d", instance_number(), node);
	return json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:{s:s}, s:{s:[s]}, s:o, s:{s:s, s:i}}}",
			 "apiVersion", "coreos.com/v1", "kind", "StorageNode", "metadata", "name",
			 name, "namespace", ns, "spec", "type", "glusterfs", "nodeSelector",
			 "kubernetes.io/hostname", name, "storageNetwork", "ips", ip, "devices",
			 devices, "glusterfs", "cluster", "demo", "zone", node);
}

int demo_nodes(const char *ns, json_t **ret, struct error *err)
{
	cleanup_free char *dir = state_path("demo");
	cleanup_json json_t *nodes = json_array();
	int r = mkdir_parents(dir, 0700, err);

	for (int node = 1; node <= DEMO_NODES && r == 0; node++) {
		cleanup_json json_t *devices = json_array();

		for (int disk = 1; disk <= DEMO_DISKS && r == 0; disk++) {
			cleanup_free char *device = NULL;

			r = ensure_disk(node, disk, &device, err);
			if (r == 0)
				json_array_append_new(devices, json_string(device));
		}
		if (r == 0)
			json_array_append_new(nodes, node_object(ns, node, TAKE_PTR(devices)));
	}
	if (r == 0)
		*ret = TAKE_PTR(nodes);
	return r;
}

/* A device stays busy for a moment after its file system's last mount is gone. */
static int detach(const char *device, const struct stat *file, struct error *err)
{
	for (int i = 0; i < DETACH_TRIES; i++) {
		cleanup_free char *still = NULL;
		cleanup_close int fd = open(device, O_RDWR | O_CLOEXEC);

		if (fd >= 0)
			ioctl(fd, LOOP_CLR_FD);
		if (fd >= 0)
			close(TAKE_FD(fd));
		still = find_loop(file);
		if (!still)
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = DETACH_PAUSE_MS * 1000 * 1000 }, NULL);
	}
	return error_set(
		err, EBUSY,
		"the demo's disk %s is still in use; see: lsblk %s; grep %s /proc/*/mountinfo",
		device, device, device);
}

int demo_remove(bool delete_files, struct error *err)
{
	cleanup_free char *dir = state_path("demo");

	for (int node = 1; node <= DEMO_NODES; node++)
		for (int disk = 1; disk <= DEMO_DISKS; disk++) {
			cleanup_free char *path = disk_path(node, disk), *device = NULL;
			struct stat st;
			int r;

			if (stat(path, &st) < 0)
				continue;
			device = find_loop(&st);
			r = device ? detach(device, &st, err) : 0;
			if (r < 0)
				return r;
		}
	return delete_files ? remove_tree(dir, err) : 0;
}
