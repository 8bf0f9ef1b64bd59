/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "operator/ledger.h"
#include "operator/system.h"

#include <errno.h>

#define ENSURE_AGAIN_MS 60000
#define REMOVE_AGAIN_MS 500
#define STALE_AGAIN_MS 1000
#define SEEK_MAX 20 /* machines that are asked for again in a first look */
#define SEEK_AGAIN_MS                                                                              \
	500 /* times the number of machines that are not found: so many questions a second */
#define NODE_LEASE_PREFIX "node-"
#define RENEWALS_EVERY_MS 5000 /* of what is renewed each 10 s and missed after 40 s */

/* ---- before planning --------------------------------------------------------------------------- */

/* Ours from now on: by its label even when another deployment comes, by its finalizer until it is empty. */
static int adopt(struct system *s, json_t *node)
{
	json_t *adopted = NULL;
	if (object_deleting(node) || (object_has_finalizer(node, QM_FINALIZER_NODE) &&
				      object_label(node, QM_LABEL_DEPLOYMENT)))
		return 0;
	int rc = op_patch(s->r, &KIND_STORAGENODE, node, NULL,
			  json_pack("{s:{s:{s:s}, s:o}}", "metadata", "labels", QM_LABEL_DEPLOYMENT,
				    s->op->deployment, "finalizers",
				    finalizers_with(node, QM_FINALIZER_NODE)),
			  &adopted);
	if (rc == 0)
		json_object_update(node, adopted);
	json_decref(adopted);
	return rc;
}

static int note_renewal(json_t *lease, void *userdata)
{
	json_t *renewals = userdata;
	const char *name = object_name(lease), *renewed = jstr(lease, "spec", "renewTime");

	if (str_has_prefix(name, NODE_LEASE_PREFIX) && renewed)
		json_object_set_new(renewals, name + strlen(NODE_LEASE_PREFIX),
				    json_string(renewed));
	return 0;
}

/* An agent that has nothing new to report still renews its own lease, node-<name>: one list for all of them. */
int nodes_begin(struct system *s)
{
	int64_t now = clock_mono_ms(s->r->clock);
	int rc;

	s->renewals = memory_renewals(s->op->memory, now - RENEWALS_EVERY_MS);
	if (s->renewals || !s->reported)
		return 0;
	s->renewals = json_object();
	rc = kube_list_each(s->r->kube, &KIND_LEASE, s->op->ns, NULL, note_renewal, s->renewals,
			    NULL, &s->r->error);
	if (rc == 0)
		memory_set_renewals(s->op->memory, s->renewals, now);
	return rc;
}

/* NULL: nothing heard. */
static char *heartbeat_of(struct system *s, const json_t *node)
{
	const char *reported = jstr(node, "status", "agent", "heartbeat"),
		   *renewed = jstr(s->renewals, object_name(node));

	return reported ? xasprintf("%s %s", reported, renewed ? renewed : "") : NULL;
}

/* Offline: its agent was heard of, and not for a while. Only a new heartbeat ends that. */
static void note_heartbeat(struct system *s, json_t *node)
{
	struct node_memory *m = memory_node(s->op->memory, object_uid(node));
	cleanup_free char *heartbeat = heartbeat_of(s, node);
	bool was_offline = streq(jstr(node, "status", "phase"), "Offline");
	int64_t now = clock_mono_ms(s->r->clock);

	if (!heartbeat)
		return;
	if (!m->heartbeat)
		m->known_ms = now;
	if (!streq(heartbeat, m->heartbeat)) {
		bool first = !m->heartbeat;
		free(m->heartbeat);
		m->heartbeat = xstrdup(heartbeat);
		m->heard_ms = first && was_offline ? now - NODE_OFFLINE_MS : now;
	}
	bool offline = now - m->heard_ms >= NODE_OFFLINE_MS;
	if (offline != was_offline)
		jset(node, json_string(offline ? "Offline" : "Pending"), "status", "phase");
}

