/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

static const char *const states[] = { "ONLINE", "OFFLINE", NULL };

static const struct field cluster_fields[] = {
	F_STRING("name", "Name of the cluster.", .required = true),
	F_STRINGS("nodes", "Names of its StorageNodes."),
	F_STRINGS("pools", "Names of its StoragePools."),
	F_END,
};
static const struct field cluster = F_OBJECT("", "One cluster.", cluster_fields, .open = true);

static const struct field glusterfs_fields[] = {
	F_STRING("volumeType",
		 "How pools keep data: replicate:N, disperse:DATA:REDUNDANCY, arbiter or none."),
	F_NUMBER("overcommit", "Promised sizes stay below capacity times this."),
	F_ARRAY("clusters", "The clusters of the deployment.", &cluster, .list_map_key = "name"),
	F_END,
};

/* Open: what it holds is to be decided. */
static const struct field torus_fields[] = { F_END };

static const struct field spec_fields[] = {
	F_STRING("type", "The storage system.", .required = true, .immutable = true,
		 .values = SYSTEM_TYPES),
	F_STRING("status", "ONLINE while the storage system can serve claims, else OFFLINE.",
		 .values = states),
	F_STRINGS("storageNodes", "Names of the StorageNodes that this deployment manages."),
	F_OBJECT("glusterfs", "What only GlusterFS has to tell.", glusterfs_fields, .open = true),
	F_OBJECT("torus", "What only Torus has to tell.", torus_fields, .open = true),
	F_END,
};

static const struct field display_fields[] = {
	F_STRING("nodes", "Storage nodes: ready / all."),
	F_STRING("capacity", "What all pools can hold."),
	F_STRING("used", "What is in use."),
	F_STRING("promised", "Sum of the sizes of all volumes."),
	F_END,
};

static const struct field status_fields[] = {
	F_COUNT("observedGeneration", "The metadata.generation that the operator has acted on."),
	F_CONDITIONS,
	F_COUNT("nodes", "Nodes of the deployment."),
	F_COUNT("nodesReady", "Those of them that are ready."),
	F_COUNT("pools", "Pools of the deployment."),
	F_COUNT("lastPoolNumber",
		"The highest number that the name of a pool was given; none is given again."),
	F_COUNT("capacityBytes", "Bytes that all pools can hold."),
	F_COUNT("usedBytes", "Bytes in use."),
	F_COUNT("promisedBytes", "Sum of the sizes of all volumes."),
	F_INTEGER("healPending", "Entries that wait to be healed; -1 where this is not known.",
		  .min = -1, .max = INT64_MAX),
	F_STRING("message", "The state in one sentence.", .max_len = 32768),
	F_DISPLAY(display_fields),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "The state of the deployment, as the operator keeps it.", spec_fields,
		 .required = true),
	F_OBJECT("status", "Conditions and numbers.", status_fields, .open = true),
	F_END,
};

static void cell_status(const json_t *o, struct buf *out)
{
	const char *status = jstr(o, "spec", "status");

	buf_puts(out, status ? status : "OFFLINE");
}

static void cell_nodes(const json_t *o, struct buf *out)
{
	const json_t *nodes = jget(o, "status", "nodes");
	long long total = json_is_integer(nodes)
				  ? (long long)json_integer_value(nodes)
				  : (long long)json_array_size(jget(o, "spec", "storageNodes"));

	buf_printf(out, "%lld/%lld", (long long)jint(o, "status", "nodesReady"), total);
}

static void cell_capacity(const json_t *o, struct buf *out)
{
	cell_size(jget(o, "status", "capacityBytes"), out);
}

static void cell_used(const json_t *o, struct buf *out)
{
	cell_size(jget(o, "status", "usedBytes"), out);
}

static void cell_promised(const json_t *o, struct buf *out)
{
	cell_size(jget(o, "status", "promisedBytes"), out);
}

static const struct column columns[] = {
	C_STRING("Type", ".spec.type", "The storage system."),
	C_CELL("Status", cell_status, "ONLINE or OFFLINE.", .path = ".spec.status"),
	C_CELL("Nodes", cell_nodes, "Storage nodes: ready / all.", .path = ".status.display.nodes"),
	C_INTEGER("Pools", ".status.pools", "Number of pools."),
	C_CELL("Capacity", cell_capacity, "What all pools can hold.",
	       .path = ".status.display.capacity"),
	C_CELL("Used", cell_used, "What is in use.", .path = ".status.display.used"),
	C_CELL("Promised", cell_promised, "Sum of the sizes of all volumes.", .priority = 1,
	       .path = ".status.display.promised"),
	C_STRING("Message", ".status.message", "The state in one sentence.", .priority = 1),
	C_END,
};

const struct kind KIND_STORAGESTATUS = {
	.group = "coreos.com",
	.version = "v1",
	.kind = "StorageStatus",
	.plural = "storagestatuses",
	.singular = "storagestatus",
	.short_names = WORDS("ss"),
	.help = "The state of a deployment of a storage system: ONLINE or OFFLINE, and why.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
	.has_status = true,
	.custom = true,
	.max_name = 50, /* names of volumes begin with it */
	.label_name = true,
};
