/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/op.h"

#include <errno.h>

/*
 * On which nodes a volume may be used. Every node reaches every pool, so a volume is bound to
 * nodes only where its class says so (allowedTopologies): then it carries exactly that, for the
 * scheduler and kubelet.
 */
static json_t *term_of(const json_t *topology)
{
	json_t *expressions = json_array(), *e;
	size_t i;

	json_array_foreach (jget(topology, "matchLabelExpressions"), i, e)
		json_array_append_new(expressions,
				      json_pack("{s:O?, s:s, s:O?}", "key", jget(e, "key"),
						"operator", "In", "values", jget(e, "values")));
	return json_pack("{s:o}", "matchExpressions", expressions);
}

json_t *class_affinity(const json_t *class)
{
	const json_t *allowed = jget(class, "allowedTopologies");
	json_t *terms, *t;
	size_t i;

	if (!json_array_size(allowed))
		return NULL;
	terms = json_array();
	json_array_foreach (allowed, i, t)
		json_array_append_new(terms, term_of(t));
	return json_pack("{s:{s:o}}", "required", "nodeSelectorTerms", terms);
}

static bool has_one_of(const char *value, const json_t *values)
{
	size_t i;
	json_t *v;

	json_array_foreach ((json_t *)values, i, v)
		if (value && streq(value, json_string_value(v)))
			return true;
	return false;
}

/* A term without requirements matches no node, as in Kubernetes. */
static bool matches(const json_t *topology, const json_t *node)
{
	const json_t *expressions = jget(topology, "matchLabelExpressions");
	size_t i;
	json_t *e;

	json_array_foreach ((json_t *)expressions, i, e) {
		const char *key = jstr(e, "key");

		if (!key || !has_one_of(object_label(node, key), jget(e, "values")))
			return false;
	}
	return json_array_size(expressions) > 0;
}

static bool allows(const json_t *class, const json_t *node)
{
	const json_t *allowed = jget(class, "allowedTopologies");
	size_t i;
	json_t *t;

	json_array_foreach ((json_t *)allowed, i, t)
		if (matches(t, node))
			return true;
	return json_array_size(allowed) == 0;
}

bool claim_lacks_node(const json_t *claim, const json_t *class)
{
	const char *node = object_annotation(claim, ANNOTATION_SELECTED_NODE);

	return streq(jstr(class, "volumeBindingMode"), "WaitForFirstConsumer") && !(node && *node);
}

int claim_check_node(struct reconcile *r, const json_t *claim, const json_t *class, char **ret_why)
{
	const char *name = object_annotation(claim, ANNOTATION_SELECTED_NODE);
	cleanup_json json_t *node = NULL;

	if (!name || !*name)
		return 0;
	int rc = op_get_live(r, &KIND_NODE, NULL, name, &node);
	if (rc < 0)
		return rc;
	if (rc > 0)
		*ret_why = xasprintf("node %s, which the scheduler chose, is gone; it is to choose "
				     "again",
				     name);
	else if (!allows(class, node))
		*ret_why = xasprintf("node %s, which the scheduler chose, is none of those that "
				     "StorageClass %s allows; it is to choose again",
				     name, object_name(class));
	return *ret_why != NULL;
}
