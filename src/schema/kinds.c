/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

const struct kind *const kinds[] = {
	&KIND_STORAGENODE,
	&KIND_STORAGESTATUS,
	&KIND_STORAGEPOOL,
	&KIND_STORAGECLASS,
	&KIND_VOLUMEATTRIBUTESCLASS,
	&KIND_PVC,
	&KIND_PV,
	&KIND_EVENT,
	&KIND_NAMESPACE,
	&KIND_CONFIGMAP,
	&KIND_SECRET,
	&KIND_NODE,
	&KIND_POD,
	&KIND_LEASE,
	&KIND_VOLUMESNAPSHOT,
	&KIND_VOLUMESNAPSHOTCONTENT,
	&KIND_VOLUMESNAPSHOTCLASS,
	NULL,
};
#define KIND_COUNT (ARRAY_SIZE(kinds) - 1)

const char *kind_api_version(const struct kind *k, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s%s%s", k->group, k->group[0] ? "/" : "", k->version);
	return buf;
}

const struct kind *kind_by_gvk(const char *api_version, const char *kind)
{
	char version[128];

	for (size_t i = 0; kinds[i]; i++)
		if (streq(kinds[i]->kind, kind) &&
		    streq(kind_api_version(kinds[i], version, sizeof(version)), api_version))
			return kinds[i];
	return NULL;
}

const struct kind *kind_by_path(const char *group, const char *version, const char *plural)
{
	for (size_t i = 0; kinds[i]; i++)
		if (streq(kinds[i]->group, group) && streq(kinds[i]->version, version) &&
		    streq(kinds[i]->plural, plural))
			return kinds[i];
	return NULL;
}

static bool is_called(const struct kind *k, const char *word)
{
	if (strcasecmp(word, k->plural) == 0 || strcasecmp(word, k->singular) == 0 ||
	    strcasecmp(word, k->kind) == 0)
		return true;
	for (size_t i = 0; k->short_names && k->short_names[i]; i++)
		if (strcasecmp(word, k->short_names[i]) == 0)
			return true;
	return false;
}

const struct kind *kind_by_word(const char *word)
{
	const char *dot = strchr(word, '.');
	char name[64];

	if (strcspn(word, ".") >= sizeof(name))
		return NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "."), word);
	for (size_t i = 0; kinds[i]; i++) {
		const struct kind *k = kinds[i];
		char full[160];

		if (!is_called(k, name))
			continue;
		(void)snprintf(full, sizeof(full), "%s.%s", k->version, k->group);
		if (!dot || strcasecmp(dot + 1, k->group) == 0 || strcasecmp(dot + 1, full) == 0)
			return k;
	}
	return NULL;
}

const char *kind_suggest(const char *word)
{
	const char *words[4 * KIND_COUNT + 1];
	size_t n = 0;

	for (size_t i = 0; kinds[i]; i++) {
		words[n++] = kinds[i]->plural;
		words[n++] = kinds[i]->singular;
		words[n++] = kinds[i]->kind;
		if (kinds[i]->short_names)
			words[n++] = kinds[i]->short_names[0];
	}
	words[n] = NULL;
	return str_suggest(word, words);
}

static int kind_unknown(const char *kind, struct error *err)
{
	const char *names[KIND_COUNT + 1], *near;
	const struct kind *k = kind_by_word(kind);
	char q[QUOTED_MAX];

	for (size_t i = 0; i <= KIND_COUNT; i++)
		names[i] = kinds[i] ? kinds[i]->kind : NULL;
	near = k ? k->kind : str_suggest(kind, names);
	if (near)
		return error_set(err, EINVAL, "kind: %s is unknown (did you mean \"%s\"?)",
				 quoted(kind, q), near);
	return error_set(err, EINVAL,
			 "kind: %s is unknown; `quartermaster explain` lists the kinds",
			 quoted(kind, q));
}

int schema_identify(const json_t *object, const struct kind **ret, struct error *err)
{
	const char *api_version = jstr(object, "apiVersion"), *kind = jstr(object, "kind");
	const struct kind *k = NULL;
	char version[128], q[QUOTED_MAX];

	if (!json_is_object(object))
		return error_set(err, EINVAL,
				 "not an object; it must begin with apiVersion, kind and metadata");
	if (!kind)
		return error_set(err, EINVAL, "kind: %s",
				 json_object_get(object, "kind") ? "must be a string" : "missing");
	for (size_t i = 0; kinds[i] && !k; i++)
		if (streq(kinds[i]->kind, kind))
			k = kinds[i];
	if (!k)
		return kind_unknown(kind, err);
	(void)kind_api_version(k, version, sizeof(version));
	if (!api_version)
		return error_set(err, EINVAL, "apiVersion: %s; use %s for %s",
				 json_object_get(object, "apiVersion") ? "must be a string"
								       : "missing",
				 version, kind);
	if (!streq(api_version, version))
		return error_set(err, EINVAL, "apiVersion: %s is not served for %s; use %s",
				 quoted(api_version, q), kind, version);
	*ret = k;
	return 0;
}

static const struct field *field_named(const struct field *fields, const char *name, size_t len)
{
	for (const struct field *f = fields; f && f->name; f++)
		if (strlen(f->name) == len && strncmp(f->name, name, len) == 0)
			return f;
	return NULL;
}

const struct field *schema_field(const struct kind *k, const char *path)
{
	const struct field *f = NULL, *fields = k->fields;

	while (*path) {
		size_t len = strcspn(path, ".");

		if (!f && len == strlen("metadata") && strncmp(path, "metadata", len) == 0)
			f = &FIELD_METADATA;
		else
			f = field_named(fields, path, len);
		if (!f)
			return NULL;
		const struct field *inner = f;

		while (inner->items)
			inner = inner->items;
		fields = inner->fields;
		path += len;
		path += *path == '.';
	}
	return f;
}
