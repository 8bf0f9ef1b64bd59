/* SPDX-License-Identifier: Apache-2.0 */
#include "attachment.h"

#include "base/clock.h"
#include "base/mem.h"
#include "driver.h"
#include "params.h"

#include <errno.h>
#include <stdio.h>

#define VOLUME_ID_MAX 1024
#define RECORD_VERSION 1

static const char *const state_names[] = { "connecting", "attached", "disconnecting" };

void attachment_free(struct attachment *a)
{
	if (!a)
		return;
	json_decref(a->params);
	json_decref(a->detail);
	free(a->volume_id);
	free(a->consumer);
	free(a->target);
	free(a->path);
	free(a);
}

const char *attachment_param(const struct attachment *a, const char *name)
{
	return jstr(a->params, name);
}

const char *attachment_secret(const struct call *c, const struct attachment *a, const char *name)
{
	const char *value = attachment_param(a, name), *key;
	json_t *given;

	for (const struct param *p = a->driver->params; !value && p->name; p++) {
		if (!streq(p->name, name))
			continue;
		json_object_foreach ((json_t *)c->given, key, given)
			if (param_matches(p, key) && json_string_length(given) > 0)
				value = json_string_value(given);
	}
	return value;
}

const char *attachment_detail(const struct attachment *a, const char *key)
{
	const char *value = jstr(a->detail, key);

	return value ? value : "";
}

int attachment_set_detail(struct attachment *a, const char *key, const char *value,
			  struct error *err)
{
	if (!value || json_object_set_new(a->detail, key, json_string(value)) < 0)
		return no_memory(err);
	return 0;
}

int attachment_set_target(struct attachment *a, char *text)
{
	a->target = text;
	hash_of(a->target_id, text);
	return 0;
}

const char *attachment_name(const struct attachment *a, char *buf, size_t size)
{
	if (a->consumer[0])
		snprintf(buf, size, "volume %.100s of consumer %.100s", a->volume_id, a->consumer);
	else
		snprintf(buf, size, "volume %.200s", a->volume_id);
	return buf;
}

