/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "grpc/grpc.h"
#include "operator/snapshot.h"
#include "operator/volumes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Volumes of an orchestrator without claims, beside the operator's own loops. */
#define POOL "gold-1"

static struct volumes *volumes_of(struct fixture *f)
{
	return operator_volumes_new(&f->r);
}

/* As an orchestrator does: what failed for want of an answer is asked for again, in the next life. */
static bool comes_again(struct fixture *f, int rc)
{
	if (rc != -EAGAIN && rc != -EINPROGRESS && rc != -ETIMEDOUT && rc != 1)
		return false;
	if (f->failed) {
		f->failed = false;
		f->fail_at = 0;
		fixture_restart(f);
	}
	return true;
}

static int create(struct fixture *f, const struct volume_request *q, struct handle *ret)
{
	struct volumes *v = volumes_of(f);
	struct volume_info info = { 0 };
	int rc;
	do
		rc = v->ops->create(v, q, &info, NULL);
	while (comes_again(f, rc));
	if (rc == 0 && ret)
		assert_int_equal(handle_parse(info.id, ret, NULL), 0);
	volume_info_done(&info);
	operator_volumes_free(v);
	return rc;
}

static int discard_volume(struct fixture *f, const struct handle *id)
{
	struct volumes *v = volumes_of(f);
	int rc;
	do
		rc = v->ops->remove(v, id, NULL);
	while (comes_again(f, rc));
	operator_volumes_free(v);
	return rc;
}

static int expand(struct fixture *f, const struct handle *id, int64_t bytes, int64_t limit,
		  int64_t *ret)
{
	struct volumes *v = volumes_of(f);
	int rc;
	do
		rc = v->ops->expand(v, id, bytes, limit, ret, NULL);
	while (comes_again(f, rc));
	operator_volumes_free(v);
	return rc;
}

static int find(struct fixture *f, const struct handle *id, struct volume_info *ret)
{
	struct volumes *v = volumes_of(f);
	int rc = v->ops->find(v, id, ret, NULL);
	operator_volumes_free(v);
	return rc;
}

static size_t in_pool(struct fixture *f)
{
	return json_object_size(jget(f->volumes, POOL));
}

/* ---- a life ------------------------------------------------------------------------------------ */

static void made_and_removed(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "Ein Name/..", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct handle id, again;
	struct volume_info info = { 0 };

	assert_int_equal(create(f, &q, &id), 0);
	assert_string_equal(id.pool, POOL);
	assert_true(has_volume(f, POOL, id.name));
	settle(f);
	/* nobody has bound or reclaimed it, and its bytes are promised */
	cleanup_json json_t *pv = get(f, &KIND_PV, id.name);
	assert_string_equal(jstr(pv, "status", "phase"), "Released");
	assert_string_equal(jstr(pv, "spec", "persistentVolumeReclaimPolicy"), "Retain");
	assert_true(has_volume(f, POOL, id.name));
	assert_int_equal(ledger_promised(f->op.ledger, POOL), GIB);
	assert_int_equal(find(f, &id, &info), 0);
	assert_int_equal(info.bytes, GIB);
	assert_string_equal(json_string_value(json_object_get(info.context, "volumeId")), id.name);
	volume_info_done(&info);

	assert_int_equal(create(f, &q, &again), 0);
	assert_string_equal(id.name, again.name);
	assert_int_equal(count(f, &KIND_PV), 1);
	q.bytes = 2 * GIB;
	assert_int_equal(create(f, &q, NULL), -EEXIST);
	q.bytes = 0;
	q.kind = VOLUME_BLOCK;
	assert_int_equal(create(f, &q, NULL), -EEXIST);

	assert_int_equal(discard_volume(f, &id), 0);
	assert_int_equal(discard_volume(f, &id), 0);
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(in_pool(f), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	assert_int_equal(find(f, &id, &info), -ENOENT);
	fixture_free(f);
}

static void grows(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct handle id;
	int64_t bytes = 0;

	assert_int_equal(create(f, &q, &id), 0);
	settle(f);
	assert_int_equal(expand(f, &id, 3 * GIB, 0, &bytes), 0);
	assert_int_equal(bytes, 3 * GIB);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 3 * GIB);
	cleanup_json json_t *pv = get(f, &KIND_PV, id.name);
	assert_int_equal(pv_bytes(pv), 3 * GIB); /* what agents take the quota from */
	assert_int_equal(jint(f->volumes, POOL, id.name), 3 * GIB);
	assert_int_equal(expand(f, &id, GIB, 0, &bytes), 0);
	assert_int_equal(bytes, 3 * GIB);
	assert_int_equal(expand(f, &id, GIB, 2 * GIB, &bytes), -ERANGE);
	assert_int_equal(expand(f, &id, 11 * GIB, 0, &bytes), -ENOSPC);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 3 * GIB);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 3 * GIB);
	fixture_free(f);
}

