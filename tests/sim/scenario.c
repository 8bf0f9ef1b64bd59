/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"
#include "hardware.h"

#include "base/mem.h"

#include <errno.h>

#define DEVICE_SIZE (100LL << 30)
#define GIB (1LL << 30)
#define SETTLE_MS                                                                                  \
	(45 * 60 * 1000) /* a lost brick is given up after five minutes; back-off goes to one */
#define WHOLE_CLASS "whole"
#define EARLY_MAX_S 120
#define HARD_EVERY 3
#define RETAIN_CLASS "retain"
#define ARCHIVE_CLASS "archive"
#define CALM_MS 65000 /* the latest that a late write happens */

static struct sim *sim_of(struct scenario *s)
{
	return &s->world.sim;
}

/* ---- what a person declares -------------------------------------------------------------------------- */

static json_t *device_list(const struct sim_node *n)
{
	json_t *list = json_array();

	for (int i = 0; i < MODEL_DEVICES; i++) {
		if (n->devices[i])
			json_array_append_new(list, json_sprintf("/dev/sd%c", 'b' + i));
	}
	return list;
}

static json_t *wipe_list(struct scenario *s, const struct sim_node *n)
{
	struct model_node *m = &s->model.nodes[n - s->nodes];
	json_t *list = json_array();

	for (int i = 0; i < MODEL_DEVICES; i++) {
		char name[32];

		if (!n->wipe[i] || !n->devices[i])
			continue;
		snprintf(name, sizeof(name), "/dev/sd%c", 'b' + i);
		json_array_append_new(list, json_string(name));
		json_object_set_new(m->wipe, name, json_true());
	}
	return list;
}

static void declare_node(struct scenario *s, int i)
{
	struct sim_node *n = &s->nodes[i];
	cleanup_json json_t *o = json_pack(
		"{ss ss s{ss ss} s{ss s{s[o]} so s{ss si so}}}", "apiVersion", "coreos.com/v1",
		"kind", "StorageNode", "metadata", "name", n->name, "namespace", SIM_NS, "spec", "type",
		"glusterfs", "storageNetwork", "ips", json_sprintf("10.0.0.%d", i + 1), "devices",
		device_list(n), "glusterfs", "cluster", SIM_CLUSTER, "zone", i % 3 + 1, "wipe",
		wipe_list(s, n));
	struct error err = ERROR_INIT;
	int rc = kube_create(s->world.late, &KIND_STORAGENODE, o, NULL, &err);

	sim_trace(sim_of(s), "a person declares %s: %s", n->name, rc < 0 ? err.message : "done");
	if (rc < 0 && rc != -EEXIST)
		sim_fail(sim_of(s), "a StorageNode is refused: %s", err.message);
	n->wanted = n->declared = rc == 0;
}

void scenario_edit_node(struct scenario *s, struct sim_node *n)
{
	cleanup_json json_t *patch = json_pack("{s{so sb s{so}}}", "spec", "devices",
					       device_list(n), "maintenance", n->maintenance,
					       "glusterfs", "wipe", wipe_list(s, n));
	struct error err = ERROR_INIT;
	int rc = kube_patch(s->world.late, &KIND_STORAGENODE, SIM_NS, n->name, NULL,
			    KUBE_PATCH_MERGE, patch, NULL, &err);

	sim_trace(sim_of(s), "a person edits %s: %s", n->name, rc < 0 ? err.message : "done");
	if (rc < 0 && rc != -ENOENT)
		sim_fail(sim_of(s), "a StorageNode is refused: %s", err.message);
}

void scenario_delete_node(struct scenario *s, struct sim_node *n)
{
	int rc = kube_delete(s->world.late, &KIND_STORAGENODE, SIM_NS, n->name, NULL, NULL);

	sim_trace(sim_of(s), "a person deletes %s: %d", n->name, rc);
	n->wanted = false;
}