int nodes_prepare(struct system *s)
{
	size_t i;
	json_t *node;

	for (i = 0; i < json_array_size(s->nodes);) {
		int rc = adopt(s, json_array_get(s->nodes, i));
		if (rc < 0 && !op_is_of_object(rc))
			return rc;
		if (rc == 0 || !node_set_aside(s, i, error_text(&s->r->error, rc)))
			i++;
		s->r->error = ERROR_INIT;
	}
	json_array_foreach (s->nodes, i, node) {
		if (jget(node, "status", "phase"))
			json_object_set(s->phases, object_name(node),
					jget(node, "status", "phase"));
		note_heartbeat(s, node);
	}
	return 0;
}

/* ---- what is said about a node ----------------------------------------------------------------- */

struct verdict {
	struct system *s;
	const json_t *node, *plan;
	json_t *conditions;
	char *machine; /* owned */
	bool well;
};

static void condition(struct verdict *v, const char *type, bool status, const char *reason,
		      const char *message)
{
	condition_set(v->conditions, type, status, reason, message,
		      jint(v->node, "metadata", "generation"), clock_wall_ms(v->s->r->clock));
	v->well = v->well && status;
}

/* A condition that is True unless there are findings of those kinds. */
static void condition_unless(struct verdict *v, const char *type, const char *const *reasons,
			     const char *reason)
{
	cleanup_free char *text = findings_text(v->s, object_name(v->node), reasons);
	condition(v, type, !text, text ? reason : "AsDeclared", text ? text : "as declared");
}

/*
 * Asking for a machine costs a call. Where many are not there, not all are asked for in each look; nor
 * all of them by an operator that has just begun.
 */
static bool sought_lately(const struct verdict *v, struct node_memory *m)
{
	const json_t *told = condition_get(v->conditions, "MachineFound");
	int64_t wait = (int64_t)memory_lost(v->s->op->memory) * SEEK_AGAIN_MS,
		now = clock_mono_ms(v->s->r->clock),
		generation = jint(v->node, "metadata", "generation");

	if (!told || jint(told, "observedGeneration") != generation)
		return false;
	if (m->sought_ms)
		return m->sought_generation == generation && now - m->sought_ms < wait;
	if (v->s->sought++ < SEEK_MAX)
		return false;
	m->sought_ms = now;
	m->sought_generation = generation;
	return true;
}

static void judge_machine(struct verdict *v)
{
	struct operator* op = v->s->op;
	struct node_memory *m = memory_node(op->memory, object_uid(v->node));
	const char *known = jstr(v->node, "status", "nodeName");
	struct error err = ERROR_INIT;

	if (known &&
	    (object_deleting(v->node) || jint(v->node, "status", "observedGeneration") ==
						 jint(v->node, "metadata", "generation"))) {
		v->machine = xstrdup(known);
		return;
	}
	if (sought_lately(v, m)) {
		v->s->lost++;
		v->well = false;
		v->machine = known ? xstrdup(known) : NULL;
		return;
	}
	int rc = op->platform->ops->machine(op->platform, v->node, &v->machine, &err);
	m->sought_ms = rc < 0 ? clock_mono_ms(v->s->r->clock) : 0;
	m->sought_generation = jint(v->node, "metadata", "generation");
	v->s->lost += rc < 0;
	if (rc == 0 && known && !streq(known, v->machine) &&
	    json_array_size(jget(v->plan, "bricks"))) {
		cleanup_free char *text = xasprintf(
			"the node's bricks are on machine %s, so it stays there instead of %s; "
			"empty it first, or set the old nodeSelector",
			known, v->machine);
		condition(v, "MachineFound", false, "MachineChanged", text);
		free(v->machine);
		v->machine = xstrdup(known);
		return;
	}
	if (rc < 0 && known)
		v->machine = xstrdup(known);
	condition(v, "MachineFound", rc == 0,
		  rc == 0	    ? "Found"
		  : rc == -ENOTUNIQ ? "Several"
				    : "None",
		  rc == 0 ? v->machine : error_text(&err, rc));
}

