/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/mem.h"
#include "h2/conn.h"
#include "h2/listen.h"
#include "h2/session.h"

#include <errno.h>
#include <sys/epoll.h>

#define CONNECTIONS_MAX 256
#define REQUEST_STALL_MS 30000 /* a peer may be silent for so long in the middle of a request */
#define DRAIN_MS 2000 /* for what handlers are working on when the server is freed */
#define ACCEPT_TURNS 16 /* connections in a row, before the others get their turn */
#define ACCEPT_PAUSE_MS 200 /* after running out of descriptors */

struct server_conn {
	struct conn conn;
	struct session *session;
	TAILQ_ENTRY(server_conn) entry;
};

enum { LISTEN_UNIX, LISTEN_TCP, LISTENERS };

struct h2_server {
	struct session_env env;
	h2_handler handler;
	void *userdata;
	SSL_CTX *tls;
	struct listener listeners[LISTENERS];
	int port;
	int epoll_fd;
	pthread_t io, *workers;
	int worker_max;
	bool io_runs;

	/* under the hub's lock */
	int worker_count, idle; /* started; of those, without a request */
	bool stopping; /* no new requests, workers end */
	bool workers_ended; /* the I/O thread may end too */

	/* the I/O thread's own */
	TAILQ_HEAD(, server_conn) conns;
	int conn_count;
	int64_t drain_until; /* 0 until stopping */
	int64_t accept_again_ms; /* 0: accepting */
	struct conn_scratch *scratch;
};

/* ---- workers --------------------------------------------------------------------------- */

static void *worker_main(void *arg);

/*
 * Under the hub's lock: one is always ready for the next request, up to the most there may be. They
 * are not all started at once, since each has a stack that it makes resident when it works.
 */
static int keep_one_idle(struct h2_server *s)
{
	int r = 0;

	if (s->idle == 0 && s->worker_count < s->worker_max) {
		r = hub_thread(&s->workers[s->worker_count], "h2-worker", worker_main, s);
		s->worker_count += r == 0;
		s->idle += r == 0;
	}
	return r;
}

/* The next request, marked as running; NULL when the server stops. */
static struct h2_call *next_call(struct h2_server *s)
{
	struct hub *hub = s->env.hub;
	struct h2_call *c = NULL;

	hub_lock(hub);
	while (!s->stopping && TAILQ_EMPTY(&s->env.queue))
		hub_wait(hub, &s->env.more, INT64_MAX);
	if (!s->stopping) {
		c = TAILQ_FIRST(&s->env.queue);
		TAILQ_REMOVE(&s->env.queue, c, queue_entry);
		c->queued = false;
		c->running = true;
		s->idle--;
		/* without memory for it, those that are there do the work */
		(void)keep_one_idle(s);
	}
	hub_unlock(hub);
	return c;
}

static void *worker_main(void *arg)
{
	struct h2_server *s = arg;
	struct h2_call *c;

	while ((c = next_call(s))) {
		s->handler(c, s->userdata);
		hub_lock(c->hub);
		c->running = false;
		s->idle++;
		hub_unlock(c->hub);
		h2_call_unref(c);
	}
	return NULL;
}

/* ---- connections ----------------------------------------------------------------------- */

static void close_conn(struct h2_server *s, struct server_conn *sc)
{
	TAILQ_REMOVE(&s->conns, sc, entry);
	s->conn_count--;
	session_free(sc->session);
	conn_done(&sc->conn);
	free(sc);
}

/* Makes room: of the connections without a request the one that was silent longest goes. */
static bool close_idlest(struct h2_server *s)
{
	struct server_conn *sc, *idlest = NULL;

	TAILQ_FOREACH(sc, &s->conns, entry)
	if (TAILQ_EMPTY(&sc->session->calls) &&
	    (!idlest || sc->conn.heard_ms < idlest->conn.heard_ms))
		idlest = sc;
	if (!idlest)
		return false;
	close_conn(s, idlest);
	return true;
}

static void add_conn(struct h2_server *s, int fd, const struct h2_peer *peer)
{
	SSL *ssl = peer->is_unix ? NULL : tls_accept(s->tls, fd);
	struct session *session = peer->is_unix || ssl ? session_new(&s->env, peer) : NULL;
	struct server_conn *sc;
	int r;

	if (!session) {
		SSL_free(ssl);
		close(fd);
		return;
	}
	sc = xcalloc(1, sizeof(*sc));
	sc->session = session;
	session->touched = true;
	r = conn_init(&sc->conn, s->epoll_fd, fd, ssl, session->http,
		      ssl ? CONN_HANDSHAKE : CONN_OPEN, NULL);
	TAILQ_INSERT_TAIL(&s->conns, sc, entry);
	s->conn_count++;
	if (r < 0)
		close_conn(s, sc);
}

static void listen_on(struct h2_server *s, bool on)
{
	for (int i = 0; i < LISTENERS; i++) {
		struct epoll_event ev = { .events = on ? EPOLLIN : 0,
					  .data.ptr = &s->listeners[i] };

		if (s->listeners[i].fd >= 0)
			epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listeners[i].fd, &ev);
	}
}

