/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/input.h"
#include "cli/print.h"

#include "base/mem.h"
#include "operator/op.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>

/* What a device is taken to hold before its agent has looked: only that it is equal to others matters. */
#define ASSUMED_BYTES (10LL << 30)

/* What planning needs, from the API and from files. */
struct material {
	json_t *statuses, *nodes, *pools;
	bool assumed; /* devices that no agent has seen are taken to be usable */
};

static void material_done(struct material *m)
{
	json_decref(m->statuses);
	json_decref(m->nodes);
	json_decref(m->pools);
}

static int list(struct session *s, const struct kind *k, json_t **ret)
{
	cleanup_free char *version = NULL;
	struct error err = ERROR_INIT;
	int rc = kube_list(s->kube, k, session_ns(s, k), NULL, ret, &version, &err);

	return rc < 0 ? session_fail(s, rc, &err) : QM_OK;
}

static int fetch(struct session *s, struct material *m)
{
	int code = list(s, &KIND_STORAGESTATUS, &m->statuses);

	if (code == QM_OK)
		code = list(s, &KIND_STORAGENODE, &m->nodes);
	if (code == QM_OK)
		code = list(s, &KIND_STORAGEPOOL, &m->pools);
	return code;
}

/* ---- what if --------------------------------------------------------------------------------- */

static json_t *find(const json_t *items, const char *name)
{
	size_t i;
	json_t *o;

	json_array_foreach (items, i, o) {
		if (streq(object_name(o), name))
			return o;
	}
	return NULL;
}

static bool is_reported(const json_t *reports, const char *key, const json_t *source)
{
	size_t i;
	json_t *r;

	json_array_foreach (reports, i, r) {
		const json_t *value = json_object_get(r, key);

		if (value && json_equal(value, source))
			return true;
	}
	return false;
}

static void assume_usable(struct material *m, json_t *node, const char *list_name, const char *key)
{
	json_t *reports = jget(node, "status", "agent", "devices"), *source;
	size_t i;

	if (!reports) {
		reports = json_array();
		(void)jset(node, reports, "status", "agent", "devices");
	}
	json_array_foreach (jget(node, "spec", list_name), i, source) {
		if (is_reported(reports, key, source))
			continue;
		(void)json_array_append_new(reports, json_pack("{s:O, s:s, s:I}", key, source,
							       "state", "Available", "sizeBytes",
							       (json_int_t)ASSUMED_BYTES));
		m->assumed = true;
	}
}

static void add_node(struct material *m, const json_t *declared)
{
	json_t *live = find(m->nodes, object_name(declared)), *node;
	json_t *labels = jget(declared, "metadata", "labels");

	node = live ? live : json_deep_copy(declared);
	if (live)
		(void)json_object_set_new(live, "spec",
					  json_deep_copy(json_object_get(declared, "spec")));
	else
		(void)json_array_append_new(m->nodes, node);
	if (live && labels && json_object_update(jget(live, "metadata", "labels"), labels) < 0)
		(void)jset(live, json_deep_copy(labels), "metadata", "labels");
	schema_default(&KIND_STORAGENODE, node);
	assume_usable(m, node, "devices", "device");
	assume_usable(m, node, "directories", "directory");
}

