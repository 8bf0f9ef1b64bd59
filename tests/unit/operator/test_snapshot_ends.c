/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How snapshots end (snapshot_end.c, snapshot_content.c): VolumeSnapshot, VolumeSnapshotContent, class and claim are
 * deleted in every order, and nothing is left. The loops are told only what their watches tell them, as in a running
 * operator: what nobody wakes stays.
 */
#include "fixture.h"
#include "operator/snapshot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
/* after what it needs */
#include <cmocka.h>

#define NS "default"

/* ---- a runner: watches, queues, and keys that come again ------------------------------------------- */

static const struct kind *const watched[] = { &KIND_PVC,
					    &KIND_PV,
					    &KIND_VOLUMESNAPSHOT,
					    &KIND_VOLUMESNAPSHOTCONTENT,
					    &KIND_VOLUMESNAPSHOTCLASS };
static const struct controller *const loops[] = { &CLAIM_CONTROLLER, &VOLUME_CONTROLLER,
						  &SNAPSHOT_CONTROLLER, &CONTENT_CONTROLLER,
						  &BINDER_CONTROLLER };

struct world {
	struct fixture *f;
	json_t *seen[ARRAY_SIZE(watched)]; /* object: key to object, as the watches last told */
	int64_t version; /* of the store, then */
	struct strv queues[ARRAY_SIZE(loops)], later[ARRAY_SIZE(loops)];
};
static struct world *the_world; /* whose queues r->enqueue means */

static void add_key(struct strv *queue, const char *key)
{
	if (!strv_contains(queue, key))
		strv_add(queue, key);
}

static void enqueue(struct reconcile *r, const char *controller, const char *key, int delay_ms)
{
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		if (streq(loops[i]->name, controller))
			add_key(&the_world->queues[i], key);
}

static void tell(struct world *w, const struct kind *kind, const json_t *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		for (const struct controller_watch *watch = loops[i]->watches; watch->kind;
		     watch++) {
			cleanup_with(strv_done) struct strv keys = { 0 };

			if (watch->kind == kind)
				controller_watch_keys(watch, object, &w->f->r, &keys);
			for (size_t k = 0; k < keys.count; k++)
				add_key(&w->queues[i], keys.items[k]);
		}
}

static void watch_kind(struct world *w, size_t k)
{
	cleanup_json json_t *all = NULL, *old = w->seen[k];
	const char *key;
	json_t *o;
	size_t i;

	w->seen[k] = json_object();
	kube_list(w->f->api, watched[k], NULL, NULL, &all, NULL, NULL);
	json_array_foreach (all, i, o) {
		cleanup_free char *name = object_key(o);

		json_object_set(w->seen[k], name, o);
		if (json_equal(o, json_object_get(old, name)))
			continue;
		tell(w, watched[k], o);
		if (json_object_get(old, name))
			tell(w, watched[k], json_object_get(old, name));
	}
	json_object_foreach (old, key, o)
		if (!json_object_get(w->seen[k], key))
			tell(w, watched[k], o);
}

/* The binder is Kubernetes' own on a cluster, and always there. */
static void reconcile_key(struct world *w, size_t i, const char *key)
{
	bool binder = w->f->op.binder;

	w->f->r.error = ERROR_INIT;
	w->f->r.again_ms = 0;
	w->f->op.binder = binder || loops[i] == &BINDER_CONTROLLER;
	int rc = loops[i]->reconcile(&w->f->r, key);
	w->f->op.binder = binder;
	if (rc < 0 || w->f->r.again_ms > 0)
		add_key(&w->later[i], key);
}

static void forget(struct world *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		strv_done(&w->queues[i]);
		strv_done(&w->later[i]);
	}
	for (size_t k = 0; k < ARRAY_SIZE(watched); k++)
		json_decref(TAKE_PTR(w->seen[k]));
	w->version = 0;
}

static void restart(struct world *w)
{
	forget(w);
	fixture_restart(w->f);
}

/* What is queued; false: nothing was. */
static bool work(struct world *w)
{
	int64_t version = store_version(w->f->store);
	bool any = false;

	for (size_t k = 0; k < ARRAY_SIZE(watched) && version != w->version; k++)
		watch_kind(w, k);
	w->version = version;
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		cleanup_with(strv_done) struct strv now = w->queues[i];

		w->queues[i] = (struct strv){ 0 };
		any = any || now.count;
		for (size_t n = 0; n < now.count && !w->f->dead; n++)
			reconcile_key(w, i, now.items[n]);
		if (w->f->dead) {
			restart(w);
			return true;
		}
	}
	return any;
}

