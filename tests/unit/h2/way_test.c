/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "h2/cert.h"
#include "h2/tunnel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

/* How a client gets to its server: by a proxy, under another name, with other certificates. */

struct proxy { /* for one connection */
	pthread_t thread;
	int fd, port, to;
	const char *answer; /* "": closes; NULL: carries on */
	char asked[2000];
};

static bool pass(int from, int to)
{
	char data[16384];
	ssize_t n = recv(from, data, sizeof(data), 0);

	return n > 0 && send(to, data, (size_t)n, MSG_NOSIGNAL) == n;
}

static void carry(int client, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cleanup_close int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd p[] = { { .fd = client, .events = POLLIN },
			      { .fd = server, .events = POLLIN } };

	if (connect(server, (struct sockaddr *)&to, sizeof(to)) < 0)
		return;
	while (poll(p, 2, 10000) > 0) {
		if ((p[0].revents && !pass(client, server)) ||
		    (p[1].revents && !pass(server, client)))
			return;
	}
}

static void *proxy_main(void *arg)
{
	static const char open[] = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n";
	struct proxy *p = arg;
	cleanup_close int client = accept(p->fd, NULL, NULL);
	size_t n = 0;

	while (n < sizeof(p->asked) - 1 && recv(client, p->asked + n, 1, 0) == 1) {
		n++;
		if (str_has_suffix(p->asked, "\r\n\r\n"))
			break;
	}
	if (p->answer) {
		(void)send(client, p->answer, strlen(p->answer), MSG_NOSIGNAL);
	} else {
		(void)send(client, open, strlen(open), MSG_NOSIGNAL);
		carry(client, p->to);
	}
	return NULL;
}

static void proxy_start(struct proxy *p)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(p->fd, 4), 0);
	assert_int_equal(getsockname(p->fd, (struct sockaddr *)&a, &len), 0);
	p->port = ntohs(a.sin_port);
	assert_int_equal(pthread_create(&p->thread, NULL, proxy_main, p), 0);
}

static void proxy_end(struct proxy *p)
{
	pthread_join(p->thread, NULL);
	close(p->fd);
}

static struct h2_target target_of(const struct fixture *f)
{
	return (struct h2_target){
		.host = "127.0.0.1", .port = h2_server_port(f->server), .tls = true, .ca_pem = f->ca
	};
}

static int get(struct h2_client *c, struct error *err)
{
	struct h2_request req = { .method = "GET", .path = "/header" };
	struct h2_response res = { 0 };
	int r = h2_client_call(c, &req, 10000, &res, err);

	h2_response_done(&res);
	return r;
}

static int get_once(const struct h2_target *target, struct error *err)
{
	struct h2_client *c;
	int r = h2_client_new(target, &c, err);

	if (r == 0) {
		r = get(c, err);
		h2_client_free(c);
	}
	return r;
}

static void by_a_proxy(void **state)
{
	struct fixture *f = *state;
	struct h2_target target = target_of(f);
	struct proxy p = { .to = target.port };
	cleanup_free char *wanted = NULL;

	proxy_start(&p);
	target.proxy_host = "127.0.0.1";
	target.proxy_port = p.port;
	target.proxy_auth = "Basic eA==";
	assert_int_equal(get_once(&target, NULL), 0);
	proxy_end(&p);
	wanted = xasprintf("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
			   "Proxy-Authorization: Basic eA==\r\n\r\n",
			   target.port, target.port);
	assert_string_equal(p.asked, wanted);
}

static void proxies_that_refuse(void **state)
{
	static const struct {
		const char *answer;
		int rc;
	} cases[] = {
		{ "HTTP/1.1 407 No\r\n\r\n", -EACCES },
		{ "HTTP/1.0 502 No\r\nA: b\r\n\r\n", -EHOSTUNREACH },
		{ "SSH-2.0-x\r\n\r\n", -EPROTO },
		{ "HTTP/1.1 200", -ECONNRESET },
		{ "", -ECONNRESET },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct h2_target target = target_of(*state);
		struct proxy p = { .answer = cases[i].answer };
		struct error err = ERROR_INIT;

		proxy_start(&p);
		target.proxy_host = "127.0.0.1";
		target.proxy_port = p.port;
		target.proxy_auth = "Basic secret";
		assert_int_equal(get_once(&target, &err), cases[i].rc);
		assert_non_null(strstr(err.message, "proxy"));
		assert_null(strstr(err.message, "secret"));
		proxy_end(&p);
	}
}

static void only_with_tls(void **state)
{
	struct h2_target target = target_of(*state);

	target.tls = false;
	target.proxy_host = "x";
	target.proxy_port = 1;
	assert_int_equal(get_once(&target, NULL), -EINVAL);
}

static void v6_addresses(void **state)
{
	struct tunnel *t = tunnel_new(&(struct h2_target){ .host = "fd00::1", .port = 443 });

	assert_string_equal(t->request,
			    "CONNECT [fd00::1]:443 HTTP/1.1\r\nHost: [fd00::1]:443\r\n\r\n");
	tunnel_free(t);
}

static void under_another_name(void **state)
{
	struct h2_target target = target_of(*state);

	target.host = "127.1"; /* the same machine, but not in the certificate */
	assert_int_equal(get_once(&target, NULL), -EKEYREJECTED);
	target.tls_name = "localhost";
	assert_int_equal(get_once(&target, NULL), 0);
	target.tls_name = NULL;
	target.ca_pem = NULL;
	target.insecure = true;
	assert_int_equal(get_once(&target, NULL), 0);
}

/* A stream that is open stays, what comes then goes by a connection with the new certificates. */
static void other_certificates(void **state)
{
	struct fixture *f = *state;
	struct h2_client *c = client_tls(f, "127.0.0.1");
	struct h2_request req = { .method = "GET", .path = "/wait" };
	cleanup_free char *ca = NULL, *key = NULL;
	struct h2_stream *s;
	struct h2_call *call;
	char byte;
	int status;

	assert_int_equal(h2_stream_open(c, &req, 10000, &s, &status, NULL), 0);
	call = fixture_take_watch(f);
	assert_int_equal(cert_make_ca("another CA", 30, &ca, &key, NULL), 0);
	assert_int_equal(h2_client_set_tls(c, "nonsense", NULL, NULL, NULL), -EINVAL);
	assert_int_equal(get(c, NULL), 0);
	assert_int_equal(h2_client_set_tls(c, ca, NULL, NULL, NULL), 0);
	assert_int_equal(get(c, NULL), -EKEYREJECTED);
	assert_int_equal(h2_client_set_tls(c, f->ca, NULL, NULL, NULL), 0);
	assert_int_equal(get(c, NULL), 0);
	assert_int_equal(h2_call_write(call, "x", 1), 0);
	assert_int_equal(h2_stream_read(s, &byte, 1, 10000), 1);
	h2_call_end(call, NULL);
	h2_call_unref(call);
	h2_stream_close(s);
	h2_client_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_a_proxy, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(proxies_that_refuse, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(only_with_tls, fixture_setup, fixture_teardown),
		cmocka_unit_test(v6_addresses),
		cmocka_unit_test_setup_teardown(under_another_name, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(other_certificates, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
