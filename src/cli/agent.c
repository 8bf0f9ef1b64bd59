/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"
#include "base/log.h"
#include "base/mem.h"

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
	"\n"
	"Example: quartermaster agent --node default/storage-node1 --kubeconfig "
	"/etc/quartermaster/agent.kubeconfig\n";

static const char *directory(const char *variable, const char *fallback)
{
	const char *value = getenv(variable);

	return value && *value ? value : fallback;
}

int verb_agent(int argc, char **argv)
{
	static const struct option options[] = {
		{ "node", required_argument, NULL, 'n' },
		{ "kubeconfig", required_argument, NULL, 'k' },
		{ "state-dir", required_argument, NULL, 's' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct agent_options o = { .state_dir = directory("QM_STATE_DIR", "/var/lib/quartermaster"),
				   .run_dir = directory("QM_RUN_DIR", "/run/quartermaster") };
	struct error err = ERROR_INIT;
	char ns[254] = "", name[254] = "";
	int c, rc;

	optind = 0; /* the command line was looked at before us */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			if (strlen(optarg) < sizeof(ns))
				key_split(optarg, ns, name);
			break;
		case 'k':
			o.kubeconfig = optarg;
			break;
		case 's':
			o.state_dir = optarg;
			break;
		case 'r':
			o.run_dir = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!name_is_label(ns) || !name_is_subdomain(name) || optind < argc) {
		fputs("quartermaster agent: --node NAMESPACE/NAME is needed\n", stderr);
		fputs(usage, stderr);
		return 2;
	}
	o.ns = ns;
	o.node = name;
	log_init("agent", LOG_LEVEL_INFO);
	rc = agent_run(&o, &err);
	if (rc < 0)
		log_err("%s", error_text(&err, rc));
	return rc < 0 ? 1 : 0;
}
