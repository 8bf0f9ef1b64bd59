/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that are Gluster volumes of their own (whole.c), by claims and by CSI. */
#include "fixture.h"

#include "operator/volumes.h"
#include "operator/whole.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define POOL "gold-1"

static struct fixture *online(void)
{
	struct fixture *f = fixture_online();

	add_storage_class(f, "whole", json_pack("{s:s}", "kind", "whole"), NULL);
	return f;
}

static void clone_of(struct fixture *f, const char *name, const char *class, const char *from)
{
	cleanup_json json_t *claim =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:{s:{s:s}}, s:{s:s, s:s}}}",
			  "apiVersion", "v1", "kind", "PersistentVolumeClaim", "metadata", "name",
			  name, "namespace", "default", "spec", "storageClassName", class,
			  "accessModes", "ReadWriteMany", "resources", "requests", "storage", "1Gi",
			  "dataSource", "kind", "PersistentVolumeClaim", "name", from);

	assert_int_equal(kube_create(f->api, &KIND_PVC, claim, NULL, NULL), 0);
}

/* Its StoragePool; new reference. */
static json_t *whole_of(struct fixture *f, const char *claim)
{
	cleanup_json json_t *c = get_claim(f, claim);
	cleanup_free char *name = pv_name(c);

	return get(f, &KIND_STORAGEPOOL, name);
}

static void assert_nothing_left(struct fixture *f)
{
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	assert_int_equal(json_object_size(jget(f->volumes, POOL)), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
}

/* ---- claims ------------------------------------------------------------------------------------ */

static void made_beside_its_pool(void **state)
{
	struct fixture *f = online();

	add_claim(f, "d", "gold", "1Gi");
	add_claim(f, "w", "whole", "2Gi");
	add_claim(f, "x", "whole", "3Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "w"), *o = whole_of(f, "w"), *x = get_pv_of(f, "x");
	assert_non_null(x);
	assert_int_equal(pv_kind(pv), VOLUME_WHOLE);
	assert_int_equal(pv_bytes(pv), 2 * GIB);
	assert_true(pv_makes_sense(pv));
	assert_string_equal(object_label(pv, QM_LABEL_POOL), POOL);
	const char *export = jstr(pv, "spec", "csi", "volumeAttributes", "export");
	cleanup_free char *wanted = xasprintf("10.0.0.1:/%s", object_name(pv));
	assert_string_equal(export, wanted);
	assert_null(jget(pv, "spec", "csi", "volumeAttributes", "name"));
	assert_string_equal(jstr(pv, "spec", "csi", "volumeAttributes", "options"),
			    "backup-volfile-servers=10.0.0.2:10.0.0.3");

	assert_string_equal(pool_parent(o), POOL);
	assert_int_equal(jint(o, "spec", "sizeBytes"), 2 * GIB);
	assert_int_equal(json_array_size(jget(o, "spec", "bricks")), 3);
	assert_string_equal(jstr(o, "spec", "volumeType"), "replicate:3");
	assert_string_equal(object_label(o, QM_LABEL_POOL), POOL);
	/* it shares the pool's room, in this life and in the next */
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 6 * GIB);
	fixture_restart(f);
	add_claim(f, "big", "whole", "5Gi");
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, POOL), 6 * GIB);
	assert_true(waits(f, "big", "has left is 4"));
	/* and no volume is made in it, whoever asks for that */
	assert_null(jget(f->told, object_name(o)));
	discard(f, &KIND_PVC, "big");
	discard(f, &KIND_PVC, "w");
	discard(f, &KIND_PVC, "x");
	discard(f, &KIND_PVC, "d");
	settle(f);
	assert_nothing_left(f);
	fixture_free(f);
}