static void room(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "a", .bytes = 6 * GIB, .kind = VOLUME_FILE };
	struct volumes *v = volumes_of(f);
	int64_t left, biggest;

	assert_int_equal(create(f, &q, NULL), 0);
	assert_int_equal(v->ops->capacity(v, NULL, VOLUME_DIRECTORY, &left, &biggest, NULL), 0);
	assert_int_equal(left, 4 * GIB);
	assert_int_equal(biggest, 4 * GIB);
	q.name = "b";
	assert_int_equal(create(f, &q, NULL), -ENOSPC);
	q.bytes = 4 * GIB;
	q.pool = "silver-1";
	assert_int_equal(create(f, &q, NULL), -EINVAL);
	q.pool = POOL;
	assert_int_equal(create(f, &q, NULL), 0);
	assert_int_equal(in_pool(f), 2);
	assert_int_equal(count(f, &KIND_PV), 2);
	operator_volumes_free(v);
	fixture_free(f);
}

/* What was promised before and did not become a volume stands only for what is asked now. */
static void promised_anew(void **state)
{
	struct fixture *f = fixture_online();
	struct ledger *l = f->op.ledger;
	const struct ledger_offer a = { "a", 10 * GIB }, b = { "b", 10 * GIB };
	const struct {
		int64_t bytes;
		const struct ledger_offer *offer;
		bool made; /* from now on */
		int rc;
		const char *pool;
		int64_t promised;
	} steps[] = {
		{ GIB, &a, false, 0, "a", GIB },	   { 5 * GIB, &a, false, 0, "a", 5 * GIB },
		{ GIB, &a, false, 0, "a", 5 * GIB },	   { GIB, &b, false, 0, "b", GIB },
		{ 11 * GIB, &b, false, -ENOSPC, NULL, 0 }, { GIB, &b, true, 0, "b", GIB },
		{ 2 * GIB, &a, true, 0, "b", GIB }
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		cleanup_free char *pool = NULL;
		int64_t biggest = 0;
		assert_int_equal(ledger_reserve(l, "x", NULL, steps[i].bytes, steps[i].offer, 1,
						&pool, &biggest),
				 steps[i].rc);
		assert_true(streq(pool, steps[i].pool));
		assert_int_equal(ledger_promised(l, NULL), steps[i].promised);
		if (steps[i].made)
			ledger_made(l, "x");
	}
	fixture_free(f);
}

/* ---- claims' volumes beside them --------------------------------------------------------------- */

static void claims_are_left_alone(void **state)
{
	struct fixture *f = fixture_online();
	int64_t bytes;
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1");
	struct handle id;
	assert_int_equal(handle_parse(jstr(pv, "spec", "csi", "volumeHandle"), &id, NULL), 0);
	assert_int_equal(discard_volume(f, &id), -EBUSY);
	assert_int_equal(expand(f, &id, 2 * GIB, 0, &bytes), -EBUSY);
	assert_true(has_volume(f, POOL, id.name));

	/* a claim of the very name that the record refers to is not bound to it */
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	assert_int_equal(create(f, &q, &id), 0);
	settle(f);
	add_claim(f, id.name, "", "1Gi");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, id.name);
	assert_null(jstr(claim, "spec", "volumeName"));
	assert_true(phase_is(f, &KIND_PV, id.name, "Released"));

	/* one that a person deletes lets go of the record, and keeps the data, as Retain says */
	discard(f, &KIND_PV, id.name);
	settle(f);
	assert_true(has_volume(f, POOL, id.name));
	assert_int_equal(discard_volume(f, &id), 0);
	assert_false(has_volume(f, POOL, id.name));

	/* a volume that only looks like one of a claim is not removed */
	snprintf(id.name, sizeof(id.name), "pvc-kept");
	jset(f->volumes, json_integer(1), POOL, "pvc-kept");
	assert_int_equal(discard_volume(f, &id), 0);
	assert_true(has_volume(f, POOL, "pvc-kept"));
	fixture_free(f);
}

static void lists(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = volumes_of(f);
	size_t seen = 0;
	cleanup_free char *after = NULL;

	add_claim(f, "c1", "gold", "1Mi");
	settle(f);
	for (int i = 0; i < 10; i++) {
		char name[8];
		snprintf(name, sizeof(name), "v%d", i);
		struct volume_request q = { .name = name, .bytes = 1, .kind = VOLUME_DIRECTORY };
		assert_int_equal(create(f, &q, NULL), 0);
	}
	for (bool more = true; more;) {
		struct volume_list list = { 0 };
		assert_int_equal(v->ops->list(v, after, 3, &list, NULL), 0);
		for (size_t i = 0; i < list.count; i++, seen++) {
			struct handle h;
			handle_parse(list.items[i].id, &h, NULL);
			assert_true(!after || strcmp(h.name, after) > 0);
			free(after);
			after = xstrdup(h.name);
		}
		more = list.more;
		volume_list_done(&list);
	}
	assert_int_equal(seen, 11);
	operator_volumes_free(v);
	fixture_free(f);
}

