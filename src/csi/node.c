/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/node.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/host.h"
#include "csi/identity.h"
#include "csi/node_service.h"
#include "csi/registration.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DEADLINE_MS 60000 /* of what hostvol does in one call */

/* ---- what it says of itself ------------------------------------------------------------------- */

static const Csi__V1__PluginCapability__Service__Type services[] = {
	CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE,
	CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__UNKNOWN,
};

static const struct csi_identity identity = {
	.services = services,
	.expansion = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE,
};

static int get_info(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const struct csi_node *n = grpc_call_userdata(call);
	Csi__V1__NodeGetInfoResponse *r = reply;

	r->node_id = n->node_id;
	r->max_volumes_per_node = n->max_volumes;
	return 0;
}

static int get_capabilities(struct grpc_call *call, const void *request, void *reply,
			    struct error *err)
{
	static const Csi__V1__NodeServiceCapability__RPC__Type types[] = {
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__STAGE_UNSTAGE_VOLUME,
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME_STATS,
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__EXPAND_VOLUME,
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__SINGLE_NODE_MULTI_WRITER,
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_VOLUME_HEALTH,
		CSI__V1__NODE_SERVICE_CAPABILITY__RPC__TYPE__GET_STORAGE_HEALTH,
	};
	Csi__V1__NodeGetCapabilitiesResponse *r = reply;

	r->capabilities = grpc_call_alloc(call, ARRAY_SIZE(types) * sizeof(*r->capabilities));
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		Csi__V1__NodeServiceCapability *c =
			grpc_call_message(call, &csi__v1__node_service_capability__descriptor);

		c->type_case = CSI__V1__NODE_SERVICE_CAPABILITY__TYPE_RPC;
		c->rpc =
			grpc_call_message(call, &csi__v1__node_service_capability__rpc__descriptor);
		c->rpc->type = types[i];
		r->capabilities[r->n_capabilities++] = c;
	}
	return 0;
}

static const struct grpc_method methods[] = {
	{ "NodeGetInfo", get_info },
	{ "NodeGetCapabilities", get_capabilities },
	{ "NodeStageVolume", node_stage },
	{ "NodeUnstageVolume", node_unstage },
	{ "NodePublishVolume", node_publish },
	{ "NodeUnpublishVolume", node_unpublish },
	{ "NodeGetVolumeStats", node_stats },
	{ "NodeExpandVolume", node_expand },
	{ "NodeGetVolumeHealth", node_health },
	{ "NodeGetStorageHealth", node_storage_health },
	{ 0 },
};

/* ---- its life --------------------------------------------------------------------------------- */

static void log_hostvol(enum hostvol_log_level level, const char *message, void *userdata)
{
	if (level >= HOSTVOL_LOG_WARNING)
		log_warn("%s", message);
	else if (level == HOSTVOL_LOG_INFO)
		log_info("%s", message);
}

static int open_hostvol(const char *state, const char *run, const struct hostvol_host *host,
			struct hostvol **ret, struct error *err)
{
	struct hostvol_error failed = { 0 };
	int r = hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = state,
							.run_dir = run,
							.deadline_ms = DEADLINE_MS,
							.log = log_hostvol,
							.host = host },
			     ret, &failed);

	return from_hostvol(r, &failed, err);
}

static int find_base(struct csi_node *n, const char *kubelet_dir, struct error *err)
{
	if (!path_is_clean(kubelet_dir))
		return error_set(err, EINVAL, "\"%s\" is not a clean absolute path", kubelet_dir);
	n->typed_base = xstrdup(kubelet_dir);
	n->base = realpath(kubelet_dir, NULL);
	return n->base ? 0
		       : error_errno(err, errno, "cannot find kubelet's directory %s", kubelet_dir);
}

static int make_endpoint_dir(const char *endpoint, struct error *err)
{
	cleanup_free char *dir = xstrdup(endpoint);
	char *slash = strrchr(dir, '/');

	if (!path_is_clean(endpoint) || slash == dir)
		return error_set(err, EINVAL, "the endpoint %s is not a clean absolute path",
				 endpoint);
	*slash = '\0';
	return mkdir_parents(dir, 0750, err);
}

static int serve(struct csi_node *n, const struct csi_node_options *o, struct error *err)
{
	struct grpc_service all[] = {
		{ &csi__v1__identity__descriptor, csi_identity_methods, (void *)&identity },
		{ &csi__v1__node__descriptor, methods, n },
		{ 0 },
	};
	int r = make_endpoint_dir(o->endpoint, err);

	if (r == 0)
		r = grpc_server_start(&(struct grpc_listen){ .unix_path = o->endpoint }, all,
				      &n->server, err);
	/* kubelet calls as soon as it sees the other socket */
	if (r == 0 && o->registration)
		r = registration_start(o->kubelet_dir, o->endpoint, &n->registration, err);
	return r;
}

