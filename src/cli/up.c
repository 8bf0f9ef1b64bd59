/* SPDX-License-Identifier: Apache-2.0 */
/* quartermaster up: starts (or repairs) the instance of this machine and waits until it serves. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/spawn.h"
#include "cli/input.h"
#include "cli/term.h"
#include "cli/verbs.h"
#include "kube/kube.h"
#include "local/client.h"
#include "local/config.h"
#include "local/demo.h"
#include "local/instance.h"
#include "local/program.h"
#include "local/supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* an operator that was killed leaves a lease of 15 s behind */
enum { START_TIMEOUT_MS = 40000, CLIENT_TIMEOUT_MS = 40000, POLL_MS = 100 };

struct up {
	struct local_config config;
	struct input input; /* of -f */
	struct kube *kube;
	struct progress step;
	int64_t timeout_ms;
	const char *clients[CLIENT_PROTOCOLS_MAX]; /* images that were given; borrowed */
	bool chosen; /* any of them */
};

/* ---- what this machine must have ---------------------------------------------------------- */

/* storage: it is to have some, and not only to mount that of others. */
static int check_machine(bool storage, struct error *err)
{
	static const struct {
		const char *program, *package;
	} needs[] = {
		{ "glusterd", "glusterfs-server" },
		{ "gluster", "glusterfs-cli" },
		{ "mkfs.xfs", "xfsprogs" },
		{ "mount.glusterfs", "glusterfs-client" },
		{ "ip", "iproute2" },
		{ "nsenter", "util-linux" },
	};

	if (geteuid() != 0)
		return error_set(err, EPERM,
				 "quartermaster up makes namespaces and mounts: run it as root");
	for (size_t i = 0; storage && i < ARRAY_SIZE(needs); i++)
		if (!program_installed(needs[i].program))
			return error_set(err, ENOENT,
					 "%s is not installed; run: apt-get install %s",
					 needs[i].program, needs[i].package);
	if (access("/dev/fuse", F_OK) < 0)
		return error_set(
			err, ENOENT,
			"/dev/fuse is missing, so nothing can be mounted; run: modprobe fuse");
	return 0;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L },
		  NULL);
}

static int connect_api(struct up *up, struct error *err)
{
	cleanup_free char *path = state_path("admin.kubeconfig");
	struct kube_config config = { 0 };
	int r = kube_config_load(path, &config, err);

	if (r == 0) {
		/* the same manager as of apply: what was declared here can be taken back there */
		free(config.manager);
		config.manager = xstrdup("quartermaster");
		r = kube_connect(&config, &up->kube, err);
		kube_config_done(&config);
	}
	if (r == 0)
		r = kube_get(up->kube, &KIND_NAMESPACE, NULL, up->config.ns, NULL, err);
	if (r < 0) {
		kube_free(up->kube);
		up->kube = NULL;
	}
	return r;
}

/* Whether an operator that was started since then leads: it has put down what is of another time. */
static int operator_leads(struct up *up, int64_t since_ms, struct error *err)
{
	cleanup_free char *name = xasprintf("operator-%s", up->config.deployment);
	cleanup_json json_t *lease = NULL;
	int64_t acquired = 0;
	int r = kube_get(up->kube, &KIND_LEASE, up->config.ns, name, &lease, err);
	const char *text = jstr(lease, "spec", "acquireTime");

	if (r == 0 && text)
		time_parse(text, &acquired);
	return acquired >= since_ms ? 0 : error_set(err, EAGAIN, "it does not lead yet");
}

static int start_instance(struct up *up, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + START_TIMEOUT_MS,
		began = clock_wall_ms(&clock_real);
	bool ran = program_pid("operator") > 0;
	int r = local_config_save(&up->config, err);

	if (r == 0)
		r = instance_start(err);
	if (r < 0)
		return r;
	while ((r = connect_api(up, err)) < 0 && clock_mono_ms(&clock_real) < end)
		pause_ms(POLL_MS / 4);
	if (r < 0)
		return error_prefix(err, "waiting for the API (see %s/log/api.log)", state_dir());
	while (!ran && (r = operator_leads(up, began, err)) < 0 && clock_mono_ms(&clock_real) < end)
		pause_ms(POLL_MS / 4);
	return r < 0 ? error_prefix(err, "waiting for the operator (see %s/log/operator.log)",
				    state_dir())
		     : 0;
}

