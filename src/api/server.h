/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/store.h"
#include "h2/h2.h"

/*
 * The embedded API over HTTP/2: Kubernetes' REST on a unix socket and on loopback with TLS.
 * Every request needs a bearer token; a token has a name and a role:
 *   admin     everything
 *   operator  everything but Secrets of other namespaces than its own
 *   agent     reads StorageNode, StoragePool, PersistentVolume, Lease; writes the status of the StorageNode
 *             whose status.nodeName is its node, never its nodeName, plan or address; the status of
 *             StoragePools; Leases named cluster-* and its own heartbeat (node-NAME, for the
 *             token agent-NAMESPACE-NAME); Events
 *   reader    get, list, watch of everything but Secrets
 * /healthz, /readyz, /livez, /version answer without a token.
 */
struct api_server;

struct api_options {
	const char *state_dir; /* api.db, tls.crt, tls.key, ca.crt, tokens.json (0600) */
	const char *unix_path;
	int tcp_port; /* 0: any free; remembered in state_dir for the next start */
};
int api_server_start(const struct api_options *options, struct api_server **ret, struct error *err);
int api_server_port(const struct api_server *s);
void api_server_stop(struct api_server *s);

/*
 * Tokens live in state_dir/tokens.json; made once, kept over restarts. For role agent, node is the
 * node's name; for role operator its namespace (NULL: default). Gives the token (caller frees). Works while the server runs (it rereads the file).
 */
int api_token(const char *state_dir, const char *name, const char *role, const char *node,
	      char **ret, struct error *err);
/* Writes a kubeconfig (0600) for that token: over TLS on loopback, as stock kubectl needs it; our own
 * client finds the unix socket in the extension "quartermaster.storage/socket" and prefers it. */
int api_write_kubeconfig(const char *state_dir, const char *unix_path, int port, const char *token,
			 const char *path, struct error *err);
