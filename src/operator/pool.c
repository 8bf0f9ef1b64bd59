/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/op.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>

bool pool_is_ours(const struct operator* op, const json_t *pool)
{
	return streq(object_label(pool, QM_LABEL_DEPLOYMENT), op->deployment) &&
	       streq(object_namespace(pool), op->ns);
}

bool pool_name_is_ours(const struct operator* op, const char *name)
{
	size_t len = strlen(op->deployment);

	return strncmp(name, op->deployment, len) == 0 && name[len] == '-' && name[len + 1] &&
	       strspn(name + len + 1, "0123456789") == strlen(name + len + 1);
}

const char *pool_parent(const json_t *pool)
{
	const char *parent = jstr(pool, "spec", "parent");

	return parent && *parent ? parent : NULL;
}

bool pool_takes_volumes(const struct operator* op, const json_t *pool)
{
	return pool_is_ours(op, pool) && !pool_parent(pool);
}

bool pool_serves(const json_t *pool)
{
	const char *phase = jstr(pool, "status", "phase");
	return streq(phase, "Online") || streq(phase, "Degraded") || streq(phase, "Healing");
}

int pool_quorum(const struct operator* op, const json_t *pool)
{
	struct volume_type type = { .bricks = 1 };
	const char *text = jstr(pool, "spec", "volumeType");

	volume_type_parse(text ? text : op->volume_type, &type, NULL);
	return type.layout == LAYOUT_DISPERSE ? type.data : type.bricks / 2 + 1;
}

bool pool_answers(struct reconcile *r, const json_t *pool)
{
	struct operator* op = op_of(r);
	int heard = 0, silent = 0;
	size_t i;
	json_t *b;

	if (!pool_serves(pool))
		return false;
	json_array_foreach (jget(pool, "spec", "bricks"), i, b) {
		const char *name = jstr(b, "node");
		cleanup_json json_t *node =
			name ? reader_get(r->cache, &KIND_STORAGENODE, op->ns, name) : NULL;
		bool offline = streq(jstr(node, "status", "phase"), "Offline");

		/* one that is not in the cache (yet) is no reason to doubt the pool's word */
		silent += offline;
		heard += !offline;
	}
	return !silent || heard >= pool_quorum(op, pool);
}

char *pool_silence(const json_t *pool)
{
	return xasprintf("pool %s does not serve now; see: quartermaster status",
			 object_name(pool));
}

int64_t pool_limit(const struct operator* op, const json_t *pool)
{
	double limit = (double)jint(pool, "status", "capacityBytes") * op->overcommit;

	return limit < 0x1p62 ? (int64_t)limit : INT64_MAX / 2;
}

static bool brick_online(const json_t *pool, const char *id)
{
	size_t i;
	json_t *b;
	json_array_foreach (jget(pool, "status", "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			return jbool(b, "online");
	return false;
}

static void add_host(struct pool_access *a, const char *host)
{
	size_t n = 0;
	while (a->hosts[n] && !streq(a->hosts[n], host))
		n++;
	if (n < POOL_HOSTS_MAX)
		a->hosts[n] = host;
}

void pool_access(const json_t *pool, struct pool_access *ret)
{
	size_t i;
	json_t *b;

	*ret = (struct pool_access){ .pool.name = object_name(pool) };
	for (int online = 1; online >= 0; online--)
		json_array_foreach (jget(pool, "spec", "bricks"), i, b)
			if (jstr(b, "address") && brick_online(pool, jstr(b, "id")) == online)
				add_host(ret, jstr(b, "address"));
	ret->pool.hosts = ret->hosts;
}

static int add_offer(const json_t *pool, void *userdata)
{
	struct pool_offers *o = userdata;

	if (!pool_takes_volumes(o->op, pool) || object_deleting(pool) || !pool_serves(pool) ||
	    jint(pool, "status", "capacityBytes") <= 0 ||
	    (o->only && !streq(o->only, object_name(pool))))
		return 0;
	o->items = xrealloc(o->items, (o->count + 1) * sizeof(*o->items));
	o->items[o->count++].limit = pool_limit(o->op, pool);
	strv_add(&o->names, object_name(pool));
	return 0;
}

void pool_offers(struct reconcile *r, const char *only, struct pool_offers *ret)
{
	ret->op = op_of(r);
	ret->only = only;
	reader_each(r->cache, &KIND_STORAGEPOOL, ret->op->ns, add_offer, ret);
	for (size_t i = 0; i < ret->count; i++)
		ret->items[i].pool = ret->names.items[i];
}

bool pool_offers_drop(struct pool_offers *o, const char *pool)
{
	for (size_t i = 0; i < o->count; i++)
		if (streq(o->items[i].pool, pool)) {
			o->items[i] = o->items[--o->count];
			return true;
		}
	return false;
}

void pool_room(struct reconcile *r, const char *only, int64_t *ret_left, int64_t *ret_biggest)
{
	struct pool_offers offers = { 0 };
	int64_t sum = 0, biggest = 0;

	pool_offers(r, only, &offers);
	for (size_t i = 0; i < offers.count; i++) {
		int64_t left = ledger_left(op_of(r)->ledger, &offers.items[i]);
		biggest = left > biggest ? left : biggest;
		sum = left > INT64_MAX - sum ? INT64_MAX : sum + left;
	}
	pool_offers_done(&offers);
	*ret_left = sum;
	*ret_biggest = biggest;
}

void pool_offers_done(struct pool_offers *o)
{
	free(o->items);
	strv_done(&o->names);
	*o = (struct pool_offers){ 0 };
}
