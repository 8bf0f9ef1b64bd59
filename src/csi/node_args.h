/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "proto/csi.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* What callers of the node service send, checked. Nothing here touches the machine. */

#define VOLUME_ID_MAX 128

/*
 * [A-Za-z0-9._:-]+, at most 128 bytes, no "..": a handle of ours, or what a static volume is called.
 * An empty one is -EINVAL; one of another form -EINVAL where the volume's context came with it, else
 * -ENOENT: there cannot be such a volume.
 */
int check_volume_id(const char *id, bool with_context, struct error *err);

/*
 * An absolute path, clean, below base (NULL: anywhere but the root itself). -EINVAL with what (its
 * name in the request).
 */
int check_target_path(const char *what, const char *path, const char *base, struct error *err);

/* How a volume is wanted. */
struct wanted {
	bool block;
	bool read_only; /* by its access mode */
	bool many_nodes; /* others may write, too */
	bool one_target; /* SINGLE_NODE_SINGLE_WRITER */
	bool unlocked; /* a file that nobody else knows */
	bool unfenced; /* a device that other nodes can write to all the same will do */
	const char *fs_type; /* "": not said */
	uint64_t set, clear; /* MOUNT_ATTR_… of its mounts */
	char *options; /* mount flags that are not of a mount but of its file system: "a,b=c", or "" */
};
int wanted_read(const Csi__V1__VolumeCapability *c, struct wanted *ret, struct error *err);
/* Of mount flags alone, each of which may be several ("a,b=c"): set, clear and options. */
int wanted_flags(const char *const *flags, size_t count, struct wanted *w, struct error *err);
void wanted_done(struct wanted *w);

/* A map of the request: every such entry of protobuf-c has this form. */
struct map_entry {
	ProtobufCMessage base;
	char *key, *value;
};
_Static_assert(sizeof(struct map_entry) ==
		       sizeof(Csi__V1__NodeStageVolumeRequest__VolumeContextEntry),
	       "a map's entry");
struct map {
	struct map_entry **entries;
	size_t count;
};
#define MAP_OF(request, field)                                                                     \
	((struct map){ (struct map_entry **)(request)->field, (request)->n_##field })

/* Whether the context says "fencing": "none"; "reservation" is the default, another value -EINVAL. */
int context_unfenced(struct map context, bool *ret, struct error *err);

/*
 * Whether a volume's options (wanted.options) are for hostvol, which mounts it: not where it brings
 * a file system of its own.
 */
bool options_are_of_mount(const char *id, const char *driver_name);
/* Adds options ("a,b=c") to a connection's own. */
void connection_add_options(json_t *data, const char *options);

/*
 * The volume's context as a connection for hostvol: {"driverVolumeType", "data", "consumer"}. Keys
 * with a "/" are the orchestrator's and left out, as is "fencing", which is ours; secrets are
 * added; so are the options, to the driver's own. The volume's id stands for "volumeId" where the context has none. Holds secrets: to
 * be ended with connection_free.
 */
int connection_of(struct map context, struct map secrets, const char *id, const char *consumer,
		  const char *options, char **ret, struct error *err);
void connection_free(char *text);

/* Whether the record can be of the volume with that id. */
bool record_is_of(const json_t *record, const char *id);
