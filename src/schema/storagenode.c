/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <arpa/inet.h>
#include <stdio.h>

static const struct field ip =
	F_STRING("", "An IPv4 or IPv6 address.", .check = check_ip, .max_len = 64);
static const struct field device =
	F_STRING("", "The path of a block device on the node, such as /dev/vdb.",
		 .check = check_device, .max_len = 255);
static const struct field directory =
	F_STRING("", "The path of a directory on the node, such as /srv/bricks.",
		 .check = check_directory, .max_len = 512);
static const struct field label_value = F_STRING("", "The value of a label.", .max_len = 63);

/*
 * Lists and strings are bounded so that a cluster's API server can estimate what its rules cost
 * (crd_rules.c); no machine has as many disks.
 */
#define DEVICES_MAX 128
#define DIRECTORIES_MAX 64

static const struct field network_fields[] = {
	F_ARRAY("ips",
		"Addresses of the node in the storage network; the first is the one that is used.",
		&ip, .max_len = 16),
	F_END,
};

static const struct field glusterfs_fields[] = {
	F_STRING("cluster", "The cluster (trusted pool) that the node belongs to.",
		 .check = check_label_name, .max_len = 63, .immutable = true),
	F_INTEGER("zone", "The failure zone of the node; copies of data go to different zones.",
		  .min = 1, .max = INT32_MAX, .default_json = "1"),
	F_ARRAY("wipe",
		"Devices of this node that may be formatted although they carry a file system, "
		"partition "
		"table or other signature. What is on them is lost.",
		&device, .unique = true, .max_len = DEVICES_MAX),
	F_END,
};

/* Open: what it holds is to be decided. */
static const struct field torus_fields[] = { F_END };

/*
 * Lists of devices are replaced, not merged: merging would keep a device that one tool declared
 * and another no longer names, and nobody would see why it is not emptied.
 */
static const struct field spec_fields[] = {
	F_STRING("type", "The storage system that the node is for.", .required = true,
		 .immutable = true, .values = SYSTEM_TYPES),
	F_MAP("nodeSelector",
	      "Labels by which the machine is found, such as kubernetes.io/hostname.", &label_value,
	      .check = check_labels, .max_len = 16),
	F_OBJECT("storageNetwork", "How the node is reached by the other storage nodes.",
		 network_fields),
	F_ARRAY("devices",
		"Raw block devices of the node to store data on. One that carries data is refused, "
		"untouched.",
		&device, .unique = true, .max_len = DEVICES_MAX),
	F_ARRAY("directories", "Directories on the node to store data in.", &directory,
		.unique = true, .max_len = DIRECTORIES_MAX),
	F_OBJECT("glusterfs", "What only GlusterFS needs to know.", glusterfs_fields),
	F_OBJECT("torus", "What only Torus needs to know.", torus_fields, .open = true),
	F_BOOLEAN("maintenance",
		  "While true, nothing new is placed on the node and nothing of it is repaired."),
	F_END,
};

static const struct field plan_brick_fields[] = {
	F_STRING("id", "The brick's id.", .required = true),
	F_STRING("device", "The device that holds it."),
	F_STRING("directory", "The directory that holds it."),
	F_STRING("path", "The brick's path on the node."),
	F_STRING("pool", "The StoragePool that it is part of."),
	F_STRING("poolUid", "That pool's metadata.uid: it is for no other of that name."),
	F_BOOLEAN("wipe", "Whether the device may be formatted although it carries a signature."),
	F_STRING("parent", "The brick beside which it lies, of a whole volume."),
	F_END,
};
static const struct field plan_brick =
	F_OBJECT("", "A brick that the node has to serve.", plan_brick_fields, .open = true);

static const struct field plan_fields[] = {
	F_COUNT("epoch",
		"The operator's term in which the plan was made; older plans are ignored."),
	F_STRING("cluster", "The cluster that the node is part of."),
	F_STRING("address", "The address under which the node's bricks are known."),
	F_BOOLEAN("maintenance", "Whether the node is in maintenance."),
	F_STRINGS("peers", "Addresses of all nodes of the cluster."),
	F_STRINGS("detach", "Addresses that have to leave the cluster."),
	F_ARRAY("bricks", "The bricks to prepare and to keep running.", &plan_brick,
		.list_map_key = "id"),
	F_STRINGS("release", "Bricks that have left their pool and may be taken down."),
	F_MAP("releasePools",
	      "Of those, by id, the uid of the pool: what a node has for another one stays.",
	      &ITEM_STRING),
	F_END,
};

static const struct field glusterd_fields[] = {
	F_BOOLEAN("running", "Whether glusterd runs."),
	F_STRING("uuid", "The node's identity in the trusted pool."),
	F_COUNT("pid", "Its process id."),
	F_STRING("version", "Its version."),
	F_STRING("message", "What is wrong with it.", .max_len = 32768),
	F_END,
};

