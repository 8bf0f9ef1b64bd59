/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/registration.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "csi/identity.h"
#include "proto/pluginregistration.pb-c.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

struct registration {
	char *path, *endpoint;
	struct grpc_server *server;
	atomic_bool refused;
};

static int get_info(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	static char *versions[] = { (char *)"1.0.0" };
	const struct registration *r = grpc_call_userdata(call);
	Pluginregistration__PluginInfo *info = reply;

	info->type = (char *)"CSIPlugin";
	info->name = (char *)CSI_DRIVER_NAME;
	info->endpoint = grpc_call_strdup(call, r->endpoint);
	info->supported_versions = versions;
	info->n_supported_versions = 1;
	return 0;
}

static int notify_status(struct grpc_call *call, const void *request, void *reply,
			 struct error *err)
{
	const Pluginregistration__RegistrationStatus *status = request;
	struct registration *r = grpc_call_userdata(call);

	if (status->plugin_registered) {
		log_info("kubelet has registered the driver");
		return 0;
	}
	log_err("kubelet refused the driver: %.300s", status->error);
	atomic_store(&r->refused, true);
	kill(getpid(), SIGTERM);
	return 0;
}

static const struct grpc_method methods[] = {
	{ "GetInfo", get_info },
	{ "NotifyRegistrationStatus", notify_status },
	{ 0 },
};

int registration_start(const char *kubelet_dir, const char *endpoint, struct registration **ret,
		       struct error *err)
{
	cleanup_free char *dir = xasprintf("%s/plugins_registry", kubelet_dir);
	struct registration *r;
	int rc = mkdir_parents(dir, 0750, err);

	if (rc < 0)
		return rc;
	r = xcalloc(1, sizeof(*r));
	r->path = xasprintf("%s/" CSI_DRIVER_NAME "-reg.sock", dir);
	r->endpoint = xstrdup(endpoint);
	rc = grpc_server_start(
		&(struct grpc_listen){ .unix_path = r->path, .workers = 1 },
		(struct grpc_service[]){
			{ &pluginregistration__registration__descriptor, methods, r }, { 0 } },
		&r->server, err);
	if (rc < 0) {
		registration_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

bool registration_refused(const struct registration *r)
{
	return r && atomic_load(&r->refused);
}

void registration_free(struct registration *r)
{
	if (!r)
		return;
	if (r->server)
		(void)unlink(r->path);
	grpc_server_free(r->server);
	free(r->path);
	free(r->endpoint);
	free(r);
}
