/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/op.h"
#include "operator/volumes.h"

/* What the files of operator_volumes share. */
struct operator_volumes {
	struct volumes volumes;
	struct reconcile r; /* copied for each call */
};

/* A call at work. Its errors are in r.error until job_end hands them to the caller. */
struct job {
	struct reconcile r;
	struct operator* op;
	int64_t begun_ms; /* monotonic */
	int64_t epoch; /* of the lease under which it began */
	int tries;
};

/* Whether we lead, and know what is promised; -EAGAIN if not. */
int job_begin(struct volumes *v, struct job *ret, struct error *err);
/*
 * Asked between reading whose something is and removing that: we have led all the time since the
 * call began, so what was read is not what another leader has made of that name while this process
 * was stopped. -EAGAIN if not.
 */
int job_leads(struct job *j);
/*
 * Whether the work is to be done once more, after a pause: an object or a file of the pool changed under our
 * hands (whoever keeps phases writes to records too, a copy that goes on to its own), or something did not answer
 * for a moment. A few times, and not for long: who calls asks again too.
 */
bool job_again(struct job *j, int rc);
/* Whether it may have taken effect although it failed, or may the next time: the caller asks again. */
bool job_unsure(int rc);
/* As it was returned, the sentence copied. */
int job_end(const struct job *j, int rc, struct error *err);

/* The pool as the API has it; -ENOENT: none of that name is ours. */
int job_pool(struct job *j, const char *name, json_t **ret);

/* The volume's record; -ENOENT: no volume of ours has that id. */
int job_volume(struct job *j, const struct handle *id, json_t **ret);

/* ---- the record (volumes_record.c) ------------------------------------------------------------ */
#define QM_ANNOTATION_CSI_ASKED QM_PREFIX "csi-asked" /* PV: what a repeated call has to ask for */
#define QM_ANNOTATION_MAKING QM_PREFIX "making" /* PV: not there yet, or not all of it */

bool record_is_csi(const json_t *pv);
bool record_is_made(const json_t *pv);
/* Its removal was asked for. */
bool record_goes(const json_t *pv);
/* New reference. */
json_t *record_new(const struct operator* op, const struct volume_request *q, const json_t *pool,
		   int64_t bytes);
/* -EEXIST where the volume of that name is another than the one asked for. */
int record_matches(const json_t *pv, const struct volume_request *q, struct error *err);
/* The id of what it began with; caller frees, NULL: nothing. */
char *record_source(const json_t *pv);
void record_info(const struct job *j, const json_t *pv, struct volume_info *ret);

/* ---- snapshots (volumes_snapshot.c) ----------------------------------------------------------- */
int volumes_snapshot(struct volumes *v, const char *name, const struct handle *source,
		     struct snapshot_info *ret, struct error *err);
int volumes_snapshot_remove(struct volumes *v, const struct handle *id, struct error *err);
int volumes_snapshots(struct volumes *v, const char *source, const struct handle *after, size_t max,
		      struct snapshot_list *ret, struct error *err);
int volumes_snapshot_find(struct volumes *v, const struct handle *id, struct snapshot_info *ret,
			  struct error *err);
/* What is said of a snapshot that is to be the beginning of a volume. */
int volumes_snapshot_source(struct job *j, const json_t *pool, const char *name,
			    enum volume_kind *ret_kind, int64_t *ret_bytes);

/* ---- changing (volumes.c, volumes_modify.c) --------------------------------------------------- */
/* Whether a call may change the volume: it is there, stays, and is no claim's. */
int record_may_change(struct job *j, const json_t *pv);
int volumes_modify(struct volumes *v, const struct handle *id,
		   const struct volume_attributes *attributes, struct error *err);

/* ---- making and removing (volumes_make.c) ----------------------------------------------------- */
int volumes_create(struct volumes *v, const struct volume_request *q, struct volume_info *ret,
		   struct error *err);
int volumes_remove(struct volumes *v, const struct handle *id, struct error *err);
