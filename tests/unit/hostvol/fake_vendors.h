/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rig.h"

/* Storage vendors' software on a fake host: each has one volume, connected as "a". */
struct vendor {
	const char *json; /* with "@" for the rig's directory */
	const char *device; /* NULL: it mounts */
};
extern const struct vendor vendors[]; /* ended by json NULL */
#define VENDOR_COUNT 8
#define SECRET "s3cret" /* whatever password there is */

/* A rig that has them; the teardown is rig_teardown. */
struct rig *vendor_rig(void);
/* The caller's. */
char *vendor_json(const struct rig *rig, const struct vendor *v);
