/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "systems/glusterfs/cli.h"
#include "systems/glusterfs/device.h"
#include "systems/glusterfs/glusterd.h"
#include "systems/glusterfs/host.h"
#include "systems/glusterfs/mount.h"
#include "systems/glusterfs/quota.h"
#include "systems/glusterfs/storage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

struct real {
	struct node_host host;
	char *dir; /* records and glusterd's configuration */
	char version[32];
	char machine_id[40]; /* "" for that of the machine we run on */
	struct pid_watch *watch; /* of processes beside us, or */
	struct storage_watch *storage; /* of the storage pod's */
};

static struct real *real(struct node_host *h)
{
	return (struct real *)h;
}

static void ended(void *userdata)
{
	struct node_host *h = userdata;

	if (h->changed)
		h->changed(h->changed_data);
}

/* ---- identity ------------------------------------------------------------------------------ */
static int read_line(const char *path, char *dst, size_t size, struct error *err)
{
	cleanup_free char *text = NULL;
	int rc = file_read(path, 4096, &text, NULL, err);

	if (rc < 0)
		return rc;
	snprintf(dst, size, "%.*s", (int)strcspn(text, "\n"), text);
	return 0;
}

static int real_identity(struct node_host *h, struct node_identity *ret, struct error *err)
{
	struct node_identity id = { 0 };
	int rc = read_line("/proc/sys/kernel/random/boot_id", id.boot_id, sizeof(id.boot_id), err);

	if (rc < 0)
		return rc;
	/* a machine may have none; its boot id tells machines apart well enough then */
	if (real(h)->machine_id[0])
		memcpy(id.machine_id, real(h)->machine_id, sizeof(id.machine_id));
	else
		read_line("/etc/machine-id", id.machine_id, sizeof(id.machine_id), NULL);
	*ret = id;
	return 0;
}

/* ---- devices ------------------------------------------------------------------------------- */
static void real_probe_device(struct node_host *h, const char *device, struct device_facts *ret)
{
	device_probe(device, ret);
}

static void real_probe_directory(struct node_host *h, const char *directory,
				 struct device_facts *ret)
{
	directory_probe(directory, ret);
}

static int real_find_device(struct node_host *h, const struct disk_wanted *wanted,
			    char device[static DEVICE_PATH_MAX], struct error *err)
{
	return device_find(wanted, device, err);
}

static int real_format(struct node_host *h, const char *device, const struct device_facts *seen,
		       const char *uuid, const char *label, struct error *err)
{
	return device_format(device, seen, uuid, label, err);
}

static int real_mount(struct node_host *h, const char *device, const char *uuid,
		      const char *mountpoint, struct error *err)
{
	return brick_mount(device, mountpoint, err);
}

static int real_unmount(struct node_host *h, const char *mountpoint, struct error *err)
{
	return brick_unmount(mountpoint, err);
}

static int real_wipe(struct node_host *h, const char *device, const char *uuid, struct error *err)
{
	return device_wipe(device, uuid, err);
}

/* ---- markers ------------------------------------------------------------------------------- */
static int real_marker_read(struct node_host *h, const char *root, json_t **ret, struct error *err)
{
	return marker_read(root, ret, err);
}

static int real_marker_write(struct node_host *h, const char *root, const json_t *marker,
			     struct error *err)
{
	return marker_write(root, marker, err);
}

static int real_tree_remove(struct node_host *h, const char *root, const char *id,
			    struct error *err)
{
	return marker_tree_remove(root, id, err);
}

/* ---- records ------------------------------------------------------------------------------- */
static char *record_path(struct node_host *h, const char *name)
{
	return xasprintf("%s/%s.json", real(h)->dir, name);
}

static int real_record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	cleanup_free char *path = record_path(h, name), *text = NULL;
	size_t len;
	int rc = file_read(path, 0, &text, &len, err);

	return rc < 0 ? rc : json_parse(text, len, ret, err);
}

static int real_record_put(struct node_host *h, const char *name, const json_t *record,
			   struct error *err)
{
	cleanup_free char *path = record_path(h, name), *text = json_text(record);

	return file_write(path, text, strlen(text), 0600, err);
}

static int real_record_remove(struct node_host *h, const char *name, struct error *err)
{
	cleanup_free char *path = record_path(h, name);

	if (unlink(path) < 0 && errno != ENOENT)
		return error_errno(err, errno, "Cannot remove %s", path);
	return 0;
}

static int real_record_list(struct node_host *h, const char *prefix, struct strv *ret,
			    struct error *err)
{
	DIR *dir = opendir(real(h)->dir);
	const struct dirent *e;

	if (!dir)
		return error_errno(err, errno, "Cannot list %s", real(h)->dir);
	while ((e = readdir(dir)))
		if (str_has_prefix(e->d_name, prefix) && str_has_suffix(e->d_name, ".json"))
			strv_add_take(ret,
				      xstrndup(e->d_name, strlen(e->d_name) - strlen(".json")));
	closedir(dir);
	return 0;
}

/* ---- glusterd ------------------------------------------------------------------------------ */
static int real_glusterd_ensure(struct node_host *h, bool start, struct glusterd_state *ret,
				struct error *err)
{
	cleanup_free char *config = xasprintf("%s/glusterd.vol", real(h)->dir);
	struct glusterd_state state;
	int rc;

