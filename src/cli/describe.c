/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/print.h"

#include "base/mem.h"

#include <errno.h>

static void line(FILE *out, const char *label, const char *value)
{
	if (!value || !*value)
		return;
	(void)fprintf(out, "%-14s", label);
	term_put(out, value);
	(void)fputc('\n', out);
}

static void pairs(FILE *out, const char *label, const json_t *map)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)map, key, value) {
		cleanup_free char *text = xasprintf(
			"%s=%s", key, json_is_string(value) ? json_string_value(value) : "");

		line(out, label, text);
		label = "";
	}
}

static void print_head(const struct session *s, const struct kind *k, const json_t *o)
{
	const json_t *meta = json_object_get(o, "metadata");
	const char *created = jstr(meta, "creationTimestamp"),
		   *deleted = jstr(meta, "deletionTimestamp");
	char age[TIME_TEXT_MAX], version[128];
	struct buf text = { 0 };
	int64_t ms;
	size_t i;
	json_t *f;

	line(s->out, "Name:", jstr(meta, "name"));
	line(s->out, "Namespace:", jstr(meta, "namespace"));
	buf_printf(&text, "%s (%s)", k->kind, kind_api_version(k, version, sizeof(version)));
	line(s->out, "Kind:", text.data);
	buf_done(&text);
	if (created && time_parse(created, &ms) == 0) {
		buf_printf(&text, "%s (%s ago)", created,
			   age_text(clock_wall_ms(s->kube->clock) - ms, age));
		line(s->out, "Created:", text.data);
		buf_done(&text);
	}
	pairs(s->out, "Labels:", json_object_get(meta, "labels"));
	pairs(s->out, "Annotations:", json_object_get(meta, "annotations"));
	if (!deleted)
		return;
	buf_printf(&text, "%s, waits for", deleted);
	json_array_foreach (json_object_get(meta, "finalizers"), i, f) {
		buf_printf(&text, "%s %s", i ? "," : "", json_string_value(f));
	}
	line(s->out, "Deleted:", text.data);
	buf_done(&text);
}

static const char *or_dash(const char *text)
{
	return text && *text ? text : "-";
}

static void print_conditions(const struct session *s, const json_t *conditions)
{
	struct grid g = { .out = s->out, .indent = 2 };
	size_t i;
	json_t *c;

	if (json_array_size(conditions) == 0)
		return;
	(void)fprintf(s->out, "\nConditions:\n");
	grid_row(&g, (const char *const[]){ "TYPE", "STATUS", "SINCE", "REASON", "MESSAGE", NULL });
	json_array_foreach (conditions, i, c) {
		const char *since = jstr(c, "lastTransitionTime");
		char age[TIME_TEXT_MAX] = "-";
		int64_t ms;

		if (since && time_parse(since, &ms) == 0)
			(void)age_text(clock_wall_ms(s->kube->clock) - ms, age);
		grid_row(&g, (const char *const[]){ or_dash(jstr(c, "type")),
						    or_dash(jstr(c, "status")), age,
						    or_dash(jstr(c, "reason")),
						    or_dash(jstr(c, "message")), NULL });
	}
	grid_flush(&g);
	grid_done(&g);
}

/* Keys and sizes, never values. */
static void print_secret(FILE *out, const json_t *o)
{
	const char *key;
	json_t *value;

	(void)fprintf(out, "\nData:\n");
	json_object_foreach (json_object_get(o, "data"), key, value) {
		(void)fprintf(out, "  ");
		term_put(out, key);
		(void)fprintf(out, ": %zu bytes\n", json_string_length(value) / 4 * 3);
	}
}

static void print_fields(const struct session *s, const struct kind *k, const json_t *o)
{
	const char *key;
	json_t *value;

	if (k == &KIND_SECRET) {
		print_secret(s->out, o);
		return;
	}
	json_object_foreach ((json_t *)o, key, value) {
		cleanup_json json_t *rest = NULL;

		if (streq(key, "apiVersion") || streq(key, "kind") || streq(key, "metadata"))
			continue;
		rest = json_copy(value);
		if (streq(key, "status"))
			(void)json_object_del(rest, "conditions");
		cleanup_json json_t *top = json_pack("{s:O}", key, rest);

		(void)fputc('\n', s->out);
		print_tree(s->out, top, 0);
	}
	print_conditions(s, jget(o, "status", "conditions"));
}

