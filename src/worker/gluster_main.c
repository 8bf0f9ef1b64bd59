/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qm-gluster: does what the operator asks in one pool. Requests come as JSON lines on standard
 * input, a socket; answers go back on it in any order, by id. It ends when the socket does.
 *   {"id": 7, "op": "create", "kind": "d", "name": "pvc-…", "size": 1073741824}  →  {"id": 7, "rc": 0}
 *   {"id": 8, "op": "stat"}                                         →  {"id": 8, "rc": 0, "result": {…}}
 *   {"id": 9, "op": "remove", "kind": "f", "name": "…"}                          →  {"id": 9, "rc": -5, "error": "…"}
 * Without a request: {"id": 0, "busy": true} while it copies or empties the trash, {"id": 0, "rc": …} before
 * it gives up because the pool cannot be opened.
 */
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "worker/gluster_copies.h"
#include "worker/path.h"
#include "worker/worker.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define PURGE_DELAY_MAX_S 64
#define RELEASE_S 8
/* most wait until bricks have written: as many as the operator has claims in work */
#define THREADS 16
#define LINE_LIMIT 65536
#define CHANNEL STDIN_FILENO

struct job {
	struct job *next;
	json_t *request;
};

static struct {
	struct pool_fs *fs;
	pthread_mutex_t lock;
	pthread_cond_t more, trash;
	struct job *head, **tail;
	bool purge;
	int busy; /* of the purge and the copies, how many are at work */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .more = PTHREAD_COND_INITIALIZER,
	    .trash = PTHREAD_COND_INITIALIZER,
	    .tail = &state.head,
	    .purge = true };

static void answer(json_t *reply)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	cleanup_free char *text = json_text(reply);
	size_t len = strlen(text), done = 0;

	text[len++] = '\n'; /* in place of the NUL */
	pthread_mutex_lock(&lock);
	while (done < len) {
		ssize_t n = send(CHANNEL, text + done, len - done, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* nobody there: the main thread sees it too, and ends us */
		done += (size_t)n;
	}
	pthread_mutex_unlock(&lock);
	json_decref(reply);
}

/* The manager lets a worker live while it is busy. */
static void set_busy(bool begins)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	bool before = state.busy > 0;
	state.busy += begins ? 1 : -1;
	if (before != (state.busy > 0))
		answer(json_pack("{s:i, s:b}", "id", 0, "busy", state.busy > 0));
	pthread_mutex_unlock(&lock);
}

/* The trash has something in it. */
static void wake_purge(void)
{
	pthread_mutex_lock(&state.lock);
	state.purge = true;
	pthread_cond_signal(&state.trash);
	pthread_mutex_unlock(&state.lock);
}

/* Kind and name, checked again here: they become parts of paths. */
static int volume_of(const json_t *o, enum volume_kind *kind, const char **name, struct error *err)
{
	const char *letter = jstr(o, "kind");
	*name = jstr(o, "name");
	*kind = letter ? (enum volume_kind)letter[0] : 0;
	if (!*name || !volume_name_ok(*name) || !volume_prefix(*kind))
		return error_set(
			err, EINVAL,
			"\"%.40s\" is not a volume's name: only a-z, 0-9 and - may be in it",
			*name ? *name : "");
	return 0;
}

/* A copy is stopped first; one that was begun again in between sees that its info file is gone. */
static int remove_volume(enum volume_kind kind, const char *name, const char *owner,
			 struct error *err)
{
	copies_stop(kind, name);
	int rc = pool_fs_remove(state.fs, kind, name, owner, err);
	copies_stop(kind, name);
	wake_purge();
	return rc;
}

/* A snapshot, or a volume with the content of another. */
static int run_copy(enum volume_kind kind, const char *name, const char *owner, int64_t size,
		    const json_t *from, json_t **result, struct error *err)
{
	enum volume_kind from_kind;
	const char *from_name;
	int rc = volume_of(from, &from_kind, &from_name, err);
	return rc < 0 ? rc : copies_ask(kind, name, owner, size, from_kind, from_name, result, err);
}

