/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/parts.h"

#include "base/mem.h"
#include "kube/kube.h"
#include "systems/glusterfs/plan.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct part_item {
	char *value; /* NULL: taken */
	uint32_t len;
	uint32_t parent; /* whose part it is in: its own index, or a smaller one */
	bool pool;
	int urgency; /* after parts_join, of the first of a part: the highest in it */
};

/* Something that connects: two that hash to the same are planned together, which is never wrong. */
struct part_key {
	uint64_t hash;
	uint32_t item;
};

void parts_init(struct parts *p, const char *deployment)
{
	*p = (struct parts){ .deployment = deployment };
	compact_init(&p->compact);
}

void parts_done(struct parts *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->items[i].value);
	free(p->items);
	free(p->keys);
	compact_done(&p->compact);
}

/* ---- what connects -------------------------------------------------------------------------- */

enum connection { BY_NODE, BY_CLUSTER, BY_ADDRESS, BY_MACHINE, BY_BRICK };

static void connect(struct parts *p, enum connection how, const char *by)
{
	if (!by || !*by)
		return;
	if (p->key_count == p->key_cap) {
		p->key_cap = p->key_cap ? 2 * p->key_cap : 256;
		p->keys = xrealloc(p->keys, p->key_cap * sizeof(*p->keys));
	}
	p->keys[p->key_count++] =
		(struct part_key){ XXH64(by, strlen(by), (XXH64_hash_t)how), (uint32_t)p->count };
}

static void connect_bricks(struct parts *p, const json_t *bricks)
{
	const json_t *b;
	size_t i;

	json_array_foreach (bricks, i, b) {
		connect(p, BY_BRICK, json_is_string(b) ? json_string_value(b) : jstr(b, "id"));
		connect(p, BY_NODE, jstr(b, "node"));
		connect(p, BY_ADDRESS, jstr(b, "address"));
	}
}

static void connect_sources(struct parts *p, const json_t *node, const json_t *sources)
{
	const char *uid = object_uid(node);
	const json_t *name;
	size_t i;

	json_array_foreach (sources, i, name) {
		char id[16];

		brick_id(uid ? uid : object_name(node), json_string_value(name), id);
		connect(p, BY_BRICK, id);
	}
}

static void connect_node(struct parts *p, const json_t *node)
{
	const char *cluster = jstr(node, "spec", "glusterfs", "cluster");
	const json_t *status = jget(node, "status"), *ip;
	size_t i;

	connect(p, BY_NODE, object_name(node));
	connect(p, BY_CLUSTER, cluster ? cluster : p->deployment);
	connect(p, BY_CLUSTER, jstr(status, "plan", "cluster"));
	json_array_foreach (jget(node, "spec", "storageNetwork", "ips"), i, ip)
		connect(p, BY_ADDRESS, json_string_value(ip));
	connect(p, BY_ADDRESS, jstr(status, "address"));
	connect(p, BY_MACHINE, jstr(status, "agent", "bootId"));
	connect_sources(p, node, jget(node, "spec", "devices"));
	connect_sources(p, node, jget(node, "spec", "directories"));
	connect_bricks(p, jget(status, "plan", "bricks"));
	connect_bricks(p, jget(status, "plan", "release"));
	connect_bricks(p, jget(status, "agent", "bricks"));
}

static void connect_pool(struct parts *p, const json_t *pool)
{
	const char *cluster = jstr(pool, "spec", "cluster");

	connect(p, BY_CLUSTER, cluster ? cluster : p->deployment);
	connect_bricks(p, jget(pool, "spec", "bricks"));
	connect_bricks(p, jget(pool, "status", "bricks"));
}

/* ---- keeping -------------------------------------------------------------------------------- */

static void add(struct parts *p, const json_t *object, bool pool, int urgency)
{
	cleanup_with(buf_done) struct buf value = { 0 };
	struct part_item *i;

	if (p->count == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->items = xrealloc(p->items, p->cap * sizeof(*p->items));
	}
	compact_write(&p->compact, object, &value);
	i = &p->items[p->count];
	*i = (struct part_item){ .len = (uint32_t)value.len,
				 .parent = (uint32_t)p->count,
				 .pool = pool,
				 .urgency = urgency };
	i->value = xmalloc(value.len + 1);
	memcpy(i->value, value.data, value.len);
	p->count++;
}

void parts_add_node(struct parts *p, const json_t *node, int urgency)
{
	connect_node(p, node);
	add(p, node, false, urgency);
}

void parts_add_pool(struct parts *p, const json_t *pool, int urgency)
{
	connect_pool(p, pool);
	add(p, pool, true, urgency);
}

size_t parts_of(const struct parts *p, size_t item)
{
	while (p->items[item].parent != item)
		item = p->items[item].parent;
	return item;
}

static int by_hash(const void *a, const void *b)
{
	const struct part_key *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

void parts_join(struct parts *p)
{
	if (p->key_count)
		qsort(p->keys, p->key_count, sizeof(*p->keys), by_hash);
	for (size_t i = 1; i < p->key_count; i++) {
		if (p->keys[i].hash != p->keys[i - 1].hash)
			continue;
		size_t a = parts_of(p, p->keys[i].item), b = parts_of(p, p->keys[i - 1].item);

		p->items[a > b ? a : b].parent = (uint32_t)(a > b ? b : a);
	}
	free(p->keys);
	p->keys = NULL;
	p->key_count = p->key_cap = 0;
	for (size_t i = 0; i < p->count; i++) {
		p->items[i].parent = (uint32_t)parts_of(p, i);
		if (p->items[i].urgency > p->items[p->items[i].parent].urgency)
			p->items[p->items[i].parent].urgency = p->items[i].urgency;
	}
}

bool parts_is_pool(const struct parts *p, size_t item)
{
	return p->items[item].pool;
}

int parts_urgency(const struct parts *p, size_t part)
{
	return p->items[part].urgency;
}

json_t *parts_take(struct parts *p, size_t item)
{
	struct part_item *i = &p->items[item];
	json_t *object = compact_read(&p->compact, i->value, i->len);

	free(i->value);
	i->value = NULL;
	return object;
}