static void create_claim(struct scenario *s, struct sim_claim *c)
{
	cleanup_json json_t *o =
		json_pack("{ss ss s{ss ss so*} s{ss s[s] s{s{so}}}}", "apiVersion", "v1", "kind",
			  "PersistentVolumeClaim", "metadata", "name", c->name, "namespace", SIM_NS,
			  "finalizers",
			  s->options.cluster ? json_pack("[s]", SIM_PROTECTION) : NULL, "spec",
			  "storageClassName", c->class, "accessModes", "ReadWriteMany", "resources",
			  "requests", "storage",
			  json_sprintf("%lldGi", (long long)(c->size / GIB)));
	struct error err = ERROR_INIT;
	int rc = kube_create(s->world.late, &KIND_PVC, o, NULL, &err);

	sim_trace(sim_of(s), "a person claims %s: %s", c->name, rc < 0 ? err.message : "done");
	c->wanted = rc == 0; /* the one before of that name may still be going */
}

/* Beside the one that the operator makes. */
static void create_class(struct scenario *s, const char *name, const char *kind, const char *policy,
			 const char *reclaim)
{
	cleanup_json json_t *o =
		json_pack("{ss ss s{ss s{ss*}} ss s{ss ss ss} ss}", "apiVersion",
			  "storage.k8s.io/v1", "kind", "StorageClass", "metadata", "name", name,
			  "annotations", "quartermaster.storage/reclaim", reclaim, "provisioner",
			  "csi.quartermaster.storage", "parameters", "deployment", SIM_DEPLOYMENT,
			  "namespace", SIM_NS, "kind", kind, "reclaimPolicy", policy);
	struct error err = ERROR_INIT;

	if (kube_create(s->world.late, &KIND_STORAGECLASS, o, NULL, &err) < 0)
		sim_fail(sim_of(s), "the class is refused: %s", err.message);
}

static void create_classes(struct scenario *s)
{
	create_class(s, WHOLE_CLASS, "whole", "Delete", NULL);
	if (!s->options.cluster)
		return;
	create_class(s, RETAIN_CLASS, "directory", "Retain", NULL);
	create_class(s, ARCHIVE_CLASS, "directory", "Delete", "archive");
}

void scenario_delete_claim(struct scenario *s, struct sim_claim *c)
{
	int rc = kube_delete(s->world.late, &KIND_PVC, SIM_NS, c->name, NULL, NULL);

	sim_trace(sim_of(s), "a person deletes claim %s: %d", c->name, rc);
	c->wanted = false;
}

/* ---- chance ------------------------------------------------------------------------------------------- */

static struct sim_node *any_wanted_node(struct scenario *s)
{
	struct sim_node *n = &s->nodes[sim_below(sim_of(s), s->node_count)];

	return n->wanted ? n : NULL;
}

static int wanted_nodes(const struct scenario *s)
{
	int count = 0;

	for (int i = 0; i < s->node_count; i++)
		count += s->nodes[i].wanted;
	return count;
}

int scenario_devices(const struct sim_node *n)
{
	int count = 0;

	for (int i = 0; i < MODEL_DEVICES; i++)
		count += n->devices[i];
	return count;
}

bool scenario_may_lose(const struct scenario *s)
{
	return wanted_nodes(s) > s->bricks;
}

static void changed_mind(void *arg)
{
	struct sim_claim *c = arg;

	if (c->wanted)
		scenario_delete_claim(c->scenario, c);
}

static const char *any_class(struct scenario *s)
{
	int64_t dice = s->options.cluster ? sim_below(sim_of(s), 10) : 0;

	return dice > 7 ? RETAIN_CLASS : dice == 7 ? ARCHIVE_CLASS : SIM_DEPLOYMENT;
}

/* A volume that was kept, of a claim that is gone: a person deletes its object, and keeps what is in it. */
static void any_retained(struct scenario *s)
{
	cleanup_json json_t *volumes = NULL;
	json_t *pv;
	size_t i;

	kube_list(s->world.late, &KIND_PV, NULL, NULL, &volumes, NULL, NULL);
	json_array_foreach (volumes, i, pv) {
		if (!streq(jstr(pv, "spec", "storageClassName"), RETAIN_CLASS) ||
		    !streq(jstr(pv, "status", "phase"), "Released") || object_deleting(pv))
			continue;
		sim_trace(sim_of(s), "a person deletes %s", object_name(pv));
		json_object_set_new(s->let_go, object_name(pv), json_true());
		kube_delete(s->world.late, &KIND_PV, NULL, object_name(pv), NULL, NULL);
		return;
	}
}

