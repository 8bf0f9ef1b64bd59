/* SPDX-License-Identifier: Apache-2.0 */
/* Identities as bytes and text: what devices send, what people write. Pure. */
#include "identity.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

void identity_add(struct identity *id, const char *kind, const char *value, size_t len)
{
	char *out;
	size_t used;

	while (len && (isspace((unsigned char)value[len - 1]) || !value[len - 1]))
		len--;
	while (len && isspace((unsigned char)*value)) {
		value++;
		len--;
	}
	if (!len || id->count == IDENTITY_MAX)
		return;
	out = id->names[id->count];
	used = (size_t)snprintf(out, IDENTITY_TEXT, "%s.", kind);
	for (size_t i = 0; i < len && used < IDENTITY_TEXT - 1; i++) {
		unsigned char ch = (unsigned char)value[i];
		bool plain = isgraph(ch) && ch < 0x7f;

		/* runs of blanks are one, as in the names that udev makes */
		if (plain || out[used - 1] != '_')
			out[used++] = plain ? (char)tolower(ch) : '_';
	}
	out[used] = '\0';
	id->count++;
}

void identity_add_hex(struct identity *id, const char *kind, const unsigned char *bytes, size_t len)
{
	char text[IDENTITY_TEXT] = "";
	bool any = false;

	for (size_t i = 0; i < len && i < (sizeof(text) - 1) / 2; i++) {
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
		any = any || bytes[i];
	}
	/* all zero means that there is none */
	if (any)
		identity_add(id, kind, text, strlen(text));
}

static void add_designator(struct identity *id, unsigned type, const unsigned char *value,
			   size_t len)
{
	switch (type) {
	case 1:
		identity_add(id, "t10", (const char *)value, len);
		break;
	case 2:
		identity_add_hex(id, "eui", value, len);
		break;
	case 3:
		identity_add_hex(id, "naa", value, len);
		break;
	case 8:
		identity_add(id, "name", (const char *)value, len);
		break;
	case 10: /* two bytes of a header, then the UUID */
		if (len >= 18)
			identity_add_hex(id, "uuid", value + 2, 16);
		break;
	default: /* numbers of ports and groups, and what a vendor may mean anything by */
		break;
	}
}

int identity_from_page83(const unsigned char *page, size_t len, struct identity *ret)
{
	size_t end;

	if (len < 4 || page[1] != 0x83)
		return -EBADMSG;
	end = 4 + ((size_t)page[2] << 8 | page[3]);
	if (end > len)
		end = len;
	for (size_t at = 4; at + 4 <= end;) {
		size_t size = page[at + 3];

		if (at + 4 + size > end)
			break;
		/* those of the logical unit; others are of the port or the target, the same for all */
		if ((page[at + 1] >> 4 & 3) == 0)
			add_designator(ret, page[at + 1] & 0xf, page + at + 4, size);
		at += 4 + size;
	}
	return 0;
}

int identity_from_page80(const unsigned char *page, size_t len, struct identity *ret)
{
	size_t size;

	if (len < 4 || page[1] != 0x80)
		return -EBADMSG;
	size = (size_t)page[2] << 8 | page[3];
	identity_add(ret, "serial", (const char *)page + 4, size < len - 4 ? size : len - 4);
	return 0;
}

int identity_from_nvme(const unsigned char *list, size_t len, struct identity *ret)
{
	static const struct {
		const char *kind;
		size_t size;
	} kinds[] = { { NULL, 0 }, { "eui", 8 }, { "nguid", 16 }, { "uuid", 16 } };

	for (size_t at = 0; at + 4 <= len && list[at];) {
		unsigned type = list[at];
		size_t size = list[at + 1];

		if (at + 4 + size > len)
			return -EBADMSG;
		if (type < ARRAY_SIZE(kinds) && kinds[type].size == size)
			identity_add_hex(ret, kinds[type].kind, list + at + 4, size);
		at += 4 + size;
	}
	return 0;
}

/* ---- text ----------------------------------------------------------------------------------- */

int identity_to_text(const struct identity *id, char **ret, struct error *err)
{
	char text[IDENTITY_MAX * IDENTITY_TEXT];
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < id->count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
					id->names[i]);
	return text_format(ret, err, "%s", text);
}

void identity_from_text(const char *text, struct identity *ret)
{
	*ret = (struct identity){ 0 };
	for (const char *p = text; *p && ret->count < IDENTITY_MAX;) {
		size_t len = strcspn(p, " ");

		if (len && len < IDENTITY_TEXT)
			snprintf(ret->names[ret->count++], IDENTITY_TEXT, "%.*s", (int)len, p);
		p += len;
		p += *p == ' ';
	}
}

/* Hexadecimal digits without anything between them, or "" where it is something else. */
static void only_hex(const char *name, char *buf, size_t size)
{
	size_t n = 0;

	for (; *name; name++) {
		if (*name == '-' || *name == ':')
			continue;
		if (!isxdigit((unsigned char)*name) || n + 1 >= size) {
			n = 0;
			break;
		}
		buf[n++] = (char)tolower((unsigned char)*name);
	}
	buf[n] = '\0';
}

static bool value_is(const char *value, const char *name)
{
	char x[IDENTITY_TEXT], y[IDENTITY_TEXT];
	struct identity printable = { 0 };

	only_hex(value, x, sizeof(x));
	only_hex(name, y, sizeof(y));
	if (x[0] && streq(x, y))
		return true;
	identity_add(&printable, "", name, strlen(name));
	return printable.count && streq(printable.names[0] + 1, value);
}

bool identity_is_called(const struct identity *id, const char *name)
{
	static const char *const prefixes[] = { "0x",	   "naa.",  "eui.",   "uuid.",
						"nguid.",  "t10.",  "wwn-",   "scsi-",
						"serial.", "name.", "mpath-", "3" };

	for (int i = 0; i < id->count; i++)
		if (value_is(strchr(id->names[i], '.') + 1, name))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncasecmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return identity_is_called(id, name + strlen(prefixes[i]));
	return false;
}

static size_t kind_length(const char *name)
{
	return strcspn(name, ".");
}

bool identity_same(const struct identity *a, const struct identity *b)
{
	bool common = false;

	for (int i = 0; i < a->count; i++) {
		size_t kind = kind_length(a->names[i]);
		bool both = false, equal = false;

		for (int j = 0; j < b->count; j++) {
			if (kind_length(b->names[j]) != kind ||
			    strncmp(a->names[i], b->names[j], kind) != 0)
				continue;
			both = true;
			equal = equal || streq(a->names[i], b->names[j]);
		}
		if (both && !equal)
			return false;
		common = common || equal;
	}
	return common;
}
