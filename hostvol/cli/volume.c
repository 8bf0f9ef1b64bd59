/* SPDX-License-Identifier: Apache-2.0 */
/* properties, connect, disconnect, path */
#include "cli.h"

#include "base/mem.h"

#include <getopt.h>
#include <stdio.h>

static void close_handle(struct hostvol **h)
{
	hostvol_close(*h);
}
#define cleanup_handle __attribute__((cleanup(close_handle)))

int cmd_properties(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "multipath", no_argument, NULL, 'm' },
						 { "local", no_argument, NULL, 'l' },
						 { "ip", required_argument, NULL, 'i' },
						 { 0 } };
	struct hostvol_error err = { 0 };
	cleanup_handle struct hostvol *h = NULL;
	cleanup_free char *text = NULL;
	bool multipath = false, local = false;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'm')
			multipath = true;
		else if (opt == 'l')
			local = true;
		else if (opt == 'i')
			cli->options.ip = optarg;
		else
			return STATUS_USAGE;
	}
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_get_connector_properties_json(h, multipath, local, &text, &err);
	if (r < 0)
		return cli_fail(r, &err);
	cli_print_json(text);
	return STATUS_OK;
}

struct volume_options {
	const char *file, *consumer, *volume_id;
	bool json;
	unsigned flags;
};

/* A word beside the options is a volume id, or for connect the file. */
static int parse_volume(int argc, char **argv, struct volume_options *o)
{
	static const struct option options[] = { { "file", required_argument, NULL, 'f' },
						 { "consumer", required_argument, NULL, 'c' },
						 { "json", no_argument, NULL, 'j' },
						 { "force", no_argument, NULL, 'F' },
						 { 0 } };
	bool is_connect = streq(argv[0], "connect");
	int opt;

	while ((opt = getopt_long(argc, argv, "f:", options, NULL)) != -1) {
		if (opt == 'f')
			o->file = optarg;
		else if (opt == 'c')
			o->consumer = optarg;
		else if (opt == 'j')
			o->json = true;
		else if (opt == 'F' && !is_connect)
			o->flags |= HOSTVOL_FORCE;
		else
			return opt == 'F' ? cli_usage(argv[0], "--force is for disconnect")
					  : STATUS_USAGE;
	}
	if (optind < argc) {
		if (o->file || optind + 1 < argc)
			return cli_usage(argv[0], "too many arguments");
		*(is_connect ? &o->file : &o->volume_id) = argv[optind];
	}
	if (!o->file && !o->volume_id)
		return cli_usage(argv[0], is_connect ? "which connection? Give -f FILE"
						     : "which volume? Give its id, or -f FILE");
	return STATUS_OK;
}

int cmd_connect(struct cli *cli, int argc, char **argv)
{
	struct volume_options o = { 0 };
	struct hostvol_error err = { 0 };
	cleanup_handle struct hostvol *h = NULL;
	cleanup_free char *input = NULL, *text = NULL;
	cleanup_json json_t *record = NULL;
	int status = parse_volume(argc, argv, &o), r;

	if (status)
		return status;
	input = cli_read_connection(o.file, o.consumer);
	if (!input)
		return STATUS_USAGE;
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_connect_volume_json(h, input, &text, &err);
	if (r < 0)
		return cli_fail(r, &err);
	if (r > 0)
		fprintf(stderr,
			"hostvol: connected already, with other options, which stay in force\n");
	if (o.json) {
		cli_print_json(text);
	} else if (json_parse(text, strlen(text), &record, NULL) >= 0) {
		puts(jstr(record, "path"));
	}
	return STATUS_OK;
}

static char *volume_reference(const struct volume_options *o)
{
	cleanup_json json_t *ref = json_pack("{s:s, s:s}", "volumeId", o->volume_id, "consumer",
					     o->consumer ? o->consumer : "");

	return json_text(ref);
}

int cmd_disconnect(struct cli *cli, int argc, char **argv)
{
	struct volume_options o = { 0 };
	struct hostvol_error err = { 0 };
	cleanup_handle struct hostvol *h = NULL;
	cleanup_free char *input = NULL, *text = NULL;
	cleanup_json json_t *done = NULL;
	int status = parse_volume(argc, argv, &o), r;

	if (status)
		return status;
	input = o.file ? cli_read_connection(o.file, o.consumer) : volume_reference(&o);
	if (!input)
		return STATUS_USAGE;
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_disconnect_volume_json(h, input, o.flags, &text, &err);
	if (r < 0)
		return cli_fail(r, &err);
	if (r > 0)
		fprintf(stderr, "hostvol: was not connected\n");
	if (o.json)
		cli_print_json(text);
	else if (r == 0 && json_parse(text, strlen(text), &done, NULL) >= 0)
		puts(jstr(done, "path"));
	return STATUS_OK;
}

int cmd_path(struct cli *cli, int argc, char **argv)
{
	struct hostvol_error err = { 0 };
	cleanup_handle struct hostvol *h = NULL;
	cleanup_free char *path = NULL;
	int r;

	if (argc != 2)
		return cli_usage(argv[0], "which volume? Give its id");
	h = cli_open(cli);
	if (!h)
		return STATUS_USAGE;
	r = hostvol_get_device_path(h, argv[1], &path, &err);
	if (r < 0)
		return cli_fail(r, &err);
	puts(path);
	return STATUS_OK;
}
