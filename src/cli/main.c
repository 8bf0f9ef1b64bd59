/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/mem.h"

#include <malloc.h>

static int help(FILE *out)
{
	(void)fprintf(
		out, "QuarterMaster turns machines with disks into storage that can be claimed.\n\n"
		     "Usage: quartermaster VERB [ARGUMENT…] [FLAG…]\n\nVerbs:\n");
	for (const struct verb *v = verbs; v->name; v++)
		if (!v->internal)
			(void)fprintf(out, "  %-15s %s\n", v->name, v->summary);
	(void)fprintf(out,
		      "\nquartermaster VERB --help says more, with examples. A store of this "
		      "machine is found by itself;\n"
		      "KUBECONFIG or --kubeconfig names another API. QM_STATE_DIR moves the state "
		      "of this machine.\n\n%s",
		      exit_code_help);
	return QM_OK;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	const struct verb *v;

	(void)mallopt(M_ARENA_MAX, 2);
	if (!word) {
		(void)help(stderr);
		return QM_USAGE;
	}
	if (streq(word, "--help") || streq(word, "-h") || streq(word, "help")) {
		v = argc > 2 ? verb_find(argv[2]) : NULL;
		if (v)
			return verb_run(v, 2, (char *[]){ argv[2], (char *)"--help", NULL });
		return argc > 2 ? verb_unknown(argv[2]) : help(stdout);
	}
	v = verb_find(streq(word, "--version") ? "version" : word);
	return v ? verb_run(v, argc - 1, argv + 1) : verb_unknown(word);
}
