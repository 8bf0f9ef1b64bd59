/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "systems/glusterfs/gluster.h"

/*
 * Reads what `gluster --xml` and its heal programs print. Text that is cut off, too deep or not
 * XML gives -EBADMSG; unknown elements are skipped. An answer that reports a failure is read all
 * the same: reply says so.
 */
struct gluster_reply {
	int ret; /* opRet: 0, or -1 for a failure */
	int op_errno; /* opErrno: an errno, or glusterd's own numbers from 30800 on */
	char message[400]; /* opErrstr, else output; in one line */
};

int gluster_xml_reply(const char *text, size_t len, struct gluster_reply *ret, struct error *err);
int gluster_xml_peers(const char *text, size_t len, struct gluster_reply *reply,
		      struct gluster_peers *ret, struct error *err);
/* The volume of this name from `volume info`; -ENOENT where it is not listed. */
int gluster_xml_volume(const char *text, size_t len, const char *name, struct gluster_reply *reply,
		       struct gluster_volume *ret, struct error *err);
/* From `volume info` of all volumes: has any of them a brick at this address? */
int gluster_xml_has_bricks(const char *text, size_t len, const char *address,
			   struct gluster_reply *reply, bool *ret, struct error *err);
/* Adds what `volume status NAME detail` says to the bricks of a volume that is known. */
int gluster_xml_status(const char *text, size_t len, struct gluster_reply *reply,
		       struct gluster_volume *volume, struct error *err);
/* Adds heal counts from `volume heal NAME info summary`: all entries that are not whole; -1 where it is not known. */
int gluster_xml_heal(const char *text, size_t len, struct gluster_reply *reply,
		     struct gluster_volume *volume, struct error *err);
/* Adds heal counts from `volume heal NAME statistics heal-count`, which is plain text. */
void gluster_text_heal(const char *text, size_t len, struct gluster_volume *volume);