static void any_claim(struct scenario *s, bool create)
{
	struct sim_claim *c = &s->claims[sim_below(sim_of(s), SIM_CLAIMS)];

	if (create && !c->wanted) {
		c->size = GIB * (1 + sim_below(sim_of(s), 4)) * (s->big ? 15 : 1);
		c->whole = sim_chance(sim_of(s), 1500);
		c->class = c->whole ? WHOLE_CLASS : any_class(s);
		create_claim(s, c);
		if (sim_chance(sim_of(s), 3000))
			sim_after(sim_of(s), sim_below(sim_of(s), 1500), changed_mind, c);
	} else if (!create && c->wanted) {
		scenario_delete_claim(s, c);
	}
}

static void any_device(struct scenario *s, bool add)
{
	struct sim_node *n = any_wanted_node(s);
	int i = (int)sim_below(sim_of(s), 3);

	if (!n || n->devices[i] == add || (!add && scenario_devices(n) < 2))
		return;
	n->devices[i] = add;
	scenario_edit_node(s, n);
}

static void any_node(struct scenario *s, bool add)
{
	int i = (int)sim_below(sim_of(s), s->node_count);

	if (add && !s->nodes[i].wanted)
		declare_node(s, i);
	else if (!add && s->nodes[i].wanted && wanted_nodes(s) > s->bricks)
		scenario_delete_node(s, &s->nodes[i]);
}

static void any_maintenance(struct scenario *s)
{
	struct sim_node *n = any_wanted_node(s);

	if (!n)
		return;
	n->maintenance = !n->maintenance;
	scenario_edit_node(s, n);
}

static void power_back(void *arg)
{
	model_node_up(arg);
}

static void any_trouble(struct scenario *s, int kind)
{
	struct sim *sim = sim_of(s);
	struct model_node *n = &s->model.nodes[sim_below(sim, s->node_count)];

	switch (kind) {
	case 0:
		if (s->options.cluster && sim_chance(sim, 3000))
			proc_kill(&s->manager, 10 + sim_below(sim, 20000));
		else
			proc_kill(&s->operators[sim_below(sim, s->operator_count)],
				  10 + sim_below(sim, 20000));
		break;
	case 1:
		proc_kill(&n->agent, 10 + sim_below(sim, 5000));
		break;
	case 2:
		model_glusterd_kill(n);
		break;
	case 3:
		model_bricks_kill(n);
		break;
	default:
		model_node_down(n);
		sim_after(sim, 2000 + sim_below(sim, 60000), power_back, n);
	}
}

/* One that has just come may lead before it is a member, while the other waits to be let go. */
static void exchange_nodes(struct scenario *s)
{
	struct sim *sim = sim_of(s);
	int first = (int)sim_below(sim, s->node_count);

	for (int i = 0; i < s->node_count; i++) {
		int k = (first + i) % s->node_count;

		if (s->nodes[k].wanted)
			continue;
		declare_node(s, k);
		break;
	}
	any_node(s, false);
	if (sim_chance(sim, 5000)) /* perhaps the one that leads */
		any_trouble(s, 1);
}

/* Several at a time, and who makes volumes or binds may die of it. */
static void claims_happen(struct scenario *s)
{
	struct sim *sim = sim_of(s);

	for (int64_t i = sim_below(sim, 4); i >= 0; i--)
		any_claim(s, sim_chance(sim, 6000));
	if (sim_chance(sim, 1000))
		any_retained(s);
	if (sim_chance(sim, 2000))
		any_trouble(s, 0);
}

