/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64

json_t *jget_path(const json_t *o, const char *const *keys)
{
	for (; o && *keys; keys++)
		o = json_object_get(o, *keys);
	return (json_t *)o;
}

int jset_path(json_t *o, json_t *value, const char *const *keys)
{
	for (; keys[0] && keys[1]; keys++) {
		json_t *next = json_object_get(o, keys[0]);

		if (!json_is_object(next)) {
			next = json_object();
			if (json_object_set_new(o, keys[0], next) < 0) {
				json_decref(value);
				return -EINVAL;
			}
		}
		o = next;
	}
	if (!keys[0]) {
		json_decref(value);
		return -EINVAL;
	}
	return json_object_set_new(o, keys[0], value) < 0 ? -EINVAL : 0;
}

/* jansson's own depth limit is far above what any of our objects needs. */
static int check_depth(const char *text, size_t len, struct error *err)
{
	int depth = 0, line = 1;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		line += c == '\n';
		if (in_string) {
			i += c == '\\';
			in_string = c != '"';
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > DEPTH_MAX)
				return error_set(err, EINVAL,
						 "line %d: JSON is nested deeper than %d levels",
						 line, DEPTH_MAX);
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return 0;
}

/* Goes over a string, from its first quote to its last. */
static size_t tame_string(char *text, size_t at, size_t len)
{
	for (at++; at < len && text[at] != '"'; at++) {
		if (text[at] != '\\')
			continue;
		if (len - at > 5 && memcmp(text + at, "\\u0000", 6) == 0)
			memcpy(text + at, "\\ufffd", 6);
		at++;
	}
	return at;
}

/* Goes over a number to its last character. */
static size_t tame_number(char *text, size_t at, size_t len)
{
	size_t end = at + (text[at] == '-'), digits = end;
	char copy[24];

	while (end < len && text[end] >= '0' && text[end] <= '9')
		end++;
	digits = end - digits;
	if (end < len && text[end] && strchr(".eE", text[end])) {
		while (end < len && text[end] && strchr("+-.eE0123456789", text[end]))
			end++;
		return end - 1;
	}
	if (digits < 19)
		return end - 1;
	(void)snprintf(copy, sizeof(copy), "%.*s", (int)(end - at < 21 ? end - at : 21), text + at);
	errno = 0;
	(void)strtoll(copy, NULL, 10);
	if (errno == ERANGE)
		memcpy(text + end - 2, "e2", 2); /* as large, and as long */
	return end - 1;
}

void json_tame(char *text, size_t len)
{
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		size_t from = i;
		char c = text[i];
		bool closes = c == '}' || c == ']', opens = c == '{' || c == '[';

		depth += opens;
		/* the brackets of the deepest level stay, nothing stays within */
		bool drop = depth > DEPTH_MAX || (depth == DEPTH_MAX && !opens && !closes);

		depth -= closes;
		if (c == '"')
			i = tame_string(text, i, len);
		else if (c == '-' || (c >= '0' && c <= '9'))
			i = tame_number(text, i, len);
		if (drop)
			memset(text + from, ' ', (i < len ? i + 1 : len) - from);
	}
}

int json_parse(const char *text, size_t len, json_t **ret, struct error *err)
{
	json_error_t problem;
	char *near;
	json_t *o;
	int r;

	r = check_depth(text, len, err);
	if (r < 0)
		return r;
	o = json_loadb(text ? text : "", len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
	if (!o) {
		/* what stands near the place may be a secret; a key is not */
		near = strstr(problem.text, " near '");
		if (near && json_error_code(&problem) != json_error_duplicate_key)
			*near = '\0';
		return error_set(err, EINVAL, "line %d, column %d: not valid JSON: %s",
				 problem.line < 1 ? 1 : problem.line,
				 problem.column < 0 ? 0 : problem.column, problem.text);
	}
	*ret = o;
	return 0;
}

static char *dump(const json_t *o, size_t flags)
{
	char *text = o ? json_dumps(o, flags | JSON_ENCODE_ANY) : xstrdup("null");

	if (!text)
		abort(); /* out of memory: a wrong text must not be stored in its place */
	return text;
}

char *json_text(const json_t *o)
{
	return dump(o, JSON_COMPACT);
}

char *json_text_pretty(const json_t *o)
{
	return dump(o, JSON_INDENT(2));
}
