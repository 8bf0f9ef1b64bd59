/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"
#include "base/mem.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdint.h>

/* Messages within messages; the kinds below need four. */
#define DEPTH_MAX 8

enum type { TYPE_STRING, TYPE_BOOL, TYPE_MESSAGE, TYPE_MAP, TYPE_BYTES_MAP };

struct member {
	unsigned number;
	const char *name;
	enum type type;
	bool repeated;
	const struct member *members; /* TYPE_MESSAGE */
};

static const struct member owner_members[] = {
	{ 1, "kind", TYPE_STRING },
	{ 3, "name", TYPE_STRING },
	{ 4, "uid", TYPE_STRING },
	{ 5, "apiVersion", TYPE_STRING },
	{ 6, "controller", TYPE_BOOL },
	{ 7, "blockOwnerDeletion", TYPE_BOOL },
	{ 0 },
};
/* Times are the server's to set: they are left out. */
static const struct member metadata_members[] = {
	{ 1, "name", TYPE_STRING },
	{ 2, "generateName", TYPE_STRING },
	{ 3, "namespace", TYPE_STRING },
	{ 5, "uid", TYPE_STRING },
	{ 6, "resourceVersion", TYPE_STRING },
	{ 11, "labels", TYPE_MAP },
	{ 12, "annotations", TYPE_MAP },
	{ 13, "ownerReferences", TYPE_MESSAGE, true, owner_members },
	{ 14, "finalizers", TYPE_STRING, true },
	{ 0 },
};
#define METADATA                                                                                   \
	{                                                                                          \
		1, "metadata", TYPE_MESSAGE, false, metadata_members                               \
	}

static const struct member configmap_members[] = {
	METADATA,
	{ 2, "data", TYPE_MAP },
	{ 3, "binaryData", TYPE_BYTES_MAP },
	{ 4, "immutable", TYPE_BOOL },
	{ 0 },
};
static const struct member secret_members[] = {
	METADATA,
	{ 2, "data", TYPE_BYTES_MAP },
	{ 3, "type", TYPE_STRING },
	{ 4, "stringData", TYPE_MAP },
	{ 5, "immutable", TYPE_BOOL },
	{ 0 },
};
static const struct member namespace_members[] = { METADATA, { 0 } };
static const struct member resource_members[] = {
	{ 1, "namespace", TYPE_STRING }, { 2, "verb", TYPE_STRING },
	{ 3, "group", TYPE_STRING },	 { 4, "version", TYPE_STRING },
	{ 5, "resource", TYPE_STRING },	 { 6, "subresource", TYPE_STRING },
	{ 7, "name", TYPE_STRING },	 { 0 },
};
static const struct member access_spec_members[] = {
	{ 1, "resourceAttributes", TYPE_MESSAGE, false, resource_members },
	{ 0 },
};
static const struct member access_members[] = {
	METADATA,
	{ 2, "spec", TYPE_MESSAGE, false, access_spec_members },
	{ 0 },
};
static const struct member precondition_members[] = { { 1, "uid", TYPE_STRING },
						      { 2, "resourceVersion", TYPE_STRING },
						      { 0 } };
static const struct member delete_members[] = {
	{ 2, "preconditions", TYPE_MESSAGE, false, precondition_members },
	{ 3, "orphanDependents", TYPE_BOOL },
	{ 4, "propagationPolicy", TYPE_STRING },
	{ 5, "dryRun", TYPE_STRING, true },
	{ 0 },
};
static const struct member no_members[] = { { 0 } };

static const struct {
	const char *kind;
	const struct member *members;
} messages[] = {
	{ "ConfigMap", configmap_members },  { "Secret", secret_members },
	{ "Namespace", namespace_members },  { "SelfSubjectAccessReview", access_members },
	{ "SelfSubjectReview", no_members }, { "DeleteOptions", delete_members },
};

/* ---- the wire format ------------------------------------------------------------------------ */

struct reader {
	const unsigned char *p, *end;
};

