/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NS "default"
#define F(k) ((struct fixture *)((char *)(k)-offsetof(struct fixture, kube)))

static void must(int rc, const struct error *err)
{
	if (rc < 0)
		fail_msg("%s", error_text(err, rc));
}

/* ---- a client that fails once ------------------------------------------------------------------ */

/* > 0: this write is to fail after it took effect; < 0: instead of it. */
static int fault(struct fixture *f)
{
	f->now_ms += f->write_ms;
	if (f->dead)
		return -1;
	if (++f->writes != f->fail_at)
		return 0;
	f->failed = true;
	f->dead = f->dies;
	return f->fail_after ? 1 : -1;
}

static int lost(const struct fixture *f, struct error *err)
{
	return error_set(err, f->dead ? ETIMEDOUT : EAGAIN, "the connection was lost");
}

static bool is_refused(struct fixture *f, const char *name)
{
	return f->refused && streq(f->refused, name);
}

static int refuse(struct error *err)
{
	return error_set(err, EINVAL, "it is refused as it is");
}

#define WRITE(f, err, call)                                                                        \
	do {                                                                                       \
		int fault_ = fault(f);                                                             \
		if (fault_ < 0)                                                                    \
			return lost(f, err);                                                       \
		int rc_ = (call);                                                                  \
		return fault_ ? lost(f, err) : rc_;                                                \
	} while (0)

static int f_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		 json_t **ret, struct error *err)
{
	return kube_get(F(k)->api, kind, ns, name, ret, err);
}

static int f_list(struct kube *k, const struct kind *kind, const char *ns,
		  const struct kube_selector *sel, json_t **ret, char **ret_version,
		  struct error *err)
{
	F(k)->node_lists += kind == &KIND_STORAGENODE;
	int rc = kube_list(F(k)->api, kind, ns, sel, ret, ret_version, err);
	if (F(k)->on_list)
		F(k)->on_list(F(k), kind);
	return rc;
}

static int f_create(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		    struct error *err)
{
	if (kind == &KIND_EVENT) {
		strv_add_take(&F(k)->events,
			      xasprintf("%s: %s", jstr(object, "reason"), jstr(object, "message")));
		return 0;
	}
	if (is_refused(F(k), object_name(object)))
		return refuse(err);
	if (F(k)->on_create)
		F(k)->on_create(F(k), kind, object);
	WRITE(F(k), err, kube_create(F(k)->api, kind, object, fault_ ? NULL : ret, err));
}

static int f_update(struct kube *k, const struct kind *kind, const char *subresource,
		    const json_t *object, json_t **ret, struct error *err)
{
	WRITE(F(k), err,
	      F(k)->api->ops->update(F(k)->api, kind, subresource, object, fault_ ? NULL : ret,
				     err));
}

static int f_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		   const char *subresource, enum kube_patch type, const json_t *p, json_t **ret,
		   struct error *err)
{
	if (is_refused(F(k), name))
		return refuse(err);
	WRITE(F(k), err,
	      kube_patch(F(k)->api, kind, ns, name, subresource, type, p, fault_ ? NULL : ret,
			 err));
}

static int f_remove(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		    const struct kube_delete_options *options, struct error *err)
{
	WRITE(F(k), err, kube_delete(F(k)->api, kind, ns, name, options, err));
}

static const struct kube_ops faulty_ops = {
	.get = f_get,
	.list = f_list,
	.create = f_create,
	.update = f_update,
	.patch = f_patch,
	.remove = f_remove,
};

/* ---- the cache: stale only where a test says so, the rest is the simulation's business ----------- */

static struct fixture *of_reader(struct reader *r)
{
	return (struct fixture *)((char *)r - offsetof(struct fixture, reader));
}

static struct kube *api_of(struct reader *r)
{
	return of_reader(r)->api;
}

static json_t *read_get(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	json_t *o = NULL, *stale = of_reader(r)->stale;
	if (streq(of_reader(r)->unseen, name))
		return NULL;
	if (kind == &KIND_VOLUMESNAPSHOTCONTENT && stale && streq(object_name(stale), name))
		return json_deep_copy(stale);
	if (kube_get(api_of(r), kind, kind->namespaced ? ns : NULL, name, &o, NULL) < 0)
		return NULL;
	operator_project(kind, o);
	return o;
}

