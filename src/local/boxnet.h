/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/*
 * The network of the boxes: one bridge an instance, a veth pair a box, a host route for each
 * address. Any address works, since nothing but the bridge is asked for it.
 */

/* True where one of the addresses belongs to this machine itself. */
bool boxnet_is_machine(const char *const *addresses);
/* Connects the network namespace at net_path; 0 also where all is in place. */
int boxnet_ensure(const char *name, const char *net_path, const char *const *addresses,
		  struct error *err);
void boxnet_remove(const char *name);
void boxnet_remove_bridge(void);