/* Until nobody is woken any more, and those that come again by themselves change nothing. */
static void rest(struct world *w)
{
	int64_t before;
	int rounds = 0;

	do {
		before = store_version(w->f->store);
		for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
			for (size_t n = 0; n < w->later[i].count; n++)
				add_key(&w->queues[i], w->later[i].items[n]);
			strv_done(&w->later[i]);
		}
		while (work(w))
			if (++rounds > 200)
				fail_msg("nothing ever comes to rest");
	} while (store_version(w->f->store) != before);
}

/* ---- what a person makes ---------------------------------------------------------------------------- */

enum step { SNAPSHOT, CONTENT, CLASS, CLAIM, STEPS };

struct way {
	bool given; /* the snapshot was there before: pre-provisioned */
	bool retain;
	bool cluster; /* no binder of ours: others' objects are about */
	bool old; /* made by a version that left no mark of its own on a VolumeSnapshot */
	bool taking; /* the first deletion comes while it is being taken */
	bool forced; /* its owner strips the content's finalizers */
	bool stripped; /* and those of the VolumeSnapshot */
};

static void make(struct fixture *f, const struct kind *kind, json_t *object)
{
	struct error err = ERROR_INIT;
	char version[64];

	jset(object, json_string(kind_api_version(kind, version, sizeof(version))), "apiVersion");
	jset(object, json_string(kind->kind), "kind");
	if (kind->namespaced)
		jset(object, json_string(NS), "metadata", "namespace");
	int rc = kube_create(f->api, kind, object, NULL, &err);
	if (rc < 0)
		fail_msg("%s", error_text(&err, rc));
	json_decref(object);
}

static void make_class(struct fixture *f, const struct way *way)
{
	make(f, &KIND_VOLUMESNAPSHOTCLASS,
	     json_pack("{s:{s:s}, s:s, s:s}", "metadata", "name", "snap", "driver", QM_DRIVER,
		       "deletionPolicy", way->retain ? "Retain" : "Delete"));
}

/* In the pool, as one whose objects were deleted with the policy Retain. */
static void make_given(struct fixture *f, const struct way *way)
{
	json_t *said = json_pack("{s:s, s:s, s:s, s:I, s:s, s:b}", "name", "snap-x", "source", "x",
				 "kind", "d", "size", (json_int_t)GIB, "created",
				 "2026-01-01T00:00:00Z", "ready", 1);

	jset(f->volumes, json_integer(GIB), "gold-1", "s.snap-x");
	jset(f->snapshots, said, "gold-1", "snap-x");
	make(f, &KIND_VOLUMESNAPSHOTCONTENT,
	     json_pack("{s:{s:s}, s:{s:{s:s, s:s}, s:{s:s}, s:s, s:s}}", "metadata", "name",
		       "given", "spec", "volumeSnapshotRef", "namespace", NS, "name", "s", "source",
		       "snapshotHandle", "v1.gold-1.s.snap-x", "driver", QM_DRIVER,
		       "deletionPolicy", way->retain ? "Retain" : "Delete"));
	make(f, &KIND_VOLUMESNAPSHOT,
	     json_pack("{s:{s:s}, s:{s:{s:s}}}", "metadata", "name", "s", "spec", "source",
		       "volumeSnapshotContentName", "given"));
}

/* Of the claim a, or, where the snapshot was there, such that a is made from it. */
static void make_all(struct world *w, const struct way *way)
{
	struct fixture *f = w->f;

	f->op.binder = true;
	make_class(f, way);
	json_t *spec = json_pack("{s:s, s:[s], s:{s:{s:s}}}", "storageClassName", "gold",
				 "accessModes", "ReadWriteOnce", "resources", "requests", "storage",
				 "1Gi");
	if (way->given)
		jset(spec,
		     json_pack("{s:s, s:s, s:s}", "apiGroup", "snapshot.storage.k8s.io", "kind",
			       "VolumeSnapshot", "name", "s"),
		     "dataSource");
	if (way->given)
		make_given(f, way);
	make(f, &KIND_PVC, json_pack("{s:{s:s}, s:o}", "metadata", "name", "a", "spec", spec));
	rest(w);
	if (way->cluster) /* as Kubernetes notes it, before anything is made */
		patch(f, &KIND_PVC, "a",
		      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
				"volume.kubernetes.io/storage-provisioner", QM_DRIVER));
	f->op.binder = !way->cluster;
	if (!way->given)
		make(f, &KIND_VOLUMESNAPSHOT,
		     json_pack("{s:{s:s}, s:{s:{s:s}, s:s}}", "metadata", "name", "s", "spec",
			       "source", "persistentVolumeClaimName", "a",
			       "volumeSnapshotClassName", "snap"));
	f->copy_calls = way->taking ? 3 : 0;
	for (int i = 0; i < 3 && way->taking; i++)
		work(w);
	if (!way->taking)
		rest(w);
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "s");
	assert_int_equal(jbool(s, "status", "readyToUse"), !way->taking || way->given);
	assert_true(object_has_finalizer(s, SNAPSHOT_BOUND));
	if (way->old)
		patch(f, &KIND_VOLUMESNAPSHOT, "s",
		      json_pack("{s:{s:n}}", "metadata", "annotations"));
}

