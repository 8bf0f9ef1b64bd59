/* SPDX-License-Identifier: Apache-2.0 */
#include "params.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

/* What a host may be called, an address in brackets included; a comma separates several. */
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%[],"
/* Mount options: what no program on the way can take for anything but a word. */
#define OPTION_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%[],=/@+"

static int check_access_mode(const char *value, struct error *err)
{
	if (!streq(value, "rw") && !streq(value, "ro"))
		return error_set(err, EINVAL, "\"%.40s\" is neither \"rw\" nor \"ro\"", value);
	return 0;
}

const struct param common_params[] = {
	{ .name = "volumeId",
	  .aliases = (const char *const[]){ "volId", NULL },
	  .help = "By this name the volume is found again. Made from the identifying parameters "
		  "where it is missing.",
	  .example = "pvc-0f3a" },
	{ .name = "accessMode",
	  .fallback = "rw",
	  .help = "\"ro\" mounts for reading only. A device or path that is handed on as it is "
		  "stays as it "
		  "is.",
	  .example = "ro",
	  .check = check_access_mode },
	{ .name = "encrypted",
	  .type = PARAM_BOOLEAN,
	  .fallback = "false",
	  .help = "True is refused: this version does not decrypt, and would show raw data." },
	{ .name = "qosSpecs", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "cacheable", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "discard", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ 0 },
};

/* Whether key is name in camelCase or snake_case, apart from a final s of one of them. */
static bool spelled(const char *name, const char *key)
{
	bool snake = strchr(key, '_') != NULL;

	if (streq(name, key)) /* others' words may mix the two */
		return true;
	for (; *name && *key; name++, key++) {
		if (snake && isupper((unsigned char)*name)) {
			if (*key++ != '_')
				return false;
			if (*key != tolower((unsigned char)*name))
				return false;
		} else if (*name != *key) {
			return false;
		}
	}
	return streq(name, key) || (!*name && streq(key, "s")) || (!*key && streq(name, "s"));
}

bool param_matches(const struct param *p, const char *key)
{
	if (spelled(p->name, key))
		return true;
	for (size_t i = 0; p->aliases && p->aliases[i]; i++)
		if (spelled(p->aliases[i], key))
			return true;
	return false;
}

static const struct param *find_in(const struct param *table, const char *key)
{
	for (; table && table->name; table++)
		if (param_matches(table, key))
			return table;
	return NULL;
}