int csi_node_start(const struct csi_node_options *o, struct csi_node **ret, struct error *err)
{
	struct csi_node *n = xcalloc(1, sizeof(*n));
	int r = 0;

	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->wake, NULL);
	n->node_id = xstrdup(o->node_id);
	n->endpoint = xstrdup(o->endpoint);
	n->pools_dir = o->pools_dir ? xstrdup(o->pools_dir) : NULL;
	n->max_volumes = o->max_volumes;
	n->published = xasprintf("%s/published", o->run_dir);
	n->read_only = xasprintf("%s/readonly", o->run_dir);
	n->ungrown = xasprintf("%s/ungrown", o->run_dir);
	n->tell = o->tell;
	n->tell_userdata = o->tell_userdata;
	n->host = o->host ? o->host : &host_real;
	if (!*o->node_id || strlen(o->node_id) > 192)
		r = error_set(err, EINVAL, "the node's id must have 1 to 192 bytes");
	if (r == 0 && !o->any_target)
		r = find_base(n, o->kubelet_dir, err);
	if (r == 0)
		r = open_hostvol(o->state_dir, o->run_dir, o->host, &n->h, err);
	if (r == 0)
		r = fences_start(n, o->lapse_s, err);
	if (r == 0)
		r = switches_start(n, err);
	if (r == 0)
		r = serve(n, o, err);
	if (r < 0) {
		csi_node_free(n);
		return r;
	}
	ephemeral_sweep_start(n);
	*ret = n;
	return 0;
}

void csi_node_free(struct csi_node *n)
{
	if (!n)
		return;
	registration_free(n->registration);
	if (n->server)
		(void)unlink(n->endpoint);
	grpc_server_free(n->server);
	ephemeral_sweep_end(n);
	switches_end(n);
	fences_end(n);
	hostvol_close(n->h);
	strv_done(&n->busy);
	pthread_cond_destroy(&n->wake);
	pthread_mutex_destroy(&n->lock);
	free(n->node_id);
	free(n->endpoint);
	free(n->published);
	free(n->read_only);
	free(n->ungrown);
	free(n->base);
	free(n->typed_base);
	free(n->pools_dir);
	free(n);
}

bool csi_node_refused(const struct csi_node *n)
{
	return registration_refused(n->registration);
}

/* ---- the end of an instance ------------------------------------------------------------------- */

/*
 * Whether the file system on the staging path is the record's: a person may have unmounted ours there, and mounted another.
 * One whose device is gone from this machine is no other's.
 */
static bool is_staged_fs(const struct staged *s)
{
	const char *path = jstr(s->record, "path"), *root = record_root(s->record);
	cleanup_free char *device = device_node(s->major, s->minor);
	struct staged_loop l;
	struct stat st;

	staged_find_loop(s, &l);
	if (s->major == LOOP_MAJOR || l.is_linear)
		if (root && loop_was_on(l.number, root, record_sub(s->record)))
			return true;
	if (!s->major || jstr(s->record, "detail", "mountPoint"))
		return false;
	if (path && stat(path, &st) == 0)
		return S_ISBLK(st.st_mode) && st.st_rdev == makedev(s->major, s->minor);
	return !device;
}

static int release(json_t *record, bool force, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	const char *consumer = jstr(record, "consumer");
	int r;

	if (!consumer || consumer[0] != '/')
		return 0;
	r = staged_look(record, &s, err);
	if (r == 0 && s.shape == SHAPE_FILESYSTEM && !is_staged_fs(&s))
		return 0;
	while (r == 0) {
		cleanup_free char *place = NULL;

		r = staged_elsewhere(&s, "", &place, err);
		if (r <= 0)
			break;
		r = take_away(place, force, STEP_MS, err);
	}
	return r < 0 ? r : stage_remove(&s, force, err);
}

int csi_node_release_all(const char *state_dir, const char *run_dir, bool force, struct error *err)
{
	cleanup_json json_t *records = NULL;
	struct hostvol *h = NULL;
	json_t *record;
	size_t i;
	int r = open_hostvol(state_dir, run_dir, NULL, &h, err);

	if (r == 0)
		r = records_find(h, NULL, NULL, &records, err);
	json_array_foreach (records, i, record)
		if (r == 0)
			r = release(record, force, err);
	hostvol_close(h);
	return r;
}
