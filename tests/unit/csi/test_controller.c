/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MIB (1LL << 20)
#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* ---- requests ---------------------------------------------------------------------------------- */

/* A request of one capability, changed by the tests; the parts are in one piece with it. */
struct ask {
	Csi__V1__CreateVolumeRequest m;
	Csi__V1__CapacityRange range;
	Csi__V1__VolumeCapability capability, *capabilities[2];
	Csi__V1__VolumeCapability__AccessMode mode;
	Csi__V1__VolumeCapability__MountVolume mount;
	Csi__V1__VolumeCapability__BlockVolume block;
	Csi__V1__CreateVolumeRequest__ParametersEntry parameter, *parameters[1];
	Csi__V1__CreateVolumeRequest__MutableParametersEntry mutable_one, *mutable[1];
	Csi__V1__VolumeContentSource source;
	Csi__V1__VolumeContentSource__SnapshotSource snapshot;
	Csi__V1__VolumeContentSource__VolumeSource volume;
};

static void ask_init(struct ask *a, const char *name)
{
	*a = (struct ask){
		.m = CSI__V1__CREATE_VOLUME_REQUEST__INIT,
		.range = CSI__V1__CAPACITY_RANGE__INIT,
		.capability = CSI__V1__VOLUME_CAPABILITY__INIT,
		.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT,
		.mount = CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT,
		.block = CSI__V1__VOLUME_CAPABILITY__BLOCK_VOLUME__INIT,
		.parameter = CSI__V1__CREATE_VOLUME_REQUEST__PARAMETERS_ENTRY__INIT,
		.mutable_one = CSI__V1__CREATE_VOLUME_REQUEST__MUTABLE_PARAMETERS_ENTRY__INIT,
		.source = CSI__V1__VOLUME_CONTENT_SOURCE__INIT,
		.snapshot = CSI__V1__VOLUME_CONTENT_SOURCE__SNAPSHOT_SOURCE__INIT,
		.volume = CSI__V1__VOLUME_CONTENT_SOURCE__VOLUME_SOURCE__INIT,
	};
	a->m.name = (char *)name;
	a->mode.mode = MODE(SINGLE_NODE_WRITER);
	a->capability.access_mode = &a->mode;
	a->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	a->capability.mount = &a->mount;
	a->capabilities[0] = &a->capability;
	a->m.volume_capabilities = a->capabilities;
	a->m.n_volume_capabilities = 1;
	a->parameters[0] = &a->parameter;
	a->m.parameters = a->parameters;
}

static void ask_block(struct ask *a)
{
	a->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	a->capability.block = &a->block;
}

static void ask_bytes(struct ask *a, int64_t bytes, int64_t limit)
{
	a->range.required_bytes = bytes;
	a->range.limit_bytes = limit;
	a->m.capacity_range = &a->range;
}

static void ask_parameter(struct ask *a, const char *key, const char *value)
{
	a->parameter.key = (char *)key;
	a->parameter.value = (char *)value;
	a->m.n_parameters = 1;
}

static void ask_mutable(struct ask *a, const char *key, const char *value)
{
	a->mutable_one.key = (char *)key;
	a->mutable_one.value = (char *)value;
	a->mutable[0] = &a->mutable_one;
	a->m.mutable_parameters = a->mutable;
	a->m.n_mutable_parameters = 1;
}

static enum grpc_code create(struct fake *f, struct ask *a, char **ret_id, int64_t *ret_bytes)
{
	Csi__V1__CreateVolumeResponse *r = NULL;
	enum grpc_code code = fake_call(f, "CreateVolume", &a->m, &r, NULL);
	if (r && ret_id)
		*ret_id = xstrdup(r->volume->volume_id);
	if (r && ret_bytes)
		*ret_bytes = r->volume->capacity_bytes;
	fake_done(r);
	return code;
}

/* ---- names ------------------------------------------------------------------------------------- */

