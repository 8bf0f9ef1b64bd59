/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

#define GONE_MS 20000 /* at most */

static const char *const hosts[] = { "192.0.2.1", NULL };
static const struct worker_pool pool_a = { "a", hosts }, pool_b = { "b", hosts },
				pool_c = { "c", hosts }, refuse = { "refuse", hosts };

#define VOLUME(name) ((struct worker_volume){ VOLUME_DIRECTORY, (name) })

static struct workers *start_turns(int max, int idle_ms, int deadline_ms, int least_ms)
{
	struct workers_options o = { .program = FAKE_WORKER,
				     .log_dir = "/tmp",
				     .max = max,
				     .idle_ms = idle_ms,
				     .deadline_ms = deadline_ms,
				     .least_ms = least_ms };
	struct workers *w;
	struct error err = ERROR_INIT;
	if (workers_start(&o, &w, &err) < 0)
		fail_msg("%s", err.message);
	return w;
}

static struct workers *start(int max, int idle_ms, int deadline_ms)
{
	return start_turns(max, idle_ms, deadline_ms, 0);
}

static pid_t pid_of(struct workers *w, const struct worker_pool *pool)
{
	cleanup_json json_t *r = NULL;
	assert_int_equal(w->ops->stat(w, pool, &r, NULL), 0);
	return (pid_t)jint(r, "pid");
}

static bool gone(pid_t pid, int timeout_ms)
{
	for (int i = 0; i < timeout_ms / 20; i++) {
		if (kill(pid, 0) < 0 && errno == ESRCH)
			return true;
		poll(NULL, 0, 20);
	}
	return false;
}

static void answers_and_errors(void **state)
{
	struct workers *w = start(0, 0, 0);
	struct error err = ERROR_INIT;
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("pvc-1"), 5, &err), 0);
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("fail"), 5, &err), -ENOSPC);
	assert_int_equal(w->ops->make(w, &pool_a, &VOLUME("pvc-1"), &err), 0);
	assert_int_equal(w->ops->make(w, &pool_a, &VOLUME("../x"), &err), -EINVAL);
	assert_int_equal(w->ops->complete(w, &pool_a, &VOLUME("fail"), 5, &err), -ENOSPC);
	assert_string_equal(err.message, "no room");
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("../x"), 5, &err), -EINVAL);
	assert_int_equal(w->ops->create(w, &refuse, &VOLUME("pvc-1"), 5, &err), -ENOTCONN);
	assert_string_equal(err.message, "cannot be opened");
	w->ops->free(w);
}

/* What is asked arrives as it was asked, and "under way" with what is said of it. */
static void copies_and_kinds(void **state)
{
	struct workers *w = start(0, 0, 0);
	struct worker_volume from = { VOLUME_BLOCK, "pvc-1" }, file = { VOLUME_FILE, "making" };
	struct worker_volume none = { 'x', "pvc-1" }, bad = { VOLUME_FILE, "a/b" };
	struct worker_volume snapshot = { VOLUME_SNAPSHOT, "making", "its-owner" };
	cleanup_json json_t *a = NULL, *b = NULL;
	assert_int_equal(w->ops->copy(w, &pool_a, &file, 5, &from, NULL), 1);
	assert_int_equal(w->ops->snapshot(w, &pool_a, &from, &snapshot, &a, NULL), 1);
	assert_string_equal(jstr(a, "kind"), "s");
	assert_string_equal(jstr(a, "owner"), "its-owner");
	assert_string_equal(jstr(a, "from", "kind"), "b");
	assert_string_equal(jstr(a, "from", "name"), "pvc-1");
	assert_int_equal(w->ops->find(w, &pool_a, &from, &b, NULL), 0);
	assert_string_equal(jstr(b, "kind"), "b");
	assert_int_equal(w->ops->create(w, &pool_a, &none, 5, NULL), -EOPNOTSUPP);
	assert_int_equal(w->ops->copy(w, &pool_a, &from, 5, &bad, NULL), -EINVAL);
	assert_int_equal(w->ops->snapshot_remove(w, &pool_a, &VOLUME("../x"), NULL), -EINVAL);
	w->ops->free(w);
}

static void a_copying_worker_is_not_idle(void **state)
{
	struct workers *w = start(0, 100, 0);
	pid_t pid = pid_of(w, &pool_a);
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("copying"), 5, NULL), 0);
	assert_false(gone(pid, 600));
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("copied"), 5, NULL), 0);
	assert_true(gone(pid, GONE_MS));
	w->ops->free(w);
}

