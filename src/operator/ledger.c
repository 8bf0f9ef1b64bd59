/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/ledger.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "kube/keyed.h"
#include "operator/op.h"
#include "operator/snapshot.h"

#include <errno.h>
#include <pthread.h>

#define LOAD_AGAIN_MS 20

/* Sums of sizes that people state, each of which may be as large as a number can be. */
__extension__ typedef __int128 sum_t;

struct account {
	char *pool; /* first: struct keyed */
	sum_t promised;
	int64_t limit; /* of the pool, while it is loaded */
	int count, devices;
	bool closed;
};

/* There are as many as volumes: one piece of memory each. */
struct entry {
	const char *volume; /* first: struct keyed */
	struct account *account;
	const char *claim;
	int64_t bytes;
	bool made; /* has a PersistentVolume */
	bool device; /* is counted among the account's devices */
	char text[]; /* what these point to */
};

struct ledger {
	pthread_mutex_t lock;
	struct keyed entries, accounts;
	struct keyed waiting; /* of struct wish */
	int64_t epoch; /* in which it was loaded, -1: never */
	bool loading; /* somebody reads the API for it now */
	/* What went away or changed while it is loading: of that a list taken before is not believed. */
	struct strv changed, claims_gone;
};

struct wish {
	char *claim;
};

/* ---- inside; the lock is held ------------------------------------------------------------------ */

static struct account *account_of(struct ledger *l, const char *pool)
{
	bool found;
	size_t at = keyed_find(&l->accounts, pool, &found);
	if (found)
		return l->accounts.items[at];
	struct account *a = xcalloc(1, sizeof(*a));
	a->pool = xstrdup(pool);
	keyed_insert(&l->accounts, at, a);
	return a;
}

static void note(struct ledger *l, struct strv *list, const char *name)
{
	if (l->loading)
		strv_add(list, name);
}

static struct entry *entry_new(const char *volume, const char *claim)
{
	size_t len = strlen(volume) + 1, more = claim ? strlen(claim) + 1 : 0;
	struct entry *e = xcalloc(1, offsetof(struct entry, text) + len + more);

	e->volume = memcpy(e->text, volume, len);
	e->claim = claim ? memcpy(e->text + len, claim, more) : NULL;
	return e;
}

static void drop_at(struct ledger *l, size_t at)
{
	struct entry *e = keyed_remove(&l->entries, at);
	e->account->promised -= e->bytes;
	e->account->count--;
	e->account->devices -= e->device;
	note(l, &l->changed, e->volume);
	free(e);
}

static struct entry *put(struct ledger *l, const char *volume, const char *pool, int64_t bytes,
			 const char *claim)
{
	bool found;
	size_t at = keyed_find(&l->entries, volume, &found);
	struct entry before = { 0 };
	if (found) {
		before = *(struct entry *)l->entries.items[at];
		drop_at(l, at);
	}

	struct entry *e = entry_new(volume, claim);
	e->account = account_of(l, pool);
	e->bytes = bytes;
	e->made = before.made;
	e->device = before.device;
	keyed_insert(&l->entries, at, e);
	e->account->promised += bytes;
	e->account->count++;
	e->account->devices += e->device;
	return e;
}

/* What was promised to that claim, but for one volume and those that are there. */
static void drop_promises(struct ledger *l, const char *claim, const char *but)
{
	for (size_t i = l->entries.count; claim && i-- > 0;) {
		const struct entry *e = l->entries.items[i];
		if (!e->made && streq(e->claim, claim) && !streq(e->volume, but))
			drop_at(l, i);
	}
}

static void put_device(struct ledger *l, const char *volume)
{
	struct entry *e = keyed_get(&l->entries, volume);

	if (e && !e->device) {
		e->device = true;
		e->account->devices++;
	}
}

static void forget_all(struct ledger *l)
{
	for (size_t i = 0; i < l->entries.count; i++)
		free(l->entries.items[i]);
	for (size_t i = 0; i < l->accounts.count; i++) {
		struct account *a = l->accounts.items[i];
		free(a->pool);
		free(a);
	}
	keyed_done(&l->entries);
	keyed_done(&l->accounts);
}

/* ---- loading ----------------------------------------------------------------------------------- */

/* What is read goes into a ledger of its own, one object at a time: the lists may be long. */
struct loading {
	struct ledger fresh;
	const struct operator* op;
	struct reconcile *r;
	struct choice *choices;
	size_t count;
};

/* What a claim says that was chosen for it. */
struct choice {
	char *volume, *claim, *pool;
	int64_t bytes;
};

