/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "handle.h"

int properties_read(const struct hostvol *h, bool multipath, bool do_local_attach,
		    struct hostvol_connector_properties **ret, struct error *err);
/* The platform of the specification for what uname calls the machine. */
const char *platform_of(const char *machine);