static void judge_agent(struct verdict *v)
{
	const json_t *agent = jget(v->node, "status", "agent");
	const char *message = jstr(agent, "glusterd", "message");

	if (!agent)
		condition(v, "AgentReady", false, "NotReported", "its agent has not reported yet");
	else if (streq(jstr(v->node, "status", "phase"), "Offline"))
		condition(v, "AgentReady", false, "Offline",
			  "its agent has not been heard of for 40 s; is the machine up, and does "
			  "it reach the API?");
	else if (!jbool(agent, "glusterd", "running"))
		condition(v, "AgentReady", false, "GlusterdDown",
			  message && *message ? message : "glusterd does not run");
	else
		condition(v, "AgentReady", true, "Running", "agent and glusterd run");
}

/* Whether a brick's process should run: its pool's volume has been made. */
static bool pool_made(const struct system *s, const char *pool)
{
	size_t i;
	json_t *p;
	json_array_foreach (s->pools, i, p)
		if (streq(object_name(p), pool))
			return jstr(p, "status", "volumeId") != NULL;
	return false;
}

static bool bricks_online(const struct verdict *v)
{
	size_t i;
	json_t *b;
	json_array_foreach (jget(v->node, "status", "agent", "bricks"), i, b)
		if (!jbool(b, "mounted") ||
		    (!jbool(b, "online") && pool_made(v->s, jstr(b, "pool"))))
			return false;
	return true;
}

static const char *phase_of(const struct verdict *v)
{
	if (object_deleting(v->node))
		return "Emptying";
	if (streq(jstr(v->node, "status", "phase"), "Offline"))
		return "Offline";
	if (!v->machine || !jstr(v->plan, "address") || !jget(v->node, "status", "agent"))
		return "Pending";
	if (jbool(v->node, "spec", "maintenance"))
		return "Maintenance";
	return v->well && bricks_online(v) ? "Ready" : "Degraded";
}

