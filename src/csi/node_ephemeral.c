/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "csi/ephemeral_file.h"
#include "csi/node_service.h"
#include "csi/pools.h"

#include <errno.h>
#include <sys/mount.h>
#include <time.h>

#define KUBELETS "csi.storage.k8s.io/" /* attributes that kubelet adds */
#define EPHEMERAL KUBELETS "ephemeral"
#define ID_PREFIX "csi-"
#define ID_HEX 64
#define SIZE_MIN (1 << 20)
#define SWEEP_S 600
#define SWEEP_AGAIN_S 60 /* where something was left */
#define SWEEP_STACK (256 * 1024)

/* ---- what is asked for ------------------------------------------------------------------------ */

/*
 * Whoever may make a pod may ask for such a volume: so its attributes say how large it is and in which
 * pool, and never where anything is.
 */
struct asked {
	int64_t size;
	const char *pool; /* NULL: any */
};

bool is_ephemeral(const Csi__V1__NodePublishVolumeRequest *q)
{
	struct map context = MAP_OF(q, volume_context);

	for (size_t i = 0; i < context.count; i++)
		if (streq(context.entries[i]->key, EPHEMERAL))
			return streq(context.entries[i]->value, "true");
	return false;
}

/* As kubelet makes it, of the pod and the volume's name there. It becomes the name of a file. */
static bool is_ephemeral_id(const char *id)
{
	return id && str_has_prefix(id, ID_PREFIX) && strlen(id) == strlen(ID_PREFIX) + ID_HEX &&
	       strspn(id + strlen(ID_PREFIX), "0123456789abcdef") == ID_HEX;
}

static int read_attribute(const struct map_entry *e, struct asked *a, struct error *err)
{
	if (str_has_prefix(e->key, KUBELETS))
		return 0;
	if (streq(e->key, "size")) {
		if (quantity_parse(e->value, &a->size, NULL) < 0 || a->size < SIZE_MIN)
			return error_set(err, EINVAL,
					 "size \"%.32s\" of the ephemeral volume is not a size of "
					 "1Mi or more, such as 1Gi",
					 e->value);
		return 0;
	}
	if (streq(e->key, "pool")) {
		a->pool = e->value;
		return 0;
	}
	return error_set(err, EINVAL,
			 "an ephemeral volume has no attribute \"%.64s\": only size and pool are "
			 "understood",
			 e->key);
}

static int read_asked(const Csi__V1__NodePublishVolumeRequest *q, const struct wanted *w,
		      struct asked *ret, struct error *err)
{
	struct map context = MAP_OF(q, volume_context);
	const char *wrong = !is_ephemeral_id(q->volume_id)
				    ? "its volume_id is not of the form that kubelet gives"
			    : *q->staging_target_path ? "it cannot be staged"
			    : w->block		      ? "it cannot be a block device"
			    : q->readonly || w->read_only
				    ? "it would stay empty when it is read-only"
			    : q->n_secrets ? "it takes no nodePublishSecretRef"
					   : NULL;
	int r = 0;

	if (wrong)
		return error_set(err, EINVAL, "the ephemeral volume is refused: %s", wrong);
	for (size_t i = 0; i < context.count && r == 0; i++)
		r = read_attribute(context.entries[i], ret, err);
	if (r == 0 && !ret->size)
		r = error_set(err, EINVAL,
			      "the ephemeral volume has no size: set it in its volumeAttributes, "
			      "such as size: 1Gi");
	return r;
}

/* ---- its pool and its file -------------------------------------------------------------------- */

/* The node's id as the name of a directory; caller frees. */
static char *node_name(const struct csi_node *n)
{
	char *name = xstrdup(n->node_id);

	for (char *p = name; *p; p++)
		if (*p == '/' || (unsigned char)*p <= ' ' || (p == name && *p == '.'))
			*p = '_';
	return name;
}

static struct ephemeral_file file_of(const json_t *record, const char *node)
{
	return (struct ephemeral_file){ .root = record_root(record),
					.node = node,
					.id = jstr(record, "volumeId") };
}

static void settle(const struct csi_node *n, json_t *record)
{
	cleanup_free char *node = node_name(n), *root = NULL, *sub = NULL, *path = NULL;

	if (!is_ephemeral_id(jstr(record, "volumeId")) || jget(record, "data", "name"))
		return;
	root = xstrdup(record_root(record));
	sub = xasprintf(EPHEMERAL_DIR "/%s/%s", node, jstr(record, "volumeId"));
	path = xasprintf("%s/%s", root, sub);
	(void)jset(record, json_string(root), "detail", "mountPoint");
	(void)jset(record, json_string(sub), "data", "name");
	(void)jset(record, json_string(path), "path");
}

void ephemeral_settle(const struct csi_node *n, json_t *records)
{
	json_t *record;
	size_t i;

	json_array_foreach (records, i, record)
		settle(n, record);
}

/* The record of the volume at that target: 1 (new reference), or 0. */
static int find_record(struct csi_node *n, const char *id, const char *target, json_t **ret,
		       struct error *err)
{
	cleanup_json json_t *records = NULL;
	int r = is_ephemeral_id(id) ? records_find(n->h, id, target, &records, err) : 0;