static int read_each(struct reader *r, const struct kind *kind, const char *ns,
		     int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *o;
	int rc = 0;
	if (kind == &KIND_STORAGENODE && of_reader(r)->stale_nodes)
		all = json_deep_copy(of_reader(r)->stale_nodes);
	else
		kube_list(api_of(r), kind, ns, NULL, &all, NULL, NULL);
	json_array_foreach (all, i, o) {
		operator_project(kind, o);
		if (rc == 0)
			rc = fn(o, userdata);
	}
	return rc;
}

static int read_each_marked(struct reader *r, const struct kind *kind, const char *ns,
			    int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *o;
	int rc = 0;
	kube_list(api_of(r), kind, ns, NULL, &all, NULL, NULL);
	json_array_foreach (all, i, o) {
		operator_project(kind, o);
		if (rc == 0 && operator_mark(kind, o))
			rc = fn(o, userdata);
	}
	return rc;
}

static void read_learned(struct reader *r, const struct kind *kind, const json_t *object)
{
}

static const struct reader_ops reader_ops = { read_get, read_each, read_each_marked, read_learned };

/* ---- workers and platform ------------------------------------------------------------------------ */

static struct fixture *of_workers(struct workers *w)
{
	return (struct fixture *)((char *)w - offsetof(struct fixture, workers));
}

static int worker_fault(struct fixture *f, struct error *err)
{
	f->worker_calls++;
	if (f->worker_rc < 0)
		return error_set(err, -f->worker_rc, "the pool does not answer");
	return fault(f) < 0 ? lost(f, err) : 0;
}

/* Directories stand under their names, others with the letter of their kind before it. */
static char *volume_key(const struct worker_volume *v)
{
	return v->kind == VOLUME_DIRECTORY ? xstrdup(v->name)
					   : xasprintf("%c.%s", (char)v->kind, v->name);
}

static bool is_anothers(const struct fixture *f, const struct worker_volume *v, const char *key)
{
	const char *owner = jstr(f->owners, key);

	return v->owner && owner && !streq(v->owner, owner);
}

static int w_create(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *v, int64_t size, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v);
	if (f->make_rc < 0)
		return error_set(err, -f->make_rc, "it cannot be made");
	if (is_anothers(f, v, key))
		return error_set(err, ESTALE, "volume %s is another's", v->name);
	int rc = worker_fault(f, err);
	if (rc == 0 && v->owner)
		json_object_set_new(f->owners, key, json_string(v->owner));
	if (rc == 0 && jint(f->volumes, pool->name, key) < size)
		jset(f->volumes, json_integer(size), pool->name, key);
	return rc;
}

/* Without its info file until it is completed. */
static int w_make(struct workers *w, const struct worker_pool *pool, const struct worker_volume *v,
		  struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v);
	bool there = jget(f->volumes, pool->name, key);
	int rc = w_create(w, pool, v, 1, err);
	if (jget(f->volumes, pool->name, key) && !there)
		json_object_set_new(f->halves, key, json_true());
	return rc;
}

static int w_complete(struct workers *w, const struct worker_pool *pool,
		      const struct worker_volume *v, int64_t size, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v);
	if (!jget(f->volumes, pool->name, key))
		return error_set(err, ENOENT, "there is no volume %s", v->name);
	int rc = w_create(w, pool, v, size, err);
	if (rc == 0)
		json_object_del(f->halves, key);
	return rc;
}

static int w_resize(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *v, int64_t size, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v);
	if (!jget(f->volumes, pool->name, key))
		return error_set(err, ENOENT, "there is no volume %s", v->name);
	f->resized++;
	return w_create(w, pool, v, size, err);
}

static int w_remove(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *v, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v);
	if (f->on_remove)
		f->on_remove(f, v->name);
	if (is_anothers(f, v, key))
		return 0;
	int rc = worker_fault(f, err);
	if (rc == 0) {
		json_object_del(jget(f->volumes, pool->name), key);
		json_object_del(f->owners, key);
		json_object_del(f->copies, key);
		json_object_del(f->data, key);
		json_object_del(f->halves, key);
	}
	return rc;
}

