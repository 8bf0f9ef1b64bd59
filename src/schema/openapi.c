/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/openapi.h"

#include "schema/fields.h"

#include <inttypes.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define QUANTITY_SCHEMA "io.k8s.apimachinery.pkg.api.resource.Quantity"

const char *openapi_name(const struct kind *k, char buf[static OPENAPI_NAME_MAX])
{
	if (k->custom)
		(void)snprintf(buf, OPENAPI_NAME_MAX, "com.coreos.%s.%s", k->version, k->kind);
	else
		(void)snprintf(buf, OPENAPI_NAME_MAX, "io.k8s.api.%.*s.%s.%s",
			       k->group[0] ? (int)strcspn(k->group, ".") : 4,
			       k->group[0] ? k->group : "core", k->version, k->kind);
	return buf;
}

json_t *openapi_ref(const char *name, const char *suffix)
{
	cleanup_free char *ref = xasprintf("#/components/schemas/%s%s", name, suffix);

	return json_pack("{s:s}", "$ref", ref);
}

json_t *openapi_gvk(const struct kind *k)
{
	return json_pack("{s:s, s:s, s:s}", "group", k->group, "version", k->version, "kind",
			 k->kind);
}

static json_t *field_schema(const struct field *f, bool custom);

static json_t *fields_schema(const struct field *fields, bool custom)
{
	json_t *properties = json_object(), *required = json_array(), *schema;

	for (const struct field *f = fields; f->name; f++) {
		(void)json_object_set_new(properties, f->name, field_schema(f, custom));
		if (f->required)
			(void)json_array_append_new(required, json_string(f->name));
	}
	schema = json_pack("{s:s, s:o}", "type", "object", "properties", properties);
	if (json_array_size(required) > 0)
		(void)json_object_set(schema, "required", required);
	json_decref(required);
	return schema;
}

static json_t *string_schema(const struct field *f)
{
	json_t *schema = json_pack("{s:s}", "type", "string"), *values;

	if (!f->values)
		return schema;
	values = json_array();
	for (size_t i = 0; f->values[i]; i++)
		(void)json_array_append_new(values, json_string(f->values[i]));
	(void)json_object_set_new(schema, "enum", values);
	return schema;
}

static json_t *integer_schema(const struct field *f)
{
	json_t *schema = json_pack("{s:s, s:s}", "type", "integer", "format", "int64");

	if (f->min || f->max)
		(void)json_object_set_new(schema, "minimum", json_integer(f->min));
	if (f->max && f->max < INT64_MAX)
		(void)json_object_set_new(schema, "maximum", json_integer(f->max));
	return schema;
}

/* Lists say how they merge: by a key, as a set, or not at all. */
static json_t *array_schema(const struct field *f, bool custom)
{
	json_t *schema =
		json_pack("{s:s, s:o}", "type", "array", "items", field_schema(f->items, custom));
	const char *type = f->list_map_key ? "map" : f->set ? "set" : "atomic";

	(void)json_object_set_new(schema, "x-kubernetes-list-type", json_string(type));
	if (f->list_map_key)
		(void)json_object_set_new(schema, "x-kubernetes-list-map-keys",
					  json_pack("[s]", f->list_map_key));
	if (!custom && (f->list_map_key || f->set))
		(void)json_object_set_new(schema, "x-kubernetes-patch-strategy",
					  json_string("merge"));
	if (!custom && f->list_map_key)
		(void)json_object_set_new(schema, "x-kubernetes-patch-merge-key",
					  json_string(f->list_map_key));
	return schema;
}

static json_t *type_schema(const struct field *f, bool custom)
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
		return openapi_ref(QUANTITY_SCHEMA, "");
	case FIELD_OBJECT:
		return fields_schema(f->fields, custom);
	case FIELD_ARRAY:
		return array_schema(f, custom);
	case FIELD_MAP:
		return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
				 field_schema(f->items, custom));
	case FIELD_ANY:
		break;
	}
	return json_pack("{s:b}", "x-kubernetes-preserve-unknown-fields", 1);
}

static json_t *field_schema(const struct field *f, bool custom)
{
	json_t *schema = type_schema(f, custom);

	if (f->type != FIELD_QUANTITY) /* nothing may stand beside a $ref */
		(void)json_object_set_new(schema, "description", json_string(f->help));
	if (f->default_json)
		(void)json_object_set_new(schema, "default",
					  json_loads(f->default_json, JSON_DECODE_ANY, NULL));
	if (f->open)
		(void)json_object_set_new(schema, "x-kubernetes-preserve-unknown-fields",
					  json_true());
	return schema;
}

static json_t *text_schema(const char *help)
{
	return json_pack("{s:s, s:s}", "type", "string", "description", help);
}

