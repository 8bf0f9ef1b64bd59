/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/node.h"

#include "base/daemon.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "clients/remote.h"
#include "clients/watch.h"
#include "core/host.h"
#include "csi/identity.h"
#include "local/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

int verb_node(int argc, char **argv);

static const char usage[] =
	"Usage: quartermaster node [FLAG…]\n"
	"\n"
	"The CSI node service of this machine: brings volumes here and mounts them for kubelet, or "
	"for any\n"
	"other orchestrator that calls its socket. It may be ended and started at any time; mounts "
	"stay.\n"
	"\n"
	"  --endpoint FILE     the socket; default DIR/plugins/" CSI_DRIVER_NAME "/csi.sock\n"
	"  --node-id NAME      default: the host's name\n"
	"  --kubelet-dir DIR   default " CSI_DEFAULT_KUBELET_DIR ": all targets must lie below it\n"
	"  --any-target        targets may lie anywhere\n"
	"  --no-registration   do not make the driver known to kubelet\n"
	"  --max-volumes N     how many volumes the machine may have at a time; default: no limit\n"
	"  --pools DIR         how pools are reached: a file of each pool's name, as the operator "
	"writes;\n"
	"                      default: as each volume says; no ephemeral volumes\n"
	"  --takeover-after S  a node that has not renewed its reservation of a block device for S "
	"seconds may be\n"
	"                      put out; default 300, the same on all nodes\n"
	"  --clients DIR       where client containers are found: DIR/PROTOCOL/client.sock; "
	"default: "
	"all\n"
	"                      client software is the host's\n"
	"  --client PROTOCOL=ID,ID…\n"
	"                      the protocol has several containers, in DIR/PROTOCOL/ID; new mounts "
	"go "
	"to\n"
	"                      the first of these that listens\n"
	"                      PROTOCOL=host: it has none, its programs are the machine's own, "
	"which takes\n"
	"                      a pod with hostPID\n"
	"  --pod-events        tell pods by an Event when the client of their volume dies, or its "
	"file\n"
	"                      system could not be grown, and the operator how many volumes a former image of a client has here\n"
	"  --state-dir DIR     default $QM_STATE_DIR, else /var/lib/quartermaster\n"
	"  --run-dir DIR       default $QM_RUN_DIR, else /run/quartermaster\n"
	"\n"
	"Example: quartermaster node --node-id worker-3 --kubelet-dir /var/lib/k0s/kubelet\n";

