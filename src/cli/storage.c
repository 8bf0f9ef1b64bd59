/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/storage.h"
#include "base/log.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

int verb_storage(int argc, char **argv);

static const char usage[] =
	"Usage: quartermaster storage [--address IP] [--secure]\n"
	"\n"
	"The first process of a storage pod: runs glusterd, starts it again when it ends while "
	"its\n"
	"bricks go on, and ends them all when it is told to. It is started by the platform, not by "
	"hand.\n"
	"\n"
	"  --address IP  listen there only (default: on all addresses)\n"
	"  --secure      glusterd's own connections use TLS\n"
	"\n"
	"Example: quartermaster storage --address 10.10.10.100 --secure\n";

/* 0, > 0: help was asked for, < 0: not understood. */
static int parse(int argc, char **argv, struct storage_options *ret)
{
	static const struct option options[] = {
		{ "address", required_argument, NULL, 'a' },
		{ "secure", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	optind = 0; /* the command line was looked at before us */
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'a')
			ret->address = optarg;
		else if (c == 's')
			ret->secure = true;
		else
			return c == 'h' ? 1 : -1;
	}
	return optind < argc ? -1 : 0;
}

int verb_storage(int argc, char **argv)
{
	struct storage_options o = { .config_path = "/run/quartermaster/glusterd.vol" };
	struct error err = ERROR_INIT;
	int rc = parse(argc, argv, &o);

	if (rc != 0) {
		fputs(usage, rc > 0 ? stdout : stderr);
		return rc > 0 ? EXIT_SUCCESS : 2;
	}
	log_init("storage", LOG_LEVEL_INFO);
	rc = storage_run(&o, &err);
	if (rc < 0)
		log_err("%s", error_text(&err, rc));
	return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
