/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/checks.h"

#include "base/file.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

const char *quoted(const char *text, char buf[static QUOTED_MAX])
{
	size_t o = 0;

	buf[o++] = '"';
	for (size_t i = 0; text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (i == 60) {
			o += (size_t)sprintf(buf + o, "…");
			break;
		}
		if (c < 0x20 || c == 0x7f)
			o += (size_t)sprintf(buf + o, "\\x%02x", c);
		else
			buf[o++] = (char)c;
	}
	buf[o++] = '"';
	buf[o] = '\0';
	return buf;
}

int problem(struct schema_problem *ret, const char *path, const char *format, ...)
{
	va_list ap;
	char text[400];

	if (!ret)
		return -EINVAL;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	(void)snprintf(ret->path, sizeof(ret->path), "%s", path);
	return error_set(&ret->error, EINVAL, "%s: %s", ret->path, text);
}

static int check_ip4(const struct in_addr *a, const char *text, struct error *err)
{
	uint32_t ip = ntohl(a->s_addr);

	if (ip >> 24 == 127)
		return error_set(
			err, EINVAL,
			"%s is a loopback address, which no other node can reach; give the address "
			"in the storage network",
			text);
	if (ip == 0)
		return error_set(err, EINVAL, "%s stands for any address; give the node's own",
				 text);
	if (ip >> 28 == 14 || ip == 0xffffffff)
		return error_set(err, EINVAL,
				 "%s is a multicast or broadcast address; give the node's own",
				 text);
	return 0;
}

static int check_ip6(const struct in6_addr *a, const char *text, struct error *err)
{
	if (IN6_IS_ADDR_LOOPBACK(a))
		return error_set(
			err, EINVAL,
			"%s is a loopback address, which no other node can reach; give the address "
			"in the storage network",
			text);
	if (IN6_IS_ADDR_UNSPECIFIED(a))
		return error_set(err, EINVAL, "%s stands for any address; give the node's own",
				 text);
	if (IN6_IS_ADDR_MULTICAST(a))
		return error_set(err, EINVAL,
				 "%s is a multicast or broadcast address; give the node's own",
				 text);
	if (IN6_IS_ADDR_V4MAPPED(a))
		return error_set(err, EINVAL,
				 "%s is an IPv4 address in IPv6 form; write it as a.b.c.d", text);
	if (IN6_IS_ADDR_LINKLOCAL(a))
		return error_set(
			err, EINVAL,
			"%s is link-local, which means nothing without an interface; give a routed "
			"or unique local address",
			text);
	return 0;
}

int check_ip(const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	struct in_addr a4;
	struct in6_addr a6;
	char q[QUOTED_MAX];

	if (inet_pton(AF_INET, text, &a4) == 1)
		return check_ip4(&a4, text, err);
	if (inet_pton(AF_INET6, text, &a6) == 1)
		return check_ip6(&a6, text, err);
	return error_set(err, EINVAL, "%s is not an IPv4 or IPv6 address", quoted(text, q));
}

/* Absolute and clean, and no slash at its end. */
static bool path_is_plain(const char *path)
{
	return path_is_clean(path) && !(strlen(path) > 1 && str_has_suffix(path, "/"));
}

static int path_refused(const char *path, struct error *err)
{
	char q[QUOTED_MAX];

	if (path[0] != '/')
		return error_set(err, EINVAL, "%s is not an absolute path", quoted(path, q));
	return error_set(
		err, EINVAL,
		"%s is not a clean path; write it without \".\" and \"..\" parts, doubled or final "
		"slashes and control characters",
		quoted(path, q));
}

int check_path(const json_t *value, struct error *err)
{
	const char *path = json_string_value(value);

	return path_is_plain(path) ? 0 : path_refused(path, err);
}

int check_device(const json_t *value, struct error *err)
{
	const char *path = json_string_value(value);
	char q[QUOTED_MAX];

	if (!path_is_plain(path))
		return path_refused(path, err);
	if (!str_has_prefix(path, "/dev/"))
		return error_set(
			err, EINVAL,
			"%s is not below /dev/; to store on a file system, name a directory in "
			"spec.directories",
			quoted(path, q));
	return 0;
}

