/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml_scalar.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#define TEXT_MAX (4u << 20)
#define EXPANDED_MAX (16u << 20) /* bytes of strings after aliases are expanded */
#define DEPTH_MAX 64
#define NODES_MAX 100000
#define KEY_MAX 1024
#define PATH_MAX_RECORDED 512 /* deeper fields are found by their parents */

struct anchor {
	char *name;
	json_t *value;
	size_t nodes, bytes;
	struct anchor *next;
};

struct reader {
	yaml_parser_t parser;
	const char *name;
	struct error *err;
	bool not_yaml; /* libyaml could not read it */
	size_t nodes, bytes; /* spent of the budget, over all documents */
	struct anchor *anchors; /* of this document, newest first */
	struct buf path;
	json_t *lines;
};

__attribute__((format(printf, 3, 4))) static int fail(struct reader *r, size_t line,
						      const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return error_set(r->err, EINVAL, "%.200s:%zu: %s", r->name, line + 1, text);
}

static int next_event(struct reader *r, yaml_event_t *event)
{
	const yaml_parser_t *p = &r->parser;
	size_t line;

	if (yaml_parser_parse(&r->parser, event))
		return 0;
	if (p->error == YAML_MEMORY_ERROR)
		return error_errno(r->err, ENOMEM, "cannot read %.200s", r->name);
	r->not_yaml = true;
	line = p->problem_mark.line;
	if (p->context && p->context_mark.line != line)
		return fail(r, line, "not valid YAML: %s %s that begins in line %zu", p->problem,
			    p->context, p->context_mark.line + 1);
	return fail(r, line, "not valid YAML: %s%s%s", p->problem ? p->problem : "cannot be read",
		    p->context ? " " : "", p->context ? p->context : "");
}

static int spend(struct reader *r, size_t nodes, size_t bytes, size_t line)
{
	r->nodes += nodes;
	r->bytes += bytes;
	if (r->nodes > NODES_MAX)
		return fail(r, line, "more than %d values (aliases expanded)", NODES_MAX);
	if (r->bytes > EXPANDED_MAX)
		return fail(r, line, "more than %u bytes of text (aliases expanded)", EXPANDED_MAX);
	return 0;
}

static void remember_line(struct reader *r, size_t line)
{
	if (r->path.len && r->path.len <= PATH_MAX_RECORDED)
		json_object_set_new(r->lines, r->path.data, json_integer((json_int_t)line + 1));
}

static void anchors_done(struct reader *r)
{
	while (r->anchors) {
		struct anchor *a = r->anchors;

		r->anchors = a->next;
		json_decref(a->value);
		free(a->name);
		free(a);
	}
}

/* Known only once it is complete: an alias inside its own node is unknown, so no cycle can be. */
static void anchor_add(struct reader *r, const yaml_char_t *name, json_t *value, size_t nodes,
		       size_t bytes)
{
	struct anchor *a = xcalloc(1, sizeof(*a));

	a->name = xstrdup((const char *)name);
	a->value = json_deep_copy(value);
	a->nodes = nodes;
	a->bytes = bytes;
	a->next = r->anchors;
	r->anchors = a;
}

static int read_alias(struct reader *r, const yaml_event_t *event, json_t **ret)
{
	const char *name = (const char *)event->data.alias.anchor;
	size_t line = event->start_mark.line;
	int rc;

	for (struct anchor *a = r->anchors; a; a = a->next) {
		if (!streq(a->name, name))
			continue;
		rc = spend(r, a->nodes, a->bytes, line);
		if (rc < 0)
			return rc;
		*ret = json_deep_copy(a->value);
		return *ret ? 0 : -ENOMEM;
	}
	return fail(r, line, "alias *%.80s has no anchor before it", name);
}

/* The core schema's tag after "tag:yaml.org,2002:", "" for none, or NULL for any other. */
static const char *core_tag(const yaml_char_t *tag)
{
	static const char prefix[] = "tag:yaml.org,2002:";

	if (!tag)
		return "";
	return str_has_prefix((const char *)tag, prefix) ? (const char *)tag + sizeof(prefix) - 1
							 : NULL;
}

