/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/watch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "clients/client.h"
#include "clients/remote.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#define WATCHED_MAX 32
#define RESCAN_MS 10000
#define DIAL_MS 3000
#define READ_MS 1000
/* a client that ends is heard of before its daemons are gone */
#define SOON_MS 300
#define LATER_MS 4000
#define STACK (256 << 10)

struct clients_watch {
	char *dir;
	void (*told)(void *userdata);
	void (*looked)(size_t most, void *userdata); /* or NULL */
	void *userdata;
	pthread_t thread;
	int end; /* readable: the thread is to end */
	struct {
		char *dir;
		int fd;
	} clients[WATCHED_MAX];
	size_t count;
	int64_t due[2]; /* when to tell, 0: not */
};

static bool is_watched(const struct clients_watch *w, const char *dir)
{
	for (size_t i = 0; i < w->count; i++)
		if (streq(w->clients[i].dir, dir))
			return true;
	return false;
}

static void ended(struct clients_watch *w)
{
	int64_t now = clock_mono_ms(&clock_real);

	w->due[0] = now + SOON_MS;
	w->due[1] = now + LATER_MS;
}

static void add(struct clients_watch *w, const char *dir)
{
	int fd;

	if (w->count == WATCHED_MAX || is_watched(w, dir) || !client_listens(dir))
		return;
	fd = client_watch(dir, DIAL_MS, NULL);
	if (fd < 0)
		return;
	w->clients[w->count].dir = xstrdup(dir);
	w->clients[w->count++].fd = fd;
}

static void drop(struct clients_watch *w, size_t i)
{
	close(w->clients[i].fd);
	free(w->clients[i].dir);
	w->clients[i] = w->clients[--w->count];
}

static size_t count_below(const struct clients_watch *w, const char *dir)
{
	size_t count = 0;

	for (size_t i = 0; i < w->count; i++)
		if (str_has_prefix(w->clients[i].dir, dir))
			count++;
	return count;
}

static void rescan(struct clients_watch *w)
{
	size_t most = 0, count;

	for (const struct client_protocol *p = client_protocols; p->name; p++) {
		cleanup_free char *dir = xasprintf("%s/%s", w->dir, p->name);
		cleanup_with(strv_done) struct strv found = { 0 };

		clients_find(dir, &found);
		for (size_t i = 0; i < found.count; i++)
			add(w, found.items[i]);
		count = count_below(w, dir);
		most = count > most ? count : most;
	}
	if (w->looked)
		w->looked(most, w->userdata);
}

static void hear(struct clients_watch *w, size_t i)
{
	cleanup_free char *text = NULL;
	size_t len;

	ended(w);
	if (wire_read_text(w->clients[i].fd, &text, &len, clock_mono_ms(&clock_real) + READ_MS) < 0)
		drop(w, i);
}

static void tell_due(struct clients_watch *w)
{
	int64_t now = clock_mono_ms(&clock_real);

	for (size_t i = 0; i < ARRAY_SIZE(w->due); i++)
		if (w->due[i] && w->due[i] <= now) {
			w->due[i] = 0;
			w->told(w->userdata);
			return;
		}
}

static int pause_for(const struct clients_watch *w, int64_t rescan_at)
{
	int64_t next = rescan_at, now = clock_mono_ms(&clock_real);

	for (size_t i = 0; i < ARRAY_SIZE(w->due); i++)
		if (w->due[i] && w->due[i] < next)
			next = w->due[i];
	return next > now ? (int)(next - now) : 0;
}

static void *watch_clients(void *arg)
{
	struct clients_watch *w = arg;
	int64_t rescan_at = 0;

	ended(w); /* what happened before is not known */
	for (;;) {
		struct pollfd p[WATCHED_MAX + 1] = { { .fd = w->end, .events = POLLIN } };
		int64_t now = clock_mono_ms(&clock_real);

		if (now >= rescan_at) {
			rescan(w);
			rescan_at = now + RESCAN_MS;
		}
		for (size_t i = 0; i < w->count; i++)
			p[i + 1] = (struct pollfd){ .fd = w->clients[i].fd, .events = POLLIN };
		poll(p, w->count + 1, pause_for(w, rescan_at));
		if (p[0].revents)
			return NULL;
		for (size_t i = w->count; i-- > 0;) /* from the end: dropping moves the last one */
			if (p[i + 1].revents)
				hear(w, i);
		tell_due(w);
	}
}

static int start_thread(struct clients_watch *w)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, &attr, watch_clients, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

int clients_watch_start(const char *dir, void (*told)(void *userdata),
			void (*looked)(size_t most, void *userdata), void *userdata,
			struct clients_watch **ret, struct error *err)
{
	struct clients_watch *w = xcalloc(1, sizeof(*w));
	int r;

	w->dir = xstrdup(dir);
	w->told = told;
	w->looked = looked;
	w->userdata = userdata;
	w->end = eventfd(0, EFD_CLOEXEC);
	r = w->end < 0 ? errno : start_thread(w);
	if (r != 0) {
		if (w->end >= 0)
			close(w->end);
		free(w->dir);
		free(w);
		return error_errno(err, r, "cannot watch the clients below %s", dir);
	}
	*ret = w;
	return 0;
}

void clients_watch_free(struct clients_watch *w)
{
	if (!w)
		return;
	eventfd_write(w->end, 1);
	pthread_join(w->thread, NULL);
	while (w->count)
		drop(w, 0);
	close(w->end);
	free(w->dir);
	free(w);
}
