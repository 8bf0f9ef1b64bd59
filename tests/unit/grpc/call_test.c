/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

static void test_round_trip(void **state)
{
	struct fixture *f = *state;
	Csi__V1__CreateVolumeRequest req = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	Csi__V1__CreateVolumeRequest__ParametersEntry entry =
		CSI__V1__CREATE_VOLUME_REQUEST__PARAMETERS_ENTRY__INIT;
	Csi__V1__CreateVolumeRequest__ParametersEntry *entries[] = { &entry };
	Csi__V1__CreateVolumeResponse *res;
	enum grpc_code code = GRPC_UNKNOWN;

	req.name = (char *)"gr\xc3\xbc\xc3\x9f";
	entry.key = (char *)"pool";
	entry.value = (char *)"main-1";
	req.n_parameters = 1;
	req.parameters = entries;
	assert_int_equal(grpc_client_call(f->client, &csi__v1__controller__descriptor,
					  "CreateVolume", &req, 5000, (void **)&res, &code, NULL),
			 0);
	assert_int_equal(code, GRPC_OK);
	assert_string_equal(res->volume->volume_id, req.name);
	assert_int_equal(res->volume->n_volume_context, 1);
	assert_string_equal(res->volume->volume_context[0]->key, "pool");
	assert_string_equal(res->volume->volume_context[0]->value, "main-1");
	protobuf_c_message_free_unpacked(&res->base, NULL);
	assert_create(f->client, ""); /* a request of no bytes */
}

static void test_codes(void **state)
{
	static const struct {
		int code;
		enum grpc_code grpc;
	} table[] = {
		{ EINVAL, GRPC_INVALID_ARGUMENT },
		{ ENOENT, GRPC_NOT_FOUND },
		{ EEXIST, GRPC_ALREADY_EXISTS },
		{ EBUSY, GRPC_FAILED_PRECONDITION },
		{ EINPROGRESS, GRPC_ABORTED },
		{ ENOSPC, GRPC_RESOURCE_EXHAUSTED },
		{ ERANGE, GRPC_OUT_OF_RANGE },
		{ EOPNOTSUPP, GRPC_UNIMPLEMENTED },
		{ EACCES, GRPC_PERMISSION_DENIED },
		{ EAGAIN, GRPC_UNAVAILABLE },
		{ ETIMEDOUT, GRPC_DEADLINE_EXCEEDED },
		{ ECANCELED, GRPC_CANCELLED },
		{ EIO, GRPC_INTERNAL },
	};
	struct fixture *f = *state;

	f->sentence = "It does not work.";
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct error err = ERROR_INIT;
		enum grpc_code code = GRPC_OK;
		char name[32];

		snprintf(name, sizeof(name), "fail-%d", table[i].code);
		assert_int_equal(create(f->client, name, &code, &err), -table[i].code);
		assert_int_equal(code, table[i].grpc);
		assert_string_equal(err.message, f->sentence);
		assert_int_equal(err.code, table[i].code);
	}
}

static void test_sentences(void **state)
{
	static const char *const sentences[] = {
		"100% of it, 50%25, %",
		"two\nlines\tand a tab",
		"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x92\xbe",
		"  blanks around  ",
		"\x7f\x01",
	};
	struct fixture *f = *state;
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
		f->sentence = sentences[i];
		assert_int_equal(create(f->client, "fail-2", NULL, &err), -ENOENT);
		assert_string_equal(err.message, sentences[i]);
	}
	f->sentence = "caf\xe9, cut \xe2\x82";
	create(f->client, "fail-2", NULL, &err);
	assert_string_equal(err.message, "caf?, cut ??");
	/* without a sentence there is one all the same */
	assert_int_equal(create(f->client, "mute-2", NULL, &err), -ENOENT);
	assert_non_null(strstr(err.message, "CreateVolume"));
	assert_non_null(strstr(err.message, strerror(ENOENT)));
}

static void test_unknown(void **state)
{
	struct fixture *f = *state;
	Csi__V1__GetCapacityRequest capacity = CSI__V1__GET_CAPACITY_REQUEST__INIT;
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	struct error err = ERROR_INIT;
	enum grpc_code code;
	void *res = NULL;

	assert_int_equal(grpc_client_call(f->client, &csi__v1__controller__descriptor,
					  "GetCapacity", &capacity, 5000, &res, &code, &err),
			 -EOPNOTSUPP);
	assert_int_equal(code, GRPC_UNIMPLEMENTED);
	assert_non_null(strstr(err.message, "GetCapacity"));
	assert_int_equal(grpc_client_call(f->client, &csi__v1__identity__descriptor, "Probe",
					  &probe, 5000, &res, &code, &err),
			 -EOPNOTSUPP);
	assert_int_equal(code, GRPC_UNIMPLEMENTED);
	assert_non_null(strstr(err.message, "csi.v1.Identity"));
	assert_int_equal(grpc_client_call(f->client, &csi__v1__identity__descriptor, "Prob", &probe,
					  5000, &res, &code, &err),
			 -EOPNOTSUPP);
	assert_null(res);
}

