/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"

#include <errno.h>

/* The depth of the list itself, and of its items' array. */
#define IN_LIST 1
#define IN_ITEMS 2

static int not_a_list(struct error *err)
{
	return error_set(err, EPROTO, "what came is not a list of objects");
}

static int keep(struct buf *b, const char *from, const char *to, size_t max, struct error *err)
{
	if (b->len + (size_t)(to - from) > max)
		return error_set(err, EPROTO, "a list came with a part of more than %zu bytes",
				 max);
	buf_add(b, from, (size_t)(to - from));
	return 0;
}

static int deliver(struct list_items *l, int (*fn)(json_t *object, void *userdata), void *userdata,
		   struct error *err)
{
	cleanup_json json_t *object = NULL;
	int rc;

	json_tame(l->item.data, l->item.len);
	rc = json_parse(l->item.data, l->item.len, &object, NULL);
	if (rc < 0)
		return not_a_list(err);
	/* nobody needs it, and it is often the larger half */
	json_object_del(json_object_get(object, "metadata"), "managedFields");
	l->item.len = 0;
	return fn(object, userdata);
}

/* Between items: commas and white space go, an item begins, or the array ends. */
static int between(struct list_items *l, const char *at, struct error *err)
{
	switch (*at) {
	case '{':
		l->depth++;
		return keep(&l->item, at, at + 1, LIST_ITEM_MAX, err);
	case ']':
		l->depth--;
		l->in_items = false;
		return keep(&l->rest, at, at + 1, LIST_REST_MAX, err);
	case ',':
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		return 0;
	default:
		return not_a_list(err);
	}
}

/* A byte that is not within a string; at: where in rest it will stand. */
static void structure(struct list_items *l, char c, size_t at)
{
	bool top = l->depth == IN_LIST;

	if (c == '"') {
		l->in_string = true;
		l->key_at = top ? at + 1 : l->key_at;
	} else if (c == ':' && top) {
		l->key_is_items = l->key_len == 5;
	} else if (c == ',' && top) {
		l->key_is_items = false;
	} else if (c == '{' || c == '[') {
		l->in_items = c == '[' && top && l->key_is_items;
		l->depth++;
	} else if (c == '}' || c == ']') {
		l->depth--;
	}
}

static void string_byte(struct list_items *l, char c, size_t at)
{
	if (l->escaped) {
		l->escaped = false;
	} else if (c == '\\') {
		l->escaped = true;
	} else if (c == '"') {
		l->in_string = false;
		if (l->depth == IN_LIST)
			l->key_len = at - l->key_at;
	}
}

/* Goes over bytes that belong together (to the item, or to the rest) and gives where they end. */
static const char *span(struct list_items *l, const char *data, const char *end)
{
	bool item = l->depth > IN_ITEMS && l->in_items;
	const char *p = data;

	while (p < end) {
		size_t at = l->rest.len + (size_t)(p - data);
		char c = *p++;
		bool was_in_items = l->in_items;

		if (l->in_string)
			string_byte(l, c, at);
		else if (item && (c == '{' || c == '['))
			l->depth++;
		else if (item && (c == '}' || c == ']'))
			l->depth--;
		else if (item)
			l->in_string = c == '"';
		else
			structure(l, c, at);
		if ((item && l->depth == IN_ITEMS) || l->in_items != was_in_items)
			break;
	}
	return p;
}

/* "items" is looked for by its length first; here it is read, once the bytes are kept. */
static bool really_items(const struct list_items *l)
{
	return l->key_at + 5 <= l->rest.len && memcmp(l->rest.data + l->key_at, "items", 5) == 0;
}

int list_items_feed(struct list_items *l, const char *data, size_t len,
		    int (*fn)(json_t *object, void *userdata), void *userdata, struct error *err)
{
	const char *end = data + len, *next;
	int rc = 0;

	for (; data < end && rc == 0; data = next) {
		bool item = l->in_items && l->depth > IN_ITEMS;

		if (l->in_items && l->depth == IN_ITEMS && !l->in_string) {
			next = data + 1;
			rc = between(l, data, err);
			continue;
		}
		next = span(l, data, end);
		if (l->depth < 0)
			return not_a_list(err);
		rc = item ? keep(&l->item, data, next, LIST_ITEM_MAX, err)
			  : keep(&l->rest, data, next, LIST_REST_MAX, err);
		if (rc == 0 && item && l->depth == IN_ITEMS)
			rc = deliver(l, fn, userdata, err);
		else if (!item && l->in_items)
			l->in_items = really_items(l);
	}
	return rc;
}

int list_items_end(struct list_items *l, json_t **ret, struct error *err)
{
	cleanup_json json_t *list = NULL;

	if (l->item.len > 0 || l->rest.len == 0 ||
	    json_parse(l->rest.data, l->rest.len, &list, NULL) < 0 || !json_is_object(list))
		return not_a_list(err);
	*ret = TAKE_PTR(list);
	return 0;
}

void list_items_done(struct list_items *l)
{
	buf_done(&l->rest);
	buf_done(&l->item);
	*l = (struct list_items){ 0 };
}
