/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/op.h"

/*
 * A volume of kind whole is a Gluster volume of its own, whose bricks are directories with a quota beside
 * those of its pool: a StoragePool of the volume's name with the pool as its parent. It is asked for, made
 * larger and given up here; the system loop gives it bricks, agents make it. All read the API itself, can be repeated, and
 * leave what went wrong in r->error.
 */
#define QM_ANNOTATION_ARCHIVED QM_PREFIX "archived" /* whole volume: kept, whoever removes it */

/*
 * 0: it is there, with at least as many bytes; 1: it is in the making, or one of its name is not gone yet. -EEXIST: what
 * has its name is no volume of that pool, or is kept.
 */
int whole_make(struct reconcile *r, const json_t *pool, const char *name, int64_t bytes);
/* -ENOENT: there is none. */
int whole_grow(struct reconcile *r, const char *pool, const char *name, int64_t bytes);
/* With all that is in it; pool: NULL: of whichever it is. 0: it is gone, was never there, or is kept as archived; 1: not yet. */
int whole_end(struct reconcile *r, const char *pool, const char *name);
/* Kept from now on, whatever becomes of its record. Gone: fine. */
int whole_archive(struct reconcile *r, const char *pool, const char *name);
/* 1: something has its name: a volume that somebody kept, or what is not ours. */
int whole_is_taken(struct reconcile *r, const char *name);