/* False when nobody waits for it any more. */
static bool accept_one(struct h2_server *s, struct listener *l)
{
	struct h2_peer peer;
	int fd = listener_accept(l, &peer);

	if (fd >= 0 && s->conn_count >= CONNECTIONS_MAX && !close_idlest(s)) {
		close(fd);
	} else if (fd >= 0) {
		add_conn(s, fd, &peer);
	} else if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
		/* The connection stays in the backlog, so that epoll would not come to rest. */
		log_warn("Cannot accept a connection: %s", strerror(-fd));
		listen_on(s, false);
		s->accept_again_ms = hub_now_ms() + ACCEPT_PAUSE_MS;
	}
	return fd >= 0;
}

/* False: it was closed. */
static bool work_conn(struct h2_server *s, struct server_conn *sc)
{
	struct error err = ERROR_INIT;

	if (conn_work(&sc->conn, s->scratch, &err) < 0 || session_check(sc->session) < 0) {
		/* What nghttp2 has to say about it may still reach the peer. */
		conn_flush(&sc->conn, s->scratch, NULL);
		log_debug("Closing a connection: %s", error_text(&err, -EPROTO));
		close_conn(s, sc);
		return false;
	}
	sc->session->touched = true;
	if (sc->session->greeted)
		sc->conn.setup_by = 0;
	return true;
}

/* A peer that should have said more by now. */
static bool is_late(const struct server_conn *sc, int64_t now)
{
	return (sc->conn.setup_by && now >= sc->conn.setup_by) ||
	       (sc->session->incomplete > 0 && now >= sc->conn.heard_ms + REQUEST_STALL_MS);
}

/*
 * Sends what is there, keeps deadlines, closes what is over. It may be we who are late, on a machine that is busy: what
 * a peer has said meanwhile is read before it is given up.
 */
static void tend_conn(struct h2_server *s, struct server_conn *sc, int64_t now)
{
	bool touched, done;
	int r = 0;

	if (is_late(sc, now) && !work_conn(s, sc))
		return;
	touched = sc->session->touched;
	sc->session->touched = false;
	if (touched)
		r = conn_flush(&sc->conn, s->scratch, NULL);
	if (r == 0)
		r = conn_tick(&sc->conn, now, false, 0, NULL);
	if (is_late(sc, now))
		r = -ETIMEDOUT;
	done = s->drain_until && (now >= s->drain_until ||
				  (TAILQ_EMPTY(&sc->session->calls) && conn_is_flushed(&sc->conn)));
	if (r < 0 || done)
		close_conn(s, sc);
}

/* ---- the I/O thread -------------------------------------------------------------------- */

static void start_drain(struct h2_server *s, int64_t now)
{
	struct server_conn *sc;

	s->drain_until = now + DRAIN_MS;
	for (int i = 0; i < LISTENERS; i++)
		listener_done(&s->listeners[i]);
	TAILQ_FOREACH(sc, &s->conns, entry)
	session_drain(sc->session);
}

static void take_posted(struct h2_server *s)
{
	struct hub_item *item;

	while ((item = hub_next(s->env.hub))) {
		struct h2_call *c = container_of(item, struct h2_call, item);

		session_update(c);
		call_unref(c);
	}
}

static int next_timeout(const struct h2_server *s, int64_t now)
{
	const struct server_conn *sc;
	int64_t next = s->accept_again_ms ? s->accept_again_ms : INT64_MAX;

	TAILQ_FOREACH(sc, &s->conns, entry)
	{
		int64_t at = conn_next_ms(&sc->conn, false, 0);

		if (sc->session->incomplete > 0 && sc->conn.heard_ms + REQUEST_STALL_MS < at)
			at = sc->conn.heard_ms + REQUEST_STALL_MS;
		if (s->drain_until && s->drain_until < at)
			at = s->drain_until;
		if (at < next)
			next = at;
	}
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now);
}

static void take_events(struct h2_server *s, struct epoll_event *events, int count)
{
	/* Connections first, while all that the events name exist: accepting may close one. */
	for (int i = 0; i < count; i++) {
		void *ptr = events[i].data.ptr;

		if (ptr == s->env.hub)
			hub_quiet(s->env.hub);
		else if (ptr != &s->listeners[LISTEN_UNIX] && ptr != &s->listeners[LISTEN_TCP])
			work_conn(s, container_of(ptr, struct server_conn, conn));
	}
	for (int i = 0; i < count; i++)
		if (events[i].data.ptr == &s->listeners[LISTEN_UNIX] ||
		    events[i].data.ptr == &s->listeners[LISTEN_TCP])
			for (int n = 0; n < ACCEPT_TURNS; n++)
				if (!accept_one(s, events[i].data.ptr))
					break;
}