/* ---- and deletes ------------------------------------------------------------------------------------ */

static void remove_one(struct fixture *f, const struct kind *kind, const char *name)
{
	struct error err = ERROR_INIT;
	int rc = kube_delete(f->api, kind, kind->namespaced ? NS : NULL, name, NULL, &err);

	if (rc < 0 && rc != -ENOENT)
		fail_msg("%s", error_text(&err, rc));
}

static void remove_contents(struct fixture *f, bool forced)
{
	cleanup_json json_t *all = NULL;
	json_t *o;
	size_t i;

	kube_list(f->api, &KIND_VOLUMESNAPSHOTCONTENT, NULL, NULL, &all, NULL, NULL);
	json_array_foreach (all, i, o) {
		if (forced)
			patch(f, &KIND_VOLUMESNAPSHOTCONTENT, object_name(o),
			      json_pack("{s:{s:[]}}", "metadata", "finalizers"));
		remove_one(f, &KIND_VOLUMESNAPSHOTCONTENT, object_name(o));
	}
}

static void take_step(struct world *w, const struct way *way, enum step step)
{
	switch (step) {
	case SNAPSHOT:
		if (way->stripped)
			patch(w->f, &KIND_VOLUMESNAPSHOT, "s",
			      json_pack("{s:{s:[]}}", "metadata", "finalizers"));
		remove_one(w->f, &KIND_VOLUMESNAPSHOT, "s");
		break;
	case CONTENT:
		remove_contents(w->f, way->forced);
		break;
	case CLASS:
		remove_one(w->f, &KIND_VOLUMESNAPSHOTCLASS, "snap");
		break;
	default:
		remove_one(w->f, &KIND_PVC, "a");
	}
}

static void orders_add(enum step (*orders)[STEPS], size_t *count, enum step *order, size_t at)
{
	if (at == STEPS) {
		memcpy(orders[(*count)++], order, sizeof(orders[0]));
		return;
	}
	for (enum step s = 0; s < STEPS; s++) {
		bool used = false;

		for (size_t i = 0; i < at; i++)
			used = used || order[i] == s;
		order[at] = s;
		if (!used)
			orders_add(orders, count, order, at + 1);
	}
}

#define ORDERS 24
/* All of them; few with a sanitizer, which looks for something else (see write_step). */
static size_t order_step(void)
{
	return write_step() > 3 ? 5 : 1;
}

static enum step orders[ORDERS][STEPS];

static void all_orders(void)
{
	enum step order[STEPS];
	size_t count = 0;

	orders_add(orders, &count, order, 0);
	assert_int_equal(count, ORDERS);
}

