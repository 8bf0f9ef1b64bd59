/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/op.h"

#include <errno.h>

bool pool_is_ours(const struct operator* op, const json_t *pool)
{
	return streq(object_label(pool, QM_LABEL_DEPLOYMENT), op->deployment) &&
	       streq(object_namespace(pool), op->ns);
}

const char *pool_parent(const json_t *pool)
{
	const char *parent = jstr(pool, "spec", "parent");

	return parent && *parent ? parent : NULL;
}

bool pool_serves(const json_t *pool)
{
	const char *phase = jstr(pool, "status", "phase");
	return streq(phase, "Online") || streq(phase, "Degraded") || streq(phase, "Healing");
}

int64_t pool_limit(const struct operator* op, const json_t *pool)
{
	double limit = (double)jint(pool, "status", "capacityBytes") * op->overcommit;

	return limit < 0x1p62 ? (int64_t)limit : INT64_MAX / 2;
}

int64_t pool_limit_of(const struct operator* op, const json_t *pool, enum volume_kind kind)
{
	return kind == VOLUME_WHOLE ? jint(pool, "status", "capacityBytes") : pool_limit(op, pool);
}

int pool_check_alone(const struct operator* op, const json_t *pool, const char *volume,
		     struct error *err)
{
	cleanup_json json_t *volumes = NULL, *snapshots = NULL;
	struct workers *w = op->workers;
	struct pool_access access;
	size_t i;
	json_t *o;

	pool_access(pool, &access);
	int rc = w->ops->list(w, &access.pool, &volumes, err);
	if (rc == 0)
		rc = w->ops->snapshots(w, &access.pool, &snapshots, err);
	if (rc < 0)
		return rc;
	json_array_extend(volumes, snapshots);
	json_array_foreach (volumes, i, o)
		if (!streq(jstr(o, "name"), volume))
			return error_set(err, EBUSY,
					 "%s lies in pool %s (retained or archived), which a whole "
					 "volume would have for itself; remove it",
					 jstr(o, "name"), object_name(pool));
	return 0;
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

	if (!pool_is_ours(o->op, pool) || pool_parent(pool) || object_deleting(pool) ||
	    !pool_serves(pool) || jint(pool, "status", "capacityBytes") <= 0 ||
	    (o->only && !streq(o->only, object_name(pool))))
		return 0;
	o->items = xrealloc(o->items, (o->count + 1) * sizeof(*o->items));
	o->items[o->count++].limit = pool_limit_of(o->op, pool, o->kind);
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

void pool_room(struct reconcile *r, const char *only, enum volume_kind kind, int64_t *ret_left,
	       int64_t *ret_biggest)
{
	struct pool_offers offers = { .kind = kind };
	int64_t sum = 0, biggest = 0;

	pool_offers(r, only, &offers);
	for (size_t i = 0; i < offers.count; i++) {
		int64_t left =
			ledger_left(op_of(r)->ledger, &offers.items[i], kind == VOLUME_WHOLE);
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
