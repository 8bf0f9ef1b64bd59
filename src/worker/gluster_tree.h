/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_data.h"
#include "worker/gluster_pool.h"

#define COPY_TOP ".quartermaster-copy"

/*
 * A directory with all that is below it, from one place to another: files, directories, symbolic
 * links, hard links within it, devices, FIFOs, sockets; owners, modes, times, user.* attributes, ACLs and file capabilities.
 * What is in it may be hostile and change meanwhile: from a handle to one name in it, links never
 * followed, memory bounded however deep or wide it is.
 *
 * What is there already, of a copy that was interrupted, is kept where it is complete (same length, time, owner and mode: the
 * time is set when the content is on disk), made anew where not, and thrown away where the source
 * has it no more. Not a copy of one moment: each file is what it was when it was read. One that is moved from directory
 * to directory ahead of the copy is in it each time, and nothing else bounds that (a snapshot has no quota): so all
 * that is written counts, and what was kept, up to a limit.
 */
struct copy_tree {
	struct pool_fs *p; /* of the copy */
	glfs_t *from; /* of the source: the same one's, but for whole volumes */
	struct copy_data data;
	/*
	 * Names the directory .quartermaster-copy/LINKS in which each file of several names is under its source's id
	 * until the copy is complete. So links are found again without a table in memory, after a crash too.
	 */
	const char *links_name;
	int64_t limit; /* bytes; -EBUSY beyond */

	int64_t left; /* of that */
	glfs_object_t *links; /* once it was needed */
	struct copy_pending *pending; /* directories still to be copied */
	size_t count, room;
};

/* `to` exists; resumed: it may have something in it. */
int copy_tree(struct copy_tree *c, glfs_object_t *from, glfs_object_t *to, bool resumed,
	      struct error *err);
/* Throws the directory of links away: of a copy that is complete, or that is removed. */
int copy_tree_forget(struct pool_fs *p, const char *links_name, struct error *err);
