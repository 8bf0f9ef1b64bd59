/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "operator/op.h"

#include <errno.h>
#include <string.h>

/*
 * The secrets that a class names for its volumes, in the parameters and with the templates that
 * people know from external-provisioner. A namespace comes from nothing that the claim's author
 * writes: the class alone decides whose secrets are used. What a template gives is checked after
 * it has been filled in.
 */
#define RESERVED "csi.storage.k8s.io/"

static const struct use {
	const char *name; /* of the parameters, before -secret-name and -secret-namespace */
	const char *
		reference; /* below spec.csi of the volume; NULL: for removing it, in annotations */
} uses[] = {
	{ "provisioner", NULL },
	{ "controller-publish", "controllerPublishSecretRef" },
	{ "node-stage", "nodeStageSecretRef" },
	{ "node-publish", "nodePublishSecretRef" },
	{ "controller-expand", "controllerExpandSecretRef" },
	{ "node-expand", "nodeExpandSecretRef" },
};

struct filler {
	const json_t *claim;
	const char *volume;
	bool is_name; /* of a secret, not of a namespace */
};

static const char *annotation_named(const json_t *claim, const char *token)
{
	static const char before[] = "pvc.annotations['";
	size_t len = strlen(token);

	if (!str_has_prefix(token, before) || !str_has_suffix(token, "']") ||
	    len < strlen(before) + 2)
		return NULL;
	cleanup_free char *key =
		xstrndup(token + strlen(before), len - strlen(before) - strlen("']"));
	return object_annotation(claim, key);
}

static const char *value_of(const struct filler *f, const char *token)
{
	if (streq(token, "pv.name"))
		return f->volume;
	if (streq(token, "pvc.namespace"))
		return object_namespace(f->claim);
	if (!f->is_name)
		return NULL;
	return streq(token, "pvc.name") ? object_name(f->claim) : annotation_named(f->claim, token);
}

/* The template filled in; caller frees. */
static int fill(const struct filler *f, const char *key, const char *template, char **ret,
		struct error *err)
{
	struct buf out = { 0 };
	const char *at = template, *open;

	while ((open = strstr(at, "${"))) {
		const char *close = strchr(open, '}');
		cleanup_free char *token =
			xstrndup(open + 2, close ? (size_t)(close - open - 2) : 0);
		const char *value = close ? value_of(f, token) : NULL;

		if (!value) {
			buf_done(&out);
			return error_set(err, EINVAL,
					 "the parameter %s of the StorageClass is \"%.128s\", and "
					 "\"%.64s\" has no value there",
					 key, template, token);
		}
		buf_printf(&out, "%.*s%s", (int)(open - at), at, value);
		at = close + 1;
	}
	buf_puts(&out, at);
	*ret = buf_take(&out);
	if (f->is_name ? name_is_subdomain(*ret) : name_is_label(*ret))
		return 0;
	int rc = error_set(err, EINVAL,
			   "the parameter %s of the StorageClass gives \"%.128s\", which is no "
			   "name of a %s",
			   key, *ret, f->is_name ? "secret" : "namespace");
	free(TAKE_PTR(*ret));
	return rc;
}

static void put(json_t *pv, const struct use *use, const char *name, const char *ns)
{
	static const char deletion[] = "volume.kubernetes.io/provisioner-deletion-secret-";

	if (use->reference) {
		jset(pv, json_pack("{s:s, s:s}", "name", name, "namespace", ns), "spec", "csi",
		     use->reference);
		return;
	}
	cleanup_free char *name_key = xasprintf("%sname", deletion),
			  *ns_key = xasprintf("%snamespace", deletion);
	jset(pv, json_string(name), "metadata", "annotations", name_key);
	jset(pv, json_string(ns), "metadata", "annotations", ns_key);
}

static int one_use(const struct use *use, const json_t *class, struct filler *f, json_t *pv,
		   struct error *err)
{
	cleanup_free char *name_key = xasprintf(RESERVED "%s-secret-name", use->name),
			  *ns_key = xasprintf(RESERVED "%s-secret-namespace", use->name);
	const char *name = jstr(class, "parameters", name_key),
		   *ns = jstr(class, "parameters", ns_key);
	cleanup_free char *full_name = NULL, *full_ns = NULL;

	if (!name && !ns)
		return 0;
	if (!name || !ns)
		return error_set(
			err, EINVAL,
			"the StorageClass has the parameter %s, but not %s; a secret needs "
			"both",
			name ? name_key : ns_key, name ? ns_key : name_key);
	f->is_name = false;
	int rc = fill(f, ns_key, ns, &full_ns, err);
	f->is_name = true;
	if (rc == 0)
		rc = fill(f, name_key, name, &full_name, err);
	if (rc == 0)
		put(pv, use, full_name, full_ns);
	return rc;
}

static bool is_known(const char *key)
{
	const char *rest = key + strlen(RESERVED);

	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		size_t len = strlen(uses[i].name);

		if (strncmp(rest, uses[i].name, len) == 0 &&
		    (streq(rest + len, "-secret-name") || streq(rest + len, "-secret-namespace")))
			return true;
	}
	return streq(rest, "fstype");
}

int class_secrets(const json_t *class, const json_t *claim, const char *volume, json_t **ret,
		  struct error *err)
{
	cleanup_json json_t *pv = json_object();
	struct filler f = { .claim = claim, .volume = volume };
	const char *key;
	json_t *value;
	int rc = 0;

	json_object_foreach (jget(class, "parameters"), key, value)
		if (str_has_prefix(key, RESERVED) && !is_known(key))
			return error_set(err, EINVAL,
					 "the StorageClass has the parameter %.128s, which nobody "
					 "knows; names that begin with " RESERVED " are reserved",
					 key);
	for (size_t i = 0; i < ARRAY_SIZE(uses) && rc == 0; i++)
		rc = one_use(&uses[i], class, &f, pv, err);
	if (rc == 0)
		*ret = TAKE_PTR(pv);
	return rc;
}
