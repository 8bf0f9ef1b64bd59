/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "operator/system.h"

#include <errno.h>

/*
 * What is valid for the API and absurd all the same: it is set aside with a condition and an Event
 * that say why, and everything else goes on. A StorageNode that has bricks already is never set
 * aside, since its data would be taken for lost: for it, the other conditions say what is wrong.
 */
#define CONDITION "Quarantined"

bool op_is_of_object(int rc)
{
	return rc == -EINVAL || rc == -EPERM || rc == -E2BIG || rc == -EEXIST || rc == -EOPNOTSUPP;
}

/* ---- StorageNodes ------------------------------------------------------------------------------ */

/* Directories that a machine, or what runs storage on it, needs for itself. */
static const char *machines_own(const json_t *node)
{
	static const char *const own[] = { "/bin",
					   "/boot",
					   "/etc",
					   "/lib",
					   "/lib64",
					   "/sbin",
					   "/usr",
					   "/var/lib/containerd",
					   "/var/lib/etcd",
					   "/var/lib/glusterd",
					   "/var/lib/kubelet",
					   "/var/lib/quartermaster" };
	size_t i;
	json_t *v;

	json_array_foreach (jget(node, "spec", "directories"), i, v)
		for (size_t k = 0; k < ARRAY_SIZE(own); k++) {
			const char *rest = str_has_prefix(json_string_value(v), own[k])
						   ? json_string_value(v) + strlen(own[k])
						   : NULL;
			if (rest && (!*rest || *rest == '/'))
				return json_string_value(v);
		}
	return NULL;
}

/* What a person wrote of it: a cluster's own fields are not ours to judge. */
static json_t *as_written(const json_t *node)
{
	json_t *o = json_pack("{s:s, s:s, s:{s:s, s:s}, s:O}", "apiVersion", "coreos.com/v1",
			      "kind", "StorageNode", "metadata", "name", object_name(node),
			      "namespace", object_namespace(node), "spec", jget(node, "spec"));
	return o ? o : json_object();
}

static char *node_oddity(const json_t *node)
{
	cleanup_json json_t *written = as_written(node);
	const char *directory = machines_own(node);
	struct schema_problem p = { 0 };

	if (schema_validate(&KIND_STORAGENODE, written, NULL, false, &p) < 0)
		return xstrdup(p.error.message);
	if (directory)
		return xasprintf(
			"spec.directories: %s belongs to the machine itself; name one that "
			"is there for storage alone",
			directory);
	return NULL;
}

/* Its plan goes with what it says; a failure to say it is for the deployment's status. */
static void say_aside(struct system *s, json_t *node, const char *why)
{
	cleanup_json json_t *list = conditions_of(node), *newer = NULL;
	struct error kept = s->r->error;
	bool said =
		!condition_set(list, CONDITION, true, "Absurd", why,
			       jint(node, "metadata", "generation"), clock_wall_ms(s->r->clock));

	system_problem(s, "node %s is set aside: %s", object_name(node), why);
	if (said)
		return;
	event_record(s->r->kube, &KIND_STORAGENODE, node, "quartermaster", true, CONDITION,
		     "the node is set aside: %s", why);
	op_patch(s->r, &KIND_STORAGENODE, node, "status",
		 json_pack("{s:{s:s, s:I, s:O}}", "status", "phase", "Pending",
			   "observedGeneration", (json_int_t)jint(node, "metadata", "generation"),
			   "conditions", list),
		 &newer);
	s->r->error = kept;
}

static bool may_be_set_aside(const struct system *s, const json_t *node)
{
	size_t i, k;
	json_t *p, *b;

	if (object_deleting(node) || json_array_size(jget(node, "status", "plan", "bricks")) ||
	    json_array_size(jget(node, "status", "agent", "bricks")))
		return false;
	json_array_foreach (s->pools, i, p)
		json_array_foreach (jget(p, "spec", "bricks"), k, b)
			if (streq(jstr(b, "node"), object_name(node)))
				return false;
	return true;
}

bool node_set_aside(struct system *s, size_t index, const char *why)
{
	json_t *node = json_array_get(s->nodes, index);

	if (!may_be_set_aside(s, node))
		return false;
	say_aside(s, node, why);
	json_array_remove(s->nodes, index);
	return true;
}

int nodes_set_aside(struct system *s)
{
	for (size_t i = 0; i < json_array_size(s->nodes);) {
		cleanup_free char *why = node_oddity(json_array_get(s->nodes, i));

		if (!why || !node_set_aside(s, i, why))
			i++;
	}
	return 0;
}

void aside_is_over(json_t *conditions, int64_t generation, int64_t now_ms)
{
	if (condition_get(conditions, CONDITION))
		condition_set(conditions, CONDITION, false, "Accepted", "it makes sense",
			      generation, now_ms);
}

/* ---- StoragePools ------------------------------------------------------------------------------ */

static void pool_condition(struct system *s, json_t *pool, const char *why)
{
	cleanup_json json_t *list = conditions_of(pool), *newer = NULL;
	struct error kept = s->r->error;

	if (!why && !condition_is_true(list, CONDITION))
		return;
	if (!condition_set(list, CONDITION, why != NULL, why ? "Absurd" : "Accepted",
			   why ? why : "it makes sense", jint(pool, "metadata", "generation"),
			   clock_wall_ms(s->r->clock)))
		return;
	if (why)
		event_record(s->r->kube, &KIND_STORAGEPOOL, pool, "quartermaster", true, CONDITION,
			     "%s", why);
	if (op_patch(s->r, &KIND_STORAGEPOOL, pool, "status",
		     json_pack("{s:{s:O}}", "status", "conditions", list), &newer) == 0)
		json_object_update(pool, newer);
	s->r->error = kept;
}

void pools_say_aside(struct system *s)
{
	cleanup_json json_t *odd = json_object();
	size_t i;
	json_t *o;

	json_array_foreach (s->plan.findings, i, o)
		if (streq(jstr(o, "reason"), "Odd") && pool_named(s, jstr(o, "pool")))
			json_object_set(odd, jstr(o, "pool"), jget(o, "message"));
	json_array_foreach (s->pools, i, o)
		pool_condition(s, o, jstr(odd, object_name(o)));
}
