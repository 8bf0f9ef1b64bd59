/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <stdio.h>

/* What clients ask first: which groups, versions and resources there are. */

static json_t *words(const char *const *list)
{
	json_t *a = json_array();

	for (size_t i = 0; list && list[i]; i++)
		(void)json_array_append_new(a, json_string(list[i]));
	return a;
}

static json_t *resource_verbs(void)
{
	return words(WORDS("create", "delete", "get", "list", "patch", "update", "watch"));
}

static json_t *status_verbs(void)
{
	return words(WORDS("get", "patch", "update"));
}

static json_t *response_kind(const struct kind *k)
{
	return json_pack("{s:s, s:s, s:s}", "group", k->group, "version", k->version, "kind",
			 k->kind);
}

static json_t *resource_discovery(const struct kind *k)
{
	json_t *r = json_pack("{s:s, s:o, s:s, s:s, s:o}", "resource", k->plural, "responseKind",
			      response_kind(k), "scope", k->namespaced ? "Namespaced" : "Cluster",
			      "singularResource", k->singular, "verbs", resource_verbs());

	if (k->short_names)
		(void)json_object_set_new(r, "shortNames", words(k->short_names));
	if (k->has_status)
		(void)json_object_set_new(r, "subresources",
					  json_pack("[{s:s, s:o, s:o}]", "subresource", "status",
						    "responseKind", response_kind(k), "verbs",
						    status_verbs()));
	return r;
}

/* Every group has one version here. */
static const char *group_version(const char *group)
{
	for (size_t i = 0; kinds[i]; i++)
		if (streq(kinds[i]->group, group))
			return kinds[i]->version;
	return NULL;
}

static bool group_is_first(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (streq(kinds[i]->group, kinds[index]->group))
			return false;
	return true;
}

static json_t *group_discovery(const char *group)
{
	json_t *resources = json_array(), *meta = json_object();

	for (size_t i = 0; kinds[i]; i++)
		if (streq(kinds[i]->group, group))
			(void)json_array_append_new(resources, resource_discovery(kinds[i]));
	if (group[0])
		(void)json_object_set_new(meta, "name", json_string(group));
	(void)json_object_set_new(meta, "creationTimestamp", json_null());
	return json_pack("{s:o, s:[{s:s, s:o, s:s}]}", "metadata", meta, "versions", "version",
			 group_version(group), "resources", resources, "freshness", "Current");
}

static json_t *discovery_list(json_t *items)
{
	return json_pack("{s:s, s:s, s:{}, s:o}", "kind", "APIGroupDiscoveryList", "apiVersion",
			 "apidiscovery.k8s.io/v2", "metadata", "items", items);
}

json_t *schema_discovery_core_aggregated(void)
{
	return discovery_list(json_pack("[o]", group_discovery("")));
}

json_t *schema_discovery_groups_aggregated(void)
{
	json_t *items = json_array();

	for (size_t i = 0; kinds[i]; i++)
		if (kinds[i]->group[0] && group_is_first(i))
			(void)json_array_append_new(items, group_discovery(kinds[i]->group));
	return discovery_list(items);
}

json_t *schema_discovery_core(void)
{
	return json_pack("{s:s, s:[s], s:[{s:s, s:s}]}", "kind", "APIVersions", "versions", "v1",
			 "serverAddressByClientCIDRs", "clientCIDR", "0.0.0.0/0", "serverAddress",
			 "");
}

static json_t *group_entry(const char *group)
{
	const char *version = group_version(group);
	char full[128];

	(void)snprintf(full, sizeof(full), "%s/%s", group, version);
	return json_pack("{s:s, s:[{s:s, s:s}], s:{s:s, s:s}}", "name", group, "versions",
			 "groupVersion", full, "version", version, "preferredVersion",
			 "groupVersion", full, "version", version);
}

json_t *schema_discovery_groups(void)
{
	json_t *groups = json_array();

	for (size_t i = 0; kinds[i]; i++)
		if (kinds[i]->group[0] && group_is_first(i))
			(void)json_array_append_new(groups, group_entry(kinds[i]->group));
	return json_pack("{s:s, s:s, s:o}", "kind", "APIGroupList", "apiVersion", "v1", "groups",
			 groups);
}

json_t *schema_discovery_group(const char *group)
{
	json_t *entry;

	if (!group[0] || !group_version(group))
		return NULL;
	entry = group_entry(group);
	(void)json_object_set_new(entry, "kind", json_string("APIGroup"));
	(void)json_object_set_new(entry, "apiVersion", json_string("v1"));
	return entry;
}

static void add_resource(json_t *resources, const struct kind *k)
{
	json_t *r = json_pack("{s:s, s:s, s:b, s:s, s:o}", "name", k->plural, "singularName",
			      k->singular, "namespaced", k->namespaced, "kind", k->kind, "verbs",
			      resource_verbs());
	char status[128];

	if (k->short_names)
		(void)json_object_set_new(r, "shortNames", words(k->short_names));
	(void)json_array_append_new(resources, r);
	if (!k->has_status)
		return;
	(void)snprintf(status, sizeof(status), "%s/status", k->plural);
	(void)json_array_append_new(resources,
				    json_pack("{s:s, s:s, s:b, s:s, s:o}", "name", status,
					      "singularName", "", "namespaced", k->namespaced,
					      "kind", k->kind, "verbs", status_verbs()));
}

json_t *schema_discovery_resources(const char *group, const char *version)
{
	json_t *resources;
	char full[128];

	if (!streq(group_version(group), version) || !version)
		return NULL;
	resources = json_array();
	for (size_t i = 0; kinds[i]; i++)
		if (streq(kinds[i]->group, group))
			add_resource(resources, kinds[i]);
	(void)snprintf(full, sizeof(full), "%s%s%s", group, group[0] ? "/" : "", version);
	return json_pack("{s:s, s:s, s:s, s:o}", "kind", "APIResourceList", "apiVersion", "v1",
			 "groupVersion", full, "resources", resources);
}
