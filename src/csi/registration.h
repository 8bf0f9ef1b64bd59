/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/*
 * Makes the driver known to kubelet: a socket in its directory plugins_registry, which kubelet finds
 * by itself, also after it was started again. Where kubelet refuses us the process gets SIGTERM: it
 * should end with a failure and be started anew, which is how it is asked again.
 */
struct registration;
int registration_start(const char *kubelet_dir, const char *endpoint, struct registration **ret,
		       struct error *err);
bool registration_refused(const struct registration *r);
/* Removes the socket: kubelet forgets the driver. NULL-safe. */
void registration_free(struct registration *r);
