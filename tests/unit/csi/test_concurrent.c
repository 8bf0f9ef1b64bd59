/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

/* Two hundred calls at a time, for the same and for different volumes: one effect each. */
#define CALLS 200
#define NAMES 10

struct caller {
	struct fake *fake;
	pthread_barrier_t
		*start; /* so that they do come together, however slowly threads are made */
	pthread_t thread;
	int number;
	enum grpc_code code;
	int aborted;
};

static enum grpc_code create(struct fake *f, const char *name, char **ret_id)
{
	Csi__V1__CreateVolumeRequest q = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	Csi__V1__VolumeCapability c = CSI__V1__VOLUME_CAPABILITY__INIT, *cs[] = { &c };
	Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
	Csi__V1__VolumeCapability__MountVolume mount =
		CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	Csi__V1__CreateVolumeResponse *r = NULL;

	mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	c.access_mode = &mode;
	c.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c.mount = &mount;
	q.name = (char *)name;
	q.volume_capabilities = cs;
	q.n_volume_capabilities = 1;
	enum grpc_code code = fake_call(f, "CreateVolume", &q, &r, NULL);
	if (r && ret_id)
		*ret_id = xstrdup(r->volume->volume_id);
	fake_done(r);
	return code;
}

/* As an orchestrator does: what is aborted is asked for again. */
static void *make_one(void *userdata)
{
	struct caller *c = userdata;
	char name[32];

	pthread_barrier_wait(c->start);
	snprintf(name, sizeof(name), "v%d", c->number % NAMES);
	while ((c->code = create(c->fake, name, NULL)) == GRPC_ABORTED) {
		c->aborted++;
		usleep(1000);
	}
	return NULL;
}

static void *make_and_remove(void *userdata)
{
	struct caller *c = userdata;
	cleanup_free char *id = NULL;
	char name[32];

	pthread_barrier_wait(c->start);
	snprintf(name, sizeof(name), "v%d", c->number % NAMES);
	while ((c->code = create(c->fake, name, &id)) == GRPC_ABORTED)
		usleep(1000);
	if (c->code != GRPC_OK)
		return NULL;
	while ((c->code = fake_delete(c->fake, id)) == GRPC_ABORTED)
		usleep(1000);
	return NULL;
}

static void crowd(struct fake *f, void *(*routine)(void *), struct caller *callers)
{
	pthread_barrier_t start;
	pthread_barrier_init(&start, NULL, CALLS);
	for (int i = 0; i < CALLS; i++) {
		callers[i] = (struct caller){ .fake = f, .start = &start, .number = i };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, routine, &callers[i]), 0);
	}
	for (int i = 0; i < CALLS; i++) {
		pthread_join(callers[i].thread, NULL);
		if (callers[i].code != GRPC_OK)
			fail_msg("call %d: %s", i, grpc_code_name(callers[i].code));
	}
	pthread_barrier_destroy(&start);
}

static void one_effect_each(void **state)
{
	static struct caller callers[CALLS];
	struct fake *f = fake_new(32);
	int aborted = 0;

	f->slow_us = 5000;
	crowd(f, make_one, callers);
	for (int i = 0; i < CALLS; i++)
		aborted += callers[i].aborted;
	assert_int_equal(f->created, NAMES);
	assert_int_equal(f->count, NAMES);
	assert_int_equal(f->overlaps, 0);
	assert_true(aborted > 0); /* else nothing was tested */
	fake_free(f);
}

/* What was made is removed as often, and at the end nothing is left. */
static void made_and_removed(void **state)
{
	static struct caller callers[CALLS];
	struct fake *f = fake_new(32);

	f->slow_us = 500;
	crowd(f, make_and_remove, callers);
	assert_int_equal(f->count, 0);
	assert_int_equal(f->created, f->removed);
	assert_int_equal(f->overlaps, 0);
	fake_free(f);
}

/* More copies than may be waited for: the others are told at once, and all other calls go on. */
static void *copy_one(void *userdata)
{
	struct caller *c = userdata;
	Csi__V1__CreateVolumeRequest q = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	Csi__V1__VolumeCapability cap = CSI__V1__VOLUME_CAPABILITY__INIT, *caps[] = { &cap };
	Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
	Csi__V1__VolumeCapability__MountVolume mount =
		CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	Csi__V1__VolumeContentSource source = CSI__V1__VOLUME_CONTENT_SOURCE__INIT;
	Csi__V1__VolumeContentSource__VolumeSource volume =
		CSI__V1__VOLUME_CONTENT_SOURCE__VOLUME_SOURCE__INIT;
	char name[32];

	snprintf(name, sizeof(name), "copy%d", c->number);
	mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	cap.access_mode = &mode;
	cap.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	cap.mount = &mount;
	volume.volume_id = (char *)"v1." FAKE_POOL ".d.source";
	source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
	source.volume = &volume;
	q.name = name;
	q.volume_capabilities = caps;
	q.n_volume_capabilities = 1;
	q.volume_content_source = &source;
	c->code = fake_call(c->fake, "CreateVolume", &q, NULL, NULL);
	return NULL;
}

static void copies_leave_room(void **state)
{
	enum { COPIES = 64 };
	static struct caller callers[COPIES];
	struct fake *f = fake_new(32);

	f->copying = 1 << 30;
	for (int i = 0; i < COPIES; i++) {
		callers[i] = (struct caller){ .fake = f, .number = i };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, copy_one, &callers[i]),
				 0);
	}
	for (int i = 0; i < 20; i++) {
		char name[16];
		snprintf(name, sizeof(name), "other%d", i);
		assert_int_equal(create(f, name, NULL), GRPC_OK);
	}
	f->copying = 0;
	int told = 0;
	for (int i = 0; i < COPIES; i++) {
		pthread_join(callers[i].thread, NULL);
		told += callers[i].code == GRPC_ABORTED;
		if (callers[i].code != GRPC_ABORTED && callers[i].code != GRPC_OK)
			fail_msg("copy %d: %s", i, grpc_code_name(callers[i].code));
	}
	assert_int_equal(f->created, 20 + COPIES - told);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_effect_each),
		cmocka_unit_test(made_and_removed),
		cmocka_unit_test(copies_leave_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
