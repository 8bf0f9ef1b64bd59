/* SPDX-License-Identifier: Apache-2.0 */
#include "nvme.h"

#include "base/mem.h"
#include "block/usage.h"
#include "core/journal.h"
#include "drivers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define FIRST_MS                                                                                   \
	5000 /* for a namespace to come by itself; then the controllers are asked to look */
#define FLUSH_MS 60000
#define GROWN_MS 10000

static int nvme_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	struct nvme_target t;
	int r = nvme_target_read(a, &t, err);

	if (r >= 0)
		r = text_format(&target, err, "NVMe %s", t.nqn);
	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

/* ---- the namespace -------------------------------------------------------------------------- */

struct arrival {
	const struct call *c;
	const struct nvme_target *target;
	char *disk;
};

static int has_arrived(void *arg)
{
	struct arrival *a = arg;
	int r = nvme_namespace_find(a->c, a->target->nqn, &a->target->want, a->disk);

	if (r <= 0)
		return r;
	return nvme_namespace_accessible(a->c, a->disk) && disk_is_ready(a->c, a->disk);
}

static int ask_to_look(const struct nvme_controller *n, void *userdata)
{
	const struct call *c = userdata;
	char path[80];

	snprintf(path, sizeof(path), "/sys/class/nvme/%s/rescan_controller", n->name);
	if (n->live)
		sys_write(c, path, "1", NULL);
	return 0;
}

/* The namespace has not come: why. */
static int explain_absence(const struct call *c, const struct nvme_target *t, struct error *err)
{
	char disk[DISK_NAME_MAX], state[32];
	const char *what = t->want.uuid ? "UUID" : t->want.nguid ? "NGUID" : "number";
	const char *which = t->want.uuid    ? t->want.uuid
			    : t->want.nguid ? t->want.nguid
					    : t->want.nsid;

	if (nvme_namespace_find(c, t->nqn, &t->want, disk) == 1)
		return error_set(err, ENOTCONN, "no path to /dev/%s can be used now", disk);
	if (nvme_namespace_path(c, t->nqn, &t->want, disk, state, sizeof(state)) == 1)
		return error_set(err, ENOTCONN,
				 "no path to the namespace of %.150s with %s %.60s can be used now "
				 "(the access state of %s is \"%s\"): give the portal of another "
				 "controller too, or change that at the storage",
				 t->nqn, what, which, disk, state);
	return error_set(err, ENOENT, "%.150s has no namespace with %s %.60s for this host", t->nqn,
			 what, which);
}

static int await_namespace(const struct call *c, struct watch *w, const struct nvme_target *t,
			   char disk[static DISK_NAME_MAX], struct error *err)
{
	struct arrival arrival = { .c = c, .target = t, .disk = disk };
	int r = watch_until(c, w, FIRST_MS, has_arrived, &arrival, err);

	if (r == -ETIMEDOUT && call_left(c, 0, NULL) > 0) {
		nvme_controllers_each(c, t->nqn, ask_to_look, (void *)c);
		r = watch_until(c, w, FIRST_MS, has_arrived, &arrival, err);
	}
	if (r >= 0)
		return 0;
	if (r != -ETIMEDOUT || call_left(c, 0, NULL) < 0)
		return r;
	return explain_absence(c, t, err);
}

struct question {
	const struct call *c;
	const char *disk;
	struct identity *live;
	struct error *err;
	int result;
};

/* A disk that has just come cannot be opened at once. */
static int has_answered(void *arg)
{
	struct question *q = arg;

	q->result = identity_of_nvme(q->c, q->disk, q->live, q->err);
	return q->result != -ENXIO;
}

static int check_identity(const struct call *c, struct attachment *a, struct watch *w,
			  const char *disk, struct error *err)
{
	const char *uuid = attachment_param(a, "volUuid"),
		   *nguid = attachment_param(a, "volumeNguid");
	struct identity live;
	struct question q = { .c = c, .disk = disk, .live = &live, .err = err };
	char where[64];
	int r = has_answered(&q);

	if (!r) {
		r = watch_open(c, w, err);
		if (r >= 0)
			r = watch_until(c, w, FIRST_MS, has_answered, &q, err);
	}
	if (r < 0 || q.result < 0)
		return q.result < 0 ? q.result : r;
	snprintf(where, sizeof(where), "/dev/%s", disk);
	if (uuid && nguid && !identity_is_called(&live, nguid))
		return error_set(err, ESTALE,
				 "%s has not the NGUID %.60s: another volume stands there", where,
				 nguid);
	return identity_check(a, where, &live, uuid ? uuid : nguid, err);
}