/* Nodes of the demonstration that a person has edited since stay as they are. */
static int create_missing(struct up *up, const struct kind *kind, const json_t *object,
			  struct error *err)
{
	int r = kube_create(up->kube, kind, object, NULL, err);

	return r == -EEXIST ? 0 : r;
}

static int declare_demo(struct up *up, struct error *err)
{
	cleanup_json json_t *nodes = NULL;
	const json_t *node;
	size_t i;
	int r = demo_nodes(up->config.ns, &nodes, err);

	json_array_foreach (nodes, i, node)
		if (r == 0)
			r = create_missing(up, &KIND_STORAGENODE, node, err);
	return r;
}

/* A machine that has only clients has nothing to wait for. */
static int has_nodes(struct up *up, struct error *err)
{
	cleanup_json json_t *nodes = NULL;
	int r = kube_list(up->kube, &KIND_STORAGENODE, up->config.ns, NULL, &nodes, NULL, err);

	return r < 0 ? r : json_array_size(nodes) > 0;
}

/* What the store still waits for, in a few words. */
static void note_progress(struct up *up, const json_t *status)
{
	progress_note(&up->step, "%s, %lld of %lld nodes ready, %lld pools",
		      jstr(status, "spec", "status") ?: "starting",
		      jint(status, "status", "nodesReady"), jint(status, "status", "nodes"),
		      jint(status, "status", "pools"));
}

/* ONLINE, and for the demonstration whole: every pool is there and nothing is degraded. */
static bool is_up(const struct up *up, const json_t *status)
{
	if (!streq(jstr(status, "spec", "status"), "ONLINE"))
		return false;
	return !up->config.demo ||
	       (jint(status, "status", "pools") >= DEMO_DISKS &&
		!condition_is_true(jget(status, "status", "conditions"), "Degraded"));
}

static int wait_online(struct up *up, json_t **ret, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + up->timeout_ms;

	for (;;) {
		cleanup_json json_t *status = NULL;
		int r = kube_get(up->kube, &KIND_STORAGESTATUS, up->config.ns,
				 up->config.deployment, &status, err);

		if (r < 0 && r != -ENOENT && r != -EAGAIN)
			return r;
		if (r == 0 && is_up(up, status)) {
			*ret = TAKE_PTR(status);
			return 0;
		}
		if (clock_mono_ms(&clock_real) >= end)
			return error_set(err, ETIMEDOUT,
					 "the store is not ONLINE after %lld s: %s; see: "
					 "quartermaster status",
					 (long long)up->timeout_ms / 1000,
					 jstr(status, "status", "message")
						 ?: "the operator has not reported yet");
		note_progress(up, status);
		pause_ms(POLL_MS);
	}
}

static int claim_demo(struct up *up, struct error *err)
{
	cleanup_json json_t *claim = json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion", "v1", "kind",
		"PersistentVolumeClaim", "metadata", "name", "demo", "namespace", up->config.ns,
		"spec", "storageClassName", up->config.deployment, "accessModes", "ReadWriteMany",
		"resources", "requests", "storage", "100Mi");
	int64_t end = clock_mono_ms(&clock_real) + up->timeout_ms;
	int r = create_missing(up, &KIND_PVC, claim, err);

	while (r == 0) {
		cleanup_json json_t *now = NULL;

		r = kube_get(up->kube, &KIND_PVC, up->config.ns, "demo", &now, err);
		if (r == 0 && streq(jstr(now, "status", "phase"), "Bound"))
			return 0;
		if (r == 0 && clock_mono_ms(&clock_real) >= end)
			r = error_set(err, ETIMEDOUT,
				      "the claim demo is not Bound; see: quartermaster describe "
				      "pvc demo");
		if (r == 0)
			pause_ms(POLL_MS / 4);
	}
	return r;
}

