/* SPDX-License-Identifier: Apache-2.0 */
#include "local/supervisor.h"

#include "base/daemon.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "local/box.h"
#include "local/client.h"
#include "local/keeper.h"
#include "local/self.h"

#include <dirent.h>

enum { STOP_MS = 15000 };

static struct program *api_program(void)
{
	const char *argv[] = { self_path(), "api", NULL };

	return program_new("api", argv, NULL);
}

static struct program *operator_program(const struct local_config *c)
{
	cleanup_free char *config = state_path("operator.kubeconfig");
	const char *argv[] = { self_path(),
			       "operator",
			       "--kubeconfig",
			       config,
			       "--platform",
			       "local",
			       "--deployment",
			       c->deployment,
			       "--namespace",
			       c->ns,
			       "--type",
			       c->type,
			       "--volume-type",
			       c->volume_type,
			       "--overcommit",
			       c->overcommit,
			       "--reclaim",
			       c->reclaim,
			       NULL };

	return program_new("operator", argv, NULL);
}

/* For orchestrators other than Kubernetes: their targets may lie anywhere. */
static struct program *node_program(void)
{
	cleanup_free char *socket = run_path("node.sock");
	cleanup_free char *pools = run_path("pools"), *clients = run_path("clients");
	const char *argv[] = { self_path(),	    "node",	    "--endpoint", socket,
			       "--no-registration", "--any-target", "--pools",	  pools,
			       "--clients",	    clients,	    NULL };

	return program_new("node", argv, NULL);
}

int supervisor_run(const struct local_config *config, struct error *err)
{
	struct keeper *keeper;
	int r;

	daemon_begin();
	r = keeper_start(&keeper, err);
	if (r < 0)
		return r;
	keeper_add(keeper, api_program());
	keeper_add(keeper, operator_program(config));
	/* before the node service, which would take the host's software for what is not there yet */
	if (local_clients_prepare(err) < 0)
		log_err("%s", err->message);
	for (const struct client_protocol *p = client_protocols; p->name; p++)
		if (local_client_chosen(p))
			keeper_add(keeper, local_client_program(p));
	keeper_add(keeper, node_program());
	daemon_wait();
	keeper_free(keeper);
	return 0;
}

int instance_start(struct error *err)
{
	const char *argv[] = { self_path(), "supervise", NULL };
	struct program *p = program_new("supervise", argv, NULL);
	pid_t pid;
	int r = programs_allow(err);

	if (r == 0)
		r = program_start(p, &pid, err);
	program_free(p);
	return r;
}

static int stop_agents(struct error *err)
{
	struct dirent *e;
	DIR *d = opendir(run_dir());
	int r = 0;

	while (d && r == 0 && (e = readdir(d))) {
		cleanup_free char *name = NULL;

		if (!str_has_prefix(e->d_name, "agent-") || !str_has_suffix(e->d_name, ".lock"))
			continue;
		name = xstrndup(e->d_name, strlen(e->d_name) - strlen(".lock"));
		r = program_stop(name, STOP_MS, err);
	}
	if (d)
		closedir(d);
	return r;
}

int instance_stop(struct error *err)
{
	int r = programs_forbid(err);

	if (r == 0)
		r = program_stop("operator", STOP_MS, err);
	if (r == 0)
		r = program_stop("supervise", STOP_MS, err);
	if (r == 0)
		r = program_stop("node", STOP_MS, err);
	if (r == 0)
		r = stop_agents(err);
	if (r == 0)
		r = box_remove_all(err);
	if (r == 0)
		r = program_stop("api", STOP_MS, err);
	return r;
}
