/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_dir.h"

#include <stdatomic.h>
#include <stdint.h>

/* The content of one file, by read and write: glfs_copy_file_range changes one brick of a replica only. */
#define COPY_BUFFER (1 << 20)
#define STEP_MS 1000

struct copy_data {
	const atomic_bool *stop; /* looked at before each read: -ECANCELED */
	char *buffer; /* COPY_BUFFER bytes */
	/* May be NULL. Called when STEP_MS have gone by, with how far the copy is complete. */
	int (*progress)(int64_t done, void *userdata, struct error *err);
	/* May be NULL. Called with the source's mtime as each read tells it; true: copying ends with 1. */
	bool (*changed)(const struct timespec *mtime, void *userdata);
	void *userdata;
	/* May be NULL. How many bytes may still be written, less what is; below 0 copying ends with -EBUSY. */
	int64_t *left;
};

/*
 * Copies from[start…size) to the same place. Nothing is beyond start in `to`, which in the end is `size` long;
 * holes stay holes. The caller syncs. 1: `changed` ended it.
 */
int copy_data(const struct copy_data *c, glfs_fd_t *from, glfs_fd_t *to, int64_t start,
	      int64_t size, struct error *err);
