/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct fake *fake_of(struct volumes *v)
{
	return (struct fake *)v;
}

static struct fake_volume *find(struct fake_volume *items, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (streq(items[i].name, name))
			return &items[i];
	return NULL;
}

static int at_name(const void *a, const void *b)
{
	return strcmp(((const struct fake_volume *)a)->name, ((const struct fake_volume *)b)->name);
}

static struct fake_volume *add(struct fake_volume **items, size_t *count, const char *name,
			       const struct fake_volume *what)
{
	*items = xrealloc(*items, (*count + 1) * sizeof(**items));
	(*items)[*count] = *what;
	snprintf((*items)[*count].name, CSI_NAME_MAX, "%s", name);
	++*count;
	qsort(*items, *count, sizeof(**items), at_name);
	return find(*items, *count, name);
}

static void take_out(struct fake_volume *items, size_t *count, struct fake_volume *v)
{
	free(v->asked);
	free(v->source);
	memmove(v, v + 1, (size_t)(items + --*count - v) * sizeof(*v));
}

/* Works for a while without the lock, as a real one does: whoever else works on it is noticed. */
static void work(struct fake *f, const char *name)
{
	struct fake_volume *v = find(f->items, f->count, name);
	if (v) {
		f->overlaps += v->busy;
		v->busy = true;
	}
	pthread_mutex_unlock(&f->lock);
	usleep((useconds_t)f->slow_us);
	pthread_mutex_lock(&f->lock);
	v = find(f->items, f->count, name);
	if (v)
		v->busy = false;
}

static void info_of(const struct fake_volume *v, struct volume_info *ret)
{
	*ret = (struct volume_info){
		.id = handle_format(FAKE_POOL, v->kind, v->name),
		.kind = v->kind,
		.bytes = v->bytes,
		.source = v->source ? xstrdup(v->source) : NULL,
		.context = json_pack("{s:s}", "export", "h:/gold-1"),
		.health = v->bytes == 4242 ? "Degraded" : NULL,
	};
}

static int f_ready(struct volumes *v, struct error *err)
{
	return fake_of(v)->elsewhere ? error_set(err, EAGAIN, "another one leads") : 0;
}

static int make(struct fake *f, const struct volume_request *q, const char *name,
		struct fake_volume **ret, struct error *err)
{
	struct fake_volume fresh = { .kind = q->kind,
				     .archive = streq(q->attributes.reclaim, "archive") };
	int rc = volume_size(q->kind, q->bytes, q->limit, VOLUME_DEFAULT_BYTES, &fresh.bytes, err);
	if (rc < 0)
		return rc;
	if (fresh.bytes > FAKE_BYTES)
		return error_set(err, ENOSPC, "full");
	fresh.asked = xstrdup(q->name);
	fresh.source = q->source ? xstrdup(q->source) : NULL;
	*ret = add(&f->items, &f->count, name, &fresh);
	f->created++;
	return 0;
}

static int f_create(struct volumes *volumes, const struct volume_request *q,
		    struct volume_info *ret, struct error *err)
{
	struct fake *f = fake_of(volumes);
	char name[CSI_NAME_MAX];
	int rc = 0;