/* ---- copies and snapshots ---------------------------------------------------------------------- */

static void copies(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = volumes_of(f);
	struct volume_request q = { .name = "one", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct snapshot_info s = { 0 }, t = { 0 };
	struct snapshot_list list = { 0 };
	struct volume_info info = { 0 };
	struct handle one, two, snap;

	assert_int_equal(create(f, &q, &one), 0);
	cleanup_free char *source = handle_format(one.pool, one.kind, one.name);
	assert_int_equal(v->ops->snapshot(v, "snap", &one, &s, NULL), 0);
	assert_true(s.ready);
	assert_string_equal(s.source, source);
	assert_int_equal(handle_parse(s.id, &snap, NULL), 0);
	assert_int_equal(v->ops->snapshot_find(v, &snap, &t, NULL), 0);
	assert_string_equal(t.id, s.id);
	snapshot_info_done(&t);
	assert_int_equal(v->ops->snapshots(v, source, NULL, 10, &list, NULL), 0);
	assert_int_equal(list.count, 1);
	snapshot_list_done(&list);
	assert_int_equal(v->ops->snapshots(v, NULL, &snap, 10, &list, NULL), 0);
	assert_int_equal(list.count, 0);
	snapshot_list_done(&list);

	/* a volume of it: of its size unless asked for more, and never less */
	struct volume_request copy = { .name = "two", .kind = VOLUME_DIRECTORY, .source = s.id };
	f->copying = 3;
	assert_int_equal(create(f, &copy, &two), 0);
	assert_int_equal(f->copying, 0);
	assert_int_equal(find(f, &two, &info), 0);
	assert_int_equal(info.bytes, GIB);
	assert_string_equal(info.source, s.id);
	volume_info_done(&info);
	copy.name = "less";
	copy.bytes = 5;
	assert_int_equal(create(f, &copy, NULL), -ERANGE);
	copy.bytes = 0;
	copy.kind = VOLUME_BLOCK;
	assert_int_equal(create(f, &copy, NULL), -EINVAL);
	copy.kind = VOLUME_DIRECTORY;
	copy.source = source;
	assert_int_equal(create(f, &copy, NULL), 0);
	copy.name = "none";
	copy.source = "v1." POOL ".d.none";
	assert_int_equal(create(f, &copy, NULL), -ENOENT);
	assert_int_equal(count(f, &KIND_PV), 3);

	/* snapshots stay when their source goes, and the call that made one can be repeated */
	assert_int_equal(discard_volume(f, &one), 0);
	assert_int_equal(v->ops->snapshot(v, "snap", &one, &t, NULL), 0);
	snapshot_info_done(&t);
	assert_int_equal(v->ops->snapshot(v, "other", &one, &t, NULL), -ENOENT);
	assert_int_equal(v->ops->snapshot_remove(v, &snap, NULL), 0);
	assert_int_equal(v->ops->snapshot_find(v, &snap, &t, NULL), -ENOENT);
	snapshot_info_done(&s);
	operator_volumes_free(v);
	fixture_free(f);
}

/* What the snapshot loops took is not an orchestrator's to delete. */
static void others_snapshots(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = volumes_of(f);
	struct volume_request q = { .name = "one", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct handle one, snap;
	cleanup_json json_t *said = NULL;

	assert_int_equal(create(f, &q, &one), 0);
	struct worker_pool pool = { .name = POOL };
	struct worker_volume from = { one.kind, one.name }, to = { VOLUME_SNAPSHOT, "snap-1" };
	assert_int_equal(f->workers.ops->snapshot(&f->workers, &pool, &from, &to, &said, NULL), 0);
	assert_int_equal(handle_parse("v1." POOL ".s.snap-1", &snap, NULL), 0);
	assert_int_equal(v->ops->snapshot_remove(v, &snap, NULL), -EBUSY);
	assert_non_null(jget(f->snapshots, POOL, "snap-1"));
	/* one whose info says too little is no beginning of a volume */
	jset(f->snapshots, json_pack("{s:s, s:b}", "name", "snap-odd", "ready", 1), POOL,
	     "snap-odd");
	q.name = "two";
	q.source = "v1." POOL ".s.snap-odd";
	assert_int_equal(create(f, &q, NULL), -EINVAL);
	assert_int_equal(handle_parse("v1." POOL ".s.snap-2", &snap, NULL), 0);
	assert_int_equal(v->ops->snapshot_remove(v, &snap, NULL), 0);
	operator_volumes_free(v);
	fixture_free(f);
}

/* What cannot be made leaves nothing behind. */
static void given_up(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct volumes *v = volumes_of(f);
	struct volume_info info = { 0 };

	f->worker_rc = -ETIMEDOUT; /* nobody says what is there: nothing is begun */
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -ETIMEDOUT);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	f->worker_rc = 0;
	f->make_rc = -ETIMEDOUT; /* who knows: the record stays until somebody asks again */
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -ETIMEDOUT);
	assert_int_equal(count(f, &KIND_PV), 1);
	settle(f);
	f->make_rc = 0;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), 0);
	volume_info_done(&info);

	q.name = "u";
	f->make_rc = -ETIMEDOUT;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -ETIMEDOUT);
	f->make_rc = 0;
	f->worker_rc = -EOPNOTSUPP; /* for good: what was begun is undone as soon as that can be */
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -EOPNOTSUPP);
	f->worker_rc = 0;
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
	q.source = "v1." POOL ".d.none"; /* and what was never begun leaves nothing */
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -ENOENT);
	assert_int_equal(count(f, &KIND_PV), 1);
	q.source = NULL;

	q.name = "w";
	f->leads = false;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -EAGAIN);
	assert_int_equal(count(f, &KIND_PV), 1);
	operator_volumes_free(v);
	fixture_free(f);
}