static int w_archive(struct workers *w, const struct worker_pool *pool,
		     const struct worker_volume *v, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v), *to = xasprintf("archived-%s", key);
	int rc = worker_fault(f, err);
	if (rc == 0 && jget(f->volumes, pool->name, key)) {
		json_object_del(jget(f->volumes, pool->name), key);
		jset(f->volumes, json_integer(1), pool->name, to);
	}
	return rc;
}

static json_t *described(const char *key, json_t *size)
{
	bool lettered = key[0] && key[1] == '.';
	char kind[2] = { lettered ? key[0] : 'd', 0 };
	return json_pack("{s:s, s:s, s:O, s:b}", "name", lettered ? key + 2 : key, "kind", kind,
			 "size", size, "ready", 1);
}

static int w_find(struct workers *w, const struct worker_pool *pool, const struct worker_volume *v,
		  json_t **ret, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *key = volume_key(v);
	json_t *size = jget(f->volumes, pool->name, key);
	int rc = worker_fault(f, err);
	if (rc == 0 && v->kind == VOLUME_SNAPSHOT && jget(f->snapshots, pool->name, v->name)) {
		*ret = json_incref(jget(f->snapshots, pool->name, v->name));
		return 0;
	}
	if (rc == 0 && !size)
		return error_set(err, ENOENT, "there is no volume %s", v->name);
	if (rc == 0)
		*ret = described(key, size);
	if (rc == 0 && jget(f->owners, key))
		json_object_set(*ret, "owner", jget(f->owners, key));
	return rc;
}

static int w_list(struct workers *w, const struct worker_pool *pool, json_t **ret,
		  struct error *err)
{
	struct fixture *f = of_workers(w);
	const char *key;
	json_t *size;
	int rc = worker_fault(f, err);
	if (rc < 0)
		return rc;
	*ret = json_array();
	json_object_foreach (jget(f->volumes, pool->name), key, size)
		if (!str_has_prefix(key, "s.") && !jget(f->halves, key))
			json_array_append_new(*ret, described(key, size));
	return 0;
}

/* Complete at the call after f->copy_calls that found it under way; what is in the source is what it held then. */
static int w_copy(struct workers *w, const struct worker_pool *pool, const struct worker_volume *v,
		  int64_t size, const struct worker_volume *from, struct error *err)
{
	struct fixture *f = of_workers(w);
	cleanup_free char *source = volume_key(from), *key = volume_key(v);
	int64_t calls = jint(f->copies, key);
	int rc;
	if (is_anothers(f, v, key))
		return error_set(err, ESTALE, "volume %s is another's", v->name);
	if (jget(f->volumes, pool->name, key) && !jget(f->copies, key))
		return 0; /* complete */
	if (!jget(f->volumes, pool->name, source) || jget(f->copies, source))
		return error_set(err, ENOENT, "there is no volume %s", from->name);
	if (jget(f->halves, source))
		return error_set(err, EAGAIN, "volume %s is not complete yet", from->name);
	if (f->copying > 0) {
		f->copying--;
		return 1;
	}
	rc = w_create(w, pool, v, size, err);
	if (rc < 0)
		return rc;
	if (calls < f->copy_calls) {
		json_object_set_new(f->copies, key, json_integer(calls + 1));
		f->under_way = true;
		return 1;
	}
	json_object_del(f->copies, key);
	if (jget(f->data, source))
		json_object_set(f->data, key, jget(f->data, source));
	return 0;
}

static int w_snapshot(struct workers *w, const struct worker_pool *pool,
		      const struct worker_volume *from, const struct worker_volume *snapshot,
		      json_t **ret, struct error *err)
{
	struct fixture *f = of_workers(w);
	struct worker_volume v = { VOLUME_SNAPSHOT, snapshot->name, snapshot->owner };
	cleanup_free char *source = volume_key(from), *key = volume_key(&v);
	int64_t size = jint(f->volumes, pool->name, source);
	int rc = w_copy(w, pool, &v, size, from, err);
	char kind[2] = { (char)from->kind, 0 };
	if (rc >= 0)
		*ret = json_pack("{s:s, s:s, s:s, s:I, s:s, s:b, s:s*}", "name", v.name, "source",
				 from->name, "kind", kind, "size", (json_int_t)size, "created",
				 "2026-01-01T00:00:00Z", "ready", rc == 0, "owner",
				 jstr(f->owners, key));
	if (rc >= 0)
		jset(f->snapshots, json_incref(*ret), pool->name, v.name);
	return rc;
}