static int unknown_param(const struct driver *driver, const char *key, struct error *err)
{
	const char *names[64], *near;
	size_t n = 0;

	for (const struct param *p = driver->params; p->name && n < ARRAY_SIZE(names) - 8; p++)
		names[n++] = p->name;
	for (const struct param *p = common_params; p->name && n < ARRAY_SIZE(names) - 1; p++)
		names[n++] = p->name;
	names[n] = NULL;
	near = str_suggest(key, names);
	return error_set(err, EINVAL, "%s has no parameter \"%.60s\"%s%s%s", driver->name, key,
			 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static bool has_control(const char *s, bool lines)
{
	for (; *s; s++)
		if (iscntrl((unsigned char)*s) && !(lines && (*s == '\n' || *s == '\t')))
			return true;
	return false;
}

/* "a;b;c" of an array in a list: a portal with its port and transport. */
static int join(const json_t *array, char separator, char **ret, struct error *err)
{
	cleanup_free char *text = NULL;
	const json_t *item;
	size_t i;
	int r = text_format(&text, err, "%s", "");

	json_array_foreach ((json_t *)array, i, item) {
		cleanup_free char *before = TAKE_PTR(text);

		if (r < 0 || (!json_is_string(item) && !json_is_integer(item)))
			return r < 0 ? r : error_set(err, EINVAL, "neither a string nor a number");
		if (json_is_string(item))
			r = text_format(&text, err, "%s%.*s%s", before, i > 0, &separator,
					json_string_value(item));
		else
			r = text_format(&text, err, "%s%.*s%" JSON_INTEGER_FORMAT, before, i > 0,
					&separator, json_integer_value(item));
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(text);
	return 0;
}

/* One item of a list, added to what is there; a comma would make two of it. */
static int list_add(char **list, const json_t *item, struct error *err)
{
	cleanup_free char *before = TAKE_PTR(*list);
	const char *comma = before ? "," : "";

	if (json_is_integer(item))
		return text_format(list, err, "%s%s%" JSON_INTEGER_FORMAT, before ? before : "",
				   comma, json_integer_value(item));
	if (json_is_array(item)) {
		cleanup_free char *inner = NULL;
		int r = join(item, ';', &inner, err);

		return r < 0 ? r
			     : text_format(list, err, "%s%s%s", before ? before : "", comma, inner);
	}
	if (!json_is_string(item))
		return error_set(err, EINVAL, "neither a string nor a number");
	return text_format(list, err, "%s%s%s", before ? before : "", comma,
			   json_string_value(item));
}

/* New reference to "a,b,c" of an array, or of one string or number. */
static int list_text(const json_t *value, json_t **ret, struct error *err)
{
	cleanup_free char *list = NULL;
	const json_t *item;
	size_t i;
	int r = 0;

	if (!json_is_array(value))
		r = list_add(&list, value, err);
	json_array_foreach ((json_t *)value, i, item) {
		r = list_add(&list, item, err);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	*ret = json_string(list ? list : "");
	return *ret ? 0 : no_memory(err);
}

/* New reference to "key;a;b,key;c" of an object. */
static int map_text(const json_t *value, json_t **ret, struct error *err)
{
	cleanup_json json_t *list = json_array();
	const char *key;
	json_t *items;

	if (json_is_string(value)) {
		*ret = json_incref((json_t *)value);
		return 0;
	}
	if (!list)
		return no_memory(err);
	if (!json_is_object(value))
		return error_set(err, EINVAL, "not an object");
	json_object_foreach ((json_t *)value, key, items) {
		json_t *entry = json_array();

		if (json_array_append_new(list, entry) < 0 ||
		    json_array_append_new(entry, json_string(key)) < 0 ||
		    (json_is_array(items) ? json_array_extend(entry, items)
					  : json_array_append(entry, items)) < 0)
			return no_memory(err);
	}
	return list_text(list, ret, err);
}

/* A string of digits, of a number or of itself: others send one or the other. */
static int convert_number(const struct param *p, const json_t *value, json_t **ret,
			  struct error *err)
{
	const char *text = json_string_value(value);
	char digits[32];
	int r;

	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		text = digits;
	}
	/* what fits into 64 bits without a sign */
	if (!text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 20 ||
	    (strlen(text) == 20 && strcmp(text, "18446744073709551615") > 0))
		return error_set(err, EINVAL, "%s: not a whole number", p->name);
	r = p->check ? p->check(text, err) : 0;
	if (r < 0)
		return error_prefix(err, "%s", p->name);
	*ret = json_string(text);
	return *ret ? 0 : no_memory(err);
}

/* New reference to the value as the table types it. */
static int convert(const struct param *p, const json_t *value, json_t **ret, struct error *err)
{
	cleanup_json json_t *list = NULL;
	const char *text;
	int r;

	if (p->type == PARAM_LIST || p->type == PARAM_MAP) {
		r = p->type == PARAM_MAP ? map_text(value, &list, err)
					 : list_text(value, &list, err);
		if (r < 0)
			return error_prefix(err, "%s", p->name);
		value = list;
	}
	text = json_string_value(value);
	if (p->type == PARAM_BOOLEAN) {
		if (!json_is_boolean(value) && !streq(text, "true") && !streq(text, "false"))
			return error_set(err, EINVAL, "%s: neither true nor false", p->name);
		*ret = json_boolean(json_is_true(value) || streq(text, "true"));
		return 0;
	}
	if (p->type == PARAM_NUMBER)
		return convert_number(p, value, ret, err);
	if (!text)
		return error_set(err, EINVAL, "%s: not a string", p->name);
	if (strlen(text) > (p->type == PARAM_TEXT ? 65536 : 4096) ||
	    has_control(text, p->type == PARAM_TEXT))
		return error_set(err, EINVAL, "%s: too long, or has control characters", p->name);
	if (p->check && *text) {
		r = p->check(text, err);
		if (r < 0)
			return error_prefix(err, "%s", p->name);
	}
	*ret = json_string(text);
	return *ret ? 0 : no_memory(err);
}

/* Whether item, or the first of its items, is one of list's. */
static bool list_has(const json_t *list, const json_t *item)
{
	const char *text = json_string_value(item);
	size_t len = strlen(text);

	for (const char *p = json_string_value(list); p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, text, len) == 0 && (!p[len] || p[len] == ','))
			return true;
	}
	return false;
}

static int read_one(const struct driver *driver, const char *key, const json_t *value, json_t *out,
		    struct error *err);

static int read_group(const struct driver *driver, const struct param *group, const json_t *fields,
		      json_t *out, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(fields) && !json_is_null(fields))
		return error_set(err, EINVAL, "%s: not an object", group->name);
	json_object_foreach ((json_t *)fields, key, value) {
		int r = read_one(driver, key, value, out, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int read_one(const struct driver *driver, const char *key, const json_t *value, json_t *out,
		    struct error *err)
{
	const struct param *p = find_in(driver->params, key);
	cleanup_json json_t *converted = NULL;
	const json_t *before;
	int r;

	if (!p)
		p = find_in(common_params, key);
	if (!p)
		return unknown_param(driver, key, err);
	if (p->type == PARAM_GROUP)
		return read_group(driver, p, value, out, err);
	/* an empty string is what others send for "not given" */
	if (p->type == PARAM_IGNORED || json_is_null(value) || streq(json_string_value(value), ""))
		return 0;
	r = convert(p, value, &converted, err);
	if (r < 0)
		return r;
	before = json_object_get(out, p->name);
	/* others send one portal, and beside it the list of all */
	if (before && p->type == PARAM_LIST && list_has(before, converted))
		return 0;
	if (before && !json_equal(before, converted) &&
	    !(p->type == PARAM_LIST && list_has(converted, before)))
		return error_set(err, EINVAL, "%s: given twice, with different values", p->name);
	return json_object_set(out, p->name, converted) < 0 ? no_memory(err) : 0;
}

int params_read(const struct driver *driver, const json_t *data, json_t **ret, struct error *err)
{
	cleanup_json json_t *out = json_object();
	const char *key;
	json_t *value;
	int r;

	if (!out)
		return no_memory(err);
	json_object_foreach ((json_t *)data, key, value) {
		r = read_one(driver, key, value, out, err);
		if (r < 0)
			return r;
	}
	for (const struct param *p = driver->params; p->name; p++)
		if (p->required && !json_object_get(out, p->name))
			return error_set(err, EINVAL,
					 "%s needs the parameter \"%s\", such as \"%s\"",
					 driver->name, p->name, p->example);
	if (jbool(out, "encrypted"))
		return error_set(err, EOPNOTSUPP,
				 "encrypted volumes are not supported in this version");
	r = driver->tidy ? driver->tidy(out, err) : 0;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(out);
	return 0;
}

int params_without_secrets(const struct driver *driver, const json_t *params, json_t **ret,
			   struct error *err)
{
	cleanup_json json_t *copy = object_copy(params);

	if (!copy)
		return no_memory(err);
	for (const struct param *p = driver->params; p->name; p++)
		if (p->secret)
			json_object_del(copy, p->name);
	*ret = TAKE_PTR(copy);
	return 0;
}

bool params_same_volume(const struct driver *driver, const json_t *a, const json_t *b)
{
	for (const struct param *p = driver->params; p->name; p++) {
		const json_t *x = json_object_get(a, p->name), *y = json_object_get(b, p->name);

		if (p->identity && x != y && !json_equal(x, y))
			return false;
	}
	return true;
}

/* ---- checks --------------------------------------------------------------------------------- */

int check_clean_path(const char *value, struct error *err)
{
	if (!path_is_clean(value))
		return error_set(err, EINVAL,
				 "not an absolute path without \".\", \"..\" and doubled slashes");
	return 0;
}

int check_sub_path(const char *value, struct error *err)
{
	if (value[0] == '/')
		return error_set(err, EINVAL, "begins with a slash; it is relative to the export");
	for (const char *p = value; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 0 || len > 255 || (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return error_set(err, EINVAL,
					 "\".\", \"..\", empty and overlong parts are not allowed");
		p += len;
		if (*p == '/' && !*++p)
			return error_set(err, EINVAL, "ends with a slash");
	}
	return 0;
}

const char *options_text(const char *value)
{
	return strncmp(value, "-o ", 3) == 0 ? value + 3 : value;
}

int check_mount_options(const char *value, struct error *err)
{
	/* they would do something else than mount this volume */
	static const char *const refused[] = { "bind", "rbind", "move", "remount", "loop", NULL };
	size_t good;

	value = options_text(value);
	good = strspn(value, OPTION_CHARS);
	if (value[good])
		return error_set(err, EINVAL, "\"%c\" is not allowed in mount options",
				 value[good]);
	for (const char *p = value; *p;) {
		size_t len = strcspn(p, ",");

		for (size_t i = 0; refused[i]; i++)
			if (strlen(refused[i]) == len && strncmp(p, refused[i], len) == 0)
				return error_set(err, EINVAL, "the option \"%s\" is not allowed",
						 refused[i]);
		p += len;
		p += *p == ',';
	}
	return 0;
}

int check_export(const char *value, struct error *err)
{
	const char *split = strstr(value, ":/");

	if (!split || split == value || value[0] == '-' || value[0] == ',' ||
	    strspn(value, HOST_CHARS) < (size_t)(split - value))
		return error_set(err, EINVAL, "\"%.100s\" is not HOST:/PATH", value);
	if (strchr(value, ' ') || (split[2] && !path_is_clean(split + 1)))
		return error_set(err, EINVAL,
				 "\"%.100s\": the part after the host is not a clean path", value);
	return 0;
}