/* ---- data that was kept ------------------------------------------------------------------------ */

/* A person deleted the record alone: a call of the same name neither destroys nor adopts the data. */
static void kept_data_stays(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct volumes *v = volumes_of(f);
	struct volume_info info = { 0 };
	struct handle id;

	assert_int_equal(create(f, &q, &id), 0);
	settle(f);
	discard(f, &KIND_PV, id.name); /* held by our finalizer yet */
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -EINPROGRESS);
	assert_true(has_volume(f, POOL, id.name));
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_true(has_volume(f, POOL, id.name));
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -EEXIST);
	assert_true(has_volume(f, POOL, id.name));
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	assert_int_equal(discard_volume(f, &id), 0);
	assert_int_equal(create(f, &q, &id), 0);
	operator_volumes_free(v);
	fixture_free(f);
}

/* What turns up between the look and the making is another's as well. */
static void found_while_making(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct volumes *v = volumes_of(f);
	struct volume_info info = { 0 };
	char name[CSI_NAME_MAX];

	csi_volume_name("v", name);
	f->make_rc = -ETIMEDOUT;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -ETIMEDOUT);
	jset(f->volumes, json_integer(GIB), POOL, name);
	f->make_rc = -EEXIST;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -EEXIST);
	settle(f);
	assert_true(has_volume(f, POOL, name));
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	operator_volumes_free(v);
	fixture_free(f);
}

/* ---- a failure at every write ------------------------------------------------------------------ */

/* One is made and stays, one is made, grown and removed; the loops run in between. */
static void life(struct fixture *f, bool settled)
{
	struct volume_request q = { .name = "stays", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct volume_request goes = { .name = "goes", .bytes = GIB, .kind = VOLUME_FILE };
	struct handle id;
	int64_t bytes;

	assert_int_equal(create(f, &q, NULL), 0);
	assert_int_equal(create(f, &goes, &id), 0);
	if (settled)
		settle(f);
	assert_int_equal(expand(f, &id, 2 * GIB, 0, &bytes), 0);
	if (settled)
		settle(f);
	assert_int_equal(discard_volume(f, &id), 0);
	settle(f);
}

static void check_life(struct fixture *f)
{
	char name[CSI_NAME_MAX];
	csi_volume_name("stays", name);
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(in_pool(f), 1);
	assert_true(has_volume(f, POOL, name));
	assert_true(phase_is(f, &KIND_PV, name, "Released"));
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
}

static void any_write_may_fail(void **state)
{
	for (int way = 0; way < 4; way++) {
		for (int n = 1 + (way & 1);; n += write_step()) {
			struct fixture *f = fixture_online();
			f->writes = 0;
			f->fail_at = n;
			f->dies = true;
			f->fail_after = way & 1;
			life(f, way & 2);
			bool reached = f->fail_at == 0 || f->failed;
			settle(f);
			check_life(f);
			fixture_free(f);
			if (!reached) {
				assert_true(n > 10);
				break;
			}
		}
	}
}

/* ---- snapshots are promised -------------------------------------------------------------------- */

static int take(struct fixture *f, const char *name, const struct handle *source,
		struct handle *ret)
{
	struct volumes *v = volumes_of(f);
	struct snapshot_info s = { 0 };
	int rc;
	do
		rc = v->ops->snapshot(v, name, source, &s, NULL);
	while (comes_again(f, rc));
	if (rc == 0 && ret)
		assert_int_equal(handle_parse(s.id, ret, NULL), 0);
	snapshot_info_done(&s);
	operator_volumes_free(v);
	return rc;
}

static int give_up_snapshot(struct fixture *f, const struct handle *id)
{
	struct volumes *v = volumes_of(f);
	int rc;
	do
		rc = v->ops->snapshot_remove(v, id, NULL);
	while (comes_again(f, rc));
	operator_volumes_free(v);
	return rc;
}

/* As large as their volume, in the next life too, and given back with them or where none was taken. */
static void snapshots_are_promised(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = 4 * GIB, .kind = VOLUME_DIRECTORY };
	struct handle id, missing, snap;

	assert_int_equal(create(f, &q, &id), 0);
	missing = id;
	snprintf(missing.name, sizeof(missing.name), "csi-none");
	assert_int_equal(take(f, "none", &missing, NULL), -ENOENT);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 4 * GIB);
	for (int i = 0; i < 2; i++)
		assert_int_equal(take(f, "one", &id, &snap), 0);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 8 * GIB);
	assert_int_equal(take(f, "two", &id, NULL), -ENOSPC); /* of ten */
	fixture_restart(f);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 8 * GIB);
	assert_int_equal(take(f, "two", &id, NULL), -ENOSPC);
	f->worker_rc = -EINVAL;
	assert_int_not_equal(give_up_snapshot(f, &snap), 0);
	f->worker_rc = 0;
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 8 * GIB);
	for (int i = 0; i < 2; i++)
		assert_int_equal(give_up_snapshot(f, &snap), 0);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 4 * GIB);
	fixture_restart(f);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 4 * GIB);
	assert_int_equal(take(f, "two", &id, NULL), 0);
	fixture_free(f);
}

