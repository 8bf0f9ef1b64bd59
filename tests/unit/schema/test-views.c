/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include <errno.h>

#define NOW 1700000000000 /* 2023-11-14T22:13:20Z */

static void test_default_and_prune(void **state)
{
	cleanup_json json_t *o =
		from_yaml("apiVersion: coreos.com/v1\nkind: StorageNode\n"
			  "metadata: {name: n, creationTimestamp: null, strange: 1}\n"
			  "spec: {type: glusterfs, glusterfs: {}, torus: {kept: 1}, strange: 1, "
			  "directories: null}\n"
			  "status: {agent: {planEpoch: 1, kept: 1, bricks: [{id: a, kept: 1}]}, "
			  "strange: 1}\nstrange: 1\n");
	cleanup_json json_t *expected =
		from_yaml("apiVersion: coreos.com/v1\nkind: StorageNode\nmetadata: {name: n}\n"
			  "spec: {type: glusterfs, glusterfs: {zone: 1}, torus: {kept: 1}}\n"
			  "status: {agent: {planEpoch: 1, kept: 1, bricks: [{id: a, kept: 1}]}}\n");

	schema_default(&KIND_STORAGENODE, o);
	schema_prune(&KIND_STORAGENODE, o);
	cleanup_free char *a = json_text(o), *b = json_text(expected);

	assert_string_equal(a, b);
	schema_default(&KIND_STORAGENODE, NULL);
	schema_prune(&KIND_STORAGENODE, NULL);
}

static void test_claim_defaults(void **state)
{
	cleanup_json json_t *o = from_yaml("{spec: {}}");

	schema_default(&KIND_PVC, o);
	assert_string_equal(jstr(o, "status", "phase"), "Pending");
	assert_string_equal(jstr(o, "spec", "volumeMode"), "Filesystem");
}

static void test_fields(void **state)
{
	assert_string_equal(schema_field(&KIND_STORAGENODE, "spec.glusterfs.zone")->name, "zone");
	assert_string_equal(schema_field(&KIND_STORAGENODE, "status.agent.bricks.pid")->name,
			    "pid");
	assert_string_equal(schema_field(&KIND_STORAGENODE, "metadata.labels")->name, "labels");
	assert_null(schema_field(&KIND_STORAGENODE, "spec.metadata"));
	assert_null(schema_field(&KIND_STORAGENODE, "spec.type.x"));
	assert_null(schema_field(&KIND_STORAGENODE, "spe"));
	assert_null(schema_field(&KIND_STORAGENODE, ""));
}

static void test_explain(void **state)
{
	struct error err = ERROR_INIT;
	struct buf out = { 0 };

	assert_int_equal(
		schema_explain(&KIND_STORAGENODE, "spec.glusterfs.zone", false, &out, &err), 0);
	assert_string_equal(
		out.data,
		"GROUP:      coreos.com\nKIND:       StorageNode\nVERSION:    v1\n\n"
		"FIELD: zone\t<integer>\n\nDESCRIPTION:\n"
		"    The failure zone of the node; copies of data go to different zones.\n"
		"    Default: 1\n    From 1 to 2147483647\n");
	buf_done(&out);
	assert_int_equal(schema_explain(&KIND_STORAGENODE, NULL, true, &out, &err), 0);
	assert_non_null(strstr(out.data, "\n    devices\t<[]string>\n"));
	assert_non_null(strstr(out.data, "\n    nodeSelector\t<map[string]string>\n"));
	buf_done(&out);
	assert_int_equal(schema_explain(&KIND_STORAGENODE, "spec.glusterfs.zon", false, &out, &err),
			 -ENOENT);
	assert_string_equal(
		err.message,
		"StorageNode.spec.glusterfs has no field \"zon\" (did you mean \"zone\"?)");
	assert_int_equal(schema_explain(&KIND_STORAGENODE, "xyzzy.y", false, &out, &err), -ENOENT);
	assert_string_equal(err.message, "StorageNode has no field \"xyzzy\"");
	assert_int_equal(out.len, 0);
	for (size_t i = 0; kinds[i]; i++)
		assert_int_equal(schema_explain(kinds[i], "", i % 2 == 0, &out, &err), 0);
	buf_done(&out);
}

static void expect_row(const struct kind *k, const char *yaml, const char *expected)
{
	cleanup_json json_t *items = json_pack("[o]", from_yaml(yaml));
	cleanup_json json_t *table = schema_table(k, items, "7", true, NOW);
	const json_t *row = json_array_get(json_object_get(table, "rows"), 0);
	cleanup_free char *cells = json_text(json_object_get(row, "cells"));

	assert_string_equal(cells, expected);
	assert_string_equal(jstr(table, "metadata", "resourceVersion"), "7");
	assert_string_equal(jstr(row, "object", "kind"), "PartialObjectMetadata");
	assert_string_equal(jstr(row, "object", "metadata", "name"), "a");
	assert_null(jget(row, "object", "metadata", "managedFields"));
	assert_int_equal(json_array_size(json_object_get(row, "cells")),
			 json_array_size(json_object_get(table, "columnDefinitions")));
}

