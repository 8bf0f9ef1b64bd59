/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

/* ---- ConfigMap, Secret ---------------------------------------------------------------------- */

#define F_FROZEN F_BOOLEAN("immutable", "While true, the data cannot be changed; set it only once.")

static const struct field configmap_fields[] = {
	F_MAP("data", "Keys and texts.", &ITEM_TEXT, .check = check_data_keys),
	F_MAP("binaryData", "Keys and bytes, in base64.", &ITEM_TEXT, .check = check_base64_map),
	F_FROZEN,
	F_END,
};

static const struct field secret_fields[] = {
	F_MAP("data", "Keys and bytes, in base64.", &ITEM_TEXT, .check = check_base64_map),
	F_MAP("stringData", "Keys and texts; a shorter way to write data.", &ITEM_TEXT,
	      .check = check_data_keys),
	F_STRING("type", "What the Secret is for.", .immutable = true,
		 .default_json = "\"Opaque\""),
	F_FROZEN,
	F_END,
};

static int check_frozen(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	static const char *const frozen[] = { "data", "binaryData", "immutable" };

	if (!jbool(old, "immutable"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(frozen); i++) {
		const json_t *a = json_object_get(o, frozen[i]),
			     *b = json_object_get(old, frozen[i]);

		if ((a || b) && !(a && b && json_equal(a, b)))
			return problem(
				ret, frozen[i],
				"cannot be changed, since immutable is true; delete the object and "
				"create it anew");
	}
	return 0;
}

static void cell_data(const json_t *o, struct buf *out)
{
	buf_printf(out, "%zu",
		   json_object_size(jget(o, "data")) + json_object_size(jget(o, "binaryData")));
}

static const struct column configmap_columns[] = {
	C_CELL("Data", cell_data, "Number of keys."),
	C_END,
};

static const struct column secret_columns[] = {
	C_STRING("Type", ".type", "What it is for."),
	C_CELL("Data", cell_data, "Number of keys."),
	C_END,
};

const struct kind KIND_CONFIGMAP = {
	.group = "",
	.version = "v1",
	.kind = "ConfigMap",
	.plural = "configmaps",
	.singular = "configmap",
	.short_names = WORDS("cm"),
	.help = "Configuration as keys and texts.",
	.fields = configmap_fields,
	.columns = configmap_columns,
	.namespaced = true,
	.check = check_frozen,
};

const struct kind KIND_SECRET = {
	.group = "",
	.version = "v1",
	.kind = "Secret",
	.plural = "secrets",
	.singular = "secret",
	.help = "Keys and values that not everybody may read.",
	.fields = secret_fields,
	.columns = secret_columns,
	.namespaced = true,
	.check = check_frozen,
};

/* ---- Namespace, Node, Pod: only as much as clients need to see of them --------------------- */

static const char *const namespace_phases[] = { "Active", "Terminating", NULL };
static const struct field namespace_spec_fields[] = {
	F_STRINGS("finalizers", "Who must clean up before the namespace is gone."),
	F_END,
};
static const struct field namespace_status_fields[] = {
	F_STRING("phase", "Active or Terminating.", .values = namespace_phases),
	F_CONDITIONS,
	F_END,
};
static const struct field namespace_fields[] = {
	F_OBJECT("spec", "What is wanted of the namespace.", namespace_spec_fields),
	F_OBJECT("status", "What has become of it.", namespace_status_fields,
		 .default_json = "{\"phase\":\"Active\"}"),
	F_END,
};

static const struct column namespace_columns[] = {
	C_STRING("Status", ".status.phase", "Active or Terminating."),
	C_END,
};

const struct kind KIND_NAMESPACE = {
	.group = "",
	.version = "v1",
	.kind = "Namespace",
	.plural = "namespaces",
	.singular = "namespace",
	.short_names = WORDS("ns"),
	.help = "A space of names, in which objects of several owners do not meet.",
	.fields = namespace_fields,
	.columns = namespace_columns,
	.has_status = true,
	.label_name = true,
	.max_name = 63,
};

static const struct field node_fields[] = {
	F_ANY("spec", "What is wanted of the node."),
	F_ANY("status", "What is known of the node."),
	F_END,
};

static void cell_node_status(const json_t *o, struct buf *out)
{
	const char *ready = "Unknown";
	size_t i;
	json_t *c;

	json_array_foreach (jget(o, "status", "conditions"), i, c) {
		if (streq(jstr(c, "type"), "Ready"))
			ready = streq(jstr(c, "status"), "True") ? "Ready" : "NotReady";
	}
	buf_puts(out, ready);
	if (jbool(o, "spec", "unschedulable"))
		buf_puts(out, ",SchedulingDisabled");
}

static const struct column node_columns[] = {
	C_CELL("Status", cell_node_status, "Whether the node is ready."),
	C_STRING("Version", ".status.nodeInfo.kubeletVersion", "Version of its kubelet."),
	C_END,
};

const struct kind KIND_NODE = {
	.group = "",
	.version = "v1",
	.kind = "Node",
	.plural = "nodes",
	.singular = "node",
	.short_names = WORDS("no"),
	.help = "A machine of the cluster.",
	.fields = node_fields,
	.columns = node_columns,
	.has_status = true,
};

static const struct field pod_fields[] = {
	F_ANY("spec", "What is to run."),
	F_ANY("status", "What runs."),
	F_END,
};

static const struct column pod_columns[] = {
	C_STRING("Status", ".status.phase", "Phase of the pod."),
	C_STRING("IP", ".status.podIP", "Its address.", .priority = 1),
	C_STRING("Node", ".spec.nodeName", "Where it runs.", .priority = 1),
	C_END,
};

const struct kind KIND_POD = {
	.group = "",
	.version = "v1",
	.kind = "Pod",
	.plural = "pods",
	.singular = "pod",
	.short_names = WORDS("po"),
	.help = "Containers that run together. This API knows the kind but runs none.",
	.fields = pod_fields,
	.columns = pod_columns,
	.namespaced = true,
	.has_status = true,
};