static bool tag_fits(const char *tag, const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		return streq(tag, "str");
	case JSON_INTEGER:
		return streq(tag, "int");
	case JSON_REAL:
		return streq(tag, "float");
	case JSON_TRUE:
	case JSON_FALSE:
		return streq(tag, "bool");
	case JSON_NULL:
		return streq(tag, "null");
	case JSON_ARRAY:
		return streq(tag, "seq");
	case JSON_OBJECT:
		return streq(tag, "map");
	}
	return false;
}

static int read_scalar(struct reader *r, const yaml_event_t *event, json_t **ret)
{
	const char *text = (const char *)event->data.scalar.value;
	const char *tag = core_tag(event->data.scalar.tag);
	size_t len = event->data.scalar.length, line = event->start_mark.line;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		     event->data.scalar.plain_implicit;
	json_t *value = NULL;
	int rc = spend(r, 1, len, line);

	if (rc < 0)
		return rc;
	if (memchr(text, '\0', len))
		return fail(r, line, "a text contains a NUL character");
	if (!tag)
		return fail(r, line, "the tag %.80s is not supported", event->data.scalar.tag);
	if (plain || (*tag && !streq(tag, "str")))
		rc = yaml_plain_value(text, len, &value);
	else
		value = json_stringn(text, len);
	if (rc == -ERANGE)
		return fail(r, line,
			    "the number %.40s cannot be represented; quote it if text is meant",
			    text);
	if (!value)
		return fail(r, line, "a text is not valid Unicode");
	if (*tag && !tag_fits(tag, value)) {
		json_decref(value);
		return fail(r, line, "a value does not fit its tag !!%.40s", tag);
	}
	*ret = value;
	return 0;
}

static int read_node(struct reader *r, const yaml_event_t *event, int depth, json_t **ret);

/* Checks the tag of a collection and its depth. */
static int check_collection(struct reader *r, const yaml_event_t *event, const yaml_char_t *tag,
			    const char *expected, int depth)
{
	const char *core = core_tag(tag);

	if (depth > DEPTH_MAX)
		return fail(r, event->start_mark.line, "nested deeper than %d levels", DEPTH_MAX);
	if (!core || (*core && !streq(core, expected)))
		return fail(r, event->start_mark.line, "the tag %.80s is not supported here",
			    (const char *)tag);
	return spend(r, 1, 0, event->start_mark.line);
}

static void path_cut(struct buf *path, size_t len)
{
	path->len = len;
	if (path->data)
		path->data[len] = '\0';
}

static int read_items(struct reader *r, int depth, json_t *array)
{
	size_t path_len = r->path.len;
	int rc = 0;

	for (size_t i = 0; rc == 0; i++) {
		yaml_event_t event;
		json_t *item = NULL;
		bool end;

		rc = next_event(r, &event);
		if (rc < 0)
			break;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end) {
			buf_printf(&r->path, "[%zu]", i);
			rc = read_node(r, &event, depth + 1, &item);
			if (rc == 0)
				json_array_append_new(array, item);
			path_cut(&r->path, path_len);
		}
		yaml_event_delete(&event);
		if (end)
			break;
	}
	return rc;
}

static int check_key(struct reader *r, const yaml_event_t *event, const json_t *object)
{
	const char *key = (const char *)event->data.scalar.value;
	size_t line = event->start_mark.line;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (event->type != YAML_SCALAR_EVENT)
		return fail(r, line, "a key must be plain text, not a list, mapping or alias");
	if (memchr(key, '\0', event->data.scalar.length))
		return fail(r, line, "a key contains a NUL character");
	if (event->data.scalar.length > KEY_MAX)
		return fail(r, line, "a key is longer than %d bytes", KEY_MAX);
	if (plain && !*key)
		return fail(r, line, "a key is missing before the colon");
	if (plain && streq(key, "<<"))
		return fail(r, line, "merge keys (<<) are not supported: write the fields out");
	if (json_object_get(object, key))
		return fail(r, line, "the key \"%.80s\" stands twice in the same mapping", key);
	return spend(r, 1, event->data.scalar.length, line);
}

