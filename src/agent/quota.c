/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>
#include <stdio.h>

/*
 * Limits of volumes on this node's bricks. The key is a pool: so a burst of new volumes is one
 * pass and one write of status.agent.quota.
 */
#define RETRY_MS 5000 /* a directory that is still to be healed */
#define PACE_MS                                                                                    \
	100 /* between two passes: each reads all volumes, and a burst changes one after the other */
#define SWEEP_MS 60000 /* deleted volumes are purged in the background */
#define ARBITER_BYTES_PER_INODE 4096

struct quota_work {
	struct reconcile *r;
	struct agent *agent;
	const char *pool;
	const json_t *brick; /* status.agent.bricks entry of this node in the pool */
	struct volume_type type;
	bool arbiter;
	json_t *before, *after; /* volume to resourceVersion in force */
	uint64_t newest;
	bool retry;
};

static uint64_t version_of(const json_t *pv)
{
	const char *v = object_version(pv);

	return v ? strtoull(v, NULL, 10) : 0;
}

static bool relative_clean(const char *dir)
{
	cleanup_free char *path = xasprintf("/%s", dir ? dir : "");

	return dir && *dir && *dir != '/' && path_is_clean(path);
}

/* What of a volume's size is for one brick. */
static void share_of(const struct quota_work *w, int64_t size, int64_t *bytes, int64_t *inodes)
{
	*bytes = w->arbiter ? 0 : (size + w->type.data - 1) / w->type.data;
	*inodes = w->arbiter ? (size + ARBITER_BYTES_PER_INODE - 1) / ARBITER_BYTES_PER_INODE : 0;
}

static int limit_volume(struct quota_work *w, const json_t *pv)
{
	struct node_host *h = w->agent->host;
	const char *dir = jstr(pv, "spec", "csi", "volumeAttributes", "name");
	const char *text = jstr(pv, "spec", "capacity", "storage");
	int64_t size, bytes, inodes;
	int rc;

	/* a volume of another kind is a file, which has its size by itself */
	if (!relative_clean(dir) || !str_has_prefix(dir, "subvol/") || !text ||
	    quantity_parse(text, &size, NULL) < 0)
		return 0;
	share_of(w, size, &bytes, &inodes);
	rc = h->ops->quota_set(h, jstr(w->brick, "path"), dir, bytes, inodes, &w->r->error);
	if (rc == -ENOENT) {
		w->r->error = ERROR_INIT;
		w->retry = true;
		return 1;
	}
	return rc;
}

/* A whole volume's limit is on what holds its brick. */
static int limit_whole(struct quota_work *w, int64_t size)
{
	struct node_host *h = w->agent->host;
	cleanup_free char *root = NULL, *holder = NULL;
	const char *path = jstr(w->brick, "path"), *end = strrchr(path, '/');
	int64_t bytes, inodes;

	holder = xstrndup(path, (size_t)(end - path)); /* ROOT/.quartermaster-ID */
	root = xstrndup(holder, (size_t)(strrchr(holder, '/') - holder));
	share_of(w, size, &bytes, &inodes);
	return h->ops->quota_set(h, root, holder + strlen(root) + 1, bytes, inodes, &w->r->error);
}

static int each_volume(const json_t *pv, void *userdata)
{
	struct quota_work *w = userdata;
	uint64_t version = version_of(pv);
	const char *name = object_name(pv);
	int rc = 0;

	if (!streq(object_label(pv, LABEL_POOL), w->pool))
		return 0;
	if (version > w->newest)
		w->newest = version;
	if ((uint64_t)jint(w->before, name) != version)
		rc = limit_volume(w, pv);
	if (rc == 0)
		json_object_set_new(w->after, name, json_integer((json_int_t)version));
	return rc < 0 ? rc : 0;
}

/* ---- status.agent.quota -------------------------------------------------------------------- */
/* A node enforces when all of its bricks do; the first that does not says why. */
static void node_support(struct agent *a, const json_t *node, struct quota_support *ret)
{
	const json_t *b;
	size_t i;

	*ret = (struct quota_support){ .enforced = true };
	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b) {
		if (jbool(b, "mounted") && ret->enforced)
			a->host->ops->quota_support(a->host, jstr(b, "path"), ret);
	}
}

/* version NULL: the pool has no limits in force here. */
static int write_quota(struct reconcile *r, const char *pool, const char *version)
{
	struct agent *a = r->app;
	cleanup_json json_t *node = agent_node(r);
	const json_t *known = jget(node, "status", "agent", "quota");
	struct quota_support support;
	json_t *quota;
	bool numbers;

	if (!node)
		return 0;
	node_support(a, node, &support);
	quota = json_pack("{s:b, s:s, s:s}", "enforced", (int)support.enforced, "reason",
			  support.reason, "message", support.message);
	if (version)
		jset(quota, json_string(version), "pools", pool);
	else if (jget(known, "pools", pool))
		jset(quota, json_null(), "pools", pool);
	if (json_is_object(known) && report_same(quota, known, &numbers)) {
		json_decref(quota);
		return 0;
	}
	return agent_patch_status(r, &KIND_STORAGENODE, node,
				  json_pack("{s:{s:o}}", "agent", "quota", quota));
}