static void names(void **state)
{
	static const char *const good[] = {
		"a", "pvc-1", "/../..", "with space", "Grün ☃", "tab\tand\nline", "a;b'c\"d`$(e)"
	};
	static const char *const bad[] = { "", "bell\a", "del\x7f", "c1 \xc2\x85", "cut \xc3" };
	struct fake *f = fake_new(4);
	struct ask a;
	char name[CSI_NAME_MAX], long_name[1026];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cleanup_free char *id = NULL;
		ask_init(&a, good[i]);
		assert_int_equal(create(f, &a, &id, NULL), GRPC_OK);
		cleanup_free char *want =
			handle_format(FAKE_POOL, VOLUME_DIRECTORY, csi_volume_name(good[i], name));
		assert_string_equal(id, want);
		struct handle h;
		assert_int_equal(handle_parse(id, &h, NULL), 0);
	}
	assert_int_equal(f->created, ARRAY_SIZE(good));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ask_init(&a, bad[i]);
		enum grpc_code code = create(f, &a, NULL, NULL);
		/* what is no UTF-8 at all may already be refused as a message */
		if (code != GRPC_INVALID_ARGUMENT && !(i == 4 && code != GRPC_OK))
			fail_msg("name %zu: %s", i, grpc_code_name(code));
	}
	memset(long_name, 'n', sizeof(long_name));
	long_name[1025] = '\0';
	ask_init(&a, long_name);
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	long_name[1024] = '\0';
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_OK);
	fake_free(f);
}

/* ---- sizes ------------------------------------------------------------------------------------- */

static void sizes(void **state)
{
	static const struct {
		int64_t bytes, limit;
		bool block;
		enum grpc_code code;
		int64_t got;
	} cases[] = {
		{ 0, 0, false, GRPC_OK, VOLUME_DEFAULT_BYTES },
		{ 0, 5 * MIB, false, GRPC_OK, 5 * MIB },
		{ 0, 2LL << 30, false, GRPC_OK, VOLUME_DEFAULT_BYTES },
		{ 5, 5, false, GRPC_OK, 5 },
		{ 5, 0, true, GRPC_OK, 4096 },
		{ 4097, 8192, true, GRPC_OK, 8192 },
		{ 4097, 8191, true, GRPC_OUT_OF_RANGE, 0 },
		{ 0, 4095, true, GRPC_OUT_OF_RANGE, 0 },
		{ 10, 5, false, GRPC_INVALID_ARGUMENT, 0 },
		{ -1, 0, false, GRPC_INVALID_ARGUMENT, 0 },
		{ 0, -1, false, GRPC_INVALID_ARGUMENT, 0 },
		{ FAKE_BYTES + 1, 0, false, GRPC_RESOURCE_EXHAUSTED, 0 },
		{ INT64_MAX, 0, true, GRPC_OUT_OF_RANGE, 0 },
	};
	struct fake *f = fake_new(4);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ask a;
		char name[16];
		int64_t got = 0;
		snprintf(name, sizeof(name), "v%zu", i);
		ask_init(&a, name);
		ask_bytes(&a, cases[i].bytes, cases[i].limit);
		if (cases[i].block)
			ask_block(&a);
		enum grpc_code code = create(f, &a, NULL, &got);
		if (code != cases[i].code || got != cases[i].got)
			fail_msg("case %zu: %s, %lld bytes", i, grpc_code_name(code),
				 (long long)got);
	}
	fake_free(f);
}

/* ---- capabilities and parameters --------------------------------------------------------------- */

