/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"
#include "kube/kube.h"

/* The parts of kube_config_find, and what they share. */

/* "HOST[:PORT][/]", HOST perhaps in brackets. -EINVAL for anything else. */
int config_authority(const char *text, int default_port, char **ret_host, int *ret_port);
/* Base64 to text (-EINVAL) and back; the caller frees. */
int config_base64(const char *text, char **ret);
char *config_base64_text(const char *text);

/* ---- kubeconfig.c: kubeconfig files as kubectl merges them ------------------------------------ */
/* Files that do not exist are passed over; -ENOENT where none does. context NULL: the current one. */
int config_from_files(const struct strv *paths, const char *context, struct kube_config *ret,
		      struct error *err);

/* ---- incluster.c: what every pod is given ----------------------------------------------------- */
/* -ENOENT where this is no pod. root: "" or the directory that stands for /. */
int config_in_cluster(const char *root, struct kube_config *ret, struct error *err);

/* ---- proxy.c ---------------------------------------------------------------------------------- */
/* From "http://[USER:PASSWORD@]HOST[:PORT]"; where says whose it is. The URL may hold a secret and is in no error. */
int proxy_set(struct kube_config *c, const char *url, const char *where, struct error *err);
/* From HTTPS_PROXY and NO_PROXY; this machine itself is never reached by a proxy. */
int proxy_from_environment(struct kube_config *c, struct error *err);
/* Whether NO_PROXY's list has the host: "*", names (and what is below them), addresses, networks, each perhaps with a port. */
bool proxy_excepts(const char *list, const char *host, int port);

/* ---- exec.c: credentials that a program gives ------------------------------------------------- */
struct exec_result {
	char *token, *cert_pem, *key_pem; /* each may be NULL */
	int64_t expires_ms; /* wall clock; INT64_MAX: never */
};
/* Whether it can be run at all, when a kubeconfig is read: path is that file's, for errors. */
int exec_check(const json_t *exec, const char *path, struct error *err);
/* Errors name the program, and nothing that it was given or said. */
int exec_run(const json_t *exec, struct exec_result *ret, struct error *err);
void exec_result_done(struct exec_result *r);
