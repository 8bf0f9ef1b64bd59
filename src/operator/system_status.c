/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/system.h"

#include <errno.h>
#include <stdio.h>

/* ---- the object -------------------------------------------------------------------------------- */

static int create_status(struct system *s)
{
	cleanup_json json_t *o = json_pack(
		"{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s, s:[]}}", "apiVersion",
		"coreos.com/v1", "kind", "StorageStatus", "metadata", "name", s->op->deployment,
		"namespace", s->op->ns, "labels", QM_LABEL_DEPLOYMENT, s->op->deployment, "spec",
		"type", s->op->type, "status", "OFFLINE", "storageNodes");
	return kube_create(s->r->kube, &KIND_STORAGESTATUS, o, &s->status, &s->r->error);
}

int status_ensure(struct system *s)
{
	int rc = s->status ? 0 : create_status(s);
	if (rc < 0)
		return rc;
	if (!streq(jstr(s->status, "spec", "type"), s->op->type)) {
		event_record(s->r->kube, &KIND_STORAGESTATUS, s->status, "quartermaster", true,
			     "Quarantined",
			     "it is of type %s, but the deployment of this name is of type %s: "
			     "delete it, or give the deployment another name",
			     jstr(s->status, "spec", "type"), s->op->type);
		return error_set(&s->r->error, EINVAL,
				 "StorageStatus %s/%s is there, for type %s; give this deployment "
				 "another name",
				 s->op->ns, s->op->deployment, jstr(s->status, "spec", "type"));
	}
	return 0;
}

int status_patch(struct system *s, const char *subresource, json_t *patch)
{
	json_t *newer = NULL;
	int rc = op_patch(s->r, &KIND_STORAGESTATUS, s->status, subresource, patch, &newer);
	if (rc < 0)
		return rc;
	json_decref(s->status);
	s->status = newer;
	return 0;
}

int status_fence(struct system *s)
{
	if (s->fenced)
		return 0;
	if (!s->live) {
		s->wants_live = true;
		return error_set(&s->r->error, EAGAIN, "the nodes are read again first");
	}
	const char *last = object_annotation(s->status, QM_ANNOTATION_FENCE);
	const char *dot = last ? strchr(last, '.') : NULL;
	long long count = dot ? strtoll(dot + 1, NULL, 10) : 0;
	cleanup_free char *next = xasprintf("%lld.%lld", (long long)s->epoch, count + 1);
	int rc = status_patch(
		s, NULL,
		json_pack("{s:{s:{s:s}}}", "metadata", "annotations", QM_ANNOTATION_FENCE, next));
	s->fenced = rc == 0;
	return rc;
}

/* ---- numbers of pools ------------------------------------------------------------------------ */

void status_take_number(struct system *s)
{
	long written = (long)jint(s->status, "status", "lastPoolNumber");

	s->last_number = memory_last_number(s->op->memory, written);
}

int status_keep_number(struct system *s, long number)
{
	if (number <= (long)jint(s->status, "status", "lastPoolNumber"))
		return 0;
	return status_patch(
		s, "status",
		json_pack("{s:{s:I}}", "status", "lastPoolNumber", (json_int_t)number));
}

/* What the status goes on saying: as much as before, or as was found where it was lost. */
static json_int_t number_of(const struct system *s)
{
	json_int_t kept = jint(s->status, "status", "lastPoolNumber");

	return s->last_number > kept ? s->last_number : kept;
}

/* ---- what it says ------------------------------------------------------------------------------ */

static json_t *names_in(const json_t *objects, const char *cluster, const char *where)
{
	json_t *names = json_array(), *o;
	size_t i;
	json_array_foreach ((json_t *)objects, i, o) {
		const char *own = streq(where, "plan") ? jstr(o, "status", "plan", "cluster")
						       : jstr(o, "spec", "cluster");
		if (!cluster || streq(own, cluster))
			json_array_append_new(names, json_string(object_name(o)));
	}
	return names;
}