static const char *demo_mount_dir(void)
{
	static char *dir;

	if (!dir)
		dir = instance_number() == 0 ? xstrdup("/mnt/quartermaster-demo")
					     : run_path("mnt/demo");
	return dir;
}

/* ---- the sequence -------------------------------------------------------------------------- */

static int apply_input(struct up *up, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < up->input.count && r == 0; i++) {
		const struct input_object *o = &up->input.items[i];
		const char *ns = object_namespace(o->object);

		r = kube_patch(up->kube, o->kind, *ns ? ns : NULL, object_name(o->object), NULL,
			       KUBE_PATCH_APPLY, o->object, NULL, err);
		if (r < 0)
			return error_prefix(err, "%s", o->source);
	}
	return 0;
}

static int declare(struct up *up, struct error *err)
{
	int r;

	if (!up->config.demo && up->input.count == 0)
		return 0;
	progress_begin(&up->step, stdout, "declare");
	r = up->config.demo ? declare_demo(up, err) : apply_input(up, err);
	if (r == 0)
		progress_end(&up->step, true, "declare: %zu objects",
			     up->config.demo ? (size_t)DEMO_NODES : up->input.count);
	return r;
}

static int demo_volume(struct up *up, struct error *err)
{
	cleanup_free char *config = state_path("admin.kubeconfig"); /* whatever $KUBECONFIG names */
	const char *argv[] = { "mount",	      "--kubeconfig", config,		"-n",
			       up->config.ns, "demo",	      demo_mount_dir(), NULL };
	int r;

	progress_begin(&up->step, stdout, "claim demo, 100Mi");
	r = claim_demo(up, err);
	if (r < 0)
		return r;
	progress_end(&up->step, true, "claim demo, 100Mi: Bound");
	return verb_run(verb_find("mount"), ARRAY_SIZE(argv) - 1, (char **)argv) == QM_OK
		       ? 0
		       : error_set(err, EIO, "the claim demo could not be mounted");
}

/* ---- clients ------------------------------------------------------------------------------- */

/* What is chosen holds from the next look of a supervisor: one that runs is replaced. */
static int choose_clients(struct up *up, struct error *err)
{
	int r = 0;

	for (size_t i = 0; client_protocols[i].name && r == 0; i++) {
		const struct client_protocol *p = &client_protocols[i];

		if (!up->clients[i])
			continue;
		progress_begin(&up->step, stdout, "client %s", p->name);
		r = local_client_choose(p, up->clients[i], err);
		if (r == 0)
			progress_end(&up->step, true, "client %s: %s", p->name, up->clients[i]);
	}
	if (r == 0)
		r = local_clients_prepare(err);
	if (r == 0 && up->chosen)
		r = program_stop("supervise", CLIENT_TIMEOUT_MS, err);
	return r;
}

static int await_clients(struct up *up, struct error *err)
{
	int r = local_clients_stop(LOCAL_CLIENTS_LEFT, false, err);

	for (const struct client_protocol *p = client_protocols; p->name && r == 0; p++) {
		if (!local_client_chosen(p))
			continue;
		progress_begin(&up->step, stdout, "client %s", p->name);
		r = local_client_await(p, CLIENT_TIMEOUT_MS, err);
		if (r >= 0)
			progress_end(&up->step, true, "client %s: %s", p->name,
				     r > 0 ? "the new image comes when nobody uses the old one"
					   : "runs in a container");
		r = r > 0 ? 0 : r;
	}
	return r;
}

