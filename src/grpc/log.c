/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/log.h"

#include "base/mem.h"

#include <inttypes.h>

#define VALUE_MAX 160 /* bytes of a text */
#define TEXT_MAX 1000 /* bytes of the whole */
#define LIST_MAX 4 /* elements of a list */

/* Single values. Never one that is free text of the user's: that may be anything. */
static const char *const values[] = {
	"volume_id",
	"name",
	"node_id",
	"snapshot_id",
	"source_volume_id",
	"group_snapshot_id",
	"target_path",
	"staging_target_path",
	"volume_publish_path",
	"volume_path",
	"required_bytes",
	"limit_bytes",
	"readonly",
	"max_entries",
	"fs_type",
	"mode",
	"snapshot_ids",
	"source_volume_ids",
	"plugin_registered",
	NULL,
};

/* Messages that are looked into. No map is among them: their keys and values are the user's. */
static const char *const messages[] = {
	"capacity_range",
	"volume_capability",
	"volume_capabilities",
	"mount",
	"access_mode",
	"volume_content_source",
	"snapshot",
	"volume",
	NULL,
};

static bool is_listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (streq(*list, name))
			return true;
	return false;
}

static void add_text(const char *name, const char *text, struct buf *out)
{
	size_t left = text ? strlen(text) : 0, n;
	bool cut = left > VALUE_MAX;

	if (left == 0)
		return;
	left = cut ? VALUE_MAX : left;
	buf_printf(out, " %s=", name);
	for (; left > 0; text += n, left -= n) {
		n = utf8_len(text, left);
		if (n == 0 || (unsigned char)*text <= ' ' || *text == 0x7f) {
			buf_puts(out, "?"); /* not a second value by the looks of it */
			n = 1;
		} else {
			buf_add(out, text, n);
		}
	}
	buf_puts(out, cut ? "..." : "");
}

static void add_enum(const ProtobufCFieldDescriptor *field, int value, struct buf *out)
{
	const ProtobufCEnumValue *known =
		protobuf_c_enum_descriptor_get_value(field->descriptor, value);

	if (known)
		buf_printf(out, " %s=%s", field->name, known->name);
	else
		buf_printf(out, " %s=%d", field->name, value);
}

static void add_element(const ProtobufCFieldDescriptor *field, const void *at, struct buf *out)
{
	if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
		const ProtobufCMessage *message = *(const ProtobufCMessage *const *)at;

		if (message && is_listed(messages, field->name))
			request_text(message, out);
		return;
	}
	if (!is_listed(values, field->name))
		return;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		add_text(field->name, *(char *const *)at, out);
	else if (field->type == PROTOBUF_C_TYPE_ENUM)
		add_enum(field, *(const int *)at, out);
	else if (field->type == PROTOBUF_C_TYPE_INT64 && *(const int64_t *)at)
		buf_printf(out, " %s=%" PRId64, field->name, *(const int64_t *)at);
	else if (field->type == PROTOBUF_C_TYPE_INT32 && *(const int32_t *)at)
		buf_printf(out, " %s=%" PRId32, field->name, *(const int32_t *)at);
	else if (field->type == PROTOBUF_C_TYPE_BOOL && *(const protobuf_c_boolean *)at)
		buf_printf(out, " %s=true", field->name);
}

/* Texts and messages are pointers; lists of anything else are not on the lists. */
static void add_list(const ProtobufCFieldDescriptor *field, const char *base, struct buf *out)
{
	size_t count = *(const size_t *)(base + field->quantifier_offset);
	void *const *items = *(void *const *const *)(base + field->offset);

	if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
		return;
	for (size_t i = 0; i < count && i < LIST_MAX; i++)
		add_element(field, &items[i], out);
}

void request_text(const ProtobufCMessage *request, struct buf *out)
{
	const ProtobufCMessageDescriptor *type = request->descriptor;
	const char *base = (const char *)request;

	for (unsigned i = 0; i < type->n_fields && out->len < TEXT_MAX; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];

		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			add_list(field, base, out);
		else if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
			 *(const uint32_t *)(base + field->quantifier_offset) == field->id)
			add_element(field, base + field->offset, out);
	}
}