/* What fails for good leaves neither a part of a snapshot nor its promise; what may still become one stays. */
static void snapshots_are_given_up(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = 4 * GIB, .kind = VOLUME_FILE };
	struct volumes *v = volumes_of(f);
	struct snapshot_info s = { 0 };
	struct handle id, snap;

	assert_int_equal(create(f, &q, &id), 0);
	f->copy_calls = 5;
	assert_int_equal(v->ops->snapshot(v, "one", &id, &s, NULL), 0);
	assert_false(s.ready);
	assert_int_equal(handle_parse(s.id, &snap, NULL), 0);
	snapshot_info_done(&s);
	f->make_rc = -ETIMEDOUT;
	assert_int_equal(v->ops->snapshot(v, "one", &id, &s, NULL), -ETIMEDOUT);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 8 * GIB);
	assert_int_equal(in_pool(f), 2);
	f->make_rc = -EBUSY; /* somebody writes to it all the time */
	assert_int_equal(v->ops->snapshot(v, "one", &id, &s, NULL), -EBUSY);
	f->make_rc = 0;
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 4 * GIB);
	assert_int_equal(in_pool(f), 1);
	assert_int_equal(v->ops->snapshot_find(v, &snap, &s, NULL), -ENOENT);
	fixture_restart(f);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 4 * GIB);
	f->copy_calls = 0;
	assert_int_equal(take(f, "one", &id, NULL), 0);
	operator_volumes_free(v);
	fixture_free(f);
}

/* ---- a name that is used again ----------------------------------------------------------------- */

static int removals;

/* In the middle of it: whoever makes or ends a volume of that name has to wait; of another, not. */
static void while_removing(struct fixture *f, const char *name)
{
	struct name_hold held;

	removals++;
	assert_false(name_try(&f->op, name, &held));
	assert_true(name_try(&f->op, "another", &held));
	name_release(&held);
}

static void make_again(struct fixture *f, struct handle *id)
{
	struct volume_request q = { .name = "again", .bytes = GIB, .kind = VOLUME_DIRECTORY };

	assert_int_equal(create(f, &q, id), 0);
	settle(f);
	f->on_remove = while_removing;
}

/* We were stopped right before the worker got its order: another leader has removed the volume, and made its successor. */
static void while_stopped(struct fixture *f, const char *name)
{
	const char *key;
	json_t *value;
	void *next;

	f->on_remove = NULL;
	json_object_foreach_safe(f->owners, next, key, value)
		json_object_set_new(f->owners, key, json_string("its-successor"));
}

