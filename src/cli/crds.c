/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/mem.h"
#include "operator/crd.h"
#include "schema/crd.h"

/* With a connection of its own: printing needs none. */
static int register_crds(const char *kubeconfig, struct error *err)
{
	struct kube_config config = { 0 };
	struct kube *kube = NULL;
	int rc = kube_config_load(kubeconfig, &config, err);

	if (rc == 0)
		rc = kube_connect(&config, &kube, err);
	if (rc == 0)
		rc = crds_ensure(kube, err);
	if (kube)
		kube_free(kube);
	kube_config_done(&config);
	return rc;
}

int cmd_crds(struct session *s, const struct args *a)
{
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;
	int rc;

	if (args_given(a, "register")) {
		rc = register_crds(args_value(a, "kubeconfig"), &err);
		return rc < 0 ? session_fail(s, rc, &err) : QM_OK;
	}
	text = schema_crds_yaml(args_given(a, "snapshots"));
	(void)fputs(text, s->out);
	return QM_OK;
}
