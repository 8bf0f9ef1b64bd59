/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/kube.h"

/*
 * The certificates of one deployment, in Secrets that exist already (the manifests bring them,
 * empty), so that the operator may read and write these by name and create none:
 *   DEPLOYMENT-ca      ca.crt, ca.key: the operator's alone
 *   DEPLOYMENT-tls     ca.crt, tls.crt, tls.key: mounted into storage pods and agents
 *   DEPLOYMENT-client  likewise, of another name: mounted into the clients of volumes
 * They are made where they are missing, and renewed when two thirds of their time are over.
 */
struct certs_options {
	struct kube *kube;
	const char *ns, *deployment;
	const char *dir; /* where the operator's own workers find them: tls.crt, tls.key, ca.crt */
	const char *
		secure_file; /* GlusterFS uses TLS for its own connections where this file exists */
};
/* ret_id (optional, the caller frees): changes with the certificate. Daemons read theirs once, at start. */
int certs_ensure(const struct certs_options *options, char **ret_id, struct error *err);
/* That of clients; after certs_ensure. */
int certs_ensure_client(const struct certs_options *options, struct error *err);

/* The common name of the certificate of a role ("storage", "client"); caller frees. */
char *certs_common_name(const char *ns, const char *deployment, const char *role);
