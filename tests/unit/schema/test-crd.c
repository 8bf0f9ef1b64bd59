/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include "base/file.h"
#include "schema/crd.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A file of the source tree; the caller frees it. */
static char *source(const char *path)
{
	cleanup_free char *full = xasprintf(SOURCE_ROOT "/%s", path);
	struct error err = ERROR_INIT;
	char *text = NULL;

	if (file_read(full, 4 << 20, &text, NULL, &err) < 0)
		fail_msg("%s", err.message);
	return text;
}

static void checks_known(const char *where, const struct field *f)
{
	cleanup_free char *path = xasprintf("%s.%s", where, f->name);

	if (f->check && !crd_knows_check(f->check))
		fail_msg("%s has a check for which crd_rules.c has no rules", path);
	if (f->items)
		checks_known(path, f->items);
	for (const struct field *g = f->fields; g && g->name; g++)
		checks_known(path, g);
}

/* A check that the definition does not have would let through on a cluster what we refuse. */
static void test_checks(void **state)
{
	for (size_t i = 0; kinds[i]; i++)
		for (const struct field *f = kinds[i]->fields; kinds[i]->custom && f->name; f++)
			checks_known(kinds[i]->kind, f);
}

static bool has(const json_t *schema, const char *key)
{
	return json_object_get(schema, key) != NULL;
}

/* Structural, described and bounded, all the way down. */
static void walk_schema(const char *path, const json_t *schema)
{
	const char *type = jstr(schema, "type"), *key;
	json_t *inner;

	if (!type && !has(schema, "x-kubernetes-preserve-unknown-fields") &&
	    !has(schema, "x-kubernetes-int-or-string"))
		fail_msg("%s has no type", path);
	if (!jstr(schema, "description"))
		fail_msg("%s has no description", path);
	if (streq(type, "string") && !has(schema, "maxLength") && !has(schema, "enum") &&
	    !has(schema, "format"))
		fail_msg("%s has no limit", path);
	if (streq(type, "array") && !has(schema, "maxItems"))
		fail_msg("%s has no limit", path);
	if (has(schema, "additionalProperties") && !has(schema, "maxProperties"))
		fail_msg("%s has no limit", path);
	assert_false(has(schema, "$ref"));
	json_object_foreach (jget(schema, "properties"), key, inner) {
		cleanup_free char *here = xasprintf("%s.%s", path, key);
		walk_schema(here, inner);
	}
	if (has(schema, "items"))
		walk_schema(path, jget(schema, "items"));
	if (has(schema, "additionalProperties"))
		walk_schema(path, jget(schema, "additionalProperties"));
}

static const char *approval(const json_t *crd)
{
	return jstr(crd, "metadata", "annotations", "api-approved.kubernetes.io");
}

static void test_structural(void **state)
{
	for (size_t i = 0; kinds[i]; i++) {
		cleanup_json json_t *crd = kinds[i]->custom ? schema_crd(kinds[i]) : NULL;
		const json_t *version = json_array_get(jget(crd, "spec", "versions"), 0);
		const json_t *root = jget(version, "schema", "openAPIV3Schema");

		if (!crd)
			continue;
		for (const struct field *f = kinds[i]->fields; f->name; f++)
			walk_schema(f->name, jget(root, "properties", f->name));
		assert_int_equal(jget(version, "subresources", "status") != NULL,
				 kinds[i]->has_status);
		assert_string_equal(jstr(crd, "spec", "scope"),
				    kinds[i]->namespaced ? "Namespaced" : "Cluster");
		if (kinds[i]->shared) { /* its group is protected */
			assert_true(str_has_prefix(approval(crd), "unapproved, "));
			continue;
		}
		assert_true(json_array_size(jget(version, "additionalPrinterColumns")) >= 7);
	}
}

