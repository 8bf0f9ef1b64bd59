/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/quantity.h"
#include "csi/volumes.h"
#include "operator/connection_class.h"
#include "operator/ledger.h"
#include "operator/op.h"

#include <errno.h>
#include <stdio.h>

/*
 * What the pools can still take, told to Kubernetes: a CSIStorageCapacity for each StorageClass
 * of ours, so that the scheduler places no pod whose claim (WaitForFirstConsumer) would find no
 * room. Every node reaches every pool, so one object stands for all nodes. It belongs to the
 * StorageStatus and goes with it. The scheduler takes a class without one for full: a class for
 * volumes that are not of pools has one too.
 */
#define SOON_MS 3000 /* after a change, so that many of them make one write */
#define AGAIN_MS 60000
#define LABEL_DRIVER "csi.storage.k8s.io/drivername"
#define LABEL_MANAGER "csi.storage.k8s.io/managed-by"

struct work {
	struct reconcile *r;
	struct operator* op;
	const json_t *status; /* StorageStatus: the owner */
	json_t *have; /* array: what is there */
	struct strv wanted; /* names of those that stay */
	int rc;
};

struct room {
	int64_t left, biggest; /* in all pools; the biggest volume that fits */
};

static bool room_of(struct work *w, const json_t *class, struct room *ret)
{
	const enum volume_kind *kind = class_kind(class);

	/* nobody here knows what is left elsewhere: as much as anybody asks for */
	if (class_is_connection(class)) {
		*ret = (struct room){ INT64_MAX, INT64_MAX };
		return true;
	}
	if (!class_is_ours(w->op, class) || !kind)
		return false;
	pool_room(w->r, NULL, &ret->left, &ret->biggest);
	return true;
}

/* ---- the object -------------------------------------------------------------------------------- */

static const char *name_for(const json_t *class, char buf[static CSI_NAME_MAX + 2])
{
	char hash[CSI_NAME_MAX];

	snprintf(buf, CSI_NAME_MAX + 2, "csisc%s", csi_volume_name(object_name(class), hash) + 3);
	return buf;
}

static json_t *sizes(const struct room *room)
{
	char left[QUANTITY_TEXT_MAX], biggest[QUANTITY_TEXT_MAX];

	return json_pack("{s:s, s:s}", "capacity", quantity_text(room->left, left),
			 "maximumVolumeSize", quantity_text(room->biggest, biggest));
}

static json_t *object_new(struct work *w, const json_t *class, const char *name,
			  const struct room *room)
{
	json_t *o = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s, s:s}, s:[o]}, s:{}, s:s}",
			      "apiVersion", "storage.k8s.io/v1", "kind", "CSIStorageCapacity",
			      "metadata", "name", name, "namespace", w->op->ns, "labels",
			      LABEL_DRIVER, QM_DRIVER, LABEL_MANAGER, "quartermaster",
			      QM_LABEL_DEPLOYMENT, w->op->deployment, "ownerReferences",
			      owner_reference(&KIND_STORAGESTATUS, w->status), "nodeTopology",
			      "storageClassName", object_name(class));
	cleanup_json json_t *more = sizes(room);

	json_object_update(o, more);
	return o;
}

/* Whether it is no longer about what is said: less than a thousandth is no news. */
static bool differs(const json_t *object, const char *field, int64_t bytes)
{
	const char *text = jstr(object, field);
	int64_t said = -1;

	if (!text || quantity_parse(text, &said, NULL) < 0)
		return true;
	int64_t off = said > bytes ? said - bytes : bytes - said;
	return off > said / 1024 || (bytes == 0 && said != 0);
}

static const json_t *find(const struct work *w, const char *name)
{
	size_t i;
	json_t *o;

	json_array_foreach (w->have, i, o)
		if (streq(object_name(o), name))
			return o;
	return NULL;
}

static int tell(struct work *w, const json_t *class, const struct room *room)
{
	char name[CSI_NAME_MAX + 2];
	const json_t *have = find(w, name_for(class, name));

	strv_add(&w->wanted, name);
	if (!have) {
		cleanup_json json_t *o = object_new(w, class, name, room);
		int rc = kube_create(w->r->kube, &KIND_CSISTORAGECAPACITY, o, NULL, &w->r->error);

		return rc == -EEXIST ? 0 : rc;
	}
	if (!differs(have, "capacity", room->left) &&
	    !differs(have, "maximumVolumeSize", room->biggest))
		return 0;
	return op_patch(w->r, &KIND_CSISTORAGECAPACITY, have, NULL, sizes(room), NULL);
}

static int each_class(const json_t *class, void *userdata)
{
	struct work *w = userdata;
	struct room room;

	if (!object_deleting(class) && room_of(w, class, &room))
		w->rc = tell(w, class, &room);
	return w->rc < 0;
}

static int remove_others(struct work *w)
{
	size_t i;
	json_t *o;

	json_array_foreach (w->have, i, o) {
		struct kube_delete_options options = { .uid = object_uid(o) };

		if (strv_contains(&w->wanted, object_name(o)))
			continue;
		int rc = kube_delete(w->r->kube, &KIND_CSISTORAGECAPACITY, w->op->ns,
				     object_name(o), &options, &w->r->error);
		if (rc < 0 && rc != -ENOENT)
			return rc;
	}
	return 0;
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static int write_all(struct work *w)
{
	cleanup_free char *labels = xasprintf(QM_LABEL_DEPLOYMENT "=%s", w->op->deployment);
	struct kube_selector ours = { .labels = labels };
	int rc = kube_list(w->r->kube, &KIND_CSISTORAGECAPACITY, w->op->ns, &ours, &w->have, NULL,
			   &w->r->error);

	if (rc == 0) {
		reader_each(w->r->cache, &KIND_STORAGECLASS, NULL, each_class, w);
		rc = w->rc;
	}
	return rc < 0 ? rc : remove_others(w);
}

static int capacity_reconcile(struct reconcile *r, const char *key)
{
	struct operator* op = op_of(r);
	int64_t epoch;

	if (op->binder || !op_leads(r, &epoch)) /* without a scheduler nobody reads it */
		return 0;
	int rc = ledger_load(op->ledger, r, epoch);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	cleanup_json json_t *status =
		reader_get(r->cache, &KIND_STORAGESTATUS, op->ns, op->deployment);
	r->again_ms = AGAIN_MS;
	if (!status || object_deleting(status))
		return 0;
	struct work w = { .r = r, .op = op, .status = status };
	rc = write_all(&w);
	json_decref(w.have);
	strv_done(&w.wanted);
	return rc;
}

void capacity_soon(struct reconcile *r)
{
	cleanup_free char *key = system_key(op_of(r));

	r->enqueue(r, "capacity", key, SOON_MS);
}

/* Not at once: pools report often. */
static void changed(const json_t *object, struct reconcile *r, struct strv *keys)
{
	capacity_soon(r);
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_STORAGECLASS, .keys = changed },
	{ .kind = &KIND_STORAGEPOOL, .keys = changed },
	{ .kind = &KIND_STORAGESTATUS, .keys = changed },
	{ 0 },
};

const struct controller CAPACITY_CONTROLLER = {
	.name = "capacity",
	.watches = watches,
	.workers = 1,
	.reconcile = capacity_reconcile,
};
