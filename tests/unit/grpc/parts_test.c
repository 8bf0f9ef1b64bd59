/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "grpc/decode.h"
#include "grpc/log.h"
#include "grpc/wire.h"
#include "proto/pluginregistration.pb-c.h"

#include <errno.h>
#include <limits.h>

static const ProtobufCServiceDescriptor *const services[] = {
	&csi__v1__identity__descriptor,
	&csi__v1__controller__descriptor,
	&csi__v1__group_controller__descriptor,
	&csi__v1__node__descriptor,
	&pluginregistration__registration__descriptor,
};

static void test_codes(void **state)
{
	for (int i = GRPC_OK; i <= GRPC_UNAUTHENTICATED; i++) {
		enum grpc_code code = (enum grpc_code)i, back = grpc_code_of(-grpc_errno_of(code));

		assert_true(grpc_code_name(code)[0]);
		if (code == GRPC_UNKNOWN || code == GRPC_DATA_LOSS)
			assert_int_equal(back, GRPC_INTERNAL);
		else if (code == GRPC_UNAUTHENTICATED)
			assert_int_equal(back, GRPC_PERMISSION_DENIED);
		else
			assert_int_equal(back, code);
	}
	assert_string_equal(grpc_code_name(GRPC_NOT_FOUND), "NOT_FOUND");
	assert_string_equal(grpc_code_name((enum grpc_code)99), "UNKNOWN");
	assert_int_equal(grpc_code_of(1), GRPC_OK);
	assert_int_equal(grpc_code_of(-EPERM), GRPC_PERMISSION_DENIED);
	assert_int_equal(grpc_code_of(-ECONNREFUSED), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_code_of(-EHOSTUNREACH), GRPC_UNAVAILABLE);
	assert_int_equal(grpc_code_of(-ENOMEM), GRPC_INTERNAL);
	assert_int_equal(grpc_errno_of((enum grpc_code)99), EIO);
}

static void test_timeouts(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} table[] = {
		{ "2H", 7200000 },
		{ "3M", 180000 },
		{ "4S", 4000 },
		{ "5m", 5 },
		{ "6u", 1 },
		{ "6000u", 6 },
		{ "7n", 1 },
		{ "7000000n", 7 },
		{ "0S", 0 },
		{ "7000001n", 8 },
		{ "99999999H", 359999996400000 },
	};
	char text[TIMEOUT_TEXT_MAX];
	int64_t ms;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		assert_int_equal(timeout_parse(table[i].text, &ms), 0);
		assert_int_equal(ms, table[i].ms);
	}
	assert_int_equal(timeout_parse("100000000m", &ms), -EINVAL);
	assert_string_equal(timeout_format(99999999, text), "99999999m");
	assert_string_equal(timeout_format(INT_MAX, text), "2147483S");
	assert_int_equal(timeout_parse(text, &ms), 0);
}

static void assert_percent(const char *text, const char *encoded)
{
	cleanup_free char *there = percent_encode(text);
	cleanup_free char *back = percent_decode(there);

	assert_string_equal(there, encoded);
	assert_string_equal(back, text);
}

static void test_percent(void **state)
{
	cleanup_free char *nul = percent_decode("a%00b%");

	assert_percent("", "");
	assert_percent("plain text, ~!", "plain text, ~!");
	assert_percent("100%", "100%25");
	assert_percent(" a b ", "%20a b%20");
	assert_percent(" ", "%20");
	assert_percent("\xe2\x82\xac\n", "%E2%82%AC%0A");
	assert_string_equal(nul, "a?b%");
}

/* How deep the messages of a type go; what contains itself would never end. */
static int depth_of(const ProtobufCMessageDescriptor *type, int limit)
{
	int deepest = 0;

	if (limit == 0)
		return 1000;
	for (unsigned i = 0; i < type->n_fields; i++)
		if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) {
			int n = depth_of(type->fields[i].descriptor, limit - 1);

			deepest = n > deepest ? n : deepest;
		}
	return deepest + 1;
}

/* protobuf-c recurses as deep as a type does, on a small stack. */
static void test_no_type_contains_itself(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(services); s++)
		for (unsigned i = 0; i < services[s]->n_methods; i++) {
			assert_in_range(depth_of(services[s]->methods[i].input, 50), 1, 5);
			assert_in_range(depth_of(services[s]->methods[i].output, 50), 1, 5);
		}
}

/* ---- a type that contains itself, as protobuf-c would describe it ---------------------- */

struct nested {
	ProtobufCMessage base;
	struct nested *in;
};
extern const ProtobufCMessageDescriptor nested_type;
static const ProtobufCFieldDescriptor nested_fields[] = {
	{ .name = "in",
	  .id = 1,
	  .label = PROTOBUF_C_LABEL_NONE,
	  .type = PROTOBUF_C_TYPE_MESSAGE,
	  .offset = offsetof(struct nested, in),
	  .descriptor = &nested_type },
};
static const unsigned nested_by_name[] = { 0 };
static const ProtobufCIntRange nested_ranges[] = { { 1, 0 }, { 0, 1 } };
const ProtobufCMessageDescriptor nested_type = {
	.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
	.name = "nested",
	.sizeof_message = sizeof(struct nested),
	.n_fields = 1,
	.fields = nested_fields,
	.fields_sorted_by_name = nested_by_name,
	.n_field_ranges = 1,
	.field_ranges = nested_ranges,
};

