/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/controller.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kube/election.h"
#include "kube/thread.h"

#include <errno.h>

struct lease {
	struct election election; /* the thread's own */
	void (*changed)(bool held, int64_t epoch, void *userdata);
	void *userdata;
	char *ns, *name, *identity;
	bool told; /* what the callback heard last */

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	struct election known; /* the election as of its last step, for lease_held */
};

bool lease_held(struct lease *l, int64_t *ret_epoch)
{
	bool held;

	pthread_mutex_lock(&l->lock);
	held = election_held(&l->known, clock_mono_ms(l->known.kube->clock));
	if (held && ret_epoch)
		*ret_epoch = l->known.epoch;
	pthread_mutex_unlock(&l->lock);
	return held;
}

static void tell(struct lease *l)
{
	int64_t epoch = 0;
	bool held = lease_held(l, &epoch);

	if (held == l->told)
		return;
	l->told = held;
	log_info("lease %s/%s %s", l->ns, l->name, held ? "is held" : "is lost");
	if (l->changed)
		l->changed(held, epoch, l->userdata);
}

static void step(struct lease *l, int *ret)
{
	struct error err = ERROR_INIT;
	int rc = election_step(&l->election, &err);

	if (rc < 0 && rc != -ESTALE && rc != -EEXIST)
		log_warn("lease %s/%s: %s", l->ns, l->name, error_text(&err, rc));
	/* it ran out while the renewal took its time: who was turned away meanwhile is told to come again */
	tell(l);
	pthread_mutex_lock(&l->lock);
	l->known = l->election;
	pthread_mutex_unlock(&l->lock);
	tell(l);
	*ret = rc;
}

static void *hold(void *arg)
{
	struct lease *l = arg;
	int rc;

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		int64_t now, wait;
		unsigned char jitter;

		pthread_mutex_unlock(&l->lock);
		step(l, &rc);
		rand_bytes(&jitter, 1);
		now = clock_mono_ms(&clock_real);
		wait = election_wait_ms(&l->election, rc, now);
		wait -= wait * jitter / 2048;
		pthread_mutex_lock(&l->lock);
		if (!l->stop)
			cond_wait_until(&l->wake, &l->lock, now + wait);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void lease_free(struct lease *l)
{
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	election_done(&l->election);
	free(l->ns);
	free(l->name);
	free(l->identity);
	free(l);
}

int lease_start(const struct lease_options *options, struct lease **ret, struct error *err)
{
	struct lease *l = xcalloc(1, sizeof(*l));
	int rc;

	l->changed = options->changed;
	l->userdata = options->userdata;
	l->ns = xstrdup(options->ns);
	l->name = xstrdup(options->name);
	l->identity = xstrdup(options->identity);
	l->election = (struct election){ .kube = options->kube,
					 .ns = l->ns,
					 .name = l->name,
					 .identity = l->identity,
					 .duration_s = options->duration_s > 0 ? options->duration_s
									       : 15 };
	l->known = l->election;
	pthread_mutex_init(&l->lock, NULL);
	cond_init(&l->wake);
	rc = thread_start(&l->thread, hold, l, err);
	if (rc < 0) {
		lease_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

void lease_stop(struct lease *l, bool release)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	if (release)
		election_give_up(&l->election);
	lease_free(l);
}
