/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "grpc/decode.h"
#include "grpc/log.h"
#include "grpc/wire.h"
#include "proto/csi.pb-c.h"
#include "proto/pluginregistration.pb-c.h"

/*
 * The body of a call: its frame, and a message of the type that the first byte chooses among all
 * requests and answers. What is taken is what is said again: packed once more it is taken as well.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCServiceDescriptor *const services[] = {
	&csi__v1__identity__descriptor,
	&csi__v1__controller__descriptor,
	&csi__v1__group_controller__descriptor,
	&csi__v1__node__descriptor,
	&pluginregistration__registration__descriptor,
};

static const ProtobufCMessageDescriptor *choose(unsigned n)
{
	unsigned methods = 0;

	for (size_t i = 0; i < ARRAY_SIZE(services); i++)
		methods += services[i]->n_methods;
	n %= 2 * methods;
	for (size_t i = 0;; n -= 2 * services[i++]->n_methods)
		if (n < 2 * services[i]->n_methods)
			return n % 2 ? services[i]->methods[n / 2].output
				     : services[i]->methods[n / 2].input;
}

static void repeat(const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	cleanup_free uint8_t *packed = xmalloc(len + 1);
	struct arena arena = { 0 };
	ProtobufCMessage *again;

	if (protobuf_c_message_pack(message, packed) != len ||
	    message_decode(message->descriptor, packed, len, &arena, &again, NULL) < 0 ||
	    protobuf_c_message_get_packed_size(again) != len)
		abort();
	arena_done(&arena);
}

static void decode(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len)
{
	struct arena arena = { 0 };
	struct error err = ERROR_INIT;
	struct buf text = { 0 };
	ProtobufCMessage *message;

	if (message_decode(type, data, len, &arena, &message, &err) == 0) {
		request_text(message, &text);
		for (size_t i = 0; i < text.len; i++)
			if ((unsigned char)text.data[i] < ' ')
				abort();
		repeat(message);
	} else if (!err.message[0]) {
		abort();
	}
	buf_done(&text);
	arena_done(&arena);
}

/* The rest as a header field, which ends at the first NUL. */
static void read_fields(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xstrndup((const char *)data, size);
	cleanup_free char *decoded = percent_decode(text), *encoded = percent_encode(decoded);
	cleanup_free char *back = percent_decode(encoded);
	int64_t ms;

	if (strlen(back) > strlen(decoded) || (timeout_parse(text, &ms) == 0 && ms < 0))
		abort();
	content_type_is_grpc(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *message;
	size_t len;

	if (size < 1)
		return 0;
	read_fields(data + 1, size - 1);
	if (frame_read(data + 1, size - 1, data[0] % 2 ? "gzip" : NULL, 10000, &message, &len,
		       NULL) == GRPC_OK)
		decode(choose(data[0]), message, len);
	return 0;
}