void scenario_event(struct scenario *s)
{
	int64_t dice = sim_below(sim_of(s), 100);

	if (s->early && dice % 2)
		claims_happen(s);
	else if (dice < 40)
		any_claim(s, true);
	else if (dice < 62)
		any_claim(s, false);
	else if (dice < 66)
		any_device(s, true);
	else if (dice < 70)
		any_device(s, false);
	else if (dice < 76)
		any_node(s, true);
	else if (dice < 79)
		any_node(s, false);
	else if (dice < 81)
		any_maintenance(s);
	else if (dice < 84)
		exchange_nodes(s);
	else
		any_trouble(s, (int)(dice - 84) / 3);
}

/* ---- a schedule --------------------------------------------------------------------------------------- */

/*
 * What differs in kind is decided by a schedule's number, not by chance: so every run has all of
 * it.
 */
static const struct {
	const char *type;
	int bricks;
} layouts[] = {
	{ "replicate:3", 3 }, { "disperse:2:1", 3 }, { "arbiter", 3 },
	{ "replicate:2", 2 }, { "replicate:3", 3 },  { "none", 1 },
};

/* Half of the schedules hit one kind of call hard: what lies between two steps is found that way. */
static const char *const focuses[] = {
	"directory pvc-",
	"create PersistentVolume",
	"patch PersistentVolume",
	"patch PersistentVolumeClaim",
	"StoragePool",
	"StorageStatus",
	"StorageNode",
	"record",
	"a device",
	"brick",
	"make directory",
	"remove directory",
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
	NULL,
};

static const char *const cluster_focuses[] = { "complete pvc-", "make directory",
					       "create PersistentVolume",
					       "patch PersistentVolumeClaim" };

static void setup_cluster(struct scenario *s)
{
	static const int slow_ms[] = { 0, 20, 300, 4000 };
	struct sim *sim = sim_of(s);

	s->options.cluster = true;
	s->options.binder_slow_ms = slow_ms[sim_below(sim, ARRAY_SIZE(slow_ms))];
	s->big = sim_chance(sim, 2500);
	s->early = sim_chance(sim, 7500);
	if (sim_chance(sim, 4000))
		s->world.rates.focus = cluster_focuses[sim_below(sim, ARRAY_SIZE(cluster_focuses))];
	manager_proc_setup(&s->manager, &s->options);
}

/* ".../ID/.quartermaster-ID..." without the second directory. New string. */
static char *old_form(const char *path)
{
	const char *at = strstr(path, "/.quartermaster-"), *end, *id, *before;
	size_t len;

	if (!at)
		return xstrdup(path);
	id = at + strlen("/.quartermaster-");
	len = strcspn(id, "/");
	end = id + len;
	before = at - len;
	if (before <= path || before[-1] != '/' || strncmp(before, id, len) != 0)
		return xstrdup(path);
	return xasprintf("%.*s%s", (int)(at - path), path, end);
}

/* Stores made before have bricks at the root of their file systems. */
static void write_old_paths(struct world *w, const struct kind *kind, json_t *object)
{
	static const char *const fields[] = { "path", "directory" };
	struct scenario *s = (struct scenario *)((char *)w - offsetof(struct scenario, world));
	json_t *bricks = kind == &KIND_STORAGEPOOL   ? jget(object, "spec", "bricks")
			 : kind == &KIND_STORAGENODE ? jget(object, "status", "plan", "bricks")
						     : NULL;
	json_t *b;
	size_t i;

	if (w->sim.now_ms >= s->old_paths_ms)
		return;
	json_array_foreach (bricks, i, b) {
		for (size_t k = 0; k < ARRAY_SIZE(fields); k++) {
			const char *path = jstr(b, fields[k]);
			cleanup_free char *old = path ? old_form(path) : NULL;

			if (old)
				json_object_set_new(b, fields[k], json_string(old));
		}
	}
}

/*
 * Machines and disks: then calls fail far less often, since what is waited for takes minutes, by
 * one who leads.
 */
