/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Nodes and pools to plan for, and what the planner makes of them; for tests. */
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define GIB (1LL << 30)

static inline json_t *node_new(const char *name, int zone)
{
	cleanup_free char *ip = xasprintf("10.0.%lu.1", strtoul(name + 1, NULL, 10));
	return json_pack(
		"{s:{s:s, s:s}, s:{s:s, s:{s:[s]}, s:[], s:[], s:{s:i}}, s:{s:s, s:{s:[], s:[]}}}",
		"metadata", "name", name, "uid", name, "spec", "type", "glusterfs",
		"storageNetwork", "ips", ip, "devices", "directories", "glusterfs", "zone", zone,
		"status", "address", ip, "agent", "devices", "bricks");
}

static inline void node_add_device(json_t *node, const char *device, int64_t size)
{
	json_array_append_new(jget(node, "spec", "devices"), json_string(device));
	json_array_append_new(jget(node, "status", "agent", "devices"),
			      json_pack("{s:s, s:s, s:I}", "device", device, "state", "Available",
					"sizeBytes", (json_int_t)size));
}

static inline void node_drop_device(json_t *node, const char *device)
{
	json_t *devices = jget(node, "spec", "devices");
	for (size_t i = json_array_size(devices); i-- > 0;)
		if (streq(json_string_value(json_array_get(devices, i)), device))
			json_array_remove(devices, i);
}

/* nodes n1 … nN in zones 1 … N, each with `devices` devices of 10 GiB */
static inline json_t *cluster(int nodes, int devices)
{
	json_t *list = json_array();
	for (int n = 1; n <= nodes; n++) {
		char name[16], device[16];
		snprintf(name, sizeof(name), "n%d", n);
		json_t *node = node_new(name, n);
		for (int d = 0; d < devices; d++) {
			snprintf(device, sizeof(device), "/dev/vd%c", 'b' + d);
			node_add_device(node, device, 10 * GIB);
		}
		json_array_append_new(list, node);
	}
	return list;
}

static inline struct plan_output plan(const char *type, const json_t *nodes, const json_t *pools,
				      const json_t *volumes)
{
	struct plan_input in = { .deployment = "gold",
				 .volume_type = type,
				 .overcommit = 1,
				 .nodes = nodes,
				 .pools = pools,
				 .volumes = volumes,
				 .epoch = 7 };
	struct plan_output out;
	struct error err = ERROR_INIT;
	if (glusterfs_plan(&in, &out, &err) < 0)
		fail_msg("%s", err.message);
	return out;
}

/* The StoragePools as they are once the plan was carried out. */
static inline json_t *carried_out(const struct plan_output *out)
{
	json_t *pools = json_array();
	size_t i, k;
	json_t *p, *b;
	json_array_foreach (out->pools, i, p) {
		if (streq(jstr(p, "action"), "delete"))
			continue;
		json_t *status = json_array();
		json_array_foreach (jget(p, "spec", "bricks"), k, b)
			json_array_append_new(
				status, json_pack("{s:s, s:b}", "id", jstr(b, "id"), "online", 1));
		json_array_append_new(
			pools, json_pack("{s:{s:s, s:i}, s:O, s:{s:i, s:s, s:o, s:i}}", "metadata",
					 "name", jstr(p, "name"), "generation", 1, "spec",
					 jget(p, "spec"), "status", "observedGeneration", 1,
					 "volumeId", "x", "bricks", status, "healPending", 0));
	}
	return pools;
}

static inline void take_plans(json_t *nodes, const struct plan_output *out)
{
	size_t i;
	json_t *n;
	json_array_foreach (nodes, i, n)
		jset(n, json_incref(jget(out->node_plans, jstr(n, "metadata", "name"))), "status",
		     "plan");
}

static inline const json_t *finding_of(const struct plan_output *out, const char *reason)
{
	size_t i;
	json_t *f;
	json_array_foreach (out->findings, i, f)
		if (streq(jstr(f, "reason"), reason))
			return f;
	return NULL;
}

static inline json_t *pool_at(const struct plan_output *out, size_t index)
{
	return json_array_get(out->pools, index);
}

static inline bool uses(const json_t *pool, const char *node, const char *device)
{
	size_t i;
	json_t *b;
	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		if (streq(jstr(b, "node"), node) && (!device || streq(jstr(b, "device"), device)))
			return true;
	return false;
}
