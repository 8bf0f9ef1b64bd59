/* SPDX-License-Identifier: Apache-2.0 */
/* Bricks whose disks do not come back, since a person has put others in their place. */
#include "agent/state.h"
#include "base/mem.h"

/*
 * The disk that it lies on, by the node that has it at this address: the brick itself, or the one
 * beside which it lies.
 */
static const char *lies_on(const json_t *node, const char *address, const char *path)
{
	const json_t *b;
	size_t i;

	if (!streq(jstr(node, "status", "plan", "address"), address))
		return NULL;
	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "path"), path))
			return jstr(b, "parent") ? jstr(b, "parent") : jstr(b, "id");
	return NULL;
}

static bool says_replaced(const json_t *node, const char *id)
{
	const json_t *d;
	size_t i;

	json_array_foreach (jget(node, "status", "agent", "devices"), i, d)
		if (id && streq(jstr(d, "brick"), id))
			return streq(jstr(d, "state"), "Missing") &&
			       streq(jstr(d, "reason"), "Replaced");
	return false;
}

struct on_disk {
	const char *address, *path;
	char *node; /* that says so in the cache */
};

static int find_replaced(const json_t *node, void *userdata)
{
	struct on_disk *q = userdata;

	if (!q->node && says_replaced(node, lies_on(node, q->address, q->path)))
		q->node = xstrdup(object_name(node));
	return 0;
}

bool disk_replaced(struct reconcile *r, struct agent *a, const char *address, const char *path)
{
	struct on_disk q = { .address = address, .path = path };
	cleanup_json json_t *node = NULL;
	cleanup_free char *name = NULL;

	reader_each(r->cache, &KIND_STORAGENODE, a->ns, find_replaced, &q);
	name = q.node;
	return name &&
	       kube_get(r->kube, &KIND_STORAGENODE, a->ns, name, &node, NULL) == 0 &&
	       says_replaced(node, lies_on(node, address, path));
}
