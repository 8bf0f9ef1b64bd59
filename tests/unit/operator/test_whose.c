/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an object is: what we began is brought to an end, whatever becomes of the class or the pool that said so, and
 * nothing of another deployment is touched, also of one with the same name in another namespace.
 */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

/* A claim of class extra that has begun, with data in the pool that nothing but the claim knows. Caller frees. */
static char *begin_claim(struct fixture *f)
{
	add_storage_class(f, "extra", json_object(), NULL);
	add_claim(f, "c1", "extra", "1Gi");
	f->make_rc = -EIO;
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_true(object_has_finalizer(claim, QM_FINALIZER_PROVISION));
	assert_string_equal(object_annotation(claim, QM_ANNOTATION_POOL), "gold-1");
	char *volume = pv_name(claim);
	jset(f->volumes, json_integer(GIB), "gold-1", volume);
	return volume;
}

static bool is_held(struct fixture *f)
{
	cleanup_json json_t *claim = get_claim(f, "c1");

	return object_has_finalizer(claim, QM_FINALIZER_PROVISION);
}

static void annotate(struct fixture *f, const char *name, const char *value)
{
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", name, value));
}

static void class_is_made_again_for_another(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct fixture *f = fixture_online();
		cleanup_free char *volume = begin_claim(f);

		discard(f, &KIND_STORAGECLASS, "extra");
		settle(f);
		assert_true(is_held(f)); /* it may come again as it was */
		if (way)
			add_storage_class(f, "extra", json_pack("{s:s}", "deployment", "silver"),
					  NULL);
		else
			add_storage_class(f, "extra", json_object(),
					  json_pack("{s:s}", "provisioner", "example.com/other"));
		settle(f);
		assert_false(is_held(f));
		assert_false(has_volume(f, "gold-1", volume));
		assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
		fixture_free(f);
	}
}

/* Its volume was there already: it is not taken from the claim. */
static void class_is_made_again_after_the_volume(void **state)
{
	struct fixture *f = fixture_online();

	f->op.binder = false;
	add_storage_class(f, "extra", json_object(), NULL);
	add_claim(f, "c1", "extra", "1Gi");
	annotate(f, "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
	settle(f);
	assert_true(is_held(f));
	discard(f, &KIND_STORAGECLASS, "extra");
	add_storage_class(f, "extra", json_pack("{s:s}", "deployment", "silver"), NULL);
	settle(f);
	assert_false(is_held(f));
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(json_object_size(f->halves), 0);
	assert_int_equal(json_object_size(jget(f->volumes, "gold-1")), 1);
	fixture_free(f);
}

static void class_and_pool_are_gone(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_free char *volume = begin_claim(f);

	discard(f, &KIND_STORAGECLASS, "extra");
	annotate(f, QM_ANNOTATION_POOL, "gold-7");
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	fixture_free(f);
}

/* Begun by a deployment of our name in another namespace, or perhaps so: of an older version nobody knows. */
static void claim_of_our_namesake(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct fixture *f = fixture_online();
		cleanup_free char *volume = begin_claim(f);

		discard(f, &KIND_STORAGECLASS, "extra");
		if (way & 1)
			add_storage_class(f, "extra", json_pack("{s:s}", "namespace", "elsewhere"),
					  NULL);
		annotate(f, QM_ANNOTATION_NAMESPACE, way & 2 ? NULL : "elsewhere");
		if (way == 2) /* no class, no namespace, no pool */
			annotate(f, QM_ANNOTATION_POOL, "gold-7");
		discard(f, &KIND_PVC, "c1");
		settle(f);
		assert_true(is_held(f));
		assert_true(has_volume(f, "gold-1", volume));
		fixture_free(f);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class_is_made_again_for_another),
		cmocka_unit_test(class_is_made_again_after_the_volume),
		cmocka_unit_test(class_and_pool_are_gone),
		cmocka_unit_test(claim_of_our_namesake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
