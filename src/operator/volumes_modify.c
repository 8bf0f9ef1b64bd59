/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/attributes.h"
#include "operator/volumes_internal.h"

#include "base/mem.h"

/* What can be changed of a volume stands in its record alone. */
static int modify_once(struct job *j, const struct handle *id,
		       const struct volume_attributes *attributes)
{
	cleanup_json json_t *pv = NULL;
	int rc = job_volume(j, id, &pv);

	if (rc == 0)
		rc = record_may_change(j, pv);
	if (rc < 0)
		return rc;
	json_t *patch = json_object();
	attributes_put(attributes, patch, true);
	if (json_object_size(patch))
		return op_patch(&j->r, &KIND_PV, pv, NULL, patch, NULL);
	json_decref(patch);
	return 0;
}

int volumes_modify(struct volumes *v, const struct handle *id,
		   const struct volume_attributes *attributes, struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	do
		rc = modify_once(&j, id, attributes);
	while (job_again(&j, rc));
	return job_end(&j, rc, err);
}
