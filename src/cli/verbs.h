/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The command `quartermaster VERB …`. One table (verbs.c) names every verb with its flags: from it
 * come parsing, --help, suggestions and shell completion.
 */
enum exit_code {
	QM_OK = 0,
	QM_FAILED = 1,
	QM_USAGE = 2,
	QM_NOT_FOUND = 3,
	QM_REFUSED = 4, /* the API said no, or somebody else was faster */
	QM_NOT_REACHABLE = 5, /* the API does not answer */
	QM_TIMED_OUT = 6,
};

struct flag {
	char letter; /* 0: none */
	const char *name; /* "namespace" */
	const char *value; /* what stands for its value in help ("FILE"); NULL: it takes none */
	const char *help;
	const char *
		optional; /* value where only the name is given (--wait[=BOOL]); NULL: must be given */
};

#define FLAGS_MAX 24

struct args {
	const struct verb *verb;
	struct strv given[FLAGS_MAX]; /* by the flag's place in args_flags */
	char **words; /* borrowed from argv */
	size_t count;
};

struct session;

struct verb {
	const char *name;
	const char *usage; /* after the name: "KIND [NAME]" */
	const char *summary; /* one line */
	const char *help; /* more, or NULL */
	const char *example; /* lines to type, or NULL */
	const struct flag *flags; /* ended by name NULL, or NULL */
	bool connects; /* has --kubeconfig and --namespace, gets a connected session */
	bool internal; /* started by other verbs; not in the list of --help */
	size_t min_words, max_words;
	/* One of the two. Both return an exit code. */
	int (*command)(struct session *s, const struct args *a);
	int (*run)(int argc, char **argv); /* parses for itself; argv[0] is the verb */
};

extern const struct verb verbs[]; /* ended by name NULL */
extern const char *const exit_code_help;

const struct verb *verb_find(const char *name);
/* "no such verb …", with a suggestion, on standard error; returns QM_USAGE. */
int verb_unknown(const char *name);
void verb_help(const struct verb *v, FILE *out);
/* Parses, connects where the verb wants that, and runs it; argv[0] is the verb. An exit code. */
int verb_run(const struct verb *v, int argc, char **argv);

/* The verb's flag at index i, those that all connecting verbs have included; NULL at the end. */
const struct flag *args_flag(const struct verb *v, size_t i);
/* QM_OK, or QM_USAGE after a line on standard error. argv[0] is the verb. */
int args_parse(const struct verb *v, int argc, char **argv, struct args *ret);
void args_done(struct args *a);
/* By long name; the last one given, or NULL. */
const char *args_value(const struct args *a, const char *flag);
bool args_given(const struct args *a, const char *flag);
const struct strv *args_values(const struct args *a, const char *flag);
/* "true", "false": QM_USAGE on anything else. */
int args_bool(const struct args *a, const char *flag, bool fallback, bool *ret);
/* "90", "90s", "5m", "1h": milliseconds. */
int args_duration(const struct args *a, const char *flag, int64_t fallback_ms, int64_t *ret_ms);
/* One line on standard error: "quartermaster VERB: …; see …"; returns QM_USAGE. */
int usage_error(const struct verb *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

int cmd_apply(struct session *s, const struct args *a);
int cmd_completion(struct session *s, const struct args *a);
int cmd_delete(struct session *s, const struct args *a);
int cmd_describe(struct session *s, const struct args *a);
int cmd_explain(struct session *s, const struct args *a);
int cmd_get(struct session *s, const struct args *a);
int cmd_plan(struct session *s, const struct args *a);
int cmd_status(struct session *s, const struct args *a);
int cmd_support_bundle(struct session *s, const struct args *a);
int cmd_version(struct session *s, const struct args *a);
int cmd_wait(struct session *s, const struct args *a);

int cmd_crds(struct session *s, const struct args *a) __attribute__((weak));
int cmd_down(struct session *s, const struct args *a) __attribute__((weak));
int cmd_mount(struct session *s, const struct args *a) __attribute__((weak));
int cmd_umount(struct session *s, const struct args *a) __attribute__((weak));
int cmd_up(struct session *s, const struct args *a) __attribute__((weak));

/* Verbs of other parts. A program that is linked without one of them says that it lacks it. */
int verb_agent(int argc, char **argv) __attribute__((weak));
int verb_node(int argc, char **argv) __attribute__((weak));
int verb_pod_events(int argc, char **argv) __attribute__((weak));
int verb_storage(int argc, char **argv) __attribute__((weak));
int verb_api(int argc, char **argv) __attribute__((weak));
int verb_operator(int argc, char **argv) __attribute__((weak));
int verb_supervise(int argc, char **argv) __attribute__((weak));
