/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include "api/store.h"
#include "cli/claim.h"

/* Which servers a volume is mounted from, by what the API says of its pool now. */
struct fixture {
	struct store *store;
	struct session session;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct store_options options = { .path = ":memory:", .clock = &clock_real };

	assert_int_equal(store_open(&options, &f->store, NULL), 0);
	assert_int_equal(store_bootstrap(f->store, NULL), 0);
	f->session.kube = store_client(f->store, "quartermaster");
	f->session.ns = xstrdup("default");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	session_done(&f->session);
	store_close(f->store);
	free(f);
	return 0;
}

static void make_pool(struct fixture *f, const char *ns, const char *name, const char *deployment,
		      const char *address)
{
	cleanup_json json_t *space = json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind",
					       "Namespace", "metadata", "name", ns);
	cleanup_json json_t *pool = json_pack(
		"{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s, s:s, s:s, s:i, s:[{s:s, s:s, s:s, "
		"s:s, s:s}]}}",
		"apiVersion", "coreos.com/v1", "kind", "StoragePool", "metadata", "name", name,
		"namespace", ns, "labels", "quartermaster.storage/deployment", deployment, "spec",
		"type", "glusterfs", "deployment", deployment, "cluster", "c", "volumeType", "none",
		"epoch", 1, "bricks", "id", "b-000000000001", "node", "n", "device", "/dev/vdb",
		"address", address, "path", "/b");
	struct error err = ERROR_INIT;

	kube_create(f->session.kube, &KIND_NAMESPACE, space, NULL, NULL);
	if (kube_create(f->session.kube, &KIND_STORAGEPOOL, pool, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

/* A volume of pool store-1 as it was made when the pool was on 192.0.2.1. */
static json_t *volume(char kind, const char *ns)
{
	json_t *pv = json_pack("{s:{s:s, s:{s:s, s:s, s:s*}}, s:{s:{s:o}}}", "metadata", "name",
			       "pvc-1", "labels", "quartermaster.storage/pool", "store-1",
			       "quartermaster.storage/deployment", "store",
			       "quartermaster.storage/namespace", ns, "spec", "csi", "volumeHandle",
			       json_sprintf("v1.store-1.%c.pvc-1", kind));
	json_t *attributes =
		json_pack("{s:s, s:s, s:s, s:s}", "driverVolumeType", "GLUSTERFS", "export",
			  kind == 'w' ? "192.0.2.1:/pvc-1" : "192.0.2.1:/store-1", "options", "",
			  "volumeId", "pvc-1");

	(void)jset(pv, attributes, "spec", "csi", "volumeAttributes");
	return pv;
}

static void expect_export(struct fixture *f, const json_t *pv, const char *export)
{
	cleanup_free char *text = claim_connection(&f->session, pv, "/mnt");
	cleanup_json json_t *info = json_loads(text, 0, NULL);

	assert_string_equal(jstr(info, "export"), export);
}

static void test_moved(void **state)
{
	struct fixture *f = *state;
	cleanup_json json_t *dir = volume('d', "one"), *whole = volume('w', "one");

	make_pool(f, "one", "store-1", "store", "192.0.2.7");
	expect_export(f, dir, "192.0.2.7:/store-1");
	/* a whole volume is a Gluster volume of its own: never the root of its parent */
	expect_export(f, whole, "192.0.2.7:/pvc-1");
}

/* Two deployments of one name, in two namespaces, have pools of one name. */
static void test_namesake(void **state)
{
	struct fixture *f = *state;
	cleanup_json json_t *pv = volume('d', "two"), *unsaid = volume('d', NULL),
			    *gone = volume('d', "three");

	make_pool(f, "one", "store-1", "store", "192.0.2.7");
	/* versions before wrote no namespace: then it is the only one */
	expect_export(f, unsaid, "192.0.2.7:/store-1");
	make_pool(f, "two", "store-1", "store", "192.0.2.8");
	expect_export(f, pv, "192.0.2.8:/store-1");
	expect_export(f, unsaid, "192.0.2.1:/store-1");
	expect_export(f, gone, "192.0.2.1:/store-1");
}

/* What has only the label of a pool, but is not of it, is as a person wrote it. */
static void test_not_of_the_pool(void **state)
{
	struct fixture *f = *state;
	cleanup_json json_t *other = volume('d', "one"), *odd = volume('d', "one");

	make_pool(f, "one", "store-1", "store", "192.0.2.7");
	(void)jset(other, json_string("192.0.2.1:/other"), "spec", "csi", "volumeAttributes",
		   "export");
	(void)jset(odd, json_string("v1.store-2.d.pvc-1"), "spec", "csi", "volumeHandle");
	expect_export(f, other, "192.0.2.1:/other");
	expect_export(f, odd, "192.0.2.1:/store-1");
}

static char *options_of(struct fixture *f, const json_t *pv)
{
	cleanup_free char *text = claim_connection(&f->session, pv, "/mnt");
	cleanup_json json_t *info = text ? json_loads(text, 0, NULL) : NULL;

	return info ? xstrdup(jstr(info, "options")) : NULL;
}

static void expect_options(struct fixture *f, char kind, const char *flags, const char *expected)
{
	cleanup_json json_t *pv = volume(kind, "one");
	cleanup_free char *options = NULL;

	(void)jset(pv, json_loads(flags, 0, NULL), "spec", "mountOptions");
	options = options_of(f, pv);
	if (expected)
		assert_string_equal(options, expected);
	else
		assert_null(options);
}

/* What the class says of mounts holds here as on nodes; flags of any mount are not the client's. */
static void test_mount_options(void **state)
{
	struct fixture *f = *state;

	expect_options(f, 'd', "[\"attribute-timeout=1,noexec\", \"fopen-keep-cache\"]",
		       "attribute-timeout=1,fopen-keep-cache");
	expect_options(f, 'w', "[\"entry-timeout=5\"]", "entry-timeout=5");
	expect_options(f, 'w', "[]", "");
	/* of a file these are its own file system's */
	expect_options(f, 'f', "[\"discard\"]", "");
	expect_options(f, 'd', "[\"remount\"]", NULL);
	make_pool(f, "one", "store-1", "store", "192.0.2.7");
	expect_options(f, 'd', "[\"entry-timeout=5\"]", "entry-timeout=5");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_moved),
		TEST(test_namesake),
		TEST(test_not_of_the_pool),
		TEST(test_mount_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
