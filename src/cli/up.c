/* SPDX-License-Identifier: Apache-2.0 */
/* quartermaster up: starts (or repairs) the instance of this machine and waits until it serves. */
#include "api/server.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cli/manifest.h"
#include "cli/steps.h"
#include "cli/verbs.h"
#include "kube/kube.h"
#include "local/config.h"
#include "local/demo.h"
#include "local/paths.h"
#include "local/supervisor.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <time.h>

enum { API_TIMEOUT_MS = 20000, POLL_MS = 100 };

static const char help[] =
	"Usage: quartermaster up --demo\n"
	"       quartermaster up -f FILE... [options]\n"
	"       quartermaster up\n"
	"\n"
	"Starts QuarterMaster on this machine, without Kubernetes, and waits until the storage is\n"
	"ONLINE. Run again, it reports and repairs what is there. Without --demo and -f it starts\n"
	"what was set up before.\n"
	"\n"
	"  --demo                three storage nodes in namespaces of this machine, two disks each\n"
	"                        (loop devices over sparse files), a claim, a mounted volume\n"
	"  -f, --filename FILE   your own StorageNodes (and claims): their devices and directories\n"
	"                        on this machine; may be given several times\n"
	"      --volume-type T   replicate:3 (default), replicate:N, disperse:D:R, arbiter, none\n"
	"      --overcommit X    promise up to X times the capacity (default 1)\n"
	"      --reclaim R       what becomes of a deleted claim's data: delete (default), retain, archive\n"
	"      --deployment NAME the name of this storage deployment and of its class (default glusterfs)\n"
	"      --timeout S       wait that long for ONLINE (default 120)\n"
	"\n"
	"Example:\n"
	"  quartermaster up -f docs/examples/storagenodes.yaml --volume-type arbiter\n";

struct up {
	struct local_config config;
	struct manifest manifest;   /* of -f */
	struct kube *kube;
	bool demo, given;           /* given: -f or --demo */
	int timeout_ms;
};

/* ---- what this machine must have ---------------------------------------------------------- */

static bool in_path(const char *program)
{
	static const char *const dirs[] = { "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin",
					    "/usr/local/bin" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dirs[i], program);

		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int check_machine(struct error *err)
{
	static const struct {
		const char *program, *package;
	} needs[] = {
		{ "glusterd", "glusterfs-server" }, { "gluster", "glusterfs-cli" },
		{ "mkfs.xfs", "xfsprogs" },	    { "mount.glusterfs", "glusterfs-client" },
		{ "ip", "iproute2" },		    { "nsenter", "util-linux" },
	};

	if (geteuid() != 0)
		return error_set(err, EPERM, "quartermaster up makes namespaces and mounts: run it as root");
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (!in_path(needs[i].program))
			return error_set(err, ENOENT, "%s is not installed; run: apt-get install %s",
					 needs[i].program, needs[i].package);
	if (access("/dev/fuse", F_OK) < 0)
		return error_set(err, ENOENT, "/dev/fuse is missing, so nothing can be mounted; run: modprobe fuse");
	return 0;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L }, NULL);
}

