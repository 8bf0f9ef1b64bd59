/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

/* An agent formats and mounts what stands here, so it is checked like what a person writes. */
static const struct field brick_fields[] = {
	F_STRING("id", "The brick's id, for ever the same for one device of one node.",
		 .required = true, .check = check_label_name, .max_len = 63),
	F_STRING("node", "The StorageNode that holds it.", .max_len = 253),
	F_STRING("address", "The address of that node.", .check = check_ip, .max_len = 64),
	F_STRING("device", "The device that holds it.", .check = check_device, .max_len = 255),
	F_STRING("directory", "The directory that holds it.", .check = check_directory,
		 .max_len = 512),
	F_STRING("path", "The brick's path on the node.", .check = check_path, .max_len = 1024),
	F_INTEGER("zone", "The failure zone of its node.", .min = 1, .max = INT32_MAX),
	F_BOOLEAN("arbiter", "Whether it holds only names and metadata, to break ties."),
	F_BOOLEAN("prepared", "Whether its node has it ready."),
	F_STRING("parent", "Of a whole volume: the brick of its pool beside which it lies.",
		 .check = check_label_name, .max_len = 63),
	F_END,
};
static const struct field brick =
	F_OBJECT("", "One brick of the pool.", brick_fields, .open = true);

static const struct field spec_fields[] = {
	F_STRING("type", "The storage system.", .required = true, .immutable = true,
		 .values = SYSTEM_TYPES),
	F_STRING("deployment", "The deployment that the pool is part of.", .required = true,
		 .immutable = true, .check = check_label_name, .max_len = 63),
	F_STRING("cluster", "The cluster whose nodes hold the pool."),
	F_STRING("tlsAllow",
		 "Who may use the pool: common names of certificates, separated by commas. Connections "
		 "to it use TLS. A pool without it is plain.",
		 .max = 1000, .immutable = true),
	F_STRING("volumeType",
		 "How it keeps data: replicate:N, disperse:DATA:REDUNDANCY, arbiter or none."),
	F_COUNT("epoch", "The operator's term in which this was decided."),
	F_STRING("parent",
		 "The pool beside whose bricks its own lie, where it is a single volume (kind whole) and "
		 "not a pool for many.",
		 .immutable = true, .check = check_label_name, .max_len = 63),
	F_COUNT("sizeBytes", "What it may hold, where it has a parent."),
	F_ARRAY("bricks", "The bricks that make up the pool.", &brick, .list_map_key = "id",
		.max_len = 64),
	F_MAP("options", "Options of the Gluster volume.", &ITEM_STRING),
	F_END,
};

static const struct field brick_status_fields[] = {
	F_STRING("id", "The brick's id.", .required = true),
	F_BOOLEAN("online", "Whether it serves."),
	F_INTEGER("pending", "Entries that wait to be healed; -1 where this is not known.",
		  .min = -1, .max = INT64_MAX),
	F_BOOLEAN("whole",
		  "Whether it is known to hold everything: all bricks were online once with "
		  "nothing to heal, and it cannot have missed anything since. A brick that is "
		  "lost is given up only if enough others are whole."),
	F_COUNT("pid", "Its process, as long as it is known to be whole."),
	F_END,
};
static const struct field brick_status =
	F_OBJECT("", "The state of one brick.", brick_status_fields, .open = true);

static const struct field display_fields[] = {
	F_STRING("bricks", "Bricks: online / all."),
	F_STRING("heal", "Entries that wait to be healed."),
	F_STRING("capacity", "What the pool can hold."),
	F_STRING("used", "What is in use."),
	F_END,
};

static const char *const phases[] = {
	"Creating", "Online", "Degraded", "Healing", "Offline", "Deleted", NULL
};
static const struct field status_fields[] = {
	F_COUNT("observedGeneration", "The metadata.generation that was acted on."),
	F_STRING("phase", "Creating, Online, Degraded, Healing, Offline or Deleted (the volume is gone).", .values = phases),
	F_STRING("volumeId", "UUID of the Gluster volume."),
	F_STRING("message", "What is wrong and what to do.", .max_len = 32768),
	F_COUNT("epoch", "The epoch of the spec that was acted on."),
	F_ARRAY("bricks", "The bricks, as found.", &brick_status, .list_map_key = "id"),
	F_INTEGER("healPending", "Entries that wait to be healed; -1 where this is not known.",
		  .min = -1, .max = INT64_MAX),
	F_COUNT("capacityBytes", "Bytes that the pool can hold."),
	F_COUNT("usedBytes", "Bytes in use."),
	F_COUNT("freeBytes", "Bytes free."),
	F_CONDITIONS,
	F_DISPLAY(display_fields),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "What the pool is made of, as the operator planned it.", spec_fields,
		 .required = true),
	F_OBJECT("status", "What has become of it, as the cluster's agent reports.", status_fields,
		 .open = true),
	F_END,
};

static void cell_phase(const json_t *o, struct buf *out)
{
	const char *phase = jstr(o, "status", "phase");

	buf_puts(out, phase ? phase : "Creating");
}

static void cell_bricks(const json_t *o, struct buf *out)
{
	size_t online = 0, i;
	json_t *b;

	json_array_foreach (jget(o, "status", "bricks"), i, b) {
		online += jbool(b, "online");
	}
	buf_printf(out, "%zu/%zu", online, json_array_size(jget(o, "spec", "bricks")));
}

static void cell_heal(const json_t *o, struct buf *out)
{
	const json_t *pending = jget(o, "status", "healPending");

	if (json_is_integer(pending) && json_integer_value(pending) >= 0)
		buf_printf(out, "%lld", (long long)json_integer_value(pending));
	else
		buf_puts(out, "-");
}

static void cell_capacity(const json_t *o, struct buf *out)
{
	cell_size(jget(o, "status", "capacityBytes"), out);
}

static void cell_used(const json_t *o, struct buf *out)
{
	cell_size(jget(o, "status", "usedBytes"), out);
}

static const struct column columns[] = {
	C_STRING("Type", ".spec.volumeType", "How the pool keeps data."),
	C_CELL("Status", cell_phase, "Phase of the pool.", .path = ".status.phase"),
	C_CELL("Bricks", cell_bricks, "Bricks: online / all.", .path = ".status.display.bricks"),
	C_CELL("Heal", cell_heal, "Entries that wait to be healed.",
	       .path = ".status.display.heal"),
	C_CELL("Capacity", cell_capacity, "What the pool can hold.",
	       .path = ".status.display.capacity"),
	C_CELL("Used", cell_used, "What is in use.", .path = ".status.display.used"),
	C_STRING("Cluster", ".spec.cluster", "Cluster whose nodes hold it.", .priority = 1),
	C_STRING("Parent", ".spec.parent", "Pool of the volume, where it is one.", .priority = 1),
	C_STRING("Message", ".status.message", "What is wrong.", .priority = 1),
	C_END,
};

const struct kind KIND_STORAGEPOOL = {
	.group = "coreos.com",
	.version = "v1",
	.kind = "StoragePool",
	.plural = "storagepools",
	.singular = "storagepool",
	.short_names = WORDS("sp"),
	.help = "One set of bricks that holds volumes together: one Gluster volume. Made by the "
		"operator.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
	.has_status = true,
	.custom = true,
	.max_name = 60, /* the name of the Gluster volume */
	.label_name = true,
};