static json_t *clusters(const struct system *s)
{
	json_t *list = json_array(), *node, *c;
	size_t i, k;

	json_array_foreach (s->nodes, i, node) {
		const char *name = jstr(node, "status", "plan", "cluster");
		bool known = !name;
		json_array_foreach (list, k, c)
			known = known || streq(jstr(c, "name"), name);
		if (!known)
			json_array_append_new(list,
					      json_pack("{s:s, s:o, s:o}", "name", name, "nodes",
							names_in(s->nodes, name, "plan"), "pools",
							names_in(s->pools, name, "spec")));
	}
	return list;
}

/*
 * What a pool says of itself was written by one of its nodes. When too many of them have fallen
 * silent for it to serve, nobody is left to say so.
 */
static bool enough_are_heard(const struct system *s, const json_t *pool)
{
	return jint(pool, "heard") >= pool_quorum(s->op, pool);
}

static int serving(const struct system *s)
{
	int count = 0;
	size_t i;
	json_t *p;
	json_array_foreach (s->pools, i, p)
		count += pool_serves(p) && enough_are_heard(s, p);
	return count;
}

static json_t *wanted_spec(const struct system *s, bool online)
{
	return json_pack("{s:s, s:s, s:o, s:{s:s, s:f, s:o}}", "type", s->op->type, "status",
			 online ? "ONLINE" : "OFFLINE", "storageNodes",
			 names_in(s->nodes, NULL, "spec"), "glusterfs", "volumeType",
			 s->op->volume_type, "overcommit", s->op->overcommit, "clusters",
			 clusters(s));
}

static void pool_problems(struct system *s, const char *what, const json_t *pools)
{
	size_t i;
	json_t *p;
	json_array_foreach ((json_t *)pools, i, p) {
		const char *phase = jstr(p, "status", "phase"),
			   *message = jstr(p, "status", "message");
		if (!streq(phase, "Online") && !object_deleting(p))
			system_problem(s, "%s %s is %s%s%s", what, object_name(p),
				       phase ? phase : "being made",
				       message && *message ? ": " : "", message ? message : "");
	}
}

/* One that is being made is waited for by its claim, and is nothing that is wrong. */
static void whole_problems(struct system *s)
{
	cleanup_json json_t *made = json_array();
	size_t i;
	json_t *p;

	json_array_foreach (s->wholes, i, p)
		if (jstr(p, "status", "phase") && !streq(jstr(p, "status", "phase"), "Creating"))
			json_array_append(made, p);
	pool_problems(s, "volume", made);
}

void status_findings(struct system *s)
{
	static const char *const worth[] = { "NoAddress", "AddressConflict", "AddressChanged",
					     "Refused",	  "Missing",	     "Failed",
					     "Held",	  "Conflict",	     "Odd",
					     NULL };
	size_t i, k;
	json_t *f;
	json_array_foreach (s->plan.findings, i, f)
		for (k = 0; worth[k]; k++)
			if (streq(jstr(f, "reason"), worth[k]))
				system_problem(s, "%s", jstr(f, "message"));
}

/* The first few problems in one line. */
static char *problems_text(const struct system *s)
{
	struct buf text = { 0 };
	size_t kept = json_array_size(s->problems), shown = s->problem_count > kept ? 3 : kept;
	for (size_t i = 0; i < shown; i++)
		buf_printf(&text, "%s%s", i ? "; " : "",
			   json_string_value(json_array_get(s->problems, i)));
	if (shown < s->problem_count)
		buf_printf(&text, "; and %zu more", s->problem_count - shown);
	return buf_take(&text);
}

/* Why there is no pool that serves. */
static char *offline_text(const struct system *s)
{
	struct volume_type type = { 0 };
	size_t nodes = json_array_size(s->nodes);
	volume_type_parse(s->op->volume_type, &type, NULL);

	if (!nodes)
		return xasprintf("no StorageNode yet: %s needs %d nodes with a free device each",
				 s->op->volume_type, type.bricks);
	if (json_array_size(s->pools))
		return xasprintf("no pool serves");
	return xasprintf("%zu StorageNodes, but no pool can be made of them yet: %s needs %d nodes "
			 "with a free device each",
			 nodes, s->op->volume_type, type.bricks);
}