static bool name_is_fit(const char *s)
{
	if (strlen(s) > VOLUME_ID_MAX)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static int set_names(struct attachment *a, const char *volume_id, const char *consumer,
		     struct error *err)
{
	if (!volume_id[0] || !name_is_fit(volume_id))
		return error_set(
			err, EINVAL,
			"volumeId: empty, longer than %d bytes, or with control characters",
			VOLUME_ID_MAX);
	if (!name_is_fit(consumer))
		return error_set(err, EINVAL,
				 "consumer: longer than %d bytes, or with control characters",
				 VOLUME_ID_MAX);
	a->volume_id = strdup(volume_id);
	a->consumer = strdup(consumer);
	if (!a->volume_id || !a->consumer)
		return no_memory(err);
	hash_of(a->id, volume_id, consumer);
	return 0;
}

/* "nfs:server:/export/name": driver and identifying parameters */
static int derive_volume_id(const struct attachment *a, char **ret, struct error *err)
{
	cleanup_free char *text = NULL;
	int r = text_format(&text, err, "%s", a->driver->name);

	for (const struct param *p = a->driver->params; r >= 0 && p->name; p++) {
		const char *value = attachment_param(a, p->name);
		cleanup_free char *before = NULL;

		if (!p->identity || !value)
			continue;
		before = TAKE_PTR(text);
		r = text_format(&text, err, "%s%c%s", before, strchr(before, ':') ? '/' : ':',
				value);
	}
	if (r >= 0)
		*ret = TAKE_PTR(text);
	return r;
}

int attachment_new(const struct call *c, const char *driver_name, const json_t *data,
		   const char *volume_id, const char *consumer, struct attachment **ret,
		   struct error *err)
{
	cleanup_attachment struct attachment *a = calloc(1, sizeof(*a));
	cleanup_free char *derived = NULL;
	int r;

	if (!a || !(a->detail = json_object()))
		return no_memory(err);
	r = driver_find(driver_name, &a->driver, err);
	if (r < 0)
		return r;
	r = params_read(a->driver, data, &a->params, err);
	if (r < 0)
		return r;
	if (!volume_id)
		volume_id = attachment_param(a, "volumeId");
	if (!volume_id) {
		r = derive_volume_id(a, &derived, err);
		if (r < 0)
			return r;
		volume_id = derived;
	}
	r = set_names(a, volume_id, consumer ? consumer : "", err);
	if (r < 0)
		return r;
	r = a->driver->prepare(c, a, err);
	if (r < 0)
		return r;
	host_read_line(c->host, "/proc/sys/kernel/random/boot_id", a->boot_id, sizeof(a->boot_id));
	a->since_ms = c->host->wall_ms(c->host);
	*ret = TAKE_PTR(a);
	return 0;
}

int attachment_to_json(const struct attachment *a, json_t **ret, struct error *err)
{
	cleanup_json json_t *o = NULL, *data = NULL;
	char since[TIME_TEXT_MAX];
	int r = params_without_secrets(a->driver, a->params, &data, err);

	if (r < 0)
		return r;
	o = json_pack("{s:i, s:s, s:O, s:s, s:s, s:s, s:s, s:s, s:O, s:s, s:s}", "version",
		      RECORD_VERSION, "driverVolumeType", a->driver->name, "data", data, "volumeId",
		      a->volume_id, "consumer", a->consumer, "state", state_names[a->state], "path",
		      a->path ? a->path : "", "target", a->target, "detail", a->detail, "bootId",
		      a->boot_id, "since", time_text(a->since_ms, since));
	if (!o || (a->state == STATE_CONNECTING && a->was_attached &&
		   json_object_set_new(o, "wasAttached", json_true()) < 0))
		return no_memory(err);
	*ret = TAKE_PTR(o);
	return 0;
}

static int damaged(struct error *err)
{
	return error_set(err, EBADMSG, "not a record of this version");
}

static int read_state(const char *text, enum attach_state *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(state_names); i++)
		if (streq(text, state_names[i])) {
			*ret = (enum attach_state)i;
			return 0;
		}
	return -EBADMSG;
}

int attachment_from_json(const json_t *o, struct attachment **ret, struct error *err)
{
	cleanup_attachment struct attachment *a = calloc(1, sizeof(*a));
	const char *id = jstr(o, "volumeId"), *consumer = jstr(o, "consumer"),
		   *driver = jstr(o, "driverVolumeType"), *target = jstr(o, "target"),
		   *path = jstr(o, "path"), *boot = jstr(o, "bootId"), *since = jstr(o, "since");
	int r;

	if (!a)
		return no_memory(err);
	if (jint(o, "version") != RECORD_VERSION || !id || !consumer || !driver || !target ||
	    !path || !json_is_object(jget(o, "data")) || !json_is_object(jget(o, "detail")) ||
	    read_state(jstr(o, "state"), &a->state) < 0)
		return damaged(err);
	r = driver_find(driver, &a->driver, err);
	if (r < 0 || !a->driver->connect)
		return damaged(err);
	r = set_names(a, id, consumer, err);
	if (r < 0)
		return r == -ENOMEM ? r : damaged(err);
	a->params = object_copy(jget(o, "data"));
	a->detail = object_copy(jget(o, "detail"));
	a->target = strdup(target);
	a->path = path[0] ? strdup(path) : NULL;
	if (!a->params || !a->detail || !a->target || (path[0] && !a->path))
		return no_memory(err);
	a->was_attached = jbool(o, "wasAttached");
	hash_of(a->target_id, a->target);
	snprintf(a->boot_id, sizeof(a->boot_id), "%s", boot ? boot : "");
	if (since)
		time_parse(since, &a->since_ms);
	*ret = TAKE_PTR(a);
	return 0;
}
