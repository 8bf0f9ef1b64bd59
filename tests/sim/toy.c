/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/*
 * The simulation itself under test, with a controller small enough to be obviously right, and
 * variants of it that are wrong in the ways in which control loops are wrong. For each ConfigMap
 * labelled thing=wanted there is to be exactly one thing outside, and none when it is gone.
 */
enum mistake {
	NO_MISTAKE,
	NO_FINALIZER, /* makes the thing before it has taken care that it can undo it */
	FINALIZER_FIRST, /* lets go of the object before the thing is gone */
	REMEMBERS, /* counts on its memory to know what it made */
	MISTAKES,
};

struct toy {
	struct world world;
	struct proc procs[2];
	json_t *things; /* name to how many */
	enum mistake mistake;
};

struct toy_app {
	struct proc *proc;
	struct toy *toy;
	json_t *made; /* what it remembers */
};

/* ---- the world outside: a thing has a random id, so making one twice makes two ------------------ */

static int thing_make(struct proc *p, struct toy *t, const char *name, struct error *err)
{
	enum fault fault;
	int rc = world_call_begin(p, true, "make a thing", &fault, err);

	if (rc < 0)
		return rc;
	json_object_set_new(t->things, name,
			    json_integer(json_integer_value(json_object_get(t->things, name)) + 1));
	return call_end(p, fault, 0, err);
}

static int thing_exists(struct proc *p, struct toy *t, const char *name, struct error *err)
{
	enum fault fault;
	int rc = world_call_begin(p, false, "look for a thing", &fault, err);

	if (rc < 0)
		return rc;
	return call_end(p, fault, json_object_get(t->things, name) != NULL, err);
}

static int thing_remove(struct proc *p, struct toy *t, const char *name, struct error *err)
{
	enum fault fault;
	int rc = world_call_begin(p, true, "remove a thing", &fault, err);

	if (rc < 0)
		return rc;
	json_object_del(t->things, name);
	return call_end(p, fault, 0, err);
}

/* ---- the controller ------------------------------------------------------------------------------- */

#define FINALIZER "quartermaster.storage/toy"

static int let_go(struct reconcile *r, json_t *object)
{
	int rc;

	object_remove_finalizer(object, FINALIZER);
	rc = kube_update(r->kube, &KIND_CONFIGMAP, object, NULL, &r->error);
	return rc == -ENOENT ? 0 : rc;
}

static int undo(struct reconcile *r, struct toy_app *app, json_t *object)
{
	bool early = app->toy->mistake == FINALIZER_FIRST;
	int rc = 0;

	if (!object_has_finalizer(object, FINALIZER))
		return 0;
	if (early)
		rc = let_go(r, object);
	if (rc == 0)
		rc = thing_remove(app->proc, app->toy, object_name(object), &r->error);
	return rc == 0 && !early ? let_go(r, object) : rc;
}

static int promise(struct reconcile *r, json_t **object)
{
	json_t *written = NULL;
	int rc;

	if (!object_add_finalizer(*object, FINALIZER))
		return 0;
	rc = kube_update(r->kube, &KIND_CONFIGMAP, *object, &written, &r->error);
	if (rc < 0)
		return rc;
	reader_learned(r->cache, &KIND_CONFIGMAP, written);
	json_decref(*object);
	*object = written;
	return 0;
}

static int make(struct reconcile *r, struct toy_app *app, const json_t *object)
{
	const char *name = object_name(object);
	int rc;

	if (app->toy->mistake == REMEMBERS)
		rc = json_object_get(app->made, name) != NULL;
	else
		rc = thing_exists(app->proc, app->toy, name, &r->error);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	json_object_set_new(app->made, name, json_true());
	return thing_make(app->proc, app->toy, name, &r->error);
}

static int toy_reconcile(struct reconcile *r, const char *key)
{
	struct toy_app *app = r->app;
	cleanup_json json_t *object = NULL;
	char ns[254], name[254];
	int rc;

	key_split(key, ns, name);
	object = reader_get(r->cache, &KIND_CONFIGMAP, ns, name);
	if (!object)
		return 0;
	if (object_deleting(object))
		return undo(r, app, object);
	rc = app->toy->mistake == NO_FINALIZER ? 0 : promise(r, &object);
	return rc < 0 ? rc : make(r, app, object);
}

static const struct controller_watch toy_watches[] = {
	{ .kind = &KIND_CONFIGMAP, .labels = "thing=wanted" },
	{ 0 },
};
static const struct controller toy_controller = { "toy", toy_watches, 2, toy_reconcile };
static const struct controller *const toy_controllers[] = { &toy_controller, NULL };

static void *toy_start(struct proc *p)
{
	struct toy_app *app = xcalloc(1, sizeof(*app));

	app->proc = p;
	app->toy = p->userdata;
	app->made = json_object();
	return app;
}

static void toy_stopped(struct proc *p, void *arg)
{
	struct toy_app *app = arg;

	json_decref(app->made);
	free(app);
}

/* ---- the schedule --------------------------------------------------------------------------------- */

static void want(struct toy *t, int i)
{
	cleanup_json json_t *o =
		json_pack("{ss ss s{so ss s{ss}}}", "apiVersion", "v1", "kind", "ConfigMap",
			  "metadata", "name", json_sprintf("thing-%d", i), "namespace", "default",
			  "labels", "thing", "wanted");

	kube_create(t->world.late, &KIND_CONFIGMAP, o, NULL, NULL);
}