static void setup_hardware(struct scenario *s, uint64_t number)
{
	struct sim *sim = sim_of(s);

	s->hard = s->early = true;
	s->big = false;
	s->first_event = (int)(number % HARDWARE_EVENTS);
	s->world.rates.call /= 30;
	s->world.rates.crash /= 20;
	s->world.rates.event /= 4;
	s->world.rates.focus = NULL;
	s->model.heal_ms = sim_chance(sim, 5000) ? 333 : 3000;
	if (number % 2 == 0) {
		s->world.change_write = write_old_paths;
		s->old_paths_ms = sim_chance(sim, 7000) ? INT64_MAX : 3 * 60000;
	}
}

static void setup_nodes(struct scenario *s)
{
	struct sim *sim = sim_of(s);

	/* mostly few nodes: they are quick, and what goes wrong goes wrong with few */
	s->node_count = s->bricks + (int)sim_below(sim, 2) + s->hard;
	if (!s->hard && sim_chance(sim, 3000))
		s->node_count = s->bricks + (int)sim_below(sim, MODEL_NODES - s->bricks + 1);
	for (int i = 0; i < s->node_count; i++) {
		struct sim_node *n = &s->nodes[i];
		char address[40];
		struct model_node *m;

		snprintf(n->name, sizeof(n->name), "node%d", i + 1);
		snprintf(address, sizeof(address), "10.0.0.%d", i + 1);
		m = model_node_add(&s->model, n->name, address);
		for (int d = 0; d < 3; d++) {
			char name[32];

			snprintf(name, sizeof(name), "/dev/sd%c", 'b' + d);
			model_device_add(m, name, DEVICE_SIZE);
		}
		n->devices[sim_below(sim, 3)] = true;
		if (sim_chance(sim, 3000))
			n->devices[sim_below(sim, 3)] = true;
	}
}

static void setup(struct scenario *s, uint64_t seed, enum mutant mutant, FILE *trace)
{
	struct sim *sim;
	uint64_t number = seed / 2;
	size_t layout = number % ARRAY_SIZE(layouts);

	*s = (struct scenario){ .seed = seed };
	if (world_init(&s->world, seed, trace) < 0)
		abort();
	s->world.mutant = mutant;
	model_mutate(&s->world);
	sim = sim_of(s);
	machines_init(&s->model, &s->world);
	s->model.agent_setup = agent_proc_setup;
	s->world.rates = (struct fault_rates){ (int)sim_below(sim, 800), (int)sim_below(sim, 80),
					       (int)sim_below(sim, 300),
					       focuses[sim_below(sim, ARRAY_SIZE(focuses))] };
	s->bricks = layouts[layout].bricks;
	s->options = (struct sim_options){ .model = &s->model,
					   .volume_type = layouts[layout].type,
					   .ignores_leases = mutant == MUTANT_NO_LEASE };
	s->let_go = json_object();
	s->late_volumes = json_object();
	if (seed % 2 == 0)
		setup_cluster(s);
	number /= ARRAY_SIZE(layouts);
	if (number % HARD_EVERY == 0)
		setup_hardware(s, number / HARD_EVERY);
	setup_nodes(s);
	for (int i = 0; i < SIM_CLAIMS; i++) {
		s->claims[i].scenario = s;
		snprintf(s->claims[i].name, sizeof(s->claims[i].name), "claim%d", i + 1);
	}
	s->operator_count = sim_chance(sim, 4000) ? 2 : 1;
	operator_proc_setup(&s->operators[0], &s->options, "operator-a");
	operator_proc_setup(&s->operators[1], &s->options, "operator-b");
	sim_trace(sim, "seed %llu: %d nodes, %s, %d operators%s%s, faults %d %d %d %s",
		  (unsigned long long)seed, s->node_count, s->options.volume_type,
		  s->operator_count, s->options.cluster ? " on a cluster" : "",
		  s->old_paths_ms ? ", old paths" : "",
		  s->world.rates.call, s->world.rates.crash,
		  s->world.rates.event, s->world.rates.focus ? s->world.rates.focus : "");
}

static bool pool_serves_now(struct scenario *s)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++)
		if (*s->model.volumes[i].name && model_volume_serves(&s->model.volumes[i]))
			return true;
	return false;
}

