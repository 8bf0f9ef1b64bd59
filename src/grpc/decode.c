/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/decode.h"

#include "base/str.h"

#include <errno.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct cursor {
	const uint8_t *at, *end;
};

static bool take_varint(struct cursor *c, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (byte & 0x80)
			continue;
		*ret = value;
		return true;
	}
	return false;
}

static bool skip(struct cursor *c, uint64_t count)
{
	if (count > (uint64_t)(c->end - c->at))
		return false;
	c->at += count;
	return true;
}

static bool is_text(const uint8_t *s, size_t len)
{
	size_t n;

	for (; len > 0; s += n, len -= n) {
		n = utf8_len(s, len);
		if (n == 0 || *s == 0)
			return false;
	}
	return true;
}

static int check(const ProtobufCMessageDescriptor *type, struct cursor c, int depth,
		 struct error *err);

static int check_bytes(const ProtobufCMessageDescriptor *type,
		       const ProtobufCFieldDescriptor *field, struct cursor c, int depth,
		       struct error *err)
{
	if (!field)
		return 0;
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return check(field->descriptor, c, depth + 1, err);
	if (field->type == PROTOBUF_C_TYPE_STRING && !is_text(c.at, (size_t)(c.end - c.at)))
		return error_set(err, EBADMSG, "%s of %s is not UTF-8 text", field->name,
				 type->name);
	return 0;
}

static int check(const ProtobufCMessageDescriptor *type, struct cursor c, int depth,
		 struct error *err)
{
	if (depth > DECODE_DEPTH_MAX)
		return error_set(err, EBADMSG, "%s lies too deep in other messages", type->name);
	while (c.at < c.end) {
		const ProtobufCFieldDescriptor *field;
		const uint8_t *begin;
		uint64_t tag, n = 0;
		bool ok = take_varint(&c, &tag) && tag >> 3 > 0 && tag <= UINT32_MAX;
		int r;

		if (ok && (tag & 7) == WIRE_BYTES)
			ok = take_varint(&c, &n);
		begin = c.at;
		if (ok && (tag & 7) == WIRE_VARINT)
			ok = take_varint(&c, &n);
		else if (ok && ((tag & 7) == WIRE_64 || (tag & 7) == WIRE_32))
			ok = skip(&c, (tag & 7) == WIRE_64 ? 8 : 4);
		else if (ok)
			ok = (tag & 7) == WIRE_BYTES && skip(&c, n);
		if (!ok)
			return error_set(err, EBADMSG, "The bytes are no message %s", type->name);
		if ((tag & 7) != WIRE_BYTES)
			continue;
		field = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
		r = check_bytes(type, field, (struct cursor){ begin, c.at }, depth, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int message_check(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
		  struct error *err)
{
	return check(type, (struct cursor){ data, data + len }, 1, err);
}

/* What protobuf-c allocates goes with the arena, and there is not too much of it. */
struct bounded {
	struct arena *arena;
	size_t left;
	bool refused;
};

static void *bounded_alloc(void *userdata, size_t size)
{
	struct bounded *b = userdata;

	if (size > b->left) {
		b->refused = true;
		return NULL;
	}
	b->left -= size;
	return arena_alloc(b->arena, size);
}

static void bounded_free(void *userdata, void *ptr)
{
}

int message_decode(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
		   struct arena *arena, ProtobufCMessage **ret, struct error *err)
{
	struct bounded bounded = { arena, DECODE_MEMORY_MAX, false };
	ProtobufCAllocator allocator = { bounded_alloc, bounded_free, &bounded };
	ProtobufCMessage *message;
	int r = message_check(type, data, len, err);

	if (r < 0)
		return r;
	message = protobuf_c_message_unpack(type, &allocator, len, data);
	if (!message && bounded.refused)
		return error_set(err, ENOSPC, "The message %s takes more than %lu bytes of memory",
				 type->name, DECODE_MEMORY_MAX);
	if (!message)
		return error_set(err, EBADMSG, "The bytes are no message %s", type->name);
	*ret = message;
	return 0;
}