static int set_path(const struct call *c, struct attachment *a, const char *disk, struct error *err)
{
	struct disk d;
	char path[300], *copy;

	if (disk_read(c, disk, &d) < 0)
		return error_set(err, ENODEV, "/dev/%s went away", disk);
	disk_link(c, &d, path, sizeof(path));
	copy = strdup(path);
	if (!copy)
		return no_memory(err);
	free(a->path);
	a->path = copy;
	return attachment_set_detail(a, "device", d.path, err);
}

/* ---- operations ----------------------------------------------------------------------------- */

static int nvme_connect(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	char disk[DISK_NAME_MAX];
	struct nvme_target t;
	int r = nvme_target_read(a, &t, err);

	if (r >= 0)
		r = watch_open(c, &w, err);
	if (r >= 0)
		r = nvme_fabric_connect(c, a, &t, err);
	if (r >= 0)
		r = await_namespace(c, &w, &t, disk, err);
	if (r >= 0)
		r = check_identity(c, a, &w, disk, err);
	return r < 0 ? r : set_path(c, a, disk, err);
}

/* The namespace of a record: 1 and the disk, or 0. */
static int find(const struct call *c, struct attachment *a, struct nvme_target *t,
		char disk[static DISK_NAME_MAX], struct error *err)
{
	int r = nvme_target_read(a, t, err);

	if (r >= 0)
		r = nvme_namespace_find(c, t->nqn, &t->want, disk);
	return r;
}

static int nvme_verify(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	char disk[DISK_NAME_MAX];
	struct nvme_target t;
	int r = find(c, a, &t, disk, err);

	if (r < 0)
		return r;
	if (r == 0)
		return error_set(err, ENOENT,
				 "the namespace is not on this host any more (a reboot, or the "
				 "subsystem went away): connect it again");
	if (!nvme_namespace_accessible(c, disk))
		return error_set(err, ENOTCONN, "no path to /dev/%s can be used now", disk);
	r = check_identity(c, a, &w, disk, err);
	return r < 0 ? r : set_path(c, a, disk, err);
}

static int flush(const struct call *c, const struct disk *d, struct error *err)
{
	int r = call_left(c, FLUSH_MS, err);

	if (r < 0)
		return r;
	r = c->host->flush(c->host, d->path, r);
	return r < 0 ? error_errno(err, -r,
				   "what was written to %s cannot be brought to the storage (by "
				   "force it is given up)",
				   d->path)
		     : 0;
}

struct sharers {
	const struct call *c;
	const struct attachment *of;
	const char *disk;
	int count;
};

static int count_sharer(struct attachment *a, void *userdata)
{
	struct sharers *s = userdata;
	char disk[DISK_NAME_MAX];
	struct nvme_target t;

	s->count += attachment_has_consumer(a) && !streq(a->id, s->of->id) &&
		    streq(a->target, s->of->target) && find(s->c, a, &t, disk, NULL) == 1 &&
		    streq(disk, s->disk);
	return 0;
}

/* How many other records are of the same namespace: while there are, it is not looked at. */
static int count_sharers(const struct call *c, const struct attachment *a, const char *disk,
			 struct error *err)
{
	struct sharers s = { .c = c, .of = a, .disk = disk };
	int r = journal_each(c, count_sharer, &s, err);

	return r < 0 ? r : s.count;
}

static int nvme_disconnect(const struct call *c, struct attachment *a, bool force,
			   struct error *err)
{
	char disk[DISK_NAME_MAX] = "";
	struct nvme_target t;
	struct disk d;
	int r = find(c, a, &t, disk, err);