static void wait_for_pool(struct scenario *s)
{
	struct sim *sim = sim_of(s);

	for (int i = 0; s->early && i < EARLY_MAX_S && !pool_serves_now(s) && !*sim->failure; i++)
		sim_run_until(sim, sim->now_ms + 1000);
}

/* Claims come and go meanwhile. */
static void run_hardware(struct scenario *s, int64_t ms)
{
	struct sim *sim = sim_of(s);
	int64_t until = sim->now_ms + ms;

	while (sim->now_ms < until && !*sim->failure) {
		sim_run_until(sim, sim->now_ms + 20000 + sim_below(sim, 60000));
		any_claim(s, sim_chance(sim, 5000));
	}
}

/*
 * The first event has time to show what follows from it; then come others, which may meet each
 * other.
 */
static void hardware_phase(struct scenario *s)
{
	struct sim *sim = sim_of(s);
	int64_t more = 1 + sim_below(sim, 2);

	hardware_clients(s);
	claims_happen(s);
	sim_run_until(sim, sim->now_ms + 5000 + sim_below(sim, 30000));
	hardware_event(s, s->first_event);
	run_hardware(s, hardware_takes_ms(s->first_event));
	for (int64_t i = 0; i < more && !*sim->failure; i++) {
		hardware_event(s, (int)sim_below(sim, HARDWARE_EVENTS));
		run_hardware(s, sim_below(sim, sim_chance(sim, 3000) ? 7 * 60000 : 90000));
	}
}

static void trouble_phase(struct scenario *s)
{
	struct sim *sim = sim_of(s);
	int events = s->early ? 6 + (int)sim_below(sim, 12) : 10 + (int)sim_below(sim, 25);

	for (int i = 0; i < s->operator_count; i++)
		proc_start(&s->operators[i]);
	if (s->options.cluster)
		proc_start(&s->manager);
	sim->faults = !s->early;
	for (int i = 0; i < s->node_count && !*sim->failure; i++) {
		if (i < s->bricks || sim_chance(sim, 6000))
			declare_node(s, i);
		sim_run_until(sim, sim->now_ms + sim_below(sim, 1500));
	}
	wait_for_pool(s);
	sim->faults = true;
	if (s->hard) {
		hardware_phase(s);
		return;
	}
	for (int i = 0; i < events && !*sim->failure; i++) {
		scenario_event(s);
		sim_run_until(sim,
			      sim->now_ms + sim_below(sim, sim_chance(sim, 1000) ? 30000 : 4000));
	}
}

/* ---- claims that go at the worst moments ---------------------------------------------------------------- */

static void perhaps_delete(struct scenario *s, const char *claim)
{
	struct sim *sim = sim_of(s);

	for (int i = 0; i < SIM_CLAIMS && sim->faults; i++)
		if (s->claims[i].wanted && streq(s->claims[i].name, claim) && sim_chance(sim, 800))
			sim_after(sim, sim_below(sim, 40), changed_mind, &s->claims[i]);
}

/* Called by the store while it writes. Between the halves: */
static void volume_event(const struct kube_event *event, void *userdata)
{
	struct scenario *s = userdata;

	if (event->type != KUBE_ADDED)
		return;
	if (s->world.happens_late)
		json_object_set_new(s->late_volumes, object_name(event->object), json_true());
	perhaps_delete(s, jstr(event->object, "spec", "claimRef", "name"));
}

/* Between Kubernetes' two steps, and when it has just been bound. */
static void claim_event(const struct kube_event *event, void *userdata)
{
	if (event->type == KUBE_MODIFIED && jstr(event->object, "spec", "volumeName") &&
	    object_has_finalizer(event->object, "quartermaster.storage/provision"))
		perhaps_delete(userdata, object_name(event->object));
}

static void watch_claims(struct scenario *s)
{
	if (!s->options.cluster)
		return;
	store_watch_start(s->world.store, &(struct store_query){ .kind = &KIND_PV }, "0",
			  volume_event, s, &s->volume_watch, NULL);
	store_watch_start(s->world.store, &(struct store_query){ .kind = &KIND_PVC }, "0",
			  claim_event, s, &s->claim_watch, NULL);
}

