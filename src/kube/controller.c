/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/controller.h"

json_t *reader_get(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	return r->ops->get(r, kind, ns, name);
}

int reader_each(struct reader *r, const struct kind *kind, const char *ns,
		int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return r->ops->each(r, kind, ns, fn, userdata);
}

int reader_each_marked(struct reader *r, const struct kind *kind, const char *ns,
		       int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return r->ops->each_marked(r, kind, ns, fn, userdata);
}

void reader_learned(struct reader *r, const struct kind *kind, const json_t *object)
{
	r->ops->learned(r, kind, object);
}

void controller_watch_keys(const struct controller_watch *w, const json_t *object,
			   struct reconcile *r, struct strv *keys)
{
	if (w->keys)
		w->keys(object, r, keys);
	else
		strv_add_take(keys, object_key(object));
}