static void nothing_left(struct world *w, const struct way *way, const enum step *order, int gaps)
{
	static const char *const names[] = { "snapshot", "content", "class", "claim" };
	struct fixture *f = w->f;
	/* what nobody names any more, since its content was torn away, is not ours to guess */
	bool kept = way->retain || way->forced;

	for (size_t k = 0; k < ARRAY_SIZE(watched); k++) {
		cleanup_json json_t *all = NULL;

		kube_list(f->api, watched[k], NULL, NULL, &all, NULL, NULL);
		if (!json_array_size(all))
			continue;
		json_object_del(jget(json_array_get(all, 0), "metadata"), "managedFields");
		cleanup_free char *text = json_text(json_array_get(all, 0));
		fail_msg("%s%s%s%s%s%s, %s %s %s %s, gaps %d: there is %s", way->given ? "given" : "dynamic",
			 way->retain ? ", retained" : "", way->cluster ? ", cluster" : "",
			 way->old ? ", old" : "", way->taking ? ", taking" : "",
			 way->forced ? ", forced" : way->stripped ? ", stripped" : "", names[order[0]], names[order[1]],
			 names[order[2]], names[order[3]], gaps, text);
	}
	assert_in_range(json_object_size(jget(f->volumes, "gold-1")), 0, kept ? 1 : 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	json_object_clear(jget(f->volumes, "gold-1"));
	json_object_clear(jget(f->snapshots, "gold-1"));
	json_object_clear(f->copies);
}

/* What happens after each step: nothing, the loops come to rest, the operator restarts. */
enum gap { AT_ONCE, RESTS, RESTARTS, GAPS };

static void end_all(struct world *w, const struct way *way, const enum step *order, int gaps)
{
	int left = gaps;

	for (size_t i = 0; i < STEPS; i++, left /= GAPS) {
		take_step(w, way, order[i]);
		if (left % GAPS == RESTS)
			rest(w);
		else if (left % GAPS == RESTARTS)
			restart(w);
	}
	rest(w);
	nothing_left(w, way, order, gaps);
}

/* In every order; all: with a restart after any step, and with every mixture of what may follow one where it is long. */
static void every_order(const struct way *way, bool all)
{
	static const int few[] = { 1 + 3 + 9, 2 + 6 + 18, 0, 2 + 3 + 9, 1 + 6 + 9, 1 + 3 + 18 };
	struct world w = { .f = fixture_online() };
	bool every = all && getenv("QM_LONG");

	the_world = &w;
	w.f->r.enqueue = enqueue;
	all_orders();
	for (size_t o = 0; o < ORDERS; o += order_step())
		for (int g = 0; g < (every ? GAPS * GAPS * GAPS : all ? 6 : 2); g++) {
			make_all(&w, way);
			end_all(&w, way, orders[o], every ? g : few[g]);
		}
	forget(&w);
	fixture_free(w.f);
}

/* ---- the tests -------------------------------------------------------------------------------------- */

static void on_a_cluster(void **state)
{
	for (int i = 0; i < 4; i++)
		every_order(&(struct way){ .cluster = true, .given = i & 1, .retain = i & 2 },
			    true);
}

static void on_one_machine(void **state)
{
	for (int i = 0; i < 4; i++)
		every_order(&(struct way){ .given = i & 1, .retain = i & 2 }, false);
}

static void made_by_an_older_version(void **state)
{
	for (int i = 0; i < 4; i++)
		every_order(&(struct way){ .cluster = true,
					   .old = true,
					   .given = i & 1,
					   .retain = i & 2 },
			    false);
}

static void while_it_is_taken(void **state)
{
	for (int i = 0; i < 4; i++)
		every_order(&(struct way){ .taking = true, .cluster = i & 1, .retain = i & 2 },
			    false);
}

static void content_torn_away(void **state)
{
	for (int i = 0; i < 8; i++)
		every_order(&(struct way){ .forced = true,
					   .cluster = true,
					   .given = i & 1,
					   .retain = i & 2,
					   .taking = (i & 4) && !(i & 1),
					   .old = (i & 4) && (i & 1) },
			    false);
}

static void snapshot_torn_away(void **state)
{
	for (int i = 0; i < 8; i++)
		every_order(&(struct way){ .stripped = true,
					   .cluster = i & 4,
					   .given = i & 1,
					   .retain = i & 2,
					   .taking = !(i & 1) },
			    false);
}

/* The operator is killed at any of its writes, before or after that took effect. */
static void killed_at_any_write(void **state)
{
	struct world w = { .f = fixture_online() };

	the_world = &w;
	w.f->r.enqueue = enqueue;
	w.f->dies = true;
	all_orders();
	for (size_t o = 0; o < ORDERS; o += order_step())
		for (int i = 0; i < 8; i++) {
			const struct way way = { .cluster = true, .given = i & 1, .retain = i & 2 };

			w.f->failed = true;
			for (int n = 1 + o % write_step(); w.f->failed; n += write_step()) {
				make_all(&w, &way);
				w.f->failed = false;
				w.f->fail_after = i & 4;
				w.f->fail_at = w.f->writes + n;
				end_all(&w, &way, orders[o], 1 + 3 + 9 + 27);
				w.f->fail_at = 0;
			}
		}
	forget(&w);
	fixture_free(w.f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_a_cluster),
		cmocka_unit_test(on_one_machine),
		cmocka_unit_test(made_by_an_older_version),
		cmocka_unit_test(while_it_is_taken),
		cmocka_unit_test(content_torn_away),
		cmocka_unit_test(snapshot_torn_away),
		cmocka_unit_test(killed_at_any_write),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