/* Copies begin or end; what they threw away is purged. The manager does not end a worker in the middle of one lightly. */
static void copies_changed(bool busy)
{
	set_busy(busy);
	answer(json_pack("{s:i, s:b}", "id", 0, "copying", busy));
	if (!busy)
		wake_purge();
}

static int run_on(const char *op, const json_t *request, json_t **result, struct error *err)
{
	enum volume_kind kind;
	const char *name, *owner = jstr(request, "owner");
	int64_t size = jint(request, "size");
	int rc = volume_of(request, &kind, &name, err);
	if (rc < 0)
		return rc;
	if (streq(op, "remove"))
		return remove_volume(kind, name, owner, err);
	if (streq(op, "find"))
		return pool_fs_find(state.fs, kind, name, result, err);
	if (streq(op, "copy"))
		return run_copy(kind, name, owner, size, jget(request, "from"), result, err);
	if (kind == VOLUME_SNAPSHOT)
		return error_set(err, EOPNOTSUPP, "a snapshot cannot be changed");
	if (streq(op, "create"))
		return pool_fs_create(state.fs, kind, name, owner, size, err);
	if (streq(op, "make") && kind == VOLUME_DIRECTORY)
		return pool_fs_make(state.fs, name, err);
	if (streq(op, "complete") && kind == VOLUME_DIRECTORY)
		return pool_fs_complete(state.fs, name, size, err);
	if (streq(op, "resize"))
		return pool_fs_resize(state.fs, kind, name, owner, size, err);
	if (streq(op, "archive")) {
		copies_stop(kind, name);
		return pool_fs_archive(state.fs, kind, name, owner, err);
	}
	return error_set(err, EOPNOTSUPP, "unknown operation \"%.40s\"", op);
}

static int run(const json_t *request, json_t **result, struct error *err)
{
	const char *op = jstr(request, "op") ? jstr(request, "op") : "";
	if (streq(op, "stat"))
		return pool_fs_stat(state.fs, result, err);
	if (streq(op, "list") || streq(op, "snapshots"))
		return pool_fs_list(state.fs, streq(op, "snapshots"), result, err);
	return run_on(op, request, result, err);
}

static void *work(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&state.lock);
		while (!state.head)
			pthread_cond_wait(&state.more, &state.lock);
		struct job *job = state.head;
		state.head = job->next;
		if (!state.head)
			state.tail = &state.head;
		pthread_mutex_unlock(&state.lock);

		struct error err = ERROR_INIT;
		json_t *result = NULL;
		int rc = run(job->request, &result, &err);
		json_t *reply = json_pack("{s:I, s:i}", "id", jint(job->request, "id"), "rc", rc);
		if (rc < 0)
			json_object_set_new(reply, "error", json_string(error_text(&err, rc)));
		if (result)
			json_object_set_new(reply, "result", result);
		answer(reply);
		json_decref(job->request);
		free(job);
	}
	return arg;
}

/* A brick that comes or goes lets a deletion fail: tried again a few times, longer apart each time. */
static void purge_trash(void)
{
	for (int delay_s = 1; delay_s <= PURGE_DELAY_MAX_S; delay_s *= 2) {
		struct error err = ERROR_INIT;
		int rc = pool_fs_purge(state.fs, &err);
		if (rc >= 0)
			return;
		log_warn("the trash was not emptied: %s; tried again in %d s", error_text(&err, rc),
			 delay_s);
		sleep((unsigned)delay_s);
	}
	log_warn("the trash was not emptied: the next removal tries again");
}

