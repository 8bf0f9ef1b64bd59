/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/openapi.h"

#include "schema/fields.h"

#include <stdio.h>

/*
 * The operations of each kind. Clients look here for the kind behind a path (explain), the patch
 * formats (apply) and whether a query parameter such as fieldValidation is understood.
 */
struct parameter {
	const char *name, *type, *help;
};

static const struct parameter write_parameters[] = {
	{ "dryRun", "string", "All: everything is checked, nothing stored." },
	{ "fieldManager", "string", "Who writes; the fields are recorded under this name." },
	{ "fieldValidation", "string", "What to do with unknown fields: Ignore, Warn or Strict." },
	{ NULL },
};
static const struct parameter patch_parameters[] = {
	{ "dryRun", "string", "All: everything is checked, nothing stored." },
	{ "fieldManager", "string", "Who writes; the fields are recorded under this name." },
	{ "fieldValidation", "string", "What to do with unknown fields: Ignore, Warn or Strict." },
	{ "force", "boolean", "Apply: take over fields that others have written." },
	{ NULL },
};
static const struct parameter delete_parameters[] = {
	{ "dryRun", "string", "All: everything is checked, nothing deleted." },
	{ "gracePeriodSeconds", "integer", "Time that the object has to end by itself." },
	{ "propagationPolicy", "string", "Background, Foreground or Orphan." },
	{ NULL },
};
static const struct parameter list_parameters[] = {
	{ "allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks." },
	{ "continue", "string", "Continues a list that was cut by limit." },
	{ "fieldSelector", "string", "Only objects whose fields match." },
	{ "labelSelector", "string", "Only objects whose labels match." },
	{ "limit", "integer", "At most so many objects." },
	{ "resourceVersion", "string", "The version to begin with." },
	{ "timeoutSeconds", "integer", "How long a watch lasts." },
	{ "watch", "boolean", "Send changes as they happen." },
	{ NULL },
};

struct operation {
	const char *method, *action;
	const struct parameter *parameters;
	const char *body; /* schema of the body: "", the kind; else of meta/v1; NULL: none */
	const char *response; /* suffix of the kind's schema: "", "List"; NULL: a Status */
};

static const struct operation collection_operations[] = {
	{ "get", "list", list_parameters, NULL, "List" },
	{ "post", "post", write_parameters, "", "" },
};
static const struct operation object_operations[] = {
	{ "get", "get", NULL, NULL, "" },
	{ "put", "put", write_parameters, "", "" },
	{ "patch", "patch", patch_parameters, "Patch", "" },
	{ "delete", "delete", delete_parameters, "DeleteOptions", NULL },
};

static json_t *parameter(const char *name, const char *in, const char *type, const char *help)
{
	json_t *p = json_pack("{s:s, s:s, s:s, s:{s:s}}", "name", name, "in", in, "description",
			      help, "schema", "type", type);

	if (streq(in, "path"))
		(void)json_object_set_new(p, "required", json_true());
	return p;
}

static json_t *content(const char *const *types, json_t *schema)
{
	json_t *c = json_object();

	for (size_t i = 0; types[i]; i++)
		(void)json_object_set_new(c, types[i], json_pack("{s:O}", "schema", schema));
	json_decref(schema);
	return c;
}

static json_t *body(const struct kind *k, const struct operation *op)
{
	static const char *const any[] = { "*/*", NULL };
	static const char *const patches[] = { "application/apply-patch+yaml",
					       "application/json-patch+json",
					       "application/merge-patch+json", NULL };
	static const char *const built_in_patches[] = {
		"application/apply-patch+yaml", "application/json-patch+json",
		"application/merge-patch+json", "application/strategic-merge-patch+json", NULL
	};
	const char *const *types = any;
	char name[OPENAPI_NAME_MAX];

	if (streq(op->method, "patch"))
		types = k->custom ? patches : built_in_patches;
	return json_pack("{s:o}", "content",
			 content(types, streq(op->body, "") ? openapi_ref(openapi_name(k, name), "")
							    : openapi_ref(META_SCHEMA, op->body)));
}

static json_t *operation(const struct kind *k, const struct operation *op, const char *where)
{
	cleanup_free char *id = xasprintf("%s%s%s%s", op->action, k->namespaced ? "Namespaced" : "",
					  k->kind, where);
	cleanup_free char *tag = xasprintf("%s_%s", k->group[0] ? k->group : "core", k->version);
	json_t *o, *parameters = json_array(), *schema;
	char name[OPENAPI_NAME_MAX];

	for (const struct parameter *p = op->parameters; p && p->name; p++)
		(void)json_array_append_new(parameters,
					    parameter(p->name, "query", p->type, p->help));
	schema = op->response ? openapi_ref(openapi_name(k, name), op->response)
			      : openapi_ref(META_SCHEMA, "Status");
	o = json_pack("{s:[s], s:s, s:o, s:{s:{s:s, s:o}}, s:s, s:o}", "tags", tag, "operationId",
		      id, "parameters", parameters, "responses", "200", "description", "OK",
		      "content", content(WORDS("application/json"), schema), "x-kubernetes-action",
		      op->action, "x-kubernetes-group-version-kind", openapi_gvk(k));
	if (op->body)
		(void)json_object_set_new(o, "requestBody", body(k, op));
	return o;
}

static void add_path(json_t *paths, const struct kind *k, const char *path, const char *where,
		     const struct operation *ops, size_t count)
{
	json_t *item = json_object(), *parameters = json_array();

	for (size_t i = 0; i < count; i++)
		(void)json_object_set_new(item, ops[i].method, operation(k, &ops[i], where));
	if (strstr(path, "{name}"))
		(void)json_array_append_new(
			parameters, parameter("name", "path", "string", "Name of the object."));
	if (strstr(path, "{namespace}"))
		(void)json_array_append_new(parameters, parameter("namespace", "path", "string",
								  "Namespace of the object."));
	(void)json_object_set_new(item, "parameters", parameters);
	(void)json_object_set_new(paths, path, item);
}

void openapi_add_paths(json_t *paths, const struct kind *k)
{
	cleanup_free char *root =
		xasprintf("%s%s/%s", k->group[0] ? "/apis/" : "/api", k->group, k->version);
	cleanup_free char *all = xasprintf("%s/%s", root, k->plural);
	cleanup_free char *one_namespace =
		xasprintf("%s/namespaces/{namespace}/%s", root, k->plural);
	const char *collection = k->namespaced ? one_namespace : all;
	cleanup_free char *object = xasprintf("%s/{name}", collection);
	cleanup_free char *status = xasprintf("%s/status", object);

	if (k->namespaced)
		add_path(paths, k, all, "ForAllNamespaces", collection_operations, 1);
	add_path(paths, k, collection, "", collection_operations,
		 ARRAY_SIZE(collection_operations));
	add_path(paths, k, object, "", object_operations, ARRAY_SIZE(object_operations));
	if (k->has_status) /* all but delete */
		add_path(paths, k, status, "Status", object_operations,
			 ARRAY_SIZE(object_operations) - 1);
}
