/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/op.h"

#include "base/mem.h"

#include <errno.h>

#define LEAD_AGAIN_MS 2000
#define SOON_MS 1000

bool op_leads(struct reconcile *r, int64_t *ret_epoch)
{
	struct operator* op = op_of(r);
	int64_t epoch = 0;
	bool leads = op->leads(op->leads_userdata, &epoch);

	if (!leads)
		r->again_ms = LEAD_AGAIN_MS;
	else if (ret_epoch)
		*ret_epoch = epoch;
	return leads;
}

static const char *ns_of(const json_t *object)
{
	const char *ns = object_namespace(object);
	return *ns ? ns : NULL;
}

int op_patch(struct reconcile *r, const struct kind *kind, const json_t *object,
	     const char *subresource, json_t *patch, json_t **ret)
{
	cleanup_json json_t *result = NULL;
	jset(patch, json_string(object_version(object)), "metadata", "resourceVersion");
	int rc = kube_patch(r->kube, kind, ns_of(object), object_name(object), subresource,
			    KUBE_PATCH_MERGE, patch, &result, &r->error);
	json_decref(patch);
	if (rc < 0)
		return rc;
	reader_learned(r->cache, kind, result);
	if (ret)
		*ret = TAKE_PTR(result);
	return 0;
}

json_t *finalizers_with(const json_t *object, const char *finalizer)
{
	json_t *list = json_copy(jget(object, "metadata", "finalizers"));
	if (!list)
		list = json_array();
	if (!object_has_finalizer(object, finalizer))
		json_array_append_new(list, json_string(finalizer));
	return list;
}

json_t *finalizers_without(const json_t *object, const char *finalizer)
{
	json_t *list = json_array(), *f;
	size_t i;
	json_array_foreach (jget(object, "metadata", "finalizers"), i, f)
		if (!streq(json_string_value(f), finalizer))
			json_array_append(list, f);
	return list;
}

int op_drop_finalizer(struct reconcile *r, const struct kind *kind, const json_t *object,
		      const char *finalizer)
{
	if (!object_has_finalizer(object, finalizer))
		return 0;
	int rc = op_patch(r, kind, object, NULL,
			  json_pack("{s:{s:o}}", "metadata", "finalizers",
				    finalizers_without(object, finalizer)),
			  NULL);
	return rc == -ENOENT ? 0 : rc;
}

int op_get_live(struct reconcile *r, const struct kind *kind, const char *ns, const char *name,
		json_t **ret)
{
	int rc = kube_get(r->kube, kind, ns, name, ret, &r->error);
	if (rc == -ENOENT) {
		*ret = NULL;
		return 1;
	}
	return rc;
}

json_t *conditions_of(const json_t *object)
{
	json_t *conditions = json_deep_copy(jget(object, "status", "conditions"));
	return conditions ? conditions : json_array();
}

char *system_key(const struct operator* op)
{
	return xasprintf("%s/%s", op->ns, op->deployment);
}

void system_soon(struct reconcile *r)
{
	cleanup_free char *key = system_key(op_of(r));
	r->enqueue(r, "system", key, SOON_MS);
	if (!op_of(r)->binder)
		capacity_soon(r);
}
