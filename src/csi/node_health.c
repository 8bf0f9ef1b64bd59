/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a volume that is staged here can be used: what hostvol, its device and its targets say; and whether the
 * storage of all of them answers this machine.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "csi/node_service.h"

#include <errno.h>
#include <stdio.h>

#define PROBLEMS_MAX 6
#define MESSAGE_MAX 128 /* bytes of a text, by the specification */
#define PROBE_MS 3000
#define ALL_MS 20000 /* for asking all storage */

static void add_entry(struct grpc_call *call, Csi__V1__VolumeHealth *health,
		      Csi__V1__VolumeHealthErrorType status, const char *reason,
		      const char *message)
{
	Csi__V1__VolumeHealth__VolumeHealthEntry *e =
		grpc_call_message(call, &csi__v1__volume_health__volume_health_entry__descriptor);
	char text[MESSAGE_MAX + 1];

	snprintf(text, sizeof(text), "%s", message);
	e->status = status;
	e->reason = grpc_call_strdup(call, reason);
	e->message = grpc_call_strdup(call, text);
	health->health_statuses[health->n_health_statuses++] = e;
}

static void add_problem(struct grpc_call *call, Csi__V1__VolumeHealth *health, const char *reason,
			const char *message)
{
	add_entry(call, health, CSI__V1__VOLUME_HEALTH_ERROR_TYPE__INACCESSIBLE, reason, message);
}

/* A copy that the volume's device is not written to, and why; it is used with the others. */
static void ask_copies(struct grpc_call *call, struct csi_node *n, const json_t *record,
		       Csi__V1__VolumeHealth *health)
{
	cleanup_free char *why = switches_problem(n, record);

	if (why)
		add_entry(call, health, CSI__V1__VOLUME_HEALTH_ERROR_TYPE__DEGRADED, "CopyMissed",
			  why);
}

/* A file system that could not be grown; it is used as it is. */
static void ask_growth(struct grpc_call *call, const struct csi_node *n, const json_t *record,
		       Csi__V1__VolumeHealth *health)
{
	cleanup_free char *why = ungrown_why(n, jstr(record, "consumer"));

	if (why)
		add_entry(call, health, CSI__V1__VOLUME_HEALTH_ERROR_TYPE__DEGRADED, "NotGrown",
			  why);
}

/* hostvol asks the storage, with a deadline. */
static int ask_hostvol(struct grpc_call *call, struct csi_node *n, const json_t *record,
		       Csi__V1__VolumeHealth *health, struct error *err)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *list = NULL;
	struct hostvol_error failed = { 0 };
	json_t *one;
	size_t i;
	int r = hostvol_list_json(n->h, jstr(record, "volumeId"), &text, &failed);

	if (r < 0)
		return from_hostvol(r, &failed, err);
	r = json_parse(text, strlen(text), &list, err);
	json_array_foreach (list, i, one)
		if (streq(jstr(one, "consumer"), jstr(record, "consumer")) &&
		    !streq(jstr(one, "health"), "ok"))
			add_problem(call, health, "NotConnected", jstr(one, "health"));
	return r;
}

static int ask_target(struct grpc_call *call, const struct csi_node *n, const char *path,
		      Csi__V1__VolumeHealth *health, struct error *err)
{
	cleanup_free char *target = NULL, *message = NULL;
	int r = *path ? path_of(n, "volume_publish_path", path, &target, err) : 0;

	if (r < 0 || !target)
		return r;
	r = bind_probe(target, STEP_MS);
	if (r < 0) {
		message = bind_is_dead(r) ? xstrdup("its client died: restart its pod")
					  : xasprintf("its mount does not answer: %s", strerror(-r));
		add_problem(call, health, "MountLost", message);
	}
	return 0;
}

