/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_copies.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "worker/gluster_copy.h"
#include "worker/gluster_pool.h"

#include <errno.h>

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_FAILED };

struct job {
	struct job *next;
	struct copy_request request;
	enum job_state state;
	atomic_bool stop;
	int rc;
	struct error error;
};

static struct {
	struct pool_fs *p;
	void (*changed)(bool busy);
	pthread_mutex_t lock;
	pthread_cond_t more, ended;
	struct job *jobs; /* in the order in which they came */
	int open; /* queued or running */
} copies = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .more = PTHREAD_COND_INITIALIZER,
	     .ended = PTHREAD_COND_INITIALIZER };

/* ---- jobs; the lock is held --------------------------------------------------------------------- */

static struct job **find_job(enum volume_kind kind, const char *name)
{
	struct job **at = &copies.jobs;
	while (*at && !((*at)->request.kind == kind && streq((*at)->request.name, name)))
		at = &(*at)->next;
	return at;
}

static void drop_job(struct job **at)
{
	struct job *job = *at;
	*at = job->next;
	free(job->request.name);
	free(job->request.from);
	free(job);
}

static void count_open(int change)
{
	bool before = copies.open > 0;
	copies.open += change;
	if (before != (copies.open > 0))
		copies.changed(copies.open > 0);
}

static void add_job(const struct copy_request *r)
{
	struct job *job = xcalloc(1, sizeof(*job));
	struct job **at = &copies.jobs;
	while (*at)
		at = &(*at)->next;
	job->request = *r;
	job->request.name = xstrdup(r->name);
	job->request.from = xstrdup(r->from);
	*at = job;
	count_open(1);
	pthread_cond_signal(&copies.more);
}

/* 0: there is none, or it has failed and says so now (*ret_rc); 1: it is under way. */
static int look_job(const struct copy_request *r, int *ret_rc, struct error *err)
{
	struct job **at = find_job(r->kind, r->name), *job = *at;
	*ret_rc = 0;
	if (!job)
		return 0;
	if (job->request.from_kind != r->from_kind || !streq(job->request.from, r->from)) {
		*ret_rc = error_set(err, EEXIST, "%s is being made, as a copy of %s", r->name,
				    job->request.from);
		return 0;
	}
	if (job->state != JOB_FAILED)
		return 1;
	*ret_rc = job->rc;
	if (err)
		*err = job->error;
	drop_job(at);
	return 0;
}

/* ---- requests ----------------------------------------------------------------------------------- */

int copies_ask(enum volume_kind kind, const char *name, const char *owner, int64_t size,
	       enum volume_kind from_kind, const char *from, json_t **ret, struct error *err)
{
	struct copy_request r = { .kind = kind,
				  .name = (char *)name,
				  .owner = (char *)owner,
				  .from_kind = from_kind,
				  .from = (char *)from,
				  .size = size };
	int rc;
	pthread_mutex_lock(&copies.lock);
	int under_way = look_job(&r, &rc, err);
	pthread_mutex_unlock(&copies.lock);
	if (rc < 0)
		return rc;

	if (!under_way) {
		rc = copy_prepare(copies.p, &r, err);
		if (rc < 0)
			return rc;
		under_way = rc;
		pthread_mutex_lock(&copies.lock);
		/* two that ask at once begin it once */
		if (under_way && !*find_job(kind, name))
			add_job(&r);
		pthread_mutex_unlock(&copies.lock);
	}
	rc = kind == VOLUME_SNAPSHOT ? pool_fs_find(copies.p, kind, name, ret, err) : 0;
	/* right after a crash bricks may still be at odds about the info file; -ENOENT would mean the source */
	if (rc == -ENOENT)
		return error_set(err, EAGAIN, "%s was not found again; it is to be asked for again",
				 name);
	return rc < 0 ? rc : under_way;
}

void copies_stop(enum volume_kind kind, const char *name)
{
	struct job **at;
	pthread_mutex_lock(&copies.lock);
	while (*(at = find_job(kind, name))) {
		struct job *job = *at;
		atomic_store(&job->stop, true);
		if (job->state == JOB_RUNNING) {
			pthread_cond_wait(&copies.ended, &copies.lock);
			continue;
		}
		int was_open = job->state == JOB_QUEUED;
		drop_job(at);
		if (was_open)
			count_open(-1);
	}
	pthread_mutex_unlock(&copies.lock);
}

/* The first that is not let go of yet; where it runs, when it has ended. NULL: none. */
static struct job *next_open(void)
{
	struct job *job = copies.jobs;
	while (job && job->state == JOB_FAILED)
		job = job->next;
	return job;
}

void copies_release(void)
{
	struct job *job;
	pthread_mutex_lock(&copies.lock);
	while ((job = next_open())) {
		enum volume_kind kind = job->request.kind;
		cleanup_free char *name = xstrdup(job->request.name);
		pthread_mutex_unlock(&copies.lock);
		copies_stop(kind, name);
		copy_release(copies.p, kind, name);
		pthread_mutex_lock(&copies.lock);
	}
	pthread_mutex_unlock(&copies.lock);
}

/* ---- threads ------------------------------------------------------------------------------------ */

static struct job *next_job(void)
{
	for (;;) {
		for (struct job *job = copies.jobs; job; job = job->next)
			if (job->state == JOB_QUEUED)
				return job;
		pthread_cond_wait(&copies.more, &copies.lock);
	}
}

static void *make_copies(void *arg)
{
	pthread_mutex_lock(&copies.lock);
	for (;;) {
		struct job *job = next_job();
		job->state = JOB_RUNNING;
		pthread_mutex_unlock(&copies.lock);
		int rc = copy_run(copies.p, &job->request, &job->stop, &job->error);
		if (rc < 0 && rc != -ECANCELED)
			log_warn("copy %s of %s: %s", job->request.name, job->request.from,
				 error_text(&job->error, rc));
		pthread_mutex_lock(&copies.lock);

		job->rc = rc;
		job->state = JOB_FAILED;
		/* one whose info file has gone is nobody's: whoever asks again begins again */
		if (rc == 0 || rc == -ECANCELED)
			drop_job(find_job(job->request.kind, job->request.name));
		count_open(-1);
		pthread_cond_broadcast(&copies.ended);
	}
	return arg;
}

int copies_start(struct pool_fs *p, void (*changed)(bool busy), struct error *err)
{
	copies.p = p;
	copies.changed = changed;
	for (int i = 0; i < COPY_THREADS; i++) {
		pthread_t thread;
		int rc = pthread_create(&thread, NULL, make_copies, NULL);
		if (rc)
			return error_errno(err, rc, "cannot start a thread for copies");
		pthread_detach(thread);
	}
	return 0;
}
