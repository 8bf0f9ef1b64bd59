/* SPDX-License-Identifier: Apache-2.0 */
/* extend, plan, repair, forget */
#include "cli.h"

#include "base/mem.h"

#include <getopt.h>
#include <stdio.h>

struct change_options {
	const char *consumer, *volume_id, *file;
	bool dry_run;
};

/* The status, or -1 to go on. */
static int parse(struct cli *cli, int argc, char **argv, struct change_options *o)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "consumer", required_argument, NULL, 'c' },
						 { "dry-run", no_argument, NULL, 'n' },
						 { "file", required_argument, NULL, 'f' },
						 { 0 } };
	bool repair = streq(argv[0], "repair"), plan = streq(argv[0], "plan"),
	     forget = streq(argv[0], "forget");
	int opt;

	while ((opt = getopt_long(argc, argv, forget ? "f:" : "", options, NULL)) != -1) {
		if (opt == 'j')
			cli->json = true;
		else if (opt == 'c' && plan)
			o->consumer = optarg;
		else if (opt == 'n' && repair)
			o->dry_run = true;
		else if (opt == 'f' && forget)
			o->file = optarg;
		else
			return opt == '?' ? STATUS_USAGE : cli_usage(argv[0], "no such option");
	}
	if (argc - optind > (!repair && !o->file))
		return cli_usage(argv[0], "too many arguments");
	if (!repair && !o->file && optind == argc)
		return cli_usage(argv[0], "which volume? Give its id%s",
				 forget ? ", or -f FILE" : "");
	o->volume_id = argv[optind];
	return -1;
}

static void print_paths(const json_t *result)
{
	const json_t *p;
	size_t i;

	json_array_foreach ((json_t *)jget(result, "paths"), i, p)
		printf("%-16s %lld -> %lld%s%s\n", jstr(p, "device"), (long long)jint(p, "before"),
		       (long long)jint(p, "after"), jstr(p, "error") ? "  ! " : "",
		       jstr(p, "error") ? jstr(p, "error") : "");
	if (jget(result, "size"))
		printf("%s %lld\n", jstr(result, "path"), (long long)jint(result, "size"));
}

int cmd_extend(struct cli *cli, int argc, char **argv)
{
	struct change_options o = { 0 };
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *result = NULL;
	struct hostvol *h;
	int status = parse(cli, argc, argv, &o), r;

	if (status >= 0)
		return status;
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_extend_volume_json(h, o.volume_id, &text, &err);
	hostvol_close(h);
	/* with an error too: what came of each path */
	if (text && cli->json)
		cli_print_json(text);
	else if (text && json_parse(text, strlen(text), &result, NULL) >= 0)
		print_paths(result);
	return r < 0 ? cli_fail(r, &err) : STATUS_OK;
}

static void print_list(const char *title, const json_t *list)
{
	const json_t *word;
	size_t i;

	json_array_foreach ((json_t *)list, i, word)
		printf("%-8s %s\n", i ? "" : title, json_string_value(word));
}

static char *reference(const struct change_options *o)
{
	cleanup_json json_t *ref = json_pack("{s:s, s:s}", "volumeId", o->volume_id, "consumer",
					     o->consumer ? o->consumer : "");

	return json_text(ref);
}

int cmd_plan(struct cli *cli, int argc, char **argv)
{
	struct change_options o = { 0 };
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL, *input = NULL;
	cleanup_json json_t *result = NULL;
	struct hostvol *h;
	int status = parse(cli, argc, argv, &o), r;

	if (status >= 0)
		return status;
	input = reference(&o);
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_plan_json(h, input, &text, &err);
	hostvol_close(h);
	if (r < 0)
		return cli_fail(r, &err);
	if (cli->json) {
		cli_print_json(text);
	} else if (json_parse(text, strlen(text), &result, NULL) >= 0) {
		printf("%-8s %s\n", "path", jstr(result, "path"));
		print_list("used by", jget(result, "usedBy"));
		print_list("steps", jget(result, "steps"));
	}
	return STATUS_OK;
}

int cmd_repair(struct cli *cli, int argc, char **argv)
{
	struct change_options o = { 0 };
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *findings = NULL;
	struct hostvol *h;
	int status = parse(cli, argc, argv, &o), r;
	const json_t *f;
	size_t i;

	if (status >= 0)
		return status;
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_audit_json(h, o.dry_run ? 0 : HOSTVOL_REPAIR, &text, &err);
	hostvol_close(h);
	if (r < 0)
		return cli_fail(r, &err);
	if (cli->json)
		cli_print_json(text);
	else if (json_parse(text, strlen(text), &findings, NULL) >= 0)
		json_array_foreach (findings, i, f)
			printf("%-10s %-40s %-10s %s\n", jstr(f, "kind"), jstr(f, "name"),
			       jstr(f, "action"), jstr(f, "message"));
	return r > 0 ? STATUS_FAILED : STATUS_OK;
}

int cmd_forget(struct cli *cli, int argc, char **argv)
{
	struct change_options o = { 0 };
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL, *input = NULL;
	cleanup_json json_t *gone = NULL;
	struct hostvol *h;
	int status = parse(cli, argc, argv, &o), r;
	const json_t *g;
	size_t i;

	if (status >= 0)
		return status;
	input = o.file ? cli_read_connection(o.file, NULL) : reference(&o);
	h = input ? cli_open(cli) : NULL;
	if (!h)
		return STATUS_USAGE;
	r = hostvol_forget_json(h, input, &text, &err);
	hostvol_close(h);
	if (r < 0)
		return cli_fail(r, &err);
	if (cli->json)
		cli_print_json(text);
	else if (json_parse(text, strlen(text), &gone, NULL) >= 0)
		json_array_foreach (gone, i, g)
			printf("%s %s\n", jstr(g, "volumeId"), jstr(g, "consumer"));
	return STATUS_OK;
}
