/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/driver.h"
#include "multipath.h"
#include "scsi.h"

/*
 * A volume that is reached as a SCSI logical unit on one or several paths: what iSCSI, iSER and
 * Fibre Channel have in common once there is a way to the target. The driver says at which
 * addresses the unit is; everything else is here.
 */

#define SCSI_PATHS_MAX 32

struct scsi_paths {
	struct scsi_address at[SCSI_PATHS_MAX];
	int count;
};

/* Parameters that all of them have, to be listed in their tables. */
#define SCSI_PARAM_WWN                                                                             \
	{                                                                                          \
		.name = "wwn",                                                                     \
		.aliases = (const char *const[]){ "volumeWwn", "expectedWwn", "wwid",              \
						  "serial",    "uuid",	      NULL },              \
		.help = "The volume's own name: NAA, EUI, UUID or serial number. Where it is "     \
			"given, every path is asked for it, and nothing else is connected.",       \
		.expectation = true, .example = "naa.600140581f1c2a9e0000400080000000"             \
	}
#define SCSI_PARAM_MULTIPATH                                                                       \
	{                                                                                          \
		.name = "multipath", .aliases = (const char *const[]){ "useMultipath", NULL },     \
		.type = PARAM_BOOLEAN,                                                             \
		.fallback = "where there are several paths, and multipathd runs",                  \
		.help = "Whether the paths are put together to one device."                        \
	}
#define SCSI_PARAM_ENFORCE_MULTIPATH                                                               \
	{                                                                                          \
		.name = "enforceMultipath", .type = PARAM_BOOLEAN, .fallback = "false",            \
		.help = "Fail where multipathd does not run, rather than take one path."           \
	}
#define SCSI_PARAM_ADDRESSING_MODE                                                                 \
	{                                                                                          \
		.name = "addressingMode", .fallback = "transparent",                               \
		.check = check_addressing_mode,                                                    \
		.help = "How the target numbers its LUNs: \"transparent\", \"SAM2\" (flat from "   \
			"256 on), "                                                                \
			"\"SAM3-flat\" (always flat)."                                             \
	}
int check_addressing_mode(const char *value, struct error *err);

/* Where a record has the map that a volume was connected with (driver.form). */
extern const char *const scsi_volume_form[];

/* Whether the paths are to become one device; -EOPNOTSUPP: they must, and cannot. */
int scsi_wants_multipath(const struct call *c, const struct attachment *a, int paths,
			 struct error *err);
/*
 * Finds the unit at each address, scanning for it, asks each path which volume it is, makes a map of
 * them for multipath, and sets path and detail. A path that does not work is left out while
 * there is another one.
 */
int scsi_volume_connect(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
			bool multipath, struct error *err);
/* Takes the unit away: map first, then each path. In use is -EBUSY before anything is touched. */
int scsi_volume_remove(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		       bool force, struct error *err);
/* The volume is there, on a path at least, and all paths say that it is the one. */
int scsi_volume_verify(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		       struct error *err);
/* Every path's size is read anew, then the map's; adds to result "paths" and "size". */
int scsi_volume_extend(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		       json_t *result, struct error *err);
/* Adds to result "devices", "usedBy" and the steps of a disconnect. */
int scsi_volume_plan(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		     json_t *result, struct error *err);
