/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes that are made where an agent meets the API and its machine. */
#include "model.h"

#include "base/mem.h"
#include "systems/glusterfs/cluster.h"

static void set_each(json_t *list, const char *key, bool value)
{
	json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		json_object_set_new(o, key, json_boolean(value));
}

/* An object that is not in the caches yet is as if there were nothing to know of it. */
static void cold_cache(struct proc *p, json_t *pool)
{
	if (p->visible(p, &KIND_STORAGEPOOL, pool))
		return;
	set_each(jget(pool, "spec", "bricks"), "prepared", false);
	json_object_del(jget(pool, "status"), "bricks");
}

static void all_whole(struct model_node *n, json_t *pool)
{
	const struct model_volume *v = model_volume_in(n->model, n->trust, object_name(pool));
	json_t *mark;
	size_t i;

	json_array_foreach (jget(pool, "status", "bricks"), i, mark) {
		for (size_t k = 0; v && k < v->brick_count; k++) {
			const char *path = v->bricks[k].path;
			cleanup_free char *root =
				xstrndup(path, (size_t)(strrchr(path, '/') - path));

			if (!streq(model_id_of_root(root), jstr(mark, "id")))
				continue;
			json_object_set_new(mark, "whole", json_true());
			json_object_set_new(mark, "pid", json_integer(200 + v->bricks[k].pid));
		}
	}
}

static void change_answer(struct proc *p, const struct kind *kind, json_t *object)
{
	enum mutant m = p->world->mutant;
	const char *uid;

	if (!p->visible) /* not an agent */
		return;
	if (m == MUTANT_FORCED_BRICK && kind == &KIND_STORAGENODE)
		set_each(jget(object, "status", "agent", "bricks"), "mounted", true);
	if (m == MUTANT_COLD_CACHE && kind == &KIND_STORAGEPOOL)
		cold_cache(p, object);
	if (m == MUTANT_ALL_WHOLE && kind == &KIND_STORAGEPOOL)
		all_whole(p->userdata, object);
	uid = m == MUTANT_NAMES_ALONE ? proc_first_read(p, kind, object_name(object)) : NULL;
	if (uid)
		jset(object, json_string(uid), "metadata", "uid");
}

void model_mutate(struct world *w)
{
	if (w->mutant != MUTANT_NONE)
		w->change_answer = change_answer;
}

void model_mutate_volume(struct proc *p, struct gluster_volume *v)
{
	const char *uid = proc_first_read(p, &KIND_STORAGEPOOL, v->name);
	cleanup_json json_t *pool = NULL;

	if (p->world->mutant != MUTANT_NAMES_ALONE || !uid)
		return;
	if (json_object_get(v->options, VOLUME_OPTION_POOL))
		json_object_set_new(v->options, VOLUME_OPTION_POOL, json_string(uid));
	pool = reader_get(&p->reader, &KIND_STORAGEPOOL, "default", v->name);
	if (!jstr(pool, "status", "volumeId"))
		return;
	free(v->id);
	v->id = xstrdup(jstr(pool, "status", "volumeId"));
}

void model_mutate_facts(const struct model_node *n, const struct model_device *d,
			struct device_facts *f)
{
	const char *name;
	json_t *record;

	if (n->model->world->mutant != MUTANT_BLIND_WIPE)
		return;
	json_object_foreach (n->records, name, record)
		if (*d->uuid && streq(jstr(record, "uuid"), d->uuid) &&
		    !streq(jstr(record, "device"), d->name)) {
			*f->uuid = 0;
			snprintf(f->wwn, sizeof(f->wwn), "at %s", d->name);
		}
}