/* A message with depth messages in it; returns where it begins, at the end of data. */
static size_t nest(uint8_t *data, size_t size, int depth)
{
	size_t at = size;

	for (int i = 0; i < depth; i++) {
		size_t len = size - at;
		uint8_t head[8];
		size_t n = 0;

		head[n++] = 0x0a;
		for (; len >= 0x80; len >>= 7)
			head[n++] = (uint8_t)(len | 0x80);
		head[n++] = (uint8_t)len;
		at -= n;
		memcpy(data + at, head, n);
	}
	return at;
}

static void test_depth(void **state)
{
	size_t size = 100000;
	cleanup_free uint8_t *data = xmalloc(size);
	struct arena arena = { 0 };
	ProtobufCMessage *message = NULL;
	struct error err = ERROR_INIT;
	size_t at = nest(data, size, DECODE_DEPTH_MAX - 1);

	assert_int_equal(message_decode(&nested_type, data + at, size - at, &arena, &message, &err),
			 0);
	assert_non_null(((struct nested *)message)->in->in);
	at = nest(data, size, DECODE_DEPTH_MAX);
	assert_int_equal(message_decode(&nested_type, data + at, size - at, &arena, &message, &err),
			 -EBADMSG);
	at = nest(data, size, 25000);
	assert_int_equal(message_decode(&nested_type, data + at, size - at, &arena, &message, &err),
			 -EBADMSG);
	assert_non_null(strstr(err.message, "deep"));
	arena_done(&arena);
}

/* ---- what is logged -------------------------------------------------------------------- */

/* Sets all there is, a list having one element. What is in a map, or what is called "secrets" or
 * lies below, has the word that no log may have. */
static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *type, bool secret,
			      struct arena *arena)
{
	ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);
	char *base = (char *)message;

	protobuf_c_message_init(type, message);
	secret = secret || (type->n_fields == 2 && streq(type->fields[0].name, "key"));
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		bool hidden = secret || streq(field->name, "secrets");
		void **pointer = (void **)(base + field->offset);

		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			*(size_t *)(base + field->quantifier_offset) = 1;
			*pointer = arena_alloc(arena, sizeof(void *));
			pointer = *pointer;
		} else if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
			*(uint32_t *)(base + field->quantifier_offset) = field->id;
		}
		if (field->type == PROTOBUF_C_TYPE_MESSAGE)
			*pointer = fill(field->descriptor, hidden, arena);
		else if (field->type == PROTOBUF_C_TYPE_STRING)
			*pointer = (char *)(hidden ? "hunter2" : "shown");
		else
			*(int32_t *)pointer = 1;
	}
	return message;
}

static void test_secrets(void **state)
{
	size_t with_secrets = 0;

	for (size_t s = 0; s < ARRAY_SIZE(services); s++)
		for (unsigned i = 0; i < services[s]->n_methods; i++) {
			const ProtobufCMessageDescriptor *type = services[s]->methods[i].input;
			struct arena arena = { 0 };
			struct buf text = { 0 }, packed = { 0 };
			ProtobufCMessage *message = fill(type, false, &arena);

			packed.data = xcalloc(1, protobuf_c_message_get_packed_size(message) + 1);
			packed.len = protobuf_c_message_pack(message, (uint8_t *)packed.data);
			request_text(message, &text);
			with_secrets += memmem(packed.data, packed.len, "hunter2", 7) != NULL;
			assert_null(text.data ? strstr(text.data, "hunter2") : NULL);
			assert_null(text.data ? strstr(text.data, "secret") : NULL);
			assert_null(text.data ? strstr(text.data, "context") : NULL);
			if (protobuf_c_message_descriptor_get_field_by_name(type, "volume_id"))
				assert_non_null(strstr(text.data, " volume_id=shown"));
			buf_done(&text);
			buf_done(&packed);
			arena_done(&arena);
		}
	assert_in_range(with_secrets, 15, 100);
}

static void test_log_line(void **state)
{
	Csi__V1__NodePublishVolumeRequest req = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
	Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
	Csi__V1__VolumeCapability__MountVolume mount =
		CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
	char flag[] = "password=hunter2", *flags[] = { flag }, longer[1001] = { 0 };
	struct buf text = { 0 };

	mount.fs_type = (char *)"xfs";
	mount.n_mount_flags = 1;
	mount.mount_flags = flags;
	mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER;
	capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	capability.mount = &mount;
	capability.access_mode = &mode;
	req.volume_id = (char *)"v1.a.d.b readonly=\n\xff";
	req.target_path = (char *)"/var/t\xc3\xa4g";
	req.volume_capability = &capability;
	req.readonly = 1;
	request_text(&req.base, &text);
	assert_string_equal(
		text.data, " volume_id=v1.a.d.b?readonly=?? target_path=/var/t\xc3\xa4g fs_type=xfs"
			   " mode=MULTI_NODE_MULTI_WRITER readonly=true");
	buf_done(&text);

	text = (struct buf){ 0 };
	memset(longer, 'l', 1000);
	req.volume_id = longer;
	request_text(&req.base, &text);
	assert_in_range(strlen(text.data), 200, 400);
	buf_done(&text);
}

static void test_arena(void **state)
{
	struct arena arena = { 0 };

	for (size_t i = 0; i < 3000; i++) {
		size_t size = i % 100 == 99 ? 10000 : i % 50;
		char *p = arena_alloc(&arena, size);

		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t n = 0; n < size; n++)
			assert_int_equal(p[n], 0);
		memset(p, 0xff, size); /* would be seen where the next is the same */
	}
	arena_done(&arena);
	assert_null(arena.blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),	 cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_percent),	 cmocka_unit_test(test_no_type_contains_itself),
		cmocka_unit_test(test_depth),	 cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_log_line), cmocka_unit_test(test_arena),
	};

	return cmocka_run_group_tests_name("grpc-parts", tests, NULL, NULL);
}