static const json_t *planned_brick(const struct verdict *v, const char *id)
{
	size_t i;
	json_t *b;

	json_array_foreach (jget(v->plan, "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			return b;
	return NULL;
}

/*
 * Whether a brick of the plan is to leave: its device is listed no more, or the node is to go. One that
 * lies beside another leaves with it.
 */
static bool is_leaving(const struct verdict *v, const json_t *brick)
{
	const char *beside = jstr(brick, "parent");
	if (beside)
		brick = planned_brick(v, beside);
	const char *device = jstr(brick, "device");
	const char *source = device ? device : jstr(brick, "directory");
	size_t i;
	json_t *name;

	json_array_foreach (jget(v->node, "spec", device ? "devices" : "directories"), i, name)
		if (streq(json_string_value(name), source))
			return object_deleting(v->node);
	return true;
}

/* A few claims of the pools that the leaving bricks belong to. */
static void leaving_claims(const struct verdict *v, struct strv *claims)
{
	struct strv pools = { 0 };
	size_t i;
	json_t *b;

	json_array_foreach (jget(v->plan, "bricks"), i, b) {
		const char *pool = jstr(b, "pool");
		if (!pool || !is_leaving(v, b) || strv_contains(&pools, pool))
			continue;
		strv_add(&pools, pool);
		ledger_claims(v->s->op->ledger, pool, claims->count + 3, claims);
	}
	strv_done(&pools);
}

static char *held_text(const struct verdict *v, const char *why)
{
	struct strv claims = { 0 };
	struct buf text = { 0 };

	leaving_claims(v, &claims);
	buf_puts(&text, why);
	for (size_t k = 0; k < claims.count; k++)
		buf_printf(&text, "%s%s", k ? ", " : " (claims there: ", claims.items[k]);
	if (claims.count)
		buf_puts(&text, ")");
	strv_done(&claims);
	return buf_take(&text);
}

static size_t count_leaving(const struct verdict *v)
{
	size_t i, count = json_array_size(jget(v->plan, "release"));
	json_t *b;
	json_array_foreach (jget(v->plan, "bricks"), i, b)
		count += is_leaving(v, b);
	return count;
}

/* What is waited for, and what the first pool that is not done says of it. */
static char *moving_text(const struct verdict *v)
{
	size_t i;
	json_t *b;

	json_array_foreach (jget(v->plan, "bricks"), i, b) {
		const json_t *pool = is_leaving(v, b) ? pool_named(v->s, jstr(b, "pool")) : NULL;
		const char *message = jstr(pool, "status", "message");

		if (!object_deleting(pool) && !(message && *message))
			continue;
		return xasprintf("%s pool %s%s%s",
				 object_deleting(pool) ? "it waits for the end of"
						       : "its data is being copied elsewhere by",
				 object_name(pool), message && *message ? ": " : "",
				 message ? message : "");
	}
	return xstrdup("its data is being copied elsewhere; the device is free when all copies are "
		       "whole");
}

/*
 * Emptied: what is to leave the node has left. There from the first time that something is to; it
 * takes nothing from the node's being well, since a person has asked for it.
 */
static void judge_emptied(struct verdict *v)
{
	static const char *const held[] = { "Held", NULL };
	cleanup_free char *why = findings_text(v->s, object_name(v->node), held);
	cleanup_free char *text = why ? held_text(v, why) : NULL, *moving = moving_text(v);
	size_t leaving = count_leaving(v);

	if (!leaving && !object_deleting(v->node) && !condition_get(v->conditions, "Emptied"))
		return;
	const char *reason = !leaving ? "Empty" : text ? "Held" : "Moving";
	bool was_held = streq(jstr(condition_get(v->conditions, "Emptied"), "reason"), "Held");
	condition_set(v->conditions, "Emptied", !leaving, reason,
		      !leaving ? "nothing waits to leave"
		      : text   ? text
			       : moving,
		      jint(v->node, "metadata", "generation"), clock_wall_ms(v->s->r->clock));
	if (streq(reason, "Held") && !was_held)
		event_record(v->s->r->kube, &KIND_STORAGENODE, v->node, "quartermaster", true,
			     object_deleting(v->node) ? "DeletionWaits" : "RemovalWaits", "%s",
			     text);
}

/* Everything that we say about a node; the caller owns it. */
static json_t *wanted_status(struct verdict *v)
{
	static const char *const address[] = { "NoAddress", "AddressConflict", "AddressChanged",
					       NULL };
	static const char *const devices[] = { "Refused", "Missing", "Failed", "Conflict", NULL };

	judge_machine(v);
	condition_unless(v, "AddressAccepted", address, "Refused");
	condition_unless(v, "DevicesAccepted", devices, "Refused");
	judge_agent(v);
	judge_emptied(v);
	aside_is_over(v->conditions, jint(v->node, "metadata", "generation"),
		      clock_wall_ms(v->s->r->clock));
	return json_pack("{s:I, s:s*, s:s*, s:s, s:O, s:O, s:o}", "observedGeneration",
			 (json_int_t)jint(v->node, "metadata", "generation"), "nodeName",
			 v->machine, "address", jstr(v->plan, "address"), "phase", phase_of(v),
			 "conditions", v->conditions, "plan", v->plan, "display",
			 schema_display(&KIND_STORAGENODE, v->node));
}

/* Of the status, the fields that are the operator's. */
static json_t *own_fields(const struct system *s, const json_t *node)
{
	static const char *const keys[] = { "observedGeneration", "nodeName", "address",
					    "conditions",	  "plan",     "display" };
	json_t *own = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (jget(node, "status", keys[i]))
			json_object_set(own, keys[i], jget(node, "status", keys[i]));
	if (jget(s->phases, object_name(node)))
		json_object_set(own, "phase", jget(s->phases, object_name(node)));
	return own;
}

/* ---- after planning ---------------------------------------------------------------------------- */

/* The node's object as the platform is to see it: with the address that is in force. */
static json_t *for_platform(const json_t *node)
{
	json_t *copy = json_deep_copy(node);
	const char *address = jstr(node, "status", "address");
	json_t *ips = jget(copy, "spec", "storageNetwork", "ips");
	if (address && json_array_size(ips))
		json_array_set_new(ips, 0, json_string(address));
	return copy;
}

static bool pool_is_whole(const json_t *pool)
{
	return streq(jstr(pool, "status", "phase"), "Online") &&
	       jint(pool, "status", "healPending") == 0;
}

/*
 * Nobody notices when what serves this node's bricks stops for a while: their pools are whole, or they
 * are down already. The user of a file or device is different: it holds the file locked, and a client
 * does not open a locked file again on a brick that comes back (client.strict-locks, which is what makes
 * the lock a fence). So its writes miss that brick until the volume is staged anew, and the next brick
 * that stops takes it away from its user. Where its node has device mapper, the node service opens it anew
 * (csi/node_switch.c); which nodes have is not known here. *ret_why: a pool for which that is so; a person may allow it.
 */
static bool may_interrupt(const struct system *s, const json_t *node, const char **ret_why)
{
	bool allowed = streq(object_annotation(node, QM_ANNOTATION_INTERRUPT), "true");
	size_t i;
	json_t *b;

	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b) {
		const json_t *pool = pool_named(s, jstr(b, "pool"));
		if (!pool || !jbool(b, "online"))
			continue;
		if (!pool_is_whole(pool))
			return false;
		if (!allowed && ledger_devices(s->op->ledger, object_name(pool)) > 0) {
			*ret_why = object_name(pool);
			return false;
		}
	}
	return true;
}

static int tell_disruption(struct system *s)
{
	const struct platform_ops *ops = s->op->platform->ops;
	bool allowed = true;
	size_t i;
	json_t *p;

	if (!ops->disruption)
		return 0;
	json_array_foreach (s->pools, i, p)
		allowed = allowed && pool_is_whole(p);
	json_array_foreach (s->wholes, i, p)
		allowed = allowed && pool_is_whole(p);
	return ops->disruption(s->op->platform, allowed, &s->r->error);
}

/* The platform keeps agents running; it is asked again only now and then, or when something has changed. */
static void ensure_agent(struct system *s, const json_t *node)
{
	struct node_memory *m = memory_node(s->op->memory, object_uid(node));
	int64_t now = clock_mono_ms(s->r->clock), generation = jint(node, "metadata", "generation");
	struct error err = ERROR_INIT;

	if (!jstr(node, "status", "nodeName") || !jstr(node, "status", "address"))
		return;
	bool silent =
		!jget(node, "status", "agent") || streq(jstr(node, "status", "phase"), "Offline");
	int64_t wait = silent ? ENSURE_AGAIN_MS / 6 : ENSURE_AGAIN_MS;
	if (m->ensured_ms && m->ensured_generation == generation && now - m->ensured_ms < wait)
		return;
	cleanup_json json_t *seen = for_platform(node);
	const char *held = NULL;
	int rc = s->op->platform->ops->agent_ensure(s->op->platform, seen,
						    may_interrupt(s, node, &held), &err);
	if (rc == 1 && held)
		event_record(
			s->r->kube, &KIND_STORAGENODE, node, "quartermaster", true, "UpdateWaits",
			"what serves its bricks is to be replaced, but pool %s has volumes that "
			"are files or devices: end the pods that use them, set the "
			"annotation " QM_ANNOTATION_INTERRUPT
			"=true, and start them when the pool has healed",
			held);
	if (rc < 0)
		system_problem(s, "the agent of node %s cannot be run: %s", object_name(node),
			       error_text(&err, rc));
	if (rc != 0) {
		s->r->again_ms = ENSURE_AGAIN_MS / 12;
		return;
	}
	m->ensured_ms = now;
	m->ensured_generation = generation;
}

/* A deleted node goes when no pool needs it and its agent has let go of its bricks (or is no more). */
static int end_node(struct system *s, const json_t *node)
{
	const json_t *plan = jget(s->plan.node_plans, object_name(node));
	struct node_memory *m = memory_node(s->op->memory, object_uid(node));
	int64_t now = clock_mono_ms(s->r->clock);
	/* since before us, perhaps, but we have waited as long ourselves */
	bool silent = !jget(node, "status", "agent") ||
		      (m->heartbeat && now - m->heard_ms >= NODE_OFFLINE_MS &&
		       now - m->known_ms >= NODE_OFFLINE_MS);

	if (json_array_size(jget(plan, "bricks")) ||
	    (json_array_size(jget(plan, "release")) && !silent)) {
		ensure_agent(s, node); /* its copies are needed until they are elsewhere */
		return 0;
	}
	cleanup_json json_t *seen = for_platform(node);
	int rc = s->op->platform->ops->agent_remove(s->op->platform, seen, &s->r->error);
	if (rc > 0)
		s->r->again_ms = REMOVE_AGAIN_MS;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return op_drop_finalizer(s->r, &KIND_STORAGENODE, node, QM_FINALIZER_NODE);
}

/* By which the one that leads the cluster's nodes finds them. */
static int label_cluster(struct system *s, json_t *node)
{
	const char *cluster = jstr(s->plan.node_plans, object_name(node), "cluster");
	json_t *labelled = NULL;

	if (!cluster || object_deleting(node) ||
	    streq(object_label(node, QM_LABEL_CLUSTER), cluster))
		return 0;
	int rc = op_patch(
		s->r, &KIND_STORAGENODE, node, NULL,
		json_pack("{s:{s:{s:s}}}", "metadata", "labels", QM_LABEL_CLUSTER, cluster),
		&labelled);
	if (rc == 0)
		jset(node, json_incref(jget(labelled, "metadata")), "metadata");
	json_decref(labelled);
	return rc;
}

static int finish_node(struct system *s, json_t *node)
{
	struct verdict v = { .s = s,
			     .node = node,
			     .plan = jget(s->plan.node_plans, object_name(node)),
			     .conditions = conditions_of(node),
			     .well = true };
	cleanup_json json_t *wanted = wanted_status(&v), *have = own_fields(s, node), *newer = NULL;
	json_t *diff = merge_diff(have, wanted);
	int rc = label_cluster(s, node);

	json_decref(v.conditions);
	free(v.machine);
	if (rc < 0) {
		json_decref(diff);
		return rc == -ENOENT ? 0 : rc;
	}
	if (diff) {
		rc = op_patch(s->r, &KIND_STORAGENODE, node, "status",
			      json_pack("{s:o}", "status", diff), &newer);
		if (rc == 0)
			json_object_update(node, newer);
	}
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	if (!object_deleting(node))
		ensure_agent(s, node);
	return 0;
}

/* Nodes that could belong to several deployments: all of these say the same. */
static int mark_ambiguous(struct system *s)
{
	size_t i;
	json_t *o;
	json_array_foreach (s->ambiguous, i, o) {
		cleanup_json json_t *conditions = conditions_of(o);
		if (!condition_set(conditions, "Ambiguous", true, "SeveralDeployments",
				   NODE_UNCLEAR, jint(o, "metadata", "generation"),
				   clock_wall_ms(s->r->clock)))
			continue;
		int rc = op_patch(s->r, &KIND_STORAGENODE, o, "status",
				  json_pack("{s:{s:O}}", "status", "conditions", conditions), NULL);
		if (rc < 0 && rc != -ENOENT && !op_is_of_object(rc))
			return rc;
	}
	return 0;
}

/* What is wrong with one node alone stays with it. */
static int or_say(struct system *s, const json_t *node, int rc)
{
	if (rc == 0 || !op_is_of_object(rc))
		return rc;
	system_problem(s, "node %s: %s", object_name(node), error_text(&s->r->error, rc));
	event_record(s->r->kube, &KIND_STORAGENODE, node, "quartermaster", true, "Refused", "%s",
		     error_text(&s->r->error, rc));
	s->r->error = ERROR_INIT;
	return 0;
}

void node_pass_over(struct system *s, const json_t *node)
{
	s->lost += !jstr(node, "status", "nodeName");
}

int node_urgency(const struct system *s, const json_t *node)
{
	if (jint(node, "status", "observedGeneration") != jint(node, "metadata", "generation"))
		return NODE_URGENCY_MAX;
	return jget(s->changed, object_name(node)) != NULL;
}

/* The most urgent first; those that are equally so take turns in coming next. */
static void order_nodes(const struct system *s, json_t **ret)
{
	size_t count = json_array_size(s->nodes), k = 0;

	for (int urgency = NODE_URGENCY_MAX; urgency >= 0; urgency--)
		for (size_t i = 0; i < count; i++) {
			json_t *node =
				json_array_get(s->nodes, (memory_turn(s->op->memory) + i) % count);

			if (node_urgency(s, node) == urgency)
				ret[k++] = node;
		}
}

/*
 * What comes when the time is up keeps its status until the next look; so does what somebody else has written
 * since. *ret_whole: none did.
 */
static int finish_in_time(struct system *s, bool *ret_whole)
{
	size_t count = json_array_size(s->nodes);
	cleanup_free json_t **order = xcalloc(count + 1, sizeof(*order));
	int64_t began = clock_mono_ms(s->r->clock);
	int rc = 0;

	*ret_whole = true;
	order_nodes(s, order);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (i > 0 && system_time_is_up(s, began)) {
			node_pass_over(s, order[i]);
			*ret_whole = false;
			continue;
		}
		rc = or_say(s, order[i], finish_node(s, order[i]));
		if (rc == 0)
			json_object_del(s->changed, object_name(order[i]));
		if (rc == -ESTALE) {
			s->r->error = ERROR_INIT;
			s->r->again_ms = STALE_AGAIN_MS; /* or when the change is seen */
			*ret_whole = false;
			rc = 0;
		}
	}
	return rc;
}

