/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

/* A patch is small work; copies of copies must not grow without bounds. */
#define OPERATIONS_MAX 10000
#define COPIED_MAX (3 * 1024 * 1024)

/* One step of a pointer, "~1" and "~0" undone. False where it is too long or malformed. */
static bool next_token(const char **pointer, char *token, size_t size)
{
	const char *p = *pointer + 1; /* the slash */
	size_t n = 0;

	for (; *p && *p != '/'; p++) {
		char c = *p;

		if (c == '~') {
			if (p[1] != '0' && p[1] != '1')
				return false;
			c = *++p == '1' ? '/' : '~';
		}
		if (n + 1 >= size)
			return false;
		token[n++] = c;
	}
	token[n] = '\0';
	*pointer = p;
	return true;
}

/* An array index; size stands for "-". -1: not an index. */
static long array_index(const json_t *array, const char *token)
{
	char *end;
	long n;

	if (streq(token, "-"))
		return (long)json_array_size(array);
	if (token[0] < '0' || token[0] > '9' || (token[0] == '0' && token[1]) || strlen(token) > 8)
		return -1;
	n = strtol(token, &end, 10);
	return *end ? -1 : n;
}

static json_t *child(const json_t *v, const char *token)
{
	if (json_is_array(v)) {
		long i = array_index(v, token);

		return i < 0 ? NULL : json_array_get(v, (size_t)i);
	}
	return json_object_get(v, token);
}

/* Walks to the parent of what the pointer names; the last token is left in token. */
static json_t *find_parent(json_t *document, const char *pointer, char *token, size_t size)
{
	json_t *v = document;

	if (*pointer != '/' || !next_token(&pointer, token, size))
		return NULL;
	while (*pointer) {
		v = child(v, token);
		if (!v || !next_token(&pointer, token, size))
			return NULL;
	}
	return v;
}

static json_t *find(json_t *document, const char *pointer)
{
	char token[512];
	json_t *parent;

	if (!*pointer)
		return document;
	parent = find_parent(document, pointer, token, sizeof(token));
	return parent ? child(parent, token) : NULL;
}

static int miss(const char *what, const char *pointer, struct error *err)
{
	return error_set(err, ERANGE,
			 "%s operation does not apply: doc is missing path: \"%.200s\"", what,
			 pointer);
}

/* Adds value (borrowed) at the pointer. */
static int add(json_t **document, const char *pointer, json_t *value, struct error *err)
{
	char token[512];
	json_t *parent;
	long i;

	if (!*pointer) {
		json_incref(value);
		json_decref(*document);
		*document = value;
		return 0;
	}
	parent = find_parent(*document, pointer, token, sizeof(token));
	if (json_is_object(parent))
		return json_object_set(parent, token, value) == 0 ? 0 : miss("add", pointer, err);
	i = json_is_array(parent) ? array_index(parent, token) : -1;
	if (i < 0 || json_array_insert(parent, (size_t)i, value) != 0)
		return miss("add", pointer, err);
	return 0;
}

static int drop(json_t *document, const char *pointer, struct error *err)
{
	char token[512];
	json_t *parent = *pointer ? find_parent(document, pointer, token, sizeof(token)) : NULL;
	long i = json_is_array(parent) ? array_index(parent, token) : -1;

	if (json_is_object(parent) && json_object_del(parent, token) == 0)
		return 0;
	if (i >= 0 && json_array_remove(parent, (size_t)i) == 0)
		return 0;
	return miss("remove", pointer, err);
}

static int replace(json_t **document, const char *path, json_t *value, struct error *err)
{
	int rc = 0;

	if (!find(*document, path))
		return miss("replace", path, err);
	if (*path)
		rc = drop(*document, path, err);
	return rc < 0 ? rc : add(document, path, value, err);
}

/* move and copy */
static int transfer(json_t **document, bool move, const char *from, const char *path,
		    size_t *copied, struct error *err)
{
	cleanup_json json_t *value = NULL;
	json_t *source = find(*document, from);
	int rc;

	if (!source)
		return miss(move ? "move" : "copy", from, err);
	if (!move) {
		*copied += json_dumpb(source, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
		if (*copied > COPIED_MAX)
			return error_set(err, ERANGE, "the copies in the patch are too large");
		value = json_deep_copy(source);
		return add(document, path, value, err);
	}
	if (strncmp(path, from, strlen(from)) == 0 && (path[strlen(from)] == '/'))
		return error_set(err, ERANGE, "a value cannot be moved into itself");
	value = json_incref(source);
	rc = streq(path, from) ? 0 : drop(*document, from, err);
	return rc < 0 || streq(path, from) ? rc : add(document, path, value, err);
}

static int test(json_t *document, const char *path, const json_t *value, struct error *err)
{
	const json_t *v = find(document, path);

	if ((v && json_equal(v, value)) || (!v && json_is_null(value)))
		return 0;
	return error_set(err, ERANGE, "testing path %.200s failed: the value there is another",
			 path);
}

static int operate(json_t **document, const json_t *o, size_t *copied, struct error *err)
{
	const char *op = jstr(o, "op"), *path = jstr(o, "path"), *from = jstr(o, "from");
	cleanup_json json_t *value = json_deep_copy(json_object_get(o, "value"));

	if (!op || !path || (*path && *path != '/'))
		return error_set(
			err, EINVAL,
			"a JSON patch is a list of {\"op\", \"path\", …}, the path with a slash "
			"in front");
	if (streq(op, "remove"))
		return drop(*document, path, err);
	if (streq(op, "move") || streq(op, "copy"))
		return from ? transfer(document, op[0] == 'm', from, path, copied, err)
			    : error_set(err, EINVAL, "the operation %s needs \"from\"", op);
	if (!streq(op, "add") && !streq(op, "replace") && !streq(op, "test"))
		return error_set(err, EINVAL, "unknown operation \"%.40s\" in the JSON patch", op);
	if (!value)
		return error_set(err, EINVAL, "the operation %s needs \"value\"", op);
	if (streq(op, "add"))
		return add(document, path, value, err);
	if (streq(op, "replace"))
		return replace(document, path, value, err);
	return test(*document, path, value, err);
}

int patch_json(json_t **document, const json_t *patch, struct error *err)
{
	size_t i, copied = 0;
	const json_t *o;

	if (!json_is_array(patch))
		return error_set(err, EINVAL, "a JSON patch must be a list of operations");
	if (json_array_size(patch) > OPERATIONS_MAX)
		return error_set(err, EINVAL, "a JSON patch may have at most %d operations",
				 OPERATIONS_MAX);
	json_array_foreach (patch, i, o) {
		int rc = operate(document, o, &copied, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}
