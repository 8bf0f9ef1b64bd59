/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

#define READ (1 << VERB_GET | 1 << VERB_LIST | 1 << VERB_WATCH)
#define CHANGE (1 << VERB_UPDATE | 1 << VERB_PATCH)
#define CREATE (1 << VERB_CREATE)

#define LEASE_PREFIX "cluster-"
#define HEARTBEAT_PREFIX "node-"

/* An agent may do this, and nothing else; access_guard narrows it further. */
static const struct {
	const struct kind *kind;
	const char *subresource;
	unsigned verbs;
} agent_rules[] = {
	{ &KIND_STORAGENODE, NULL, READ },
	{ &KIND_STORAGENODE, "status", READ | CHANGE },
	{ &KIND_STORAGEPOOL, NULL, READ },
	{ &KIND_STORAGEPOOL, "status", READ | CHANGE },
	{ &KIND_PV, NULL, READ },
	{ &KIND_LEASE, NULL, READ | CREATE | CHANGE },
	{ &KIND_EVENT, NULL, CREATE | CHANGE },
};

/* Leases of a cluster are any agent's to take; a node's heartbeat is only its own agent's. */
static bool agent_lease(const struct identity *who, const char *ns, const char *name)
{
	cleanup_free char *own = NULL;

	if (!name || !str_has_prefix(name, HEARTBEAT_PREFIX))
		return name && str_has_prefix(name, LEASE_PREFIX);
	own = xasprintf("agent-%s-%s", ns ? ns : "", name + strlen(HEARTBEAT_PREFIX));
	return streq(who->name, own);
}

static bool agent_allowed(const struct identity *who, const struct access *a)
{
	bool allowed = false;

	for (size_t i = 0; i < ARRAY_SIZE(agent_rules); i++)
		if (agent_rules[i].kind == a->kind &&
		    streq(agent_rules[i].subresource, a->subresource))
			allowed |= (agent_rules[i].verbs >> a->verb) & 1;
	if (a->kind == &KIND_LEASE && a->name && !((READ >> a->verb) & 1))
		allowed &= agent_lease(who, a->ns, a->name);
	return allowed;
}

bool access_allowed(const struct identity *who, const struct access *a)
{
	if (streq(who->role, "admin"))
		return true;
	if (streq(who->role, "operator"))
		return a->kind != &KIND_SECRET ||
		       streq(a->ns, who->node[0] ? who->node : "default");
	if (streq(who->role, "reader"))
		return a->kind != &KIND_SECRET && ((READ >> a->verb) & 1);
	return streq(who->role, "agent") && agent_allowed(who, a);
}

const char *access_refusal(const struct identity *who, const struct access *a, char *buf,
			   size_t size)
{
	char resource[RESOURCE_MAX];

	snprintf(
		buf, size,
		"%s%s%.253s%s is forbidden: User \"%s\" cannot %s resource \"%s%s%s\" in API group "
		"\"%s\"%s%.253s%s",
		kind_resource(a->kind, resource), a->name ? " \"" : "", a->name ? a->name : "",
		a->name ? "\"" : "", who->name, verb_text(a->verb), a->kind->plural,
		a->subresource ? "/" : "", a->subresource ? a->subresource : "", a->kind->group,
		a->ns ? " in the namespace \"" : "", a->ns ? a->ns : "",
		a->ns ? "\"" : " at the cluster scope");
	return buf;
}

/* A node's agent reports on its own node; who the node is and what it shall do, others decide. */
static const char *agent_overreach(const struct identity *who, const struct kind *kind,
				   const json_t *old, const json_t *new)
{
	static const char *const fixed[] = { "nodeName", "plan", "address" };

	if (kind == &KIND_LEASE &&
	    !agent_lease(who, jstr(new, "metadata", "namespace"), jstr(new, "metadata", "name")))
		return "an agent's leases are " LEASE_PREFIX "* and the heartbeat of its own node";
	if (kind != &KIND_STORAGENODE)
		return NULL;
	if (!streq(jstr(old, "status", "nodeName"), who->node))
		return "it is another node's";
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		const json_t *a = jget(old, "status", fixed[i]), *b = jget(new, "status", fixed[i]);

		if (a != b && !(a && b && json_equal(a, b)))
			return "an agent may not change nodeName, plan or address";
	}
	return NULL;
}

int access_guard(const json_t *old, const json_t *new, void *userdata, struct error *err)
{
	const struct access_guard *g = userdata;
	const char *why;
	char text[400];

	if (!streq(g->who->role, "agent"))
		return 0;
	why = agent_overreach(g->who, g->access->kind, old, new);
	if (!why)
		return 0;
	return error_set(err, EPERM, "%s: %s",
			 access_refusal(g->who, g->access, text, sizeof(text)), why);
}
