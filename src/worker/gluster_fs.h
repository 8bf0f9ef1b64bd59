/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "csi/handle.h"

#include <stdint.h>

/*
 * One pool through libgfapi. Whoever mounts the pool can plant a symbolic link anywhere in it, so
 * nothing here resolves a path: every step goes from a directory's handle to one name in it, and
 * what is found there must be a directory (or a plain file) itself. Thread-safe.
 */
struct pool_fs;

/* epoch: of the lease under which we work. */
int pool_fs_open(const char *volume, const char *const *hosts, const char *log_path, int64_t epoch,
		 struct pool_fs **ret, struct error *err);
/* Nobody works in it any more, and it answers: else this may hang. */
void pool_fs_close(struct pool_fs *p);

/*
 * The info file comes first and goes last, so that whatever a crash leaves behind can be listed,
 * and completed or removed by doing the same again. Contracts: worker.h; owner: NULL, or whose the volume is.
 */
int pool_fs_create(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		   int64_t size, struct error *err);
/*
 * The two halves of creating a directory (VOLUME_DIRECTORY). In between it is a directory without an info
 * file, which the caller knows of.
 */
int pool_fs_make(struct pool_fs *p, const char *name, struct error *err);
int pool_fs_complete(struct pool_fs *p, const char *name, int64_t size, struct error *err);
int pool_fs_resize(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		   int64_t size, struct error *err);
int pool_fs_remove(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		   struct error *err);
/* Only the data, into the trash; the info stays. */
int pool_fs_discard(struct pool_fs *p, enum volume_kind kind, const char *name, struct error *err);
int pool_fs_archive(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		    struct error *err);
int pool_fs_find(struct pool_fs *p, enum volume_kind kind, const char *name, json_t **ret,
		 struct error *err);
int pool_fs_stat(struct pool_fs *p, json_t **ret, struct error *err);
int pool_fs_list(struct pool_fs *p, bool snapshots, json_t **ret, struct error *err);

/*
 * Ephemeral volumes, which have no info file: adds those that are there to found ({"name", "kind": "e", "size",
 * "ready", "node"}; NULL: to nothing), and removes those that no machine has used for a week.
 */
int pool_fs_ephemeral(struct pool_fs *p, json_t *found, struct error *err);

/* Deletes what is in the trash directory; > 0: there was something. Called by one thread only. */
int pool_fs_purge(struct pool_fs *p, struct error *err);