static void test_misspelt_table(void **state)
{
	static const struct grpc_method methods[] = { { "Prob", NULL }, { 0 } };
	const struct grpc_service services[] = { { &csi__v1__identity__descriptor, methods, NULL },
						 { 0 } };
	const struct grpc_listen listen = { .unix_path = "/tmp/never" };
	struct grpc_server *s = NULL;

	assert_int_equal(grpc_server_start(&listen, services, &s, NULL), -EINVAL);
	assert_null(s);
	assert_int_equal(access("/tmp/never", F_OK), -1);
}

static int delete_volume(struct grpc_client *c, int timeout_ms, enum grpc_code *ret_code)
{
	Csi__V1__DeleteVolumeRequest req = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
	Csi__V1__DeleteVolumeResponse *res = NULL;
	int r = grpc_client_call(c, &csi__v1__controller__descriptor, "DeleteVolume", &req,
				 timeout_ms, (void **)&res, ret_code, NULL);

	if (res)
		protobuf_c_message_free_unpacked(&res->base, NULL);
	return r;
}

static void test_deadline(void **state)
{
	struct fixture *f = *state;
	enum grpc_code code = GRPC_OK;
	bool began = false;

	/* on a busy machine the first may be over before a handler sees it */
	for (int ms = 200; ms < 20000 && !began; ms *= 5) {
		int64_t begin = now_ms();

		assert_int_equal(delete_volume(f->client, ms, &code), -ETIMEDOUT);
		assert_int_equal(code, GRPC_DEADLINE_EXCEEDED);
		assert_in_range(now_ms() - begin, ms - 10, ms + 5000);
		pthread_mutex_lock(&f->lock);
		began = f->waiting > 0;
		pthread_mutex_unlock(&f->lock);
	}
	assert_true(began);
	fixture_await(f, &f->cancelled, 1);
	assert_create(f->client, "after");
}

static int left_ms(struct grpc_client *c, int timeout_ms)
{
	Csi__V1__ListVolumesRequest req = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
	Csi__V1__ListVolumesResponse *res;
	int left;

	assert_int_equal(grpc_client_call(c, &csi__v1__controller__descriptor, "ListVolumes", &req,
					  timeout_ms, (void **)&res, NULL, NULL),
			 0);
	left = atoi(res->next_token);
	protobuf_c_message_free_unpacked(&res->base, NULL);
	return left;
}

static void test_left(void **state)
{
	struct fixture *f = *state;

	assert_in_range(left_ms(f->client, 60000), 50000, 60000);
	assert_in_range(left_ms(f->client, 200000000), 199990000, 200000000);
	assert_int_equal(left_ms(f->client, -1), INT_MAX);
}

static void *delete_main(void *arg)
{
	struct grpc_client *c = arg;

	return (void *)(intptr_t)delete_volume(c, 30000, NULL);
}

static void test_client_goes(void **state)
{
	struct fixture *f = *state;
	struct grpc_client *other = new_client(f);
	pthread_t thread;
	void *r;

	pthread_create(&thread, NULL, delete_main, other);
	fixture_await(f, &f->waiting, 1);
	grpc_client_free(other); /* ends its calls */
	pthread_join(thread, &r);
	assert_int_equal((intptr_t)r, -EAGAIN);
	fixture_await(f, &f->cancelled, 1);
}

static void test_hanging_handlers(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[40];
	void *r;

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, delete_main, f->client);
	fixture_await(f, &f->waiting, ARRAY_SIZE(threads));
	for (int i = 0; i < 20; i++)
		assert_create(f->client, "beside");
	fixture_release(f);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &r);
		assert_int_equal((intptr_t)r, 0);
	}
}

static void test_late_turn(void **state)
{
	struct fixture *f = *state;
	enum grpc_code code = GRPC_OK;
	char large[200] = { 0 };
	pthread_t thread;
	void *r;

	fixture_restart(f, 1, 100);
	pthread_create(&thread, NULL, delete_main, f->client);
	fixture_await(f, &f->waiting, 1);
	/* the only worker is busy: its time is over before its turn comes */
	assert_int_equal(delete_volume(f->client, 100, &code), -ETIMEDOUT);
	/* refused without a worker, behind the reset: the server has seen that */
	memset(large, 'l', sizeof(large) - 1);
	assert_int_equal(create(f->client, large, NULL, NULL), -ENOSPC);
	fixture_release(f);
	pthread_join(thread, &r);
	assert_int_equal((intptr_t)r, 0);
	assert_create(f->client, "after");
	assert_int_equal(f->waiting, 1); /* the handler has not seen the second */
}

