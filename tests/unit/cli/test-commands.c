/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include "api/store.h"
#include "base/file.h"

#include <errno.h>

/* The verbs against the real store, in memory. */
struct fixture {
	struct store *store;
	struct session session;
	char dir[32];
	char *out, *said; /* of the last command */
	size_t out_len;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct store_options options = { .path = ":memory:", .clock = &clock_real };

	assert_int_equal(store_open(&options, &f->store, NULL), 0);
	assert_int_equal(store_bootstrap(f->store, NULL), 0);
	f->session.kube = store_client(f->store, "quartermaster");
	f->session.ns = xstrdup("default");
	strcpy(f->dir, "/tmp/test-cli-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	session_done(&f->session);
	store_close(f->store);
	free(f->out);
	free(f->said);
	assert_int_equal(remove_tree(f->dir, NULL), 0);
	free(f);
	return 0;
}

#define WORDS_MAX 12

static int run(struct fixture *f, const char *line)
{
	char text[512], *argv[WORDS_MAX + 1];
	int argc = 0, code;
	struct capture c;
	struct args a;

	free(f->out);
	free(f->said);
	f->session.out = open_memstream(&f->out, &f->out_len);
	(void)snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok(text, " "); w && argc < WORDS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	c = capture_begin();
	code = args_parse(verb_find(argv[0]), argc, argv, &a);
	if (code == QM_OK) {
		code = a.verb->command(&f->session, &a);
		args_done(&a);
	}
	f->said = capture_end(c);
	(void)fclose(f->session.out);
	return code;
}

/* Runs "VERB … -f FILE" with the text in FILE. */
static int run_with(struct fixture *f, const char *line, const char *text)
{
	cleanup_free char *path = xasprintf("%s/in.yaml", f->dir),
			  *full = xasprintf("%s -f %s", line, path);

	assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
	return run(f, full);
}

#define CLAIM(name, size)                                                                          \
	"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: " name                    \
	"\nspec:\n  accessModes: [ReadWriteOnce]\n  resources:\n    requests:\n      "             \
	"storage: " size "\n"

static void test_apply(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply --dry-run", CLAIM("a", "1Gi")), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a created (dry run)\n");
	assert_int_equal(run(f, "get pvc a"), QM_NOT_FOUND);
	assert_int_equal(run_with(f, "apply", CLAIM("a", "1Gi")), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a created\n");
	assert_int_equal(run_with(f, "apply", CLAIM("a", "1Gi")), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a unchanged\n");
	assert_int_equal(run_with(f, "apply --dry-run", CLAIM("a", "2Gi")), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a configured (dry run)\n");
	assert_int_equal(run_with(f, "apply", CLAIM("a", "2Gi")), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a configured\n");
}

static void expect_refusal(struct fixture *f, const char *text, int code, const char *said)
{
	cleanup_free char *full = xasprintf("%s/in.yaml:%s\n", f->dir, said);

	assert_int_equal(run_with(f, "apply", text), code);
	assert_string_equal(f->said, full);
	assert_string_equal(f->out ? f->out : "", "");
}

static void test_apply_wrong_lines(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *twice =
		xasprintf("14: metadata.name: PersistentVolumeClaim \"a\" is declared already, at "
			  "%s/in.yaml:1",
			  f->dir);

	/* one that is wrong keeps the others back */
	expect_refusal(f, CLAIM("good", "1Gi") "---\n" CLAIM("bad", "-1Gi"), QM_FAILED,
		       "19: spec.resources.requests.storage: must not be negative");
	assert_int_equal(run(f, "get pvc good"), QM_NOT_FOUND);
	expect_refusal(f, CLAIM("a", "1Gi") "---\n" CLAIM("a", "1Gi"), QM_FAILED, twice);
	expect_refusal(f, "apiVersion: v1\nkind: PersistentVolumeClam\n", QM_FAILED,
		       "2: kind: \"PersistentVolumeClam\" is unknown (did you mean "
		       "\"PersistentVolumeClaim\"?)");
	expect_refusal(f, "apiVersion: coreos.com/v2\nkind: StorageNode\n", QM_FAILED,
		       "1: apiVersion: \"coreos.com/v2\" is not served for StorageNode; use "
		       "coreos.com/v1");
	expect_refusal(f, "\n", QM_FAILED, "1: holds no object");
	expect_refusal(f,
		       "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  "
		       "metadata:\n"
		       "    name: x\n  data:\n    a: 1\n",
		       QM_FAILED, "9: data.a: must be a string, not a number");
	assert_int_equal(run_with(f, "apply", CLAIM("a", "2Gi")), QM_OK);
	expect_refusal(f, CLAIM("a", "1Gi"), QM_REFUSED,
		       "9: spec.resources.requests.storage: cannot shrink; a claim can only grow");
	assert_int_equal(run(f, "apply"), QM_USAGE);
	assert_int_equal(run(f, "apply -f /nonexistent.yaml"), QM_FAILED);
	assert_non_null(strstr(f->said, "/nonexistent.yaml"));
}

static void test_get(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run(f, "get pvc"), QM_OK);
	assert_string_equal(f->said, "There are no persistentvolumeclaims in namespace default.\n");
	assert_int_equal(run_with(f, "apply", CLAIM("a", "1Gi") "---\n" CLAIM("b", "1Gi")), QM_OK);
	assert_int_equal(run(f, "get pvc -o name"), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a\npersistentvolumeclaim/b\n");
	assert_int_equal(run(f, "get persistentvolumeclaims a"), QM_OK);
	assert_true(str_has_prefix(f->out, "NAME   STATUS    VOLUME   CAPACITY   ACCESS MODES"));
	assert_non_null(strstr(f->out, "\na      Pending"));
	assert_null(strstr(f->out, "\nb "));
	assert_int_equal(run(f, "get pvc -A"), QM_OK);
	assert_non_null(strstr(f->out, "\ndefault     b      Pending"));
	assert_int_equal(run(f, "get pvc b -o json"), QM_OK);
	cleanup_json json_t *o = json_loads(f->out, 0, NULL);

	assert_string_equal(jstr(o, "metadata", "name"), "b");
	assert_null(jget(o, "metadata", "managedFields"));
	assert_int_equal(run(f, "get pvc -o yaml"), QM_OK);
	assert_true(str_has_prefix(f->out, "apiVersion: v1\nkind: List\n"));
	assert_int_equal(run(f, "get pvc -o toml"), QM_USAGE);
	assert_int_equal(run(f, "get pvx"), QM_USAGE);
	assert_string_equal(f->said,
			    "quartermaster: there is no kind \"pvx\"; did you mean \"pvc\"?\n");
	assert_int_equal(run(f, "get pvc -A a"), QM_USAGE);
}

static void test_describe(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply",
				  "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: "
				  "{key: hunter22}\n"),
			 QM_OK);
	assert_int_equal(run(f, "describe secret s"), QM_OK);
	assert_non_null(strstr(
		f->out, "Name:         s\nNamespace:    default\nKind:         Secret (v1)\n"));
	assert_non_null(strstr(f->out, "Events: none\n"));
	assert_null(strstr(f->out, "hunter22"));
	assert_null(strstr(f->out, "aHVudGVyMjI"));
	assert_int_equal(run(f, "describe secret t"), QM_NOT_FOUND);
}

static void test_delete(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply", CLAIM("a", "1Gi") "---\n" CLAIM("b", "1Gi")), QM_OK);
	assert_int_equal(run(f, "delete pvc a"), QM_OK);
	assert_true(str_has_prefix(f->out, "persistentvolumeclaim/a deleted ("));
	assert_int_equal(run(f, "delete pvc a"), QM_NOT_FOUND);
	assert_int_equal(run(f, "delete pvc a --ignore-not-found"), QM_OK);
	assert_int_equal(run_with(f, "delete --wait=false", CLAIM("b", "1Gi")), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/b deleted\n");
	assert_int_equal(run(f, "delete"), QM_USAGE);
	assert_int_equal(run(f, "delete pvc"), QM_USAGE);
}

static void test_delete_held(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply",
				  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, "
				  "finalizers: [example.com/hold]}\n"),
			 QM_OK);
	assert_int_equal(run(f, "delete configmap c --timeout=50ms"), QM_TIMED_OUT);
	assert_non_null(strstr(f->out, "configmap/c deleting: held by example.com/hold\n"));
	assert_non_null(strstr(
		f->said, "configmap/c is deleted but still there: held by example.com/hold;"));
}

static void test_wait(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply", CLAIM("a", "1Gi")), QM_OK);
	assert_int_equal(run(f, "wait pvc a --for=phase=Pending"), QM_OK);
	assert_string_equal(f->out, "persistentvolumeclaim/a is phase=Pending\n");
	assert_int_equal(run(f, "wait pvc a --for=phase=Bound --timeout=20ms"), QM_TIMED_OUT);
	assert_string_equal(f->said, "quartermaster: timed out waiting for phase=Bound of "
				     "persistentvolumeclaim/a: phase "
				     "is Pending\n");
	assert_int_equal(run(f, "wait pvc a --for=condition=Ready --timeout=20ms"), QM_TIMED_OUT);
	assert_int_equal(run(f, "wait pvc x --for=delete"), QM_OK);
	assert_int_equal(run(f, "wait pvc x --for=phase=Bound --timeout=20ms"), QM_TIMED_OUT);
	assert_string_equal(f->said, "quartermaster: timed out waiting for phase=Bound of "
				     "persistentvolumeclaim/x: there "
				     "is no persistentvolumeclaim/x\n");
	assert_int_equal(run(f, "wait pvc a --for=rain"), QM_USAGE);
	assert_int_equal(run(f, "wait pvc a"), QM_USAGE);
}

#define NODE(name, last)                                                                           \
	"apiVersion: coreos.com/v1\nkind: StorageNode\nmetadata: {name: " name                     \
	"}\nspec:\n  type: glusterfs\n"                                                            \
	"  storageNetwork: {ips: [10.0.0." last                                                    \
	"]}\n  devices: [/dev/vdb]\n  glusterfs: {zone: " last "}\n"

/* The next number, as the operator gives it: not the first that is free. */
static void test_plan_numbers(void **state)
{
	static const char nodes[] = NODE("n1", "1") "---\n" NODE("n2", "2") "---\n" NODE("n3", "3");
	struct fixture *f = *state;
	cleanup_json json_t *number = json_pack("{s:{s:i}}", "status", "lastPoolNumber", 6);

	assert_int_equal(run_with(f, "apply",
				  "apiVersion: coreos.com/v1\nkind: StorageStatus\n"
				  "metadata: {name: demo}\nspec: {type: glusterfs}\n"),
			 QM_OK);
	assert_int_equal(kube_patch(f->session.kube, &KIND_STORAGESTATUS, "default", "demo",
				    "status", KUBE_PATCH_MERGE, number, NULL, NULL),
			 0);
	assert_int_equal(run_with(f, "plan", nodes), QM_OK);
	assert_non_null(strstr(f->out, "pool demo-7: "));
}

static void test_plan_and_status(void **state)
{
	static const char nodes[] = NODE("n1", "1") "---\n" NODE("n2", "2") "---\n" NODE("n3", "3");
	struct fixture *f = *state;

	assert_int_equal(run(f, "status"), QM_OK);
	assert_true(str_has_prefix(f->out, "No deployment is there yet; run: quartermaster up\n"));
	/* as if: a pool of three is planned, and nothing is stored */
	assert_int_equal(run_with(f, "plan", nodes), QM_OK);
	assert_non_null(strstr(f->out, "Plan for demo (replicate:3)\n"));
	assert_non_null(strstr(f->out, "\nSteps:\n  1. "));
	assert_non_null(strstr(f->out, "taken to be usable"));
	assert_int_equal(run(f, "get sn n1"), QM_NOT_FOUND);
	assert_int_equal(run_with(f, "apply", nodes), QM_OK);
	assert_int_equal(run(f, "plan"), QM_OK);
	assert_non_null(strstr(f->out, "\nSteps: none"));
	assert_int_equal(run(f, "plan -o json"), QM_OK);
	cleanup_json json_t *plan = json_loads(f->out, 0, NULL);

	assert_true(json_is_array(json_object_get(plan, "steps")));
	assert_int_equal(run(f, "plan --volume-type=nonsense"), QM_FAILED);
	assert_int_equal(run(f, "status"), QM_OK);
	assert_non_null(
		strstr(f->out, "\n  n1     Pending   10.0.0.1   1      /dev/vdb   Unknown   -"));
	assert_int_equal(run(f, "status -o json"), QM_OK);
	cleanup_json json_t *status = json_loads(f->out, 0, NULL);

	assert_int_equal(json_array_size(json_object_get(status, "nodes")), 3);
}

#define DEPLOYMENT(name)                                                                           \
	"apiVersion: coreos.com/v1\nkind: StorageStatus\nmetadata: {name: " name                   \
	"}\nspec: {type: glusterfs, glusterfs: {volumeType: none}}\n"

/* How many findings of the plan have that reason. */
static int count_findings(const struct fixture *f, const char *reason)
{
	cleanup_json json_t *plan = json_loads(f->out, 0, NULL);
	int count = 0;
	size_t i;
	json_t *o;

	assert_non_null(plan);
	json_array_foreach (jget(plan, "findings"), i, o)
		count += streq(jstr(o, "reason"), reason);
	return count;
}

static size_t count_pools(const struct fixture *f)
{
	cleanup_json json_t *plan = json_loads(f->out, 0, NULL);

	return json_array_size(jget(plan, "pools"));
}

/* The same nodes as the operator: a label decides, and without one only the only deployment has it. */
static void test_plan_nodes_of_several(void **state)
{
	static const char nodes[] = NODE("n1", "1") "---\n" NODE("n2", "2");
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply", DEPLOYMENT("a")), QM_OK);
	assert_int_equal(run_with(f, "plan -o json", nodes), QM_OK);
	assert_int_equal(count_pools(f), 2);
	assert_int_equal(run_with(f, "apply", DEPLOYMENT("b")), QM_OK);
	assert_int_equal(run_with(f, "plan -o json --deployment=a", nodes), QM_OK);
	assert_int_equal(count_pools(f), 0);
	assert_int_equal(count_findings(f, "Ambiguous"), 2);
	/* as if it were labelled */
	assert_int_equal(
		run_with(f, "plan -o json --deployment=a",
			 "apiVersion: coreos.com/v1\nkind: StorageNode\nmetadata: {name: n1, labels: "
			 "{quartermaster.storage/deployment: a}}\nspec:\n  type: glusterfs\n  "
			 "storageNetwork: {ips: [10.0.0.1]}\n  devices: [/dev/vdb]\n"),
		QM_OK);
	assert_int_equal(count_pools(f), 1);
	assert_int_equal(count_findings(f, "Ambiguous"), 0);
}

#define POOL(name, label)                                                                          \
	"apiVersion: coreos.com/v1\nkind: StoragePool\nmetadata: {name: " name ", labels: {" label \
	"}}\nspec: {type: glusterfs, deployment: a, cluster: c, volumeType: none, epoch: 1, "      \
	"bricks: [{id: b-000000000001, node: gone, device: /dev/vdb, address: 10.0.0.1, path: "    \
	"/b}]}\n"
#define VOLUME(name, ns, pool)                                                                     \
	"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " name                          \
	", labels: {quartermaster.storage/deployment: a, quartermaster.storage/namespace: " ns     \
	", quartermaster.storage/pool: " pool "}}\nspec:\n  capacity: {storage: 1Gi}\n  "        \
	"accessModes: [ReadWriteMany]\n  csi: {driver: csi.quartermaster.storage, volumeHandle: " \
	"v1." pool ".d." name "}\n"

static char *action_of(const struct fixture *f, const char *pool)
{
	cleanup_json json_t *plan = json_loads(f->out, 0, NULL);
	size_t i;
	json_t *o;

	json_array_foreach (jget(plan, "pools"), i, o)
		if (streq(jstr(o, "name"), pool))
			return xstrdup(jstr(o, "action"));
	return xstrdup("none");
}

static void expect_action(const struct fixture *f, const char *pool, const char *action)
{
	cleanup_free char *got = action_of(f, pool);

	assert_string_equal(got, action);
}

/* The same pools, and as many volumes in them as the operator counts: a namesake's in another namespace are not ours. */
static void test_plan_volumes_of_namesakes(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_with(f, "apply", DEPLOYMENT("a")), QM_OK);
	assert_int_equal(run_with(f, "apply",
				  POOL("a-1", "quartermaster.storage/deployment: a") "---\n" POOL(
					  "odd", "x: y")),
			 QM_OK);
	assert_int_equal(run(f, "plan -o json"), QM_OK);
	expect_action(f, "a-1", "delete");
	expect_action(f, "odd", "none");
	assert_int_equal(count_findings(f, "Odd"), 0);
	assert_int_equal(run_with(f, "apply", VOLUME("pvc-1", "other", "a-1")), QM_OK);
	assert_int_equal(run(f, "plan -o json"), QM_OK);
	expect_action(f, "a-1", "delete");
	assert_int_equal(run_with(f, "apply", VOLUME("pvc-2", "default", "a-1")), QM_OK);
	assert_int_equal(run(f, "plan -o json"), QM_OK);
	expect_action(f, "a-1", "keep");
}

