/* SPDX-License-Identifier: Apache-2.0 */
/* list, recover, drivers, completion */
#include "cli.h"

#include "base/mem.h"

#include <getopt.h>
#include <stdio.h>
#include <strings.h>

/* Only --json; the status, or -1 to go on. */
static int parse_json_flag(struct cli *cli, int argc, char **argv, int words)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' }, { 0 } };
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt != 'j')
			return STATUS_USAGE;
		cli->json = true;
	}
	return argc - optind > words ? cli_usage(argv[0], "too many arguments") : -1;
}

static void print_record(const json_t *r)
{
	printf("%-28s %-10s %-13s %-20s %s\n", jstr(r, "volumeId"), jstr(r, "driverVolumeType"),
	       jstr(r, "state"), jstr(r, "consumer")[0] ? jstr(r, "consumer") : "-",
	       jstr(r, "path")[0] ? jstr(r, "path") : "-");
	if (!streq(jstr(r, "health"), "ok"))
		printf("  ! %s\n", jstr(r, "health"));
}

int cmd_list(struct cli *cli, int argc, char **argv)
{
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *records = NULL;
	struct hostvol *h;
	int status = parse_json_flag(cli, argc, argv, 1), r;
	json_t *record;
	size_t i;

	if (status >= 0)
		return status;
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_list_json(h, optind < argc ? argv[optind] : NULL, &text, &err);
	hostvol_close(h);
	if (r < 0)
		return cli_fail(r, &err);
	if (cli->json) {
		cli_print_json(text);
		return STATUS_OK;
	}
	if (json_parse(text, strlen(text), &records, NULL) < 0)
		return STATUS_FAILED;
	if (!json_array_size(records))
		return STATUS_OK;
	printf("%-28s %-10s %-13s %-20s %s\n", "VOLUME", "DRIVER", "STATE", "CONSUMER", "PATH");
	json_array_foreach (records, i, record)
		print_record(record);
	return STATUS_OK;
}

int cmd_recover(struct cli *cli, int argc, char **argv)
{
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *done = NULL;
	struct hostvol *h;
	int status = parse_json_flag(cli, argc, argv, 0), r;
	json_t *one;
	size_t i;

	if (status >= 0)
		return status;
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_recover_json(h, &text, &err);
	hostvol_close(h);
	if (r < 0)
		return cli_fail(r, &err);
	if (cli->json)
		cli_print_json(text);
	else if (json_parse(text, strlen(text), &done, NULL) >= 0)
		json_array_foreach (done, i, one)
			printf("%s %s%s%s\n", jstr(one, "action"), jstr(one, "volumeId"),
			       jstr(one, "message")[0] ? ": " : "", jstr(one, "message"));
	return r > 0 ? STATUS_FAILED : STATUS_OK;
}

/* ---- drivers -------------------------------------------------------------------------------- */

static void print_params(const json_t *params)
{
	const json_t *p;
	size_t i;

	json_array_foreach ((json_t *)params, i, p)
		printf("  %s%s%s\n      %s%s%s%s\n", jstr(p, "name"),
		       jbool(p, "required") ? " (required)" : "",
		       jbool(p, "secret") ? " (secret)" : "", jstr(p, "help"),
		       jstr(p, "default") ? " Default: " : "",
		       jstr(p, "default") ? jstr(p, "default") : "", jstr(p, "default") ? "." : "");
}

static int print_driver(const json_t *drivers, const char *name)
{
	const json_t *d;
	size_t i;

	json_array_foreach ((json_t *)drivers, i, d) {
		if (strcasecmp(jstr(d, "name"), name) != 0)
			continue;
		printf("%s\n%s\n", jstr(d, "name"), jstr(d, "help"));
		if (jbool(d, "supported")) {
			printf("\nParameters:\n");
			print_params(jget(d, "parameters"));
			print_params(jget(d, "commonParameters"));
		}
		return STATUS_OK;
	}
	fprintf(stderr, "hostvol: there is no driver \"%s\" (hostvol drivers lists them)\n", name);
	return STATUS_NOT_FOUND;
}

static int print_drivers(const json_t *drivers)
{
	const json_t *d;
	size_t i;

	printf("%-20s %-10s %s\n", "DRIVER", "SUPPORTED", "PROTOCOL");
	json_array_foreach ((json_t *)drivers, i, d)
		printf("%-20s %-10s %s\n", jstr(d, "name"),
		       jbool(d, "supported") ? "yes" : "not yet", jstr(d, "title"));
	return STATUS_OK;
}

int cmd_drivers(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "markdown", required_argument, NULL, 'm' },
						 { 0 } };
	struct hostvol_error err = { 0 };
	cleanup_free char *text = NULL;
	cleanup_json json_t *drivers = NULL;
	const char *dir = NULL;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			cli->json = true;
		else if (opt == 'm')
			dir = optarg;
		else
			return STATUS_USAGE;
	}
	r = hostvol_drivers_json(&text, &err);
	if (r < 0)
		return cli_fail(r, &err);
	if (cli->json) {
		cli_print_json(text);
		return STATUS_OK;
	}
	if (json_parse(text, strlen(text), &drivers, NULL) < 0)
		return STATUS_FAILED;
	if (dir)
		return markdown_write(drivers, dir);
	return optind < argc ? print_driver(drivers, argv[optind]) : print_drivers(drivers);
}

int cmd_completion(struct cli *cli, int argc, char **argv)
{
	if (argc != 2 || !streq(argv[1], "bash"))
		return cli_usage(argv[0], "for which shell? There is bash");
	printf("_hostvol()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words i\n"
	       "\twords='--state-dir --run-dir --timeout --verbose --version --help");
	for (const struct verb *v = verbs; v->name; v++)
		printf(" %s", v->name);
	printf("'\n\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tcase ${COMP_WORDS[i]} in\n");
	for (const struct verb *v = verbs; v->name; v++)
		printf("\t\t%s) words='%s --help%s' ;;\n", v->name, v->flags,
		       streq(v->name, "completion") ? " bash" : "");
	printf("\t\tesac\n\tdone\n"
	       "\tcase ${COMP_WORDS[*]} in\n"
	       "\t*' path '* | *' disconnect '* | *' list '* | *' extend '* | *' plan '*)\n"
	       "\t\twords+=\" $(hostvol list 2>/dev/null | awk 'NR > 1 && $1 != \"!\" { print $1 "
	       "}')\" ;;\n"
	       "\tesac\n"
	       "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
	       "complete -o default -F _hostvol hostvol\n");
	return STATUS_OK;
}
