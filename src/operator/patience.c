/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "kube/keyed.h"
#include "operator/op.h"

#include <pthread.h>

#define LEAST_MS 1000
#define SAY_AGAIN_MS (10 * 60 * 1000)
#define FORGET_MS (3 * 60 * 1000) /* well above the longest pause: whoever waits on has come again by then */

struct wait {
	char *what; /* first: struct keyed */
	int64_t since_ms, seen_ms, said_ms;
};

struct patience {
	pthread_mutex_t lock;
	struct keyed waits;
};

struct patience *patience_new(void)
{
	struct patience *p = xcalloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static void wait_free(struct wait *w)
{
	free(w->what);
	free(w);
}

void patience_free(struct patience *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->waits.count; i++)
		wait_free(p->waits.items[i]);
	keyed_done(&p->waits);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Nobody says that a wait is over: those of which nothing was heard for long are. */
static void forget_old(struct patience *p, int64_t now)
{
	for (size_t i = p->waits.count; i-- > 0;)
		if (now - ((struct wait *)p->waits.items[i])->seen_ms > FORGET_MS)
			wait_free(keyed_remove(&p->waits, i));
}

static struct wait *wait_of(struct patience *p, const char *what, int64_t now)
{
	struct wait *w = keyed_get(&p->waits, what);
	bool found;

	if (w && now - w->seen_ms <= FORGET_MS)
		return w;
	forget_old(p, now);
	w = xcalloc(1, sizeof(*w));
	*w = (struct wait){ .what = xstrdup(what), .since_ms = now, .said_ms = -SAY_AGAIN_MS };
	keyed_insert(&p->waits, keyed_find(&p->waits, what, &found), w);
	return w;
}

bool op_waits(struct reconcile *r, const char *why, const char *name, int most_ms)
{
	struct patience *p = op_of(r)->patience;
	cleanup_free char *what = xasprintf("%s %s", why, name);
	int64_t now = clock_mono_ms(r->clock);

	pthread_mutex_lock(&p->lock);
	struct wait *w = wait_of(p, what, now);
	int64_t pause = (now - w->since_ms) / 4;
	bool says = now - w->said_ms >= SAY_AGAIN_MS;
	w->seen_ms = now;
	if (says)
		w->said_ms = now;
	pthread_mutex_unlock(&p->lock);
	r->again_ms = pause < LEAST_MS ? LEAST_MS : pause > most_ms ? most_ms : (int)pause;
	return says;
}