/* Anybody may write annotation and finalizer. */
static bool may_have_chosen(struct loading *x, const json_t *claim)
{
	const char *pool = object_annotation(claim, QM_ANNOTATION_POOL),
		   *ns = object_annotation(claim, QM_ANNOTATION_NAMESPACE),
		   *class = jstr(claim, "spec", "storageClassName"),
		   *bound = jstr(claim, "spec", "volumeName");
	cleanup_free char *own = pv_name(claim);

	if (!pool || !object_has_finalizer(claim, QM_FINALIZER_PROVISION) ||
	    claim_bytes(claim) <= 0 || !ns_is_ours(x->op, ns) ||
	    (bound && !streq(bound, own)))
		return false;
	/* it may be gone since, or not be in the cache yet */
	cleanup_json json_t *c =
		class ? reader_get(x->r->cache, &KIND_STORAGECLASS, NULL, class) : NULL;
	return !c || class_is_ours(x->op, c);
}

static int load_claim(json_t *claim, void *userdata)
{
	struct loading *x = userdata;

	if (!may_have_chosen(x, claim))
		return 0;
	x->choices = xrealloc(x->choices, (x->count + 1) * sizeof(*x->choices));
	x->choices[x->count++] = (struct choice){
		.volume = pv_name(claim),
		.claim = object_key(claim),
		.pool = xstrdup(object_annotation(claim, QM_ANNOTATION_POOL)),
		.bytes = claim_bytes(claim),
	};
	return 0;
}

/*
 * Room that was promised to claims which are no volumes yet. What we promised fitted; what does not fit was
 * written by somebody else, or the pool is smaller since, and waits for room like any other (keep_choice).
 */
static void put_choices(struct loading *x)
{
	for (size_t i = 0; i < x->count; i++) {
		const struct choice *c = &x->choices[i];
		const struct account *a = keyed_get(&x->fresh.accounts, c->pool);

		if (!keyed_get(&x->fresh.entries, c->volume) && a &&
		    a->promised + c->bytes <= a->limit)
			put(&x->fresh, c->volume, c->pool, c->bytes, c->claim);
	}
}

static void loading_done(struct loading *x)
{
	for (size_t i = 0; i < x->count; i++) {
		free(x->choices[i].volume);
		free(x->choices[i].claim);
		free(x->choices[i].pool);
	}
	free(x->choices);
	forget_all(&x->fresh);
}

static int load_volume(json_t *pv, void *userdata)
{
	struct loading *x = userdata;
	const char *pool = object_label(pv, QM_LABEL_POOL);
	cleanup_free char *key = pv_claim_key(pv);
	if (pool && pv_is_ours(x->op, pv) && pv_makes_sense(pv))
		put(&x->fresh, object_name(pv), pool, pv_bytes(pv), key)->made = true;
	if (pv_is_device(pv))
		put_device(&x->fresh, object_name(pv));
	return 0;
}

/* Its size stands there once it is being taken; if it is about to be, it is that of its volume. */
static int load_content(json_t *content, void *userdata)
{
	struct loading *x = userdata;
	cleanup_free char *key = content_ledger_key(object_name(content));
	int64_t bytes = jint(content, "status", "restoreSize");
	struct handle handle;

	if (!content_is_ours(x->r, content, &handle))
		return 0;
	const struct entry *volume = keyed_get(&x->fresh.entries, handle.name);
	if (bytes <= 0 && volume && object_annotation(content, SNAPSHOT_BEING_CREATED))
		bytes = volume->bytes;
	if (bytes > 0)
		put(&x->fresh, key, handle.pool, bytes, NULL)->made = true;
	return 0;
}

/* Its size, and snapshots that have no content; one whose size is not to be read is nothing of ours. */
static int load_pool(json_t *pool, void *userdata)
{
	struct loading *x = userdata;
	const char *name;
	json_t *value;

	if (!pool_takes_volumes(x->op, pool))
		return 0;
	account_of(&x->fresh, object_name(pool))->limit = pool_limit(x->op, pool);
	json_object_foreach (jget(pool, "metadata", "annotations"), name, value) {
		const char *text = json_string_value(value);
		int64_t bytes = 0;
		if (!text || !str_has_prefix(name, SNAPSHOT_PROMISED) ||
		    quantity_parse(text, &bytes, NULL) < 0 || bytes <= 0)
			continue;
		cleanup_free char *key = csi_snapshot_ledger_key(object_name(pool),
								 name + strlen(SNAPSHOT_PROMISED));
		put(&x->fresh, key, object_name(pool), bytes, NULL)->made = true;
	}
	return 0;
}