	if (r < 0 || !json_array_size(records))
		return r;
	*ret = json_incref(json_array_get(records, 0));
	return 1;
}

static int connect_pool(struct csi_node *n, const json_t *connection, json_t **ret,
			struct error *err)
{
	cleanup_free char *text = json_text(connection);

	return connect_volume(n, text, ret, err);
}

/* A copy that says of the file what the record says of the pool. New reference. */
static json_t *settled_copy(const struct csi_node *n, const json_t *record)
{
	json_t *copy = json_deep_copy(record);

	settle(n, copy);
	return copy;
}

static int make_file(struct csi_node *n, const json_t *record, int64_t size, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	cleanup_json json_t *settled = settled_copy(n, record);
	cleanup_free char *node = node_name(n);
	struct ephemeral_file file = file_of(record, node);
	int r = staged_look(settled, &s, err);

	/* mounted already: it is only to be seen that it works */
	if (r < 0 || s.shape == SHAPE_FILESYSTEM)
		return r;
	/* of a predecessor that was killed while it formatted, or at another target: no lock keeps it away */
	if (loop_is_on(file.root, jstr(settled, "data", "name")))
		return error_set(err, EBUSY, "a device is still on the file of volume %s", file.id);
	return ephemeral_file_make(&file, size, err);
}

/* Connects the pool and makes the file in it. What fails leaves nothing, if nothing was there before. */
static int make_in(struct csi_node *n, const json_t *connection, int64_t size, bool fresh,
		   json_t **ret, struct error *err)
{
	cleanup_json json_t *record = NULL;
	cleanup_free char *node = node_name(n);
	struct ephemeral_file file;
	int r = connect_pool(n, connection, &record, err);

	if (r < 0)
		return r;
	r = make_file(n, record, size, err);
	if (r == 0) {
		*ret = TAKE_PTR(record);
		return 0;
	}
	file = file_of(record, node);
	if (fresh && ephemeral_file_remove(&file, NULL) == 0)
		(void)record_disconnect(n->h, record, 0, NULL);
	return r;
}

static int make_in_pool(struct csi_node *n, const char *name, const char *id, const char *target,
			int64_t size, json_t **ret, struct error *err)
{
	cleanup_json json_t *pool = NULL, *connection = NULL;

	if (pool_lookup(n->pools_dir, name, &pool) <= 0 || !jbool(pool, "ephemeral"))
		return error_set(err, ENOENT, "there is no pool %.64s for ephemeral volumes", name);
	connection = pool_connection(pool, id, target);
	return make_in(n, connection, size, true, ret, err);
}

/* Each volume begins with another pool, and takes the next where that has no room or does not answer. */
static int make_in_any(struct csi_node *n, const char *id, const char *target, int64_t size,
		       json_t **ret, struct error *err)
{
	struct strv names = { 0 };
	char first[9] = "";
	size_t start;
	int r = -ENOENT;

	pools_ephemeral(n->pools_dir, &names);
	memcpy(first, id + strlen(ID_PREFIX), sizeof(first) - 1);
	start = strtoul(first, NULL, 16);
	for (size_t i = 0; i < names.count && r < 0; i++)
		r = make_in_pool(n, names.items[(start + i) % names.count], id, target, size, ret,
				 err);
	if (!names.count)
		r = error_set(err, EAGAIN,
			      "no pool takes ephemeral volumes now: look whether the pools are "
			      "online (kubectl get storagepools)");
	strv_done(&names);
	return r;
}

/* ---- publishing ------------------------------------------------------------------------------- */

static int make(struct csi_node *n, const char *id, const char *target, const struct asked *a,
		const json_t *before, json_t **ret, struct error *err)
{
	if (before)
		return make_in(n, before, a->size, false, ret, err);
	if (a->pool)
		return make_in_pool(n, a->pool, id, target, a->size, ret, err);
	return make_in_any(n, id, target, a->size, ret, err);
}

/* The pod cannot bring what would make a device or a program of root's of its own files. */
#define ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

int ephemeral_publish(struct csi_node *n, const Csi__V1__NodePublishVolumeRequest *q,
		      const char *target, struct wanted *w, struct error *err)
{
	cleanup_json json_t *before = NULL, *record = NULL, *settled = NULL;
	cleanup_free char *node = node_name(n);
	struct asked a = { 0 };
	struct ephemeral_file file;
	int r = read_asked(q, w, &a, err);

	if (r == 0)
		r = find_record(n, q->volume_id, target, &before, err);
	if (r >= 0)
		r = make(n, q->volume_id, target, &a, before, &record, err);
	if (r < 0)
		return r;
	w->set |= ATTRIBUTES;
	w->unlocked = true;
	settled = settled_copy(n, record);
	file = file_of(record, node);
	published_note(n, q->volume_id, target, MAP_OF(q, volume_context));
	r = stage_present(n, settled, target, w, err);
	if (r == 0)
		r = ephemeral_file_finish(&file, err);
	/* kubelet calls no NodeUnpublish for what it was told to be wrong */
	if (r < 0 && !before)
		(void)ephemeral_unpublish(n, q->volume_id, target, NULL);
	return r == -ELOOP ? -EINVAL : r;
}

