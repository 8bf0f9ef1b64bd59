/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "csi/arguments.h"
#include "csi/node_args.h"
#include "grpc/decode.h"

#include <sys/mount.h>

/*
 * A request of CSI, of the type that the first byte chooses, decoded and its arguments checked as
 * the controller and the node service do before they touch anything. Whatever passes keeps what
 * the rest relies on: ids and paths that lead nowhere else, sizes within their range, a connection that is JSON.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE "/var/lib/kubelet"
#define CONSUMER BASE "/stage"

static void need(bool holds)
{
	if (!holds)
		abort();
}

static void check_id(const char *id)
{
	struct handle h;

	if (handle_parse(id, &h, NULL) == 0) {
		cleanup_free char *again = handle_format(h.pool, h.kind, h.name);

		need(streq(again, id) && *h.pool && *h.name);
		need(!strpbrk(h.pool, "/.") && !strpbrk(h.name, "/."));
		need(check_volume_id(id, true, NULL) == 0);
	}
	if (check_volume_id(id, false, NULL) == 0)
		need(*id && strlen(id) <= VOLUME_ID_MAX && !strchr(id, '/') && !strstr(id, ".."));
}

static void check_path(const char *path)
{
	if (check_target_path("target_path", path, BASE, NULL) < 0)
		return;
	need(strncmp(path, BASE "/", strlen(BASE "/")) == 0);
	need(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
	const char *last = strrchr(path, '/') + 1;
	need(*last && !streq(last, ".") && !streq(last, ".."));
}

static void check_capability(const Csi__V1__VolumeCapability *c)
{
	struct wanted w;

	if (wanted_read(c, &w, NULL) < 0)
		return;
	need(!(w.read_only && w.many_nodes));
	need(!strchr(w.fs_type, '/'));
	for (const char *p = w.options; *p; p++)
		need((unsigned char)*p >= ' ');
	need(!(w.set & w.clear & ~(uint64_t)MOUNT_ATTR__ATIME));
	wanted_done(&w);
}

static void create_volume(const Csi__V1__CreateVolumeRequest *q)
{
	struct volume_request wanted = { 0 };
	struct parameter *p = xcalloc(q->n_parameters + 1, sizeof(*p));
	int64_t bytes, limit, got;
	char name[CSI_NAME_MAX];

	for (size_t i = 0; i < q->n_parameters; i++)
		p[i] = (struct parameter){ q->parameters[i]->key, q->parameters[i]->value };
	if (argument_text(q->name, "name", NULL) == 0)
		need(strspn(csi_volume_name(q->name, name), "csi-0123456789abcdef") ==
		     strlen(name));
	if (argument_kind(q->volume_capabilities, q->n_volume_capabilities, p, q->n_parameters,
			  &wanted, NULL) == 0 &&
	    argument_capacity(q->capacity_range, &bytes, &limit, NULL) == 0 &&
	    volume_size(wanted.kind, bytes, limit, VOLUME_DEFAULT_BYTES, &got, NULL) == 0)
		need(got >= bytes && (!limit || got <= limit) && got > 0);
	for (size_t i = 0; i < q->n_volume_capabilities; i++)
		check_capability(q->volume_capabilities[i]);
	free(p);
}

static void connect(struct map context, struct map secrets, const char *id)
{
	char *text = NULL;
	json_t *o = NULL;

	if (connection_of(context, secrets, id, CONSUMER, "", &text, NULL) < 0)
		return;
	need(json_parse(text, strlen(text), &o, NULL) == 0);
	need(streq(jstr(o, "consumer"), CONSUMER) && jstr(o, "driverVolumeType"));
	json_decref(o);
	connection_free(text);
}

static void stage(const Csi__V1__NodeStageVolumeRequest *q)
{
	check_id(q->volume_id);
	check_path(q->staging_target_path);
	check_capability(q->volume_capability);
	connect(MAP_OF(q, volume_context), MAP_OF(q, secrets), q->volume_id);
}

static void publish(const Csi__V1__NodePublishVolumeRequest *q)
{
	check_id(q->volume_id);
	check_path(q->staging_target_path);
	check_path(q->target_path);
	check_capability(q->volume_capability);
	connect(MAP_OF(q, volume_context), MAP_OF(q, secrets), q->volume_id);
}

static void snapshot(const Csi__V1__CreateSnapshotRequest *q)
{
	if (argument_text(q->name, "name", NULL) == 0 &&
	    argument_text(q->source_volume_id, "source_volume_id", NULL) == 0)
		check_id(q->source_volume_id);
}

/* The others have ids, paths and sizes only, at places of the same types. */
static void unpublish(const Csi__V1__NodeUnpublishVolumeRequest *q)
{
	check_id(q->volume_id);
	check_path(q->target_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ProtobufCMessageDescriptor *const types[] = {
		&csi__v1__create_volume_request__descriptor,
		&csi__v1__node_stage_volume_request__descriptor,
		&csi__v1__node_publish_volume_request__descriptor,
		&csi__v1__create_snapshot_request__descriptor,
		&csi__v1__node_unpublish_volume_request__descriptor,
	};
	struct arena arena = { 0 };
	ProtobufCMessage *message;
	size_t type;

	if (size < 1)
		return 0;
	type = data[0] % ARRAY_SIZE(types);
	if (message_decode(types[type], data + 1, size - 1, &arena, &message, NULL) == 0) {
		if (type == 0)
			create_volume((const void *)message);
		else if (type == 1)
			stage((const void *)message);
		else if (type == 2)
			publish((const void *)message);
		else if (type == 3)
			snapshot((const void *)message);
		else
			unpublish((const void *)message);
	}
	arena_done(&arena);
	return 0;
}