/* What may not change is asked of the section, so that removing it is refused too. */
static void test_immutable(void **state)
{
	cleanup_json json_t *crd = schema_crd(&KIND_STORAGENODE);
	const json_t *rules =
		jget(json_array_get(jget(crd, "spec", "versions"), 0), "schema", "openAPIV3Schema",
		     "properties", "spec", "x-kubernetes-validations");
	bool type = false, cluster = false;
	size_t i;
	json_t *rule;

	json_array_foreach (rules, i, rule) {
		type = type || streq(jstr(rule, "fieldPath"), ".type");
		cluster = cluster ||
			  (streq(jstr(rule, "fieldPath"), ".glusterfs.cluster") &&
			   streq(jstr(rule, "rule"),
				 "!(has(oldSelf.glusterfs) && has(oldSelf.glusterfs.cluster)) || "
				 "(has(self.glusterfs) && has(self.glusterfs.cluster) && "
				 "self.glusterfs.cluster == oldSelf.glusterfs.cluster)"));
	}
	assert_true(type && cluster);
}

/* The same file is put to a real API server by tests/cluster/crd.sh. */
static void test_refused(void **state)
{
	cleanup_free char *text = source("tests/unit/schema/refused.yaml");
	struct yaml_docs docs = { 0 };
	struct error err = ERROR_INIT;

	assert_int_equal(yaml_parse(text, strlen(text), "refused.yaml", &docs, &err), 0);
	assert_true(docs.count > 30);
	for (size_t i = 0; i < docs.count; i++) {
		const json_t *node = docs.items[i].value;
		const char *says = jstr(node, "metadata", "annotations", "says");
		struct schema_problem p = { 0 };

		if (schema_validate(&KIND_STORAGENODE, node, NULL, true, &p) == 0)
			fail_msg("accepted, instead of: %s", says);
		if (!strstr(p.error.message, says))
			fail_msg("\"%s\" does not say \"%s\"", p.error.message, says);
	}
	yaml_docs_done(&docs);
}

/* An operator replaces only what has a lower number, so that a change without a new number is lost. */
static void test_version(void **state)
{
	cleanup_free char *ours = schema_crds_yaml(false), *shared = schema_crds_yaml(true);
	uint64_t hash = XXH64(shared, strlen(shared), XXH64(ours, strlen(ours), 0));

	if (CRD_SCHEMA_VERSION != KNOWN_VERSION || hash != KNOWN_HASH)
		fail_msg("the definitions have changed (hash 0x%016llx): once a version has been "
			 "released, raise CRD_SCHEMA_VERSION; then write both down in meson.build",
			 (unsigned long long)hash);
}

static void test_committed(void **state)
{
	cleanup_free char *made = schema_crds_yaml(false), *committed = source("deploy/crds.yaml");
	cleanup_free char *shared = schema_crds_yaml(true);
	cleanup_free char *snapshots = source("deploy/snapshot-crds.yaml");

	if (!streq(made, committed))
		fail_msg("deploy/crds.yaml is old; run: quartermaster crds > deploy/crds.yaml");
	if (!streq(shared, snapshots))
		fail_msg("deploy/snapshot-crds.yaml is old; run: quartermaster crds --snapshots > "
			 "deploy/snapshot-crds.yaml");
}

static void test_docs(void **state)
{
	cleanup_free char *page = source("docs/resources.md");
	const char *begin = strstr(page, "-->\n\n");
	struct buf made = { 0 };

	schema_markdown(&made);
	assert_non_null(begin);
	if (!streq(begin + strlen("-->\n\n"), made.data))
		fail_msg("docs/resources.md is old; put what `quartermaster explain --markdown` "
			 "prints behind its last comment");
	buf_done(&made);
}

/* A column that a cluster reads holds what the embedded API shows. */
static void test_display(void **state)
{
	cleanup_json json_t *pool = from_yaml("metadata: {name: a}\n"
					      "spec: {bricks: [{id: a}, {id: b}, {id: c}]}\n"
					      "status: {bricks: [{online: true}], healPending: -1, "
					      "capacityBytes: 1073741824}");
	cleanup_json json_t *display = schema_display(&KIND_STORAGEPOOL, pool);
	cleanup_json json_t *wanted =
		from_yaml("{bricks: 1/3, heal: '-', capacity: 1.0Gi, used: '-'}");

	assert_true(json_equal(display, wanted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),	  cmocka_unit_test(test_structural),
		cmocka_unit_test(test_immutable), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_version),	  cmocka_unit_test(test_committed),
		cmocka_unit_test(test_docs),	  cmocka_unit_test(test_display),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
