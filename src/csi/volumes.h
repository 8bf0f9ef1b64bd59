/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "csi/handle.h"

#include <stddef.h>
#include <stdint.h>

/*
 * What stands behind the CSI controller: volumes and snapshots in pools. It knows no gRPC; whoever
 * implements it (src/operator/volumes.c, tests) knows no messages. All operations block, may be
 * called from many threads, and are idempotent: one that was cut off is taken up by the same call
 * again. The controller sees to it that none runs twice at a time for the same volume.
 *
 * Errors are those of grpc_code_of: ENOENT no such volume, EEXIST the name is taken by another,
 * ENOSPC no pool has room, ERANGE such a size cannot be, EBUSY not in this state, EINPROGRESS
 * something still goes on, EAGAIN not now or not here (who does not lead answers that).
 */
struct volumes;

#define CSI_NAME_MAX 40
/*
 * The name that a volume or snapshot has in its pool (and as a PersistentVolume), from the one that
 * the orchestrator gave it, which may have any characters: "csi-" and 32 hex digits of a hash.
 */
const char *csi_volume_name(const char *asked, char buf[static CSI_NAME_MAX]);

#define VOLUME_DEFAULT_BYTES (1LL << 30)
#define VOLUME_BLOCK_SIZE 4096
/*
 * The size that a volume of that kind gets: at least bytes (0: fallback), at most limit. Directories
 * can have any, devices whole blocks. -ERANGE where there is none.
 */
int volume_size(enum volume_kind kind, int64_t bytes, int64_t limit, int64_t fallback, int64_t *ret,
		struct error *err);

/* What can be changed of a volume that exists, and said when it is made; NULL: as it is. */
struct volume_attributes {
	const char
		*reclaim; /* "delete" or "archive": what becomes of its data when it is removed */
};
/*
 * Takes up one of them. -EINVAL and a sentence: there is none of that name, or it has no such
 * value.
 */
int volume_attribute(const char *key, const char *value, struct volume_attributes *ret,
		     struct error *err);

struct volume_request {
	const char *name; /* as the orchestrator says it: any text */
	int64_t bytes; /* wanted; 0: not stated */
	int64_t limit; /* not more than that; 0: no limit */
	enum volume_kind kind;
	const char *pool; /* NULL: any */
	const char *source; /* id of the volume or snapshot that it begins with, NULL: empty */
	struct volume_attributes attributes;
};

/* Zero-initialise; volume_info_done frees. */
struct volume_info {
	char *id;
	enum volume_kind kind;
	int64_t bytes;
	char *source; /* as in the request, NULL: none */
	json_t *context; /* object of strings: what a node needs to connect it */
	const char *health; /* NULL: in order; else "Degraded" or "Offline", and in message why */
	char *message;
};
void volume_info_done(struct volume_info *v);

struct volume_list {
	struct volume_info *items;
	size_t count;
	bool more; /* there are some behind the last one */
};
void volume_list_done(struct volume_list *l);

struct snapshot_info {
	char *id, *source;
	int64_t bytes; /* that a volume needs to take it in */
	int64_t created_ms; /* wall clock */
	bool ready;
};
void snapshot_info_done(struct snapshot_info *s);

struct snapshot_list {
	struct snapshot_info *items;
	size_t count;
	bool more;
};
void snapshot_list_done(struct snapshot_list *l);

struct volumes_ops {
	/* Whether calls are served here now; else -EAGAIN and where they are. */
	int (*ready)(struct volumes *v, struct error *err);
	/* 0; 1: it is being made, or its data copied, ask again. There already and as asked for: 0. */
	int (*create)(struct volumes *v, const struct volume_request *request,
		      struct volume_info *ret, struct error *err);
	/* Missing: fine. 1: it goes, ask again. -EBUSY: it is not the caller's to remove. */
	int (*remove)(struct volumes *v, const struct handle *id, struct error *err);
	int (*find)(struct volumes *v, const struct handle *id, struct volume_info *ret,
		    struct error *err);
	/* At most max of them, by name, from the one after that name on; NULL: from the first. */
	int (*list)(struct volumes *v, const char *after, size_t max, struct volume_list *ret,
		    struct error *err);
	/* To at least bytes; the size that it has then. limit as in the request. */
	int (*expand)(struct volumes *v, const struct handle *id, int64_t bytes, int64_t limit,
		      int64_t *ret_bytes, struct error *err);
	/*
	 * What is left for volumes of that kind in all pools, or in the one named, and the
	 * biggest that fits.
	 */
	int (*capacity)(struct volumes *v, const char *pool, enum volume_kind kind,
			int64_t *ret_left, int64_t *ret_biggest, struct error *err);
	/* Begins the copy, and tells how far it is by ready. */
	int (*snapshot)(struct volumes *v, const char *name, const struct handle *source,
			struct snapshot_info *ret, struct error *err);
	int (*snapshot_remove)(struct volumes *v, const struct handle *id, struct error *err);
	/* source: id of a volume, NULL: of all. after and max as with list, by pool and name. */
	int (*snapshots)(struct volumes *v, const char *source, const struct handle *after,
			 size_t max, struct snapshot_list *ret, struct error *err);
	int (*snapshot_find)(struct volumes *v, const struct handle *id, struct snapshot_info *ret,
			     struct error *err);
	int (*modify)(struct volumes *v, const struct handle *id,
		      const struct volume_attributes *attributes, struct error *err);
};

struct volumes {
	const struct volumes_ops *ops;
};