/* Where nobody may see snapshots, or the kind is not known, there are none. */
static int read_contents(struct loading *x)
{
	cleanup_free char *at = NULL;
	struct kube_selector all = { 0 };
	int rc = kube_list_each(x->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, NULL, &all, load_content,
				x, &at, &x->r->error);

	if (rc != -ENOENT && rc != -EPERM)
		return rc;
	x->r->error = ERROR_INIT;
	return 0;
}

/*
 * Claims first: one that becomes a volume in between is seen twice, not never. They count last, when it is known what
 * is left.
 */
static int read_all(struct loading *x, struct reconcile *r)
{
	cleanup_free char *labels = xasprintf(QM_LABEL_DEPLOYMENT "=%s", x->op->deployment);
	cleanup_free char *claims_at = NULL, *volumes_at = NULL, *pools_at = NULL;
	struct kube_selector ours = { .labels = labels }, all = { 0 };
	int rc = kube_list_each(r->kube, &KIND_PVC, NULL, &all, load_claim, x, &claims_at,
				&r->error);
	if (rc == 0)
		rc = kube_list_each(r->kube, &KIND_PV, NULL, &ours, load_volume, x, &volumes_at,
				    &r->error);
	if (rc == 0)
		rc = kube_list_each(r->kube, &KIND_STORAGEPOOL, x->op->ns, &all, load_pool, x,
				    &pools_at, &r->error);
	if (rc == 0)
		rc = read_contents(x);
	if (rc == 0)
		put_choices(x);
	return rc;
}

static void drop(struct ledger *l, const char *volume)
{
	bool found;
	size_t at = keyed_find(&l->entries, volume, &found);

	if (found)
		drop_at(l, at);
}

/*
 * What changed while it was read is what is known here, and gone where nothing is. On a large cluster something always
 * goes, also of other drivers: to read anew for that might never end.
 */
static void bring_up_to_date(struct ledger *l, struct ledger *fresh)
{
	for (size_t i = 0; i < l->claims_gone.count; i++)
		drop_promises(fresh, l->claims_gone.items[i], NULL);
	for (size_t i = 0; i < l->changed.count; i++) {
		const struct entry *e = keyed_get(&l->entries, l->changed.items[i]);

		drop(fresh, l->changed.items[i]);
		if (!e)
			continue;
		put(fresh, e->volume, e->account->pool, e->bytes, e->claim)->made = e->made;
		if (e->device)
			put_device(fresh, e->volume);
	}
}

/* Puts what was read in the place of what is there. */
static void install(struct ledger *l, struct ledger *fresh, int64_t epoch)
{
	pthread_mutex_lock(&l->lock);
	bring_up_to_date(l, fresh);
	struct keyed entries = l->entries, accounts = l->accounts;
	l->entries = fresh->entries;
	l->accounts = fresh->accounts;
	fresh->entries = entries;
	fresh->accounts = accounts;
	l->epoch = epoch;
	pthread_mutex_unlock(&l->lock);
}