static json_t *conditions(struct system *s, int serves, char **ret_message)
{
	json_t *list = conditions_of(s->status);
	int64_t generation = jint(s->status, "metadata", "generation"),
		now = clock_wall_ms(s->r->clock);
	cleanup_free char *wrong = problems_text(s);
	bool degraded = s->problem_count > 0;
	char *message =
		serves ? xasprintf("%d of %zu pools serve", serves, json_array_size(s->pools))
		       : offline_text(s);

	condition_set(list, "Online", serves > 0,
		      serves			  ? "PoolsServe"
		      : json_array_size(s->pools) ? "NoPoolServes"
						  : "WaitingForNodes",
		      message, generation, now);
	condition_set(list, "Degraded", degraded, degraded ? "Problems" : "AllWell",
		      degraded ? wrong : "nothing is wrong", generation, now);
	if (s->op->platform->ops->conditions)
		s->op->platform->ops->conditions(s->op->platform, list, generation);
	if (degraded) {
		char *both = xasprintf("%s; %s", message, wrong);
		free(message);
		message = both;
	}
	*ret_message = message;
	return list;
}

/* What is reported may be anything. */
static json_int_t plus(json_int_t sum, int64_t bytes)
{
	json_int_t more;
	return __builtin_add_overflow(sum, bytes, &more) ? INT64_MAX : more;
}

static json_t *wanted_status(struct system *s, int serves)
{
	json_int_t capacity = 0, used = 0, heal = 0, ready = 0;
	size_t i;
	json_t *o;
	cleanup_free char *message = NULL;
	json_t *list = conditions(s, serves, &message);

	json_array_foreach (s->pools, i, o) {
		capacity = plus(capacity, jint(o, "status", "capacityBytes"));
		used = plus(used, jint(o, "status", "usedBytes"));
		if (jint(o, "status", "healPending") > 0)
			heal = plus(heal, jint(o, "status", "healPending"));
	}
	json_array_foreach (s->wholes, i, o)
		if (jint(o, "status", "healPending") > 0)
			heal = plus(heal, jint(o, "status", "healPending"));
	json_array_foreach (s->nodes, i, o)
		ready += streq(jstr(o, "status", "phase"), "Ready");
	json_t *status = json_pack(
		"{s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "observedGeneration",
		(json_int_t)jint(s->status, "metadata", "generation"), "conditions", list, "nodes",
		(json_int_t)json_array_size(s->nodes), "nodesReady", ready, "pools",
		(json_int_t)json_array_size(s->pools), "capacityBytes", capacity, "usedBytes", used,
		"promisedBytes", (json_int_t)ledger_promised(s->op->ledger, NULL), "healPending",
		heal, "message", message);
	if (number_of(s))
		json_object_set_new(status, "lastPoolNumber", json_integer(number_of(s)));
	cleanup_json json_t *shown = json_pack("{s:O}", "status", status);
	json_object_set_new(status, "display", schema_display(&KIND_STORAGESTATUS, shown));
	return status;
}

/* The class comes before ONLINE is written: a crash in between only means that this is done again. */
static int write_spec(struct system *s, bool online)
{
	bool was = streq(jstr(s->status, "spec", "status"), "ONLINE");
	cleanup_json json_t *spec = wanted_spec(s, online);
	if (json_is_object(jget(s->status, "spec", "torus")))
		json_object_set(spec, "torus", jget(s->status, "spec", "torus"));

	int rc = class_ensure(s, online && !was);
	json_t *diff = rc == 0 ? merge_diff(jget(s->status, "spec"), spec) : NULL;
	if (diff)
		rc = status_patch(s, NULL, json_pack("{s:o}", "spec", diff));
	if (rc == 0 && online != was)
		event_record(s->r->kube, &KIND_STORAGESTATUS, s->status, "quartermaster", !online,
			     online ? "Online" : "Offline", "storage system %s is %s",
			     s->op->deployment, online ? "ONLINE" : "OFFLINE");
	return rc;
}

int status_write(struct system *s)
{
	int serves = serving(s);
	pool_problems(s, "pool", s->pools);
	whole_problems(s);
	int rc = write_spec(s, serves > 0);
	if (rc < 0)
		return rc;
	cleanup_json json_t *status = wanted_status(s, serves);
	json_t *diff = merge_diff(jget(s->status, "status"), status);
	return diff ? status_patch(s, "status", json_pack("{s:o}", "status", diff)) : 0;
}
