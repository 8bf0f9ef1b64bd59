/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/crd.h"

#include "base/yaml.h"
#include "schema/fields.h"

#include <stdio.h>

/* What a quantity may look like; the server keeps it as it is written. */
#define QUANTITY_PATTERN "^[0-9]+([.][0-9]+)?([eE][0-9]+|[kMGTPE]|[KMGTPE]i|m)?$"

#define NOT_APPROVED                                                                               \
	"unapproved, written for QuarterMaster to the public definition of "                       \
	"snapshot.storage.k8s.io/v1, for clusters that have none"

static json_t *field_schema(const struct kind *k, const struct field *f, const char *path);

static void set_integer(json_t *schema, const char *key, int64_t value)
{
	(void)json_object_set_new(schema, key, json_integer(value));
}

static json_t *words(const char *const *list)
{
	json_t *a = json_array();

	for (size_t i = 0; list && list[i]; i++)
		(void)json_array_append_new(a, json_string(list[i]));
	return a;
}

static json_t *string_schema(const struct field *f)
{
	json_t *schema = json_pack("{s:s}", "type", "string");

	if (f->values)
		(void)json_object_set_new(schema, "enum", words(f->values));
	else
		set_integer(schema, "maxLength", f->max_len ? f->max_len : 4096);
	return schema;
}

static json_t *integer_schema(const struct field *f)
{
	json_t *schema = json_pack("{s:s, s:s}", "type", "integer", "format", "int64");

	if (f->min || f->max)
		set_integer(schema, "minimum", f->min);
	if (f->max && f->max < INT64_MAX)
		set_integer(schema, "maximum", f->max);
	return schema;
}

static json_t *array_schema(const struct kind *k, const struct field *f, const char *path)
{
	json_t *schema =
		json_pack("{s:s, s:o}", "type", "array", "items", field_schema(k, f->items, path));

	set_integer(schema, "maxItems", f->max_len ? f->max_len : 4096);
	(void)json_object_set_new(schema, "x-kubernetes-list-type",
				  json_string(f->list_map_key ? "map"
					      : f->set	      ? "set"
							      : "atomic"));
	if (f->list_map_key)
		(void)json_object_set_new(schema, "x-kubernetes-list-map-keys",
					  json_pack("[s]", f->list_map_key));
	return schema;
}

static json_t *map_schema(const struct kind *k, const struct field *f, const char *path)
{
	json_t *schema = json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
				   field_schema(k, f->items, path));

	set_integer(schema, "maxProperties", f->max_len ? f->max_len : 4096);
	return schema;
}

static json_t *object_schema(const struct kind *k, const struct field *fields, const char *path)
{
	json_t *schema = json_pack("{s:s}", "type", "object"), *properties = json_object(),
	       *required = json_array();

	for (const struct field *f = fields; f->name; f++) {
		cleanup_free char *here = xasprintf("%s%s%s", path, *path ? "." : "", f->name);

		(void)json_object_set_new(properties, f->name, field_schema(k, f, here));
		if (f->required)
			(void)json_array_append_new(required, json_string(f->name));
	}
	if (json_object_size(properties))
		(void)json_object_set(schema, "properties", properties);
	if (json_array_size(required))
		(void)json_object_set(schema, "required", required);
	json_decref(properties);
	json_decref(required);
	return schema;
}

static json_t *type_schema(const struct kind *k, const struct field *f, const char *path)
{
	switch (f->type) {
	case FIELD_STRING:
		return string_schema(f);
	case FIELD_INTEGER:
		return integer_schema(f);
	case FIELD_NUMBER:
		return json_pack("{s:s}", "type", "number");
	case FIELD_BOOLEAN:
		return json_pack("{s:s}", "type", "boolean");
	case FIELD_TIME:
		return json_pack("{s:s, s:s}", "type", "string", "format", "date-time");
	case FIELD_QUANTITY:
		return json_pack("{s:b, s:s}", "x-kubernetes-int-or-string", 1, "pattern",
				 QUANTITY_PATTERN);
	case FIELD_OBJECT:
		return object_schema(k, f->fields, path);
	case FIELD_ARRAY:
		return array_schema(k, f, path);
	case FIELD_MAP:
		return map_schema(k, f, path);
	case FIELD_ANY:
		break;
	}
	return json_pack("{s:b}", "x-kubernetes-preserve-unknown-fields", 1);
}

