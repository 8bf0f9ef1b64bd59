/* SPDX-License-Identifier: Apache-2.0 */
#include "api/serving.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static json_t *partial(json_t *object)
{
	return json_pack("{s:s, s:s, s:O?}", "kind", "PartialObjectMetadata", "apiVersion",
			 "meta.k8s.io/v1", "metadata", json_object_get(object, "metadata"));
}

json_t *output_form(const struct request *r, json_t *object, bool with_columns, int64_t now_ms)
{
	cleanup_json json_t *items = NULL;
	const char *include = request_param(r, "includeObject");
	json_t *table;

	if (r->form == FORM_METADATA)
		return partial(object);
	if (r->form != FORM_TABLE)
		return NULL;
	items = json_pack("[O]", object);
	table = schema_table(r->kind, items, jstr(object, "metadata", "resourceVersion"),
			     with_columns, now_ms);
	if (streq(include, "Object"))
		jset(json_array_get(jget(table, "rows"), 0), json_incref(object), "object");
	return table;
}

/* A list is put together as text, row by row: a thousand objects never stand in memory as values. */
struct output {
	const struct request *r;
	struct buf text;
	int64_t now_ms;
	size_t count;
};

static void add_value(struct output *o, const json_t *value)
{
	cleanup_free char *text = json_text(value);

	buf_puts(&o->text, text);
}

static int add_row(const struct row *row, void *userdata)
{
	struct output *o = userdata;
	cleanup_json json_t *object = NULL, *formed = NULL;

	if (o->count++)
		buf_puts(&o->text, ",");
	if (o->r->form == FORM_OBJECT) {
		buf_add(&o->text, row->text, row->len);
		return 0;
	}
	if (row->object)
		object = json_incref(row->object);
	else if (json_parse(row->text, row->len, &object, NULL) < 0)
		return -EAGAIN;
	formed = output_form(o->r, object, false, o->now_ms);
	add_value(o, o->r->form == FORM_TABLE ? json_array_get(jget(formed, "rows"), 0) : formed);
	return 0;
}

static void begin_list(struct output *o)
{
	const struct kind *kind = o->r->kind;
	cleanup_json json_t *table = NULL;
	char version[128];

	if (o->r->form == FORM_TABLE) {
		table = schema_table(kind, NULL, "", true, o->now_ms);
		buf_puts(&o->text, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
				   "\"columnDefinitions\":");
		add_value(o, jget(table, "columnDefinitions"));
		buf_puts(&o->text, ",\"rows\":[");
	} else if (o->r->form == FORM_METADATA) {
		buf_puts(&o->text, "{\"kind\":\"PartialObjectMetadataList\","
				   "\"apiVersion\":\"meta.k8s.io/v1\",\"items\":[");
	} else {
		buf_printf(&o->text, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"items\":[",
			   kind->kind, kind_api_version(kind, version, sizeof(version)));
	}
}

void output_list(struct api_server *s, const struct request *r, const struct store_query *q)
{
	struct output o = { .r = r, .now_ms = clock_wall_ms(s->store->clock) };
	struct error err = ERROR_INIT;
	struct page page;
	int rc;

	begin_list(&o);
	rc = store_each(s->store, q, add_row, &o, &page, &err);
	if (rc >= 0) {
		buf_printf(&o.text, "],\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"",
			   page.version);
		if (page.next)
			buf_printf(&o.text, ",\"continue\":\"%s\"", page.next);
		buf_puts(&o.text, "}}");
		free(page.next);
		reply_text(r, 200, "application/json", o.text.data, o.text.len, NULL);
	} else {
		reply_fault(r, fault_of(-rc), "%s", error_text(&err, rc));
	}
	buf_done(&o.text);
}

void output_get(struct api_server *s, const struct request *r)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *object = NULL, *formed = NULL;
	struct error err = ERROR_INIT;
	int rc = store_get_text(s->store, r->kind, r->ns, r->name, &text, &err);

	if (rc < 0) {
		reply_fault(r, fault_of(-rc), "%s", error_text(&err, rc));
		return;
	}
	if (r->form != FORM_OBJECT && json_parse(text, strlen(text), &object, NULL) >= 0)
		formed = output_form(r, object, true, clock_wall_ms(s->store->clock));
	if (formed)
		reply_json(r, 200, formed, NULL);
	else
		reply_text(r, 200, "application/json", text, strlen(text), NULL);
}