	if (r < 0)
		return r;
	if (r > 0 && disk_read(c, disk, &d) >= 0 && !force) {
		r = a->others ? count_sharers(c, a, disk, err) : 0;
		if (r != 0)
			return r < 0 ? r : 0;
		r = usage_refuse(c, &d, NULL, err);
		if (r >= 0 && a->state != STATE_CONNECTING)
			r = flush(c, &d, err);
		if (r < 0)
			return r;
	}
	return a->others ? 0 : nvme_fabric_disconnect(c, t.nqn, disk, force, err);
}

struct growth {
	const struct call *c;
	const char *disk;
	uint64_t size;
};

static int has_grown(void *arg)
{
	struct growth *g = arg;
	struct disk d;

	return disk_read(g->c, g->disk, &d) < 0 ? -ENODEV : d.size == g->size;
}

static int nvme_extend(const struct call *c, struct attachment *a, json_t *result,
		       struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct growth g = { .c = c };
	char disk[DISK_NAME_MAX];
	struct nvme_target t;
	struct disk before, after;
	int r = nvme_verify(c, a, err);

	if (r >= 0)
		r = watch_open(c, &w, err);
	if (r < 0)
		return r;
	if (find(c, a, &t, disk, err) != 1 || disk_read(c, disk, &before) < 0)
		return error_set(err, ENODEV, "the namespace went away");
	g.disk = disk;
	r = nvme_namespace_size(c, disk, &g.size, err);
	if (r < 0)
		return r;
	nvme_controllers_each(c, t.nqn, ask_to_look, (void *)c);
	r = watch_until(c, &w, GROWN_MS, has_grown, &g, err);
	if (disk_read(c, disk, &after) < 0)
		return error_set(err, ENODEV, "the namespace went away");
	if (json_object_set_new(result, "paths",
				json_pack("[{s:s, s:I, s:I}]", "device", after.path, "before",
					  (json_int_t)before.size, "after",
					  (json_int_t)after.size)) < 0 ||
	    json_object_set_new(result, "size", json_integer((json_int_t)after.size)) < 0)
		return no_memory(err);
	if (r == -ETIMEDOUT)
		return error_set(err, EIO,
				 "the subsystem says %" PRIu64 " bytes, the kernel still %" PRIu64,
				 g.size, after.size);
	return r < 0 ? r : 0;
}

static int nvme_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	cleanup_json json_t *users = NULL;
	char disk[DISK_NAME_MAX], step[NQN_MAX + 40];
	struct nvme_target t;
	struct disk d;
	int r = find(c, a, &t, disk, err);

	if (r < 0)
		return r;
	if (r > 0 && disk_read(c, disk, &d) >= 0) {
		r = usage_list(c, &d, NULL, &users, err);
		if (r < 0)
			return r;
		if (json_array_append_new(jget(result, "devices"), json_string(d.path)) < 0 ||
		    json_array_extend(jget(result, "usedBy"), users) < 0)
			return no_memory(err);
		snprintf(step, sizeof(step), "flush %s", d.path);
		if (json_array_append_new(jget(result, "steps"), json_string(step)) < 0)
			return no_memory(err);
	}
	if (a->others)
		return 0;
	snprintf(step, sizeof(step), "disconnect from %s", t.nqn);
	return json_array_append_new(jget(result, "steps"), json_string(step)) < 0 ? no_memory(err)
										   : 0;
}

/* A namespace has other names than a SCSI unit, of the same volume too. */
static const char *const nvme_keys[] = { "identity", NULL };

const struct driver driver_nvmeof = {
	.name = "NVMEOF",
	.aliases = (const char *const[]){ "NVME", "NVME_OF", NULL },
	.title = "NVMe over fabrics",
	.help = "A namespace of an NVMe subsystem over TCP, RDMA or Fibre Channel, on one or "
		"several "
		"paths (the kernel's own multipath). The last volume of a subsystem disconnects "
		"it; controllers that somebody else connected stay. "
		"As a CSI volume with a single writer it is reserved for its node (NVMe "
		"reservation); a target without "
		"that needs fencing: none.",
	.params = nvme_params,
	.identity = nvme_keys,
	.prepare = nvme_prepare,
	.connect = nvme_connect,
	.disconnect = nvme_disconnect,
	.verify = nvme_verify,
	.extend = nvme_extend,
	.plan = nvme_plan,
	.audit = nvme_fabric_audit,
};
