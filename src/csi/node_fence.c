/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations of devices that are staged here for a single writer. Nothing is remembered of ours:
 * who holds a device is asked of its target. Of others' it is remembered since when they have not
 * renewed; who forgets that waits anew.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "core/host.h"
#include "csi/fence.h"
#include "csi/node_service.h"
#include "h2/hub.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>

#define RENEW_MS 3000 /* for one device: those of a dead target must not keep the others waiting */
#define RENEWALS 10 /* in the time after which a holder counts as gone */
#define RIVALS_MAX 64
#define PATH_TRIES 3
#define IDLE_POLL_MS 200

/* Somebody else's device that is wanted here. */
struct rival {
	char *staging;
	uint64_t holder;
	uint32_t generation;
	int64_t since_ms;
};

struct fences {
	uint64_t key;
	int64_t lapse_ms;
	int end; /* eventfd */
	pthread_t thread;
	bool started;
	struct rival rivals[RIVALS_MAX]; /* under the node's lock */
};

/* ---- calls that may hang ---------------------------------------------------------------------- */

enum fence_what { FENCE_LOOK, FENCE_TAKE, FENCE_RENEW, FENCE_DROP };

/* In memory that is shared with the child. */
struct fence_call {
	enum fence_what what;
	uint64_t key, lapsed;
	struct fence_device device;
	struct fence_view view;
	struct error err;
};

static int do_call(void *arg)
{
	struct fence_call *c = arg;
	struct fence_device *d = &c->device;
	int r = fence_device_open(d);

	if (r < 0)
		return error_errno(&c->err, -r, "cannot open the paths of the device");
	switch (c->what) {
	case FENCE_LOOK:
		return d->ops->look(d, &c->view);
	case FENCE_TAKE:
		return fence_take(d, c->key, c->lapsed, &c->err);
	case FENCE_RENEW:
		return fence_renew(d, c->key, &c->err);
	default:
		return fence_drop(d, c->key, &c->err);
	}
}

/* The child ends with what it opened. */
static int call_device(const struct csi_node *n, enum fence_what what, struct fence_call *call,
		       int timeout_ms, struct error *err)
{
	struct fence_call *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (c == MAP_FAILED)
		return error_errno(err, errno, "cannot ask the device");
	call->what = what;
	call->key = n->fences->key;
	*c = *call;
	r = spawn_call_keeping(do_call, c, -1, call->device.names[0], timeout_ms, NULL);
	*call = *c;
	munmap(c, sizeof(*c));
	return r < 0 ? error_set(err, -r, "%s", error_text(&call->err, r)) : r;
}

static int find_device(unsigned major, unsigned minor, struct fence_call *c, struct error *err)
{
	int r = fence_device_find(major, minor, &c->device);

	return r < 0 ? error_errno(err, -r, "cannot find the paths of device %u:%u", major, minor)
		     : 0;
}

/* ---- others ----------------------------------------------------------------------------------- */

/* The entry of the volume, or one for it: that which has not changed for longest is forgotten. */
static struct rival *rival_of(struct fences *f, const char *staging)
{
	struct rival *place = &f->rivals[0];

	for (size_t i = 0; i < RIVALS_MAX; i++) {
		struct rival *v = &f->rivals[i];

		if (streq(v->staging, staging))
			return v;
		if (place->staging && (!v->staging || v->since_ms < place->since_ms))
			place = v;
	}
	free(place->staging);
	*place = (struct rival){ .staging = xstrdup(staging) };
	return place;
}

/* How long the holder has not renewed, as far as we have seen. */
static int64_t silence(struct csi_node *n, const char *staging, const struct fence_view *v)
{
	int64_t now = clock_mono_ms(&clock_real), since;
	struct rival *rival;

	pthread_mutex_lock(&n->lock);
	rival = rival_of(n->fences, staging);
	if (rival->holder != v->holder || rival->generation != v->generation) {
		rival->holder = v->holder;
		rival->generation = v->generation;
		rival->since_ms = now;
	}
	since = rival->since_ms;
	pthread_mutex_unlock(&n->lock);
	return now - since;
}

