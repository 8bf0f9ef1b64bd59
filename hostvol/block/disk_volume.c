/* SPDX-License-Identifier: Apache-2.0 */
#include "disk_volume.h"

#include "base/mem.h"
#include "usage.h"

#include <errno.h>
#include <stdio.h>

#define FLUSH_MS 60000

int check_number_to(const char *value, unsigned long max, struct error *err)
{
	if (!*value || strlen(value) > 9 || strspn(value, "0123456789") != strlen(value) ||
	    strtoul(value, NULL, 10) > max)
		return error_set(err, EINVAL, "\"%.40s\" is no number from 0 to %lu", value, max);
	return 0;
}

int disk_volume_set_path(struct attachment *a, const struct disk *d, const char *link,
			 struct error *err)
{
	char *copy = strdup(link ? link : d->path);

	if (!copy)
		return no_memory(err);
	free(a->path);
	a->path = copy;
	return attachment_set_detail(a, "device", d->path, err);
}

int disk_volume_release(const struct call *c, const struct attachment *a, const struct disk *d,
			struct error *err)
{
	int r = usage_refuse(c, d, NULL, err);

	/* nobody wrote to what was never handed out, or cannot be opened */
	if (r < 0 || a->state == STATE_CONNECTING || !disk_is_ready(c, d->name))
		return r;
	r = call_left(c, FLUSH_MS, err);
	if (r < 0)
		return r;
	r = c->host->flush(c->host, d->path, r);
	return r < 0 ? error_errno(err, -r,
				   "what was written to %s cannot be brought to the storage (by "
				   "force it is given up)",
				   d->path)
		     : 0;
}

int disk_volume_report(json_t *result, const struct disk *before, const struct disk *after,
		       struct error *err)
{
	if (json_object_set_new(result, "paths",
				json_pack("[{s:s, s:I, s:I}]", "device", after->path, "before",
					  (json_int_t)before->size, "after",
					  (json_int_t)after->size)) < 0 ||
	    json_object_set_new(result, "size", json_integer((json_int_t)after->size)) < 0)
		return no_memory(err);
	return 0;
}

int disk_volume_plan(const struct call *c, const struct attachment *a, const struct disk *d,
		     const char *step, json_t *result, struct error *err)
{
	cleanup_json json_t *users = NULL;
	json_t *steps = jget(result, "steps");
	char flush[80];
	int r;

	if (!d)
		return 0;
	r = usage_list(c, d, NULL, &users, err);
	if (r < 0)
		return r;
	snprintf(flush, sizeof(flush), "flush %s", d->path);
	if (json_array_append_new(jget(result, "devices"), json_string(d->path)) < 0 ||
	    json_array_extend(jget(result, "usedBy"), users) < 0 ||
	    (!a->others && (json_array_append_new(steps, json_string(flush)) < 0 ||
			    json_array_append_new(steps, json_string(step)) < 0)))
		return no_memory(err);
	return 0;
}