static void kinds(void **state)
{
	static const struct {
		const char *key, *value;
		bool block;
		int mode;
		const char *fs;
		char kind; /* 0: refused */
	} cases[] = {
		{ NULL, NULL, false, MODE(SINGLE_NODE_WRITER), "", 'd' },
		{ NULL, NULL, false, MODE(MULTI_NODE_MULTI_WRITER), "ext4", 'd' },
		{ NULL, NULL, true, MODE(SINGLE_NODE_WRITER), "", 'b' },
		{ NULL, NULL, true, MODE(MULTI_NODE_READER_ONLY), "", 'b' },
		{ NULL, NULL, true, MODE(MULTI_NODE_MULTI_WRITER), "", 0 },
		{ "kind", "file", false, MODE(SINGLE_NODE_MULTI_WRITER), "", 'f' },
		{ "kind", "file", false, MODE(SINGLE_NODE_SINGLE_WRITER), "xfs", 'f' },
		{ "kind", "file", false, MODE(SINGLE_NODE_WRITER), "ntfs", 0 },
		{ "kind", "file", false, MODE(MULTI_NODE_MULTI_WRITER), "", 0 },
		{ "kind", "file", false, MODE(MULTI_NODE_SINGLE_WRITER), "", 0 },
		{ "kind", "file", true, MODE(SINGLE_NODE_WRITER), "", 0 },
		{ "kind", "directory", true, MODE(SINGLE_NODE_WRITER), "", 0 },
		{ "kind", "block", false, MODE(SINGLE_NODE_WRITER), "", 0 },
		{ "kind", "f", false, MODE(SINGLE_NODE_WRITER), "", 0 },
		{ "pool", "gold-1", false, MODE(SINGLE_NODE_WRITER), "", 'd' },
		{ "pool", "../gold", false, MODE(SINGLE_NODE_WRITER), "", 0 },
		{ "colour", "red", false, MODE(SINGLE_NODE_WRITER), "", 0 },
		{ "csi.storage.k8s.io/pvc/name", "x", false, MODE(SINGLE_NODE_WRITER), "", 'd' },
		{ NULL, NULL, false, MODE(UNKNOWN), "", 0 },
		{ NULL, NULL, false, 99, "", 0 },
	};
	struct fake *f = fake_new(4);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ask a;
		char name[16];
		cleanup_free char *id = NULL;
		struct handle h = { 0 };
		snprintf(name, sizeof(name), "v%zu", i);
		ask_init(&a, name);
		if (cases[i].block)
			ask_block(&a);
		a.mode.mode = (Csi__V1__VolumeCapability__AccessMode__Mode)cases[i].mode;
		a.mount.fs_type = (char *)cases[i].fs;
		if (cases[i].key)
			ask_parameter(&a, cases[i].key, cases[i].value);
		enum grpc_code code = create(f, &a, &id, NULL);
		if (id)
			handle_parse(id, &h, NULL);
		if (code != (cases[i].kind ? GRPC_OK : GRPC_INVALID_ARGUMENT) ||
		    (char)h.kind != cases[i].kind)
			fail_msg("case %zu: %s, kind %c", i, grpc_code_name(code), (char)h.kind);
	}
	fake_free(f);
}

static void incomplete(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	Csi__V1__VolumeCapability other = CSI__V1__VOLUME_CAPABILITY__INIT;

	ask_init(&a, "none");
	a.m.n_volume_capabilities = 0;
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	ask_init(&a, "no mode");
	a.capability.access_mode = NULL;
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	ask_init(&a, "no type");
	a.capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET;
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	ask_init(&a, "mount and block");
	other.access_mode = &a.mode;
	other.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	other.block = &a.block;
	a.capabilities[1] = &other;
	a.m.n_volume_capabilities = 2;
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	ask_init(&a, "a source that is none");
	a.m.volume_content_source = &a.source;
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(f->created, 0);
	fake_free(f);
}

/* ---- ids: from whoever calls, and never part of a path ----------------------------------------- */

static const char *const strange[] = { "x",
				       "v1.gold-1.d.../../etc",
				       "v1.../.d.a",
				       "v1.gold-1.d.a/../b",
				       "v1.gold-1.dd.a",
				       "v1.gold-1.d.",
				       "v2.gold-1.d.a",
				       "v1.gold-1.d.A",
				       "v1.gold-1.d.a\n" };

