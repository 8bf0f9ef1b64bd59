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

static int probe(struct looking *l, const char *address, struct error *err)
{
	struct node_host *h = l->agent->host;
	int rc = h->ops->peer_probe(h, address, err);

	if (rc == -EXDEV) {
		/* This node stands alone, or in another pool: a member of the larger one can take it in. */
		if (l->agent->yield)
			l->agent->yield(l->agent);
		return error_prefix(err,
				    "Node %s belongs to another trusted pool; leaving the lead to "
				    "one of its members",
				    address);
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
		rc = p ? peer_trouble(p, &e) : probe(l, address, &e);
		if (rc < 0 && first.code == 0)
			first = e;
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
