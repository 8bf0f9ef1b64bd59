/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/attributes.h"

#include "base/mem.h"
#include "operator/op.h"

#include <errno.h>

void attributes_done(struct attributes *a)
{
	json_decref(a->class);
	free(a->why);
	*a = (struct attributes){ 0 };
}

static int refuse(struct attributes *a, const char *why)
{
	a->why =
		xasprintf("VolumeAttributesClass %s: %s; name another", object_name(a->class), why);
	return ATTRIBUTES_REFUSED;
}

/* All of it, or nothing: one parameter that there is not is a mistake in the others too. */
static int read_class(struct attributes *a)
{
	const char *driver = jstr(a->class, "driverName"), *key;
	struct error err = ERROR_INIT;
	json_t *value;

	if (!streq(driver, QM_DRIVER)) {
		cleanup_free char *why = xasprintf("it is for volumes of %s, not of " QM_DRIVER,
						   driver ? driver : "nobody");
		return refuse(a, why);
	}
	json_object_foreach (jget(a->class, "parameters"), key, value) {
		const char *text = json_string_value(value);

		if (volume_attribute(key, text ? text : "", &a->values, &err) < 0) {
			a->values = (struct volume_attributes){ 0 };
			return refuse(a, err.message);
		}
	}
	return ATTRIBUTES_FOUND;
}

int attributes_find(struct reconcile *r, const char *name, struct attributes *ret)
{
	if (!name || !*name)
		return ATTRIBUTES_FOUND;
	int rc = op_get_live(r, &KIND_VOLUMEATTRIBUTESCLASS, NULL, name, &ret->class);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return read_class(ret);
	ret->why =
		xasprintf("there is no VolumeAttributesClass %s; make it, or name another", name);
	return ATTRIBUTES_MISSING;
}

/* What is not to be archived has no annotation. */
void attributes_put(const struct volume_attributes *values, json_t *pv, bool patch)
{
	bool archive = streq(values->reclaim, "archive");

	if (!values->reclaim)
		return;
	if (archive || patch)
		jset(pv, archive ? json_string("archive") : json_null(), "metadata", "annotations",
		     QM_ANNOTATION_RECLAIM);
	else
		json_object_del(jget(pv, "metadata", "annotations"), QM_ANNOTATION_RECLAIM);
}

void attributes_apply(const struct attributes *a, json_t *pv, bool patch)
{
	if (!a->class)
		return;
	attributes_put(&a->values, pv, patch);
	jset(pv, json_string(object_name(a->class)), "spec", "volumeAttributesClassName");
}