#define META "metadata: {name: a, creationTimestamp: '2023-11-14T22:12:20Z', managedFields: []}\n"

static void test_rows(void **state)
{
	expect_row(
		&KIND_STORAGENODE,
		META "spec: {type: glusterfs, devices: [/dev/a, /dev/b], directories: [/c], "
		     "storageNetwork: {ips: [10.0.0.1]}, glusterfs: {cluster: x}}\n"
		     "status: {phase: Ready, nodeName: m, agent: {devices: [{state: Ready}, "
		     "{state: Refused}]}}",
		"[\"a\",\"glusterfs\",\"Ready\",\"10.0.0.1\",\"1\",\"1/3\",\"60s\",\"x\",\"m\"]");
	expect_row(&KIND_STORAGESTATUS,
		   META "spec: {type: glusterfs, status: ONLINE, storageNodes: [a, b, c]}\n"
			"status: {nodes: 3, nodesReady: 2, pools: 2, capacityBytes: 1073741824, "
			"usedBytes: 0}",
		   "[\"a\",\"glusterfs\",\"ONLINE\",\"2/"
		   "3\",2,\"1.0Gi\",\"0\",\"60s\",\"-\",\"\"]");
	expect_row(&KIND_STORAGESTATUS, META "spec: {type: glusterfs}",
		   "[\"a\",\"glusterfs\",\"OFFLINE\",\"0/0\",0,\"-\",\"-\",\"60s\",\"-\",\"\"]");
	expect_row(
		&KIND_STORAGEPOOL,
		META "spec: {volumeType: 'replicate:3', bricks: [{}, {}, {}]}\n"
		     "status: {phase: Degraded, bricks: [{online: true}, {online: false}], "
		     "healPending: 4}",
		"[\"a\",\"replicate:3\",\"Degraded\",\"1/3\",\"4\",\"-\",\"-\",\"60s\",\"\",\"\",\"\"]");
	expect_row(&KIND_PVC,
		   META "spec: {volumeName: v, storageClassName: s, volumeMode: Filesystem}\n"
			"status: {phase: Bound, accessModes: [ReadWriteMany, ReadWriteOnce], "
			"capacity: {storage: 1Gi}}",
		   "[\"a\",\"Bound\",\"v\",\"1Gi\",\"RWO,RWX\",\"s\",\"<unset>\",\"60s\","
		   "\"Filesystem\"]");
	expect_row(&KIND_PVC, "metadata: {name: a, deletionTimestamp: x}",
		   "[\"a\",\"Terminating\",\"\",\"\",\"\",\"\",\"<unset>\",\"<unknown>\",\"\"]");
	expect_row(&KIND_PV,
		   META "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "
			"persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: n, name: c}, "
			"storageClassName: s}\nstatus: {phase: Bound}",
		   "[\"a\",\"1Gi\",\"RWO\",\"Delete\",\"Bound\",\"n/"
		   "c\",\"s\",\"<unset>\",\"\",\"60s\",\"\"]");
	expect_row(&KIND_STORAGECLASS,
		   "metadata: {name: a, annotations: {storageclass.kubernetes.io/is-default-class: "
		   "'true'}}\n"
		   "provisioner: p\nreclaimPolicy: Delete\nvolumeBindingMode: Immediate",
		   "[\"a (default)\",\"p\",\"Delete\",\"Immediate\",\"false\",\"<unknown>\"]");
	expect_row(&KIND_EVENT,
		   META "type: Warning\nreason: R\nmessage: \"text\\n\"\ncount: 2\n"
			"lastTimestamp: '2023-11-14T22:13:15Z'\ninvolvedObject: {kind: "
			"StorageNode, name: n}",
		   "[\"5s\",\"Warning\",\"R\",\"storagenode/n\",\"\",\"text\",2,\"a\"]");
	expect_row(&KIND_SECRET, META "type: Opaque\ndata: {a: b, c: d}",
		   "[\"a\",\"Opaque\",\"2\",\"60s\"]");
}

static void test_rows_without_columns(void **state)
{
	cleanup_json json_t *items = json_pack("[{}, n]");
	cleanup_json json_t *table = schema_table(&KIND_POD, items, NULL, false, NOW);

	assert_int_equal(json_array_size(json_object_get(table, "columnDefinitions")), 0);
	assert_int_equal(json_array_size(json_object_get(table, "rows")), 2);
}

static void check_refs(const json_t *schemas, const json_t *value)
{
	static const char prefix[] = "#/components/schemas/";
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach ((json_t *)value, key, v) {
		if (!streq(key, "$ref")) {
			check_refs(schemas, v);
			continue;
		}
		assert_true(str_has_prefix(json_string_value(v), prefix));
		assert_non_null(json_object_get(schemas, json_string_value(v) + strlen(prefix)));
	}
	json_array_foreach (value, i, v) {
		check_refs(schemas, v);
	}
}

