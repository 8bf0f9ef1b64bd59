/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "local/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

int verb_agent(int argc, char **argv);

static const char usage[] =
	"Usage: quartermaster agent --node NAMESPACE/NAME [--kubeconfig FILE] [--state-dir DIR] "
	"[--run-dir DIR]\n"
	"\n"
	"The process of one storage node: prepares its devices, runs glusterd, and carries out "
	"what the operator\n"
	"plans. It is normally started by the platform, not by hand.\n"
	"\n"
	"  --node NAMESPACE/NAME  the StorageNode to serve\n"
	"  --kubeconfig FILE      where the API is and who we are\n"
	"  --state-dir DIR        default $QM_STATE_DIR, else /var/lib/quartermaster\n"
	"  --run-dir DIR          default $QM_RUN_DIR, else /run/quartermaster\n"
	"  --lock NAME            runs once: holds RUN/NAME.lock (default agent-NAMESPACE-NAME)\n"
	"  --storage-pod          glusterd runs in the node's storage pod, not beside this "
	"process\n"
	"  --machine-id ID        of the machine, where /etc/machine-id is a container's\n"
	"\n"
	"Example: quartermaster agent --node default/storage-node1 --kubeconfig "
	"/etc/quartermaster/agent.kubeconfig\n";

struct settings {
	char ns[254], name[254];
	const char *kubeconfig, *lock, *machine_id;
	bool storage_pod;
};

/* 0, or the status to end with: > 0 for help. */
static int parse(int argc, char **argv, struct settings *ret)
{
	static const struct option options[] = {
		{ "node", required_argument, NULL, 'n' },
		{ "kubeconfig", required_argument, NULL, 'k' },
		{ "state-dir", required_argument, NULL, 's' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "lock", required_argument, NULL, 'l' },
		{ "storage-pod", no_argument, NULL, 'p' },
		{ "machine-id", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	optind = 0; /* the command line was looked at before us */
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'n' && strlen(optarg) < sizeof(ret->ns))
			key_split(optarg, ret->ns, ret->name);
		else if (c == 'k')
			ret->kubeconfig = optarg;
		else if (c == 's')
			setenv("QM_STATE_DIR", optarg, 1);
		else if (c == 'r')
			setenv("QM_RUN_DIR", optarg, 1);
		else if (c == 'l')
			ret->lock = optarg;
		else if (c == 'p')
			ret->storage_pod = true;
		else if (c == 'm')
			ret->machine_id = optarg;
		else if (c == 'h')
			return 1;
		else if (c != 'n')
			return -EINVAL;
	}
	return name_is_label(ret->ns) && name_is_subdomain(ret->name) && optind >= argc ? 0
											: -EINVAL;
}

int verb_agent(int argc, char **argv)
{
	struct settings s = { 0 };
	struct agent_options o = { .ns = s.ns, .node = s.name };
	cleanup_free char *lock = NULL;
	struct error err = ERROR_INIT;
	int rc = parse(argc, argv, &s);

	if (rc != 0) {
		if (rc < 0)
			fputs("quartermaster agent: --node NAMESPACE/NAME is needed, and only what "
			      "stands below is known\n\n",
			      stderr);
		fputs(usage, rc > 0 ? stdout : stderr);
		return rc > 0 ? 0 : 2;
	}
	o.kubeconfig = s.kubeconfig;
	o.state_dir = state_dir();
	o.storage_pod = s.storage_pod;
	o.machine_id = s.machine_id;
	log_init("agent", LOG_LEVEL_INFO);
	lock = s.lock ? xstrdup(s.lock) : xasprintf("agent-%s-%s", s.ns, s.name);
	rc = program_lock(lock, &err);
	if (rc >= 0)
		rc = agent_run(&o, &err);
	if (rc < 0)
		log_err("%s", error_text(&err, rc));
	return rc < 0 ? 1 : 0;
}