	if (q->source && atomic_load(&f->copying) > 0) {
		atomic_fetch_sub(&f->copying, 1);
		return 1;
	}
	pthread_mutex_lock(&f->lock);
	struct fake_volume *v = find(f->items, f->count, csi_volume_name(q->name, name));
	if (!v)
		rc = make(f, q, name, &v, err);
	else if (v->kind != q->kind || v->bytes < q->bytes || (q->limit && v->bytes > q->limit))
		rc = error_set(err, EEXIST, "another one");
	if (rc == 0) {
		work(f, name);
		v = find(f->items, f->count, name);
		if (v)
			info_of(v, ret);
		else
			rc = error_set(err, EIO, "it was removed meanwhile");
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int f_remove(struct volumes *volumes, const struct handle *id, struct error *err)
{
	struct fake *f = fake_of(volumes);
	if (atomic_load(&f->removing) > 0) {
		atomic_fetch_sub(&f->removing, 1);
		return 1;
	}
	pthread_mutex_lock(&f->lock);
	work(f, id->name);
	struct fake_volume *v = find(f->items, f->count, id->name);
	if (v) {
		take_out(f->items, &f->count, v);
		f->removed++;
	}
	pthread_mutex_unlock(&f->lock);
	return 0;
}

static int f_find(struct volumes *volumes, const struct handle *id, struct volume_info *ret,
		  struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	const struct fake_volume *v = find(f->items, f->count, id->name);
	if (v)
		info_of(v, ret);
	pthread_mutex_unlock(&f->lock);
	return v ? 0 : error_set(err, ENOENT, "no such volume");
}

static int f_list(struct volumes *volumes, const char *after, size_t max, struct volume_list *ret,
		  struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	ret->items = xcalloc(f->count + 1, sizeof(*ret->items));
	for (size_t i = 0; i < f->count; i++) {
		if (after && strcmp(f->items[i].name, after) <= 0)
			continue;
		ret->more = ret->count == max;
		if (ret->more)
			break;
		info_of(&f->items[i], &ret->items[ret->count++]);
	}
	pthread_mutex_unlock(&f->lock);
	return 0;
}

static int f_expand(struct volumes *volumes, const struct handle *id, int64_t bytes, int64_t limit,
		    int64_t *ret_bytes, struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	work(f, id->name);
	struct fake_volume *v = find(f->items, f->count, id->name);
	if (v && bytes > v->bytes) {
		v->bytes = bytes;
		f->grown++;
	}
	if (v)
		*ret_bytes = v->bytes;
	pthread_mutex_unlock(&f->lock);
	return v ? 0 : error_set(err, ENOENT, "no such volume");
}

static int f_capacity(struct volumes *v, const char *pool, enum volume_kind kind, int64_t *ret_left,
		      int64_t *ret_biggest, struct error *err)
{
	*ret_left = pool && !streq(pool, FAKE_POOL) ? 0 : FAKE_BYTES;
	*ret_biggest = *ret_left / 2;
	return 0;
}

static void snapshot_of(const struct fake_volume *s, struct snapshot_info *ret)
{
	*ret = (struct snapshot_info){ .id = handle_format(FAKE_POOL, VOLUME_SNAPSHOT, s->name),
				       .source = xstrdup(s->source),
				       .bytes = s->bytes,
				       .created_ms = 1700000000123,
				       .ready = true };
}

static int f_snapshot(struct volumes *volumes, const char *asked, const struct handle *source,
		      struct snapshot_info *ret, struct error *err)
{
	struct fake *f = fake_of(volumes);
	char name[CSI_NAME_MAX];
	int rc = 0;
	pthread_mutex_lock(&f->lock);
	const struct fake_volume *v = find(f->items, f->count, source->name);
	struct fake_volume *s = find(f->snapshots, f->snapshot_count, csi_volume_name(asked, name));
	cleanup_free char *id = handle_format(source->pool, source->kind, source->name);
	if (!v && !s)
		rc = error_set(err, ENOENT, "no such volume");
	else if (s && !streq(s->source, id))
		rc = error_set(err, EEXIST, "of another one");
	if (rc == 0 && !s) {
		struct fake_volume fresh = { .source = xstrdup(id), .bytes = v->bytes };
		s = add(&f->snapshots, &f->snapshot_count, name, &fresh);
		f->taken++;
	}
	if (rc == 0)
		snapshot_of(s, ret);
	pthread_mutex_unlock(&f->lock);
	return rc;
}

static int f_snapshot_remove(struct volumes *volumes, const struct handle *id, struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	struct fake_volume *s = find(f->snapshots, f->snapshot_count, id->name);
	if (s)
		take_out(f->snapshots, &f->snapshot_count, s);
	pthread_mutex_unlock(&f->lock);
	return 0;
}

static int f_snapshots(struct volumes *volumes, const char *source, const struct handle *after,
		       size_t max, struct snapshot_list *ret, struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	ret->items = xcalloc(f->snapshot_count + 1, sizeof(*ret->items));
	for (size_t i = 0; i < f->snapshot_count; i++) {
		const struct fake_volume *s = &f->snapshots[i];
		if ((source && !streq(source, s->source)) ||
		    (after && strcmp(s->name, after->name) <= 0))
			continue;
		ret->more = ret->count == max;
		if (ret->more)
			break;
		snapshot_of(s, &ret->items[ret->count++]);
	}
	pthread_mutex_unlock(&f->lock);
	return 0;
}

static int f_snapshot_find(struct volumes *volumes, const struct handle *id,
			   struct snapshot_info *ret, struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	const struct fake_volume *s = find(f->snapshots, f->snapshot_count, id->name);
	if (s)
		snapshot_of(s, ret);
	pthread_mutex_unlock(&f->lock);
	return s ? 0 : error_set(err, ENOENT, "no such snapshot");
}

static int f_modify(struct volumes *volumes, const struct handle *id,
		    const struct volume_attributes *attributes, struct error *err)
{
	struct fake *f = fake_of(volumes);
	pthread_mutex_lock(&f->lock);
	work(f, id->name);
	struct fake_volume *v = find(f->items, f->count, id->name);
	if (v && attributes->reclaim)
		v->archive = streq(attributes->reclaim, "archive");
	pthread_mutex_unlock(&f->lock);
	return v ? 0 : error_set(err, ENOENT, "no such volume");
}

static const struct volumes_ops ops = {
	f_ready,    f_create,	f_remove,	   f_find,	f_list,		 f_expand,
	f_capacity, f_snapshot, f_snapshot_remove, f_snapshots, f_snapshot_find, f_modify,
};

/* ---- the service ------------------------------------------------------------------------------- */

struct fake *fake_new(int handlers)
{
	struct fake *f = xcalloc(1, sizeof(*f));
	struct error err = ERROR_INIT;

	f->volumes.ops = &ops;
	pthread_mutex_init(&f->lock, NULL);
	snprintf(f->dir, sizeof(f->dir), "/tmp/qm-csi-XXXXXX");
	if (!mkdtemp(f->dir))
		fail_msg("no directory for the socket");
	snprintf(f->path, sizeof(f->path), "%s/csi.sock", f->dir);
	f->controller = csi_controller_new(&f->volumes);
	const struct grpc_service services[] = { csi_controller_service(f->controller), { 0 } };
	struct grpc_listen listen = { .unix_path = f->path, .workers = handlers, .anyone = true };
	if (grpc_server_start(&listen, services, &f->server, &err) < 0 ||
	    grpc_client_new(f->path, &f->client, &err) < 0)
		fail_msg("%s", err.message);
	return f;
}

void fake_free(struct fake *f)
{
	grpc_client_free(f->client);
	grpc_server_free(f->server);
	csi_controller_free(f->controller);
	while (f->count)
		take_out(f->items, &f->count, &f->items[0]);
	while (f->snapshot_count)
		take_out(f->snapshots, &f->snapshot_count, &f->snapshots[0]);
	free(f->items);
	free(f->snapshots);
	pthread_mutex_destroy(&f->lock);
	unlink(f->path);
	rmdir(f->dir);
	free(f);
}

enum grpc_code fake_call(struct fake *f, const char *method, const void *request, void *ret_reply,
			 struct error *err)
{
	enum grpc_code code = GRPC_OK;
	void *reply = NULL;
	grpc_client_call(f->client, &csi__v1__controller__descriptor, method, request, 60000,
			 &reply, &code, err);
	if (code == GRPC_OK && ret_reply)
		*(void **)ret_reply = reply;
	else
		fake_done(reply);
	return code;
}

void fake_done(void *reply)
{
	if (reply)
		protobuf_c_message_free_unpacked(reply, NULL);
}

enum grpc_code fake_delete(struct fake *f, const char *id)
{
	Csi__V1__DeleteVolumeRequest q = CSI__V1__DELETE_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	return fake_call(f, "DeleteVolume", &q, NULL, NULL);
}