static int connect_api(struct up *up, struct error *err)
{
	cleanup_free char *path = state_path("admin.kubeconfig");
	struct kube_config config = { 0 };
	int r = kube_config_load(path, &config, err);

	if (r == 0) {
		free(config.manager);
		config.manager = xstrdup("quartermaster-up");
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

static int start_instance(struct up *up, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + API_TIMEOUT_MS;
	int r = local_config_save(&up->config, err);

	if (r == 0)
		r = instance_start(err);
	if (r < 0)
		return r;
	while ((r = connect_api(up, err)) < 0 && clock_mono_ms(&clock_real) < end)
		pause_ms(POLL_MS / 4);
	return r < 0 ? error_prefix(err, "waiting for the API (see %s/log/api.log)", state_dir()) : 0;
}

/* Nodes of the demonstration that a person has edited since stay as they are. */
static int create_missing(struct up *up, const struct kind *kind, const json_t *object, struct error *err)
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

	json_array_foreach(nodes, i, node)
		if (r == 0)
			r = create_missing(up, &KIND_STORAGENODE, node, err);
	return r;
}

/* What the store still waits for, in a few words. */
static void note_progress(struct up *up, const json_t *status)
{
	step_note("%s; %lld of %lld nodes ready, %lld pools", jstr(status, "spec", "status") ?: "starting",
		  jint(status, "status", "nodesReady"), jint(status, "status", "nodes"),
		  jint(status, "status", "pools"));
	(void)up;
}

/* ONLINE, and for the demonstration whole: every pool is there and nothing is degraded. */
static bool is_up(const struct up *up, const json_t *status)
{
	if (!streq(jstr(status, "spec", "status"), "ONLINE"))
		return false;
	return !up->demo || (jint(status, "status", "pools") >= DEMO_DISKS &&
			     !condition_is_true(jget(status, "status", "conditions"), "Degraded"));
}

static int wait_online(struct up *up, json_t **ret, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + up->timeout_ms;

	for (;;) {
		cleanup_json json_t *status = NULL;
		int r = kube_get(up->kube, &KIND_STORAGESTATUS, up->config.ns, up->config.deployment, &status, err);

		if (r < 0 && r != -ENOENT && r != -EAGAIN)
			return r;
		if (r == 0 && is_up(up, status)) {
			*ret = TAKE_PTR(status);
			return 0;
		}
		if (clock_mono_ms(&clock_real) >= end)
			return error_set(err, ETIMEDOUT, "the store is not ONLINE after %d s: %s; see: quartermaster status",
					 up->timeout_ms / 1000,
					 jstr(status, "status", "message") ?: "the operator has not reported yet");
		note_progress(up, status);
		pause_ms(POLL_MS);
	}
}

static int claim_demo(struct up *up, struct error *err)
{
	cleanup_json json_t *claim =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion", "v1", "kind",
			  "PersistentVolumeClaim", "metadata", "name", "demo", "namespace", up->config.ns, "spec",
			  "storageClassName", up->config.deployment, "accessModes", "ReadWriteMany", "resources",
			  "requests", "storage", "100Mi");
	int64_t end = clock_mono_ms(&clock_real) + up->timeout_ms;
	int r = create_missing(up, &KIND_PVC, claim, err);

	while (r == 0) {
		cleanup_json json_t *now = NULL;

		r = kube_get(up->kube, &KIND_PVC, up->config.ns, "demo", &now, err);
		if (r == 0 && streq(jstr(now, "status", "phase"), "Bound"))
			return 0;
		if (r == 0 && clock_mono_ms(&clock_real) >= end)
			r = error_set(err, ETIMEDOUT, "the claim demo is not Bound; see: quartermaster describe pvc demo");
		if (r == 0)
			pause_ms(POLL_MS / 4);
	}
	return r;
}

static const char *demo_mount_dir(void)
{
	static char *dir;

	if (!dir)
		dir = instance_number() == 0 ? xstrdup("/mnt/quartermaster-demo") : run_path("mnt/demo");
	return dir;
}

/* ---- the sequence -------------------------------------------------------------------------- */

static int run_demo_volume(struct up *up, struct error *err)
{
	char *argv[] = { "mount", "-n", up->config.ns, "demo", (char *)demo_mount_dir(), NULL };
	int r;

	step_begin("claim demo, 100Mi");
	r = claim_demo(up, err);
	if (r < 0)
		return r;
	step_done("Bound");
	optind = 0;
	return verb_mount(5, argv) == 0 ? 0 : error_set(err, EIO, "the claim demo could not be mounted");
}

static void say_next(const struct up *up)
{
	cleanup_free char *config = state_path("admin.kubeconfig");

	printf("\nThe store is running. Try:\n"
	       "  quartermaster status                     one screen of everything\n"
	       "  quartermaster get storagenodes,storagepools\n"
	       "  quartermaster apply -f docs/examples/claim.yaml && quartermaster get pvc\n"
	       "  quartermaster mount my-claim /mnt/mine\n"
	       "  kubectl --kubeconfig %s get storagestatus\n"
	       "  quartermaster down                       stop it; the data stays, \"quartermaster up\" goes on\n",
	       config);
	(void)up;
}

