/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/fence.h"

#include "base/mem.h"

#include <errno.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define PREFIX 0x514dULL /* "QM" */
#define PREFIX_SHIFT 48

uint64_t fence_key(const char *node_id, const char *machine)
{
	uint64_t hash = XXH64(machine, strlen(machine), XXH64(node_id, strlen(node_id), 0));

	hash &= (1ULL << PREFIX_SHIFT) - 1;
	return PREFIX << PREFIX_SHIFT | (hash & ~(uint64_t)FENCE_MARKS);
}

static bool is_ours(uint64_t key)
{
	return key >> PREFIX_SHIFT == PREFIX;
}

static bool same_node(uint64_t a, uint64_t b)
{
	return (a | FENCE_MARKS) == (b | FENCE_MARKS);
}

bool fence_is_rival(uint64_t holder, uint64_t key)
{
	return is_ours(holder) && !same_node(holder, key) && !(holder & FENCE_LEFT);
}

bool fence_is_own(uint64_t holder, uint64_t key)
{
	return same_node(holder, key);
}

static int failed(int r, const char *what, struct error *err)
{
	if (r == -EOPNOTSUPP)
		return error_set(err, EOPNOTSUPP, "the device has no persistent reservations");
	return error_errno(err, -r, "the device's target does not %s", what);
}

static int look(struct fence_device *d, struct fence_view *ret, struct error *err)
{
	int r = d->ops->look(d, ret);

	return r < 0 ? failed(r, "say who holds it", err) : 0;
}

/* ---- taking it -------------------------------------------------------------------------------- */

static int check_free(const struct fence_view *v, uint64_t key, uint64_t lapsed, struct error *err)
{
	for (size_t i = 0; i < v->count; i++)
		if (!is_ours(v->keys[i]))
			return error_set(err, EBUSY,
					 "other software has registered the reservation key "
					 "0x%016llx for it: end that first",
					 (unsigned long long)v->keys[i]);
	return v->holder != lapsed && fence_is_rival(v->holder, key)
		       ? error_set(err, EBUSY,
				   "another node writes to it (reservation key 0x%016llx)",
				   (unsigned long long)v->holder)
		       : 0;
}

/* On every path: one that came back later without it would get errors instead of writing. */
static int enroll_all(struct fence_device *d, uint64_t key, struct error *err)
{
	for (size_t i = 0; i < d->paths; i++) {
		int r = d->ops->enroll(d, i, 0, key);

		if (r < 0)
			return failed(r, "take a registration on each of its paths", err);
	}
	return 0;
}

/* Where others hold it our key goes; as a holder's it may have to keep somebody out. */
static void leave(struct fence_device *d, uint64_t key, bool holder)
{
	for (size_t i = 0; i < d->paths; i++)
		(void)d->ops->enroll(d, i, key, holder && key & FENCE_TAKEN ? key | FENCE_LEFT : 0);
}

static void back_out(struct fence_device *d, uint64_t key)
{
	struct fence_view v;

	leave(d, key, d->ops->look(d, &v) < 0 || v.holder == key);
}

static int seize(struct fence_device *d, uint64_t key, uint64_t holder, struct error *err)
{
	int r = holder && !same_node(holder, key) ? d->ops->preempt(d, key, holder)
						  : d->ops->reserve(d, key);

	/* held on a path of an earlier life of ours; our other paths may lose their key with it */
	if (r == -EBUSY && same_node(holder, key)) {
		r = d->ops->preempt(d, key, holder);
		if (r == 0)
			return enroll_all(d, key, err);
	}
	/* somebody was faster: who, is seen by looking again */
	return r == 0 || r == -EBUSY ? 0 : failed(r, "give a reservation", err);
}

/* Who registered meanwhile, and lost, or died before it came to more, could write beside us. */
static int put_others_out(struct fence_device *d, uint64_t key, const struct fence_view *v,
			  struct error *err)
{
	for (size_t i = 0; i < v->count; i++) {
		int r = v->keys[i] == key ? 0 : d->ops->preempt(d, key, v->keys[i]);

		/* it went by itself, or was there twice */
		if (r < 0 && r != -EBUSY)
			return failed(r, "put another node out", err);
	}
	return 0;
}

static int settle(struct fence_device *d, uint64_t key, struct error *err)
{
	struct fence_view v;
	int r = look(d, &v, err);

	if (r < 0)
		return r;
	if (v.holder != key)
		return error_set(err, EBUSY, "another node was faster (reservation key 0x%016llx)",
				 (unsigned long long)v.holder);
	return put_others_out(d, key, &v, err);
}

int fence_take(struct fence_device *d, uint64_t key, uint64_t lapsed, struct error *err)
{
	struct fence_view v;
	int r = look(d, &v, err);

	if (r == 0)
		r = check_free(&v, key, lapsed, err);
	if (r < 0)
		return r;
	if (fence_is_rival(v.holder, key) || (v.holder & FENCE_TAKEN))
		key |= FENCE_TAKEN;
	r = enroll_all(d, key, err);
	if (r == 0)
		r = seize(d, key, v.holder, err);
	if (r == 0)
		r = settle(d, key, err);
	if (r < 0)
		back_out(d, key);
	return r;
}

/* ---- holding it ------------------------------------------------------------------------------- */

static int lost(struct error *err)
{
	return error_set(err, ESTALE,
			 "another node has put this one out: end the pod, and start it "
			 "again");
}

int fence_renew(struct fence_device *d, uint64_t key, struct error *err)
{
	struct fence_view v;
	bool refused = false;
	int r = look(d, &v, err);

	if (r < 0)
		return r;
	if (!v.holder || v.holder == (key | FENCE_MARKS))
		return 1;
	if (!same_node(v.holder, key))
		return lost(err);
	r = -EIO;
	/*
	 * One path will do; and one that does not answer now, or came after the device was taken and so
	 * has no registration, must not cost the others theirs.
	 */
	for (size_t i = 0; i < d->paths && r < 0; i++) {
		r = d->ops->enroll(d, i, v.holder, v.holder);
		refused |= r == -EBUSY;
	}
	if (r < 0 && refused)
		return lost(err);
	return r < 0 ? failed(r, "take the key again", err) : 0;
}

int fence_drop(struct fence_device *d, uint64_t key, struct error *err)
{
	struct fence_view v;
	int r = look(d, &v, err);

	if (r < 0)
		return r;
	if (same_node(v.holder, key) && !(v.holder & FENCE_TAKEN)) {
		/* takes away registrations of paths that are gone, too */
		r = d->ops->clear(d, v.holder);
		return r < 0 && r != -EBUSY ? failed(r, "let go of it", err) : 0;
	}
	for (size_t i = 0; i < v.count; i++)
		if (same_node(v.keys[i], key) && !(v.keys[i] & FENCE_LEFT))
			leave(d, v.keys[i], v.keys[i] == v.holder);
	return v.holder && !same_node(v.holder, key);
}