static int look(struct grpc_call *call, struct csi_node *n, json_t *record, const char *path,
		Csi__V1__VolumeHealth *health, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	int r = ask_hostvol(call, n, record, health, err);

	if (r == 0)
		r = staged_look(record, &s, err);
	if (r == 0 && staged_loop(&s) == LOOP_LOST)
		add_problem(call, health, "DeviceLost",
			    "the client behind the volume's device died: restart its pods");
	if (r == 0)
		ask_copies(call, n, record, health);
	if (r == 0)
		ask_growth(call, n, record, health);
	return r < 0 ? r : ask_target(call, n, path, health, err);
}

int node_health(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__NodeGetVolumeHealthRequest *q = request;
	struct csi_node *n = grpc_call_userdata(call);
	Csi__V1__NodeGetVolumeHealthResponse *a = reply;
	Csi__V1__VolumeHealth *health =
		grpc_call_message(call, &csi__v1__volume_health__descriptor);
	cleanup_json json_t *records = NULL;
	cleanup_free char *staging = NULL;
	json_t *record = NULL, *one;
	size_t i;
	int r = check_volume_id(q->volume_id, false, err);

	if (r == 0 && *q->staging_target_path)
		r = path_of(n, "staging_target_path", q->staging_target_path, &staging, err);
	if (r == 0)
		r = staged_candidates(n, q->volume_id, &records, err);
	if (r < 0)
		return r;
	json_array_foreach (records, i, one)
		if (!record && record_is_of(one, q->volume_id) &&
		    (!staging || streq(jstr(one, "consumer"), staging)))
			record = one;
	if (!record)
		return error_set(err, ENOENT, "volume %s is not staged here", q->volume_id);
	health->volume_id = q->volume_id;
	health->health_statuses =
		grpc_call_alloc(call, PROBLEMS_MAX * sizeof(*health->health_statuses));
	a->volume_health = health;
	return look(call, n, record, q->volume_publish_path, health, err);
}

/* ---- the storage of all volumes --------------------------------------------------------------- */

/* Each file system that volumes here come from is asked once; those that do not answer. */
static int find_silent(struct csi_node *n, struct strv *asked, struct strv *silent,
		       struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + ALL_MS;
	cleanup_json json_t *records = NULL;
	json_t *record;
	size_t i;
	int r = records_find(n->h, NULL, NULL, &records, err);

	json_array_foreach (records, i, record) {
		const char *root = record_root(record), *source = jstr(record, "detail", "source");

		if (!root || !source || strv_contains(asked, root) ||
		    clock_mono_ms(&clock_real) > end)
			continue;
		strv_add(asked, root);
		if (bind_probe(root, PROBE_MS) < 0 && !strv_contains(silent, source))
			strv_add(silent, source);
	}
	return r;
}

/* The specification has one entry for all that is alike; its text names as many as it holds. */
int node_storage_health(struct grpc_call *call, const void *request, void *reply,
			struct error *err)
{
	Csi__V1__NodeGetStorageHealthResponse *a = reply;
	cleanup_with(strv_done) struct strv asked = { 0 }, silent = { 0 };
	Csi__V1__NodeGetStorageHealthResponse__StorageBackendHealth *e;
	char message[MESSAGE_MAX + 1];
	int r = find_silent(grpc_call_userdata(call), &asked, &silent, err);
	size_t length;

	if (r < 0 || !silent.count)
		return r;
	length = (size_t)snprintf(message, sizeof(message), "%zu of %zu do not answer:",
				  silent.count, asked.count);
	for (size_t i = 0; i < silent.count && length < sizeof(message); i++)
		length += (size_t)snprintf(message + length, sizeof(message) - length, " %s",
					   silent.items[i]);
	e = grpc_call_message(
		call,
		&csi__v1__node_get_storage_health_response__storage_backend_health__descriptor);
	e->status = CSI__V1__STORAGE_HEALTH_ERROR_TYPE__STORAGE_UNREACHABLE;
	e->reason = grpc_call_strdup(call, "StorageUnreachable");
	e->message = grpc_call_strdup(call, message);
	a->backend_health = grpc_call_alloc(call, sizeof(e));
	a->backend_health[a->n_backend_health++] = e;
	return 0;
}
