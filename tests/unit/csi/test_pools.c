/* SPDX-License-Identifier: Apache-2.0 */
/* How pools are reached: what the operator says, what a volume says, and which of them counts. */
#include "base/file.h"
#include "base/mem.h"
#include "csi/pools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#define ID "v1.store-1.d.pvc-1"

static char dir[] = "/tmp/qm-test-pools.XXXXXX";
static struct map_entry driver = { .key = (char *)"driverVolumeType",
				   .value = (char *)"GLUSTERFS" };
static struct map_entry export = { .key = (char *)"export", .value = (char *)"gone:/store-1" };
static struct map_entry name = { .key = (char *)"name", .value = (char *)"subvol/1" };
static struct map_entry *entries[] = { &driver, &export, &name };
static const struct map context = { entries, ARRAY_SIZE(entries) };

static void write_pool(const char *pool, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, pool);

	assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
}

static const char *value(const struct placed *p, const char *key)
{
	for (size_t i = 0; i < p->context.count; i++)
		if (streq(p->context.entries[i]->key, key))
			return p->context.entries[i]->value;
	return NULL;
}

static int setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	write_pool("store-1",
		   "{\"driverVolumeType\": \"GLUSTERFS\", \"export\": \"here:/store-1\", "
		   "\"options\": \"backup-volfile-servers=there\", \"ephemeral\": true}");
	write_pool("store-2", "{\"driverVolumeType\": \"GLUSTERFS\", \"export\": \"a:/store-2\"}");
	write_pool("store-3", "{\"driverVolumeType\": \"GLUSTERFS\", \"export\": \"a:/store-3\", "
			      "\"ephemeral\": true}");
	write_pool("torn", "{\"driverVolu");
	write_pool("empty", "{}");
	return 0;
}

static int teardown(void **state)
{
	return remove_tree(dir, NULL);
}

static void test_lookup(void **state)
{
	json_t *pool = NULL;

	assert_int_equal(pool_lookup(dir, "store-1", &pool), 1);
	assert_string_equal(jstr(pool, "export"), "here:/store-1");
	json_decref(pool);
	pool = NULL;
	assert_int_equal(pool_lookup(NULL, "store-1", &pool), 0);
	assert_int_equal(pool_lookup(dir, "none", &pool), 0);
	assert_int_equal(pool_lookup(dir, "torn", &pool), 0);
	assert_int_equal(pool_lookup(dir, "empty", &pool), 0);
	/* a name comes from whoever writes a pod */
	assert_int_equal(pool_lookup(dir, "../pools/store-1", &pool), 0);
	assert_int_equal(pool_lookup(dir, "", &pool), 0);
	assert_null(pool);
}

static void test_ephemeral(void **state)
{
	struct strv names = { 0 };

	pools_ephemeral(dir, &names);
	assert_int_equal(names.count, 2);
	assert_string_equal(names.items[0], "store-1");
	assert_string_equal(names.items[1], "store-3");
	strv_done(&names);
	pools_ephemeral("/nowhere", &names);
	assert_int_equal(names.count, 0);
}

static void test_connection(void **state)
{
	cleanup_json json_t *pool = NULL, *c = NULL;

	assert_int_equal(pool_lookup(dir, "store-1", &pool), 1);
	c = pool_connection(pool, "id", "/target");
	assert_string_equal(jstr(c, "driverVolumeType"), "GLUSTERFS");
	assert_string_equal(jstr(c, "consumer"), "/target");
	assert_string_equal(jstr(c, "data", "export"), "here:/store-1");
	assert_string_equal(jstr(c, "data", "volumeId"), "id");
	assert_null(jget(c, "data", "ephemeral"));
	assert_null(jget(c, "data", "driverVolumeType"));
	assert_non_null(jget(pool, "ephemeral"));
}

/* Where the PersistentVolume's host is gone, the pool's of today counts. */
static void test_today(void **state)
{
	struct placed p;

	placed_context(dir, ID, context, NULL, false, &p);
	assert_string_equal(value(&p, "export"), "here:/store-1");
	assert_string_equal(value(&p, "options"), "backup-volfile-servers=there");
	assert_string_equal(value(&p, "name"), "subvol/1");
	assert_int_equal(p.context.count, 4);
	assert_false(p.moved);
	placed_done(&p);
	/* the request is as it came */
	assert_string_equal(export.value, "gone:/store-1");
}

/* A whole volume is one of its own on the pool's hosts. */
static void test_whole(void **state)
{
	struct map_entry own = { .key = (char *)"export", .value = (char *)"gone:/pvc-1" };
	struct map_entry *two[] = { &driver, &own };
	struct map m = { two, ARRAY_SIZE(two) };
	struct placed p;

	placed_context(dir, "v1.store-1.w.pvc-1", m, NULL, false, &p);
	assert_string_equal(value(&p, "export"), "here:/pvc-1");
	assert_string_equal(value(&p, "options"), "backup-volfile-servers=there");
	assert_null(value(&p, "name"));
	placed_done(&p);
	/* another's volume, or the pool itself, is not what the handle says */
	placed_context(dir, "v1.store-1.w.pvc-2", m, NULL, false, &p);
	assert_string_equal(value(&p, "export"), "gone:/pvc-1");
	placed_done(&p);
	placed_context(dir, "v1.store-1.w.pvc-1", context, NULL, false, &p);
	assert_string_equal(value(&p, "export"), "gone:/store-1");
	placed_done(&p);
}

/* What is connected stays where it is, until that is of no use any more. */
static void test_connected(void **state)
{
	cleanup_json json_t *record = json_pack("{s:{s:s}}", "data", "export", "before:/store-1");
	struct placed p;

	placed_context(dir, ID, context, record, false, &p);
	assert_string_equal(value(&p, "export"), "before:/store-1");
	assert_string_equal(value(&p, "options"), "backup-volfile-servers=there");
	assert_true(p.moved);
	placed_done(&p);
	placed_context(dir, ID, context, record, true, &p);
	assert_string_equal(value(&p, "export"), "here:/store-1");
	placed_done(&p);
}

static void as_it_was(const char *in, const char *id, struct map m)
{
	struct placed p;

	placed_context(in, id, m, NULL, false, &p);
	assert_int_equal(p.context.count, m.count);
	for (size_t i = 0; i < m.count; i++)
		assert_ptr_equal(p.context.entries[i], m.entries[i]);
	placed_done(&p);
}

static void test_others(void **state)
{
	struct map_entry nfs = { .key = (char *)"driverVolumeType", .value = (char *)"NFS" };
	struct map_entry other = { .key = (char *)"export", .value = (char *)"gone:/another" };
	struct map_entry options = { .key = (char *)"mountOptions", .value = (char *)"ro" };

	as_it_was(NULL, ID, context);
	as_it_was("/nowhere", ID, context);
	as_it_was(dir, "static-1", context);
	as_it_was(dir, "v1.store-9.d.pvc-1", context);
	as_it_was(dir, "v1.torn.d.pvc-1", context);
	as_it_was(dir, ID, (struct map){ (struct map_entry *[]){ &nfs, &export }, 2 });
	as_it_was(dir, ID, (struct map){ (struct map_entry *[]){ &driver, &other }, 2 });
	as_it_was(dir, ID, (struct map){ (struct map_entry *[]){ &driver, &export, &options }, 3 });
	as_it_was(dir, ID, (struct map){ NULL, 0 });
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),	   cmocka_unit_test(test_ephemeral),
		cmocka_unit_test(test_connection), cmocka_unit_test(test_today),
		cmocka_unit_test(test_whole),	   cmocka_unit_test(test_connected),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
