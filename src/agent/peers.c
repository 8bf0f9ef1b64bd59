/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <stdio.h>

/* What is wrong with a peer that cannot be helped from here; NULL: nothing. */
static int peer_trouble(const struct gluster_peer *p, struct error *err)
{
	if (p->state == GLUSTER_PEER_REJECTED)
		return error_set(err, EPROTO,
				 "Node %s is rejected by the trusted pool: its volume definitions "
				 "differ; stop its glusterd, keep only "
				 "glusterd.info in /var/lib/glusterd, and it is taken in again",
				 p->address);
	return 0;
}

static int knows_volume(const json_t *pool, void *userdata)
{
	struct looking *l = userdata;
	struct node_host *h = l->agent->host;
	struct gluster_volume v cleanup_with(gluster_volume_done) = { 0 };

	if (!streq(jstr(pool, "spec", "cluster"), jstr(l->plan, "cluster")))
		return 0;
	return h->ops->volume_get(h, object_name(pool), VOLUME_LOOK_DEFINITION, &v, NULL) == -ENOENT
		       ? 0
		       : 1;
}

static int is_made(const json_t *pool, void *userdata)
{
	const struct looking *l = userdata;
	const char *id = jstr(pool, "status", "volumeId");

	return id && *id && streq(jstr(pool, "spec", "cluster"), jstr(l->plan, "cluster")) &&
	       !volume_is_to_go(pool);
}

static int each_pool(struct looking *l, int (*fn)(const json_t *pool, void *userdata))
{
	return reader_each(l->r->cache, &KIND_STORAGEPOOL, l->agent->ns, fn, l);
}

static bool is_half(const struct looking *l, const struct gluster_peers *peers)
{
	return 2 * (peers->count + 1) <= json_array_size(jget(l->plan, "peers"));
}

/*
 * Two leaders, one of them too slow to notice, can make two trusted pools, which gluster cannot
 * join. The one that has no volume falls apart if it is not the larger half, or if there are volumes
 * elsewhere, so that the other can take its members in. Either way somebody else has to go on from here.
 */
static int leave_to_other(struct looking *l, const struct gluster_peers *peers)
{
	struct node_host *h = l->agent->host;

	if ((is_half(l, peers) || each_pool(l, is_made)) && each_pool(l, knows_volume) == 0) {
		for (size_t i = 0; i < peers->count; i++) {
			log_warn("node %s leaves this trusted pool for the other one",
				 peers->items[i].address);
			h->ops->peer_detach(h, peers->items[i].address, NULL);
		}
	}
	if (l->agent->yield)
		l->agent->yield(l->agent);
	return -EXDEV;
}

/*
 * Whoever has none of the volumes that were made takes nobody in: two that do so in turn would keep each
 * other for ever from being taken into the trusted pool that has them.
 */
static bool is_to_be_taken_in(struct looking *l, const struct gluster_peers *peers)
{
	return is_half(l, peers) && each_pool(l, is_made) && each_pool(l, knows_volume) == 0;
}

static int probe(struct looking *l, const struct gluster_peers *peers, const char *address,
		 struct error *err)
{
	struct node_host *h = l->agent->host;
	int rc;

	if (is_to_be_taken_in(l, peers)) {
		error_set(err, EXDEV,
			  "This trusted pool has none of the cluster's volumes, so another one "
			  "has; leaving the lead to one of its members, which takes this node in");
		return leave_to_other(l, peers);
	}
	rc = h->ops->peer_probe(h, address, err);
	if (rc == -EXDEV) {
		error_set(err, EXDEV,
			  "Node %s belongs to another trusted pool; leaving the lead to one of its "
			  "members",
			  address);
		return leave_to_other(l, peers);
	}
	if (rc == -EHOSTUNREACH)
		return error_set(err, EHOSTUNREACH,
				 "Node %s does not answer on port 24007: is its agent running, and "
				 "the network between the nodes open?",
				 address);
	if (rc == 0)
		log_info("node %s joined the trusted pool", address);
	return rc;
}