static void test_openapi(void **state)
{
	cleanup_json json_t *index = schema_openapi_index(), *again = schema_openapi_index();
	const json_t *paths = json_object_get(index, "paths");

	assert_int_equal(json_object_size(paths), 5);
	assert_true(str_has_prefix(jstr(paths, "apis/coreos.com/v1", "serverRelativeURL"),
				   "/openapi/v3/apis/coreos.com/v1?hash="));
	assert_true(str_has_prefix(jstr(paths, "api/v1", "serverRelativeURL"),
				   "/openapi/v3/api/v1?hash="));
	assert_true(json_equal(index, again));
	assert_null(schema_openapi("coreos.com", "v2"));
	for (size_t i = 0; kinds[i]; i++) {
		cleanup_json json_t *doc = schema_openapi(kinds[i]->group, kinds[i]->version);

		assert_non_null(doc);
		check_refs(jget(doc, "components", "schemas"), doc);
	}
}

static void test_openapi_documents(void **state)
{
	cleanup_json json_t *core = schema_openapi("", "v1"),
			    *ours = schema_openapi("coreos.com", "v1");
	const json_t *claims =
		jget(core, "paths", "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
	const json_t *node = jget(ours, "components", "schemas", "com.coreos.v1.StorageNode");
	const json_t *conditions =
		jget(core, "components", "schemas", "io.k8s.api.core.v1.PersistentVolumeClaim",
		     "properties", "status", "properties", "conditions");
	const json_t *patch = jget(claims, "patch");
	bool found = false;
	size_t i;
	json_t *p;

	assert_non_null(
		jget(patch, "requestBody", "content", "application/strategic-merge-patch+json"));
	assert_string_equal(jstr(patch, "x-kubernetes-group-version-kind", "kind"),
			    "PersistentVolumeClaim");
	json_array_foreach (jget(patch, "parameters"), i, p) {
		found = found || streq(jstr(p, "name"), "fieldValidation");
	}
	assert_true(found);
	assert_string_equal(jstr(conditions, "x-kubernetes-patch-merge-key"), "type");
	assert_string_equal(jstr(conditions, "x-kubernetes-patch-strategy"), "merge");

	assert_string_equal(
		jstr(json_array_get(json_object_get(node, "x-kubernetes-group-version-kind"), 0),
		     "kind"),
		"StorageNode");
	patch = jget(ours, "paths",
		     "/apis/coreos.com/v1/namespaces/{namespace}/storagenodes/{name}", "patch");
	assert_non_null(jget(patch, "requestBody", "content", "application/merge-patch+json"));
	assert_null(
		jget(patch, "requestBody", "content", "application/strategic-merge-patch+json"));
	assert_non_null(jget(
		ours, "paths",
		"/apis/coreos.com/v1/namespaces/{namespace}/storagenodes/{name}/status", "patch"));
	assert_int_equal(jint(node, "properties", "spec", "properties", "glusterfs", "properties",
			      "zone", "default"),
			 1);
}

static void test_discovery(void **state)
{
	cleanup_json json_t *core = schema_discovery_core_aggregated();
	cleanup_json json_t *groups = schema_discovery_groups_aggregated();
	cleanup_json json_t *plain = schema_discovery_groups();
	cleanup_json json_t *group = schema_discovery_group("coreos.com");
	cleanup_json json_t *resources = schema_discovery_resources("coreos.com", "v1");
	cleanup_json json_t *versions = schema_discovery_core();
	const json_t *node, *first = json_array_get(json_object_get(groups, "items"), 0);

	assert_string_equal(jstr(core, "apiVersion"), "apidiscovery.k8s.io/v2");
	assert_int_equal(json_array_size(json_object_get(core, "items")), 1);
	assert_int_equal(json_array_size(json_object_get(groups, "items")), 4);
	assert_string_equal(jstr(first, "metadata", "name"), "coreos.com");
	node = json_array_get(
		jget(json_array_get(json_object_get(first, "versions"), 0), "resources"), 0);
	assert_string_equal(jstr(node, "resource"), "storagenodes");
	assert_string_equal(jstr(node, "scope"), "Namespaced");
	assert_string_equal(jstr(node, "responseKind", "kind"), "StorageNode");
	assert_string_equal(json_string_value(json_array_get(jget(node, "shortNames"), 0)), "sn");
	assert_string_equal(jstr(json_array_get(jget(node, "subresources"), 0), "subresource"),
			    "status");

	assert_int_equal(json_array_size(json_object_get(plain, "groups")), 4);
	assert_string_equal(jstr(group, "preferredVersion", "groupVersion"), "coreos.com/v1");
	assert_int_equal(json_array_size(json_object_get(resources, "resources")), 6);
	assert_string_equal(jstr(versions, "kind"), "APIVersions");
	assert_null(schema_discovery_group(""));
	assert_null(schema_discovery_group("apps"));
	assert_null(schema_discovery_resources("coreos.com", "v2"));
	assert_null(schema_discovery_resources("apps", "v1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_and_prune),
		cmocka_unit_test(test_claim_defaults),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_rows_without_columns),
		cmocka_unit_test(test_openapi),
		cmocka_unit_test(test_openapi_documents),
		cmocka_unit_test(test_discovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