static void ids(void **state)
{
	struct fake *f = fake_new(4);
	Csi__V1__ControllerGetVolumeRequest get = CSI__V1__CONTROLLER_GET_VOLUME_REQUEST__INIT;
	Csi__V1__ControllerExpandVolumeRequest grow =
		CSI__V1__CONTROLLER_EXPAND_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	Csi__V1__CreateSnapshotRequest take = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;

	assert_int_equal(fake_delete(f, ""), GRPC_INVALID_ARGUMENT);
	assert_int_equal(fake_call(f, "ControllerGetVolume", &get, NULL, NULL),
			 GRPC_INVALID_ARGUMENT);
	assert_int_equal(fake_call(f, "ControllerExpandVolume", &grow, NULL, NULL),
			 GRPC_INVALID_ARGUMENT);
	grow.volume_id = (char *)"v1.gold-1.d.a";
	assert_int_equal(fake_call(f, "ControllerExpandVolume", &grow, NULL, NULL),
			 GRPC_INVALID_ARGUMENT);
	grow.capacity_range = &range;
	take.name = (char *)"s";
	for (size_t i = 0; i < ARRAY_SIZE(strange); i++) {
		get.volume_id = grow.volume_id = take.source_volume_id = (char *)strange[i];
		assert_int_equal(fake_delete(f, strange[i]), GRPC_OK);
		assert_int_equal(fake_call(f, "ControllerGetVolume", &get, NULL, NULL),
				 GRPC_NOT_FOUND);
		assert_int_equal(fake_call(f, "ControllerExpandVolume", &grow, NULL, NULL),
				 GRPC_NOT_FOUND);
		assert_int_equal(fake_call(f, "CreateSnapshot", &take, NULL, NULL), GRPC_NOT_FOUND);
	}
	assert_int_equal(f->removed, 0);
	fake_free(f);
}

/* ---- a volume's life --------------------------------------------------------------------------- */

static enum grpc_code expand(struct fake *f, const char *id, int64_t bytes,
			     Csi__V1__ControllerExpandVolumeResponse **ret)
{
	Csi__V1__ControllerExpandVolumeRequest q = CSI__V1__CONTROLLER_EXPAND_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	range.required_bytes = bytes;
	q.volume_id = (char *)id;
	q.capacity_range = &range;
	return fake_call(f, "ControllerExpandVolume", &q, ret, NULL);
}

static void life(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *id = NULL, *again = NULL, *block = NULL;
	Csi__V1__ControllerExpandVolumeResponse *grown = NULL;

	ask_init(&a, "one");
	ask_bytes(&a, MIB, MIB);
	assert_int_equal(create(f, &a, &id, NULL), GRPC_OK);
	assert_int_equal(create(f, &a, &again, NULL), GRPC_OK);
	assert_string_equal(id, again);
	assert_int_equal(f->created, 1);
	ask_bytes(&a, 2 * MIB, 2 * MIB);
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_ALREADY_EXISTS);
	assert_int_equal(expand(f, id, 2 * MIB, &grown), GRPC_OK);
	assert_int_equal(grown->capacity_bytes, 2 * MIB);
	assert_false(grown->node_expansion_required);
	fake_done(grown);
	ask_init(&a, "two");
	ask_block(&a);
	assert_int_equal(create(f, &a, &block, NULL), GRPC_OK);
	assert_int_equal(expand(f, block, 2LL << 30, &grown), GRPC_OK);
	assert_true(grown->node_expansion_required);
	fake_done(grown);
	assert_int_equal(fake_delete(f, id), GRPC_OK);
	assert_int_equal(fake_delete(f, id), GRPC_OK);
	assert_int_equal(f->removed, 1);
	assert_int_equal(expand(f, id, 4 * MIB, NULL), GRPC_NOT_FOUND);
	fake_free(f);
}

