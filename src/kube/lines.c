/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"

#include <errno.h>

static int event_type(const char *text, enum kube_event_type *ret)
{
	static const char *const names[] = {
		[KUBE_ADDED] = "ADDED",
		[KUBE_MODIFIED] = "MODIFIED",
		[KUBE_DELETED] = "DELETED",
		[KUBE_BOOKMARK] = "BOOKMARK",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (streq(text, names[i])) {
			*ret = (enum kube_event_type)i;
			return 0;
		}
	}
	return -EPROTO;
}

static int parse_line(char *line, size_t len, struct kube_event *ret, struct error *err)
{
	cleanup_json json_t *event = NULL;
	const char *type, *message;
	json_t *object;
	int rc;

	json_tame(line, len);
	rc = json_parse(line, len, &event, NULL);

	if (rc < 0)
		return error_set(err, EPROTO, "a watch brought a line that is not JSON");
	type = jstr(event, "type");
	object = json_object_get(event, "object");
	if (streq(type, "ERROR")) {
		message = jstr(object, "message");
		return error_set(err, status_errno((int)jint(object, "code"), object),
				 "the watch ended: %s",
				 message ? message : "the server says no more");
	}
	if (!json_is_object(object) || event_type(type, &ret->type) < 0)
		return error_set(err, EPROTO, "a watch brought an event of unknown type");
	/* nobody needs it, and it is often the larger half */
	json_object_del(json_object_get(object, "metadata"), "managedFields");
	ret->object = json_incref(object);
	return 1;
}

int watch_lines_feed(struct watch_lines *l, const void *data, size_t len, struct error *err)
{
	if (l->taken > 0) { /* what was given out goes before more comes in */
		memmove(l->buf.data, l->buf.data + l->taken, l->buf.len - l->taken);
		l->buf.len -= l->taken;
		l->searched -= l->taken;
		l->taken = 0;
	}
	if (l->buf.len + len > WATCH_LINE_MAX)
		return error_set(err, EPROTO, "a watch brought a line longer than %u bytes",
				 WATCH_LINE_MAX);
	buf_add(&l->buf, data, len);
	return 0;
}

int watch_lines_next(struct watch_lines *l, struct kube_event *ret, struct error *err)
{
	while (l->searched < l->buf.len) {
		char *start = l->buf.data + l->taken;
		char *end = memchr(l->buf.data + l->searched, '\n', l->buf.len - l->searched);
		size_t len;

		if (!end) {
			l->searched = l->buf.len;
			break;
		}
		len = (size_t)(end - start);
		l->taken += len + 1;
		l->searched = l->taken;
		if (len > 0)
			return parse_line(start, len, ret, err);
	}
	if (l->taken == l->buf.len) { /* a large event's buffer is not kept for the quiet times */
		buf_done(&l->buf);
		*l = (struct watch_lines){ 0 };
	}
	return 0;
}
