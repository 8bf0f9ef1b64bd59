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

/*
 * Two leaders, one of them too slow to notice, can make two trusted pools, which gluster cannot
 * join. The one that is not the larger half and has no volume falls apart, so that the other can
 * take its members in. Either way somebody else has to go on from here.
 */
static int other_pool(struct looking *l, const struct gluster_peers *peers, const char *address,
		      struct error *err)
{
	struct node_host *h = l->agent->host;
	size_t all = json_array_size(jget(l->plan, "peers"));

	if (2 * (peers->count + 1) <= all &&
	    reader_each(l->r->cache, &KIND_STORAGEPOOL, l->agent->ns, knows_volume, l) == 0) {
		for (size_t i = 0; i < peers->count; i++) {
			log_warn("node %s leaves this trusted pool for the larger one",
				 peers->items[i].address);
			h->ops->peer_detach(h, peers->items[i].address, NULL);
		}
	}
	if (l->agent->yield)
		l->agent->yield(l->agent);
	return error_set(
		err, EXDEV,
		"Node %s belongs to another trusted pool; leaving the lead to one of its members",
		address);
}

static int probe(struct looking *l, const struct gluster_peers *peers, const char *address,
		 struct error *err)
{
	struct node_host *h = l->agent->host;
	int rc = h->ops->peer_probe(h, address, err);

	if (rc == -EXDEV)
		return other_pool(l, peers, address, err);
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