static int w_snapshot_remove(struct workers *w, const struct worker_pool *pool,
			     const struct worker_volume *snapshot, struct error *err)
{
	struct fixture *f = of_workers(w);
	struct worker_volume v = { VOLUME_SNAPSHOT, snapshot->name, snapshot->owner };
	cleanup_free char *key = volume_key(&v);
	int rc = w_remove(w, pool, &v, err);
	if (!jget(f->volumes, pool->name, key))
		json_object_del(jget(f->snapshots, pool->name), v.name);
	return rc;
}

static int w_snapshots(struct workers *w, const struct worker_pool *pool, json_t **ret,
		       struct error *err)
{
	struct fixture *f = of_workers(w);
	const char *name;
	json_t *said;
	f->snapshot_lists++;
	*ret = json_array();
	json_object_foreach (jget(f->snapshots, pool->name), name, said)
		json_array_append(*ret, said);
	return 0;
}

static const struct worker_ops worker_ops = { .create = w_create,
					      .make = w_make,
					      .complete = w_complete,
					      .resize = w_resize,
					      .remove = w_remove,
					      .archive = w_archive,
					      .find = w_find,
					      .copy = w_copy,
					      .snapshot = w_snapshot,
					      .snapshot_remove = w_snapshot_remove,
					      .snapshots = w_snapshots,
					      .list = w_list };

static struct fixture *of_platform(struct platform *p)
{
	return (struct fixture *)((char *)p - offsetof(struct fixture, platform));
}

static int p_machine(struct platform *p, const json_t *node, char **ret, struct error *err)
{
	if (jstr(node, "spec", "nodeSelector", "none"))
		return error_set(err, ENOENT, "no machine has these labels");
	*ret = xstrdup(object_name(node));
	return 0;
}

static int p_ensure(struct platform *p, const json_t *node, bool may_roll, struct error *err)
{
	assert_non_null(jstr(node, "status", "nodeName"));
	json_object_set_new(of_platform(p)->agents, object_name(node), json_true());
	of_platform(p)->interruptible += may_roll;
	return 0;
}

static int p_remove(struct platform *p, const json_t *node, struct error *err)
{
	json_object_del(of_platform(p)->agents, object_name(node));
	return 0;
}

static int p_pools(struct platform *p, const json_t *pools, struct error *err)
{
	json_decref(of_platform(p)->told);
	of_platform(p)->told = json_incref((json_t *)pools);
	return 0;
}

static int p_users(struct platform *p, const json_t *pv, char **ret, struct error *err)
{
	if (of_platform(p)->users_rc < 0)
		return error_set(err, -of_platform(p)->users_rc, "a record is damaged");
	if (of_platform(p)->users)
		*ret = xstrdup(of_platform(p)->users);
	return of_platform(p)->users != NULL;
}

static const struct platform_ops platform_ops = { .pools = p_pools,
						  .machine = p_machine,
						  .agent_ensure = p_ensure,
						  .agent_remove = p_remove,
						  .users = p_users };

/* ---- agents -------------------------------------------------------------------------------------- */

static json_t *report_devices(const json_t *node)
{
	json_t *list = json_array(), *d;
	size_t i;
	json_array_foreach (jget(node, "spec", "devices"), i, d)
		json_array_append_new(list,
				      json_pack("{s:O, s:s, s:I}", "device", d, "state",
						"Available", "sizeBytes", (json_int_t)(10 * GIB)));
	return list;
}

static json_t *report_bricks(const json_t *node)
{
	json_t *list = json_array(), *b;
	size_t i;
	json_array_foreach (jget(node, "status", "plan", "bricks"), i, b)
		json_array_append_new(list,
				      json_pack("{s:O, s:O, s:b, s:b}", "id", jget(b, "id"), "pool",
						jget(b, "pool"), "mounted", 1, "online", 1));
	return list;
}

