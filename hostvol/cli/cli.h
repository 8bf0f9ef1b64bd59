/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "hostvol/hostvol.h"

/* Exit statuses of the command, also in its manual page. */
enum status {
	STATUS_OK,
	STATUS_FAILED,
	STATUS_USAGE, /* bad command line or bad connection info */
	STATUS_NOT_FOUND, /* not connected, no such device or directory */
	STATUS_IN_USE,
	STATUS_TIMEOUT,
	STATUS_UNSUPPORTED,
};

struct cli {
	struct hostvol_options options;
	char *state_dir, *run_dir; /* where the environment moves them */
	bool json;
};

struct verb {
	const char *name;
	int (*run)(struct cli *cli, int argc,
		   char **argv); /* argv[0] is the verb; returns a status */
	const char *arguments, *summary;
	const char *details; /* options and examples for --help */
	const char *flags; /* for completion */
};

extern const struct verb verbs[]; /* ended by name NULL */

int cmd_properties(struct cli *cli, int argc, char **argv);
int cmd_connect(struct cli *cli, int argc, char **argv);
int cmd_disconnect(struct cli *cli, int argc, char **argv);
int cmd_path(struct cli *cli, int argc, char **argv);
int cmd_list(struct cli *cli, int argc, char **argv);
int cmd_drivers(struct cli *cli, int argc, char **argv);
int cmd_recover(struct cli *cli, int argc, char **argv);
int cmd_extend(struct cli *cli, int argc, char **argv);
int cmd_plan(struct cli *cli, int argc, char **argv);
int cmd_repair(struct cli *cli, int argc, char **argv);
int cmd_forget(struct cli *cli, int argc, char **argv);
int cmd_completion(struct cli *cli, int argc, char **argv);

/* The handle, opened with what the command line said; NULL: said so on standard error. */
struct hostvol *cli_open(struct cli *cli);
/* Prints the error; the status that stands for it. */
int cli_fail(int r, const struct hostvol_error *err);
int cli_usage(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads a connection from a file or "-" (JSON or YAML); text to be freed, or NULL: said so. */
char *cli_read_connection(const char *file, const char *consumer);
/* Prints JSON text: indented on a terminal, compact otherwise. */
void cli_print_json(const char *text);
/* Markdown of the driver table below a directory. */
int markdown_write(const json_t *drivers, const char *dir);