static bool read_varint(struct reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		unsigned char c = *r->p++;

		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* One field: its number, and its value or its bytes. */
struct piece {
	unsigned number;
	bool is_bytes;
	uint64_t value;
	struct reader bytes;
};

static bool read_piece(struct reader *r, struct piece *ret)
{
	uint64_t tag, len;

	if (!read_varint(r, &tag) || tag >> 3 > INT32_MAX)
		return false;
	*ret = (struct piece){ .number = (unsigned)(tag >> 3), .is_bytes = (tag & 7) == 2 };
	switch (tag & 7) {
	case 0:
		return read_varint(r, &ret->value);
	case 1:
	case 5:
		len = (tag & 7) == 1 ? 8 : 4;
		break;
	case 2:
		if (!read_varint(r, &len))
			return false;
		break;
	default:
		return false;
	}
	if (len > (uint64_t)(r->end - r->p))
		return false;
	ret->bytes = (struct reader){ r->p, r->p + len };
	r->p += len;
	return true;
}

static json_t *text_of(struct reader bytes)
{
	return json_stringn((const char *)bytes.p, (size_t)(bytes.end - bytes.p));
}

static json_t *base64_of(struct reader bytes)
{
	size_t len = (size_t)(bytes.end - bytes.p);
	cleanup_free unsigned char *text = xcalloc(1, (len + 2) / 3 * 4 + 1);

	EVP_EncodeBlock(text, bytes.p, (int)len);
	return json_string((const char *)text);
}

/* An entry of a map: {1: key, 2: value}. */
static bool add_entry(json_t *object, const char *name, struct reader entry, bool bytes)
{
	json_t *map = json_object_get(object, name);
	cleanup_json json_t *key = NULL, *value = NULL;
	struct piece p;

	while (entry.p < entry.end) {
		if (!read_piece(&entry, &p))
			return false;
		if (p.number > 2 || !p.is_bytes)
			continue;
		if (p.number == 1) {
			json_decref(key);
			key = text_of(p.bytes);
		} else {
			json_decref(value);
			value = bytes ? base64_of(p.bytes) : text_of(p.bytes);
		}
		if (!(p.number == 1 ? key : value))
			return false;
	}
	if (!map)
		json_object_set_new(object, name, map = json_object());
	return json_object_set_new(map, key ? json_string_value(key) : "",
				   value ? json_incref(value) : json_string("")) == 0;
}

static json_t *read_message(struct reader r, const struct member *members, int depth);

static json_t *value_of(const struct member *m, const struct piece *p, int depth)
{
	switch (m->type) {
	case TYPE_BOOL:
		return json_boolean(p->value != 0);
	case TYPE_STRING:
		return p->is_bytes ? text_of(p->bytes) : NULL;
	default:
		return p->is_bytes ? read_message(p->bytes, m->members, depth + 1) : NULL;
	}
}

static bool add_piece(json_t *object, const struct member *m, const struct piece *p, int depth)
{
	json_t *value, *list;

	if (m->type == TYPE_MAP || m->type == TYPE_BYTES_MAP)
		return p->is_bytes &&
		       add_entry(object, m->name, p->bytes, m->type == TYPE_BYTES_MAP);
	value = value_of(m, p, depth);
	if (!value)
		return false;
	/* Kubernetes' encoder writes empty strings too; they mean "not set". */
	if (m->type == TYPE_STRING && !m->repeated && json_string_length(value) == 0) {
		json_decref(value);
		return true;
	}
	if (!m->repeated)
		return json_object_set_new(object, m->name, value) == 0;
	list = json_object_get(object, m->name);
	if (!list)
		json_object_set_new(object, m->name, list = json_array());
	return json_array_append_new(list, value) == 0;
}

static json_t *read_message(struct reader r, const struct member *members, int depth)
{
	json_t *object = depth < DEPTH_MAX ? json_object() : NULL;
	struct piece p;

	while (object && r.p < r.end) {
		const struct member *m = members;
		bool good = read_piece(&r, &p);

		while (good && m->name && m->number != p.number)
			m++;
		if (!good || (m->name && !add_piece(object, m, &p, depth))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

/* ---- Kubernetes' envelope ------------------------------------------------------------------- */

static const struct member type_members[] = { { 1, "apiVersion", TYPE_STRING },
					      { 2, "kind", TYPE_STRING },
					      { 0 } };

static int malformed(struct error *err)
{
	return error_set(err, EINVAL, "the protobuf message is malformed");
}

int proto_parse(const void *data, size_t len, json_t **ret, struct error *err)
{
	static const char magic[4] = { 'k', '8', 's', 0 };
	struct reader r = { (const unsigned char *)data + 4, (const unsigned char *)data + len };
	struct reader raw = { 0 };
	cleanup_json json_t *type = NULL, *object = NULL;
	struct piece p;

	if (len < sizeof(magic) || memcmp(data, magic, sizeof(magic)) != 0)
		return malformed(err);
	while (r.p < r.end) {
		if (!read_piece(&r, &p))
			return malformed(err);
		if (p.number == 1 && p.is_bytes) {
			json_decref(type);
			type = read_message(p.bytes, type_members, 0);
		} else if (p.number == 2 && p.is_bytes) {
			raw = p.bytes;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(messages) && !object; i++) {
		if (!streq(jstr(type, "kind"), messages[i].kind))
			continue;
		object = read_message(raw, messages[i].members, 0);
		if (!object)
			return malformed(err);
	}
	if (!object)
		return error_set(
			err, ENOTSUP,
			"the body of the request was in an unknown format - accepted media types "
			"include: application/json, application/yaml");
	json_object_update(object, type);
	*ret = TAKE_PTR(object);
	return 0;
}
