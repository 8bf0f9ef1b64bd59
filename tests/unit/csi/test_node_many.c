/* SPDX-License-Identifier: Apache-2.0 */
/* Many callers of the node service at once. */
#include "../skip.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/mountinfo.h"
#include "node_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

/*
 * Two hundred callers at a time, ten for each volume, two of them for the same target: what they ask for is
 * there once. ThreadSanitizer's processes are slow to make: there who is told ABORTED leaves it at that, so
 * that nearly all calls come to nothing, but still at the same time. AddressSanitizer's are slow, too, if less so: half
 * as many callers.
 */
#ifdef __SANITIZE_ADDRESS__
#define CALLERS 100
#else
#define CALLERS 200
#endif
#ifdef __SANITIZE_THREAD__
#define VOLUMES 2
#define TARGETS VOLUMES
#define PATIENT false
#else
#define VOLUMES (CALLERS / 10)
#define TARGETS (CALLERS / 2)
#define PATIENT true
#endif
#define ROUNDS 3

static pthread_barrier_t together;
static bool patient;

/* What is no answer yet: another call works on it, or this one takes longer on a busy machine than its caller waits. */
static bool is_no_answer(enum grpc_code code)
{
	return code == GRPC_ABORTED || code == GRPC_DEADLINE_EXCEEDED || code == GRPC_UNAVAILABLE;
}

/* As orchestrators do: until there is an answer, however long that takes. */
static enum grpc_code call_until_done(const char *method, const void *request)
{
	enum grpc_code code;

	while (is_no_answer(code = call(method, request, NULL)) && patient)
		pause_shortly();
	return is_no_answer(code) ? GRPC_OK : code;
}

struct place_of {
	char id[32], stage[32], target[32];
};

static struct place_of place_of(unsigned caller)
{
	struct place_of p;

	snprintf(p.id, sizeof(p.id), "volume-%u", caller % VOLUMES);
	snprintf(p.stage, sizeof(p.stage), "stage-%u", caller % VOLUMES);
	snprintf(p.target, sizeof(p.target), "target-%u", caller % TARGETS);
	return p;
}

static void *bring(void *arg)
{
	struct place_of at = place_of((unsigned)(uintptr_t)arg);
	Csi__V1__NodeStageVolumeRequest q = stage_request(at.id);
	Csi__V1__NodePublishVolumeRequest p = publish_request(at.id, at.target);

	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry own = *q.volume_context[1],
							    *with[] = { q.volume_context[0], &own };

	q.staging_target_path = p.staging_target_path = in_dir(at.stage);
	own.value = in_dir(at.id);
	q.volume_context = with;
	(void)mkdir(own.value, 0755);
	pthread_barrier_wait(&together);
	if (call_until_done("NodeStageVolume", &q) != GRPC_OK)
		return (void *)"stage";
	/* who did not wait may come before it is staged */
	if (call_until_done("NodePublishVolume", &p) != GRPC_OK && patient)
		return (void *)"publish";
	return !patient || is_mounted(p.target_path) ? NULL : (void *)"see what was published";
}

static void *take_away_again(void *arg)
{
	struct place_of at = place_of((unsigned)(uintptr_t)arg);
	Csi__V1__NodeUnpublishVolumeRequest q = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = at.id;
	q.target_path = in_dir(at.target);
	pthread_barrier_wait(&together);
	return call_until_done("NodeUnpublishVolume", &q) == GRPC_OK ? NULL : (void *)"unpublish";
}

/* Refused, but only after the volume was taken: so this goes through all that callers share. */
static void *one_refused(void *arg)
{
	struct place_of at = place_of((unsigned)(uintptr_t)arg);

	pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS; i++) {
		Csi__V1__NodeStageVolumeRequest q = stage_request(at.id);
		enum grpc_code code;

		q.n_volume_context = 0;
		code = call("NodeStageVolume", &q, NULL);
		if (!is_no_answer(code) && code != GRPC_INVALID_ARGUMENT)
			return (void *)"be refused";
	}
	return NULL;
}

static void run_callers(void *(*caller)(void *arg))
{
	static pthread_t threads[CALLERS];
	static void *results[CALLERS];

	patient = PATIENT;
	pthread_barrier_init(&together, NULL, CALLERS);
	for (uintptr_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, caller, (void *)i), 0);
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_join(threads[i], &results[i]), 0);
	pthread_barrier_destroy(&together);
	pthread_barrier_init(&together, NULL, 1);
	patient = true;
	for (uintptr_t i = 0; !PATIENT && i < VOLUMES; i++)
		assert_null(caller((void *)i));
	pthread_barrier_destroy(&together);
	for (int i = 0; i < CALLERS; i++)
		if (results[i])
			fail_msg("caller %d could not %s", i, (char *)results[i]);
}

static void test_many_refused(void **state)
{
	run_callers(one_refused);
}

static int count_mount(const struct mount_entry *e, void *userdata)
{
	*(int *)userdata += str_has_prefix(e->mount_point, dir);
	return 0;
}

/* Mounts below the test's directory. */
static int mounts_here(void)
{
	cleanup_free char *text = NULL;
	int count = 0;

	assert_int_equal(file_read("/proc/self/mountinfo", 0, &text, NULL, NULL), 0);
	assert_int_equal(mountinfo_each(text, count_mount, &count), 0);
	return count;
}

static void test_many_at_once(void **state)
{
	struct stat st;
	int before;

	if (!can_mount)
		skip_without("the right to mount");
	before = mounts_here();
	run_callers(bring);
	assert_int_equal(mounts_here(), before + TARGETS);
	run_callers(take_away_again);
	assert_int_equal(mounts_here(), before);
	for (unsigned i = 0; i < TARGETS; i++)
		assert_int_equal(stat(in_dir(place_of(i).target), &st), -1);
	for (unsigned i = 0; i < VOLUMES; i++)
		assert_int_equal(unstage(place_of(i).id, in_dir(place_of(i).stage)), GRPC_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_refused),
		cmocka_unit_test(test_many_at_once),
	};

	return cmocka_run_group_tests(tests, node_setup, node_teardown);
}
