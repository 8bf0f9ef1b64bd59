/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/controller_internal.h"

#include "base/mem.h"
#include "csi/arguments.h"

#include <errno.h>

#define MOMENT_MS 100 /* the longest pause; 20, 40, 80 before it */

static Csi__V1__Snapshot *message_of(struct grpc_call *call, const struct snapshot_info *s)
{
	Csi__V1__Snapshot *m = MESSAGE(call, snapshot);

	m->snapshot_id = grpc_call_strdup(call, s->id);
	m->source_volume_id = grpc_call_strdup(call, s->source);
	m->size_bytes = s->bytes;
	m->ready_to_use = s->ready;
	m->creation_time = MESSAGE(call, timestamp);
	m->creation_time->seconds = s->created_ms / 1000;
	m->creation_time->nanos = (int32_t)(s->created_ms % 1000 * 1000000);
	return m;
}

static int check_parameters(const Csi__V1__CreateSnapshotRequest *q, struct error *err)
{
	for (size_t i = 0; i < q->n_parameters; i++)
		if (!strchr(q->parameters[i]->key, '/'))
			return error_set(err, EINVAL,
					 "snapshots have no parameter \"%.64s\"; leave it out",
					 q->parameters[i]->key);
	return 0;
}

/*
 * A small one is ready in a moment: worth waiting for, since who asked comes again only after seconds.
 * One that takes longer is answered as it is.
 */
static int take(struct grpc_call *call, const char *name, const struct handle *source,
		struct snapshot_info *ret, struct error *err)
{
	struct volumes *v = controller_of(call)->volumes;
	struct copy_wait wait = { 0 };

	for (;;) {
		int rc = v->ops->snapshot(v, name, source, ret, err);
		if (rc < 0 || ret->ready || wait.pause_ms > MOMENT_MS)
			return rc;
		if (controller_wait(call, &wait, name, NULL) < 0)
			return 0;
		snapshot_info_done(ret);
	}
}

int controller_create_snapshot(struct grpc_call *call, const void *request, void *reply,
			       struct error *err)
{
	const Csi__V1__CreateSnapshotRequest *q = request;
	Csi__V1__CreateSnapshotResponse *r = reply;
	struct csi_controller *c = controller_of(call);
	struct snapshot_info s cleanup_with(snapshot_info_done) = { 0 };
	struct handle source;
	char name[CSI_NAME_MAX];

	int rc = argument_text(q->name, "name", err);
	if (rc == 0)
		rc = argument_text(q->source_volume_id, "source_volume_id", err);
	if (rc == 0)
		rc = check_parameters(q, err);
	if (rc == 0)
		rc = handle_parse(q->source_volume_id, &source, err);
	if (rc == 0 && source.kind == VOLUME_SNAPSHOT)
		rc = error_set(err, ENOENT, "\"%s\" is not the id of a volume",
			       q->source_volume_id);
	if (rc < 0)
		return rc;
	cleanup_free char *held = xasprintf("snapshot %s", csi_volume_name(q->name, name));
	rc = controller_begin(c, held, err);
	if (rc < 0)
		return rc;
	rc = take(call, q->name, &source, &s, err);
	controller_end(c, held);
	if (rc == 0)
		r->snapshot = message_of(call, &s);
	return rc;
}

int controller_delete_snapshot(struct grpc_call *call, const void *request, void *reply,
			       struct error *err)
{
	const Csi__V1__DeleteSnapshotRequest *q = request;
	struct csi_controller *c = controller_of(call);
	struct handle h;

	int rc = argument_text(q->snapshot_id, "snapshot_id", err);
	if (rc < 0)
		return rc;
	if (handle_parse(q->snapshot_id, &h, NULL) < 0 || h.kind != VOLUME_SNAPSHOT)
		return 0;
	cleanup_free char *held = xasprintf("snapshot %s", h.name);
	rc = controller_begin(c, held, err);
	if (rc < 0)
		return rc;
	rc = c->volumes->ops->snapshot_remove(c->volumes, &h, err);
	controller_end(c, held);
	return rc;
}

static int find(struct volumes *v, const char *id, struct snapshot_info *ret, struct error *err)
{
	struct handle h;
	int rc = handle_parse(id, &h, err);
	if (rc == 0 && h.kind != VOLUME_SNAPSHOT)
		rc = error_set(err, ENOENT, "\"%s\" is not the id of a snapshot", id);
	return rc < 0 ? rc : v->ops->snapshot_find(v, &h, ret, err);
}

int controller_get_snapshot(struct grpc_call *call, const void *request, void *reply,
			    struct error *err)
{
	const Csi__V1__GetSnapshotRequest *q = request;
	Csi__V1__GetSnapshotResponse *r = reply;
	struct volumes *v = controller_of(call)->volumes;
	struct snapshot_info s cleanup_with(snapshot_info_done) = { 0 };

	int rc = argument_text(q->snapshot_id, "snapshot_id", err);
	if (rc == 0)
		rc = v->ops->ready(v, err);
	if (rc == 0)
		rc = find(v, q->snapshot_id, &s, err);
	if (rc == 0)
		r->snapshot = message_of(call, &s);
	return rc;
}

static void add_entry(struct grpc_call *call, Csi__V1__ListSnapshotsResponse *r,
		      const struct snapshot_info *s)
{
	Csi__V1__ListSnapshotsResponse__Entry *e = MESSAGE(call, list_snapshots_response__entry);
	e->snapshot = message_of(call, s);
	r->entries[r->n_entries++] = e;
}

/* Of one snapshot: one that is not there is no error, but an empty list. */
static int list_one(struct grpc_call *call, const Csi__V1__ListSnapshotsRequest *q,
		    Csi__V1__ListSnapshotsResponse *r, struct error *err)
{
	struct snapshot_info s cleanup_with(snapshot_info_done) = { 0 };
	int rc = find(controller_of(call)->volumes, q->snapshot_id, &s, err);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	r->entries = grpc_call_alloc(call, sizeof(*r->entries));
	if (!*q->source_volume_id || streq(q->source_volume_id, s.source))
		add_entry(call, r, &s);
	return 0;
}

int controller_list_snapshots(struct grpc_call *call, const void *request, void *reply,
			      struct error *err)
{
	const Csi__V1__ListSnapshotsRequest *q = request;
	Csi__V1__ListSnapshotsResponse *r = reply;
	struct volumes *v = controller_of(call)->volumes;
	struct snapshot_list list cleanup_with(snapshot_list_done) = { 0 };
	struct handle after;
	size_t max = 0;
	bool first = !*q->starting_token;

	int rc = controller_page(q->max_entries, &max, err);
	if (rc == 0 && !first)
		rc = controller_token(q->starting_token, &after, err);
	if (rc == 0)
		rc = v->ops->ready(v, err);
	if (rc < 0)
		return rc;
	if (*q->snapshot_id)
		return list_one(call, q, r, err);
	rc = v->ops->snapshots(v, *q->source_volume_id ? q->source_volume_id : NULL,
			       first ? NULL : &after, max, &list, err);
	if (rc < 0)
		return rc;
	r->entries = grpc_call_alloc(call, (list.count + 1) * sizeof(*r->entries));
	for (size_t i = 0; i < list.count; i++)
		add_entry(call, r, &list.items[i]);
	if (list.more && list.count)
		r->next_token = grpc_call_strdup(call, list.items[list.count - 1].id);
	return 0;
}