int peers_converge(struct looking *l, struct error *err)
{
	struct node_host *h = l->agent->host;
	struct gluster_peers peers cleanup_with(gluster_peers_done) = { 0 };
	const char *self = jstr(l->plan, "address");
	const json_t *v;
	struct error first = ERROR_INIT;
	size_t i;
	int rc = h->ops->peers(h, &peers, err);

	if (rc < 0)
		return rc;
	json_array_foreach (jget(l->plan, "peers"), i, v) {
		const char *address = json_string_value(v);
		const struct gluster_peer *p = gluster_peer_find(&peers, address);
		struct error e = ERROR_INIT;

		if (!address || streq(address, self))
			continue;
		rc = p ? peer_trouble(p, &e) : probe(l, &peers, address, &e);
		if (rc < 0 && first.code == 0)
			first = e;
		if (rc == -EXDEV)
			break; /* joining others now would only make the wrong pool larger */
	}
	json_array_foreach (jget(l->plan, "detach"), i, v) {
		const char *address = json_string_value(v);
		struct error e = ERROR_INIT;

		if (!gluster_peer_find(&peers, address))
			continue;
		rc = h->ops->peer_detach(h, address, &e);
		if (rc < 0 && first.code == 0)
			first = e;
	}
	if (first.code == 0)
		return 0;
	if (err)
		*err = first;
	return -first.code;
}

/* ---- a node that leaves -------------------------------------------------------------------- */
/* Nobody of the cluster is in this node's trusted pool: what that does is not seen by whoever leads. */
static bool is_apart(struct looking *l)
{
	struct node_host *h = l->agent->host;
	struct gluster_peers peers cleanup_with(gluster_peers_done) = { 0 };
	const json_t *v;
	size_t i;

	if (!agent_leaves(l->plan) || h->ops->peers(h, &peers, NULL) < 0)
		return false;
	json_array_foreach (jget(l->plan, "peers"), i, v)
		if (gluster_peer_find(&peers, json_string_value(v)))
			return false;
	return true;
}

/* *ret: the volume, which the caller ends. */
static bool is_unreported(struct looking *l, const json_t *record, struct gluster_volume *ret)
{
	struct node_host *h = l->agent->host;
	const char *pool = jstr(record, "pool"), *uid = jstr(record, "poolUid"), *mark;
	cleanup_json json_t *o = NULL;
	int rc;

	if (h->ops->volume_get(h, pool, VOLUME_LOOK_DEFINITION, ret, NULL) < 0)
		return false;
	mark = jstr(ret->options, VOLUME_OPTION_POOL);
	if (mark && uid && !streq(mark, uid))
		return false; /* of another pool of that name than the brick is */
	/* from the API: that a cache has not heard of it says nothing */
	rc = kube_get(l->r->kube, &KIND_STORAGEPOOL, l->agent->ns, pool, &o, NULL);
	return (rc == 0 || rc == -ENOENT) && ret->state == VOLUME_CREATED &&
	       !streq(ret->id, jstr(o, "status", "volumeId"));
}

/*
 * A volume whose maker lost power before it had reported it: the operator never heard of it, and gave its
 * pool to other nodes, which make it anew. It was never started, since that comes after the report, so
 * nothing is in it; but here it holds its brick, and nobody else would remove it.
 */
void peers_forget_unreported(struct looking *l, const struct strv *released)
{
	struct node_host *h = l->agent->host;
	cleanup_json json_t *records = NULL;
	const json_t *r;
	size_t i;

	if (!released->count || !is_apart(l))
		return;
	records = brick_records(h);
	json_array_foreach (records, i, r) {
		struct gluster_volume v cleanup_with(gluster_volume_done) = { 0 };
		struct volume_step step = { .kind = STEP_DELETE };
		struct error err = ERROR_INIT;
		int rc;

		if (!jstr(r, "pool") || !strv_contains(released, jstr(r, "id")) ||
		    !is_unreported(l, r, &v))
			continue;
		log_warn("volume %s was never reported nor started, and its node leaves: deleted",
			 jstr(r, "pool"));
		snprintf(step.volume, sizeof(step.volume), "%s", jstr(r, "pool"));
		volume_step_of(&step, v.id);
		rc = h->ops->volume_apply(h, &step, &err);
		if (rc < 0)
			log_warn("volume %s: %s", step.volume, error_text(&err, rc));
	}
}
