/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_call SOCKET SERVICE.METHOD [JSON]: one call of a CSI service, its request and reply as JSON
 * with the names of the .proto file; enumerations are numbers. Exit 0; 1 where the call failed, with
 * "CODE: sentence" on standard error; 2 for a request that is none.
 */
#include "base/json.h"
#include "base/mem.h"
#include "grpc/grpc.h"
#include "proto/csi.pb-c.h"
#include "proto/pluginregistration.pb-c.h"

#include <stdio.h>

#define TIMEOUT_MS 100000

static void bad(const char *what, const char *name)
{
	(void)fprintf(stderr, "csi_call: %s %s\n", what, name);
	exit(2);
}

static void *message_new(const ProtobufCMessageDescriptor *d)
{
	ProtobufCMessage *m = xcalloc(1, d->sizeof_message);

	protobuf_c_message_init(d, m);
	return m;
}

static void *message_of(const ProtobufCMessageDescriptor *d, const json_t *o);

static void set_value(const ProtobufCFieldDescriptor *f, void *at, const json_t *v)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		if (!json_is_string(v))
			bad("not a string:", f->name);
		*(char **)at = xstrdup(json_string_value(v));
		return;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at = json_is_true(v);
		return;
	case PROTOBUF_C_TYPE_INT64:
		*(int64_t *)at = json_integer_value(v);
		return;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
		*(int32_t *)at = (int32_t)json_integer_value(v);
		return;
	case PROTOBUF_C_TYPE_MESSAGE:
		*(void **)at = message_of(f->descriptor, v);
		return;
	default:
		bad("no such type:", f->name);
	}
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
	return f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE
		       ? sizeof(void *)
	       : f->type == PROTOBUF_C_TYPE_INT64 ? 8
						  : 4;
}

/* A map comes as an object, of which each member becomes an entry. */
static json_t *entries_of(const json_t *v)
{
	json_t *list = json_array(), *value;
	const char *key;

	json_object_foreach ((json_t *)v, key, value)
		json_array_append_new(list, json_pack("{s:s, s:O}", "key", key, "value", value));
	return list;
}

static void set_repeated(const ProtobufCFieldDescriptor *f, char *m, const json_t *v)
{
	cleanup_json json_t *list = json_is_object(v) ? entries_of(v) : json_incref((json_t *)v);
	size_t n = json_array_size(list), size = size_of(f);
	char *items = xcalloc(n ? n : 1, size);

	for (size_t i = 0; i < n; i++)
		set_value(f, items + i * size, json_array_get(list, i));
	*(void **)(m + f->offset) = items;
	*(size_t *)(m + f->quantifier_offset) = n;
}

static void *message_of(const ProtobufCMessageDescriptor *d, const json_t *o)
{
	char *m = message_new(d);
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)o, key, v) {
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field_by_name(d, key);

		if (!f)
			bad("no such field:", key);
		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			set_repeated(f, m, v);
			continue;
		}
		set_value(f, m + f->offset, v);
		if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			*(uint32_t *)(m + f->quantifier_offset) = f->id;
	}
	return m;
}

static json_t *json_of(const ProtobufCMessage *message);

static json_t *value_of(const ProtobufCFieldDescriptor *f, const void *at)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return json_string(*(char *const *)at ? *(char *const *)at : "");
	case PROTOBUF_C_TYPE_BOOL:
		return json_boolean(*(const protobuf_c_boolean *)at);
	case PROTOBUF_C_TYPE_INT64:
		return json_integer(*(const int64_t *)at);
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(void *const *)at ? json_of(*(void *const *)at) : json_null();
	default:
		return json_integer(*(const int32_t *)at);
	}
}

static json_t *json_of(const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *d = message->descriptor;
	const char *m = (const char *)message;
	json_t *o = json_object();

	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];

		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			const char *items = *(char *const *)(m + f->offset);
			json_t *list = json_array();

			for (size_t k = 0; k < *(const size_t *)(m + f->quantifier_offset); k++)
				json_array_append_new(list, value_of(f, items + k * size_of(f)));
			json_object_set_new(o, f->name, list);
		} else if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
			   *(const uint32_t *)(m + f->quantifier_offset) == f->id) {
			json_object_set_new(o, f->name, value_of(f, m + f->offset));
		}
	}
	return o;
}

static const ProtobufCServiceDescriptor *service_of(const char *name)
{
	static const ProtobufCServiceDescriptor *const all[] = {
		&csi__v1__identity__descriptor, &csi__v1__node__descriptor,
		&csi__v1__controller__descriptor, &csi__v1__group_controller__descriptor,
		&pluginregistration__registration__descriptor
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (streq(all[i]->short_name, name))
			return all[i];
	bad("no such service:", name);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *text = argc > 3 ? argv[3] : "{}";
	char *dot = argc > 2 ? strchr(argv[2], '.') : NULL;
	const ProtobufCServiceDescriptor *service;
	const ProtobufCMethodDescriptor *method;
	struct grpc_client *client = NULL;
	struct error err = ERROR_INIT;
	enum grpc_code code = GRPC_OK;
	json_t *request = NULL;
	void *reply = NULL;

	if (!dot || json_parse(text, strlen(text), &request, &err) < 0)
		bad("usage: csi_call SOCKET SERVICE.METHOD JSON", err.message);
	*dot = '\0';
	service = service_of(argv[2]);
	method = protobuf_c_service_descriptor_get_method_by_name(service, dot + 1);
	if (!method)
		bad("no such method:", dot + 1);
	if (grpc_client_new(argv[1], &client, &err) < 0 ||
	    grpc_client_call(client, service, dot + 1, message_of(method->input, request),
			     TIMEOUT_MS, &reply, &code, &err) < 0) {
		(void)fprintf(stderr, "%s: %s\n", grpc_code_name(code), err.message);
		return 1;
	}
	(void)puts(json_text(json_of(reply)));
	grpc_client_free(client);
	return 0;
}
