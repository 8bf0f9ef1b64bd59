/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/controller_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "csi/arguments.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

/* Making, removing, growing and changing a volume. */

#define WAITING_MAX 16 /* handlers that wait for copies, so that others still run */
#define WAIT_MAX_MS 300000 /* where the caller names no deadline */
#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 1000
#define ANSWER_MS 500 /* what is kept of the caller's time for the answer itself */

/* ---- waiting for what takes its time ----------------------------------------------------------- */

static int not_yet(const char *what, struct error *err)
{
	return error_set(err, EINPROGRESS, "%s is still being worked on; repeat the call", what);
}

static void pause_ms(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
	nanosleep(&t, NULL);
}

/* A worker tells nobody when it is done: it is asked again, ever less often. */
int controller_wait(struct grpc_call *call, struct copy_wait *w, const char *what,
		    struct error *err)
{
	struct csi_controller *c = controller_of(call);
	int64_t now = clock_mono_ms(&clock_real);

	if (!w->begun_ms) {
		w->begun_ms = now;
		w->pause_ms = PAUSE_FIRST_MS;
	}
	if (grpc_call_cancelled(call) || now - w->begun_ms >= WAIT_MAX_MS ||
	    grpc_call_left_ms(call) < w->pause_ms + ANSWER_MS)
		return not_yet(what, err);
	int others = atomic_fetch_add(&c->waiting, 1);
	if (others < WAITING_MAX)
		pause_ms(w->pause_ms);
	atomic_fetch_sub(&c->waiting, 1);
	if (others >= WAITING_MAX)
		return not_yet(what, err);
	w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
	return 0;
}

/* ---- making ------------------------------------------------------------------------------------ */

static int source_of(const Csi__V1__VolumeContentSource *source, const char **ret,
		     struct error *err)
{
	struct handle h;
	bool snapshot = false;
	const char *id;

	*ret = NULL;
	if (!source)
		return 0;
	if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT) {
		id = source->snapshot->snapshot_id;
		snapshot = true;
	} else if (source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME) {
		id = source->volume->volume_id;
	} else {
		return error_set(err, EINVAL,
				 "volume_content_source is neither a snapshot nor a volume");
	}
	int rc = argument_text(id, snapshot ? "snapshot_id" : "volume_id", err);
	if (rc == 0)
		rc = handle_parse(id, &h, err);
	if (rc == 0 && (h.kind == VOLUME_SNAPSHOT) != snapshot)
		rc = error_set(err, ENOENT, "\"%s\" is not the id of a %s", id,
			       snapshot ? "snapshot" : "volume");
	if (rc == 0)
		*ret = id;
	return rc;
}

static int request_of(struct grpc_call *call, const Csi__V1__CreateVolumeRequest *q,
		      struct volume_request *ret, struct error *err)
{
	struct parameter *parameters =
		grpc_call_alloc(call, (q->n_parameters + 1) * sizeof(*parameters));

	ret->name = q->name;
	int rc = argument_text(q->name, "name", err);
	if (rc == 0 && !q->n_volume_capabilities)
		rc = error_set(err, EINVAL, "volume_capabilities are missing");
	for (size_t i = 0; i < q->n_mutable_parameters && rc == 0; i++)
		rc = volume_attribute(q->mutable_parameters[i]->key,
				      q->mutable_parameters[i]->value, &ret->attributes, err);
	for (size_t i = 0; i < q->n_parameters; i++)
		parameters[i] =
			(struct parameter){ q->parameters[i]->key, q->parameters[i]->value };
	if (rc == 0)
		rc = argument_kind(q->volume_capabilities, q->n_volume_capabilities, parameters,
				   q->n_parameters, ret, err);
	if (rc == 0)
		rc = argument_capacity(q->capacity_range, &ret->bytes, &ret->limit, err);
	return rc < 0 ? rc : source_of(q->volume_content_source, &ret->source, err);
}

static int create(struct grpc_call *call, const struct volume_request *request,
		  struct volume_info *ret, struct error *err)
{
	struct volumes *v = controller_of(call)->volumes;
	struct copy_wait wait = { 0 };