static void act_node(struct fixture *f, const json_t *node)
{
	char now[TIME_TEXT_MAX];
	cleanup_json json_t *report =
		json_pack("{s:{s:{s:s, s:{s:b}, s:o, s:o}}}", "status", "agent", "heartbeat",
			  time_text(f->now_ms, now), "glusterd", "running", 1, "devices",
			  report_devices(node), "bricks", report_bricks(node));
	if (jget(f->agents, object_name(node)) && !f->agents_silent)
		kube_patch(f->api, &KIND_STORAGENODE, NS, object_name(node), "status",
			   KUBE_PATCH_MERGE, report, NULL, NULL);
}

static void act_pool(struct fixture *f, const json_t *pool)
{
	json_t *bricks = json_array(), *b;
	size_t i;
	bool prepared = true,
	     gone = object_deleting(pool) && object_annotation(pool, QM_ANNOTATION_EMPTY);

	json_array_foreach (jget(pool, "spec", "bricks"), i, b) {
		prepared = prepared && jbool(b, "prepared");
		if (!gone)
			json_array_append_new(
				bricks, json_pack("{s:O, s:b}", "id", jget(b, "id"), "online", 1));
	}
	cleanup_json json_t *status =
		json_pack("{s:{s:s, s:s, s:o, s:I, s:i, s:I, s:I}}", "status", "phase",
			  gone	     ? "Deleted"
			  : prepared ? "Online"
				     : "Creating",
			  "volumeId", "v", "bricks", bricks, "observedGeneration",
			  (json_int_t)jint(pool, "metadata", "generation"), "healPending", 0,
			  "capacityBytes", (json_int_t)f->pool_bytes, "usedBytes", (json_int_t)0);
	if (!f->agents_silent && (prepared || gone))
		kube_patch(f->api, &KIND_STORAGEPOOL, NS, object_name(pool), "status",
			   KUBE_PATCH_MERGE, status, NULL, NULL);
}

void agents_act(struct fixture *f)
{
	cleanup_json json_t *nodes = NULL, *pools = NULL;
	size_t i;
	json_t *o;
	kube_list(f->api, &KIND_STORAGENODE, NS, NULL, &nodes, NULL, NULL);
	kube_list(f->api, &KIND_STORAGEPOOL, NS, NULL, &pools, NULL, NULL);
	json_array_foreach (nodes, i, o)
		act_node(f, o);
	json_array_foreach (pools, i, o)
		act_pool(f, o);
}

/* ---- the operator --------------------------------------------------------------------------------- */

static bool leads(void *userdata, int64_t *ret_epoch)
{
	struct fixture *f = userdata;
	*ret_epoch = f->epoch;
	return f->leads;
}

static void enqueue(struct reconcile *r, const char *controller, const char *key, int delay_ms)
{
}

static void reconcile(struct fixture *f, const struct controller *c, const char *key)
{
	bool failed = f->failed;
	f->r.error = ERROR_INIT;
	f->r.again_ms = 0;
	c->reconcile(&f->r, key);
	if (f->failed && !failed)
		fixture_restart(f); /* the write's outcome is unknown, and so is everything else */
}

/* All that are there, and those that were. */
static void reconcile_all(struct fixture *f, const struct controller *c, const struct kind *kind)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *o;
	kube_list(f->api, kind, NULL, NULL, &all, NULL, NULL);
	json_array_foreach (all, i, o) {
		cleanup_free char *key = object_key(o);
		if (!strv_contains(&f->seen, key))
			strv_add(&f->seen, key);
	}
	for (i = 0; i < f->seen.count; i++)
		if ((strchr(f->seen.items[i], '/') != NULL) == kind->namespaced)
			reconcile(f, c, f->seen.items[i]);
}

int look(struct fixture *f)
{
	cleanup_free char *system = system_key(&f->op);

	reconcile(f, &SYSTEM_CONTROLLER, system);
	return f->r.again_ms;
}