/* names.c keeps one process from it; another's orders are told from ours by whose volume they mean. */
static void successor_stays(void **state)
{
	struct fixture *f = fixture_online();
	struct handle id;
	char *first = NULL;

	make_again(f, &id);
	{
		cleanup_json json_t *pv = get(f, &KIND_PV, id.name);
		first = xstrdup(object_annotation(pv, "quartermaster.storage/incarnation"));
	}
	f->on_remove = while_stopped;
	assert_int_equal(discard_volume(f, &id), 0);
	assert_true(has_volume(f, POOL, id.name));
	/* without a record: what is there is removed, whosever it was */
	f->on_remove = NULL;
	assert_int_equal(discard_volume(f, &id), 0);
	assert_false(has_volume(f, POOL, id.name));
	/* each of that name is another */
	make_again(f, &id);
	cleanup_json json_t *pv = get(f, &KIND_PV, id.name);
	assert_string_not_equal(object_annotation(pv, "quartermaster.storage/incarnation"), first);
	/* and by the volume loop */
	f->on_remove = while_stopped;
	patch(f, &KIND_PV, id.name,
	      json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Delete"));
	settle(f);
	assert_null(f->on_remove);
	assert_true(has_volume(f, POOL, id.name));
	free(first);
	fixture_free(f);
}

/* The volume was made by a version that left no mark on it; its successor has one. */
static void successor_of_unmarked_stays(void **state)
{
	struct fixture *f = fixture_online();
	struct handle id;

	make_again(f, &id);
	patch(f, &KIND_PV, id.name,
	      json_pack("{s:{s:{s:n}}}", "metadata", "annotations",
			"quartermaster.storage/incarnation"));
	f->on_remove = while_stopped;
	assert_int_equal(discard_volume(f, &id), 0);
	assert_true(has_volume(f, POOL, id.name));
	fixture_free(f);
}

/* A person deleted the record alone, and while we look for its data another leader makes a volume of that name. */
static void unrecorded_successor_stays(void **state)
{
	struct fixture *f = fixture_online();
	struct handle id;

	make_again(f, &id);
	patch(f, &KIND_PV, id.name, json_pack("{s:{s:[]}}", "metadata", "finalizers"));
	assert_int_equal(kube_delete(f->api, &KIND_PV, NULL, id.name, NULL, NULL), 0);
	fixture_restart(f);
	f->on_remove = while_stopped;
	assert_int_equal(discard_volume(f, &id), 0);
	assert_true(has_volume(f, POOL, id.name));
	fixture_free(f);
}

static struct handle succeeded;
static bool leads_again;

/* We are stopped while we read, until another leader has removed it and made its successor. */
static void while_reading(struct fixture *f, const struct kind *kind)
{
	static const char their[] = "its-successor";
	cleanup_json json_t *pv = get(f, &KIND_PV, succeeded.name);

	f->on_list = NULL;
	f->leads = leads_again;
	f->epoch += 2;
	if (pv)
		patch(f, &KIND_PV, succeeded.name,
		      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
				"quartermaster.storage/incarnation", their));
	json_object_set_new(f->owners, succeeded.name, json_string(their));
}

/* It is removed by its id, before one of its name is made, or as data that has no record. */
enum end { END_REMOVE, END_CREATE, END_UNRECORDED, ENDS };

