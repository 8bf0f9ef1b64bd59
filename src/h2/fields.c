/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/fields.h"

#include "base/mem.h"

void fields_add_bytes(struct fields *f, const void *name, size_t name_len, const void *value,
		      size_t value_len)
{
	buf_add(&f->text, name, name_len);
	buf_add(&f->text, "", 1);
	buf_add(&f->text, value, value_len);
	buf_add(&f->text, "", 1);
	f->count++;
	f->size += name_len + value_len + 32;
}

void fields_add(struct fields *f, const char *name, const char *value)
{
	fields_add_bytes(f, name, strlen(name), value, strlen(value));
}

void fields_add_list(struct fields *f, const struct h2_header *list)
{
	for (; list && list->name; list++)
		fields_add(f, list->name, list->value);
}

const char *fields_get(const struct fields *f, const char *name)
{
	const char *at = f->text.data;

	for (size_t i = 0; i < f->count; i++) {
		const char *value = at + strlen(at) + 1;

		if (streq(at, name))
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

nghttp2_nv *fields_nv(const struct fields *f)
{
	nghttp2_nv *nv = xcalloc(f->count + 1, sizeof(*nv));
	char *at = f->text.data;

	for (size_t i = 0; i < f->count; i++) {
		size_t name_len = strlen(at), value_len = strlen(at + name_len + 1);

		nv[i] = (nghttp2_nv){
			.name = (uint8_t *)at,
			.namelen = name_len,
			.value = (uint8_t *)at + name_len + 1,
			.valuelen = value_len,
		};
		at += name_len + value_len + 2;
	}
	return nv;
}

struct h2_header *fields_list(const struct fields *f)
{
	size_t array = (f->count + 1) * sizeof(struct h2_header);
	struct h2_header *list = xcalloc(1, array + f->text.len);
	char *at = (char *)list + array;

	if (f->text.len > 0)
		memcpy(at, f->text.data, f->text.len);
	for (size_t i = 0; i < f->count; i++) {
		list[i].name = at;
		list[i].value = at + strlen(at) + 1;
		at = (char *)list[i].value + strlen(list[i].value) + 1;
	}
	return list;
}

void fields_done(struct fields *f)
{
	buf_done(&f->text);
	*f = (struct fields){ 0 };
}