void settle(struct fixture *f)
{
	cleanup_free char *system = system_key(&f->op);
	int64_t before;
	int rounds = 0;
	do {
		if (++rounds > 60)
			fail_msg("nothing ever comes to rest");
		f->under_way = false;
		before = store_version(f->store);
		reconcile(f, &SYSTEM_CONTROLLER, system);
		agents_act(f);
		reconcile_all(f, &CLAIM_CONTROLLER, &KIND_PVC);
		reconcile_all(f, &BINDER_CONTROLLER, &KIND_PVC);
		reconcile_all(f, &RESIZE_CONTROLLER, &KIND_PVC);
		reconcile_all(f, &MODIFY_CONTROLLER, &KIND_PVC);
		reconcile_all(f, &SNAPSHOT_CONTROLLER, &KIND_VOLUMESNAPSHOT);
		reconcile_all(f, &CONTENT_CONTROLLER, &KIND_VOLUMESNAPSHOTCONTENT);
		reconcile_all(f, &BINDER_CONTROLLER, &KIND_PV);
		reconcile_all(f, &VOLUME_CONTROLLER, &KIND_PV);
	} while (store_version(f->store) != before || f->under_way);
}

void fixture_restart(struct fixture *f)
{
	operator_done(&f->op);
	operator_init(&f->op);
	f->epoch++;
	f->dead = false;
}

/* ---- making it ------------------------------------------------------------------------------------ */

static int64_t f_now(void *userdata)
{
	return ((struct fixture *)userdata)->now_ms;
}

struct fixture *fixture_new(void)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct error err = ERROR_INIT;
	f->now_ms = 1800000000000;
	f->clock = (struct clock){ f_now, f_now, f };
	f->ids.state = 7;
	struct store_options options = { .path = ":memory:", .clock = &f->clock, .ids = &f->ids };
	must(store_open(&options, &f->store, &err), &err);
	must(store_bootstrap(f->store, &err), &err);
	f->api = store_client(f->store, "test");
	f->kube = (struct kube){ &faulty_ops, &f->clock };
	f->reader.ops = &reader_ops;
	f->platform.ops = &platform_ops;
	f->workers.ops = &worker_ops;
	f->volumes = json_object();
	f->snapshots = json_object();
	f->agents = json_object();
	f->copies = json_object();
	f->halves = json_object();
	f->owners = json_object();
	f->data = json_object();
	f->pool_bytes = 10 * GIB;
	f->leads = true;
	f->op = (struct operator){ .deployment = "gold",
				   .ns = NS,
				   .type = "glusterfs",
				   .volume_type = "replicate:3",
				   .overcommit = 1,
				   .reclaim = "Delete",
				   .binder = true,
				   .platform = &f->platform,
				   .workers = &f->workers,
				   .leads = leads,
				   .leads_userdata = f };
	operator_init(&f->op);
	f->r = (struct reconcile){ .kube = &f->kube,
				   .cache = &f->reader,
				   .clock = &f->clock,
				   .app = &f->op,
				   .enqueue = enqueue };
	return f;
}

int write_step(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	const int step = 15;
#else
	const int step = 3;
#endif
	return getenv("QM_LONG") ? 1 : step;
}

void fixture_free(struct fixture *f)
{
	operator_done(&f->op);
	kube_free(f->api);
	store_close(f->store);
	json_decref(f->volumes);
	json_decref(f->snapshots);
	json_decref(f->copies);
	json_decref(f->halves);
	json_decref(f->owners);
	json_decref(f->data);
	json_decref(f->agents);
	json_decref(f->told);
	json_decref(f->stale_nodes);
	json_decref(f->stale);
	strv_done(&f->seen);
	strv_done(&f->events);
	free(f);
}

/* ---- what a person does ----------------------------------------------------------------------------- */

void add_node(struct fixture *f, const char *name, int zone, int devices)
{
	struct error err = ERROR_INIT;
	cleanup_free char *ip = xasprintf("10.0.0.%lu", strtoul(name + 1, NULL, 10));
	json_t *list = json_array();
	for (int i = 0; i < devices; i++) {
		cleanup_free char *device = xasprintf("/dev/vd%c", 'b' + i);
		json_array_append_new(list, json_string(device));
	}
	cleanup_json json_t *node =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:{s:[s]}, s:o, s:{s:i}}}",
			  "apiVersion", "coreos.com/v1", "kind", "StorageNode", "metadata", "name",
			  name, "namespace", NS, "spec", "type", "glusterfs", "storageNetwork",
			  "ips", ip, "devices", list, "glusterfs", "zone", zone);
	must(kube_create(f->api, &KIND_STORAGENODE, node, NULL, &err), &err);
}

