/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "handle.h"

struct driver;

enum attach_state { STATE_CONNECTING, STATE_ATTACHED, STATE_DISCONNECTING };

/* One consumer's use of one volume: what a record on disk holds. */
struct attachment {
	const struct driver *driver;
	json_t *params; /* as params_read gives them */
	char *volume_id;
	char *consumer; /* "" for the one without a name */
	char id[HASH_TEXT_MAX]; /* of volume id and consumer: the record's name */
	char *target; /* what connecting locks and may share with others, as text */
	char target_id[HASH_TEXT_MAX]; /* its hash: names its lock, its mount point */
	json_t *detail; /* what the driver needs to find it again (strings only) */
	enum attach_state state;
	char *path; /* NULL until connected for the first time */
	char boot_id[40]; /* of the boot in which it was connected */
	int64_t since_ms;
	/* who has to do with the same target too; counted under its lock, not in the record */
	int others; /* with a consumer */
	int interrupted; /* left by a process that died, this one itself included */
	int unreadable; /* records of which nobody can say whose target they use */
	/*
	 * While connecting: a consumer counts on it already, what was there before is not undone. In
	 * the record, so that the consumer is not forgotten either where the process dies meanwhile.
	 */
	bool was_attached;
	/* of the connect that is under way; not in the record */
	bool begun; /* it has begun to mount */
	bool served; /* and when it did, an older mount's client ran there still */
};

/* Attached, or just being connected again. */
static inline bool attachment_has_consumer(const struct attachment *a)
{
	return a->state == STATE_ATTACHED || (a->state == STATE_CONNECTING && a->was_attached);
}

void attachment_free(struct attachment *a);
static inline void attachment_free_p(struct attachment **a)
{
	attachment_free(*a);
}
#define cleanup_attachment __attribute__((cleanup(attachment_free_p)))

/* From a connection: parameters checked, target prepared, nothing touched. */
int attachment_new(const struct call *c, const char *driver_name, const json_t *data,
		   const char *volume_id, const char *consumer, struct attachment **ret,
		   struct error *err);
/* What stands in the record, and what callers are shown; new reference. */
int attachment_to_json(const struct attachment *a, json_t **ret, struct error *err);
int attachment_from_json(const json_t *o, struct attachment **ret, struct error *err);

/* Sets a string of detail; a NULL value is an allocation that failed. */
int attachment_set_detail(struct attachment *a, const char *key, const char *value,
			  struct error *err);
const char *attachment_detail(const struct attachment *a, const char *key);
/* Sets target and target_id; takes text. */
int attachment_set_target(struct attachment *a, char *text);
/* A parameter that is a string, or NULL. */
const char *attachment_param(const struct attachment *a, const char *name);
/* A secret parameter, which no record has: as given to this call, under any spelling; or NULL. */
const char *attachment_secret(const struct call *c, const struct attachment *a, const char *name);
/* "volume X", "volume X of consumer Y": for messages. */
const char *attachment_name(const struct attachment *a, char *buf, size_t size);