static int run(struct up *up, struct error *err)
{
	cleanup_json json_t *status = NULL;
	int r;

	step_begin("start");
	r = start_instance(up, err);
	if (r < 0)
		return r;
	step_done("API, operator");
	if (up->demo || up->manifest.count > 0) {
		step_begin("declare");
		r = up->demo ? declare_demo(up, err) : manifest_apply(up->kube, &up->manifest, NULL, err);
		if (r < 0)
			return r;
		step_done("%zu StorageNodes", up->demo ? (size_t)DEMO_NODES : up->manifest.count);
	}
	step_begin("storage");
	r = wait_online(up, &status, err);
	if (r < 0)
		return r;
	step_done("ONLINE, %lld nodes, %lld pools", jint(status, "status", "nodes"), jint(status, "status", "pools"));
	return up->demo ? run_demo_volume(up, err) : 0;
}

/* ---- options ------------------------------------------------------------------------------- */

static void set(char **field, const char *value)
{
	free(*field);
	*field = xstrdup(value);
}

static int parse(int argc, char **argv, struct up *up, struct error *err)
{
	static const struct option options[] = {
		{ "demo", no_argument, NULL, 'd' },		{ "filename", required_argument, NULL, 'f' },
		{ "volume-type", required_argument, NULL, 't' }, { "overcommit", required_argument, NULL, 'o' },
		{ "reclaim", required_argument, NULL, 'r' },	{ "deployment", required_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 's' },	{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, r = 0;

	optind = 0;
	while (r == 0 && (c = getopt_long(argc, argv, "f:h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			up->demo = up->given = true;
			break;
		case 'f':
			up->given = true;
			r = manifest_load(&up->manifest, optarg, up->config.ns, err);
			break;
		case 't':
			set(&up->config.volume_type, optarg);
			break;
		case 'o':
			set(&up->config.overcommit, optarg);
			break;
		case 'r':
			set(&up->config.reclaim, optarg);
			break;
		case 'n':
			set(&up->config.deployment, optarg);
			break;
		case 's':
			up->timeout_ms = atoi(optarg) * 1000;
			break;
		case 'h':
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			return -EINVAL;
		}
	}
	if (r == 0 && optind < argc)
		r = error_set(err, EINVAL, "unexpected argument \"%s\"; see: quartermaster up --help", argv[optind]);
	return r;
}

/* Options add to what was set up before, and may not turn one kind of instance into the other. */
static int settle(struct up *up, bool existed, struct error *err)
{
	if (!existed && !up->given)
		return error_set(err, EINVAL, "nothing was set up on this machine yet; run: quartermaster up --demo, "
					      "or: quartermaster up -f FILE");
	if (existed && up->given && up->demo != up->config.demo)
		return error_set(err, EEXIST, "this machine runs %s already; run: quartermaster down --delete-data first",
				 up->config.demo ? "the demonstration" : "a store of your own");
	if (!existed)
		up->config.demo = up->demo;
	up->demo = up->config.demo;
	return 0;
}

int verb_up(int argc, char **argv)
{
	struct up up = { .timeout_ms = 120000 };
	struct error err = ERROR_INIT;
	bool existed = local_config_load(&up.config, &err) == 0;
	int r;

	if (!existed)
		local_config_default(&up.config);
	err = ERROR_INIT;
	r = parse(argc, argv, &up, &err);
	if (r == 0)
		r = settle(&up, existed, &err);
	if (r < 0) {
		if (err.code)
			fprintf(stderr, "quartermaster up: %s\n", err.message);
		r = EXIT_USAGE;
	} else if (check_machine(&err) < 0 || run(&up, &err) < 0) {
		step_failed(&err);
		r = err.code == ETIMEDOUT ? EXIT_TIMEOUT : EXIT_FAILURE;
	} else {
		say_next(&up);
	}
	manifest_done(&up.manifest);
	kube_free(up.kube);
	local_config_done(&up.config);
	return r;
}
