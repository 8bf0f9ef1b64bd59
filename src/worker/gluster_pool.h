/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "csi/handle.h"
#include "worker/gluster_dir.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * What the parts of gluster_fs share: the handles of a pool's directories and the names in them. A tree
 * is <prefix>/<h2>/<h2>/ of one kind; each has its twin of info files below info/.
 */
#define TRASH ".quartermaster-trash"
#define SYNC_FILE ".quartermaster-sync"
#define TREES 5
#define NAME_LOCKS 256

/* A directory whose handle is kept. */
struct kept {
	glfs_object_t *dir;
	/* we made it: of what is named 00 to ff, only these names can be in it; the others need not be looked for */
	bool ours;
	unsigned char tried[256 / 8];
};

/* The first level's handles are kept: all volumes share those 256 directories. */
struct tree {
	struct kept root;
	struct kept first[256];
};

/*
 * One sync for all that ask while the one before is under way. It is a byte more in a file of its own: a longer
 * file has to be logged by a brick's file system, and with it what was made in the pool before; the same byte again need not be.
 */
struct pool_sync {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	glfs_fd_t *fd; /* of whoever runs */
	int64_t length; /* what we have added to it */
	bool runs;
	uint64_t begun, done, failed; /* rounds: the last of each */
	int rc; /* of the failed one */
};

struct pool_fs {
	glfs_t *fs;
	int64_t epoch; /* of the lease under which we work */
	struct strv hosts; /* ended by NULL */
	char *log_path;
	const atomic_bool *stop; /* may be NULL; ends a purge with -ECANCELED */
	glfs_object_t *root;
	/* in which the trash is, and what copies need: the root, but of a whole volume the place of its copy */
	glfs_object_t *own;
	struct kept trash, info_top;
	struct tree data[TREES], info[TREES];
	struct pool_sync sync;
	pthread_mutex_t lock; /* of the handles above, all of which stay open */
	pthread_mutex_t entering; /* of who makes this worker's directory in the trash */
	/* of the volumes, by their names' hash: what reads an info file and writes it again is alone */
	pthread_mutex_t names[NAME_LOCKS];
};

enum pool_part { PART_DATA, PART_INFO };

/* The directory, from *slot once it is known, else opened or made. */
int pool_keep_dir(struct pool_fs *p, glfs_object_t *parent, const char *name, bool make,
		  struct kept *slot, glfs_object_t **ret, struct error *err);
/* The top of a kind's tree. */
int pool_tree(struct pool_fs *p, enum pool_part part, enum volume_kind kind, bool make,
	      glfs_object_t **ret, struct error *err);
/* The directory in which the volume's entry is; caller closes. */
int pool_leaf(struct pool_fs *p, enum pool_part part, enum volume_kind kind, const char *name,
	      bool make, glfs_object_t **ret, struct error *err);
/* The same, made where missing; *ret_fresh: just now, so that nothing is in it. */
int pool_leaf_make(struct pool_fs *p, enum pool_part part, enum volume_kind kind, const char *name,
		   bool *ret_fresh, glfs_object_t **ret, struct error *err);
/* What was made before is on disk. */
int pool_sync(struct pool_fs *p, struct error *err);
/* A kept handle may outlive its directory (someone removed it through a mount): all are looked up anew. */
void pool_forget(struct pool_fs *p);

/*
 * What has that name in dir goes into the trash, under a name of its own that begins with label (may be NULL). 1: it did;
 * 0: there was nothing. A trash that was removed behind our back is made anew.
 */
int pool_throw(struct pool_fs *p, glfs_object_t *dir, const char *name, const char *label,
	       struct error *err);
/*
 * The same where `check` says 1; 0: it is not to be. It is asked when all earlier workers have been kept from throwing
 * anything, and asked again where a later one has done that to us: between its answer and the throwing nobody can have removed what
 * has that name, and made another.
 */
typedef int (*throw_check)(void *userdata, struct error *err);
int pool_throw_checked(struct pool_fs *p, glfs_object_t *dir, const char *name, const char *label,
		       throw_check check, void *userdata, struct error *err);
/* This worker's directory in the trash, with what earlier ones left. -ENOENT: the pool has no trash. */
int pool_trash(struct pool_fs *p, glfs_object_t **ret, struct error *err);
/* It is gone: a later worker has taken it over, with all that was in it. */
void pool_trash_lose(struct pool_fs *p, const glfs_object_t *trash);
/* Deletes an entry of dir with all that is in it. 1: done; 0: it was missing. What lies very deep is left in dir, under other names. */
int pool_purge_entry(struct pool_fs *p, glfs_object_t *dir, const struct dir_entry *e,
		     struct error *err);

/* Held while the volume's info is read and written. */
pthread_mutex_t *pool_name_lock(struct pool_fs *p, enum volume_kind kind, const char *name);
static inline void cleanup_name_lock_p(pthread_mutex_t **lock)
{
	if (*lock)
		pthread_mutex_unlock(*lock);
}
#define cleanup_name_lock __attribute__((unused, cleanup(cleanup_name_lock_p)))

/*
 * An info file: {"size", "path_prefix", "kind"} and of what was copied "source", "ready" and so on. -ENOENT: none.
 * One that a crash has torn reads as an empty object: something is there, and is not ready.
 */
int info_get(struct pool_fs *p, enum volume_kind kind, const char *name, json_t **ret,
	     struct error *err);
/* In one step and on disk: by a file beside it and a rename. */
int info_put(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
	     struct error *err);
/*
 * The same where `check` says 0 to the info that is there then (NULL: none). Between its answer and the last step
 * we may be stopped, for as long as it pleases whoever does that: another worker that has put its own info calls info_fence, and
 * looks once more. From then on whatever was to replace that info fails, and is asked again.
 */
typedef int (*info_check)(const json_t *there, void *userdata, struct error *err);
int info_replace(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
		 info_check check, void *userdata, struct error *err);
int info_fence(struct pool_fs *p, enum volume_kind kind, const char *name, struct error *err);
int info_remove(struct pool_fs *p, enum volume_kind kind, const char *name, struct error *err);
/* A new one; caller owns it. */
json_t *info_new(const struct pool_fs *p, enum volume_kind kind, const char *name, int64_t size);
/* Whether the volume is that owner's (worker.h); one without an owner is anybody's. */
bool info_is_of(const json_t *info, const char *owner);
int info_of_another(const char *name, struct error *err); /* -ESTALE */
/*
 * Whether it says that the volume is complete, and means what stands there: a copy's says which
 * object that is, since a worker whose time is over may write it when another has begun anew.
 */
bool info_ready(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info);
/* The object's identity as text. */
#define OBJECT_TEXT_MAX (2 * GFAPI_HANDLE_LENGTH + 1)
void object_text(glfs_object_t *o, char text[static OBJECT_TEXT_MAX]);