static const struct option flags[] = {
	{ "endpoint", required_argument, NULL, 'e' },
	{ "node-id", required_argument, NULL, 'n' },
	{ "kubelet-dir", required_argument, NULL, 'k' },
	{ "any-target", no_argument, NULL, 'a' },
	{ "no-registration", no_argument, NULL, 'r' },
	{ "max-volumes", required_argument, NULL, 'm' },
	{ "takeover-after", required_argument, NULL, 't' },
	{ "clients", required_argument, NULL, 'c' },
	{ "pools", required_argument, NULL, 'p' },
	{ "client", required_argument, NULL, 'C' },
	{ "pod-events", no_argument, NULL, 'E' },
	{ "state-dir", required_argument, NULL, 'S' },
	{ "run-dir", required_argument, NULL, 'R' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int parse_number(const char *text, int64_t *ret)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	if (end == text || *end || value < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

struct settings {
	struct csi_node_options o;
	const char *clients;
	const char *prefer[CLIENT_PROTOCOLS_MAX];
	size_t prefer_count;
	bool pod_events;
	struct csi_node *node;
	json_t *counts; /* what was told last of clients that are to end; owned */
	bool untold; /* that could not be told */
};

static int parse_flag(int c, struct settings *s)
{
	struct csi_node_options *o = &s->o;

	switch (c) {
	case 'e':
		o->endpoint = optarg;
		return 0;
	case 'n':
		o->node_id = optarg;
		return 0;
	case 'k':
		o->kubelet_dir = optarg;
		return 0;
	case 'a':
		o->any_target = true;
		return 0;
	case 'r':
		o->registration = false;
		return 0;
	case 'm':
		return parse_number(optarg, &o->max_volumes);
	case 'p':
		o->pools_dir = optarg;
		return 0;
	case 't':
		return parse_number(optarg, &o->lapse_s);
	case 'S':
		return setenv("QM_STATE_DIR", optarg, 1);
	case 'R':
		return setenv("QM_RUN_DIR", optarg, 1);
	case 'c':
		s->clients = optarg;
		return 0;
	case 'E':
		s->pod_events = true;
		return 0;
	case 'C':
		if (s->prefer_count == CLIENT_PROTOCOLS_MAX)
			return -EINVAL;
		s->prefer[s->prefer_count++] = optarg;
		return 0;
	default:
		return -EINVAL;
	}
}

/* 1: help was asked for. */
static int parse(int argc, char **argv, struct settings *s)
{
	int c;

	optind = 0; /* the command line was looked at before us */
	while ((c = getopt_long(argc, argv, "h", flags, NULL)) != -1) {
		if (c == 'h')
			return 1;
		if (parse_flag(c, s) < 0)
			return -EINVAL;
	}
	return optind < argc ? -EINVAL : 0;
}

/* ---- clients that die -------------------------------------------------------------------------- */

#define EVENTS_MS 30000

static char *variable(const char *name)
{
	const char *value = getenv(name);

	return xasprintf("%s=%s", name, value ? value : "");
}

/* In a process that ends with it: what speaks to the API takes more memory than all else here. */
static bool tell_cluster(const json_t *what, bool quiet)
{
	cleanup_free char *input = json_text(what), *host = variable("KUBERNETES_SERVICE_HOST"),
			  *port = variable("KUBERNETES_SERVICE_PORT");
	struct host_command command = {
		.argv = (const char *const[]){ "/proc/self/exe", "pod-events", NULL },
		.env = (const char *const[]){ host, port, NULL },
		.input = input,
		.input_len = strlen(input),
		.timeout_ms = EVENTS_MS,
	};
	struct host_result result = { 0 };
	int r = process_run(&command, &result);

	if (r == 0 && result.status == 0)
		return true;
	if (!quiet)
		log_warn("the cluster could not be told: %s",
			 r < 0 ? strerror(-r) : result.err);
	return false;
}

static void tell_pods(const json_t *what, void *userdata)
{
	(void)userdata;
	tell_cluster(what, false);
}

static void look_for_lost(void *userdata)
{
	struct settings *s = userdata;
	cleanup_json json_t *lost = csi_node_lost(s->node);
	const json_t *one;
	size_t i;

	json_array_foreach (lost, i, one)
		log_warn("the client of volume %s died: pod %s/%s has lost %s", jstr(one, "volume"),
			 jstr(one, "namespace"), jstr(one, "name"), jstr(one, "target"));
	if (s->pod_events && json_array_size(lost)) {
		cleanup_json json_t *what = json_pack("{s:O}", "lost", lost);

		tell_cluster(what, false);
	}
}

/* ---- clients that are to end ------------------------------------------------------------------- */

/* Whether new mounts go to that one: it comes first in its protocol's order. */
static bool is_first(const struct settings *s, const char *id)
{
	for (size_t i = 0; i < s->prefer_count; i++) {
		const char *list = strchr(s->prefer[i], '=');
		size_t len = list ? strcspn(++list, ",") : 0;

		if (len == strlen(id) && strncmp(list, id, len) == 0)
			return true;
	}
	return false;
}

/* How many volumes former images of a client still have here: for whoever waits for their end. */
static void count_users(size_t most, void *userdata)
{
	struct settings *s = userdata;
	cleanup_json json_t *counts = most < 2 ? json_object() : csi_node_clients(s->node),
			    *what = NULL;
	const char *id;
	json_t *count;
	void *next;

	json_object_foreach_safe (counts, next, id, count)
		if (is_first(s, id))
			json_object_del(counts, id);
	/* nobody else may have said anything of this machine while it has one image only */
	if (!s->pod_events || (!s->counts && most < 2) || json_equal(s->counts, counts))
		return;
	what = json_pack("{s:s, s:O}", "node", s->o.node_id, "clients", counts);
	s->untold = !tell_cluster(what, s->untold);
	if (s->untold)
		return;
	json_decref(s->counts);
	s->counts = TAKE_PTR(counts);
}

static int run(struct settings *s, struct error *err)
{
	struct csi_node_options *o = &s->o;
	struct clients_watch *watch = NULL;
	cleanup_free char *endpoint =
		xasprintf("%s/plugins/" CSI_DRIVER_NAME "/csi.sock", o->kubelet_dir);
	cleanup_free char *state = state_path("hostvol"), *run_path_ = run_path("hostvol");
	struct csi_node *n = NULL;
	bool refused;
	int r;

	if (!o->endpoint)
		o->endpoint = endpoint;
	o->state_dir = state;
	o->run_dir = run_path_;
	o->tell = s->pod_events ? tell_pods : NULL;
	r = program_lock("node", err);
	if (r < 0)
		return r;
	daemon_begin();
	r = csi_node_start(o, &n, err);
	if (r < 0)
		return r;
	log_info("serving at %s", o->endpoint);
	s->node = n;
	if (s->clients)
		r = clients_watch_start(s->clients, look_for_lost, count_users, s, &watch, err);
	if (r == 0)
		daemon_wait();
	clients_watch_free(watch);
	json_decref(s->counts);
	refused = csi_node_refused(n);
	csi_node_free(n);
	if (r < 0)
		return r;
	return refused ? error_set(err, EPERM, "ended, since kubelet refused the driver") : 0;
}

static int run_with_clients(struct settings *s, struct error *err)
{
	struct clients_host *clients;
	int r = clients_host_new(s->clients, &clients, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < s->prefer_count; i++)
		r = clients_host_prefer(clients, s->prefer[i], err);
	s->o.host = clients_host(clients);
	if (r == 0)
		r = run(s, err);
	clients_host_free(clients);
	return r;
}

int verb_node(int argc, char **argv)
{
	char host[65] = "";
	struct settings s = { .o = { .node_id = host,
				     .kubelet_dir = CSI_DEFAULT_KUBELET_DIR,
				     .registration = true } };
	struct error err = ERROR_INIT;
	int r = parse(argc, argv, &s);

	if (r != 0) {
		fputs(usage, r > 0 ? stdout : stderr);
		return r > 0 ? 0 : 2;
	}
	(void)gethostname(host, sizeof(host) - 1);
	log_init("node", LOG_LEVEL_INFO);
	r = run_with_clients(&s, &err);
	if (r < 0)
		log_err("%s", error_text(&err, r));
	return r < 0 ? 1 : 0;
}