void add_nodes(struct fixture *f, int n, int devices)
{
	for (int i = 1; i <= n; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		add_node(f, name, i, devices);
	}
}

struct fixture *fixture_online(void)
{
	struct fixture *f = fixture_new();
	add_nodes(f, 3, 1);
	settle(f);
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_string_equal(jstr(status, "spec", "status"), "ONLINE");
	return f;
}

void add_claim(struct fixture *f, const char *name, const char *class, const char *size)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *claim =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion",
			  "v1", "kind", "PersistentVolumeClaim", "metadata", "name", name,
			  "namespace", NS, "spec", "storageClassName", class, "accessModes",
			  "ReadWriteMany", "resources", "requests", "storage", size);
	must(kube_create(f->api, &KIND_PVC, claim, NULL, &err), &err);
}

void add_storage_class(struct fixture *f, const char *name, json_t *parameters, json_t *more)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *class = json_pack(
		"{s:s, s:s, s:{s:s}, s:s, s:o, s:s, s:b}", "apiVersion", "storage.k8s.io/v1",
		"kind", "StorageClass", "metadata", "name", name, "provisioner", QM_DRIVER,
		"parameters", parameters, "reclaimPolicy", "Delete", "allowVolumeExpansion", 1);

	if (!jstr(class, "parameters", "deployment"))
		jset(class, json_string("gold"), "parameters", "deployment");
	if (more)
		json_object_update_new(class, more);
	must(kube_create(f->api, &KIND_STORAGECLASS, class, NULL, &err), &err);
}

static const char *ns_for(const struct kind *kind)
{
	return kind->namespaced ? NS : NULL;
}

json_t *get(struct fixture *f, const struct kind *kind, const char *name)
{
	json_t *o = NULL;
	return kube_get(f->api, kind, ns_for(kind), name, &o, NULL) < 0 ? NULL : o;
}

json_t *get_claim(struct fixture *f, const char *name)
{
	return get(f, &KIND_PVC, name);
}

json_t *get_pv_of(struct fixture *f, const char *name)
{
	cleanup_json json_t *claim = get_claim(f, name);
	const char *volume = jstr(claim, "spec", "volumeName");
	return volume ? get(f, &KIND_PV, volume) : NULL;
}

bool waits(struct fixture *f, const char *claim, const char *why)
{
	cleanup_json json_t *c = get_claim(f, claim);
	const char *text = object_annotation(c, QM_ANNOTATION_WAITING);
	return text && strstr(text, why);
}

bool said(struct fixture *f, const char *reason, const char *message)
{
	for (size_t i = 0; i < f->events.count; i++)
		if (str_has_prefix(f->events.items[i], reason) &&
		    f->events.items[i][strlen(reason)] == ':' &&
		    strstr(f->events.items[i], message))
			return true;
	return false;
}

void discard(struct fixture *f, const struct kind *kind, const char *name)
{
	struct error err = ERROR_INIT;
	must(kube_delete(f->api, kind, ns_for(kind), name, NULL, &err), &err);
}

void patch(struct fixture *f, const struct kind *kind, const char *name, json_t *p)
{
	struct error err = ERROR_INIT;
	must(kube_patch(f->api, kind, ns_for(kind), name, NULL, KUBE_PATCH_MERGE, p, NULL, &err),
	     &err);
	json_decref(p);
}

size_t count(struct fixture *f, const struct kind *kind)
{
	cleanup_json json_t *all = NULL;
	kube_list(f->api, kind, NULL, NULL, &all, NULL, NULL);
	return json_array_size(all);
}

bool has_volume(struct fixture *f, const char *pool, const char *name)
{
	return jget(f->volumes, pool, name) != NULL;
}

bool phase_is(struct fixture *f, const struct kind *kind, const char *name, const char *phase)
{
	cleanup_json json_t *o = get(f, kind, name);
	return streq(jstr(o, "status", "phase"), phase);
}
