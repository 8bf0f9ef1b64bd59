/* SPDX-License-Identifier: Apache-2.0 */
/* quartermaster down: unmounts claims, stops the instance of this machine and, if asked to, forgets it. */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/paths.h"
#include "cli/term.h"
#include "cli/verbs.h"
#include "csi/node.h"
#include "hostvol/hostvol.h"
#include "local/box.h"
#include "local/client.h"
#include "local/config.h"
#include "local/demo.h"
#include "local/instance.h"
#include "local/supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

struct down {
	struct progress step;
	bool delete_data, force;
};

static int open_hostvol(struct clients_host *clients, struct hostvol **ret, struct error *err)
{
	cleanup_free char *state = state_path("hostvol"), *run = run_path("hostvol");
	struct hostvol_error failed = { 0 };
	int r = hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = state,
							.run_dir = run,
							.host = clients_host(clients) },
			     ret, &failed);

	return r < 0 ? error_set(err, -r, "%s", failed.message) : 0;
}

/* A claim that was mounted on a directory has that directory as its consumer. */
static int end_use(struct hostvol *h, const json_t *record, bool force, struct error *err)
{
	cleanup_free char *text = json_text(record);
	const char *consumer = jstr(record, "consumer");
	const char *argv[] = { "umount", consumer, force ? "--force" : NULL, NULL };
	struct hostvol_error failed = { 0 };
	char *gone = NULL;
	int r;

	if (consumer && consumer[0] == '/')
		return verb_run(verb_find("umount"), force ? 3 : 2, (char **)argv) == QM_OK
			       ? 0
			       : error_set(err, EBUSY,
					   "%s could not be unmounted; see who uses it: fuser -vm "
					   "%s; or add --force",
					   consumer, consumer);
	r = hostvol_disconnect_volume_json(h, text, force ? HOSTVOL_FORCE : 0, &gone, &failed);
	hostvol_free(gone);
	return r < 0 ? error_set(err, -r, "%s", failed.message) : 0;
}

/* What an orchestrator had published by the node service goes first; then all are mounts alike. */
static int unpublish(bool force, struct error *err)
{
	cleanup_free char *state = state_path("hostvol"), *run = run_path("hostvol");

	return csi_node_release_all(state, run, force, err);
}

static int unmount_claims(bool force, size_t *ret_count, struct error *err)
{
	struct clients_host *clients = NULL;
	struct hostvol *h = NULL;
	struct hostvol_error failed = { 0 };
	cleanup_json json_t *records = NULL;
	char *list = NULL;
	const json_t *record;
	size_t i;
	int r = local_clients_host(&clients, err);

	if (r == 0)
		r = open_hostvol(clients, &h, err);
	if (r < 0) {
		clients_host_free(clients);
		return r;
	}
	r = hostvol_list_json(h, NULL, &list, &failed);
	if (r < 0)
		error_set(err, -r, "%s", failed.message);
	else
		r = json_parse(list, strlen(list), &records, err);
	json_array_foreach (records, i, record)
		if (r == 0)
			r = end_use(h, record, force, err);
	if (r == 0)
		*ret_count = json_array_size(records);
	hostvol_free(list);
	hostvol_close(h);
	clients_host_free(clients);
	return r;
}

/* What boxes and the programs left in places of their own; only empty directories outside ours. */
static int forget(struct error *err)
{
	/* the kernel would take the bricks from another instance's boxes with their mount point */
	bool shared = box_dirs_in_use();
	int r;

	if (!shared)
		rmdir("/var/lib/quartermaster/bricks");
	if (instance_number() == 0)
		rmdir("/mnt/quartermaster-demo");
	r = local_config_forget(err);
	if (!shared)
		rmdir("/var/lib/quartermaster");
	return r;
}

static int run(struct down *down, struct error *err)
{
	struct local_config config;
	size_t mounts = 0;
	bool demo;
	int r = local_config_load(&config, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	demo = config.demo;
	local_config_done(&config);
	progress_begin(&down->step, stdout, "unmount claims");
	r = unpublish(down->force, err);
	if (r == 0)
		r = unmount_claims(down->force, &mounts, err);
	if (r == 0 && !down->force)
		r = local_clients_idle(err);
	if (r < 0)
		return r;
	progress_end(&down->step, true, "unmount claims: %zu", mounts);
	progress_begin(&down->step, stdout, "stop");
	r = instance_stop(err);
	if (r == 0)
		r = local_clients_stop(LOCAL_CLIENTS_ALL, down->force, err);
	if (r == 0 && demo)
		r = demo_remove(down->delete_data, err);
	if (r < 0)
		return r;
	progress_end(&down->step, true, "stop: operator, agents, GlusterFS, API");
	if (!down->delete_data)
		return 0;
	progress_begin(&down->step, stdout, "delete data");
	r = forget(err);
	if (r == 0)
		progress_end(
			&down->step, true, "delete data: %s",
			demo ? "nothing is left"
			     : "all is forgotten; your own disks and directories stay as they are");
	return r;
}

int cmd_down(struct session *s, const struct args *a)
{
	struct down down = { .delete_data = args_given(a, "delete-data"),
			     .force = args_given(a, "force") };
	struct error err = ERROR_INIT;

	(void)s;
	if (run(&down, &err) == 0)
		return QM_OK;
	if (down.step.text[0])
		progress_end(&down.step, false, NULL);
	fprintf(stderr, "%s\n", err.message);
	return QM_FAILED;
}
