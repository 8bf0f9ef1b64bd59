/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "base/mem.h"
#include "systems/glusterfs/device.h"

#include <errno.h>
#include <stdio.h>

static struct model_host *of(struct node_host *h)
{
	return (struct model_host *)h;
}

static struct sim *sim_of(struct node_host *h)
{
	return &of(h)->node->model->world->sim;
}

static int begin(struct node_host *h, bool write, const char *what, enum fault *ret,
		 struct error *err)
{
	return world_call_begin(of(h)->proc, write, what, ret, err);
}

static int end(struct node_host *h, enum fault fault, int rc, struct error *err)
{
	return call_end(of(h)->proc, fault, rc, err);
}

static int host_identity(struct node_host *h, struct node_identity *ret, struct error *err)
{
	snprintf(ret->machine_id, sizeof(ret->machine_id), "%032d",
		 (int)(of(h)->node - of(h)->node->model->nodes));
	snprintf(ret->boot_id, sizeof(ret->boot_id), "boot-%d", of(h)->node->boots);
	return 0;
}

/* ---- devices ------------------------------------------------------------------------------------- */

static void probe_device(struct node_host *h, const char *device, struct device_facts *ret)
{
	struct model_node *n = of(h)->node;
	struct model_device *d = model_device_named(n, device);

	*ret = (struct device_facts){ .error = d ? 0 : ENOENT };
	if (of(h)->proc->dead)
		ret->error = EIO;
	if (!d || ret->error)
		return;
	ret->block = true;
	ret->in_use = *d->mounted;
	ret->size = d->size;
	ret->major = 8;
	ret->minor = (unsigned)(d->name[strlen(d->name) - 1] - 'a') * 16;
	snprintf(ret->wwn, sizeof(ret->wwn), "wwn-%d", d->serial);
	snprintf(ret->signature, sizeof(ret->signature), "%s", d->signature);
	snprintf(ret->uuid, sizeof(ret->uuid), "%s", d->uuid);
	model_mutate_facts(n, d, ret);
}

static void probe_directory(struct node_host *h, const char *directory, struct device_facts *ret)
{
	*ret = (struct device_facts){ .error = ENOENT, .directory = true };
}

static struct model_device *device_with(struct model_node *n, const char *uuid)
{
	for (size_t i = 0; i < MODEL_DEVICES; i++) {
		if (n->devices[i].size && !n->devices[i].away && *uuid &&
		    streq(n->devices[i].uuid, uuid))
			return &n->devices[i];
	}
	return NULL;
}

static int find_device(struct node_host *h, const struct disk_wanted *w,
		char device[static DEVICE_PATH_MAX],
		       struct error *err)
{
	struct model_device *d = device_with(of(h)->node, w->uuid);

	if (of(h)->proc->dead)
		return error_set(err, ECANCELED, "the process is dead");
	if (!d)
		return error_set(err, ENOENT, "no device has the file system %s", w->uuid);
	snprintf(device, DEVICE_PATH_MAX, "%s", d->name);
	return 0;
}

/* Is there a brick of a volume on the device? */
static const struct model_volume *volume_on(struct model_node *n, const struct model_device *d)
{
	for (size_t i = 0; i < MODEL_VOLUMES && d->volumes; i++) {
		struct model_volume *v = &n->model->volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++) {
			if (v->bricks[k].node == n && model_brick_disk(v, &v->bricks[k]) == d)
				return v;
		}
	}
	return NULL;
}

/* The file system on it ends here: is that a loss? */
static void destroy(struct node_host *h, struct model_device *d, const char *how)
{
	struct model_node *n = of(h)->node;
	const struct model_volume *v = volume_on(n, d);

	if (v)
		sim_fail(sim_of(h), "%s %s is %s while it is a brick of %s", n->name, d->name, how,
			 v->name);
	model_device_clear(d);
}

/*
 * The brick that a file system is of by a record of some node; NULL: none, or one that was let go
 * of.
 */
static const char *recorded_as(const struct model *m, const char *uuid)
{
	for (size_t i = 0; i < MODEL_NODES; i++) {
		const char *name;
		json_t *record;

		json_object_foreach (m->nodes[i].records, name, record) {
			if (streq(jstr(record, "uuid"), uuid) && !jbool(record, "released"))
				return jstr(record, "id");
		}
	}
	return NULL;
}

/*
 * No device of a recorded brick is formatted for another, and none that a pool calls prepared at
 * all.
 */
static void check_format(struct node_host *h, const struct model_device *d, const char *uuid)
{
	struct model *m = of(h)->node->model;
	const char *was = *d->uuid ? recorded_as(m, d->uuid) : NULL, *id = recorded_as(m, uuid);
	cleanup_json json_t *pools = NULL;
	const json_t *pool, *b;
	size_t i, k;

	if (was && !streq(was, id))
		sim_fail(sim_of(h), "%s %s is brick %s and is formatted for brick %s",
			 of(h)->node->name, d->name, was, id ? id : "?");
	kube_list(m->world->late, &KIND_STORAGEPOOL, NULL, NULL, &pools, NULL, NULL);
	json_array_foreach (pools, i, pool) {
		json_array_foreach (jget(pool, "spec", "bricks"), k, b) {
			if (id && jbool(b, "prepared") && streq(jstr(b, "id"), id))
				sim_fail(sim_of(h),
					 "brick %s is formatted, which pool %s calls prepared", id,
					 object_name(pool));
		}
	}
}