static void add_kind(json_t *schemas, const struct kind *k)
{
	json_t *schema = fields_schema(k->fields, k->custom), *list;
	json_t *properties = json_object_get(schema, "properties");
	char name[OPENAPI_NAME_MAX], list_name[OPENAPI_NAME_MAX + 4];
	const char *api_help = "Group and version of the kind.", *kind_help = "The kind of object.";

	(void)openapi_name(k, name);
	(void)json_object_set_new(properties, "apiVersion", text_schema(api_help));
	(void)json_object_set_new(properties, "kind", text_schema(kind_help));
	(void)json_object_set_new(properties, "metadata",
				  json_pack("{s:s, s:[o]}", "description", FIELD_METADATA.help,
					    "allOf", openapi_ref(META_SCHEMA, "ObjectMeta")));
	(void)json_object_set_new(schema, "description", json_string(k->help));
	(void)json_object_set_new(schema, "x-kubernetes-group-version-kind",
				  json_pack("[o]", openapi_gvk(k)));
	(void)json_object_set_new(schemas, name, schema);

	(void)snprintf(list_name, sizeof(list_name), "%sList", name);
	list = json_pack("{s:s, s:s, s:[s], s:{s:o, s:o, s:o, s:{s:s, s:o}}}", "type", "object",
			 "description", "A list of such objects.", "required", "items",
			 "properties", "apiVersion", text_schema(api_help), "kind",
			 text_schema(kind_help), "metadata", openapi_ref(META_SCHEMA, "ListMeta"),
			 "items", "type", "array", "items", openapi_ref(name, ""));
	(void)json_object_set_new(list, "x-kubernetes-group-version-kind",
				  json_pack("[{s:s, s:s, s:s+}]", "group", k->group, "version",
					    k->version, "kind", k->kind, "List"));
	(void)json_object_set_new(schemas, list_name, list);
}

/* What every document refers to. */
static void add_common(json_t *schemas)
{
	static const struct field list_meta[] = {
		F_STRING("resourceVersion", "The version of the store that the list shows."),
		F_STRING("continue", "Given to the next request, to get the rest of the list."),
		F_COUNT("remainingItemCount", "How many objects the rest holds."),
		F_END,
	};
	static const struct field preconditions[] = {
		F_STRING("uid", "Only the object of this UID is deleted."),
		F_STRING("resourceVersion", "Only this version of the object is deleted."),
		F_END,
	};
	static const struct field delete_options[] = {
		F_STRING("apiVersion", "Group and version."),
		F_STRING("kind", "DeleteOptions."),
		F_STRINGS("dryRun", "All: nothing is deleted, only checked."),
		F_COUNT("gracePeriodSeconds", "Time that the object has to end by itself."),
		F_OBJECT("preconditions", "What must hold.", preconditions),
		F_STRING("propagationPolicy", "Background, Foreground or Orphan."),
		F_END,
	};
	static const struct field status[] = {
		F_STRING("apiVersion", "Group and version."),
		F_STRING("kind", "Status."),
		F_STRING("status", "Success or Failure."),
		F_STRING("message", "What went wrong, for a person."),
		F_STRING("reason", "What went wrong, as one word."),
		F_ANY("details", "The object that was meant."),
		F_INTEGER("code", "The HTTP status."),
		F_END,
	};

	(void)json_object_set_new(schemas, META_SCHEMA "ObjectMeta",
				  field_schema(&FIELD_METADATA, false));
	(void)json_object_set_new(schemas, META_SCHEMA "ListMeta", fields_schema(list_meta, false));
	(void)json_object_set_new(schemas, META_SCHEMA "DeleteOptions",
				  fields_schema(delete_options, false));
	(void)json_object_set_new(schemas, META_SCHEMA "Status", fields_schema(status, false));
	(void)json_object_set_new(schemas, META_SCHEMA "Patch",
				  json_pack("{s:s, s:s}", "type", "object", "description",
					    "A change, in one of several patch formats."));
	(void)json_object_set_new(schemas, QUANTITY_SCHEMA,
				  json_pack("{s:s, s:[{s:s}, {s:s}]}", "description",
					    ITEM_SIZE.help, "oneOf", "type", "string", "type",
					    "number"));
}

json_t *schema_openapi(const char *group, const char *version)
{
	json_t *schemas = NULL, *paths = NULL;

	for (size_t i = 0; kinds[i]; i++) {
		if (!streq(kinds[i]->group, group) || !streq(kinds[i]->version, version))
			continue;
		if (!schemas) {
			schemas = json_object();
			paths = json_object();
			add_common(schemas);
		}
		add_kind(schemas, kinds[i]);
		openapi_add_paths(paths, kinds[i]);
	}
	if (!schemas)
		return NULL;
	return json_pack("{s:s, s:{s:s, s:s}, s:o, s:{s:o}}", "openapi", "3.0.0", "info", "title",
			 "QuarterMaster", "version", QM_VERSION, "paths", paths, "components",
			 "schemas", schemas);
}

/* The hash in the URL lets clients keep a document for as long as it stays the same. */
static void add_to_index(json_t *paths, const struct kind *k)
{
	cleanup_json json_t *document = schema_openapi(k->group, k->version);
	cleanup_free char *text = json_text(document);
	cleanup_free char *path = xasprintf("%s%s%s%s", k->group[0] ? "apis/" : "api/", k->group,
					    k->group[0] ? "/" : "", k->version);
	cleanup_free char *url = xasprintf("/openapi/v3/%s?hash=%016" PRIX64, path,
					   (uint64_t)XXH64(text, strlen(text), 0));

	(void)json_object_set_new(paths, path, json_pack("{s:s}", "serverRelativeURL", url));
}

json_t *schema_openapi_index(void)
{
	json_t *paths = json_object();

	for (size_t i = 0; kinds[i]; i++) {
		bool seen = false;

		for (size_t j = 0; j < i; j++)
			seen = seen || streq(kinds[i]->group, kinds[j]->group);
		if (!seen)
			add_to_index(paths, kinds[i]);
	}
	return json_pack("{s:o}", "paths", paths);
}