static void prepare_end(struct fixture *f, enum end end)
{
	make_again(f, &succeeded);
	f->on_remove = NULL;
	if (end == END_CREATE)
		patch(f, &KIND_PV, succeeded.name,
		      json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Delete"));
	if (end == END_UNRECORDED) {
		patch(f, &KIND_PV, succeeded.name,
		      json_pack("{s:{s:[]}}", "metadata", "finalizers"));
		discard(f, &KIND_PV, succeeded.name);
	}
	fixture_restart(f); /* which has the ledger read */
	f->on_list = while_reading;
}

/* That we do not lead any more, or lead anew, is seen between reading whose it is and removing it. */
static void read_too_late(void **state)
{
	for (int way = 0; way < 2 * ENDS; way++) {
		struct fixture *f = fixture_online();
		struct volumes *v = volumes_of(f);
		struct volume_request q = { .name = "again", .kind = VOLUME_DIRECTORY };
		struct volume_info info = { 0 };
		struct error err = ERROR_INIT;
		enum end end = way / 2;

		prepare_end(f, end);
		leads_again = way & 1;
		int rc = end == END_CREATE ? v->ops->create(v, &q, &info, &err)
					   : v->ops->remove(v, &succeeded, &err);
		assert_int_equal(rc, -EAGAIN);
		assert_non_null(strstr(err.message, "lease"));
		assert_true(has_volume(f, POOL, succeeded.name));
		assert_int_equal(count(f, &KIND_PV), end != END_UNRECORDED);
		operator_volumes_free(v);
		fixture_free(f);
	}
}

static void used_again(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_with(name_release) struct name_hold held = { 0 };
	struct handle id;

	removals = 0;
	make_again(f, &id);
	assert_int_equal(discard_volume(f, &id), 0);
	assert_int_equal(removals, 1);
	make_again(f, &id);
	patch(f, &KIND_PV, id.name,
	      json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Delete"));
	/* a call has it: the loop leaves it alone, and comes again */
	assert_true(name_try(&f->op, id.name, &held));
	f->r.again_ms = 0;
	assert_int_equal(VOLUME_CONTROLLER.reconcile(&f->r, id.name), 0);
	assert_true(f->r.again_ms > 0 && has_volume(f, POOL, id.name));
	name_release(&held);
	assert_int_equal(VOLUME_CONTROLLER.reconcile(&f->r, id.name), 0);
	assert_int_equal(removals, 2);
	assert_false(has_volume(f, POOL, id.name));
	make_again(f, &id);
	assert_true(has_volume(f, POOL, id.name));
	assert_int_equal(ledger_promised(f->op.ledger, POOL), GIB);
	fixture_free(f);
}

/* What the node service has published is not removed under its user, with a record and without. */
static void in_use(void **state)
{
	struct fixture *f = fixture_online();
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct volumes *v = volumes_of(f);
	struct error err = ERROR_INIT;
	struct handle id;

	assert_int_equal(create(f, &q, &id), 0);
	settle(f);
	for (int recorded = 1; recorded >= 0; recorded--) {
		f->users = "it is staged at /stage";
		assert_int_equal(v->ops->remove(v, &id, &err), -EBUSY);
		assert_int_equal(grpc_code_of(-EBUSY), GRPC_FAILED_PRECONDITION);
		assert_non_null(strstr(err.message, f->users));
		f->users = NULL;
		f->users_rc = -EBADMSG;
		assert_int_equal(v->ops->remove(v, &id, &err), -EBADMSG);
		f->users_rc = 0;
		settle(f);
		assert_true(has_volume(f, POOL, id.name));
		assert_int_equal(count(f, &KIND_PV), recorded);
		if (recorded)
			discard(f, &KIND_PV, id.name);
		settle(f);
	}
	assert_int_equal(v->ops->remove(v, &id, &err), 0);
	assert_false(has_volume(f, POOL, id.name));
	operator_volumes_free(v);
	fixture_free(f);
}

/* ---- a snapshot's name that is used again ------------------------------------------------------ */

static struct handle snap_of_again; /* the snapshot */

/* What the pool's object says of it with that annotation. Caller frees. */
static char *pool_says(struct fixture *f, const char *prefix)
{
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, POOL);
	cleanup_free char *key = xasprintf("%s%s", prefix, snap_of_again.name);
	const char *text = object_annotation(pool, key);

	return text ? xstrdup(text) : NULL;
}

static void pool_is_told(struct fixture *f, const char *prefix, const char *text)
{
	cleanup_free char *key = xasprintf("%s%s", prefix, snap_of_again.name);

	patch(f, &KIND_STORAGEPOOL, POOL,
	      json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", key, text));
}

static bool snapshot_is_there(struct fixture *f)
{
	return jget(f->snapshots, POOL, snap_of_again.name);
}

static void take_again(struct fixture *f, struct handle *source)
{
	struct volume_request q = { .name = "v", .bytes = GIB, .kind = VOLUME_DIRECTORY };

	assert_int_equal(create(f, &q, source), 0);
	assert_int_equal(take(f, "again", source, &snap_of_again), 0);
}

/* What there is of it belongs to that owner. */
static void becomes(struct fixture *f, const char *owner)
{
	cleanup_free char *key = xasprintf("s.%s", snap_of_again.name);

	json_object_set_new(f->owners, key, json_string(owner));
	jset(f->snapshots, json_string(owner), POOL, snap_of_again.name, "owner");
}

/* As a version before took it. */
static void becomes_unmarked(struct fixture *f)
{
	pool_is_told(f, SNAPSHOT_INCARNATION, NULL);
	json_object_clear(f->owners);
	json_object_del(jget(f->snapshots, POOL, snap_of_again.name), "owner");
}

/* Another leader has removed it, and taken its successor. */
static void snapshot_is_succeeded(struct fixture *f)
{
	becomes(f, "its-successor");
	pool_is_told(f, SNAPSHOT_INCARNATION, "its-successor");
}

static void snapshot_while_stopped(struct fixture *f, const char *name)
{
	f->on_remove = NULL;
	snapshot_is_succeeded(f);
}

static void snapshot_while_reading(struct fixture *f, const struct kind *kind)
{
	f->on_list = NULL;
	f->leads = leads_again;
	f->epoch += 2;
	snapshot_is_succeeded(f);
}

/* Neither it nor what is promised for it goes with an order for the one before. */
static void snapshot_successor_stays(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct fixture *f = fixture_online();
		struct volumes *v = volumes_of(f);
		struct handle source;

		take_again(f, &source);
		if (way == 1)
			becomes_unmarked(f);
		if (way < 2) {
			f->on_remove = snapshot_while_stopped;
			assert_int_equal(v->ops->snapshot_remove(v, &snap_of_again, NULL), 0);
		} else {
			fixture_restart(f);
			leads_again = way == 3;
			f->on_list = snapshot_while_reading;
			assert_int_equal(v->ops->snapshot_remove(v, &snap_of_again, NULL), -EAGAIN);
			f->leads = true;
		}
		assert_true(snapshot_is_there(f));
		cleanup_free char *promised = pool_says(f, SNAPSHOT_PROMISED),
				  *is = pool_says(f, SNAPSHOT_INCARNATION);
		assert_string_equal(is, "its-successor");
		assert_string_equal(promised, "1Gi");
		/* it goes with an order for it */
		assert_int_equal(give_up_snapshot(f, &snap_of_again), 0);
		assert_false(snapshot_is_there(f));
		assert_null(pool_says(f, SNAPSHOT_INCARNATION));
		assert_null(pool_says(f, SNAPSHOT_PROMISED));
		operator_volumes_free(v);
		fixture_free(f);
	}
}

/* One that failed for good is not its successor, which is being taken by then. */
static void given_up_snapshots_successor_stays(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = volumes_of(f);
	struct snapshot_info s = { 0 };
	struct handle source;

	f->copy_calls = 9;
	take_again(f, &source);
	f->make_rc = -EBUSY;
	f->on_remove = snapshot_while_stopped;
	assert_int_equal(v->ops->snapshot(v, "again", &source, &s, NULL), -EBUSY);
	assert_null(f->on_remove);
	assert_true(snapshot_is_there(f));
	cleanup_free char *is = pool_says(f, SNAPSHOT_INCARNATION);
	assert_string_equal(is, "its-successor");
	operator_volumes_free(v);
	fixture_free(f);
}

/* What the pool's object says of it was lost, or is not true: it is found and removed all the same. */
static void snapshot_mark_is_lost(void **state)
{
	for (int way = 0; way < 3; way++) {
		struct fixture *f = fixture_online();
		struct handle source;

		take_again(f, &source);
		cleanup_free char *was = pool_says(f, SNAPSHOT_INCARNATION);
		if (way < 2) {
			pool_is_told(f, SNAPSHOT_INCARNATION, NULL);
			pool_is_told(f, SNAPSHOT_PROMISED, NULL);
		} else {
			becomes(f, "who-came-too-late");
		}
		if (way > 0) {
			struct volumes *v = volumes_of(f);
			struct snapshot_info s = { 0 };
			assert_int_equal(v->ops->snapshot(v, "again", &source, &s, NULL), 0);
			snapshot_info_done(&s);
			operator_volumes_free(v);
			cleanup_free char *is = pool_says(f, SNAPSHOT_INCARNATION);
			assert_string_equal(is, way == 1 ? was : "who-came-too-late");
			assert_int_equal(ledger_promised(f->op.ledger, POOL), 2 * GIB);
		}
		assert_int_equal(give_up_snapshot(f, &snap_of_again), 0);
		assert_false(snapshot_is_there(f));
		assert_null(pool_says(f, SNAPSHOT_INCARNATION));
		fixture_free(f);
	}
}

static void snapshot_while_removing(struct fixture *f, const char *name)
{
	cleanup_free char *key = csi_snapshot_ledger_key(POOL, name);
	struct name_hold held;

	removals++;
	assert_false(name_try(&f->op, key, &held));
}

/* Nobody takes one of a name while another is removed; and each of that name is another. */
static void snapshot_used_again(void **state)
{
	struct fixture *f = fixture_online();
	struct handle source;

	take_again(f, &source);
	cleanup_free char *first = pool_says(f, SNAPSHOT_INCARNATION);
	assert_string_equal(jstr(f->snapshots, POOL, snap_of_again.name, "owner"), first);
	assert_int_equal(take(f, "again", &source, NULL), 0);
	cleanup_free char *same = pool_says(f, SNAPSHOT_INCARNATION);
	assert_string_equal(same, first);
	removals = 0;
	f->on_remove = snapshot_while_removing;
	assert_int_equal(give_up_snapshot(f, &snap_of_again), 0);
	assert_int_equal(removals, 1);
	take_again(f, &source);
	cleanup_free char *second = pool_says(f, SNAPSHOT_INCARNATION);
	assert_string_not_equal(second, first);
	/* one of a version before is found, and goes */
	becomes_unmarked(f);
	assert_int_equal(take(f, "again", &source, NULL), 0);
	assert_int_equal(give_up_snapshot(f, &snap_of_again), 0);
	assert_false(snapshot_is_there(f));
	assert_null(pool_says(f, SNAPSHOT_PROMISED));
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_and_removed),
		cmocka_unit_test(grows),
		cmocka_unit_test(room),
		cmocka_unit_test(promised_anew),
		cmocka_unit_test(claims_are_left_alone),
		cmocka_unit_test(lists),
		cmocka_unit_test(copies),
		cmocka_unit_test(others_snapshots),
		cmocka_unit_test(given_up),
		cmocka_unit_test(in_use),
		cmocka_unit_test(kept_data_stays),
		cmocka_unit_test(found_while_making),
		cmocka_unit_test(used_again),
		cmocka_unit_test(successor_stays),
		cmocka_unit_test(successor_of_unmarked_stays),
		cmocka_unit_test(unrecorded_successor_stays),
		cmocka_unit_test(read_too_late),
		cmocka_unit_test(snapshots_are_promised),
		cmocka_unit_test(snapshots_are_given_up),
		cmocka_unit_test(snapshot_successor_stays),
		cmocka_unit_test(given_up_snapshots_successor_stays),
		cmocka_unit_test(snapshot_mark_is_lost),
		cmocka_unit_test(snapshot_used_again),
		cmocka_unit_test(any_write_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
