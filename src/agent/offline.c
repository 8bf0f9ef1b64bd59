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

static bool reported_online(const json_t *node, const char *path)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "path"), path))
			return jbool(b, "online");
	return false;
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
	struct address_search s = { .address = b->address };
	cleanup_json json_t *node = NULL, *lease = NULL;
	cleanup_free char *name = NULL, *lease_name = NULL;

	reader_each(r->cache, &KIND_STORAGENODE, a->ns, node_at, &s);
	name = s.node;
	if (!name || streq(name, a->node))
		return;
	lease_name = xasprintf("node-%s", name);
	if (kube_get(r->kube, &KIND_LEASE, a->ns, lease_name, &lease, NULL) < 0 ||
	    kube_get(r->kube, &KIND_STORAGENODE, a->ns, name, &node, NULL) < 0)
		return;
	note_renewal(seen, jstr(lease, "spec", "renewTime"), reported_online(node, b->path),
		     clock_mono_ms(r->clock));
}

static void drop(struct agent_state *s, struct seen_offline *seen)
{
	free(seen->brick);
	free(seen->renewed);
	*seen = s->offline[--s->offline_count];
}

static void add(struct agent_state *s, const struct gluster_brick *b, int64_t now)
{
	s->offline = xrealloc(s->offline, (s->offline_count + 1) * sizeof(*s->offline));
	s->offline[s->offline_count++] = (struct seen_offline){
		.brick = xasprintf("%s:%s", b->address, b->path), .since_ms = now
	};
}

/* What a glusterd says that answers is so: it would know the brick's process. */
static bool answers(const struct gluster_peers *peers, const char *address)
{
	const struct gluster_peer *p = gluster_peer_find(peers, address);

	return p && p->connected && p->state == GLUSTER_PEER_BEFRIENDED;
}

void offline_note(struct reconcile *r, struct agent *a, const struct gluster_peers *peers,
		  const struct gluster_volume *v)
{
	int64_t now = clock_mono_ms(r->clock);

	for (size_t i = 0; i < v->brick_count; i++) {
		const struct gluster_brick *b = &v->bricks[i];
		struct seen_offline *seen = find(a->state, b->address, b->path);

		if (b->online || b->connected) {
			if (seen)
				drop(a->state, seen);
		} else if (!seen) {
			add(a->state, b, now);
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