static int format(struct node_host *h, const char *device, const struct device_facts *seen,
		  const char *uuid, const char *label, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct device_facts now;
	struct model_device *d;
	enum fault fault;
	int rc = begin(h, true, "format a device", &fault, err);

	if (rc < 0)
		return rc;
	d = model_device_named(n, device);
	if (!d)
		return error_set(err, ENOENT, "%s is not there", device);
	if (*d->mounted)
		return error_set(err, EBUSY, "%s is in use", device);
	probe_device(h, device, &now);
	if (!device_unchanged(seen, &now))
		return error_set(err, ESTALE, "%s is not as it was seen", device);
	if (streq(d->signature, "foreign") && !json_object_get(n->wipe, device))
		sim_fail(sim_of(h), "%s %s held somebody's data and is formatted", n->name, device);
	check_format(h, d, uuid);
	destroy(h, d, "formatted");
	sim_trace(sim_of(h), "%-12s formats disk %d (%s)", n->name, d->serial, device);
	snprintf(d->signature, sizeof(d->signature), "xfs");
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	return end(h, fault, 0, err);
}

/*
 * Something else at that place, or it elsewhere? What is left there of a disk that dropped off
 * gives way.
 */
static int check_place(struct model_node *n, const struct model_device *d, const char *mountpoint,
		       struct error *err)
{
	for (size_t i = 0; i < MODEL_DEVICES; i++)
		if (&n->devices[i] != d && streq(n->devices[i].mounted, mountpoint))
			return error_set(err, EBUSY, "something else is mounted at %s", mountpoint);
	if (*d->mounted && !streq(d->mounted, mountpoint))
		return error_set(err, EBUSY, "%s is mounted elsewhere", d->name);
	json_object_set_new(n->root_dirs, mountpoint, json_true());
	if (!*d->mounted && d->sick_until_ms > n->model->world->sim.now_ms)
		return error_set(err, EIO, "%s cannot be mounted: structure needs cleaning",
				 d->name);
	json_object_del(n->dead_mounts, mountpoint);
	return 0;
}

static int mount_device(struct node_host *h, const char *device, const char *uuid,
			const char *mountpoint, struct error *err)
{
	struct model_device *d;
	enum fault fault;
	int rc = begin(h, true, "mount a device", &fault, err);

	if (rc < 0)
		return rc;
	d = model_device_named(of(h)->node, device);
	if (!d || !streq(d->uuid, uuid))
		return error_set(err, ENOENT, "%s is not the file system %s", device, uuid);
	rc = check_place(of(h)->node, d, mountpoint, err);
	if (rc < 0)
		return end(h, fault, rc, err);
	rc = *d->mounted ? 1 : 0;
	snprintf(d->mounted, sizeof(d->mounted), "%s", mountpoint);
	return end(h, fault, rc, err);
}

static bool brick_runs_on(struct model_node *n, const struct model_device *d)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &n->model->volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++) {
			struct model_brick *b = &v->bricks[k];

			if (b->running && b->node == n && model_device_of_path(n, b->path) == d)
				return true;
		}
	}
	return false;
}

static int unmount(struct node_host *h, const char *mountpoint, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model_device *d;
	enum fault fault;
	int rc = begin(h, true, "unmount a device", &fault, err);

	if (rc < 0)
		return rc;
	json_object_del(n->dead_mounts, mountpoint);
	d = model_device_of_path(n, mountpoint);
	if (d && brick_runs_on(n, d))
		return error_set(err, EBUSY, "%s is in use", mountpoint);
	if (d)
		*d->mounted = 0;
	return end(h, fault, 0, err);
}

static int wipe(struct node_host *h, const char *device, const char *uuid, struct error *err)
{
	struct model_device *d;
	enum fault fault;
	int rc = begin(h, true, "wipe a device", &fault, err);

	if (rc < 0)
		return rc;
	d = model_device_named(of(h)->node, device);
	if (!d || !streq(d->uuid, uuid))
		return error_set(err, ENOENT, "%s is not the file system %s", device, uuid);
	if (*d->mounted)
		return error_set(err, EBUSY, "%s is mounted", device);
	destroy(h, d, "wiped");
	*d->signature = *d->uuid = 0;
	return end(h, fault, 0, err);
}

/* ---- markers and records ------------------------------------------------------------------------- */

static int marker_read(struct node_host *h, const char *root, json_t **ret, struct error *err)
{
	const json_t *marker = model_marker(of(h)->node, root);

	if (of(h)->proc->dead)
		return error_set(err, ECANCELED, "the process is dead");
	if (!marker && !model_device_of_path(of(h)->node, root) &&
	    of(h)->node->model->world->mutant == MUTANT_FORCED_BRICK) {
		*ret = json_pack("{ss}", "id", model_id_of_root(root));
		return 0;
	}
	if (!marker && model_is_dead(of(h)->node, root))
		return error_set(err, EIO, "%s cannot be read: input/output error", root);
	if (!marker)
		return error_set(err, ENOENT, "%s has no marker", root);
	*ret = json_deep_copy(marker);
	return 0;
}

