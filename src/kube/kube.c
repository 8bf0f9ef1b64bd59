/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kube.h"

#include "base/mem.h"

/* Results may be unwanted: implementations always give them, these drop them. */
static int finish(int rc, json_t *result, json_t **ret)
{
	if (rc < 0)
		return rc;
	if (ret)
		*ret = result;
	else
		json_decref(result);
	return rc;
}

int kube_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
	     json_t **ret, struct error *err)
{
	json_t *result = NULL;
	int rc = k->ops->get(k, kind, ns, name, &result, err);

	return finish(rc, result, ret);
}

int kube_list(struct kube *k, const struct kind *kind, const char *ns,
	      const struct kube_selector *sel, json_t **ret, char **ret_version, struct error *err)
{
	json_t *result = NULL;
	char *version = NULL;
	int rc = k->ops->list(k, kind, ns, sel, &result, &version, err);

	if (rc >= 0 && ret_version)
		*ret_version = version;
	else
		free(version);
	return finish(rc, result, ret);
}

static int list_then_each(struct kube *k, const struct kind *kind, const char *ns,
			  const struct kube_selector *sel,
			  int (*fn)(json_t *object, void *userdata), void *userdata,
			  char **ret_version, struct error *err)
{
	cleanup_json json_t *items = NULL;
	json_t *item;
	size_t i;
	int rc = kube_list(k, kind, ns, sel, &items, ret_version, err);

	json_array_foreach (items, i, item)
		if (rc == 0)
			rc = fn(item, userdata);
	return rc;
}

int kube_list_each(struct kube *k, const struct kind *kind, const char *ns,
		   const struct kube_selector *sel, int (*fn)(json_t *object, void *userdata),
		   void *userdata, char **ret_version, struct error *err)
{
	cleanup_free char *version = NULL;
	int rc = (k->ops->list_each ? k->ops->list_each : list_then_each)(
		k, kind, ns, sel, fn, userdata, &version, err);

	if (rc == 0 && ret_version)
		*ret_version = TAKE_PTR(version);
	return rc;
}

int kube_create(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		struct error *err)
{
	json_t *result = NULL;
	int rc = k->ops->create(k, kind, object, &result, err);

	return finish(rc, result, ret);
}

int kube_update(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		struct error *err)
{
	json_t *result = NULL;
	int rc = k->ops->update(k, kind, NULL, object, &result, err);

	return finish(rc, result, ret);
}

int kube_update_status(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		       struct error *err)
{
	json_t *result = NULL;
	int rc = k->ops->update(k, kind, "status", object, &result, err);

	return finish(rc, result, ret);
}

int kube_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
	       const char *subresource, enum kube_patch type, const json_t *patch, json_t **ret,
	       struct error *err)
{
	json_t *result = NULL;
	int rc = k->ops->patch(k, kind, ns, name, subresource, type, patch, &result, err);

	return finish(rc, result, ret);
}

int kube_delete(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		const struct kube_delete_options *options, struct error *err)
{
	static const struct kube_delete_options none = { 0 };

	return k->ops->remove(k, kind, ns, name, options ? options : &none, err);
}

void kube_free(struct kube *k)
{
	if (k)
		k->ops->free(k);
}