static void a_dead_worker_is_started_again(void **state)
{
	struct workers *w = start(0, 0, 0);
	pid_t first = pid_of(w, &pool_a);
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("die"), 5, NULL), -EAGAIN);
	assert_int_not_equal(pid_of(w, &pool_a), first);
	/* one that has lost its pool is not asked again */
	first = pid_of(w, &pool_a);
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("lost"), 5, NULL), -ENOTCONN);
	assert_int_not_equal(pid_of(w, &pool_a), first);
	w->ops->free(w);
}

struct hanging {
	struct workers *w;
	atomic_bool ended;
	int rc;
};

static void *hang(void *arg)
{
	struct hanging *h = arg;
	h->rc = h->w->ops->create(h->w, &pool_a, &VOLUME("hang"), 5, NULL);
	atomic_store(&h->ended, true);
	return NULL;
}

/* The others' calls are done while the hung one still waits for its deadline. */
static void a_hung_pool_stops_nobody(void **state)
{
	struct hanging h = { .w = start(2, 0, 4000) };
	pid_t hung = pid_of(h.w, &pool_a);
	pthread_t thread;
	int failed = 0;
	bool too_late;

	pthread_create(&thread, NULL, hang, &h);
	for (int i = 0; i < 6; i++)
		failed += h.w->ops->create(h.w, i % 2 ? &pool_b : &pool_c, &VOLUME("pvc-1"), 5,
					   NULL) != 0;
	too_late = atomic_load(&h.ended);
	pthread_join(thread, NULL);

	assert_int_equal(failed, 0);
	assert_false(too_late);
	assert_int_equal(h.rc, -ETIMEDOUT);
	assert_true(gone(hung, GONE_MS));
	assert_int_equal(h.w->ops->create(h.w, &pool_a, &VOLUME("pvc-1"), 5, NULL), 0);
	h.w->ops->free(h.w);
}

/* Whoever does not lead any more ends them all, whatever they do. */
static void all_are_ended(void **state)
{
	struct hanging h = { .w = start(2, 0, 0) };
	pid_t a = pid_of(h.w, &pool_a), b = pid_of(h.w, &pool_b);
	pthread_t thread;

	pthread_create(&thread, NULL, hang, &h);
	poll(NULL, 0, 100);
	h.w->ops->end_all(h.w);
	pthread_join(thread, NULL);
	assert_int_equal(h.rc, -ENOTCONN);
	assert_true(gone(a, GONE_MS) && gone(b, GONE_MS));
	assert_int_equal(h.w->ops->create(h.w, &pool_a, &VOLUME("pvc-1"), 5, NULL), 0);
	h.w->ops->free(h.w);
}

static int64_t epoch_is(void *userdata)
{
	return *(int64_t *)userdata;
}

/* Nor does it start any. */
static void none_without_the_lease(void **state)
{
	int64_t epoch = 3;
	struct workers_options o = { .program = FAKE_WORKER,
				     .log_dir = "/tmp",
				     .epoch = epoch_is,
				     .epoch_userdata = &epoch };
	struct workers *w;
	struct error err = ERROR_INIT;
	assert_int_equal(workers_start(&o, &w, &err), 0);
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("pvc-1"), 5, &err), 0);
	epoch = -1;
	w->ops->end_all(w);
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("pvc-1"), 5, &err), -EAGAIN);
	assert_non_null(strstr(err.message, "does not lead"));
	epoch = 4;
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("pvc-1"), 5, &err), 0);
	w->ops->free(w);
}

static void idle_workers_end(void **state)
{
	struct workers *w = start(0, 100, 0);
	pid_t pid = pid_of(w, &pool_a);
	assert_true(gone(pid, GONE_MS));
	w->ops->free(w);
}

static void room_is_made(void **state)
{
	struct workers *w = start(1, 0, 0);
	pid_t a = pid_of(w, &pool_a);
	pid_t b = pid_of(w, &pool_b);
	assert_true(gone(a, GONE_MS));
	assert_int_equal(kill(b, 0), 0);
	w->ops->free(w);
	assert_true(gone(b, GONE_MS));
}

static void *slow(void *arg)
{
	struct workers *w = arg;
	return (void *)(intptr_t)w->ops->create(w, &pool_a, &VOLUME("slow"), 5, NULL);
}

static void others_wait_while_all_work(void **state)
{
	struct workers *w = start(1, 0, 0);
	pthread_t thread;
	void *rc;
	pthread_create(&thread, NULL, slow, w);
	poll(NULL, 0, 50);
	assert_int_equal(w->ops->create(w, &pool_b, &VOLUME("pvc-1"), 5, NULL), 0);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	w->ops->free(w);
}