static int marker_write(struct node_host *h, const char *root, const json_t *marker,
			struct error *err)
{
	struct model_device *d;
	enum fault fault;
	int rc = begin(h, true, "write a marker", &fault, err);

	if (rc < 0)
		return rc;
	if (model_is_dead(of(h)->node, root)) /* the disk has just dropped off */
		return error_set(err, EIO, "%s cannot be written: input/output error", root);
	d = model_device_of_path(of(h)->node, root);
	if (!d) {
		sim_fail(sim_of(h), "a marker is written to %s, where nothing is mounted", root);
		return -EIO;
	}
	if (!model_own_root(d, root)) {
		if (!d->trees)
			d->trees = json_object();
		json_object_set_new(d->trees, root, json_deep_copy(marker));
		return end(h, fault, 0, err);
	}
	json_decref(d->marker);
	d->marker = json_deep_copy(marker);
	return end(h, fault, 0, err);
}

static int tree_remove(struct node_host *h, const char *root, const char *id, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model_device *d = model_device_of_path(n, root);
	cleanup_free char *path = xasprintf("%s/brick", root);
	enum fault fault;
	int rc = begin(h, true, "remove a tree", &fault, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		const struct model_volume *v = &n->model->volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++)
			if (v->bricks[k].node == n && streq(v->bricks[k].path, path))
				sim_fail(sim_of(h), "%s %s is removed while it is a brick of %s",
					 n->name, root, v->name);
	}
	if (d)
		json_object_del(d->trees, root);
	return end(h, fault, 0, err);
}

static int record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	json_t *record = json_object_get(of(h)->node->records, name);

	if (of(h)->proc->dead)
		return error_set(err, ECANCELED, "the process is dead");
	if (!record)
		return error_set(err, ENOENT, "there is no record %s", name);
	*ret = json_deep_copy(record);
	return 0;
}

static int record_put(struct node_host *h, const char *name, const json_t *record,
		      struct error *err)
{
	enum fault fault;
	int rc = begin(h, true, "put a record", &fault, err);

	if (rc < 0)
		return rc;
	json_object_set_new(of(h)->node->records, name, json_deep_copy(record));
	return end(h, fault, 0, err);
}

static int record_remove(struct node_host *h, const char *name, struct error *err)
{
	enum fault fault;
	int rc = begin(h, true, "remove a record", &fault, err);

	if (rc < 0)
		return rc;
	json_object_del(of(h)->node->records, name);
	return end(h, fault, 0, err);
}

static int record_list(struct node_host *h, const char *prefix, struct strv *ret, struct error *err)
{
	const char *name;
	json_t *record;

	if (of(h)->proc->dead)
		return error_set(err, ECANCELED, "the process is dead");
	json_object_foreach (of(h)->node->records, name, record) {
		if (str_has_prefix(name, prefix))
			strv_add(ret, name);
	}
	return 0;
}

/* ---- quota ---------------------------------------------------------------------------------------- */

static void quota_support(struct node_host *h, const char *brick, struct quota_support *ret)
{
	*ret = (struct quota_support){ .reason = "NoKernelSupport",
				       .message = "this model enforces no quota" };
}

static int quota_set(struct node_host *h, const char *brick, const char *dir, int64_t bytes,
		     int64_t inodes, struct error *err)
{
	return error_set(err, EOPNOTSUPP, "this model enforces no quota");
}

static int quota_sweep(struct node_host *h, const char *brick, struct error *err)
{
	return 0;
}

static void host_free(struct node_host *h)
{
	if (of(h)->node->host == of(h))
		of(h)->node->host = NULL;
	free(h);
}

const struct node_host_ops model_host_ops = {
	.identity = host_identity,
	.probe_device = probe_device,
	.probe_directory = probe_directory,
	.find_device = find_device,
	.format = format,
	.mount = mount_device,
	.unmount = unmount,
	.wipe = wipe,
	.marker_read = marker_read,
	.marker_write = marker_write,
	.tree_remove = tree_remove,
	.record_get = record_get,
	.record_put = record_put,
	.record_remove = record_remove,
	.record_list = record_list,
	.glusterd_ensure = gluster_glusterd_ensure,
	.brick_usage = gluster_brick_usage,
	.peers = gluster_peers_get,
	.peer_probe = gluster_peer_probe,
	.peer_detach = gluster_peer_detach,
	.volume_get = gluster_volume_get,
	.volume_apply = gluster_volume_apply,
	.quota_support = quota_support,
	.quota_set = quota_set,
	.quota_sweep = quota_sweep,
	.free = host_free,
};

struct node_host *model_host_new(struct model_node *n, struct proc *p)
{
	struct model_host *h = xcalloc(1, sizeof(*h));

	h->host.ops = &model_host_ops;
	h->node = n;
	h->proc = p;
	n->host = h;
	return &h->host;
}
