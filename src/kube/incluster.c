/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

int config_in_cluster(const char *root, struct kube_config *ret, struct error *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	cleanup_free char *token = xasprintf("%s" ACCOUNT "/token", root);
	cleanup_free char *ca = xasprintf("%s" ACCOUNT "/ca.crt", root);
	cleanup_free char *ns_path = xasprintf("%s" ACCOUNT "/namespace", root);
	cleanup_free char *ns = NULL;
	int rc;

	if (!host || !*host || !port || !*port || access(token, F_OK) < 0)
		return -ENOENT;
	ret->port = atoi(port);
	if (ret->port <= 0 || ret->port > 65535)
		return error_set(err, EINVAL, "KUBERNETES_SERVICE_PORT is not a port: \"%s\"",
				 port);
	rc = file_read(ca, 1 << 20, &ret->ca_pem, NULL, err);
	if (rc < 0) /* not -ENOENT: this is a pod, if a broken one */
		return error_set(err, EINVAL, "cannot read the cluster's CA %s: %s", ca,
				 strerror(-rc));
	if (file_read(ns_path, 1024, &ns, NULL, NULL) == 0)
		ns[strcspn(ns, "\r\n")] = 0;
	ret->ns = xstrdup(ns && *ns ? ns : "default");
	ret->host = xstrdup(host);
	ret->ca_file = TAKE_PTR(ca);
	ret->token_file = TAKE_PTR(token);
	return 0;
}