static void forget_rival(struct csi_node *n, const char *staging)
{
	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < RIVALS_MAX; i++)
		if (streq(n->fences->rivals[i].staging, staging)) {
			free(n->fences->rivals[i].staging);
			n->fences->rivals[i] = (struct rival){ 0 };
		}
	pthread_mutex_unlock(&n->lock);
}

/* ---- a volume --------------------------------------------------------------------------------- */

/* Who uses it, cut to size; "" for nobody. */
static int used_by(struct csi_node *n, const char *node, unsigned major, unsigned minor, char *buf,
		   size_t size)
{
	int r = n->host->device_in_use(n->host, node, STEP_MS);

	if (r < 0)
		return r;
	n->host->writers(n->host, major, minor, buf, size);
	if (r > 0 && !buf[0])
		snprintf(buf, size, "an unmount that is not done, or a mount in another namespace");
	return 0;
}

/*
 * The mount table does not tell: an unmount takes its file system out of there at once, and writes
 * out what is cached afterwards, as long as that takes; and another mount namespace may show it on.
 * The kernel says so to who asks for the device alone, but tells nobody when that changes.
 */
int device_await_idle(struct csi_node *n, unsigned major, unsigned minor, struct error *err)
{
	cleanup_free char *node = device_node(major, minor);
	int64_t end = clock_mono_ms(&clock_real) + STEP_MS;

	if (!node)
		return error_set(err, ENODEV, "device %u:%u is gone", major, minor);
	for (;;) {
		char users[200] = "";
		int r = used_by(n, node, major, minor, users, sizeof(users));

		if (r < 0)
			return error_errno(err, -r, "cannot see whether %s is in use", node);
		if (!users[0])
			return 0;
		if (clock_mono_ms(&clock_real) > end)
			return error_set(err, EBUSY, "%s is still in use here (%s): end that first",
					 node, users);
		nanosleep(&(struct timespec){ .tv_nsec = IDLE_POLL_MS * 1000000L }, NULL);
	}
}

static int refused(struct csi_node *n, const struct fence_view *v, int64_t silent_ms,
		   struct error *err)
{
	return error_set(
		err, EBUSY,
		"another node writes to it (reservation key 0x%016llx): end the pod there; "
		"a node that is gone is put out when it has not renewed its reservation "
		"for %lld s (now: %lld s)",
		(unsigned long long)v->holder, (long long)n->fences->lapse_ms / 1000,
		(long long)silent_ms / 1000);
}

int device_fence(struct csi_node *n, const char *staging, unsigned major, unsigned minor,
		 struct error *err)
{
	struct fence_call c = { 0 };
	int r = find_device(major, minor, &c, err);

	if (r == 0)
		r = call_device(n, FENCE_LOOK, &c, STEP_MS, err);
	if (r < 0)
		return r;
	if (fence_is_rival(c.view.holder, c.key)) {
		int64_t silent = silence(n, staging, &c.view);

		if (silent < n->fences->lapse_ms)
			return refused(n, &c.view, silent, err);
		log_warn("the node with the reservation key 0x%016llx has not renewed it for %lld "
			 "s: it "
			 "is put out of %s",
			 (unsigned long long)c.view.holder, (long long)silent / 1000, staging);
		c.lapsed = c.view.holder;
	}
	/* who was put out, and has not written all out yet, would write again once it is registered */
	r = fence_is_own(c.view.holder, c.key) ? 0 : device_await_idle(n, major, minor, err);
	if (r == 0)
		r = call_device(n, FENCE_TAKE, &c, STEP_MS, err);
	if (r == 0)
		forget_rival(n, staging);
	return r;
}

/* A path may have died without the kernel's notice so far: then another is asked. */
static int call_any_path(struct csi_node *n, enum fence_what what, struct fence_call *c,
			 struct error *err)
{
	int r = call_device(n, what, c, STEP_MS, err);

	for (int i = 1; i < PATH_TRIES && r == -ETIMEDOUT && c->device.alive > 1; i++) {
		fence_device_pass_over(&c->device);
		r = call_device(n, what, c, STEP_MS, err);
	}
	return r;
}