int check_directory(const json_t *value, struct error *err)
{
	static const char *const system[] = { "/dev", "/proc", "/sys", "/run", "/tmp" };
	const char *path = json_string_value(value);
	char q[QUOTED_MAX];

	if (!path_is_plain(path))
		return path_refused(path, err);
	if (streq(path, "/"))
		return error_set(err, EINVAL,
				 "the root directory cannot be given to a storage system");
	for (size_t i = 0; i < ARRAY_SIZE(system); i++) {
		size_t n = strlen(system[i]);

		if (strncmp(path, system[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return error_set(err, EINVAL,
					 "%s lies in %s, which does not outlive a reboot",
					 quoted(path, q), system[i]);
	}
	return 0;
}

int check_label_name(const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	char q[QUOTED_MAX];

	if (strlen(text) > 63)
		return error_set(err, EINVAL, "%s is longer than 63 bytes", quoted(text, q));
	if (!name_is_label(text))
		return error_set(
			err, EINVAL,
			"%s is not a name: use lower case letters, digits and \"-\", with a letter "
			"or digit at both ends",
			quoted(text, q));
	return 0;
}

int check_subdomain_name(const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	char q[QUOTED_MAX];

	if (strlen(text) > 253)
		return error_set(err, EINVAL, "%s is longer than 253 bytes", quoted(text, q));
	if (!name_is_subdomain(text))
		return error_set(
			err, EINVAL,
			"%s is not a name: use lower case letters, digits, \"-\" and \".\", with a "
			"letter or digit at both ends",
			quoted(text, q));
	return 0;
}

/* The part of a label's key after the prefix, and a label's value: [A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?, up to 63. */
static bool is_label_text(const char *text, size_t len)
{
	if (len == 0 || len > 63 || !isalnum((unsigned char)text[0]) ||
	    !isalnum((unsigned char)text[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
			return false;
	return true;
}

static bool is_qualified_name(const char *text)
{
	const char *slash = strchr(text, '/');
	char prefix[256];

	if (!slash)
		return is_label_text(text, strlen(text));
	if (slash - text > 253)
		return false;
	(void)snprintf(prefix, sizeof(prefix), "%.*s", (int)(slash - text), text);
	return name_is_subdomain(prefix) && is_label_text(slash + 1, strlen(slash + 1));
}

static int key_refused(const char *key, struct error *err)
{
	char q[QUOTED_MAX];

	return error_set(err, EINVAL,
			 "%s is not a key: write NAME or example.com/NAME, NAME of at most 63 "
			 "letters, digits, "
			 "\"-\", \"_\" and \".\"",
			 quoted(key, q));
}

int check_qualified_name(const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);

	return is_qualified_name(text) ? 0 : key_refused(text, err);
}

int check_labels(const json_t *value, struct error *err)
{
	const char *key;
	json_t *item;
	char q[QUOTED_MAX];

	json_object_foreach ((json_t *)value, key, item) {
		const char *text = json_string_value(item);

		if (!is_qualified_name(key))
			return key_refused(key, err);
		if (text[0] && !is_label_text(text, strlen(text)))
			return error_set(err, EINVAL,
					 "%s is not a label's value: at most 63 letters, digits, "
					 "\"-\", \"_\" and "
					 "\".\", with a letter or digit at both ends",
					 quoted(text, q));
	}
	return 0;
}

int check_annotations(const json_t *value, struct error *err)
{
	size_t total = 0;
	const char *key;
	json_t *item;

	json_object_foreach ((json_t *)value, key, item) {
		total += strlen(key) + json_string_length(item);
		if (!is_qualified_name(key))
			return key_refused(key, err);
	}
	if (total > 256 * 1024)
		return error_set(
			err, EINVAL,
			"all annotations together hold %zu bytes; at most 262144 are allowed",
			total);
	return 0;
}

static bool is_data_key(const char *key)
{
	size_t len = strlen(key);

	if (len == 0 || len > 253 || streq(key, ".") || streq(key, "..") ||
	    str_has_prefix(key, ".."))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)key[i]) && !strchr("-_.", key[i]))
			return false;
	return true;
}

int check_data_keys(const json_t *value, struct error *err)
{
	const char *key;
	json_t *item;
	char q[QUOTED_MAX];

	json_object_foreach ((json_t *)value, key, item) {
		if (!is_data_key(key))
			return error_set(err, EINVAL,
					 "%s is not a key: use at most 253 letters, digits, \"-\", "
					 "\"_\" and \".\"",
					 quoted(key, q));
	}
	return 0;
}

static bool is_base64(const char *text)
{
	size_t len = strlen(text), pad = 0;

	if (len % 4 != 0)
		return false;
	while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < len - pad; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '+' && text[i] != '/')
			return false;
	return true;
}

int check_base64_map(const json_t *value, struct error *err)
{
	const char *key;
	json_t *item;
	char q[QUOTED_MAX];

	/* the value itself may be a secret: only its key is told */
	json_object_foreach ((json_t *)value, key, item) {
		if (!is_base64(json_string_value(item)))
			return error_set(err, EINVAL,
					 "the value of %s is not base64; write plain text below "
					 "stringData instead",
					 quoted(key, q));
	}
	return check_data_keys(value, err);
}

int check_not_empty(const json_t *value, struct error *err)
{
	bool empty = json_is_array(value)    ? json_array_size(value) == 0
		     : json_is_object(value) ? json_object_size(value) == 0
					     : json_string_length(value) == 0;

	return empty ? error_set(err, EINVAL, "must not be empty") : 0;
}