/* True when the thread may end: no worker and no connection is left. */
static bool tend(struct h2_server *s)
{
	struct server_conn *sc, *next;
	int64_t now = hub_now_ms();
	bool stopping, ended;

	hub_lock(s->env.hub);
	stopping = s->stopping;
	ended = s->workers_ended;
	hub_unlock(s->env.hub);
	if (stopping && !s->drain_until)
		start_drain(s, now);
	if (s->accept_again_ms && now >= s->accept_again_ms) {
		s->accept_again_ms = 0;
		listen_on(s, true);
	}
	for (sc = TAILQ_FIRST(&s->conns); sc; sc = next) {
		next = TAILQ_NEXT(sc, entry);
		tend_conn(s, sc, now);
	}
	return ended && TAILQ_EMPTY(&s->conns);
}

static void *io_main(void *arg)
{
	struct h2_server *s = arg;
	struct epoll_event events[32];

	do {
		int n = epoll_wait(s->epoll_fd, events, ARRAY_SIZE(events),
				   next_timeout(s, hub_now_ms()));

		take_events(s, events, n < 0 ? 0 : n);
		take_posted(s);
	} while (!tend(s));
	take_posted(s);
	return NULL;
}

/* ---- start and end --------------------------------------------------------------------- */

static int watch_fd(struct h2_server *s, int fd, void *ptr, struct error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };

	if (fd >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return error_errno(err, errno, "Cannot set up the HTTP/2 server");
	return 0;
}

static int open_listeners(struct h2_server *s, const struct h2_listen *listen, struct error *err)
{
	int r = 0;

	if (listen->tcp_port >= 0) {
		r = tls_server_context(listen->cert_pem, listen->key_pem, &s->tls, err);
		if (r == 0)
			r = listener_tcp(listen->tcp_port, &s->listeners[LISTEN_TCP], &s->port,
					 err);
	}
	if (r == 0 && listen->unix_path)
		r = listener_unix(listen->unix_path, listen->unix_mode ? listen->unix_mode : 0666,
				  &s->listeners[LISTEN_UNIX], err);
	if (r == 0)
		r = watch_fd(s, s->env.hub->event_fd, s->env.hub, err);
	for (int i = 0; r == 0 && i < LISTENERS; i++)
		r = watch_fd(s, s->listeners[i].fd, &s->listeners[i], err);
	return r;
}

static int start_threads(struct h2_server *s, int workers, struct error *err)
{
	int r = hub_thread(&s->io, "h2-server", io_main, s);

	s->io_runs = r == 0;
	s->workers = xcalloc((size_t)workers, sizeof(*s->workers));
	s->worker_max = workers;
	hub_lock(s->env.hub);
	if (r == 0)
		r = keep_one_idle(s);
	hub_unlock(s->env.hub);
	if (r < 0)
		return error_errno(err, -r, "Cannot start the threads of the HTTP/2 server");
	return 0;
}

int h2_server_start(const struct h2_listen *listen, h2_handler handler, void *userdata,
		    struct h2_server **ret, struct error *err)
{
	struct h2_server *s = xcalloc(1, sizeof(*s));
	int r;

	s->handler = handler;
	s->userdata = userdata;
	s->port = -1;
	s->env.max_body = listen->max_body;
	s->env.any_authority = listen->any_authority;
	s->env.refuse = listen->refuse;
	s->scratch = xmalloc(sizeof(*s->scratch));
	for (int i = 0; i < LISTENERS; i++)
		s->listeners[i].fd = -1;
	TAILQ_INIT(&s->conns);
	TAILQ_INIT(&s->env.queue);
	hub_cond_init(&s->env.more);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->env.hub = s->epoll_fd < 0 ? NULL : hub_new();
	if (!s->env.hub)
		r = error_errno(err, errno, "Cannot set up the HTTP/2 server");
	else
		r = open_listeners(s, listen, err);
	if (r == 0)
		r = start_threads(s, listen->workers > 0 ? listen->workers : 1, err);
	if (r < 0) {
		h2_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int h2_server_port(const struct h2_server *s)
{
	return s->port;
}

static void stop_threads(struct h2_server *s)
{
	hub_lock(s->env.hub);
	s->stopping = true;
	pthread_cond_broadcast(&s->env.more);
	hub_wake(s->env.hub);
	hub_unlock(s->env.hub);
	for (int i = 0; i < s->worker_count; i++)
		pthread_join(s->workers[i], NULL);
	hub_lock(s->env.hub);
	s->workers_ended = true;
	hub_wake(s->env.hub);
	hub_unlock(s->env.hub);
	if (s->io_runs)
		pthread_join(s->io, NULL);
	hub_lock(s->env.hub);
	s->env.hub->closed = true;
	hub_unlock(s->env.hub);
	if (s->io_runs)
		take_posted(s); /* what came between its last look and its end */
}

void h2_server_free(struct h2_server *s)
{
	if (!s)
		return;
	if (s->env.hub)
		stop_threads(s);
	for (int i = 0; i < LISTENERS; i++)
		listener_done(&s->listeners[i]);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	SSL_CTX_free(s->tls);
	pthread_cond_destroy(&s->env.more);
	hub_unref(s->env.hub);
	free(s->workers);
	free(s->scratch);
	free(s);
}
