/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/controller_internal.h"

#include "base/mem.h"
#include "csi/arguments.h"

#include <errno.h>

/* ---- one call for each volume ------------------------------------------------------------------ */

static size_t held_at(const struct csi_controller *c, const char *what)
{
	size_t i = 0;
	while (i < c->held_count && !streq(c->held[i], what))
		i++;
	return i;
}

int controller_begin(struct csi_controller *c, const char *what, struct error *err)
{
	int rc = c->volumes->ops->ready(c->volumes, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&c->lock);
	if (held_at(c, what) < c->held_count) {
		rc = error_set(err, EINPROGRESS,
			       "another call works on %s; repeat this one when it has ended", what);
	} else {
		c->held = xrealloc(c->held, (c->held_count + 1) * sizeof(*c->held));
		c->held[c->held_count++] = xstrdup(what);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void controller_end(struct csi_controller *c, const char *what)
{
	pthread_mutex_lock(&c->lock);
	size_t at = held_at(c, what);
	free(c->held[at]);
	c->held[at] = c->held[--c->held_count];
	pthread_mutex_unlock(&c->lock);
}

/* ---- capabilities ------------------------------------------------------------------------------ */

#define CAN(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name
static const Csi__V1__ControllerServiceCapability__RPC__Type capabilities[] = {
	CAN(CREATE_DELETE_VOLUME),   CAN(LIST_VOLUMES),	     CAN(GET_CAPACITY),
	CAN(CREATE_DELETE_SNAPSHOT), CAN(LIST_SNAPSHOTS),    CAN(CLONE_VOLUME),
	CAN(EXPAND_VOLUME),	     CAN(GET_VOLUME),	     CAN(SINGLE_NODE_MULTI_WRITER),
	CAN(GET_SNAPSHOT),	     CAN(GET_VOLUME_HEALTH), CAN(LIST_VOLUME_HEALTH),
	CAN(MODIFY_VOLUME),
};

static int get_capabilities(struct grpc_call *call, const void *request, void *reply,
			    struct error *err)
{
	Csi__V1__ControllerGetCapabilitiesResponse *r = reply;

	r->capabilities = grpc_call_alloc(call, sizeof(capabilities) / sizeof(capabilities[0]) *
							sizeof(*r->capabilities));
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		Csi__V1__ControllerServiceCapability *c =
			MESSAGE(call, controller_service_capability);
		c->type_case = CSI__V1__CONTROLLER_SERVICE_CAPABILITY__TYPE_RPC;
		c->rpc = MESSAGE(call, controller_service_capability__rpc);
		c->rpc->type = capabilities[i];
		r->capabilities[r->n_capabilities++] = c;
	}
	return 0;
}

/* ---- looking ----------------------------------------------------------------------------------- */

static void add_context(struct grpc_call *call, const json_t *context, Csi__V1__Volume *m)
{
	const char *key;
	json_t *value;

	m->volume_context =
		grpc_call_alloc(call, json_object_size(context) * sizeof(*m->volume_context));
	json_object_foreach ((json_t *)context, key, value) {
		Csi__V1__Volume__VolumeContextEntry *e =
			MESSAGE(call, volume__volume_context_entry);
		e->key = grpc_call_strdup(call, key);
		e->value = grpc_call_strdup(call,
					    json_is_string(value) ? json_string_value(value) : "");
		m->volume_context[m->n_volume_context++] = e;
	}
}

static Csi__V1__VolumeContentSource *content_source(struct grpc_call *call, const char *id)
{
	Csi__V1__VolumeContentSource *m = MESSAGE(call, volume_content_source);
	struct handle h;

	if (handle_parse(id, &h, NULL) == 0 && h.kind == VOLUME_SNAPSHOT) {
		m->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
		m->snapshot = MESSAGE(call, volume_content_source__snapshot_source);
		m->snapshot->snapshot_id = grpc_call_strdup(call, id);
	} else {
		m->type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
		m->volume = MESSAGE(call, volume_content_source__volume_source);
		m->volume->volume_id = grpc_call_strdup(call, id);
	}
	return m;
}

Csi__V1__Volume *controller_volume(struct grpc_call *call, const struct volume_info *v)
{
	Csi__V1__Volume *m = MESSAGE(call, volume);

	m->volume_id = grpc_call_strdup(call, v->id);
	m->capacity_bytes = v->bytes;
	add_context(call, v->context, m);
	if (v->source)
		m->content_source = content_source(call, v->source);
	return m;
}

static int find(struct grpc_call *call, const char *id, struct volume_info *ret, struct error *err)
{
	struct volumes *v = controller_of(call)->volumes;
	struct handle h;
	int rc = argument_text(id, "volume_id", err);
	if (rc == 0)
		rc = v->ops->ready(v, err);
	if (rc == 0)
		rc = handle_parse(id, &h, err);
	return rc < 0 ? rc : v->ops->find(v, &h, ret, err);
}

static int get_volume(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__ControllerGetVolumeRequest *q = request;
	Csi__V1__ControllerGetVolumeResponse *r = reply;
	struct volume_info v cleanup_with(volume_info_done) = { 0 };
	int rc = find(call, q->volume_id, &v, err);
	if (rc < 0)
		return rc;
	r->volume = controller_volume(call, &v);
	r->status = MESSAGE(call, controller_get_volume_response__volume_status);
	return 0;
}

/* What cannot be is no error here, but an answer without "confirmed". */
static int validate(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__ValidateVolumeCapabilitiesRequest *q = request;
	Csi__V1__ValidateVolumeCapabilitiesResponse *r = reply;
	struct volume_info v cleanup_with(volume_info_done) = { 0 };
	struct error why = ERROR_INIT;

	int rc = argument_text(q->volume_id, "volume_id", err);
	if (rc == 0 && !q->n_volume_capabilities)
		rc = error_set(err, EINVAL, "volume_capabilities are missing");
	if (rc == 0)
		rc = find(call, q->volume_id, &v, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < q->n_volume_capabilities; i++)
		if (argument_capability(v.kind, q->volume_capabilities[i], &why) < 0) {
			r->message = grpc_call_strdup(call, why.message);
			return 0;
		}
	/* the request lives as long as the answer does */
	r->confirmed = MESSAGE(call, validate_volume_capabilities_response__confirmed);
	r->confirmed->n_volume_capabilities = q->n_volume_capabilities;
	r->confirmed->volume_capabilities = q->volume_capabilities;
	r->confirmed->n_volume_context = q->n_volume_context;
	r->confirmed->volume_context = (void *)q->volume_context;
	r->confirmed->n_parameters = q->n_parameters;
	r->confirmed->parameters = (void *)q->parameters;
	return 0;
}

static int get_capacity(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__GetCapacityRequest *q = request;
	Csi__V1__GetCapacityResponse *r = reply;
	struct volumes *v = controller_of(call)->volumes;
	struct volume_request wanted = { 0 };
	int64_t biggest;

	struct parameter *parameters =
		grpc_call_alloc(call, (q->n_parameters + 1) * sizeof(*parameters));
	for (size_t i = 0; i < q->n_parameters; i++)
		parameters[i] =
			(struct parameter){ q->parameters[i]->key, q->parameters[i]->value };
	int rc = argument_kind(q->volume_capabilities, q->n_volume_capabilities, parameters,
			       q->n_parameters, &wanted, err);
	if (rc == 0)
		rc = v->ops->ready(v, err);
	if (rc == 0)
		rc = v->ops->capacity(v, wanted.pool, wanted.kind, &r->available_capacity, &biggest,
				      err);
	if (rc < 0)
		return rc;
	r->maximum_volume_size = MESSAGE(call, int64_value);
	r->maximum_volume_size->value = biggest;
	return 0;
}

Csi__V1__VolumeHealth *controller_health(struct grpc_call *call, const struct volume_info *v)
{
	Csi__V1__VolumeHealth *m = MESSAGE(call, volume_health);

	m->volume_id = grpc_call_strdup(call, v->id);
	if (!v->health)
		return m;
	Csi__V1__VolumeHealth__VolumeHealthEntry *e =
		MESSAGE(call, volume_health__volume_health_entry);
	e->status = streq(v->health, "Degraded") ? CSI__V1__VOLUME_HEALTH_ERROR_TYPE__DEGRADED
						 : CSI__V1__VOLUME_HEALTH_ERROR_TYPE__INACCESSIBLE;
	e->reason = grpc_call_strdup(call, v->health);
	e->message = grpc_call_strdup(call, v->message ? v->message : "");
	m->health_statuses = grpc_call_alloc(call, sizeof(e));
	m->health_statuses[m->n_health_statuses++] = e;
	return m;
}

static int get_health(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__ControllerGetVolumeHealthRequest *q = request;
	Csi__V1__ControllerGetVolumeHealthResponse *r = reply;
	struct volume_info v cleanup_with(volume_info_done) = { 0 };
	int rc = find(call, q->volume_id, &v, err);
	if (rc == 0)
		r->volume_health = controller_health(call, &v);
	return rc;
}

/* ---- the service ------------------------------------------------------------------------------- */

static const struct grpc_method methods[] = {
	{ "ControllerGetCapabilities", get_capabilities },
	{ "CreateVolume", controller_create_volume },
	{ "DeleteVolume", controller_delete_volume },
	{ "ValidateVolumeCapabilities", validate },
	{ "ListVolumes", controller_list_volumes },
	{ "GetCapacity", get_capacity },
	{ "CreateSnapshot", controller_create_snapshot },
	{ "DeleteSnapshot", controller_delete_snapshot },
	{ "ListSnapshots", controller_list_snapshots },
	{ "GetSnapshot", controller_get_snapshot },
	{ "ControllerExpandVolume", controller_expand_volume },
	{ "ControllerModifyVolume", controller_modify_volume },
	{ "ControllerGetVolume", get_volume },
	{ "ControllerGetVolumeHealth", get_health },
	{ "ControllerListVolumeHealth", controller_list_health },
	{ 0 },
};

struct csi_controller *csi_controller_new(struct volumes *volumes)
{
	struct csi_controller *c = xcalloc(1, sizeof(*c));
	c->volumes = volumes;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void csi_controller_free(struct csi_controller *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c->held);
	free(c);
}

struct grpc_service csi_controller_service(struct csi_controller *c)
{
	return (struct grpc_service){ &csi__v1__controller__descriptor, methods, c };
}