static int run(struct up *up, struct error *err)
{
	cleanup_json json_t *status = NULL;
	int r = choose_clients(up, err);

	if (r < 0)
		return r;
	progress_begin(&up->step, stdout, "start");
	r = start_instance(up, err);
	if (r < 0)
		return r;
	progress_end(&up->step, true, "start: API, operator");
	r = await_clients(up, err);
	if (r == 0)
		r = declare(up, err);
	if (r < 0)
		return r;
	r = has_nodes(up, err);
	if (r <= 0)
		return r;
	progress_begin(&up->step, stdout, "storage");
	r = wait_online(up, &status, err);
	if (r < 0)
		return r;
	progress_end(&up->step, true, "storage: ONLINE, %lld nodes, %lld pools",
		     jint(status, "status", "nodes"), jint(status, "status", "pools"));
	return up->config.demo ? demo_volume(up, err) : 0;
}

static void say_next(void)
{
	cleanup_free char *config = state_path("admin.kubeconfig");

	printf("\nThe store is running. Try:\n"
	       "  quartermaster status                     one screen of everything\n"
	       "  quartermaster get storagenodes\n"
	       "  quartermaster apply -f docs/examples/claim.yaml\n"
	       "  quartermaster mount my-claim /mnt/mine\n"
	       "  kubectl --kubeconfig %s get storagestatus\n"
	       "  quartermaster down                       stop it; the data stays, "
	       "\"quartermaster up\" goes on\n",
	       config);
	if (getenv("KUBECONFIG"))
		printf("KUBECONFIG is set, and names another API: unset it first, or use "
		       "--kubeconfig %s\n",
		       config);
}

/* ---- options ------------------------------------------------------------------------------- */

static void take_option(const struct args *a, const char *flag, char **field)
{
	const char *value = args_value(a, flag);

	if (value) {
		free(*field);
		*field = xstrdup(value);
	}
}

static void take_clients(struct up *up, const struct args *a)
{
	for (size_t i = 0; client_protocols[i].name; i++) {
		cleanup_free char *flag = xasprintf("%s-mount-container", client_protocols[i].name);

		up->clients[i] = args_value(a, flag);
		up->chosen |= up->clients[i] != NULL;
	}
}

/* Options add to what was set up before, and may not turn one kind of instance into the other. */
static int settle(struct up *up, const struct args *a)
{
	struct error err = ERROR_INIT;
	bool demo = args_given(a, "demo"), files = args_values(a, "filename")->count > 0;
	bool existed = local_config_load(&up->config, &err) == 0;

	if (demo && files)
		return usage_error(a->verb, "--demo has nodes of its own: give it or -f, not both");
	take_clients(up, a);
	if (!existed && !demo && !files && !up->chosen)
		return usage_error(
			a->verb, "nothing was set up on this machine yet: give --demo, or -f FILE");
	if (existed && (demo || files) && demo != up->config.demo)
		return usage_error(
			a->verb,
			"this machine runs %s already; first: quartermaster down --delete-data",
			up->config.demo ? "the demonstration" : "a store of your own");
	if (!existed) {
		local_config_default(&up->config);
		up->config.demo = demo;
	}
	take_option(a, "volume-type", &up->config.volume_type);
	take_option(a, "overcommit", &up->config.overcommit);
	take_option(a, "reclaim", &up->config.reclaim);
	take_option(a, "deployment", &up->config.deployment);
	return args_duration(a, "timeout", 120000, &up->timeout_ms);
}

int cmd_up(struct session *s, const struct args *a)
{
	struct up up = { 0 };
	struct error err = ERROR_INIT;
	int code = settle(&up, a);
	bool storage;

	(void)s;
	/* all of the input is checked before anything is started */
	if (code == QM_OK)
		code = input_read(args_values(a, "filename"), up.config.ns, &up.input);
	storage = up.config.demo || up.input.count > 0;
	if (code == QM_OK && (check_machine(storage, &err) < 0 || run(&up, &err) < 0)) {
		if (up.step.text[0])
			progress_end(&up.step, false, NULL);
		fprintf(stderr, "%s\n", err.message);
		code = err.code == ETIMEDOUT ? QM_TIMED_OUT : QM_FAILED;
	} else if (code == QM_OK) {
		say_next();
	}
	input_done(&up.input);
	kube_free(up.kube);
	local_config_done(&up.config);
	return code;
}
