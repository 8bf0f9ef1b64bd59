/* SPDX-License-Identifier: Apache-2.0 */
/* quartermaster supervise: keeps the API and the operator of this machine's instance running. */
#include "base/log.h"
#include "cli/verbs.h"
#include "local/program.h"
#include "local/supervisor.h"

#include <stdio.h>
#include <stdlib.h>

int verb_supervise(int argc, char **argv)
{
	struct local_config config;
	struct error err = ERROR_INIT;
	int r;

	(void)argv;
	if (argc > 1) {
		fputs("Usage: quartermaster supervise\n\n"
		      "Keeps the API and the operator of this machine running. It is started by\n"
		      "\"quartermaster up\" and takes no options.\n",
		      stdout);
		return EXIT_SUCCESS;
	}
	log_init("supervise", LOG_LEVEL_INFO);
	r = program_lock("supervise", &err);
	if (r == 0)
		r = local_config_load(&config, &err);
	if (r == 0) {
		r = supervisor_run(&config, &err);
		local_config_done(&config);
	}
	if (r < 0)
		log_err("%s", err.message);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
