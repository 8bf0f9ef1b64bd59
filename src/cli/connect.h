/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/verbs.h"
#include "kube/kube.h"

/* A verb's talk with the API. Tests make one of a store in memory. */
struct session {
	struct kube *kube;
	char *ns; /* -n, or the kubeconfig's */
	char *where; /* the API's address, for people */
	char *socket; /* the same for connecting, or */
	char *host;
	int port;
	FILE *out; /* what was asked for; complaints go to standard error */
};

/* QM_OK, or an exit code after a line on standard error. */
int session_open(const struct args *a, struct session *ret);
void session_done(struct session *s);
/* The exit code that an error of the API means; QM_OK for 0 and more. */
int session_code(int rc);
/* Says why a call failed and what to do next, on standard error; returns the exit code. */
int session_fail(const struct session *s, int rc, const struct error *err);

/* The kind that a person means, or NULL after a line on standard error with a suggestion. */
const struct kind *kind_of_word(const char *word);
/* NULL for kinds that are in no namespace. */
const char *session_ns(const struct session *s, const struct kind *k);
