/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/serve.h"

#include "base/log.h"
#include "base/mem.h"
#include "csi/controller.h"
#include "csi/identity.h"
#include "operator/volumes.h"

#include <errno.h>

/* Calls at a time: most of them wait for a worker or the API, and each has a stack. */
#define HANDLERS 32

struct csi_service {
	struct operator* op;
	struct csi_identity identity;
	struct volumes *volumes;
	struct csi_controller *controller;
	struct grpc_server *server;
};

static void enqueue(struct reconcile *r, const char *controller, const char *key, int delay_ms)
{
	runner_enqueue(r->runner, controller, key, delay_ms);
}

/* Who does not lead answers nothing but that: an orchestrator asks another one. */
static bool is_ready(void *userdata)
{
	const struct csi_service *s = userdata;
	int64_t epoch;
	return s->op->leads(s->op->leads_userdata, &epoch);
}

static const Csi__V1__PluginCapability__Service__Type services[] = {
	CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE,
	CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__UNKNOWN,
};

static int serve(struct csi_service *s, const char *socket, struct error *err)
{
	const struct grpc_service offered[] = {
		{ &csi__v1__identity__descriptor, csi_identity_methods, &s->identity },
		csi_controller_service(s->controller),
		{ 0 },
	};
	struct grpc_listen listen = { .unix_path = socket, .workers = HANDLERS };
	int rc = grpc_server_start(&listen, offered, &s->server, err);
	if (rc == 0)
		log_info("CSI is served on %s", socket);
	return rc;
}

int csi_service_start(struct operator* op, struct kube *kube, struct runner *runner,
		      const char *socket, struct csi_service **ret, struct error *err)
{
	struct csi_service *s = xcalloc(1, sizeof(*s));
	struct reconcile r = { .kube = kube,
			       .cache = runner_cache(runner),
			       .clock = kube->clock,
			       .app = op,
			       .enqueue = enqueue,
			       .runner = runner };

	s->op = op;
	s->identity = (struct csi_identity){
		.services = services,
		.expansion = CSI__V1__PLUGIN_CAPABILITY__VOLUME_EXPANSION__TYPE__ONLINE,
		.ready = is_ready,
		.userdata = s,
	};
	s->volumes = operator_volumes_new(&r);
	s->controller = csi_controller_new(s->volumes);
	int rc = serve(s, socket, err);
	if (rc < 0)
		csi_service_stop(s);
	else
		*ret = s;
	return rc;
}

void csi_service_stop(struct csi_service *s)
{
	if (!s)
		return;
	grpc_server_free(s->server);
	csi_controller_free(s->controller);
	operator_volumes_free(s->volumes);
	free(s);
}