static void grows(void **state)
{
	struct fixture *f = online();

	add_claim(f, "w", "whole", "1Gi");
	settle(f);
	patch(f, &KIND_PVC, "w",
	      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests", "storage", "4Gi"));
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "w"), *o = whole_of(f, "w"), *c = get_claim(f, "w");
	assert_int_equal(pv_bytes(pv), 4 * GIB);
	assert_int_equal(jint(o, "spec", "sizeBytes"), 4 * GIB);
	cleanup_free char *key = xasprintf("w.%s", object_name(pv));
	assert_int_equal(jint(f->volumes, POOL, key), 4 * GIB);
	assert_string_equal(jstr(c, "status", "capacity", "storage"), "4Gi");
	patch(f, &KIND_PVC, "w",
	      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests", "storage", "12Gi"));
	settle(f);
	json_decref(o);
	o = whole_of(f, "w");
	assert_int_equal(jint(o, "spec", "sizeBytes"), 4 * GIB);
	fixture_free(f);
}

/* Agents take their time: the claim waits, others do not, and it leaves nothing when it goes. */
static void deleted_in_the_making(void **state)
{
	struct fixture *f = online();

	f->agents_silent = true;
	add_claim(f, "w", "whole", "1Gi");
	add_claim(f, "d", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *o = whole_of(f, "w"), *pv = get_pv_of(f, "w"), *d = get_pv_of(f, "d");
	assert_non_null(o);
	assert_null(pv);
	assert_non_null(d);
	assert_true(said(f, "Provisioning", "is being made beside pool"));
	discard(f, &KIND_PVC, "d");
	discard(f, &KIND_PVC, "w");
	settle(f);
	/* held until the volume is gone */
	cleanup_json json_t *c = get_claim(f, "w");
	assert_non_null(c);
	assert_true(json_object_size(jget(f->volumes, POOL)) == 1);
	f->agents_silent = false;
	settle(f);
	assert_nothing_left(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	fixture_free(f);
}

/* A person deletes the StoragePool: of one in the making another comes, of a volume nothing happens. */
static void deleted_by_a_person(void **state)
{
	struct fixture *f = online();

	f->agents_silent = true;
	add_claim(f, "w", "whole", "1Gi");
	settle(f);
	cleanup_json json_t *o = whole_of(f, "w"), *now = NULL, *later = NULL;
	discard(f, &KIND_STORAGEPOOL, object_name(o));
	f->agents_silent = false;
	settle(f);
	now = whole_of(f, "w");
	assert_non_null(now);
	assert_string_not_equal(object_uid(now), object_uid(o));
	cleanup_json json_t *pv = get_pv_of(f, "w");
	assert_non_null(pv);
	discard(f, &KIND_STORAGEPOOL, object_name(o));
	settle(f);
	later = whole_of(f, "w");
	assert_string_equal(object_uid(later), object_uid(now));
	assert_null(object_annotation(later, QM_ANNOTATION_EMPTY));
	assert_true(pool_serves(later));
	discard(f, &KIND_PVC, "w");
	settle(f);
	assert_nothing_left(f);
	fixture_free(f);
}

static void archived(void **state)
{
	struct fixture *f = fixture_online();

	add_storage_class(f, "kept", json_pack("{s:s}", "kind", "whole"),
			  json_pack("{s:{s:s, s:{s:s}}}", "metadata", "name", "kept", "annotations",
				    QM_ANNOTATION_RECLAIM, "archive"));
	add_claim(f, "w", "kept", "1Gi");
	settle(f);
	cleanup_json json_t *o = whole_of(f, "w");
	cleanup_free char *name = xasprintf("archived-w.%s", object_name(o));
	discard(f, &KIND_PVC, "w");
	settle(f);
	cleanup_json json_t *kept = get(f, &KIND_STORAGEPOOL, object_name(o));
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_true(has_volume(f, POOL, name));
	assert_true(pool_serves(kept) && !object_deleting(kept));
	assert_string_equal(object_annotation(kept, QM_ANNOTATION_ARCHIVED), "true");
	fixture_free(f);
}

/* Directories and whole volumes are trees: each can begin with the other's. */
static void copies(void **state)
{
	struct fixture *f = online();

	add_storage_class(f, "files", json_pack("{s:s}", "kind", "file"), NULL);
	add_claim(f, "w", "whole", "1Gi");
	add_claim(f, "d", "gold", "1Gi");
	settle(f);
	f->copy_calls = 2;
	clone_of(f, "ww", "whole", "w");
	clone_of(f, "wd", "gold", "w");
	clone_of(f, "dw", "whole", "d");
	settle(f);
	static const char *const names[] = { "ww", "wd", "dw" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_json json_t *pv = get_pv_of(f, names[i]);
		assert_non_null(pv);
	}
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 4);
	clone_of(f, "no", "files", "w");
	settle(f);
	/* the claim is refused for its access mode, or for its source */
	cleanup_json json_t *pv = get_pv_of(f, "no");
	assert_null(pv);
	/* before there is anything to copy into */
	f->agents_silent = true;
	clone_of(f, "late", "whole", "w");
	settle(f);
	discard(f, &KIND_PVC, "late");
	f->agents_silent = false;
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 4);
	fixture_free(f);
}

static void any_write_may_fail(void **state)
{
	for (int after = 0; after < 2; after++) {
		bool failed = true;

		for (int n = 1 + after; failed; n += write_step()) {
			struct fixture *f = online();

			f->fail_at = f->writes + n;
			f->fail_after = after;
			f->failed = false;
			add_claim(f, "w", "whole", "1Gi");
			settle(f);
			settle(f);
			cleanup_json json_t *pv = get_pv_of(f, "w");
			assert_non_null(pv);
			assert_int_equal(count(f, &KIND_STORAGEPOOL), 2);
			patch(f, &KIND_PVC, "w",
			      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests",
					"storage", "2Gi"));
			settle(f);
			settle(f);
			cleanup_json json_t *o = whole_of(f, "w");
			assert_int_equal(jint(o, "spec", "sizeBytes"), 2 * GIB);
			discard(f, &KIND_PVC, "w");
			settle(f);
			settle(f);
			failed = f->failed;
			assert_nothing_left(f);
			fixture_free(f);
			assert_true(failed || n > 12);
		}
	}
}

/* ---- CSI --------------------------------------------------------------------------------------- */

/* As the controller does: asked again while it is under way. */
static int create(struct fixture *f, struct volumes *v, const struct volume_request *q,
		  struct volume_info *ret)
{
	int rc;

