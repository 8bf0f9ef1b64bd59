/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

int64_t now_ms(void)
{
	return clock_mono_ms(&clock_real);
}

static struct timespec in_ms(clockid_t clock, int ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ms % 1000 * 1000000L;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void add_context(struct grpc_call *call, Csi__V1__Volume *volume, const char *key,
			const char *value)
{
	Csi__V1__Volume__VolumeContextEntry *entry =
		grpc_call_message(call, &csi__v1__volume__volume_context_entry__descriptor);

	entry->key = grpc_call_strdup(call, key);
	entry->value = grpc_call_strdup(call, value);
	volume->volume_context[volume->n_volume_context++] = entry;
}

static int create_volume(struct grpc_call *call, const void *request, void *reply,
			 struct error *err)
{
	const Csi__V1__CreateVolumeRequest *req = request;
	Csi__V1__CreateVolumeResponse *res = reply;
	const struct fixture *f = grpc_call_userdata(call);
	Csi__V1__Volume *volume = grpc_call_message(call, &csi__v1__volume__descriptor);
	int n;

	if (sscanf(req->name, "fail-%d", &n) == 1)
		return error_set(err, n, "%s", f->sentence);
	if (sscanf(req->name, "mute-%d", &n) == 1)
		return -n;
	volume->volume_id = grpc_call_strdup(call, req->name);
	volume->volume_context =
		grpc_call_alloc(call, (req->n_parameters + 1) * sizeof(*volume->volume_context));
	for (size_t i = 0; i < req->n_parameters; i++)
		add_context(call, volume, req->parameters[i]->key, req->parameters[i]->value);
	if (sscanf(req->name, "big-%d", &n) == 1) {
		char *big = grpc_call_alloc(call, (size_t)n + 1);

		memset(big, 'b', (size_t)n);
		add_context(call, volume, "big", big);
	}
	if (streq(req->name, "latin"))
		add_context(call, volume, "latin", "caf\xe9");
	res->volume = volume;
	return 0;
}

static int delete_volume(struct grpc_call *call, const void *request, void *reply,
			 struct error *err)
{
	struct fixture *f = grpc_call_userdata(call);
	bool cancelled;

	pthread_mutex_lock(&f->lock);
	f->waiting++;
	pthread_cond_broadcast(&f->changed);
	while (!(cancelled = grpc_call_cancelled(call)) && !f->released) {
		struct timespec soon = in_ms(CLOCK_REALTIME, 20);

		pthread_cond_timedwait(&f->changed, &f->lock, &soon);
	}
	f->cancelled += cancelled;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return cancelled ? error_set(err, ECANCELED, "The caller has gone") : 0;
}

static int list_volumes(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	Csi__V1__ListVolumesResponse *res = reply;
	char text[32];

	snprintf(text, sizeof(text), "%d", grpc_call_left_ms(call));
	res->next_token = grpc_call_strdup(call, text);
	return 0;
}

static const struct grpc_method methods[] = {
	{ "CreateVolume", create_volume },
	{ "DeleteVolume", delete_volume },
	{ "ListVolumes", list_volumes },
	{ 0 },
};

static void start(struct fixture *f, const struct grpc_listen *listen)
{
	const struct grpc_service services[] = {
		{ &csi__v1__controller__descriptor, methods, f },
		{ 0 },
	};
	struct error err = ERROR_INIT;

	if (grpc_server_start(listen, services, &f->server, &err) < 0)
		fail_msg("%s", err.message);
}

void fixture_restart(struct fixture *f, int workers, size_t max_request)
{
	const struct grpc_listen listen = {
		.unix_path = f->socket,
		.workers = workers,
		.max_request = max_request,
		.anyone = geteuid() != 0,
	};

	grpc_server_free(f->server);
	start(f, &listen);
}

static int setup(void **state, bool anyone)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct grpc_listen listen = { .unix_path = f->socket, .anyone = anyone };

	strcpy(f->dir, "/tmp/grpc-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/csi.sock", f->dir);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	start(f, &listen);
	f->client = new_client(f);
	*state = f;
	return 0;
}

int fixture_setup(void **state)
{
	return setup(state, geteuid() != 0);
}

int fixture_setup_anyone(void **state)
{
	return setup(state, true);
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	fixture_release(f);
	grpc_client_free(f->client);
	grpc_server_free(f->server);
	assert_int_equal(access(f->socket, F_OK), -1);
	rmdir(f->dir);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f);
	return 0;
}

struct grpc_client *new_client(const struct fixture *f)
{
	struct grpc_client *c;

	assert_int_equal(grpc_client_new(f->socket, &c, NULL), 0);
	return c;
}

void fixture_await(struct fixture *f, const int *counter, int value)
{
	struct timespec until = in_ms(CLOCK_REALTIME, 10000);
	int r = 0;

	pthread_mutex_lock(&f->lock);
	while (*counter < value && r == 0)
		r = pthread_cond_timedwait(&f->changed, &f->lock, &until);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(r, 0);
}

void fixture_release(struct fixture *f)
{
	pthread_mutex_lock(&f->lock);
	f->released = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

int create(struct grpc_client *c, const char *name, enum grpc_code *ret_code, struct error *err)
{
	Csi__V1__CreateVolumeRequest req = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	Csi__V1__CreateVolumeResponse *res = NULL;
	int r;

	req.name = (char *)name;
	r = grpc_client_call(c, &csi__v1__controller__descriptor, "CreateVolume", &req, 20000,
			     (void **)&res, ret_code, err);
	if (r == 0)
		assert_string_equal(res->volume->volume_id, name);
	else
		assert_null(res);
	if (res)
		protobuf_c_message_free_unpacked(&res->base, NULL);
	return r;
}

void assert_create(struct grpc_client *c, const char *name)
{
	struct error err = ERROR_INIT;
	enum grpc_code code = GRPC_UNKNOWN;

	if (create(c, name, &code, &err) < 0)
		fail_msg("%s: %s", grpc_code_name(code), err.message);
	assert_int_equal(code, GRPC_OK);
}