static const char *const device_states[] = { "Available", "Ready",  "Refused",
					     "Missing",	  "Failed", NULL };
static const struct field agent_device_fields[] = {
	F_STRING("device", "The device, as spec names it."),
	F_STRING("directory", "The directory, as spec names it."),
	F_STRING("state",
		 "Available (could be used), Ready (prepared and mounted), Refused, Missing or "
		 "Failed.",
		 .values = device_states),
	F_STRING("reason",
		 "Why it is refused or failed, as one word: Signature, InUse, TooSmall, …"),
	F_STRING("message", "The same as a sentence, with what to do.", .max_len = 32768),
	F_COUNT("sizeBytes", "Its size."),
	F_STRING("uuid",
		 "UUID of the file system on it; a device that changed its name is found by it."),
	F_STRING("wwn", "World wide name of the device."),
	F_STRING("majorMinor", "Device number, such as 253:16."),
	F_STRING("brick", "The brick that it holds."),
	F_BOOLEAN("unsure",
		  "Another disk seems to be in the place of the brick's, but one of them has no "
		  "world wide name."),
	F_STRINGS("lost", "Bricks that were made under this name, and whose disks have left it."),
	F_END,
};
static const struct field agent_device = F_OBJECT("", "What was found of one device or directory.",
						  agent_device_fields, .open = true);

static const struct field agent_brick_fields[] = {
	F_STRING("id", "The brick's id.", .required = true),
	F_STRING("pool", "The StoragePool that it is part of."),
	F_STRING("poolUid", "That pool's metadata.uid."),
	F_STRING("path", "Its path on the node."),
	F_STRING("parent", "The brick beside which it lies, of a whole volume."),
	F_BOOLEAN("mounted", "Whether its file system is mounted."),
	F_BOOLEAN("online", "Whether its process serves it."),
	F_COUNT("pid", "The process that serves it."),
	F_INTEGER("pending", "Entries that wait to be healed; -1 where this is not known.",
		  .min = -1, .max = INT64_MAX),
	F_COUNT("sizeBytes", "Size of its file system."),
	F_COUNT("usedBytes", "Bytes used in it."),
	F_COUNT("freeBytes", "Bytes free in it."),
	F_END,
};
static const struct field agent_brick =
	F_OBJECT("", "What was found of one brick.", agent_brick_fields, .open = true);

static const struct field quota_fields[] = {
	F_BOOLEAN("enforced", "Whether the kernel holds volumes to their size on this node."),
	F_STRING("reason", "Why not, as one word."),
	F_STRING("message", "Why not, as a sentence.", .max_len = 32768),
	F_MAP("pools", "For each pool the resourceVersion of the newest PersistentVolume in force.",
	      &ITEM_STRING),
	F_END,
};

static const struct field agent_fields[] = {
	F_COUNT("observedGeneration", "The metadata.generation that the agent has seen."),
	F_COUNT("planEpoch", "The epoch of the plan that it carries out."),
	F_STRING("machineId", "The machine on which it runs."),
	F_STRING("bootId", "The boot of that machine."),
	F_STRING("version", "The agent's version."),
	F_TIME("heartbeat", "When the agent last reported."),
	F_OBJECT("glusterd", "The management daemon of GlusterFS.", glusterd_fields, .open = true),
	F_ARRAY("devices", "Devices and directories, as found.", &agent_device),
	F_ARRAY("bricks", "Bricks, as found.", &agent_brick, .list_map_key = "id"),
	F_OBJECT("quota", "Whether volumes are held to their size.", quota_fields, .open = true),
	F_END,
};

static const struct field display_fields[] = {
	F_STRING("zone", "The failure zone, 1 where spec names none."),
	F_STRING("devices", "Devices and directories: ready / declared."),
	F_END,
};

static const char *const phases[] = { "Pending",  "Ready",   "Degraded", "Maintenance",
				      "Emptying", "Offline", NULL };
static const struct field status_fields[] = {
	F_COUNT("observedGeneration", "The metadata.generation that the operator has acted on."),
	F_STRING("nodeName", "The machine on which the node's agent runs."),
	F_STRING("address", "The address under which the other nodes know this one."),
	F_STRING("phase", "Pending, Ready, Degraded, Maintenance, Emptying or Offline.",
		 .values = phases),
	F_CONDITIONS,
	F_DISPLAY(display_fields),
	F_OBJECT("plan", "What the operator wants of the node. Written by the operator.",
		 plan_fields, .open = true),
	F_OBJECT("agent", "What the node's agent has found. Written by the agent.", agent_fields,
		 .open = true),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "What the node gives to the storage system.", spec_fields,
		 .required = true),
	F_OBJECT("status", "What has become of it. Written by QuarterMaster.", status_fields),
	F_END,
};

static void cell_phase(const json_t *o, struct buf *out)
{
	const char *phase = jstr(o, "status", "phase");

	buf_puts(out, phase ? phase : "Pending");
}