/* Only when all others have it in their plans: when its object is gone, they alone say that it is to leave them. */
static int end_nodes(struct system *s)
{
	size_t i;
	json_t *node;
	int rc = 0;

	json_array_foreach (s->nodes, i, node) {
		if (rc == 0 && object_deleting(node))
			rc = or_say(s, node, end_node(s, node));
		if (rc == -ESTALE) {
			s->r->error = ERROR_INIT;
			s->r->again_ms = STALE_AGAIN_MS;
			rc = 0;
		}
	}
	return rc;
}

int nodes_finish(struct system *s)
{
	size_t i;
	json_t *node;
	bool whole;
	int rc = finish_in_time(s, &whole);

	if (rc == 0 && whole)
		rc = end_nodes(s);
	json_array_foreach (s->nodes, i, node) {
		const char *phase = jstr(node, "status", "phase");
		if (streq(phase, "Offline") || streq(phase, "Degraded") || streq(phase, "Emptying"))
			system_problem(s,
				       "node %s is %s; see: quartermaster describe storagenode %s",
				       object_name(node), phase, object_name(node));
	}
	return rc;
}

int nodes_end(struct system *s)
{
	int rc = mark_ambiguous(s);

	memory_set_lost(s->op->memory, s->lost);
	return rc < 0 ? rc : tell_disruption(s);
}
