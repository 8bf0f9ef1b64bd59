/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/volumes.h"
#include "kube/controller.h"

/*
 * VolumeAttributesClasses: what can be changed of a volume, by name. Read from the API itself
 * each time, and watched by nobody: a cluster older than the kind has none, and says so by not
 * finding them.
 */
struct attributes {
	json_t *class; /* NULL: none was named */
	struct volume_attributes values; /* in class */
	char *why; /* it cannot be used: a sentence */
};
void attributes_done(struct attributes *a);

enum attributes_found { ATTRIBUTES_FOUND, ATTRIBUTES_MISSING, ATTRIBUTES_REFUSED };
/*
 * How the class of that name can be used (NULL or "": FOUND, and none), or -errno. ret is
 * zero-initialised.
 */
int attributes_find(struct reconcile *r, const char *name, struct attributes *ret);

/*
 * Puts what a volume's record has to say for it into a PersistentVolume, or a merge patch of one
 * (patch).
 */
void attributes_put(const struct volume_attributes *values, json_t *pv, bool patch);
/* That, and the class's name; nothing where none was named. */
void attributes_apply(const struct attributes *a, json_t *pv, bool patch);
