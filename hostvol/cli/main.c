/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include "base/mem.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

const struct verb verbs[] = {
	{ "properties", cmd_properties, "", "what a storage backend may want to know of this host",
	  "  --multipath        multipath is wanted\n"
	  "  --local            volumes will be attached here\n"
	  "  --ip=ADDRESS       report this address\n"
	  "\nExample:\n  hostvol properties --multipath\n",
	  "--multipath --local --ip" },
	{ "connect", cmd_connect, "[FILE]", "connect a volume and print its path",
	  "  -f, --file=FILE    the ConnectionInfo, JSON or YAML; - is standard input\n"
	  "  --consumer=NAME    who uses the volume; it stays until each has disconnected it\n"
	  "  --json             print the attachment record instead of the path\n"
	  "\nExamples:\n  hostvol connect -f volume.yaml\n"
	  "  echo '{\"driverVolumeType\": \"NFS\", \"data\": {\"export\": \"192.0.2.10:/data\"}}' "
	  "| "
	  "hostvol connect -\n",
	  "--file --consumer --json" },
	{ "disconnect", cmd_disconnect, "VOLUMEID | -f FILE", "end the use of a volume",
	  "  -f, --file=FILE    a ConnectionInfo or an attachment record; - is standard input\n"
	  "  --consumer=NAME    the consumer that ends its use\n"
	  "  --force            although it is in use; unwritten data may be lost\n"
	  "  --json             print volumeId, consumer and path\n"
	  "\nExamples:\n  hostvol disconnect pvc-0f3a\n  hostvol disconnect -f volume.yaml\n",
	  "--file --consumer --force --json" },
	{ "path", cmd_path, "VOLUMEID", "print the path of a connected volume, verified again",
	  "\nExample:\n  hostvol path pvc-0f3a\n", "" },
	{ "list", cmd_list, "[VOLUMEID]", "what is connected, and whether it works",
	  "  --json             the attachment records\n\nExample:\n  hostvol list --json\n",
	  "--json" },
	{ "drivers", cmd_drivers, "[NAME]", "the drivers and their parameters",
	  "  --json             the whole table\n"
	  "  --markdown=DIR     write a page for each driver into DIR\n"
	  "\nExample:\n  hostvol drivers glusterfs\n",
	  "--json --markdown" },
	{ "recover", cmd_recover, "", "take up what died in the middle",
	  "  --json             print what was done as JSON\n\nExample:\n  hostvol recover\n",
	  "--json" },
	{ "extend", cmd_extend, "VOLUMEID", "make this host see that a volume has grown",
	  "  --json             print the size, and what came of each path\n"
	  "\nA file system on the volume stays as it is: grow it afterwards.\n"
	  "\nExample:\n  hostvol extend pvc-0f3a\n",
	  "--json" },
	{ "plan", cmd_plan, "VOLUMEID", "who uses a volume, and what disconnecting would do",
	  "  --consumer=NAME    the consumer that would end its use\n"
	  "  --json             print it as JSON\n"
	  "\nNothing is changed.\n\nExample:\n  hostvol plan pvc-0f3a\n",
	  "--consumer --json" },
	{ "repair", cmd_repair, "", "take away what was left behind, and no record names",
	  "  --dry-run          only say what is there\n"
	  "  --json             print it as JSON\n"
	  "\nWhat is in use is left alone. Exit status 1: something remains.\n"
	  "\nExample:\n  hostvol repair --dry-run\n",
	  "--dry-run --json" },
	{ "forget", cmd_forget, "VOLUMEID | -f FILE",
	  "give up a volume whose place another one has taken",
	  "  -f, --file=FILE    a ConnectionInfo, with the secrets that disconnecting needs\n"
	  "                     (SCALEIO); - is standard input\n"
	  "  --json             print the consumers whose use ended\n"
	  "\nA volume is known by the name that its disk or image had when it was first\n"
	  "connected; another one in its place is refused. This ends the use of the old one for\n"
	  "all its consumers, and the next connect takes what is there then. Nothing is written.\n"
	  "What is in use is refused, and so is a volume that works.\n"
	  "\nExamples:\n  hostvol forget pvc-0f3a\n  hostvol forget -f volume.yaml\n",
	  "--file --json" },
	{ "completion", cmd_completion, "bash", "print a completion script",
	  "\nExample:\n  . <(hostvol completion bash)\n", "" },
	{ 0 },
};

static void print_help(FILE *f)
{
	fprintf(f, "hostvol connects volumes of any protocol to this host.\n\n"
		   "Usage: hostvol [OPTIONS] COMMAND …\n\nCommands:\n");
	for (const struct verb *v = verbs; v->name; v++)
		fprintf(f, "  %-11s %-20s %s\n", v->name, v->arguments, v->summary);
	fprintf(f,
		"\nOptions:\n"
		"  --state-dir=DIR    records (%s)\n"
		"  --run-dir=DIR      locks (%s)\n"
		"  --timeout=SECONDS  for the whole command (60)\n"
		"  -v, --verbose      say what is done, on standard error\n"
		"  --version\n"
		"  -h, --help         also after a command\n"
		"\nExit status: 0 done, 1 failed, 2 bad input, 3 not connected or not found, 4 in "
		"use,\n"
		"5 timed out, 6 not supported.\n",
		HOSTVOL_DEFAULT_STATE_DIR, HOSTVOL_DEFAULT_RUN_DIR);
}

