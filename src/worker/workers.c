/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "worker/path.h"
#include "worker/process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define MAX_WORKERS 8
#define IDLE_MS 30000
#define DEADLINE_MS 30000
#define LEAST_MS 60000
#define END_MS 10000 /* for a worker to end by itself */
#define STACK_SIZE (256 * 1024)

/* A call that waits for its answer; lives on the caller's stack. */
struct call {
	struct call *next;
	pthread_cond_t wake; /* its own: an answer wakes only whom it is for */
	int64_t id;
	bool done;
	int rc;
	json_t *reply;
	struct error error;
};

struct worker {
	struct worker *next;
	char *pool;
	struct process process;
	struct buf in;
	struct call *calls;
	int64_t started; /* mono ms */
	int64_t idle_since; /* the same, while it has no call */
	bool busy; /* empties the trash, or copies */
	bool copying;
};

struct worker_manager {
	struct workers base;
	char *program, *log_dir;
	int max, idle_ms, deadline_ms, least_ms;
	int waiting; /* calls of pools that have no worker, and no place for one */
	int64_t (*epoch)(void *userdata);
	void *epoch_userdata;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a place may be free */
	struct worker *workers;
	struct process_list ending; /* not yet reaped */
	int64_t next_id;
	bool stop;
	int wake_fd;
	pthread_t thread;
};

static int64_t now_ms(void)
{
	return clock_mono_ms(&clock_real);
}