static void sweep(struct quota_work *w)
{
	struct agent_state *s = w->agent->state;
	struct node_host *h = w->agent->host;
	int64_t now = clock_mono_ms(w->r->clock);
	struct error err = ERROR_INIT;
	int rc;

	if (json_object_size(w->before) > 0) {
		const char *name;
		json_t *v;

		json_object_foreach (w->before, name, v)
			if (!json_object_get(w->after, name))
				s->sweep_ms = now + SWEEP_MS;
	}
	if (s->sweep_ms == 0)
		return;
	if (now >= s->sweep_ms) {
		rc = h->ops->quota_sweep(h, jstr(w->brick, "path"), &err);
		if (rc < 0)
			log_warn("%s", error_text(&err, rc));
		s->sweep_ms = 0;
	} else {
		w->r->again_ms = (int)(s->sweep_ms - now);
	}
}

/* ---- the loop ------------------------------------------------------------------------------ */
static const json_t *local_brick(const json_t *node, const char *pool)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "pool"), pool) && jbool(b, "mounted"))
			return b;
	return NULL;
}

static bool brick_is_arbiter(const json_t *pool, const char *id)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			return jbool(b, "arbiter");
	return false;
}

/* 0: in force, or cannot be. Of a whole volume nothing is written down: what is in force is what its spec says. */
static int apply_whole(struct quota_work *w, const json_t *pool)
{
	struct agent_state *s = w->agent->state;
	struct quota_support support = { 0 };
	int64_t size = jint(pool, "spec", "sizeBytes");
	const json_t *known = json_object_get(s->limits, w->pool);
	int rc;

	w->agent->host->ops->quota_support(w->agent->host, jstr(w->brick, "path"), &support);
	/* another of the same name begins anew */
	if (!support.enforced ||
	    (jint(known, "size") == size && streq(jstr(known, "uid"), object_uid(pool))))
		return 0;
	rc = limit_whole(w, size);
	if (rc == 0)
		json_object_set_new(
			s->limits, w->pool,
			json_pack("{s:I, s:s}", "size", (json_int_t)size, "uid", object_uid(pool)));
	return rc;
}

static int apply_limits(struct quota_work *w)
{
	struct agent_state *s = w->agent->state;
	struct quota_support support = { 0 };
	char version[32];
	int rc;

	w->agent->host->ops->quota_support(w->agent->host, jstr(w->brick, "path"), &support);
	if (!support.enforced)
		return write_quota(w->r, w->pool, NULL);
	w->before = json_object_get(s->limits, w->pool);
	w->after = json_object();
	rc = reader_each(w->r->cache, &KIND_PV, NULL, each_volume, w);
	if (rc == 0)
		sweep(w);
	if (rc < 0) {
		json_decref(w->after);
		return rc;
	}
	json_object_set_new(s->limits, w->pool, w->after);
	if (w->retry && (w->r->again_ms == 0 || w->r->again_ms > RETRY_MS))
		w->r->again_ms = RETRY_MS;
	snprintf(version, sizeof(version), "%llu", (unsigned long long)w->newest);
	return write_quota(w->r, w->pool, version);
}

static bool too_soon(struct reconcile *r, const char *pool)
{
	struct agent *a = r->app;
	const json_t *last = json_object_get(a->state->quota_ms, pool);
	int64_t now = clock_mono_ms(r->clock), next = json_integer_value(last) + PACE_MS;

	if (last && now < next) {
		r->again_ms = (int)(next - now);
		return true;
	}
	json_object_set_new(a->state->quota_ms, pool, json_integer(now));
	return false;
}

static int quota_reconcile(struct reconcile *r, const char *key)
{
	struct agent *a = r->app;

	if (too_soon(r, key))
		return 0;
	cleanup_json json_t *node = agent_node(r),
			    *pool = reader_get(r->cache, &KIND_STORAGEPOOL, a->ns, key);
	struct quota_work w = { .r = r, .agent = a, .pool = key, .brick = local_brick(node, key) };
	const char *type = jstr(pool, "spec", "volumeType");

	if (!node)
		return 0;
	if (!w.brick || !type || volume_type_parse(type, &w.type, NULL) < 0)
		return jget(node, "status", "agent", "quota", "pools", key)
			       ? write_quota(r, key, NULL)
			       : 0;
	w.arbiter = brick_is_arbiter(pool, jstr(w.brick, "id"));
	if (jstr(pool, "spec", "parent"))
		return apply_whole(&w, pool);
	return apply_limits(&w);
}

static void volume_keys(const json_t *pv, struct reconcile *r, struct strv *keys)
{
	const char *pool = object_label(pv, LABEL_POOL);

	if (pool)
		strv_add(keys, pool);
}

static void pool_keys(const json_t *pool, struct reconcile *r, struct strv *keys)
{
	strv_add(keys, object_name(pool));
}

static const struct controller_watch quota_watches[] = {
	{ .kind = &KIND_PV, .follows = true, .keys = volume_keys },
	{ .kind = &KIND_STORAGEPOOL, .follows = true, .keys = pool_keys },
	{ 0 },
};

const struct controller AGENT_QUOTA = {
	.name = "quota",
	.watches = quota_watches,
	.workers = 1,
	.reconcile = quota_reconcile,
};