static int read_field(struct reader *r, const yaml_event_t *key_event, int depth, json_t *object)
{
	const char *key = (const char *)key_event->data.scalar.value;
	size_t path_len = r->path.len;
	json_t *value = NULL;
	yaml_event_t event;
	int rc = check_key(r, key_event, object);

	if (rc < 0)
		return rc;
	rc = next_event(r, &event);
	if (rc < 0)
		return rc;
	buf_printf(&r->path, "%s%s", path_len ? "." : "", key);
	/* the key's line, which is where a person looks for the field */
	remember_line(r, key_event->start_mark.line);
	rc = read_node(r, &event, depth + 1, &value);
	yaml_event_delete(&event);
	if (rc == 0 && json_object_set_new(object, key, value) < 0)
		rc = fail(r, key_event->start_mark.line, "a key is not valid Unicode");
	path_cut(&r->path, path_len);
	return rc;
}

static int read_fields(struct reader *r, int depth, json_t *object)
{
	int rc = 0;

	while (rc == 0) {
		yaml_event_t event;
		bool end;

		rc = next_event(r, &event);
		if (rc < 0)
			break;
		end = event.type == YAML_MAPPING_END_EVENT;
		if (!end)
			rc = read_field(r, &event, depth, object);
		yaml_event_delete(&event);
		if (end)
			break;
	}
	return rc;
}

static int read_collection(struct reader *r, const yaml_event_t *event, int depth, json_t **ret)
{
	bool is_map = event->type == YAML_MAPPING_START_EVENT;
	const yaml_char_t *tag =
		is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
	cleanup_json json_t *value = NULL;
	int rc = check_collection(r, event, tag, is_map ? "map" : "seq", depth);

	if (rc < 0)
		return rc;
	value = is_map ? json_object() : json_array();
	rc = is_map ? read_fields(r, depth, value) : read_items(r, depth, value);
	if (rc == 0)
		*ret = TAKE_PTR(value);
	return rc;
}

static int read_node(struct reader *r, const yaml_event_t *event, int depth, json_t **ret)
{
	size_t nodes = r->nodes, bytes = r->bytes;
	const yaml_char_t *anchor = NULL;
	int rc;

	if (r->path.len && r->path.data[r->path.len - 1] == ']')
		remember_line(r, event->start_mark.line);
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return read_alias(r, event, ret);
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		rc = read_scalar(r, event, ret);
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		rc = read_collection(r, event, depth, ret);
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		rc = read_collection(r, event, depth, ret);
		break;
	default:
		return fail(r, event->start_mark.line, "a value is missing");
	}
	if (rc == 0 && anchor)
		anchor_add(r, anchor, *ret, r->nodes - nodes, r->bytes - bytes);
	return rc;
}

static int read_document(struct reader *r, struct yaml_docs *docs)
{
	cleanup_json json_t *lines = json_object(), *value = NULL;
	yaml_event_t event;
	int line, rc;

	rc = next_event(r, &event);
	if (rc < 0)
		return rc;
	r->lines = lines;
	line = (int)event.start_mark.line + 1;
	rc = read_node(r, &event, 1, &value);
	yaml_event_delete(&event);
	anchors_done(r);
	if (rc < 0 || json_is_null(value))
		return rc;
	docs->items = xrealloc(docs->items, (docs->count + 1) * sizeof(*docs->items));
	docs->items[docs->count++] = (struct yaml_doc){
		.value = TAKE_PTR(value),
		.lines = TAKE_PTR(lines),
		.line = line,
	};
	return 0;
}

static int read_stream(struct reader *r, struct yaml_docs *docs)
{
	for (;;) {
		yaml_event_t event;
		yaml_event_type_t type;
		int rc = next_event(r, &event);

		if (rc < 0)
			return rc;
		type = event.type;
		yaml_event_delete(&event);
		if (type == YAML_STREAM_END_EVENT || type == YAML_NO_EVENT)
			return 0;
		if (type == YAML_DOCUMENT_START_EVENT)
			rc = read_document(r, docs);
		if (rc < 0)
			return rc;
	}
}