/* Empties the trash: once at the start, for what a former worker left, then after each removal. */
static void *purge(void *arg)
{
	struct error err = ERROR_INIT;

	if (pool_fs_ephemeral(state.fs, NULL, &err) < 0)
		log_warn("ephemeral volumes were not looked at: %s", err.message);
	for (;;) {
		pthread_mutex_lock(&state.lock);
		while (!state.purge)
			pthread_cond_wait(&state.trash, &state.lock);
		state.purge = false;
		pthread_mutex_unlock(&state.lock);

		set_busy(true);
		purge_trash();
		set_busy(false);
	}
	return arg;
}

static void enqueue(json_t *request)
{
	struct job *job = xcalloc(1, sizeof(*job));
	job->request = request;
	pthread_mutex_lock(&state.lock);
	*state.tail = job;
	state.tail = &job->next;
	pthread_cond_signal(&state.more);
	pthread_mutex_unlock(&state.lock);
}

static void take_lines(struct buf *in)
{
	char *start = in->data, *end;
	size_t left = in->len;

	while ((end = memchr(start, '\n', left))) {
		json_t *request = NULL;
		struct error err = ERROR_INIT;
		if (json_parse(start, (size_t)(end - start), &request, &err) == 0)
			enqueue(request);
		else
			log_err("request not understood: %s", err.message);
		left -= (size_t)(end + 1 - start);
		start = end + 1;
	}
	memmove(in->data, start, left);
	in->len = left;
}

static int serve(void)
{
	struct buf in = { 0 };
	char chunk[4096];

	for (;;) {
		ssize_t n = recv(CHANNEL, chunk, sizeof(chunk), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || in.len > LINE_LIMIT)
			break;
		buf_add(&in, chunk, (size_t)n);
		take_lines(&in);
	}
	buf_done(&in);
	return 0;
}

static int start_threads(void)
{
	for (int i = 0; i <= THREADS; i++) {
		pthread_t thread;
		int rc = pthread_create(&thread, NULL, i < THREADS ? work : purge, NULL);
		if (rc)
			return -rc;
		pthread_detach(thread);
	}
	return 0;
}

static const struct option options[] = {
	{ "pool", required_argument, NULL, 'p' }, { "host", required_argument, NULL, 'h' },
	{ "log", required_argument, NULL, 'l' },  { "epoch", required_argument, NULL, 'e' },
	{ "version", no_argument, NULL, 'v' },	  { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	const char *pool = NULL, *log_path = "/dev/null";
	struct strv hosts = { 0 };
	int64_t epoch = 0;
	struct error err = ERROR_INIT;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'p':
			pool = optarg;
			break;
		case 'h':
			strv_add(&hosts, optarg);
			break;
		case 'l':
			log_path = optarg;
			break;
		case 'e':
			epoch = strtoll(optarg, NULL, 10);
			break;
		case 'v':
			puts("qm-gluster " QM_VERSION);
			return 0;
		default:
			return 2;
		}
	}
	if (!pool || !hosts.count) {
		fprintf(stderr, "qm-gluster --pool NAME --host ADDRESS… [--log FILE] [--epoch N]: "
				"started by "
				"the operator, "
				"with a socket as standard input\n");
		return 2;
	}
	log_init("qm-gluster", LOG_LEVEL_INFO);
	umask(0);

	int rc = pool_fs_open(pool, (const char *const *)hosts.items, log_path, epoch, &state.fs,
			      &err);
	if (rc == 0)
		rc = start_threads();
	if (rc == 0)
		rc = copies_start(state.fs, copies_changed, &err);
	if (rc < 0) {
		log_err("%s", error_text(&err, rc));
		answer(json_pack("{s:i, s:i, s:s}", "id", 0, "rc", rc, "error",
				 error_text(&err, rc)));
		_exit(1);
	}
	serve();
	/* who comes next goes on with what we give back; a pool that hangs is not waited for */
	alarm(RELEASE_S);
	copies_release();
	/* no glfs_fini: requests may hang in it, and every change was synchronous */
	_exit(0);
}