static void validation(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *id = NULL;
	Csi__V1__ValidateVolumeCapabilitiesRequest q =
		CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
	Csi__V1__ValidateVolumeCapabilitiesResponse *r = NULL;

	ask_init(&a, "v");
	ask_parameter(&a, "kind", "file");
	assert_int_equal(create(f, &a, &id, NULL), GRPC_OK);
	q.volume_id = id;
	assert_int_equal(fake_call(f, "ValidateVolumeCapabilities", &q, NULL, NULL),
			 GRPC_INVALID_ARGUMENT);
	q.volume_capabilities = a.capabilities;
	q.n_volume_capabilities = 1;
	assert_int_equal(fake_call(f, "ValidateVolumeCapabilities", &q, &r, NULL), GRPC_OK);
	assert_non_null(r->confirmed);
	assert_int_equal(r->confirmed->n_volume_capabilities, 1);
	fake_done(r);
	a.mode.mode = MODE(MULTI_NODE_MULTI_WRITER);
	assert_int_equal(fake_call(f, "ValidateVolumeCapabilities", &q, &r, NULL), GRPC_OK);
	assert_null(r->confirmed);
	assert_true(*r->message);
	fake_done(r);
	q.volume_id = (char *)"v1.gold-1.d.other";
	assert_int_equal(fake_call(f, "ValidateVolumeCapabilities", &q, NULL, NULL),
			 GRPC_NOT_FOUND);
	fake_free(f);
}

/* Every volume is seen once, whatever is removed in between. */
static void paging(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	Csi__V1__ListVolumesRequest q = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
	Csi__V1__ListVolumesResponse *r = NULL;
	cleanup_free char *token = xstrdup("");
	size_t seen = 0;

	for (int i = 0; i < 25; i++) {
		char name[16];
		snprintf(name, sizeof(name), "v%d", i);
		ask_init(&a, name);
		assert_int_equal(create(f, &a, NULL, NULL), GRPC_OK);
	}
	q.max_entries = 4;
	do {
		q.starting_token = token;
		assert_int_equal(fake_call(f, "ListVolumes", &q, &r, NULL), GRPC_OK);
		seen += r->n_entries;
		free(token);
		token = xstrdup(r->next_token);
		/* the last of this page goes: the next page begins where it began all the same */
		if (r->n_entries)
			assert_int_equal(
				fake_delete(f, r->entries[r->n_entries - 1]->volume->volume_id),
				GRPC_OK);
		fake_done(r);
	} while (*token);
	assert_int_equal(seen, 25);
	q.starting_token = (char *)"";
	q.max_entries = -1;
	assert_int_equal(fake_call(f, "ListVolumes", &q, NULL, NULL), GRPC_INVALID_ARGUMENT);
	q.max_entries = 0;
	q.starting_token = (char *)"invalid-token";
	assert_int_equal(fake_call(f, "ListVolumes", &q, NULL, NULL), GRPC_ABORTED);
	fake_free(f);
}

