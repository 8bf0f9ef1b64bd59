/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/overview.h"

#include "base/mem.h"
#include "kube/kube.h"

/* claims are shown one by one only while they wait, and not too many of them */
#define WAITING_MAX 10

static void copy(json_t *to, const char *key, const json_t *value)
{
	if (value && !json_is_null(value))
		(void)json_object_set(to, key, (json_t *)value);
}

static json_t *deployment(const json_t *o)
{
	const json_t *status = json_object_get(o, "status"),
		     *conditions = json_object_get(status, "conditions");
	const json_t *degraded = condition_get(conditions, "Degraded"),
		     *online = condition_get(conditions, "Online"),
		     *clients = condition_get(conditions, "ClientsUpdated");
	static const char *const numbers[] = { "nodes",		"nodesReady", "pools",
					       "capacityBytes", "usedBytes",  "promisedBytes",
					       "healPending" };
	json_t *d = json_object();
	const json_t *message = json_object_get(status, "message");

	copy(d, "name", jget(o, "metadata", "name"));
	copy(d, "namespace", jget(o, "metadata", "namespace"));
	copy(d, "type", jget(o, "spec", "type"));
	copy(d, "status", jget(o, "spec", "status"));
	copy(d, "volumeType", jget(o, "spec", "glusterfs", "volumeType"));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		copy(d, numbers[i], json_object_get(status, numbers[i]));
	(void)json_object_set_new(d, "degraded",
				  json_boolean(condition_is_true(conditions, "Degraded")));
	if (condition_is_true(conditions, "Degraded"))
		message = json_object_get(degraded, "message");
	else if (!message && online && !condition_is_true(conditions, "Online"))
		message = json_object_get(online, "message");
	copy(d, "message", message);
	if (clients && !condition_is_true(conditions, "ClientsUpdated"))
		copy(d, "clients", json_object_get(clients, "message"));
	return d;
}

/* What the agent found of a device; a device that it has not reported is shown all the same. */
static json_t *device(const json_t *reports, const char *key, const json_t *source)
{
	json_t *d = json_pack("{s:O, s:s}", "source", source, "state", "Unknown"), *r;
	size_t i;

	json_array_foreach (reports, i, r) {
		const json_t *name = json_object_get(r, key);

		if (!name || !json_equal(name, source))
			continue;
		copy(d, "state", json_object_get(r, "state"));
		copy(d, "reason", json_object_get(r, "reason"));
		copy(d, "message", json_object_get(r, "message"));
		copy(d, "sizeBytes", json_object_get(r, "sizeBytes"));
		copy(d, "brick", json_object_get(r, "brick"));
	}
	return d;
}

static json_t *devices(const json_t *o)
{
	const json_t *reports = jget(o, "status", "agent", "devices");
	json_t *all = json_array(), *source;
	size_t i;

	json_array_foreach (jget(o, "spec", "devices"), i, source) {
		(void)json_array_append_new(all, device(reports, "device", source));
	}
	json_array_foreach (jget(o, "spec", "directories"), i, source) {
		(void)json_array_append_new(all, device(reports, "directory", source));
	}
	return all;
}

/* The first condition that says what is wrong: Ready that does not hold, or any other with a complaint. */
static const json_t *complaint(const json_t *o)
{
	const json_t *ready = condition_get(jget(o, "status", "conditions"), "Ready");

	if (ready && !streq(jstr(ready, "status"), "True"))
		return json_object_get(ready, "message");
	return NULL;
}

static json_t *node(const json_t *o)
{
	const json_t *zone = jget(o, "spec", "glusterfs", "zone"),
		     *address = jget(o, "status", "address");
	const char *phase = jstr(o, "status", "phase");
	json_t *n = json_pack("{s:s, s:I, s:o}", "phase", phase ? phase : "Pending", "zone",
			      zone ? json_integer_value(zone) : 1, "devices", devices(o));

	copy(n, "name", jget(o, "metadata", "name"));
	copy(n, "address",
	     address ? address : json_array_get(jget(o, "spec", "storageNetwork", "ips"), 0));
	copy(n, "machine", jget(o, "status", "nodeName"));
	copy(n, "message", complaint(o));
	return n;
}

static json_t *pool(const json_t *o)
{
	static const char *const fields[] = { "capacityBytes", "usedBytes", "freeBytes",
					      "healPending", "message" };
	const char *phase = jstr(o, "status", "phase");
	json_int_t online = 0;
	json_t *p, *b;
	size_t i;

	json_array_foreach (jget(o, "status", "bricks"), i, b) {
		online += jbool(b, "online");
	}
	p = json_pack("{s:s, s:I, s:I}", "phase", phase ? phase : "Creating", "bricks",
		      (json_int_t)json_array_size(jget(o, "spec", "bricks")), "bricksOnline",
		      online);
	copy(p, "name", jget(o, "metadata", "name"));
	copy(p, "volumeType", jget(o, "spec", "volumeType"));
	copy(p, "parent", jget(o, "spec", "parent"));
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		copy(p, fields[i], jget(o, "status", fields[i]));
	return p;
}

static json_t *waiting_claim(const json_t *o, const char *phase)
{
	json_t *c = json_pack("{s:s}", "phase", phase);

	copy(c, "name", jget(o, "metadata", "name"));
	copy(c, "size", jget(o, "spec", "resources", "requests", "storage"));
	copy(c, "message", jget(o, "metadata", "annotations", "quartermaster.storage/waiting"));
	return c;
}

static json_t *claims_summary(const json_t *claims)
{
	json_t *waiting = json_array(), *o;
	json_int_t bound = 0, pending = 0;
	size_t i;

	json_array_foreach (claims, i, o) {
		const char *phase = jstr(o, "status", "phase");

		if (streq(phase, "Bound")) {
			bound++;
			continue;
		}
		pending++;
		if (json_array_size(waiting) < WAITING_MAX)
			(void)json_array_append_new(waiting,
						    waiting_claim(o, phase ? phase : "Pending"));
	}
	return json_pack("{s:I, s:I, s:o}", "bound", bound, "pending", pending, "waiting", waiting);
}

static json_t *each(const json_t *items, json_t *(*fn)(const json_t *o))
{
	json_t *all = json_array(), *o;
	size_t i;

	json_array_foreach (items, i, o) {
		(void)json_array_append_new(all, fn(o));
	}
	return all;
}

json_t *overview(const json_t *statuses, const json_t *nodes, const json_t *pools,
		 const json_t *claims)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "deployments", each(statuses, deployment), "nodes",
			 each(nodes, node), "pools", each(pools, pool), "claims",
			 claims_summary(claims));
}