int device_fence_kept(struct csi_node *n, unsigned major, unsigned minor, struct error *err)
{
	struct fence_call c = { 0 };
	struct error why = ERROR_INIT;
	int r = find_device(major, minor, &c, &why);

	if (r == 0)
		r = call_any_path(n, FENCE_RENEW, &c, &why);
	if (r == -ESTALE)
		return error_set(err, ESTALE, "%s", error_text(&why, r));
	if (r < 0 && r != -EOPNOTSUPP)
		log_warn("it cannot be told who holds device %u:%u; its reservation stays: %s",
			 major, minor, error_text(&why, r));
	return r == 0;
}

bool device_unfence(struct csi_node *n, unsigned major, unsigned minor)
{
	struct fence_call c = { 0 };
	struct error err = ERROR_INIT;
	int r = find_device(major, minor, &c, &err);

	if (r == 0)
		r = call_any_path(n, FENCE_DROP, &c, &err);
	if (r < 0 && r != -EOPNOTSUPP)
		log_warn(
			"the reservation of device %u:%u stays until another node puts it away: %s",
			major, minor, error_text(&err, r));
	return r > 0;
}

/* ---- renewing --------------------------------------------------------------------------------- */

static void renew(struct csi_node *n, json_t *record)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	const char *path = jstr(record, "path"), *consumer = jstr(record, "consumer");
	struct fence_call c = { 0 };
	struct error err = ERROR_INIT;
	int r;

	if (!path || strncmp(path, "/dev/", 5) != 0 || !consumer || consumer[0] != '/' ||
	    staged_look(record, &s, NULL) < 0 || s.shape == SHAPE_DIRECTORY)
		return;
	r = find_device(s.major, s.minor, &c, &err);
	if (r == 0)
		r = call_device(n, FENCE_RENEW, &c, RENEW_MS, &err);
	if (r < 0 && r != -EOPNOTSUPP)
		log_warn("the reservation of %s is not renewed: %s", path, error_text(&err, r));
}

static void *renew_all(void *arg)
{
	struct csi_node *n = arg;
	int64_t every = n->fences->lapse_ms / RENEWALS;

	while (await_fd(n->fences->end, POLLIN, clock_mono_ms(&clock_real) + every) == -ETIMEDOUT) {
		cleanup_json json_t *records = NULL;
		json_t *record;
		size_t i;

		if (records_find(n->h, NULL, NULL, &records, NULL) < 0)
			continue;
		json_array_foreach (records, i, record)
			renew(n, record);
	}
	return NULL;
}

/* The machine as its firmware has it: a file of the image would change with the image. */
static char *machine_uuid(void)
{
	char *text = NULL;

	if (file_read("/sys/class/dmi/id/product_uuid", 256, &text, NULL, NULL) < 0)
		return xstrdup("");
	text[strcspn(text, "\n")] = '\0';
	return text;
}

int fences_start(struct csi_node *n, int64_t lapse_s, struct error *err)
{
	cleanup_free char *machine = machine_uuid();
	struct fences *f = n->fences = xcalloc(1, sizeof(*f));
	int r;

	f->key = fence_key(n->node_id, machine);
	f->lapse_ms = (lapse_s > 0 ? lapse_s : CSI_DEFAULT_LAPSE_S) * 1000;
	f->end = eventfd(0, EFD_CLOEXEC);
	if (f->end < 0)
		return error_errno(err, errno, "cannot make an eventfd");
	r = hub_thread(&f->thread, "fences", renew_all, n);
	if (r < 0)
		return error_errno(err, -r, "cannot start a thread");
	f->started = true;
	log_info("this node's reservation key is 0x%016llx", (unsigned long long)f->key);
	return 0;
}

void fences_end(struct csi_node *n)
{
	struct fences *f = n->fences;

	if (!f)
		return;
	if (f->started) {
		(void)eventfd_write(f->end, 1);
		(void)pthread_join(f->thread, NULL);
	}
	for (size_t i = 0; i < RIVALS_MAX; i++)
		free(f->rivals[i].staging);
	cleanup_close_p(&f->end);
	free(f);
}