static void unwant(struct toy *t, int i)
{
	char name[32];

	snprintf(name, sizeof(name), "thing-%d", i);
	kube_delete(t->world.late, &KIND_CONFIGMAP, "default", name, NULL, NULL);
}

static void check(struct toy *t, const bool *wanted, int count)
{
	struct sim *s = &t->world.sim;

	for (int i = 0; i < count; i++) {
		cleanup_json json_t *o = NULL;
		char name[32];
		json_int_t made;

		snprintf(name, sizeof(name), "thing-%d", i);
		made = json_integer_value(json_object_get(t->things, name));
		if (made != wanted[i])
			sim_fail(s, "there are %d of %s, not %d", (int)made, name, wanted[i]);
		kube_get(t->world.late, &KIND_CONFIGMAP, "default", name, &o, NULL);
		if (!o != !wanted[i])
			sim_fail(s, "ConfigMap %s is %s", name, o ? "left over" : "lost");
	}
}

#define WANTS 6

static void disturb(struct toy *t, bool *wanted)
{
	struct sim *s = &t->world.sim;

	for (int round = 0; round < 40 && !*s->failure; round++) {
		int i = (int)sim_below(s, WANTS);

		wanted[i] = !wanted[i];
		if (wanted[i])
			want(t, i);
		else
			unwant(t, i);
		sim_run_until(s, s->now_ms + sim_below(s, 3000));
	}
	/* a name that is being deleted could not be wanted anew then */
	s->faults = false;
	sim_run_until(s, s->now_ms + 200000);
	for (int i = 0; i < WANTS; i++) {
		if (wanted[i])
			want(t, i);
	}
	sim_run_until(s, s->now_ms + 200000);
}

static void run(uint64_t seed, enum mistake mistake, int processes, struct toy *t)
{
	bool wanted[WANTS] = { 0 };

	*t = (struct toy){ .mistake = mistake, .things = json_object() };
	assert_int_equal(world_init(&t->world, seed, NULL), 0);
	t->world.rates = (struct fault_rates){ 500, 100, 500 };
	for (int i = 0; i < processes; i++) {
		struct proc *p = &t->procs[i];

		*p = (struct proc){ .world = &t->world,
				    .sim = &t->world.sim,
				    .controllers = toy_controllers,
				    .start = toy_start,
				    .stopped = toy_stopped,
				    .userdata = t,
				    .can_crash = true };
		snprintf(p->name, sizeof(p->name), "toy-%d", i);
		proc_start(p);
	}
	disturb(t, wanted);
	check(t, wanted, WANTS);
	for (int i = 0; i < processes; i++)
		proc_kill(&t->procs[i], -1);
	sim_drain(&t->world.sim);
	for (int i = 0; i < processes; i++)
		assert_true(proc_ended(&t->procs[i]));
	world_done(&t->world);
	json_decref(t->things);
}

static void right_one_holds(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct toy t;

		run(seed, NO_MISTAKE, 1, &t);
		if (*t.world.sim.failure)
			fail_msg("seed %d: %s", (int)seed, t.world.sim.failure);
	}
}

static void every_fault_happens(void **state)
{
	uint64_t seen[FAULT_COUNT] = { 0 }, crashes = 0;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct toy t;

		run(seed, NO_MISTAKE, 1, &t);
		for (int f = 0; f < FAULT_COUNT; f++)
			seen[f] += t.world.faults[f];
		crashes += t.world.crashes;
	}
	for (int f = 0; f < FAULT_COUNT; f++) {
		if (seen[f] < 10)
			fail_msg("\"%s\" happened %d times", fault_names[f], (int)seen[f]);
	}
	assert_true(crashes >= 30);
}

static void mistakes_are_caught(void **state)
{
	for (enum mistake m = NO_MISTAKE + 1; m < MISTAKES; m++) {
		int caught = 0;

		for (uint64_t seed = 1; seed <= 60; seed++) {
			struct toy t;

			run(seed, m, 1, &t);
			caught += *t.world.sim.failure != 0;
		}
		if (caught == 0)
			fail_msg("mistake %d was never caught", (int)m);
	}
}

static void two_without_a_lease_are_caught(void **state)
{
	int caught = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct toy t;

		run(seed, NO_MISTAKE, 2, &t);
		caught += *t.world.sim.failure != 0;
	}
	assert_true(caught > 0);
}

static void same_seed_same_schedule(void **state)
{
	struct toy a, b;

	run(42, NO_MISTAKE, 1, &a);
	run(42, NO_MISTAKE, 1, &b);
	assert_int_equal(a.world.sim.steps, b.world.sim.steps);
	assert_int_equal(a.world.calls, b.world.calls);
	assert_memory_equal(a.world.faults, b.world.faults, sizeof(a.world.faults));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_one_holds),
		cmocka_unit_test(every_fault_happens),
		cmocka_unit_test(mistakes_are_caught),
		cmocka_unit_test(two_without_a_lease_are_caught),
		cmocka_unit_test(same_seed_same_schedule),
	};

	log_init("toy", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