static void add_event(struct grid *g, const json_t *e, int64_t now)
{
	const char *last = jstr(e, "lastTimestamp");
	char age[TIME_TEXT_MAX] = "-", count[32] = "";
	cleanup_free char *when = NULL;
	int64_t ms;

	if (!last)
		last = jstr(e, "eventTime") ? jstr(e, "eventTime")
					    : jstr(e, "metadata", "creationTimestamp");
	if (last && time_parse(last, &ms) == 0)
		(void)age_text(now - ms, age);
	if (jint(e, "count") > 1)
		(void)snprintf(count, sizeof(count), " (%lld times)", (long long)jint(e, "count"));
	when = xasprintf("%s%s", age, count);
	grid_row(g,
		 (const char *const[]){ when, or_dash(jstr(e, "type")), or_dash(jstr(e, "reason")),
					or_dash(jstr(e, "source", "component")),
					or_dash(jstr(e, "message")), NULL });
}

static int print_events(const struct session *s, const json_t *o)
{
	cleanup_free char *fields = xasprintf("involvedObject.name=%s,involvedObject.uid=%s",
					      object_name(o), object_uid(o) ? object_uid(o) : "");
	const char *ns = object_namespace(o);
	struct grid g = { .out = s->out, .indent = 2 };
	struct kube_selector sel = { .fields = fields };
	cleanup_json json_t *events = NULL;
	cleanup_free char *version = NULL;
	struct error err = ERROR_INIT;
	size_t i;
	json_t *e;
	int rc = kube_list(s->kube, &KIND_EVENT, *ns ? ns : NULL, &sel, &events, &version, &err);

	if (rc < 0)
		return session_fail(s, rc, &err);
	(void)fprintf(s->out, "\nEvents:%s\n", json_array_size(events) ? "" : " none");
	if (json_array_size(events) == 0)
		return QM_OK;
	grid_row(&g, (const char *const[]){ "AGE", "TYPE", "REASON", "FROM", "MESSAGE", NULL });
	json_array_foreach (events, i, e) {
		add_event(&g, e, clock_wall_ms(s->kube->clock));
	}
	grid_flush(&g);
	grid_done(&g);
	return QM_OK;
}

static int describe(struct session *s, const struct kind *k, const json_t *o)
{
	print_head(s, k, o);
	print_fields(s, k, o);
	return print_events(s, o);
}

static int describe_all(struct session *s, const struct kind *k)
{
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;
	struct error err = ERROR_INIT;
	int code = QM_OK,
	    rc = kube_list(s->kube, k, session_ns(s, k), NULL, &items, &version, &err);
	size_t i;
	json_t *o;

	if (rc < 0)
		return session_fail(s, rc, &err);
	json_array_foreach (items, i, o) {
		if (i > 0)
			(void)fputs("\n\n", s->out);
		code = describe(s, k, o);
		if (code != QM_OK)
			break;
	}
	if (json_array_size(items) == 0)
		(void)fprintf(stderr, "There are no %s.\n", k->plural);
	return code;
}

int cmd_describe(struct session *s, const struct args *a)
{
	const struct kind *k = kind_of_word(a->words[0]);
	int code = QM_OK;

	if (!k)
		return QM_USAGE;
	if (a->count == 1)
		return describe_all(s, k);
	for (size_t i = 1; i < a->count && code == QM_OK; i++) {
		cleanup_json json_t *o = NULL;
		struct error err = ERROR_INIT;
		int rc = kube_get(s->kube, k, session_ns(s, k), a->words[i], &o, &err);

		if (i > 1)
			(void)fputs("\n\n", s->out);
		code = rc < 0 ? session_fail(s, rc, &err) : describe(s, k, o);
	}
	return code;
}
