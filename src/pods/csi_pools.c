/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/operator.h"
#include "pods/csi.h"

#include <errno.h>

/* Of each pool the text that its file will have. New reference. */
static json_t *texts_of(const json_t *pools)
{
	json_t *texts = json_object(), *pool;
	const char *name;

	json_object_foreach ((json_t *)pools, name, pool) {
		cleanup_free char *text = json_text(pool);

		json_object_set_new(texts, name, json_string(text));
	}
	return texts;
}

/* As a merge patch: what is not wanted any more is null. New reference. */
static json_t *patch_of(const json_t *have, const json_t *texts)
{
	json_t *data = json_copy((json_t *)texts), *old;
	const char *name;

	json_object_foreach (jget(have, "data"), name, old)
		if (!json_object_get(texts, name))
			json_object_set_new(data, name, json_null());
	return json_pack("{s:{s:s}, s:o}", "metadata", "resourceVersion", object_version(have),
			 "data", data);
}

int csi_pools_ensure(const struct csi_settings *s, struct kube *kube, const json_t *pools,
		     struct error *err)
{
	cleanup_json json_t *texts = texts_of(pools), *have = NULL, *change = NULL;
	int rc = kube_get(kube, &KIND_CONFIGMAP, s->ns, CSI_POOLS, &have, err);

	if (rc == -ENOENT) {
		change = json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:O}", "apiVersion", "v1",
				   "kind", "ConfigMap", "metadata", "name", CSI_POOLS, "namespace",
				   s->ns, "labels", QM_LABEL_DEPLOYMENT, s->deployment, "data",
				   texts);
		return kube_create(kube, &KIND_CONFIGMAP, change, NULL, err);
	}
	if (rc < 0 || json_equal(jget(have, "data"), texts))
		return rc;
	change = patch_of(have, texts);
	return kube_patch(kube, &KIND_CONFIGMAP, s->ns, CSI_POOLS, NULL, KUBE_PATCH_MERGE, change,
			  NULL, err);
}