static json_t *field_schema(const struct kind *k, const struct field *f, const char *path)
{
	json_t *schema = type_schema(k, f, path);

	(void)json_object_set_new(schema, "description", json_string(f->help));
	if (f->default_json)
		(void)json_object_set_new(schema, "default",
					  json_loads(f->default_json, JSON_DECODE_ANY, NULL));
	if (f->open)
		(void)json_object_set_new(schema, "x-kubernetes-preserve-unknown-fields",
					  json_true());
	/* an element has its list's path; only its check concerns it */
	crd_add_rules(schema, k, f, f->name[0] ? path : "[]");
	return schema;
}

/* apiVersion, kind and metadata are the server's own. */
static json_t *root_schema(const struct kind *k)
{
	json_t *schema = object_schema(k, k->fields, "");
	json_t *properties = json_object_get(schema, "properties");

	(void)json_object_set_new(schema, "description", json_string(k->help));
	(void)json_object_set_new(properties, "apiVersion",
				  json_pack("{s:s, s:s}", "type", "string", "description",
					    "Group and version of the kind."));
	(void)json_object_set_new(
		properties, "kind",
		json_pack("{s:s, s:s}", "type", "string", "description", "The kind of object."));
	(void)json_object_set_new(properties, "metadata", json_pack("{s:s}", "type", "object"));
	crd_add_name_rules(schema, k);
	return schema;
}

static void add_column(json_t *columns, const struct column *c)
{
	json_t *column = json_pack("{s:s, s:s, s:s, s:s}", "name", c->name, "type", c->type,
				   "jsonPath", c->path, "description", c->help);

	if (c->priority)
		set_integer(column, "priority", c->priority);
	(void)json_array_append_new(columns, column);
}

/* In the order of our own tables: the name is there anyway, wide columns stand behind the age. */
static json_t *columns_of(const struct kind *k)
{
	static const struct column age =
		C_DATE("Age", ".metadata.creationTimestamp", "Time since the object was created.");
	json_t *columns = json_array();

	for (const struct column *c = k->columns; c->name; c++)
		if (c->priority == 0)
			add_column(columns, c);
	add_column(columns, &age);
	for (const struct column *c = k->columns; c->name; c++)
		if (c->priority > 0)
			add_column(columns, c);
	return columns;
}

static json_t *names_of(const struct kind *k)
{
	json_t *names = json_pack("{s:s, s:s, s:s, s:s+}", "plural", k->plural, "singular",
				  k->singular, "kind", k->kind, "listKind", k->kind, "List");

	if (!k->shared)
		(void)json_object_set_new(names, "categories", json_pack("[s]", "quartermaster"));
	if (k->short_names)
		(void)json_object_set_new(names, "shortNames", words(k->short_names));
	return names;
}

json_t *schema_crd(const struct kind *k)
{
	json_t *version = json_pack("{s:s, s:b, s:b, s:{s:o}, s:o}", "name", k->version, "served",
				    1, "storage", 1, "schema", "openAPIV3Schema", root_schema(k),
				    "additionalPrinterColumns", columns_of(k));
	cleanup_free char *name = xasprintf("%s.%s", k->plural, k->group);
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", CRD_SCHEMA_VERSION);
	if (k->has_status)
		(void)json_object_set_new(version, "subresources", json_pack("{s:{}}", "status"));
	json_t *crd =
		json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{s:s, s:s, s:o, s:[o]}}", "apiVersion",
			  "apiextensions.k8s.io/v1", "kind", "CustomResourceDefinition", "metadata",
			  "name", name, "labels", CRD_SCHEMA_LABEL, number, "spec", "group",
			  k->group, "scope", k->namespaced ? "Namespaced" : "Cluster", "names",
			  names_of(k), "versions", version);
	/* names that end in k8s.io are protected: the API server wants to know who approved them */
	if (k->shared)
		jset(crd, json_string(NOT_APPROVED), "metadata", "annotations",
		     "api-approved.kubernetes.io");
	return crd;
}

char *schema_crds_yaml(bool shared)
{
	struct buf out = { 0 };

	buf_puts(&out, "# SPDX-License-Identifier: Apache-2.0\n");
	buf_puts(&out,
		 shared ? "# Made by `quartermaster crds --snapshots`. Only for a cluster that has "
			  "no definitions of them; there the\n"
			  "# operator registers the same by itself.\n"
			: "# Made by `quartermaster crds`; the operator registers the same by "
			  "itself.\n");
	for (size_t i = 0; kinds[i]; i++) {
		cleanup_json json_t *crd = NULL;

		if (kinds[i]->custom && kinds[i]->shared == shared)
			crd = schema_crd(kinds[i]);
		cleanup_free char *text = crd ? yaml_text(crd) : NULL;

		if (text)
			buf_printf(&out, "---\n%s", text);
	}
	return buf_take(&out);
}
