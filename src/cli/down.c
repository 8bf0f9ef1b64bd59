/* SPDX-License-Identifier: Apache-2.0 */
/* quartermaster down: unmounts claims, stops the instance of this machine and, if asked to, forgets it. */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/steps.h"
#include "cli/verbs.h"
#include "hostvol/hostvol.h"
#include "local/config.h"
#include "local/demo.h"
#include "local/paths.h"
#include "local/supervisor.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static const char help[] =
	"Usage: quartermaster down [--delete-data] [--force]\n"
	"\n"
	"Unmounts the claims that are mounted here and stops everything: operator, agents, GlusterFS,\n"
	"API, namespaces. The data and the settings stay; \"quartermaster up\" goes on with them.\n"
	"\n"
	"      --delete-data     also remove the settings and, of the demonstration, the disks. Your own\n"
	"                        devices and directories are not touched: their bricks stay as they are\n"
	"      --force           unmount claims although programs still use them\n"
	"\n"
	"Example:\n"
	"  quartermaster down && quartermaster up\n";

struct down {
	bool delete_data, force;
};

static int open_hostvol(struct hostvol **ret, struct error *err)
{
	cleanup_free char *state = state_path("hostvol"), *run = run_path("hostvol");
	struct hostvol_error failed = { 0 };
	int r = hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = state,
							.run_dir = run },
			     ret, &failed);

	return r < 0 ? error_set(err, -r, "%s", failed.message) : 0;
}

/* A claim that was mounted on a directory has that directory as its consumer. */
static int end_use(struct hostvol *h, const json_t *record, bool force, struct error *err)
{
	cleanup_free char *text = json_text(record);
	const char *consumer = jstr(record, "consumer");
	char *argv[] = { "umount", (char *)consumer, force ? "--force" : NULL, NULL };
	struct hostvol_error failed = { 0 };
	char *gone = NULL;
	int r;

	if (consumer && consumer[0] == '/') {
		optind = 0;
		return verb_umount(force ? 3 : 2, argv) == EXIT_SUCCESS ?
			       0 :
			       error_set(err, EBUSY, "%s could not be unmounted; see who uses it: fuser -vm %s; or add --force",
					 consumer, consumer);
	}
	r = hostvol_disconnect_volume_json(h, text, force ? HOSTVOL_FORCE : 0, &gone, &failed);
	hostvol_free(gone);
	return r < 0 ? error_set(err, -r, "%s", failed.message) : 0;
}

static int unmount_claims(bool force, size_t *ret_count, struct error *err)
{
	struct hostvol *h = NULL;
	struct hostvol_error failed = { 0 };
	cleanup_json json_t *records = NULL;
	char *list = NULL;
	const json_t *record;
	size_t i;
	int r = open_hostvol(&h, err);

	if (r < 0)
		return r;
	r = hostvol_list_json(h, NULL, &list, &failed);
	if (r < 0)
		error_set(err, -r, "%s", failed.message);
	else
		r = json_parse(list, strlen(list), &records, err);
	json_array_foreach(records, i, record)
		if (r == 0)
			r = end_use(h, record, force, err);
	if (r == 0)
		*ret_count = json_array_size(records);
	hostvol_free(list);
	hostvol_close(h);
	return r;
}

/* What boxes and the programs left in places of their own; only empty directories outside ours. */
static int forget(struct error *err)
{
	int r = remove_tree(state_dir(), err);

	if (r == 0)
		r = remove_tree(run_dir(), err);
	rmdir("/var/lib/quartermaster/bricks");
	rmdir("/var/lib/quartermaster");
	if (instance_number() == 0)
		rmdir("/mnt/quartermaster-demo");
	return r == -ENOENT ? 0 : r;
}

static int run(const struct down *down, struct error *err)
{
	struct local_config config;
	size_t mounts;
	bool demo;
	int r = local_config_load(&config, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	demo = config.demo;
	local_config_done(&config);
	step_begin("unmount claims");
	r = unmount_claims(down->force, &mounts, err);
	if (r < 0)
		return r;
	step_done("%zu mounted", mounts);
	step_begin("stop");
	r = instance_stop(err);
	if (r == 0 && demo)
		r = demo_remove(down->delete_data, err);
	if (r < 0)
		return r;
	step_done("API, operator, agents, GlusterFS");
	if (!down->delete_data)
		return 0;
	step_begin("delete data");
	r = forget(err);
	if (r == 0)
		step_done("nothing is left");
	return r;
}

int verb_down(int argc, char **argv)
{
	static const struct option options[] = {
		{ "delete-data", no_argument, NULL, 'd' },
		{ "force", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct down down = { 0 };
	struct error err = ERROR_INIT;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1)
		switch (c) {
		case 'd':
			down.delete_data = true;
			break;
		case 'f':
			down.force = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_SUCCESS;
		default:
			return EXIT_USAGE;
		}
	if (run(&down, &err) == 0)
		return EXIT_SUCCESS;
	step_failed(&err);
	return EXIT_FAILURE;
}