static void wake(struct worker_manager *m)
{
	uint64_t one = 1;
	if (write(m->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it is awake */
}

/* ---- ends of workers; the lock is held ---------------------------------------------------------- */

static void finish_call(struct worker_manager *m, struct call *c, int rc, const char *message)
{
	c->rc = rc;
	c->done = true;
	if (rc < 0)
		error_set(&c->error, -rc, "%s", message);
	pthread_cond_signal(&c->wake);
	pthread_cond_broadcast(&m->changed);
}

/* Takes the worker off the list and ends it; whoever still waits for it gets rc and the message. */
static void end_worker(struct worker_manager *m, struct worker *w, int rc, const char *message)
{
	struct worker **at = &m->workers;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;

	while (w->calls) {
		struct call *c = w->calls;
		w->calls = c->next;
		finish_call(m, c, rc, message);
	}
	/* one that is not needed ends by itself; one that fails may hang */
	process_list_add(&m->ending, &w->process, rc == -ECANCELED ? END_MS : 0);
	buf_done(&w->in);
	free(w->pool);
	free(w);
	pthread_cond_broadcast(&m->changed);
	wake(m);
}

static int count_workers(const struct worker_manager *m)
{
	int count = 0;
	for (const struct worker *w = m->workers; w; w = w->next)
		count++;
	return count;
}

/* mono ms: from then on it makes way for others. */
static int64_t end_of_turn(const struct worker_manager *m, const struct worker *w)
{
	return w->started + m->least_ms;
}

/* Who is to go first: without work, emptying the trash, copying; of those at the same the longest so. */
static bool goes_before(const struct worker *a, const struct worker *b)
{
	int a_does = a->busy + a->copying, b_does = b->busy + b->copying;
	if (a_does != b_does)
		return a_does < b_does;
	return a->copying ? a->started < b->started : a->idle_since < b->idle_since;
}

/*
 * One without a call that can make way at once. One that copies only after its turn: a file that was
 * not copied to its end may begin anew, so one that is ended again and again comes to nothing.
 */
static struct worker *most_idle(const struct worker_manager *m)
{
	struct worker *best = NULL;
	for (struct worker *w = m->workers; w; w = w->next)
		if (!w->calls && (!w->copying || end_of_turn(m, w) <= now_ms()) &&
		    (!best || goes_before(w, best)))
			best = w;
	return best;
}

static struct worker *oldest(const struct worker_manager *m)
{
	struct worker *best = m->workers;
	for (struct worker *w = best; w; w = w->next)
		if (w->started < best->started)
			best = w;
	return best;
}

/* It gets no more calls while others wait for a place: else one that always has a call would never make way. */
static bool makes_way(const struct worker_manager *m, const struct worker *w)
{
	return m->waiting && w == oldest(m) && end_of_turn(m, w) <= now_ms();
}

/* ---- calls; the lock is held -------------------------------------------------------------------- */

static struct worker *find_worker(struct worker_manager *m, const char *pool)
{
	for (struct worker *w = m->workers; w; w = w->next)
		if (streq(w->pool, pool))
			return w;
	return NULL;
}

static int wait_until(struct worker_manager *m, pthread_cond_t *cond, int64_t deadline)
{
	struct timespec ts = { .tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000 };
	return pthread_cond_timedwait(cond, &m->lock, &ts);
}

static void monotonic_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static int start_worker(struct worker_manager *m, const struct worker_pool *pool,
			struct worker **ret, struct error *err)
{
	struct process process;
	int64_t epoch = m->epoch ? m->epoch(m->epoch_userdata) : 0;
	if (epoch < 0)
		return error_set(err, EAGAIN,
				 "pool %s has to wait: this operator does not lead any more",
				 pool->name);
	int rc = process_start(m->program, m->log_dir, pool, epoch, &process, err);
	if (rc < 0)
		return rc;
	struct worker *w = xcalloc(1, sizeof(*w));
	w->pool = xstrdup(pool->name);
	w->process = process;
	w->started = w->idle_since = now_ms();
	w->next = m->workers;
	m->workers = w;
	*ret = w;
	return 0;
}

/* Until something changed, or the next turn ends; -EAGAIN: the deadline has come. w: the pool's own, if it has one. */
static int wait_for_place(struct worker_manager *m, const struct worker_pool *pool,
			  const struct worker *w, int64_t deadline, struct error *err)
{
	int64_t turn = end_of_turn(m, oldest(m)), now = now_ms();
	if (now >= deadline)
		return error_set(err, EAGAIN,
				 "pool %s has to wait: all %d gluster workers are at work",
				 pool->name, m->max);
	m->waiting += !w;
	wait_until(m, &m->changed, turn > now && turn < deadline ? turn : deadline);
	m->waiting -= !w;
	if (!w && !m->waiting) /* who was kept from a worker that was to make way */
		pthread_cond_broadcast(&m->changed);
	return 0;
}

/* The pool's worker, started if needed; waits for a place when all are at work. */
static int get_worker(struct worker_manager *m, const struct worker_pool *pool, int64_t deadline,
		      struct worker **ret, struct error *err)
{
	for (;;) {
		if (m->stop)
			return error_set(err, ECANCELED, "the operator is ending");
		*ret = find_worker(m, pool->name);
		if (*ret && !makes_way(m, *ret))
			return 0;
		if (!*ret && count_workers(m) < m->max)
			return start_worker(m, pool, ret, err);
		struct worker *idle = *ret ? NULL : most_idle(m);
		if (idle) {
			end_worker(m, idle, -ECANCELED, "ended to make room");
			continue;
		}
		int rc = wait_for_place(m, pool, *ret, deadline, err);
		if (rc < 0)
			return rc;
	}
}

/* From here on the call is the worker's: it ends with an answer, or with the worker. */
static void send_request(struct worker_manager *m, struct worker *w, struct call *c,
			 json_t *request)
{
	c->id = ++m->next_id;
	json_object_set_new(request, "id", json_integer(c->id));
	cleanup_free char *text = json_text(request);
	size_t len = strlen(text);
	text[len++] = '\n'; /* in place of the NUL */

	c->next = w->calls;
	w->calls = c;
	/* never blocks: a worker that has stopped reading is one that hangs */
	ssize_t n = send(w->process.fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* one that has ended may have said why: the reader finds out */
	if (n != (ssize_t)len && !(n < 0 && (errno == EPIPE || errno == ECONNRESET))) {
		cleanup_free char *message =
			xasprintf("the worker of pool %s took no request", w->pool);
		end_worker(m, w, -EAGAIN, message);
		return;
	}
	wake(m);
}

static void hung(struct worker_manager *m, const char *pool, const struct call *c)
{
	struct worker *w = find_worker(m, pool);
	struct call *at = w ? w->calls : NULL;
	while (at && at != c)
		at = at->next;
	if (!at)
		return;
	log_warn("pool %s gave no answer for %d s: its worker is killed", pool,
		 m->deadline_ms / 1000);
	cleanup_free char *message =
		xasprintf("pool %s gave no answer for %d s; are its bricks online?", pool,
			  m->deadline_ms / 1000);
	end_worker(m, w, -ETIMEDOUT, message);
}

/* One request to the pool's worker, one answer. request is stolen. */
static int call_worker(struct workers *base, const struct worker_pool *pool, json_t *request,
		       json_t **ret, struct error *err)
{
	struct worker_manager *m = (struct worker_manager *)base;
	struct call c = { 0 };
	struct worker *w = NULL;

	monotonic_cond(&c.wake);
	pthread_mutex_lock(&m->lock);
	int rc = get_worker(m, pool, now_ms() + m->deadline_ms, &w, err);
	if (rc == 0) {
		/* anew: its own worker is not one that hangs because others' were in the way */
		int64_t deadline = now_ms() + m->deadline_ms;
		send_request(m, w, &c, request);
		while (!c.done)
			if (wait_until(m, &c.wake, deadline) == ETIMEDOUT && !c.done)
				hung(m, pool->name, &c);
		rc = c.rc;
		if (rc < 0 && err)
			*err = c.error;
	}
	pthread_mutex_unlock(&m->lock);
	pthread_cond_destroy(&c.wake);

	json_decref(request);
	if (rc >= 0 && ret) {
		*ret = json_incref(jget(c.reply, "result"));
		if (!*ret)
			rc = error_set(err, EPROTO, "the worker of pool %s gave no result",
				       pool->name);
	}
	json_decref(c.reply);
	return rc;
}

/* ---- answers: one thread reads from all workers --------------------------------------------------- */

static void take_answer(struct worker_manager *m, struct worker *w, json_t *reply)
{
	int64_t id = jint(reply, "id");

	for (struct call **at = &w->calls; *at; at = &(*at)->next) {
		struct call *c = *at;
		if (c->id != id)
			continue;
		*at = c->next;
		c->reply = json_incref(reply);
		finish_call(m, c, (int)jint(reply, "rc"),
			    jstr(reply, "error") ? jstr(reply, "error") : "failed");
		break;
	}
	if (jget(reply, "busy"))
		w->busy = jbool(reply, "busy");
	if (jget(reply, "copying"))
		w->copying = jbool(reply, "copying");
	w->idle_since = now_ms();
}

/* Reads what is there; false: the worker has ended (and was taken off). */
static bool read_worker(struct worker_manager *m, struct worker *w)
{
	char chunk[4096];
	ssize_t n = recv(w->process.fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		cleanup_free char *message =
			xasprintf("the worker of pool %s ended unexpectedly", w->pool);
		end_worker(m, w, -EAGAIN, message);
		return false;
	}
	buf_add(&w->in, chunk, (size_t)n);

	char *end;
	while ((end = memchr(w->in.data, '\n', w->in.len))) {
		cleanup_json json_t *reply = NULL;
		size_t used = (size_t)(end + 1 - w->in.data);
		json_parse(w->in.data, used - 1, &reply, NULL);
		memmove(w->in.data, w->in.data + used, w->in.len - used);
		w->in.len -= used;
		if (jint(reply, "id") == 0 && jint(reply, "rc") < 0) {
			end_worker(m, w, (int)jint(reply, "rc"), jstr(reply, "error"));
			return false;
		}
		take_answer(m, w, reply);
		/* its client has lost the pool, whose nodes may be others by now: the next is told of them */
		if (jint(reply, "rc") == -ENOTCONN) {
			end_worker(m, w, -EAGAIN, "the pool's worker lost its connection");
			return false;
		}
	}
	return true;
}

/* Ends workers that have been idle for long; how long until the next may be, -1: none. */
static int expire_idle(struct worker_manager *m)
{
	int next = -1;
	for (struct worker *w = m->workers, *after; w; w = after) {
		after = w->next;
		if (w->calls || w->busy)
			continue;
		int64_t left = w->idle_since + m->idle_ms - now_ms();
		if (left <= 0)
			end_worker(m, w, -ECANCELED, "idle");
		else if (next < 0 || left < next)
			next = (int)left + 1;
	}
	return next;
}

static void *read_answers(void *arg)
{
	struct worker_manager *m = arg;
	struct pollfd fds[MAX_WORKERS * 4 + 1];

	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		int timeout = expire_idle(m);
		if (process_list_reap(&m->ending) && (timeout < 0 || timeout > 100))
			timeout = 100;
		nfds_t count = 0;
		fds[count++] = (struct pollfd){ .fd = m->wake_fd, .events = POLLIN };
		for (struct worker *w = m->workers; w && count < ARRAY_SIZE(fds); w = w->next)
			fds[count++] = (struct pollfd){ .fd = w->process.fd, .events = POLLIN };

		pthread_mutex_unlock(&m->lock);
		poll(fds, count, timeout);
		uint64_t drained;
		if (fds[0].revents && read(m->wake_fd, &drained, sizeof(drained)) < 0)
			log_warn("cannot read an eventfd: %m");
		pthread_mutex_lock(&m->lock);

		/* the list may have changed meanwhile: a descriptor that nobody has any more is passed over,
		 * and one that was taken over by a new worker is read without blocking */
		for (nfds_t i = 1; i < count; i++) {
			struct worker *w = m->workers;
			while (fds[i].revents && w && w->process.fd != fds[i].fd)
				w = w->next;
			if (fds[i].revents && w)
				read_worker(m, w);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* ---- operations ----------------------------------------------------------------------------------- */

static int check_volume(const struct worker_volume *v, struct error *err)
{
	if (!volume_name_ok(v->name))
		return error_set(
			err, EINVAL,
			"\"%.60s\" is not a volume's name: only a-z, 0-9 and - may be in it",
			v->name);
	if (!volume_prefix(v->kind))
		return error_set(err, EOPNOTSUPP, "%s is not a volume inside a pool", v->name);
	return 0;
}

static json_t *volume_json(const struct worker_volume *v)
{
	char kind[2] = { (char)v->kind, 0 };
	return json_pack("{s:s, s:s, s:s*}", "name", v->name, "kind", kind, "owner", v->owner);
}

/* A request about one volume, and where there is one about its source. */
static int about(struct workers *w, const struct worker_pool *pool, const char *op,
		 const struct worker_volume *v, int64_t size, const struct worker_volume *from,
		 json_t **ret, struct error *err)
{
	int rc = check_volume(v, err);
	if (rc == 0 && from)
		rc = check_volume(from, err);
	if (rc < 0)
		return rc;
	json_t *request = volume_json(v);
	json_object_set_new(request, "op", json_string(op));
	json_object_set_new(request, "size", json_integer(size));
	if (from)
		json_object_set_new(request, "from", volume_json(from));
	return call_worker(w, pool, request, ret, err);
}

static int op_create(struct workers *w, const struct worker_pool *pool,
		     const struct worker_volume *v, int64_t size, struct error *err)
{
	return about(w, pool, "create", v, size, NULL, NULL, err);
}

static int op_make(struct workers *w, const struct worker_pool *pool, const struct worker_volume *v,
		   struct error *err)
{
	return about(w, pool, "make", v, 0, NULL, NULL, err);
}

static int op_complete(struct workers *w, const struct worker_pool *pool,
		       const struct worker_volume *v, int64_t size, struct error *err)
{
	return about(w, pool, "complete", v, size, NULL, NULL, err);
}

static int op_resize(struct workers *w, const struct worker_pool *pool,
		     const struct worker_volume *v, int64_t size, struct error *err)
{
	return about(w, pool, "resize", v, size, NULL, NULL, err);
}

static int op_remove(struct workers *w, const struct worker_pool *pool,
		     const struct worker_volume *v, struct error *err)
{
	return about(w, pool, "remove", v, 0, NULL, NULL, err);
}

static int op_archive(struct workers *w, const struct worker_pool *pool,
		      const struct worker_volume *v, struct error *err)
{
	return about(w, pool, "archive", v, 0, NULL, NULL, err);
}

static int op_find(struct workers *w, const struct worker_pool *pool, const struct worker_volume *v,
		   json_t **ret, struct error *err)
{
	return about(w, pool, "find", v, 0, NULL, ret, err);
}

static int op_copy(struct workers *w, const struct worker_pool *pool, const struct worker_volume *v,
		   int64_t size, const struct worker_volume *from, struct error *err)
{
	return about(w, pool, "copy", v, size, from, NULL, err);
}

static int op_snapshot(struct workers *w, const struct worker_pool *pool,
		       const struct worker_volume *from, const struct worker_volume *v,
		       json_t **ret, struct error *err)
{
	struct worker_volume snapshot = { VOLUME_SNAPSHOT, v->name, v->owner };
	return about(w, pool, "copy", &snapshot, 0, from, ret, err);
}

static int op_snapshot_remove(struct workers *w, const struct worker_pool *pool,
			      const struct worker_volume *v, struct error *err)
{
	struct worker_volume snapshot = { VOLUME_SNAPSHOT, v->name, v->owner };
	return about(w, pool, "remove", &snapshot, 0, NULL, NULL, err);
}

static int op_snapshots(struct workers *w, const struct worker_pool *pool, json_t **ret,
			struct error *err)
{
	return call_worker(w, pool, json_pack("{s:s}", "op", "snapshots"), ret, err);
}

static int op_stat(struct workers *w, const struct worker_pool *pool, json_t **ret,
		   struct error *err)
{
	return call_worker(w, pool, json_pack("{s:s}", "op", "stat"), ret, err);
}

static int op_list(struct workers *w, const struct worker_pool *pool, json_t **ret,
		   struct error *err)
{
	return call_worker(w, pool, json_pack("{s:s}", "op", "list"), ret, err);
}

static void op_end_all(struct workers *base)
{
	struct worker_manager *m = (struct worker_manager *)base;

	pthread_mutex_lock(&m->lock);
	while (m->workers)
		end_worker(m, m->workers, -ENOTCONN, "this operator does not lead any more");
	pthread_mutex_unlock(&m->lock);
}

static void op_free(struct workers *base)
{
	struct worker_manager *m = (struct worker_manager *)base;

	pthread_mutex_lock(&m->lock);
	m->stop = true;
	while (m->workers)
		end_worker(m, m->workers, -ECANCELED, "the operator is ending");
	wake(m);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);

	process_list_done(&m->ending);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	close(m->wake_fd);
	free(m->program);
	free(m->log_dir);
	free(m);
}

static const struct worker_ops ops = {
	.create = op_create,
	.make = op_make,
	.complete = op_complete,
	.resize = op_resize,
	.remove = op_remove,
	.archive = op_archive,
	.find = op_find,
	.copy = op_copy,
	.snapshot = op_snapshot,
	.snapshot_remove = op_snapshot_remove,
	.snapshots = op_snapshots,
	.stat = op_stat,
	.list = op_list,
	.end_all = op_end_all,
	.free = op_free,
};

int workers_start(const struct workers_options *options, struct workers **ret, struct error *err)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return error_errno(err, errno, "cannot start the manager of gluster workers");

	struct worker_manager *m = xcalloc(1, sizeof(*m));
	m->base.ops = &ops;
	m->program = xstrdup(options->program);
	m->log_dir = xstrdup(options->log_dir);
	m->max = options->max > 0 && options->max < MAX_WORKERS * 4 ? options->max : MAX_WORKERS;
	m->idle_ms = options->idle_ms > 0 ? options->idle_ms : IDLE_MS;
	m->deadline_ms = options->deadline_ms > 0 ? options->deadline_ms : DEADLINE_MS;
	m->least_ms = options->least_ms > 0 ? options->least_ms : LEAST_MS;
	m->epoch = options->epoch;
	m->epoch_userdata = options->epoch_userdata;
	m->wake_fd = fd;
	pthread_mutex_init(&m->lock, NULL);
	monotonic_cond(&m->changed);

	pthread_attr_t thread_attr;
	pthread_attr_init(&thread_attr);
	pthread_attr_setstacksize(&thread_attr, STACK_SIZE);
	int rc = pthread_create(&m->thread, &thread_attr, read_answers, m);
	pthread_attr_destroy(&thread_attr);
	if (rc) {
		close(fd);
		free(m->program);
		free(m->log_dir);
		free(m);
		return error_errno(err, rc, "cannot start the manager of gluster workers");
	}
	*ret = &m->base;
	return 0;
}