static int check_text(struct reader *r, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t line = 0, n;

	if (len > TEXT_MAX)
		return error_set(r->err, EFBIG, "%.200s is bigger than %u bytes", r->name,
				 TEXT_MAX);
	for (size_t i = 0; i < len; i += n) {
		n = utf8_len(s + i, len - i);
		if (n == 0 || (s[i] < ' ' && s[i] != '\n' && s[i] != '\r' && s[i] != '\t') ||
		    s[i] == 0x7f)
			return fail(
				r, line,
				"not a text file (byte 0x%02x); YAML or JSON in UTF-8 is expected",
				s[i]);
		line += s[i] == '\n';
	}
	return 0;
}

static size_t count_nodes(const json_t *value)
{
	size_t count = 1, i;
	const char *key;
	json_t *item;

	json_array_foreach (value, i, item)
		count += count_nodes(item);
	json_object_foreach ((json_t *)value, key, item)
		count += 1 + count_nodes(item);
	return count;
}

/*
 * JSON that libyaml cannot read: YAML knows no surrogate pairs, which JSON writers make of what
 * is beyond the first 65536 characters. Its fields have no lines then.
 */
static int read_json(const char *text, size_t len, struct yaml_docs *docs)
{
	cleanup_json json_t *value = NULL;
	size_t blank = 0;

	while (blank < len && strchr(" \t\r\n", text[blank]))
		blank++;
	if (blank == len || (text[blank] != '{' && text[blank] != '['))
		return -EINVAL;
	if (json_parse(text, len, &value, NULL) < 0 || count_nodes(value) > NODES_MAX)
		return -EINVAL;
	yaml_docs_done(docs);
	docs->items = xcalloc(1, sizeof(*docs->items));
	docs->items[docs->count++] = (struct yaml_doc){
		.value = TAKE_PTR(value),
		.lines = json_object(),
		.line = 1,
	};
	return 0;
}

static int read_text(struct reader *r, const char *text, size_t len, struct yaml_docs *docs)
{
	struct error problem = ERROR_INIT, *err = r->err;
	int rc;

	if (!yaml_parser_initialize(&r->parser))
		return error_errno(err, ENOMEM, "cannot read %.200s", r->name);
	r->err = &problem;
	yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
	rc = read_stream(r, docs);
	yaml_parser_delete(&r->parser);
	anchors_done(r);
	buf_done(&r->path);
	if (rc < 0 && r->not_yaml && read_json(text, len, docs) == 0)
		return 0;
	return rc < 0 ? error_set(err, -rc, "%s", problem.message) : 0;
}

int yaml_parse(const char *text, size_t len, const char *name, struct yaml_docs *ret,
	       struct error *err)
{
	struct reader r = { .name = name, .err = err };
	struct yaml_docs docs = { 0 };
	int rc;

	if (!text)
		text = "";
	rc = check_text(&r, text, len);
	if (rc == 0)
		rc = read_text(&r, text, len, &docs);
	if (rc < 0)
		yaml_docs_done(&docs);
	else
		*ret = docs;
	return rc;
}

void yaml_docs_done(struct yaml_docs *docs)
{
	for (size_t i = 0; i < docs->count; i++) {
		json_decref(docs->items[i].value);
		json_decref(docs->items[i].lines);
	}
	free(docs->items);
	*docs = (struct yaml_docs){ 0 };
}

int yaml_line_of(const struct yaml_doc *doc, const char *path)
{
	cleanup_free char *part = xstrdup(path);
	char *dot, *bracket;

	while (*part) {
		json_t *line = json_object_get(doc->lines, part);

		if (line)
			return (int)json_integer_value(line);
		dot = strrchr(part, '.');
		bracket = strrchr(part, '[');
		if (bracket && (!dot || bracket > dot))
			*bracket = '\0';
		else if (dot)
			*dot = '\0';
		else
			break;
	}
	return doc->line;
}