static void snapshots(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *one = NULL, *two = NULL;
	Csi__V1__CreateSnapshotRequest q = CSI__V1__CREATE_SNAPSHOT_REQUEST__INIT;
	Csi__V1__CreateSnapshotResponse *r = NULL;
	Csi__V1__ListSnapshotsRequest l = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
	Csi__V1__ListSnapshotsResponse *list = NULL;
	Csi__V1__GetSnapshotRequest g = CSI__V1__GET_SNAPSHOT_REQUEST__INIT;
	Csi__V1__DeleteSnapshotRequest d = CSI__V1__DELETE_SNAPSHOT_REQUEST__INIT;

	ask_init(&a, "one");
	assert_int_equal(create(f, &a, &one, NULL), GRPC_OK);
	ask_init(&a, "two");
	assert_int_equal(create(f, &a, &two, NULL), GRPC_OK);
	assert_int_equal(fake_call(f, "CreateSnapshot", &q, NULL, NULL), GRPC_INVALID_ARGUMENT);
	q.name = (char *)"s";
	assert_int_equal(fake_call(f, "CreateSnapshot", &q, NULL, NULL), GRPC_INVALID_ARGUMENT);
	q.source_volume_id = one;
	assert_int_equal(fake_call(f, "CreateSnapshot", &q, &r, NULL), GRPC_OK);
	assert_int_equal(r->snapshot->creation_time->seconds, 1700000000);
	assert_int_equal(r->snapshot->creation_time->nanos, 123000000);
	assert_string_equal(r->snapshot->source_volume_id, one);
	q.source_volume_id = two;
	assert_int_equal(fake_call(f, "CreateSnapshot", &q, NULL, NULL), GRPC_ALREADY_EXISTS);
	q.source_volume_id = r->snapshot->snapshot_id;
	assert_int_equal(fake_call(f, "CreateSnapshot", &q, NULL, NULL), GRPC_NOT_FOUND);

	/* by id, by source, of one that is not there */
	l.snapshot_id = g.snapshot_id = d.snapshot_id = r->snapshot->snapshot_id;
	assert_int_equal(fake_call(f, "GetSnapshot", &g, NULL, NULL), GRPC_OK);
	assert_int_equal(fake_call(f, "ListSnapshots", &l, &list, NULL), GRPC_OK);
	assert_int_equal(list->n_entries, 1);
	fake_done(list);
	l.source_volume_id = two;
	assert_int_equal(fake_call(f, "ListSnapshots", &l, &list, NULL), GRPC_OK);
	assert_int_equal(list->n_entries, 0);
	fake_done(list);
	l.snapshot_id = (char *)"";
	l.source_volume_id = one;
	assert_int_equal(fake_call(f, "ListSnapshots", &l, &list, NULL), GRPC_OK);
	assert_int_equal(list->n_entries, 1);
	fake_done(list);
	l.snapshot_id = (char *)"none-exist-id";
	l.source_volume_id = (char *)"";
	assert_int_equal(fake_call(f, "ListSnapshots", &l, &list, NULL), GRPC_OK);
	assert_int_equal(list->n_entries, 0);
	fake_done(list);
	assert_int_equal(fake_call(f, "DeleteSnapshot", &d, NULL, NULL), GRPC_OK);
	assert_int_equal(fake_call(f, "DeleteSnapshot", &d, NULL, NULL), GRPC_OK);
	assert_int_equal(fake_call(f, "GetSnapshot", &g, NULL, NULL), GRPC_NOT_FOUND);
	d.snapshot_id = (char *)"";
	assert_int_equal(fake_call(f, "DeleteSnapshot", &d, NULL, NULL), GRPC_INVALID_ARGUMENT);
	fake_done(r);
	fake_free(f);
}

/* ---- copies ------------------------------------------------------------------------------------ */

static void copies(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *one = NULL;
	Csi__V1__CreateVolumeResponse *r = NULL;
	enum grpc_code code;

	ask_init(&a, "one");
	assert_int_equal(create(f, &a, &one, NULL), GRPC_OK);
	ask_init(&a, "copy");
	a.m.volume_content_source = &a.source;
	a.source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
	a.source.volume = &a.volume;
	a.volume.volume_id = one;
	f->copying = 3;
	assert_int_equal(fake_call(f, "CreateVolume", &a.m, &r, NULL), GRPC_OK);
	assert_int_equal(f->copying, 0);
	assert_string_equal(r->volume->content_source->volume->volume_id, one);
	fake_done(r);

	/* a caller with little time is told to come again, before its time is over */
	f->copying = 1000;
	a.m.name = (char *)"slow copy";
	grpc_client_call(f->client, &csi__v1__controller__descriptor, "CreateVolume", &a.m, 900,
			 (void **)&r, &code, NULL);
	assert_int_equal(code, GRPC_ABORTED);
	f->copying = 0;

	/* a volume's id where a snapshot's should be, and the other way round */
	a.source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT;
	a.source.snapshot = &a.snapshot;
	a.snapshot.snapshot_id = one;
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_NOT_FOUND);
	a.snapshot.snapshot_id = (char *)"";
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	fake_free(f);
}

