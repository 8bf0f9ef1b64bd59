/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include <ctype.h>

/* Walks every table: what is forgotten in one is found here. */

static const struct field *named(const struct field *fields, const char *name)
{
	for (; fields->name; fields++)
		if (streq(fields->name, name))
			return fields;
	return NULL;
}

static void walk(const char *where, const struct field *f)
{
	cleanup_free char *path = xasprintf("%s.%s", where, f->name);

	if (!f->help || !f->help[0] || f->help[strlen(f->help) - 1] == ' ')
		fail_msg("%s has no help", path);
	if ((f->type == FIELD_OBJECT) != (f->fields != NULL))
		fail_msg("%s: fields do not fit its type", path);
	if ((f->type == FIELD_ARRAY || f->type == FIELD_MAP) != (f->items != NULL))
		fail_msg("%s: items do not fit its type", path);
	if (f->values && f->type != FIELD_STRING)
		fail_msg("%s: values of something that is no string", path);
	if (f->list_map_key && (!f->items->fields || !named(f->items->fields, f->list_map_key)))
		fail_msg("%s: its items have no %s", path, f->list_map_key);
	if (f->set && f->items->type != FIELD_STRING)
		fail_msg("%s: a set of something that is no string", path);
	if (f->default_json) {
		cleanup_json json_t *value = json_loads(f->default_json, JSON_DECODE_ANY, NULL);

		if (!value)
			fail_msg("%s: its default is not JSON", path);
	}
	if (f->items)
		walk(path, f->items);
	for (const struct field *g = f->fields; g && g->name; g++) {
		if (named(f->fields, g->name) != g)
			fail_msg("%s.%s stands there twice", path, g->name);
		walk(path, g);
	}
}

static void test_fields(void **state)
{
	walk("", &FIELD_METADATA);
	for (size_t i = 0; kinds[i]; i++)
		for (const struct field *f = kinds[i]->fields; f->name; f++)
			walk(kinds[i]->kind, f);
}

static void test_kinds(void **state)
{
	size_t n = 0;

	for (size_t i = 0; kinds[i]; i++, n++) {
		const struct kind *k = kinds[i];
		char version[128];

		assert_non_null(k->help);
		assert_ptr_equal(
			kind_by_gvk(kind_api_version(k, version, sizeof(version)), k->kind), k);
		assert_ptr_equal(kind_by_path(k->group, k->version, k->plural), k);
		assert_ptr_equal(kind_by_word(k->plural), k);
		assert_ptr_equal(kind_by_word(k->singular), k);
		assert_ptr_equal(kind_by_word(k->kind), k);
		for (size_t j = 0; k->short_names && k->short_names[j]; j++)
			assert_ptr_equal(kind_by_word(k->short_names[j]), k);
		assert_int_equal(named(k->fields, "status") != NULL, k->has_status);
		for (const struct column *c = k->columns; c && c->name; c++) {
			assert_non_null(c->help);
			assert_true(c->path || c->cell);
			/* a cluster's API server reads paths, and only such as the table knows */
			if (k->custom)
				assert_non_null(schema_field(k, c->path + 1));
			assert_true(isupper((unsigned char)c->name[0]));
		}
	}
	assert_int_equal(n, 17);
}

/* The client knows them; nothing that serves or explains does. */
static void test_foreign(void **state)
{
	for (size_t i = 0; foreign_kinds[i]; i++) {
		const struct kind *k = foreign_kinds[i];
		char version[128];

		for (const struct field *f = k->fields; f->name; f++)
			walk(k->kind, f);
		assert_non_null(k->help);
		assert_int_equal(named(k->fields, "status") != NULL, k->has_status);
		assert_false(k->custom);
		assert_null(kind_by_gvk(kind_api_version(k, version, sizeof(version)), k->kind));
		assert_null(kind_by_path(k->group, k->version, k->plural));
		assert_null(kind_by_word(k->plural));
	}
}

static void test_words(void **state)
{
	assert_ptr_equal(kind_by_word("storagenodes.coreos.com"), &KIND_STORAGENODE);
	assert_ptr_equal(kind_by_word("StorageNodes.v1.coreos.com"), &KIND_STORAGENODE);
	assert_ptr_equal(kind_by_word("PVC"), &KIND_PVC);
	assert_null(kind_by_word("storagenodes.example.com"));
	assert_null(kind_by_word("storagenod"));
	assert_null(kind_by_word(""));
	assert_string_equal(kind_suggest("storagenod"), "storagenode");
	assert_null(kind_suggest("xyzzyxyzzy"));
	assert_null(kind_by_gvk("v1", "StorageNode"));
	assert_null(kind_by_gvk(NULL, NULL));
	assert_null(kind_by_path("", "v2", "secrets"));
}

static void test_columns_promised(void **state)
{
	static const struct {
		const struct kind *kind;
		const char *header;
	} tables[] = {
		{ &KIND_STORAGESTATUS, "Name Type Status Nodes Pools Capacity Used Age" },
		{ &KIND_STORAGENODE, "Name Type Status Address Zone Devices Age" },
		{ &KIND_STORAGEPOOL, "Name Type Status Bricks Heal Capacity Used Age" },
		{ &KIND_PVC, "Name Status Volume Capacity Access Modes StorageClass "
			     "VolumeAttributesClass Age" },
		{ &KIND_PV, "Name Capacity Access Modes Reclaim Policy Status Claim StorageClass "
			    "VolumeAttributesClass Reason Age" },
		{ &KIND_STORAGECLASS,
		  "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age" },
		{ &KIND_VOLUMEATTRIBUTESCLASS, "Name DriverName Age" },
		{ &KIND_EVENT, "Last Seen Type Reason Object Message" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		cleanup_json json_t *table = schema_table(tables[i].kind, NULL, "1", true, 0);
		struct buf header = { 0 };
		json_t *c;
		size_t j;

		json_array_foreach (json_object_get(table, "columnDefinitions"), j, c) {
			if (jint(c, "priority") == 0)
				buf_printf(&header, "%s%s", header.len ? " " : "", jstr(c, "name"));
		}
		assert_string_equal(header.data, tables[i].header);
		buf_done(&header);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),		 cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_foreign),		 cmocka_unit_test(test_words),
		cmocka_unit_test(test_columns_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