static void *stop_main(void *arg)
{
	struct fixture *f = arg;

	grpc_server_free(f->server);
	return NULL;
}

static void test_stop(void **state)
{
	struct fixture *f = *state;
	pthread_t calling, stopping;
	void *r;

	pthread_create(&calling, NULL, delete_main, f->client);
	fixture_await(f, &f->waiting, 1);
	pthread_create(&stopping, NULL, stop_main, f);
	pthread_join(stopping, NULL); /* after 2 s the handler sees that the caller is gone */
	f->server = NULL;
	pthread_join(calling, &r);
	assert_true((intptr_t)r < 0);
	assert_int_equal(f->cancelled, 1);
}

static void test_nobody_there(void **state)
{
	struct fixture *f = *state;
	struct error err = ERROR_INIT;
	enum grpc_code code = GRPC_OK;

	grpc_server_free(f->server);
	f->server = NULL;
	assert_int_equal(create(f->client, "x", &code, &err), -EAGAIN);
	assert_int_equal(code, GRPC_UNAVAILABLE);
	assert_non_null(strstr(err.message, f->socket));
	fixture_restart(f, 0, 0);
	assert_create(f->client, "again");
}

/* The server's last word, that it has not seen the call, may come after the call was begun. */
static void test_restarts(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 300; i++) {
		assert_create(f->client, "before");
		fixture_restart(f, 0, 0);
		assert_create(f->client, "after");
	}
}

static void test_sizes(void **state)
{
	struct fixture *f = *state;
	struct error err = ERROR_INIT;
	enum grpc_code code = GRPC_OK;
	cleanup_free char *name = xcalloc(1, 5000001);

	memset(name, 'n', 5000000);
	assert_int_equal(create(f->client, name, &code, &err), -ENOSPC);
	assert_int_equal(code, GRPC_RESOURCE_EXHAUSTED);
	name[3 * 1024 * 1024] = 0;
	assert_create(f->client, name);
	assert_create(f->client, "big-4000000");
	assert_int_equal(create(f->client, "big-4194304", &code, &err), -ENOSPC);
	assert_int_equal(code, GRPC_RESOURCE_EXHAUSTED);
	assert_int_equal(create(f->client, "latin", &code, &err), -EIO);
	assert_int_equal(code, GRPC_INTERNAL);
	assert_non_null(strstr(err.message, "UTF-8"));

	fixture_restart(f, 0, 100);
	name[98] = 0; /* with a byte for its number and one for its length */
	assert_create(f->client, name);
	name[98] = 'n';
	name[99] = 0;
	assert_int_equal(create(f->client, name, &code, &err), -ENOSPC);
}

struct crowd {
	struct grpc_client *clients[4];
	int client_count;
	atomic_int next, good;
};

static void *crowd_main(void *arg)
{
	struct crowd *crowd = arg;
	int me = crowd->next++;
	char name[32];

	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "volume-%d-%d", me, i);
		if (create(crowd->clients[me % crowd->client_count], name, NULL, NULL) == 0)
			crowd->good++;
	}
	return NULL;
}

static void run_crowd(struct fixture *f, int client_count)
{
	struct crowd crowd = { .client_count = client_count };
	pthread_t threads[200];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (int i = 0; i < client_count; i++)
		crowd.clients[i] = new_client(f);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], &attr, crowd_main, &crowd), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(crowd.good, 1000);
	for (int i = 0; i < client_count; i++)
		grpc_client_free(crowd.clients[i]);
	pthread_attr_destroy(&attr);
}

static void test_crowd_on_one(void **state)
{
	run_crowd(*state, 1);
}

static void test_crowd_on_several(void **state)
{
	run_crowd(*state, 4);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fixture(test_round_trip),
		with_fixture(test_codes),
		with_fixture(test_sentences),
		with_fixture(test_unknown),
		cmocka_unit_test(test_misspelt_table),
		with_fixture(test_deadline),
		with_fixture(test_left),
		with_fixture(test_client_goes),
		with_fixture(test_hanging_handlers),
		with_fixture(test_late_turn),
		with_fixture(test_stop),
		with_fixture(test_nobody_there),
		with_fixture(test_restarts),
		with_fixture(test_sizes),
		with_fixture(test_crowd_on_one),
		with_fixture(test_crowd_on_several),
	};

	return cmocka_run_group_tests_name("grpc-call", tests, NULL, NULL);
}