	if (!real(h)->version[0]) {
		rc = cli_version(real(h)->version, sizeof(real(h)->version), err);
		if (rc < 0)
			return error_prefix(
				err, "Is GlusterFS (glusterfs-server) installed on this node?");
	}
	rc = real(h)->storage ? storage_glusterd(&state, err)
			      : glusterd_start(config, start, &state, err);
	if (rc < 0)
		return rc;
	snprintf(state.version, sizeof(state.version), "%s", real(h)->version);
	if (!real(h)->storage)
		pid_watch_add(real(h)->watch, state.pid);
	*ret = state;
	return 0;
}

static int real_brick_usage(struct node_host *h, const char *volume, const char *path,
			    struct brick_usage *ret, struct error *err)
{
	struct brick_usage usage = { 0 };
	struct statvfs vfs;
	struct stat st;

	/* one that was shut down still tells how large it is */
	if (stat(path, &st) < 0)
		return error_errno(err, errno, "Cannot look at the brick %s", path);
	/* what is in memory of a file system whose disk is gone may still answer */
	if (major(st.st_dev) != 0 &&
	    device_gone(major(st.st_dev), minor(st.st_dev)))
		return error_set(err, ENODEV, "The disk of the brick %s is gone", path);
	if (statvfs(path, &vfs) < 0)
		return error_errno(err, errno, "Cannot look at the brick %s", path);
	usage.size = (int64_t)vfs.f_blocks * (int64_t)vfs.f_frsize;
	usage.free = (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize;
	usage.used = ((int64_t)vfs.f_blocks - (int64_t)vfs.f_bfree) * (int64_t)vfs.f_frsize;
	usage.pending = glusterd_brick_pending(path);
	if (usage.pending < 0)
		usage.pending = -1;
	usage.pid = real(h)->storage ? storage_brick_pid(path) : glusterd_brick_pid(volume, path);
	if (!real(h)->storage)
		pid_watch_add(real(h)->watch, usage.pid);
	*ret = usage;
	return 0;
}

/* ---- cluster ------------------------------------------------------------------------------- */
static int real_peers(struct node_host *h, struct gluster_peers *ret, struct error *err)
{
	return cli_peers(ret, err);
}

static int real_peer_probe(struct node_host *h, const char *address, struct error *err)
{
	return cli_peer_probe(address, err);
}

static int real_peer_detach(struct node_host *h, const char *address, struct error *err)
{
	return cli_peer_detach(address, err);
}

static int real_volume_get(struct node_host *h, const char *name, enum volume_look look,
			   struct gluster_volume *ret, struct error *err)
{
	return cli_volume_get(name, look, ret, err);
}

static int real_volume_apply(struct node_host *h, const struct volume_step *step, struct error *err)
{
	/* the storage pod does that for its own */
	if (step->kind == STEP_START_FORCE && !real(h)->storage)
		glusterd_forget_dead(step->volume);
	return cli_volume_apply(step, err);
}

/* ---- quota --------------------------------------------------------------------------------- */
static void real_quota_support(struct node_host *h, const char *brick, struct quota_support *ret)
{
	quota_support(brick, ret);
}

static int real_quota_set(struct node_host *h, const char *brick, const char *dir, int64_t bytes,
			  int64_t inodes, struct error *err)
{
	return quota_set(brick, dir, bytes, inodes, err);
}

static int real_quota_sweep(struct node_host *h, const char *brick, struct error *err)
{
	int rc = quota_sweep(brick, err);

	return rc < 0 ? rc : 0;
}

static void real_free(struct node_host *h)
{
	pid_watch_free(real(h)->watch);
	storage_watch_free(real(h)->storage);
	free(real(h)->dir);
	free(h);
}

static const struct node_host_ops real_ops = {
	.identity = real_identity,
	.probe_device = real_probe_device,
	.probe_directory = real_probe_directory,
	.find_device = real_find_device,
	.format = real_format,
	.mount = real_mount,
	.unmount = real_unmount,
	.wipe = real_wipe,
	.marker_read = real_marker_read,
	.marker_write = real_marker_write,
	.tree_remove = real_tree_remove,
	.record_get = real_record_get,
	.record_put = real_record_put,
	.record_remove = real_record_remove,
	.record_list = real_record_list,
	.glusterd_ensure = real_glusterd_ensure,
	.brick_usage = real_brick_usage,
	.peers = real_peers,
	.peer_probe = real_peer_probe,
	.peer_detach = real_peer_detach,
	.volume_get = real_volume_get,
	.volume_apply = real_volume_apply,
	.quota_support = real_quota_support,
	.quota_set = real_quota_set,
	.quota_sweep = real_quota_sweep,
	.free = real_free,
};

int node_host_real(const struct node_host_options *o, struct node_host **ret, struct error *err)
{
	cleanup_free char *dir = xasprintf("%s/agent/%s.%s", o->state_dir, o->ns, o->node);
	struct real *r;
	int rc = mkdir_parents(dir, 0700, err);

	if (rc < 0)
		return rc;
	r = xcalloc(1, sizeof(*r));
	r->host.ops = &real_ops;
	r->dir = TAKE_PTR(dir);
	if (o->machine_id)
		snprintf(r->machine_id, sizeof(r->machine_id), "%s", o->machine_id);
	if (o->storage_pod)
		r->storage = storage_watch_new(ended, r);
	else
		r->watch = pid_watch_new(ended, r);
	*ret = &r->host;
	return 0;
}