static void cell_address(const json_t *o, struct buf *out)
{
	const char *address = jstr(o, "status", "address");

	if (!address)
		address = json_string_value(
			json_array_get(jget(o, "spec", "storageNetwork", "ips"), 0));
	buf_puts(out, address ? address : "-");
}

static void cell_zone(const json_t *o, struct buf *out)
{
	const json_t *zone = jget(o, "spec", "glusterfs", "zone");

	buf_printf(out, "%lld", json_is_integer(zone) ? (long long)json_integer_value(zone) : 1LL);
}

static void cell_devices(const json_t *o, struct buf *out)
{
	size_t total = json_array_size(jget(o, "spec", "devices")) +
		       json_array_size(jget(o, "spec", "directories"));
	size_t ready = 0, i;
	json_t *d;

	json_array_foreach (jget(o, "status", "agent", "devices"), i, d) {
		ready += streq(jstr(d, "state"), "Ready");
	}
	buf_printf(out, "%zu/%zu", ready, total);
}

static const struct column columns[] = {
	C_STRING("Type", ".spec.type", "The storage system."),
	C_CELL("Status", cell_phase, "Phase of the node.", .path = ".status.phase"),
	C_CELL("Address", cell_address, "Address in the storage network.",
	       .path = ".status.address"),
	C_CELL("Zone", cell_zone, "Failure zone.", .path = ".status.display.zone"),
	C_CELL("Devices", cell_devices, "Devices and directories: ready / declared.",
	       .path = ".status.display.devices"),
	C_STRING("Cluster", ".spec.glusterfs.cluster", "Cluster of the node.", .priority = 1),
	C_STRING("Machine", ".status.nodeName", "Machine that the node runs on.", .priority = 1),
	C_END,
};

/* IPv4 in the form that maps it into IPv6, so that all addresses compare alike. */
static struct in6_addr parse_ip(const char *text)
{
	struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, &a.s6_addr[12]) != 1)
		(void)inet_pton(AF_INET6, text, &a);
	return a;
}

/* Two spellings of one address are one address. The list is no set: its order counts. */
static int check_ips(const json_t *ips, struct schema_problem *ret)
{
	for (size_t i = 0; i < json_array_size(ips); i++) {
		const char *text = json_string_value(json_array_get(ips, i));
		struct in6_addr a = parse_ip(text);

		for (size_t j = 0; j < i; j++) {
			struct in6_addr b = parse_ip(json_string_value(json_array_get(ips, j)));
			char path[64];

			if (memcmp(&a, &b, sizeof(a)) != 0)
				continue;
			(void)snprintf(path, sizeof(path), "spec.storageNetwork.ips[%zu]", i);
			return problem(ret, path, "\"%s\" stands there already", text);
		}
	}
	return 0;
}

/* A directory within another would hold bricks within bricks. */
static int check_nesting(const json_t *directories, struct schema_problem *ret)
{
	for (size_t i = 0; i < json_array_size(directories); i++) {
		const char *inner = json_string_value(json_array_get(directories, i));

		for (size_t j = 0; j < json_array_size(directories); j++) {
			const char *outer = json_string_value(json_array_get(directories, j));
			size_t n = strlen(outer);
			char path[64], a[QUOTED_MAX], b[QUOTED_MAX];

			if (strncmp(inner, outer, n) != 0 || inner[n] != '/')
				continue;
			(void)snprintf(path, sizeof(path), "spec.directories[%zu]", i);
			return problem(ret, path, "%s lies inside %s; keep one of them",
				       quoted(inner, a), quoted(outer, b));
		}
	}
	return 0;
}

static int check_wipe(const json_t *wipe, const json_t *devices, struct schema_problem *ret)
{
	size_t i, j;
	json_t *w, *d;

	json_array_foreach (wipe, i, w) {
		bool found = false;
		char path[64], q[QUOTED_MAX];

		json_array_foreach (devices, j, d) {
			found = found || json_equal(w, d);
		}
		if (found)
			continue;
		(void)snprintf(path, sizeof(path), "spec.glusterfs.wipe[%zu]", i);
		return problem(ret, path, "%s is not one of spec.devices",
			       quoted(json_string_value(w), q));
	}
	return 0;
}

static int check(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	const json_t *spec = json_object_get(o, "spec");
	int r = check_ips(jget(spec, "storageNetwork", "ips"), ret);

	if (r == 0)
		r = check_nesting(jget(spec, "directories"), ret);
	if (r == 0)
		r = check_wipe(jget(spec, "glusterfs", "wipe"), jget(spec, "devices"), ret);
	return r;
}

const struct kind KIND_STORAGENODE = {
	.group = "coreos.com",
	.version = "v1",
	.kind = "StorageNode",
	.plural = "storagenodes",
	.singular = "storagenode",
	.short_names = WORDS("sn"),
	.help = "A machine that gives devices or directories to a storage system.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
	.has_status = true,
	.custom = true,
	.max_name = 63, /* it is the value of labels */
	.check = check,
};
