/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/volumes.h"
#include "grpc/grpc.h"

/*
 * The CSI controller service: takes messages apart, checks what they say, and asks a struct
 * volumes. One call at a time for each volume or snapshot; a second one is told ABORTED.
 */
struct csi_controller;

/* The volumes are borrowed. */
struct csi_controller *csi_controller_new(struct volumes *volumes);
/* After the server that serves it has ended. NULL-safe. */
void csi_controller_free(struct csi_controller *c);
/* For grpc_server_start. */
struct grpc_service csi_controller_service(struct csi_controller *c);
