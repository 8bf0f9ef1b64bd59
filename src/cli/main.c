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

/* Verbs that parse for themselves need not know --help. */
static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc && !streq(argv[i], "--"); i++)
		if (streq(argv[i], "--help") || streq(argv[i], "-h"))
			return true;
	return false;
}

static int run_command(const struct verb *v, int argc, char **argv)
{
	struct session s = { .out = stdout };
	struct args a;
	int code = args_parse(v, argc, argv, &a);

	if (code != QM_OK)
		return code;
	if (v->connects)
		code = session_open(&a, &s);
	if (code == QM_OK)
		code = v->command(&s, &a);
	session_done(&s);
	args_done(&a);
	/* a full disk or a closed pipe is a failure as well */
	if (fflush(stdout) != 0 && code == QM_OK)
		code = QM_FAILED;
	return code;
}

int main(int argc, char **argv)
{
	const struct verb *v;

	(void)mallopt(M_ARENA_MAX, 2);
	if (argc < 2) {
		(void)help(stderr);
		return QM_USAGE;
	}
	if (streq(argv[1], "--help") || streq(argv[1], "-h") || streq(argv[1], "help")) {
		v = argc > 2 ? verb_find(argv[2]) : NULL;
		if (v)
			verb_help(v, stdout);
		return v ? QM_OK : argc > 2 ? verb_unknown(argv[2]) : help(stdout);
	}
	v = verb_find(streq(argv[1], "--version") ? "version" : argv[1]);
	if (!v)
		return verb_unknown(argv[1]);
	argv[1] = (char *)v->name;
	if (asks_for_help(argc - 1, argv + 1)) {
		verb_help(v, stdout);
		return QM_OK;
	}
	if (v->command)
		return run_command(v, argc - 1, argv + 1);
	if (v->run)
		return v->run(argc - 1, argv + 1);
	(void)fprintf(stderr, "quartermaster: this program was built without the verb \"%s\"\n",
		      v->name);
	return QM_USAGE;
}