/* What takes its time to go is waited for, as long as the caller does. */
static void slow_removal(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *one = NULL;
	Csi__V1__DeleteVolumeRequest d = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
	void *r = NULL;
	enum grpc_code code;

	ask_init(&a, "one");
	assert_int_equal(create(f, &a, &one, NULL), GRPC_OK);
	d.volume_id = one;
	f->removing = 1000;
	grpc_client_call(f->client, &csi__v1__controller__descriptor, "DeleteVolume", &d, 900, &r,
			 &code, NULL);
	assert_int_equal(code, GRPC_ABORTED);
	assert_int_equal(f->removed, 0);
	f->removing = 3;
	assert_int_equal(fake_call(f, "DeleteVolume", &d, NULL, NULL), GRPC_OK);
	assert_int_equal(f->removing, 0);
	assert_int_equal(f->removed, 1);
	fake_free(f);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void elsewhere(void **state)
{
	static const char *const methods[] = { "CreateVolume", "ListVolumes", "GetCapacity",
					       "ListSnapshots" };
	struct fake *f = fake_new(4);
	struct ask a;
	struct error err = ERROR_INIT;
	Csi__V1__ListVolumesRequest list = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
	Csi__V1__GetCapacityRequest capacity = CSI__V1__GET_CAPACITY_REQUEST__INIT;
	Csi__V1__ListSnapshotsRequest snaps = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;

	f->elsewhere = true;
	ask_init(&a, "v");
	const void *const requests[] = { &a.m, &list, &capacity, &snaps };
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		assert_int_equal(fake_call(f, methods[i], requests[i], NULL, &err),
				 GRPC_UNAVAILABLE);
		assert_non_null(strstr(err.message, "another one leads"));
	}
	assert_int_equal(f->created, 0);
	fake_free(f);
}

static void capacity(void **state)
{
	struct fake *f = fake_new(4);
	Csi__V1__GetCapacityRequest q = CSI__V1__GET_CAPACITY_REQUEST__INIT;
	Csi__V1__GetCapacityResponse *r = NULL;
	Csi__V1__GetCapacityRequest__ParametersEntry p =
		CSI__V1__GET_CAPACITY_REQUEST__PARAMETERS_ENTRY__INIT;
	Csi__V1__GetCapacityRequest__ParametersEntry *ps[] = { &p };

	assert_int_equal(fake_call(f, "GetCapacity", &q, &r, NULL), GRPC_OK);
	assert_int_equal(r->available_capacity, FAKE_BYTES);
	assert_int_equal(r->maximum_volume_size->value, FAKE_BYTES / 2);
	fake_done(r);
	p.key = (char *)"pool";
	p.value = (char *)"silver-1";
	q.parameters = ps;
	q.n_parameters = 1;
	assert_int_equal(fake_call(f, "GetCapacity", &q, &r, NULL), GRPC_OK);
	assert_int_equal(r->available_capacity, 0);
	fake_done(r);
	p.key = (char *)"colour";
	assert_int_equal(fake_call(f, "GetCapacity", &q, NULL, NULL), GRPC_INVALID_ARGUMENT);
	fake_free(f);
}