/* Whether this caller is to read: 0: nobody has to, in this epoch that was done; -EBUSY: another one does. */
static int begin_load(struct ledger *l, int64_t epoch)
{
	int rc = 1;
	pthread_mutex_lock(&l->lock);
	if (l->epoch == epoch)
		rc = 0;
	else if (l->loading)
		rc = -EBUSY;
	else
		l->loading = true;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static void end_load(struct ledger *l)
{
	pthread_mutex_lock(&l->lock);
	l->loading = false;
	strv_done(&l->changed);
	strv_done(&l->claims_gone);
	pthread_mutex_unlock(&l->lock);
}

int ledger_load(struct ledger *l, struct reconcile *r, int64_t epoch)
{
	struct loading x = { .op = op_of(r), .r = r };
	int rc = begin_load(l, epoch);

	if (rc == 0)
		return 0;
	if (rc > 0) {
		rc = read_all(&x, r);
		if (rc == 0)
			install(l, &x.fresh, epoch);
		loading_done(&x);
		end_load(l);
	}
	if (rc != -EBUSY && rc != -EIDRM)
		return rc;
	r->error = ERROR_INIT;
	r->again_ms = LOAD_AGAIN_MS;
	return 1;
}

bool ledger_loaded(struct ledger *l)
{
	pthread_mutex_lock(&l->lock);
	bool loaded = l->epoch >= 0;
	pthread_mutex_unlock(&l->lock);
	return loaded;
}

/* ---- keeping ----------------------------------------------------------------------------------- */

struct ledger *ledger_new(void)
{
	struct ledger *l = xcalloc(1, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
	l->epoch = -1;
	return l;
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	forget_all(l);
	for (size_t i = 0; i < l->waiting.count; i++) {
		struct wish *w = l->waiting.items[i];
		free(w->claim);
		free(w);
	}
	keyed_done(&l->waiting);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void ledger_set(struct ledger *l, const char *volume, const char *pool, int64_t bytes,
		const char *claim)
{
	pthread_mutex_lock(&l->lock);
	const struct entry *e = keyed_get(&l->entries, volume);
	/* before it is loaded nobody asks, and what is loaded takes the place of all that is here */
	if (l->epoch < 0)
		;
	else if (!e || !streq(e->account->pool, pool) || e->bytes != bytes ||
		 !streq(e->claim, claim))
		put(l, volume, pool, bytes, claim);
	pthread_mutex_unlock(&l->lock);
}

void ledger_drop(struct ledger *l, const char *volume)
{
	pthread_mutex_lock(&l->lock);
	note(l, &l->changed, volume);
	drop(l, volume);
	pthread_mutex_unlock(&l->lock);
}

void ledger_drop_claim(struct ledger *l, const char *claim)
{
	pthread_mutex_lock(&l->lock);
	note(l, &l->claims_gone, claim);
	drop_promises(l, claim, NULL);
	pthread_mutex_unlock(&l->lock);
}

bool ledger_unmade(struct ledger *l, const char *claim, char **ret_volume, char **ret_pool)
{
	const struct entry *e = NULL;
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->entries.count && !e; i++) {
		const struct entry *this = l->entries.items[i];
		if (!this->made && streq(this->claim, claim))
			e = this;
	}
	if (e) {
		*ret_volume = xstrdup(e->volume);
		*ret_pool = xstrdup(e->account->pool);
	}
	pthread_mutex_unlock(&l->lock);
	return e != NULL;
}

void ledger_made(struct ledger *l, const char *volume)
{
	pthread_mutex_lock(&l->lock);
	struct entry *e = keyed_get(&l->entries, volume);
	if (e)
		e->made = true;
	pthread_mutex_unlock(&l->lock);
}

void ledger_device(struct ledger *l, const char *volume)
{
	pthread_mutex_lock(&l->lock);
	put_device(l, volume);
	pthread_mutex_unlock(&l->lock);
}

char *ledger_claim(struct ledger *l, const char *volume)
{
	pthread_mutex_lock(&l->lock);
	const struct entry *e = keyed_get(&l->entries, volume);
	char *claim = e && e->claim && !e->made ? xstrdup(e->claim) : NULL;
	pthread_mutex_unlock(&l->lock);
	return claim;
}

int ledger_devices(struct ledger *l, const char *pool)
{
	pthread_mutex_lock(&l->lock);
	const struct account *a = keyed_get(&l->accounts, pool);
	int devices = a ? a->devices : 0;
	pthread_mutex_unlock(&l->lock);
	return devices;
}

/* What was promised earlier stands for what is asked now; a volume that is there is where it is. */
static bool still_good(const struct entry *e, int64_t bytes, const struct ledger_offer *offers,
		       size_t count)
{
	for (size_t i = 0; i < count && !e->made; i++)
		if (streq(offers[i].pool, e->account->pool))
			return e->bytes >= bytes;
	return e->made;
}

/* What is left of the pool: as much as a volume may have there. */
static int64_t left_of(struct ledger *l, const struct ledger_offer *offer)
{
	const struct account *a = account_of(l, offer->pool);
	sum_t over = a->promised < offer->limit ? a->promised : offer->limit;

	return a->closed ? 0 : offer->limit - (int64_t)over;
}

/* The one with the most left. NULL: none. */
static const struct ledger_offer *choose(struct ledger *l, int64_t bytes,
					 const struct ledger_offer *offers, size_t count,
					 int64_t *ret_biggest)
{
	const struct ledger_offer *best = NULL;
	int64_t best_left = 0;

	*ret_biggest = 0;
	for (size_t i = 0; i < count; i++) {
		int64_t left = left_of(l, &offers[i]);

		if (left > *ret_biggest)
			*ret_biggest = left;
		if (left <= 0 || left < bytes)
			continue;
		if (!best || left > best_left ||
		    (left == best_left && strcmp(offers[i].pool, best->pool) < 0)) {
			best = &offers[i];
			best_left = left;
		}
	}
	return best;
}

int ledger_reserve(struct ledger *l, const char *volume, const char *claim, int64_t bytes,
		   const struct ledger_offer *offers, size_t count, char **ret_pool,
		   int64_t *ret_biggest)
{
	const struct ledger_offer *best;
	int64_t biggest = 0;
	bool found;

	pthread_mutex_lock(&l->lock);
	size_t at = keyed_find(&l->entries, volume, &found);
	const struct entry *e = found ? l->entries.items[at] : NULL;
	if (e && still_good(e, bytes, offers, count)) {
		*ret_pool = xstrdup(e->account->pool);
		pthread_mutex_unlock(&l->lock);
		return 0;
	}
	if (e)
		drop_at(l, at);
	/* an earlier claim of that name is gone; a cache that was behind may have had us promise it something since */
	drop_promises(l, claim, volume);
	best = choose(l, bytes, offers, count, &biggest);
	if (best) {
		put(l, volume, best->pool, bytes, claim);
		*ret_pool = xstrdup(best->pool);
	} else {
		*ret_biggest = biggest;
	}
	pthread_mutex_unlock(&l->lock);
	return best ? 0 : -ENOSPC;
}

int64_t ledger_left(struct ledger *l, const struct ledger_offer *offer)
{
	pthread_mutex_lock(&l->lock);
	int64_t left = left_of(l, offer);
	pthread_mutex_unlock(&l->lock);
	return left;
}

int ledger_grow(struct ledger *l, const char *volume, int64_t bytes, int64_t limit,
		int64_t *ret_biggest)
{
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	struct entry *e = keyed_get(&l->entries, volume);
	if (!e) {
		rc = -EAGAIN;
	} else if (bytes > e->bytes) {
		sum_t others = e->account->promised - e->bytes;
		if (others + bytes > limit) {
			*ret_biggest = others < limit ? (int64_t)(limit - others) : 0;
			rc = -ENOSPC;
		} else {
			e->account->promised += bytes - e->bytes;
			e->bytes = bytes;
			note(l, &l->changed, volume);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int64_t ledger_promised(struct ledger *l, const char *pool)
{
	sum_t sum = 0;
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->accounts.count; i++) {
		const struct account *a = l->accounts.items[i];
		if (!pool || streq(a->pool, pool))
			sum += a->promised;
	}
	pthread_mutex_unlock(&l->lock);
	return sum < INT64_MAX ? (int64_t)sum : INT64_MAX;
}

int ledger_count(struct ledger *l, const char *pool)
{
	pthread_mutex_lock(&l->lock);
	const struct account *a = keyed_get(&l->accounts, pool);
	int count = a ? a->count : 0;
	pthread_mutex_unlock(&l->lock);
	return count;
}

bool ledger_knows(struct ledger *l, const char *volume)
{
	pthread_mutex_lock(&l->lock);
	bool known = keyed_get(&l->entries, volume) != NULL;
	pthread_mutex_unlock(&l->lock);
	return known;
}

void ledger_claims(struct ledger *l, const char *pool, size_t max, struct strv *ret)
{
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->entries.count && ret->count < max; i++) {
		const struct entry *e = l->entries.items[i];
		if (streq(e->account->pool, pool))
			strv_add(ret, e->claim ? e->claim : e->volume);
	}
	pthread_mutex_unlock(&l->lock);
}

bool ledger_close(struct ledger *l, const char *pool)
{
	pthread_mutex_lock(&l->lock);
	struct account *a = account_of(l, pool);
	if (a->count == 0)
		a->closed = true;
	bool closed = a->closed;
	pthread_mutex_unlock(&l->lock);
	return closed;
}

void ledger_reopen(struct ledger *l, const char *pool)
{
	pthread_mutex_lock(&l->lock);
	account_of(l, pool)->closed = false;
	pthread_mutex_unlock(&l->lock);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

void ledger_wait(struct ledger *l, const char *claim)
{
	bool found;
	pthread_mutex_lock(&l->lock);
	size_t at = keyed_find(&l->waiting, claim, &found);
	if (!found) {
		struct wish *w = xcalloc(1, sizeof(*w));
		w->claim = xstrdup(claim);
		keyed_insert(&l->waiting, at, w);
	}
	pthread_mutex_unlock(&l->lock);
}

void ledger_waited(struct ledger *l, const char *claim)
{
	bool found;
	pthread_mutex_lock(&l->lock);
	size_t at = keyed_find(&l->waiting, claim, &found);
	if (found) {
		struct wish *w = keyed_remove(&l->waiting, at);
		free(w->claim);
		free(w);
	}
	pthread_mutex_unlock(&l->lock);
}

void ledger_waiting(struct ledger *l, struct strv *ret)
{
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->waiting.count; i++)
		strv_add(ret, ((struct wish *)l->waiting.items[i])->claim);
	pthread_mutex_unlock(&l->lock);
}
