/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "operator/op.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define WAIT_S 10

struct names {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct strv held;
};

struct names *names_new(void)
{
	struct names *n = xcalloc(1, sizeof(*n));

	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->freed, NULL);
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	strv_done(&n->held);
	pthread_cond_destroy(&n->freed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* until NULL: without waiting. */
static bool take(struct names *n, const char *name, const struct timespec *until)
{
	bool taken, waits = until;

	pthread_mutex_lock(&n->lock);
	while ((taken = strv_contains(&n->held, name)) && waits)
		waits = pthread_cond_timedwait(&n->freed, &n->lock, until) == 0;
	if (!taken)
		strv_add(&n->held, name);
	pthread_mutex_unlock(&n->lock);
	return !taken;
}

bool name_try(const struct operator* op, const char *name, struct name_hold *ret)
{
	if (!take(op->names, name, NULL))
		return false;
	*ret = (struct name_hold){ op->names, xstrdup(name) };
	return true;
}

int name_hold(const struct operator* op, const char *name, struct name_hold *ret, struct error *err)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_S;
	if (!take(op->names, name, &until))
		return error_set(err, EINPROGRESS,
				 "volume %s is being removed; repeat this when it is gone", name);
	*ret = (struct name_hold){ op->names, xstrdup(name) };
	return 0;
}

void name_release(struct name_hold *h)
{
	if (!h->name)
		return;
	pthread_mutex_lock(&h->names->lock);
	strv_remove(&h->names->held, h->name);
	pthread_cond_broadcast(&h->names->freed);
	pthread_mutex_unlock(&h->names->lock);
	free(TAKE_PTR(h->name));
}