static void health(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *id = NULL, *ill = NULL;
	Csi__V1__ControllerGetVolumeHealthRequest q =
		CSI__V1__CONTROLLER_GET_VOLUME_HEALTH_REQUEST__INIT;
	Csi__V1__ControllerGetVolumeHealthResponse *r = NULL;

	ask_init(&a, "well");
	assert_int_equal(create(f, &a, &id, NULL), GRPC_OK);
	ask_init(&a, "ill");
	ask_bytes(&a, 4242, 0);
	assert_int_equal(create(f, &a, &ill, NULL), GRPC_OK);
	q.volume_id = id;
	assert_int_equal(fake_call(f, "ControllerGetVolumeHealth", &q, &r, NULL), GRPC_OK);
	assert_int_equal(r->volume_health->n_health_statuses, 0);
	fake_done(r);
	q.volume_id = ill;
	assert_int_equal(fake_call(f, "ControllerGetVolumeHealth", &q, &r, NULL), GRPC_OK);
	assert_int_equal(r->volume_health->n_health_statuses, 1);
	assert_int_equal(r->volume_health->health_statuses[0]->status,
			 CSI__V1__VOLUME_HEALTH_ERROR_TYPE__DEGRADED);
	fake_done(r);

	Csi__V1__ControllerListVolumeHealthRequest l =
		CSI__V1__CONTROLLER_LIST_VOLUME_HEALTH_REQUEST__INIT;
	Csi__V1__ControllerListVolumeHealthResponse *all = NULL;
	assert_int_equal(fake_call(f, "ControllerListVolumeHealth", &l, &all, NULL), GRPC_OK);
	assert_int_equal(all->n_entries, 1);
	assert_string_equal(all->entries[0]->volume_id, ill);
	fake_done(all);
	fake_free(f);
}

/* ---- changing ---------------------------------------------------------------------------------- */

static enum grpc_code modify(struct fake *f, const char *id, const char *key, const char *value)
{
	Csi__V1__ControllerModifyVolumeRequest q = CSI__V1__CONTROLLER_MODIFY_VOLUME_REQUEST__INIT;
	Csi__V1__ControllerModifyVolumeRequest__MutableParametersEntry
		entry = CSI__V1__CONTROLLER_MODIFY_VOLUME_REQUEST__MUTABLE_PARAMETERS_ENTRY__INIT,
		*entries[] = { &entry };

	q.volume_id = (char *)id;
	q.mutable_parameters = entries;
	q.n_mutable_parameters = key != NULL;
	entry.key = (char *)key;
	entry.value = (char *)value;
	return fake_call(f, "ControllerModifyVolume", &q, NULL, NULL);
}

static void modifies(void **state)
{
	struct fake *f = fake_new(4);
	struct ask a;
	cleanup_free char *id = NULL;

	ask_init(&a, "one");
	ask_mutable(&a, "reclaim", "never");
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	ask_mutable(&a, "kind", "file");
	assert_int_equal(create(f, &a, NULL, NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(f->count, 0);
	ask_mutable(&a, "reclaim", "archive");
	assert_int_equal(create(f, &a, &id, NULL), GRPC_OK);
	assert_true(f->items[0].archive);

	assert_int_equal(modify(f, "", "reclaim", "delete"), GRPC_INVALID_ARGUMENT);
	assert_int_equal(modify(f, "v1.gold-1.d.none", "reclaim", "delete"), GRPC_NOT_FOUND);
	assert_int_equal(modify(f, "../x", "reclaim", "delete"), GRPC_NOT_FOUND);
	assert_int_equal(modify(f, id, "size", "1"), GRPC_INVALID_ARGUMENT);
	assert_int_equal(modify(f, id, "reclaim", "Delete"), GRPC_INVALID_ARGUMENT);
	assert_int_equal(modify(f, id, NULL, NULL), GRPC_OK);
	assert_true(f->items[0].archive);
	assert_int_equal(modify(f, id, "reclaim", "delete"), GRPC_OK);
	assert_false(f->items[0].archive);
	f->elsewhere = true;
	assert_int_equal(modify(f, id, "reclaim", "archive"), GRPC_UNAVAILABLE);
	f->elsewhere = false;
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),	cmocka_unit_test(sizes),
		cmocka_unit_test(kinds),	cmocka_unit_test(incomplete),
		cmocka_unit_test(ids),		cmocka_unit_test(life),
		cmocka_unit_test(validation),	cmocka_unit_test(paging),
		cmocka_unit_test(snapshots),	cmocka_unit_test(copies),
		cmocka_unit_test(slow_removal), cmocka_unit_test(elsewhere),
		cmocka_unit_test(capacity),	cmocka_unit_test(health),
		cmocka_unit_test(modifies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