/* ---- and its end ------------------------------------------------------------------------------ */

/* The pool was deleted, with all that was in it; while no pool at all is known nothing is said. */
static bool pool_is_gone(const struct csi_node *n, const json_t *record)
{
	const char *colon = strstr(jstr(record, "data", "export") ?: "", ":/");
	cleanup_json json_t *pool = NULL;
	struct strv known = { 0 };
	bool gone;

	if (!colon)
		return false;
	pools_ephemeral(n->pools_dir, &known);
	gone = known.count && pool_lookup(n->pools_dir, colon + 2, &pool) <= 0;
	strv_done(&known);
	return gone;
}

static int remove_file(struct csi_node *n, const json_t *record, struct error *err)
{
	cleanup_free char *node = node_name(n);
	cleanup_json json_t *now = NULL;
	struct ephemeral_file file;
	int r = connect_pool(n, record, &now, err);

	if (r == 0) {
		file = file_of(now, node);
		r = ephemeral_file_remove(&file, err);
	}
	if (r < 0 && pool_is_gone(n, record)) {
		log_warn("the pool of volume %s is gone, and the volume with it",
			 jstr(record, "volumeId"));
		return 0;
	}
	return r;
}

int ephemeral_unpublish(struct csi_node *n, const char *id, const char *target, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	cleanup_json json_t *record = NULL, *settled = NULL;
	int r = find_record(n, id, target, &record, err);

	if (r <= 0)
		return r < 0 ? r : 1;
	settled = settled_copy(n, record);
	r = staged_look(settled, &s, err);
	if (r == 0)
		r = stage_remove(&s, false, err);
	if (r == 0)
		r = place_remove(target, STEP_MS, err);
	if (r == 0)
		r = remove_file(n, record, err);
	if (r == 0)
		r = record_disconnect(n->h, record, 0, err);
	if (r >= 0)
		published_forget(n, target);
	return r == -ELOOP ? -EINVAL : r < 0 ? r : 0;
}

/* ---- what kubelet has forgotten --------------------------------------------------------------- */

/* Its target stands in a directory of the pod's, which kubelet removes when it is done with it. */
static bool is_forgotten(const json_t *record)
{
	const char *id = jstr(record, "volumeId"), *consumer = jstr(record, "consumer");
	cleanup_free char *dir = NULL;
	char *slash;

	if (!is_ephemeral_id(id) || !consumer || !(slash = strrchr(consumer, '/')))
		return false;
	dir = xstrndup(consumer, (size_t)(slash - consumer));
	return *dir && access(dir, F_OK) < 0 && errno == ENOENT;
}

static int take_forgotten(struct csi_node *n, const json_t *record)
{
	const char *id = jstr(record, "volumeId");
	struct error err = ERROR_INIT;
	int r = volume_begin(n, id, &err);

	if (r < 0)
		return r;
	r = ephemeral_unpublish(n, id, jstr(record, "consumer"), &err);
	volume_end(n, id);
	if (r < 0)
		log_warn("volume %s, whose pod is gone, is not taken away: %s", id,
			 error_text(&err, r));
	else
		log_info("volume %s, whose pod is gone, is taken away", id);
	return r;
}

/* Where its pool answers; where not, it has a week to come back (worker/gluster_ephemeral.c). */
static void say_that_used(const struct csi_node *n, const json_t *record)
{
	cleanup_free char *node = node_name(n);
	struct ephemeral_file file = file_of(record, node);

	if (is_ephemeral_id(file.id))
		(void)ephemeral_file_touch(&file, NULL);
}

/* How many are left that should not be. */
static size_t sweep(struct csi_node *n)
{
	cleanup_json json_t *records = NULL;
	json_t *record;
	size_t i, left = 0;

	if (records_find(n->h, NULL, NULL, &records, NULL) < 0)
		return 1;
	json_array_foreach (records, i, record)
		if (!is_forgotten(record))
			say_that_used(n, record);
		else if (take_forgotten(n, record) < 0)
			left++;
	return left;
}

static void *sweeper(void *arg)
{
	struct csi_node *n = arg;
	struct timespec until;

	for (bool ends = false; !ends;) {
		int pause = sweep(n) ? SWEEP_AGAIN_S : SWEEP_S;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += pause;
		pthread_mutex_lock(&n->lock);
		while (!n->ending && pthread_cond_timedwait(&n->wake, &n->lock, &until) == 0)
			;
		ends = n->ending;
		pthread_mutex_unlock(&n->lock);
	}
	return NULL;
}

void ephemeral_sweep_start(struct csi_node *n)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SWEEP_STACK);
	n->sweeping = pthread_create(&n->sweeper, &attr, sweeper, n) == 0;
	pthread_attr_destroy(&attr);
}

void ephemeral_sweep_end(struct csi_node *n)
{
	if (!n->sweeping)
		return;
	pthread_mutex_lock(&n->lock);
	n->ending = true;
	pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	pthread_join(n->sweeper, NULL);
}
