/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/identity.h"

static int get_plugin_info(struct grpc_call *call, const void *request, void *reply,
			   struct error *err)
{
	Csi__V1__GetPluginInfoResponse *r = reply;

	r->name = (char *)CSI_DRIVER_NAME;
	r->vendor_version = (char *)QM_VERSION;
	return 0;
}

static Csi__V1__PluginCapability *service_capability(struct grpc_call *call,
						     Csi__V1__PluginCapability__Service__Type type)
{
	Csi__V1__PluginCapability *c =
		grpc_call_message(call, &csi__v1__plugin_capability__descriptor);

	c->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_SERVICE;
	c->service = grpc_call_message(call, &csi__v1__plugin_capability__service__descriptor);
	c->service->type = type;
	return c;
}

static Csi__V1__PluginCapability *expansion_capability(
	struct grpc_call *call, Csi__V1__PluginCapability__VolumeExpansion__Type type)
{
	Csi__V1__PluginCapability *c =
		grpc_call_message(call, &csi__v1__plugin_capability__descriptor);

	c->type_case = CSI__V1__PLUGIN_CAPABILITY__TYPE_VOLUME_EXPANSION;
	c->volume_expansion =
		grpc_call_message(call, &csi__v1__plugin_capability__volume_expansion__descriptor);
	c->volume_expansion->type = type;
	return c;
}

static int get_plugin_capabilities(struct grpc_call *call, const void *request, void *reply,
				   struct error *err)
{
	const struct csi_identity *id = grpc_call_userdata(call);
	Csi__V1__GetPluginCapabilitiesResponse *r = reply;
	size_t services = 0;

	while (id->services && id->services[services])
		services++;
	r->capabilities = grpc_call_alloc(call, (services + 1) * sizeof(*r->capabilities));
	for (size_t i = 0; i < services; i++)
		r->capabilities[r->n_capabilities++] = service_capability(call, id->services[i]);
	if (id->expansion)
		r->capabilities[r->n_capabilities++] = expansion_capability(call, id->expansion);
	return 0;
}

static int probe(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const struct csi_identity *id = grpc_call_userdata(call);
	Csi__V1__ProbeResponse *r = reply;

	r->ready = grpc_call_message(call, &csi__v1__bool_value__descriptor);
	r->ready->value = !id->ready || id->ready(id->userdata);
	return 0;
}

const struct grpc_method csi_identity_methods[] = {
	{ "GetPluginInfo", get_plugin_info },
	{ "GetPluginCapabilities", get_plugin_capabilities },
	{ "Probe", probe },
	{ 0 },
};