	for (;;) {
		int rc = v->ops->create(v, request, ret, err);
		if (rc <= 0)
			return rc;
		cleanup_free char *what = xasprintf("the data of %s", request->name);
		rc = controller_wait(call, &wait, what, err);
		if (rc < 0)
			return rc;
	}
}

int controller_create_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err)
{
	struct csi_controller *c = controller_of(call);
	Csi__V1__CreateVolumeResponse *r = reply;
	struct volume_request wanted = { 0 };
	struct volume_info v cleanup_with(volume_info_done) = { 0 };
	char name[CSI_NAME_MAX];

	int rc = request_of(call, request, &wanted, err);
	if (rc == 0)
		rc = controller_begin(c, csi_volume_name(wanted.name, name), err);
	if (rc < 0)
		return rc;
	rc = create(call, &wanted, &v, err);
	controller_end(c, name);
	if (rc == 0)
		r->volume = controller_volume(call, &v);
	return rc;
}

/* ---- removing ---------------------------------------------------------------------------------- */

static int remove_volume(struct grpc_call *call, const struct handle *id, struct error *err)
{
	struct volumes *v = controller_of(call)->volumes;
	cleanup_free char *what = xasprintf("the removal of %s", id->name);
	struct copy_wait wait = { 0 };
	int rc;

	while ((rc = v->ops->remove(v, id, err)) > 0) {
		rc = controller_wait(call, &wait, what, err);
		if (rc < 0)
			break;
	}
	return rc;
}

int controller_delete_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err)
{
	const Csi__V1__DeleteVolumeRequest *q = request;
	struct csi_controller *c = controller_of(call);
	struct handle h;

	int rc = argument_text(q->volume_id, "volume_id", err);
	if (rc < 0)
		return rc;
	if (handle_parse(q->volume_id, &h, NULL) < 0 || h.kind == VOLUME_SNAPSHOT)
		return 0; /* no volume has such an id, so it is gone */
	rc = controller_begin(c, h.name, err);
	if (rc < 0)
		return rc;
	rc = remove_volume(call, &h, err);
	controller_end(c, h.name);
	return rc;
}

/* ---- growing ----------------------------------------------------------------------------------- */

int controller_expand_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err)
{
	const Csi__V1__ControllerExpandVolumeRequest *q = request;
	Csi__V1__ControllerExpandVolumeResponse *r = reply;
	struct csi_controller *c = controller_of(call);
	struct handle h;
	int64_t bytes = 0, limit = 0;

	int rc = argument_text(q->volume_id, "volume_id", err);
	if (rc == 0 && !q->capacity_range)
		rc = error_set(err, EINVAL, "capacity_range is missing");
	if (rc == 0)
		rc = argument_capacity(q->capacity_range, &bytes, &limit, err);
	if (rc == 0)
		rc = handle_parse(q->volume_id, &h, err);
	if (rc == 0 && q->volume_capability)
		rc = argument_capability(h.kind, q->volume_capability, err);
	if (rc == 0)
		rc = controller_begin(c, h.name, err);
	if (rc < 0)
		return rc;
	rc = c->volumes->ops->expand(c->volumes, &h, bytes, limit, &r->capacity_bytes, err);
	controller_end(c, h.name);
	/* what lies on a device grows where it is mounted */
	r->node_expansion_required = h.kind == VOLUME_FILE || h.kind == VOLUME_BLOCK;
	return rc;
}

/* ---- changing ---------------------------------------------------------------------------------- */

int controller_modify_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err)
{
	const Csi__V1__ControllerModifyVolumeRequest *q = request;
	struct csi_controller *c = controller_of(call);
	struct volume_attributes attributes = { 0 };
	struct handle h;

	int rc = argument_text(q->volume_id, "volume_id", err);
	for (size_t i = 0; i < q->n_mutable_parameters && rc == 0; i++)
		rc = volume_attribute(q->mutable_parameters[i]->key,
				      q->mutable_parameters[i]->value, &attributes, err);
	if (rc == 0)
		rc = handle_parse(q->volume_id, &h, err);
	if (rc == 0)
		rc = controller_begin(c, h.name, err);
	if (rc < 0)
		return rc;
	rc = c->volumes->ops->modify(c->volumes, &h, &attributes, err);
	controller_end(c, h.name);
	return rc;
}