	for (int i = 0; (rc = v->ops->create(v, q, ret, NULL)) > 0 && i < 20; i++)
		settle(f);
	return rc;
}

static int removed(struct fixture *f, struct volumes *v, const char *id)
{
	struct handle h;
	int rc;

	assert_int_equal(handle_parse(id, &h, NULL), 0);
	for (int i = 0; (rc = v->ops->remove(v, &h, NULL)) > 0 && i < 20; i++)
		settle(f);
	return rc;
}

static void by_csi(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = operator_volumes_new(&f->r);
	struct volume_info info = { 0 }, again = { 0 };
	struct volume_request q = {
		.name = "w", .bytes = GIB, .limit = 2 * GIB, .kind = VOLUME_WHOLE
	};
	struct handle id;
	int64_t bytes = 0;

	assert_int_equal(v->ops->create(v, &q, &info, NULL), 1);
	assert_int_equal(create(f, v, &q, &info), 0);
	assert_int_equal(info.bytes, GIB);
	assert_null(info.health);
	assert_int_equal(create(f, v, &q, &again), 0);
	assert_string_equal(info.id, again.id);
	assert_true(str_has_prefix(info.id, "v1." POOL ".w.csi-"));
	assert_null(jget(info.context, "name"));
	assert_int_equal(handle_parse(info.id, &id, NULL), 0);
	assert_int_equal(v->ops->expand(v, &id, 3 * GIB, 0, &bytes, NULL), 0);
	assert_int_equal(bytes, 3 * GIB);
	cleanup_json json_t *o = get(f, &KIND_STORAGEPOOL, id.name);
	assert_int_equal(jint(o, "spec", "sizeBytes"), 3 * GIB);

	/* the same name in another pool's handle is nothing */
	cleanup_free char *forged = handle_format("gold-2", VOLUME_WHOLE, id.name);
	cleanup_free char *inside = handle_format(id.name, VOLUME_DIRECTORY, "csi-1");
	assert_int_equal(removed(f, v, forged), 0);
	assert_int_equal(removed(f, v, inside), 0);
	settle(f);
	struct volume_request in = { .name = "in", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	in.pool = id.name;
	assert_int_equal(v->ops->create(v, &in, NULL, NULL), -EINVAL);
	cleanup_json json_t *still = get(f, &KIND_STORAGEPOOL, id.name);
	assert_false(object_deleting(still));

	assert_int_equal(v->ops->remove(v, &id, NULL), 1);
	assert_int_equal(removed(f, v, info.id), 0);
	assert_nothing_left(f);
	volume_info_done(&info);
	volume_info_done(&again);
	operator_volumes_free(v);
	fixture_free(f);
}

/* What was archived is nobody's to remove or to use again. */
static void archived_by_csi(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = operator_volumes_new(&f->r);
	struct volume_info info = { 0 };
	struct volume_request q = { .name = "w", .bytes = GIB, .kind = VOLUME_WHOLE };
	struct handle id;

	q.attributes.reclaim = "archive";
	assert_int_equal(create(f, v, &q, &info), 0);
	assert_int_equal(handle_parse(info.id, &id, NULL), 0);
	assert_int_equal(removed(f, v, info.id), 0);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(removed(f, v, info.id), 0);
	settle(f);
	cleanup_json json_t *o = get(f, &KIND_STORAGEPOOL, id.name);
	assert_true(o && !object_deleting(o));
	assert_int_equal(create(f, v, &q, NULL), -EEXIST);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(json_object_size(jget(f->volumes, POOL)), 1);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	volume_info_done(&info);
	operator_volumes_free(v);
	fixture_free(f);
}

/* The volume loop ends what a call began, and a name is used again only after that. */
static void name_used_again(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = operator_volumes_new(&f->r);
	struct volume_info info = { 0 };
	struct volume_request q = { .name = "w", .bytes = GIB, .kind = VOLUME_WHOLE };
	struct handle id;

	assert_int_equal(create(f, v, &q, &info), 0);
	assert_int_equal(handle_parse(info.id, &id, NULL), 0);
	cleanup_json json_t *first = get(f, &KIND_STORAGEPOOL, id.name);
	assert_int_equal(v->ops->remove(v, &id, NULL), 1);
	volume_info_done(&info);
	assert_int_equal(v->ops->create(v, &q, &info, NULL), 1);
	assert_int_equal(create(f, v, &q, &info), 0);
	cleanup_json json_t *second = get(f, &KIND_STORAGEPOOL, id.name);
	assert_string_not_equal(object_uid(first), object_uid(second));
	volume_info_done(&info);
	operator_volumes_free(v);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_beside_its_pool),
		cmocka_unit_test(grows),
		cmocka_unit_test(deleted_in_the_making),
		cmocka_unit_test(deleted_by_a_person),
		cmocka_unit_test(archived),
		cmocka_unit_test(copies),
		cmocka_unit_test(any_write_may_fail),
		cmocka_unit_test(by_csi),
		cmocka_unit_test(archived_by_csi),
		cmocka_unit_test(name_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
