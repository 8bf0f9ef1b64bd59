/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/mem.h"

/*
 * What an agent watches does not grow with the number of nodes: its own StorageNode by name, the pools
 * that have a brick here by name, and their volumes by label. Only who leads a cluster sees all of that.
 */
struct selectors {
	struct kube_selector *items;
	size_t count;
	struct strv texts; /* what the items point to is one of these */
};

static void selectors_done(struct selectors *s)
{
	free(s->items);
	strv_done(&s->texts);
}

static void add(struct selectors *s, bool by_label, char *text /* stolen */)
{
	s->items = xrealloc(s->items, (s->count + 1) * sizeof(*s->items));
	strv_add_take(&s->texts, text);
	s->items[s->count++] = (struct kube_selector){ .labels = by_label ? text : NULL,
						       .fields = by_label ? NULL : text };
}

static void add_cluster(struct selectors *s, const struct following *f)
{
	if (f->cluster)
		add(s, true,
		    xasprintf(LABEL_DEPLOYMENT "=%s," LABEL_CLUSTER "=%s", f->deployment,
			      f->cluster));
}

static int follow_nodes(struct runner *r, const struct following *f, struct error *err)
{
	cleanup_with(selectors_done) struct selectors s = { 0 };

	add(&s, false, xasprintf("metadata.name=%s", f->node));
	add_cluster(&s, f);
	return runner_follow(r, &KIND_STORAGENODE, s.items, s.count, err);
}

static int follow_stores(struct runner *r, const struct following *f, struct error *err)
{
	cleanup_with(selectors_done) struct selectors s = { 0 };

	for (size_t i = 0; i < f->pools->count; i++) {
		add(&s, false, xasprintf("metadata.name=%s", f->pools->items[i]));
		add(&s, true,
		    xasprintf(LABEL_POOL "=%s", f->pools->items[i])); /* whole volumes in it */
	}
	add_cluster(&s, f);
	return runner_follow(r, &KIND_STORAGEPOOL, s.items, s.count, err);
}

static int follow_volumes(struct runner *r, const struct following *f, struct error *err)
{
	cleanup_with(selectors_done) struct selectors s = { 0 };

	for (size_t i = 0; i < f->pools->count; i++)
		add(&s, true, xasprintf(LABEL_POOL "=%s", f->pools->items[i]));
	return runner_follow(r, &KIND_PV, s.items, s.count, err);
}

int follow_apply(struct runner *r, const struct following *f, struct error *err)
{
	int nodes = follow_nodes(r, f, err), pools = nodes < 0 ? nodes : follow_stores(r, f, err),
	    volumes = pools < 0 ? pools : follow_volumes(r, f, err);

	/* who leads can do that without having seen the volumes */
	return volumes < 0 ? volumes : nodes && pools;
}

static void add_pools(const json_t *bricks, struct strv *ret)
{
	const json_t *b;
	size_t i;

	json_array_foreach (bricks, i, b) {
		const char *pool = jstr(b, "pool");

		if (pool && *pool && !jstr(b, "parent") && !strv_contains(ret, pool))
			strv_add(ret, pool);
	}
}

void follow_pools(const json_t *node, struct strv *ret)
{
	add_pools(jget(node, "status", "plan", "bricks"), ret);
	add_pools(jget(node, "status", "agent", "bricks"), ret);
}