static void *slower(void *arg)
{
	struct workers *w = arg;
	return (void *)(intptr_t)w->ops->create(w, &pool_a, &VOLUME("slower"), 5, NULL);
}

/* Whoever had to wait for a place has all of the time for the answer itself. */
static void waiting_takes_no_time(void **state)
{
	struct workers *w = start(1, 0, 4000);
	pthread_t thread;
	void *rc;
	pthread_create(&thread, NULL, slower, w);
	poll(NULL, 0, 50);
	assert_int_equal(w->ops->create(w, &pool_b, &VOLUME("slower"), 5, NULL), 0);
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	w->ops->free(w);
}

struct always {
	struct workers *w;
	atomic_bool stop;
};

static void *always_slow(void *arg)
{
	struct always *a = arg;
	while (!atomic_load(&a->stop))
		slow(a->w);
	return NULL;
}

/* Who got no place may get one the next time: nothing has failed for good. */
static void all_are_at_work(void **state)
{
	struct always a = { .w = start(1, 0, 2000) };
	pthread_t threads[2];
	struct error err = ERROR_INIT;
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, always_slow, &a);
		poll(NULL, 0, 50);
	}
	int rc = a.w->ops->create(a.w, &pool_b, &VOLUME("pvc-1"), 5, &err);
	atomic_store(&a.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(rc, -EAGAIN);
	assert_non_null(strstr(err.message, "at work"));
	a.w->ops->free(a.w);
}

/* One that has worked for others long enough makes way, however many calls come; and has its turn again. */
static void all_have_their_turn(void **state)
{
	struct always a = { .w = start_turns(1, 0, 20000, 500) };
	pthread_t threads[2];
	int failed = 0;
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, always_slow, &a);
		poll(NULL, 0, 50);
	}
	for (int i = 0; i < 3; i++)
		failed += a.w->ops->create(a.w, &pool_b, &VOLUME("pvc-1"), 5, NULL) != 0;
	atomic_store(&a.stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failed, 0);
	assert_int_equal(a.w->ops->create(a.w, &pool_a, &VOLUME("pvc-1"), 5, NULL), 0);
	a.w->ops->free(a.w);
}

/* One that copies is not ended for others' calls before it had its time; whoever asks comes again. */
static void a_copying_worker_has_its_time(void **state)
{
	struct workers *w = start_turns(1, 0, 2000, 8000);
	struct error err = ERROR_INIT;
	pid_t pid = pid_of(w, &pool_a);
	int rc;
	assert_int_equal(w->ops->create(w, &pool_a, &VOLUME("copying"), 5, NULL), 0);
	pid_of(w, &pool_a); /* its answer comes after what it said of itself */
	assert_int_equal(w->ops->create(w, &pool_b, &VOLUME("pvc-1"), 5, &err), -EAGAIN);
	assert_non_null(strstr(err.message, "at work"));
	assert_int_equal(pid_of(w, &pool_a), pid);
	for (int i = 0; i < 20; i++) {
		rc = w->ops->create(w, &pool_b, &VOLUME("pvc-1"), 5, NULL);
		if (rc != -EAGAIN)
			break;
	}
	assert_int_equal(rc, 0);
	assert_true(gone(pid, GONE_MS));
	w->ops->free(w);
}

struct storm {
	struct workers *w;
	int failed;
};

static void *storm_thread(void *arg)
{
	struct storm *s = arg;
	for (int i = 0; i < 50; i++)
		if (s->w->ops->create(s->w, i % 3 ? &pool_a : &pool_b, &VOLUME("pvc-1"), 5, NULL) <
		    0)
			__atomic_fetch_add(&s->failed, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void many_threads(void **state)
{
	struct storm s = { .w = start(0, 0, 0) };
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, storm_thread, &s);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(s.failed, 0);
	s.w->ops->free(s.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_and_errors),
		cmocka_unit_test(copies_and_kinds),
		cmocka_unit_test(a_copying_worker_is_not_idle),
		cmocka_unit_test(a_dead_worker_is_started_again),
		cmocka_unit_test(a_hung_pool_stops_nobody),
		cmocka_unit_test(all_are_ended),
		cmocka_unit_test(none_without_the_lease),
		cmocka_unit_test(idle_workers_end),
		cmocka_unit_test(room_is_made),
		cmocka_unit_test(others_wait_while_all_work),
		cmocka_unit_test(waiting_takes_no_time),
		cmocka_unit_test(all_are_at_work),
		cmocka_unit_test(all_have_their_turn),
		cmocka_unit_test(a_copying_worker_has_its_time),
		cmocka_unit_test(many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