static void print_verb_help(const struct verb *v)
{
	printf("Usage: hostvol %s %s\n\n%c%s.\n%s%s", v->name, v->arguments,
	       v->summary[0] - 'a' + 'A', v->summary + 1, v->details[0] == ' ' ? "\n" : "",
	       v->details);
}

static void log_line(enum hostvol_log_level level, const char *message, void *userdata)
{
	bool verbose = *(const bool *)userdata;

	if (verbose || level >= HOSTVOL_LOG_WARNING)
		fprintf(stderr, "hostvol: %s\n", message);
}

int cli_usage(const char *verb, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "hostvol%s%s: ", verb ? " " : "", verb ? verb : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (hostvol%s%s --help)\n", verb ? " " : "", verb ? verb : "");
	return STATUS_USAGE;
}

int cli_fail(int r, const struct hostvol_error *err)
{
	fprintf(stderr, "hostvol: %s\n", err->message);
	switch (-r) {
	case EINVAL:
	case EEXIST:
		return STATUS_USAGE;
	case ENOENT:
	case ENOTCONN:
	case ESTALE:
		return STATUS_NOT_FOUND;
	case EBUSY:
		return STATUS_IN_USE;
	case ETIMEDOUT:
		return STATUS_TIMEOUT;
	case EOPNOTSUPP:
		return STATUS_UNSUPPORTED;
	default:
		return STATUS_FAILED;
	}
}

struct hostvol *cli_open(struct cli *cli)
{
	struct hostvol_error err = { 0 };
	struct hostvol *h = NULL;

	if (hostvol_open(&cli->options, &h, &err) < 0)
		fprintf(stderr, "hostvol: %s\n", err.message);
	return h;
}

/* The directories that QuarterMaster's own variables move, move here too. */
static void directories_from_environment(struct cli *cli)
{
	const char *state = getenv("QM_STATE_DIR"), *run = getenv("QM_RUN_DIR");

	if (state && *state)
		cli->options.state_dir = cli->state_dir = xasprintf("%s/hostvol", state);
	if (run && *run)
		cli->options.run_dir = cli->run_dir = xasprintf("%s/hostvol", run);
}

static int parse_timeout(const char *text, int *ret_ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds > 0) || seconds > 86400)
		return cli_usage(NULL, "--timeout=%s is not a number of seconds from 0 to 86400",
				 text);
	*ret_ms = (int)(seconds * 1000) + (seconds < 0.001);
	return STATUS_OK;
}

/* -1: go on with the verb at argv[optind]. */
static int parse_global(struct cli *cli, int argc, char **argv, bool *verbose)
{
	static const struct option options[] = { { "state-dir", required_argument, NULL, 's' },
						 { "run-dir", required_argument, NULL, 'r' },
						 { "timeout", required_argument, NULL, 't' },
						 { "verbose", no_argument, NULL, 'v' },
						 { "version", no_argument, NULL, 'V' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	int opt, status;

	while ((opt = getopt_long(argc, argv, "+vh", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			cli->options.state_dir = optarg;
			break;
		case 'r':
			cli->options.run_dir = optarg;
			break;
		case 't':
			status = parse_timeout(optarg, &cli->options.deadline_ms);
			if (status)
				return status;
			break;
		case 'v':
			*verbose = true;
			break;
		case 'V':
			printf("hostvol %s\n", hostvol_version());
			return STATUS_OK;
		case 'h':
			print_help(stdout);
			return STATUS_OK;
		default:
			return STATUS_USAGE;
		}
	}
	return -1;
}

static const struct verb *find_verb(const char *name)
{
	const char *names[16] = { 0 }, *near;
	size_t n = 0;

	for (const struct verb *v = verbs; v->name; v++) {
		if (streq(v->name, name))
			return v;
		names[n++] = v->name;
	}
	near = str_suggest(name, names);
	cli_usage(NULL, "there is no command \"%s\"%s%s%s", name, near ? ", did you mean \"" : "",
		  near ? near : "", near ? "\"?" : "");
	return NULL;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (streq(argv[i], "--help") || streq(argv[i], "-h"))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static bool verbose;
	struct cli cli = { .options = { .size = sizeof(struct hostvol_options),
					.log = log_line,
					.log_userdata = &verbose } };
	const struct verb *v;
	int status;

	directories_from_environment(&cli);
	status = parse_global(&cli, argc, argv, &verbose);
	if (status < 0 && optind >= argc) {
		print_help(stderr);
		status = STATUS_USAGE;
	}
	if (status < 0) {
		argc -= optind;
		argv += optind;
		optind = 0; /* getopt_long starts afresh */
		v = find_verb(argv[0]);
		if (!v) {
			status = STATUS_USAGE;
		} else if (wants_help(argc, argv)) {
			print_verb_help(v);
			status = STATUS_OK;
		} else {
			status = v->run(&cli, argc, argv);
		}
	}
	free(cli.state_dir);
	free(cli.run_dir);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "hostvol: cannot write to standard output\n");
		return STATUS_FAILED;
	}
	return status;
}
