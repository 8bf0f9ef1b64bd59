/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/mem.h"

/*
 * A brick that gluster does not see from here may serve all the same: its node's glusterd is what
 * cannot be asked. The agent there tells, as long as it renews its lease. Only a lease that is
 * renewed a while after the brick was last seen counts: what a machine that has died had told
 * stands for a moment. No machine's clock is compared with another's.
 */
#define ASK_NODE_MS 60000

static struct seen_offline *find(struct agent_state *s, const char *address, const char *path)
{
	cleanup_free char *brick = xasprintf("%s:%s", address, path);

	for (size_t i = 0; i < s->offline_count; i++)
		if (streq(s->offline[i].brick, brick))
			return &s->offline[i];
	return NULL;
}

struct address_search {
	const char *address;
	char *node;
};

static int node_at(const json_t *node, void *userdata)
{
	struct address_search *s = userdata;

	if (!streq(jstr(node, "status", "plan", "address"), s->address))
		return 0;
	s->node = xstrdup(object_name(node));
	return 1;
}

/* The name of the node that has this address; NULL: none that is known. */
static char *name_at(struct reconcile *r, struct agent *a, const char *address)
{
	struct address_search s = { .address = address };

	reader_each(r->cache, &KIND_STORAGENODE, a->ns, node_at, &s);
	return s.node;
}

static const json_t *reported(const json_t *node, const char *path)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "path"), path))
			return b;
	return NULL;
}

bool offline_unmounted(struct reconcile *r, struct agent *a, const struct gluster_brick *b)
{
	cleanup_free char *name = name_at(r, a, b->address);
	cleanup_json json_t *node = NULL;
	const json_t *said;

	if (!name || kube_get(r->kube, &KIND_STORAGENODE, a->ns, name, &node, NULL) < 0)
		return false;
	said = reported(node, b->path);
	return said && !jbool(said, "mounted");
}

static void note_renewal(struct seen_offline *seen, const char *renewed, bool online, int64_t now)
{
	seen->runs = online && seen->renewed && renewed && !streq(renewed, seen->renewed);
	if (seen->runs)
		seen->since_ms = now;
	else if (seen->renewed)
		return;
	free(seen->renewed);
	seen->renewed = renewed ? xstrdup(renewed) : NULL;
}

/* Asks the API itself: a cache that lags would call a brick lost that runs. */
static void ask_its_node(struct reconcile *r, struct agent *a, const struct gluster_brick *b,
			 struct seen_offline *seen)
{
	cleanup_json json_t *node = NULL, *lease = NULL;
	cleanup_free char *name = name_at(r, a, b->address), *lease_name = NULL;

	if (!name || streq(name, a->node))
		return;
	lease_name = xasprintf("node-%s", name);
	if (kube_get(r->kube, &KIND_LEASE, a->ns, lease_name, &lease, NULL) < 0 ||
	    kube_get(r->kube, &KIND_STORAGENODE, a->ns, name, &node, NULL) < 0)
		return;
	note_renewal(seen, jstr(lease, "spec", "renewTime"),
		     jbool(reported(node, b->path), "online"), clock_mono_ms(r->clock));
}

static void drop(struct agent_state *s, struct seen_offline *seen)
{
	free(seen->brick);
	free(seen->pool);
	free(seen->renewed);
	*seen = s->offline[--s->offline_count];
}

static void add(struct agent_state *s, const char *pool, const struct gluster_brick *b,
		int64_t now)
{
	s->offline = xrealloc(s->offline, (s->offline_count + 1) * sizeof(*s->offline));
	s->offline[s->offline_count++] = (struct seen_offline){
		.brick = xasprintf("%s:%s", b->address, b->path),
		.pool = xstrdup(pool),
		.since_ms = now
	};
}

/* What a glusterd says that answers is so: it would know the brick's process. */
static bool answers(const struct gluster_peers *peers, const char *address)
{
	const struct gluster_peer *p = gluster_peer_find(peers, address);

	return p && p->connected && p->state == GLUSTER_PEER_BEFRIENDED;
}

static bool has(const struct gluster_volume *v, const char *brick)
{
	for (size_t i = 0; i < v->brick_count; i++) {
		cleanup_free char *of =
			xasprintf("%s:%s", v->bricks[i].address, v->bricks[i].path);

		if (streq(of, brick))
			return true;
	}
	return false;
}

/* Those of this pool that v (NULL: it is gone) does not have. */
static void drop_others(struct agent_state *s, const char *pool, const struct gluster_volume *v)
{
	for (size_t i = s->offline_count; i-- > 0;)
		if (streq(s->offline[i].pool, pool) && !(v && has(v, s->offline[i].brick)))
			drop(s, &s->offline[i]);
}

void offline_drop(struct agent_state *s, const char *pool)
{
	drop_others(s, pool, NULL);
}

void offline_note(struct reconcile *r, struct agent *a, const char *pool,
		  const struct gluster_peers *peers, const struct gluster_volume *v)
{
	int64_t now = clock_mono_ms(r->clock);

	drop_others(a->state, pool, v);
	for (size_t i = 0; i < v->brick_count; i++) {
		const struct gluster_brick *b = &v->bricks[i];
		struct seen_offline *seen = find(a->state, b->address, b->path);

		if (b->online || b->connected) {
			if (seen)
				drop(a->state, seen);
		} else if (!seen) {
			add(a->state, pool, b, now);
		} else if (answers(peers, b->address)) {
			seen->runs = false;
		} else if (now - seen->since_ms >= ASK_NODE_MS) {
			ask_its_node(r, a, b, seen);
		}
	}
}

void offline_forget(struct agent_state *s)
{
	while (s->offline_count > 0)
		drop(s, &s->offline[s->offline_count - 1]);
}

int64_t offline_ms(struct reconcile *r, struct agent *a, const char *address, const char *path)
{
	const struct seen_offline *seen = find(a->state, address, path);
	int64_t ms = seen ? clock_mono_ms(r->clock) - seen->since_ms : 0;

	/* one whose disk was replaced does not come back: there is nothing to wait for */
	return seen && ms < BRICK_LOST_MS && disk_replaced(r, a, address, path) ? BRICK_LOST_MS
									: ms;
}

bool offline_runs(struct agent *a, const char *address, const char *path)
{
	const struct seen_offline *seen = find(a->state, address, path);

	return seen && seen->runs;
}