/* The end of all trouble: power everywhere, nobody in maintenance, enough nodes. */
static void calm(struct scenario *s)
{
	struct sim *sim = sim_of(s);

	sim_trace(sim, "---- the faults end ----");
	sim->faults = false;
	for (int i = 0; i < s->node_count; i++) {
		model_node_up(&s->model.nodes[i]);
		if (s->nodes[i]
			    .maintenance) { /* a node that is to go, too: it cannot be emptied in maintenance */
			s->nodes[i].maintenance = false;
			scenario_edit_node(s, &s->nodes[i]);
		}
	}
	hardware_repair(s);
	sim_run_until(sim, sim->now_ms + CALM_MS);
}

/* What the API has of the things that do not settle. */
static void tell_all(struct scenario *s)
{
	static const struct kind *const told[] = { &KIND_STORAGENODE, &KIND_STORAGEPOOL,
						   &KIND_STORAGESTATUS, &KIND_PVC, &KIND_PV };

	for (size_t i = 0; sim_of(s)->trace && i < ARRAY_SIZE(told); i++) {
		cleanup_json json_t *items = NULL;
		json_t *o;
		size_t k;

		kube_list(s->world.late, told[i], NULL, NULL, &items, NULL, NULL);
		json_array_foreach (items, k, o) {
			cleanup_free char *text = NULL;

			json_object_del(json_object_get(o, "metadata"), "managedFields");
			text = json_text(o);
			sim_trace(sim_of(s), "%s", text);
		}
	}
}

/* On a cluster those who come next must read the same out of the API. How long that takes. */
static int64_t restart_operators(struct scenario *s)
{
	if (!s->options.cluster || !sim_chance(sim_of(s), 3000))
		return 20000;
	for (int i = 0; i < s->operator_count; i++)
		proc_kill(&s->operators[i], 10);
	return 40000; /* the lease of the one before has to end */
}

static void settle(struct scenario *s)
{
	struct sim *sim = sim_of(s);
	int64_t began = sim->now_ms;
	char problem[500] = "";

	while (sim->now_ms - began < SETTLE_MS && !*sim->failure) {
		if (scenario_settled(s, problem, sizeof(problem))) {
			s->settled_ms = sim->now_ms - began;
			sim_run_until(sim, sim->now_ms + restart_operators(s));
			if (!scenario_settled(s, problem, sizeof(problem)))
				sim_fail(sim, "it was settled, and then: %s", problem);
			return;
		}
		if (s->hard)
			hardware_follow_advice(s);
		sim_run_until(sim, sim->now_ms + 10000);
	}
	tell_all(s);
	sim_fail(sim, "not settled after %d minutes: %s", SETTLE_MS / 60000, problem);
}

/* Ends all processes, so that nothing is left in memory. */
static void finish(struct scenario *s)
{
	struct sim *sim = sim_of(s);

	sim->trace = NULL;
	sim->faults = false;
	s->calm = true;
	free(s->armed);
	s->armed = NULL;
	for (int i = 0; i < 2; i++)
		proc_kill(&s->operators[i], -1);
	proc_kill(&s->manager, -1);
	for (int i = 0; i < s->node_count; i++) {
		s->model.nodes[i].agent_wanted = false;
		proc_kill(&s->model.nodes[i].agent, -1);
	}
	sim_drain(sim);
	store_watch_stop(s->pool_watch);
	store_watch_stop(s->claim_watch);
	store_watch_stop(s->volume_watch);
	json_decref(s->let_go);
	json_decref(s->late_volumes);
	json_decref(s->pool_sources);
	machines_done(&s->model);
	world_done(&s->world);
}

void scenario_run(struct scenario *s, uint64_t seed, enum mutant mutant, FILE *trace)
{
	setup(s, seed, mutant, trace);
	create_classes(s);
	scenario_watch_pools(s);
	watch_claims(s);
	trouble_phase(s);
	if (!*sim_of(s)->failure)
		calm(s);
	if (!*sim_of(s)->failure)
		settle(s);
	finish(s);
}
