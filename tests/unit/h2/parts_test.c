/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "h2/cert.h"
#include "h2/fields.h"
#include "h2/fifo.h"
#include "h2/hub.h"
#include "h2/tls.h"

#include <errno.h>

static void test_fifo(void **state)
{
	struct fifo f = { 0 };
	char data[700];
	unsigned next_in = 0, next_out = 0;

	assert_int_equal(fifo_take(&f, data, sizeof(data)), 0);
	for (int round = 0; round < 1000; round++) {
		size_t in = (size_t)(round * 37 % 600), out;

		for (size_t i = 0; i < in; i++)
			data[i] = (char)next_in++;
		fifo_add(&f, data, in);
		out = fifo_take(&f, data, (size_t)(round * 53 % 700));
		for (size_t i = 0; i < out; i++)
			assert_int_equal((unsigned char)data[i], next_out++ & 0xff);
		assert_int_equal(fifo_len(&f), next_in - next_out);
		assert_true(f.bytes.len <= 2 * fifo_len(&f) + 1400); /* what is taken goes */
	}
	fifo_drop(&f, fifo_len(&f));
	assert_null(f.bytes.data);
	fifo_done(&f);
}

static void test_fields(void **state)
{
	const struct h2_header list[] = { { "b", "2" }, { "a", "again" }, { 0 } };
	struct fields f = { 0 };
	struct h2_header *copy = fields_list(&f);
	nghttp2_nv *nv;

	assert_null(copy[0].name);
	assert_null(fields_get(&f, "a"));
	free(copy);
	fields_add(&f, "a", "");
	fields_add_list(&f, list);
	fields_add_list(&f, NULL);
	assert_string_equal(fields_get(&f, "a"), "");
	assert_string_equal(fields_get(&f, "b"), "2");
	assert_null(fields_get(&f, "2"));
	assert_int_equal(f.size, 1 + 2 + 6 + 3 * 32);
	copy = fields_list(&f);
	nv = fields_nv(&f);
	fields_done(&f);
	assert_string_equal(copy[2].name, "a");
	assert_string_equal(copy[2].value, "again");
	assert_null(copy[3].name);
	assert_int_equal(nv[2].valuelen, 5);
	free(copy);
	free(nv);
}

static void test_certificates(void **state)
{
	static const char *const names[] = { "node-1.storage.example", "10.1.2.3", "fd00::1",
					     NULL };
	static const char *const bad[] = { "localhost,DNS:*", NULL };
	cleanup_free char *ca = NULL, *ca_key = NULL, *cert = NULL, *key = NULL, *other = NULL,
			  *other_key = NULL;
	struct error err = ERROR_INIT;
	SSL_CTX *ctx;

	assert_int_equal(cert_make_ca("one", 10, &ca, &ca_key, &err), 0);
	assert_int_equal(cert_make_ca("two", 10, &other, &other_key, &err), 0);
	assert_int_equal(cert_make_server(ca, ca_key, "server", bad, 10, &cert, &key, &err),
			 -EINVAL);
	assert_non_null(strstr(err.message, "localhost,DNS:*"));
	assert_int_equal(cert_make_server(ca, other_key, "server", NULL, 10, &cert, &key, &err),
			 -EINVAL);
	assert_int_equal(cert_make_server("", "", "server", NULL, 10, &cert, &key, &err), -EINVAL);
	assert_null(cert);
	assert_int_equal(cert_make_server(ca, ca_key, "server", names, 10, &cert, &key, &err), 0);
	assert_non_null(strstr(key, "PRIVATE KEY"));
	assert_int_equal(tls_server_context(cert, key, &ctx, &err), 0);
	SSL_CTX_free(ctx);
	assert_int_equal(tls_server_context(cert, ca_key, &ctx, &err), -EINVAL);
	assert_int_equal(tls_server_context(NULL, key, &ctx, &err), -EINVAL);
	assert_int_equal(tls_client_context(ca, false, cert, key, &ctx, &err), 0);
	SSL_CTX_free(ctx);
}

/* Whatever is posted is seen, and a waiter wakes in time. */
static void *post_later(void *arg)
{
	struct hub *hub = arg;
	static struct hub_item item;

	hub_lock(hub);
	assert_true(hub_post(hub, &item));
	assert_false(hub_post(hub, &item)); /* is there already */
	hub_unlock(hub);
	return NULL;
}

static void test_hub(void **state)
{
	struct hub *hub = hub_new();
	pthread_cond_t cond;
	pthread_t thread;
	uint64_t count;

	assert_non_null(hub);
	hub_cond_init(&cond);
	hub_lock(hub);
	assert_false(hub_wait(hub, &cond, hub_now_ms() + 20));
	hub_unlock(hub);
	assert_null(hub_next(hub));
	assert_int_equal(hub_thread(&thread, "test", post_later, hub), 0);
	pthread_join(thread, NULL);
	assert_int_equal(read(hub->event_fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1); /* woken once */
	hub_quiet(hub);
	assert_non_null(hub_next(hub));
	assert_null(hub_next(hub));
	hub_lock(hub);
	hub->closed = true;
	assert_false(hub_post(hub, &(struct hub_item){ 0 }));
	hub_unlock(hub);
	hub_unref(hub);
	pthread_cond_destroy(&cond);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_certificates),
		cmocka_unit_test(test_hub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