static int add_files(struct session *s, const struct strv *files, struct material *m)
{
	struct input in = { 0 };
	int code = input_read(files, s->ns, &in);

	for (size_t i = 0; i < in.count; i++)
		if (in.items[i].kind == &KIND_STORAGENODE &&
		    streq(object_namespace(in.items[i].object), s->ns))
			add_node(m, in.items[i].object);
	input_done(&in);
	return code;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int choose_deployment(const struct args *a, const struct material *m, const json_t **ret,
			     const char **ret_name)
{
	const char *name = args_value(a, "deployment");

	*ret = name ? find(m->statuses, name) : json_array_get(m->statuses, 0);
	if (!name && json_array_size(m->statuses) > 1)
		return usage_error(a->verb,
				   "there are several deployments; choose one with --deployment");
	if (name && !*ret && json_array_size(m->statuses) > 0) {
		(void)fprintf(stderr, "quartermaster: there is no deployment \"%s\"\n", name);
		return QM_NOT_FOUND;
	}
	*ret_name = name ? name : *ret ? object_name(*ret) : "demo";
	return QM_OK;
}

/* Whether no other deployment of the type is in the namespace; ours may be one that is not there yet. */
static bool is_only(const struct operator* op, const struct material *m)
{
	size_t i;
	json_t *o;

	json_array_foreach (m->statuses, i, o)
		if (!streq(object_name(o), op->deployment) &&
		    streq(jstr(o, "spec", "type"), op->type))
			return false;
	return true;
}

/* Sorted as the operator does it; what may be anybody's is a finding. */
static void sort_nodes(const struct operator* op, const struct material *m, json_t *nodes,
		       json_t *findings)
{
	bool only = is_only(op, m);
	size_t i;
	json_t *o;

	json_array_foreach (m->nodes, i, o) {
		enum whose whose = node_whose(op, o, only);

		if (whose == WHOSE_OURS)
			(void)json_array_append(nodes, o);
		else if (whose == WHOSE_UNCLEAR)
			(void)json_array_append_new(
				findings,
				json_pack("{s:s, s:s, s:o}", "node", object_name(o), "reason",
					  "Ambiguous", "message",
					  json_sprintf("%s: " NODE_UNCLEAR, object_name(o))));
	}
}

static void sort_pools(const struct operator* op, const struct material *m, json_t *pools,
		       json_t *foreign)
{
	size_t i;
	json_t *o;

	json_array_foreach (m->pools, i, o)
		if (pool_is_ours(op, o))
			(void)json_array_append(pools, o);
		else
			(void)json_array_append_new(foreign, json_string(object_name(o)));
}

static void print_plan(FILE *out, const char *deployment, const char *volume_type,
		       const struct material *m, const struct plan_output *p)
{
	size_t i;
	json_t *v;

	(void)fprintf(out, "Plan for %s (%s)\n", deployment, volume_type);
	if (m->assumed)
		(void)fprintf(out, "Devices that no agent has seen yet are taken to be usable and "
				   "of one size.\n");
	(void)fprintf(out, "\nSteps:%s\n",
		      json_array_size(p->steps) ? "" : " none; everything is as it should be");
	json_array_foreach (p->steps, i, v) {
		(void)fprintf(out, "  %zu. ", i + 1);
		term_put(out, json_string_value(v));
		(void)fputc('\n', out);
	}
	if (json_array_size(p->findings) > 0)
		(void)fprintf(out, "\nFindings:\n");
	json_array_foreach (p->findings, i, v) {
		(void)fprintf(out, "  - ");
		term_put(out, jstr(v, "message") ? jstr(v, "message") : "");
		(void)fputc('\n', out);
	}
}

static void print_json(FILE *out, const char *deployment, const struct plan_output *p)
{
	cleanup_json json_t *all = json_pack("{s:s, s:O, s:O, s:O, s:O}", "deployment", deployment,
					     "steps", p->steps, "pools", p->pools, "nodes",
					     p->node_plans, "findings", p->findings);
	cleanup_free char *text = json_text_pretty(all);

	(void)fprintf(out, "%s\n", text);
}

/* What the operator of that deployment is, as far as it plans. */
static struct operator planner(const struct session *s, const struct args *a, const json_t *status,
			       const char *deployment)
{
	const char *volume_type = args_value(a, "volume-type"), *type = jstr(status, "spec", "type"),
		   *stored = jstr(status, "spec", "glusterfs", "volumeType");
	const json_t *overcommit = jget(status, "spec", "glusterfs", "overcommit");

	return (struct operator){
		.deployment = deployment,
		.ns = s->ns,
		.type = type ? type : "glusterfs",
		.volume_type = volume_type ? volume_type : stored ? stored : "replicate:3",
		.overcommit = json_is_number(overcommit) ? json_number_value(overcommit) : 1,
	};
}

static int make_plan(struct session *s, const struct args *a, const struct material *m)
{
	cleanup_json json_t *nodes = json_array(), *pools = json_array(), *foreign = json_array(),
			    *unclear = json_array(), *counts = NULL;
	const char *deployment = NULL;
	const json_t *status = NULL;
	struct plan_output p = { 0 };
	struct error err = ERROR_INIT;
	int code = choose_deployment(a, m, &status, &deployment), rc;

	if (code != QM_OK)
		return code;
	struct operator op = planner(s, a, status, deployment);

	sort_nodes(&op, m, nodes, unclear);
	sort_pools(&op, m, pools, foreign);
	rc = pools_count(&op, s->kube, pools, &counts, &err);
	if (rc < 0)
		return session_fail(s, rc, &err);
	struct plan_input in = {
		.deployment = deployment,
		.volume_type = op.volume_type,
		.overcommit = op.overcommit,
		.nodes = nodes,
		.pools = pools,
		.foreign_pools = foreign,
		.volumes = counts,
		.last_number = (long)jint(status, "status", "lastPoolNumber"),
	};

	if (glusterfs_plan(&in, &p, &err) < 0) {
		(void)fprintf(stderr, "quartermaster: %s\n", err.message);
		return QM_FAILED;
	}
	(void)json_array_extend(p.findings, unclear);
	if (streq(args_value(a, "output"), "json"))
		print_json(s->out, deployment, &p);
	else
		print_plan(s->out, deployment, op.volume_type, m, &p);
	plan_output_done(&p);
	return QM_OK;
}

int cmd_plan(struct session *s, const struct args *a)
{
	const struct strv *files = args_values(a, "filename");
	const char *format = args_value(a, "output");
	struct material m = { 0 };
	int code;

	if (format && !streq(format, "json") && !streq(format, "text"))
		return usage_error(a->verb, "-o is text or json, not \"%s\"", format);
	code = fetch(s, &m);
	if (code == QM_OK && files->count > 0)
		code = add_files(s, files, &m);
	if (code == QM_OK)
		code = make_plan(s, a, &m);
	material_done(&m);
	return code;
}
