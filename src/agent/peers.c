/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>

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
