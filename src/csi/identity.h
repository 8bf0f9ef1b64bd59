/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "grpc/grpc.h"
#include "proto/csi.pb-c.h"

/* The driver's name in CSIDriver objects, PersistentVolumes and StorageClasses. */
#define CSI_DRIVER_NAME "csi.quartermaster.storage"

/* What a process that serves CSI says of the driver: the userdata of its Identity service. */
struct csi_identity {
	const Csi__V1__PluginCapability__Service__Type *services; /* ended by UNKNOWN */
	Csi__V1__PluginCapability__VolumeExpansion__Type expansion; /* UNKNOWN: not said */
	/* Whether calls can be served now; NULL: always. */
	bool (*ready)(void *userdata);
	void *userdata;
};

/* With csi__v1__identity__descriptor. */
extern const struct grpc_method csi_identity_methods[];
