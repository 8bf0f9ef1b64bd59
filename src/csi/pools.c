/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/pools.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "csi/handle.h"

#include <dirent.h>
#include <errno.h>

#define POOL_MAX 65536 /* bytes of its file */
#define POOL_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

static bool is_pool_name(const char *name)
{
	return *name && name[strspn(name, POOL_LETTERS)] == '\0';
}

int pool_lookup(const char *dir, const char *pool, json_t **ret)
{
	cleanup_free char *path = NULL, *text = NULL;
	struct error err = ERROR_INIT;
	size_t len;
	int r;

	if (!dir || !is_pool_name(pool))
		return 0;
	path = xasprintf("%s/%s", dir, pool);
	r = file_read(path, POOL_MAX, &text, &len, &err);
	if (r == 0)
		r = json_parse(text, len, ret, &err);
	if (r == 0 && jstr(*ret, "driverVolumeType"))
		return 1;
	if (r == 0)
		json_decref(TAKE_PTR(*ret));
	if (r != -ENOENT)
		log_warn("%s does not say how the pool is reached: %s", path,
			 r < 0 ? error_text(&err, r) : "driverVolumeType is missing");
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void pools_ephemeral(const char *dir, struct strv *ret)
{
	DIR *d = dir ? opendir(dir) : NULL;

	for (struct dirent *e; d && (e = readdir(d));) {
		cleanup_json json_t *pool = NULL;

		if (pool_lookup(dir, e->d_name, &pool) > 0 && jbool(pool, "ephemeral"))
			strv_add(ret, e->d_name);
	}
	if (d)
		closedir(d);
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_name);
}

json_t *pool_connection(const json_t *pool, const char *id, const char *consumer)
{
	json_t *data = json_copy((json_t *)pool);

	(void)json_object_del(data, "driverVolumeType");
	(void)json_object_del(data, "ephemeral");
	(void)json_object_set_new(data, "volumeId", json_string(id));
	return json_pack("{s:s, s:s, s:o}", "driverVolumeType", jstr(pool, "driverVolumeType"),
			 "consumer", consumer, "data", data);
}

/* ---- volumes of pools ------------------------------------------------------------------------- */

static const char *value_of(struct map m, const char *key)
{
	for (size_t i = 0; i < m.count; i++)
		if (streq(m.entries[i]->key, key))
			return m.entries[i]->value;
	return NULL;
}

/* "POOL" of "HOST:/POOL"; "" where it has no such form. */
static const char *volume_of(const char *export)
{
	const char *colon = export ? strstr(export, ":/") : NULL;

	return colon ? colon + 2 : "";
}

char *pool_place(const json_t *pool, const struct handle *h, const char *type, const char *export)
{
	const char *at = jstr(pool, "export"), *volume = volume_in_system(h->kind, h->pool, h->name);

	if (!streq(type, jstr(pool, "driverVolumeType")) || !streq(volume_of(at), h->pool) ||
	    !streq(volume_of(export), volume) || *at == ':')
		return NULL;
	return xasprintf("%.*s%s", (int)(volume_of(at) - at), at, volume);
}

/* The value of a key, whether the context has it or not. */
static void place(struct placed *p, size_t i, const char *key, const char *value)
{
	p->own[i] = (struct map_entry){ .key = (char *)key, .value = (char *)value };
	for (size_t k = 0; k < p->context.count; k++)
		if (streq(p->context.entries[k]->key, key)) {
			p->context.entries[k] = &p->own[i];
			return;
		}
	p->context.entries[p->context.count++] = &p->own[i];
}

void placed_context(const char *dir, const char *id, struct map context, const json_t *record,
		    bool anew, struct placed *ret)
{
	const char *connected = jstr(record, "data", "export");
	struct handle h;

	*ret = (struct placed){ .context = { .count = context.count } };
	ret->context.entries = xcalloc(context.count + 2, sizeof(*ret->context.entries));
	for (size_t i = 0; i < context.count; i++)
		ret->context.entries[i] = context.entries[i];
	if (handle_parse(id, &h, NULL) < 0 || pool_lookup(dir, h.pool, &ret->pool) <= 0)
		return;
	if (value_of(context, "mountOptions"))
		return;
	ret->export = pool_place(ret->pool, &h, value_of(context, "driverVolumeType"),
				 value_of(context, "export"));
	if (!ret->export)
		return;
	ret->moved = connected && !streq(connected, ret->export);
	place(ret, 0, "export", ret->moved && !anew ? connected : ret->export);
	place(ret, 1, "options", jstr(ret->pool, "options") ? jstr(ret->pool, "options") : "");
}

void placed_done(struct placed *p)
{
	free(p->context.entries);
	json_decref(p->pool);
	free(p->export);
	*p = (struct placed){ 0 };
}