static void test_bundle(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *line = xasprintf("support-bundle -o %s/b.tar.gz", f->dir);
	cleanup_free char *path = xasprintf("%s/b.tar.gz", f->dir),
			  *log = xasprintf("%s/x.log", f->dir);
	struct error err = ERROR_INIT;

	assert_int_equal(setenv("QM_STATE_DIR", f->dir, 1), 0);
	assert_int_equal(file_write(log, "line\n", 5, 0600, &err), 0);
	assert_int_equal(run(f, line), QM_OK);
	assert_non_null(strstr(
		f->out, "b.tar.gz: 3 files, no secrets\n")); /* namespaces, the log, versions */
	assert_int_equal(access(path, R_OK), 0);
	assert_int_equal(unsetenv("QM_STATE_DIR"), 0);
}

static void test_completion(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run(f, "completion bash"), QM_OK);
	assert_non_null(strstr(f->out, "storagenodes"));
	assert_non_null(strstr(f->out, "--dry-run"));
	assert_null(strstr(f->out, "supervise"));
	assert_int_equal(run(f, "completion zsh"), QM_OK);
	assert_int_equal(run(f, "completion fish"), QM_OK);
	assert_int_equal(run(f, "completion csh"), QM_USAGE);
	assert_int_equal(run(f, "explain storagenode.spec.type"), QM_OK);
	assert_int_equal(run(f, "explain storagenode.spec.typ"), QM_NOT_FOUND);
	assert_int_equal(run(f, "explain"), QM_OK);
	assert_int_equal(run(f, "version"), QM_OK);
	assert_string_equal(f->out, "quartermaster " QM_VERSION "\n");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_apply),  TEST(test_apply_wrong_lines),
		TEST(test_get),	   TEST(test_describe),
		TEST(test_delete), TEST(test_delete_held),
		TEST(test_wait),   TEST(test_plan_numbers), TEST(test_plan_and_status),
		TEST(test_plan_nodes_of_several), TEST(test_plan_volumes_of_namesakes),
		TEST(test_bundle), TEST(test_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
