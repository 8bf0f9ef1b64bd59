/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/compact.h"

#include "base/mem.h"

#include <stdio.h>

/* Longer ones are no words, and what came so often will come again. */
#define WORD_MAX 64
#define WORD_AFTER 3
#define UUID_LEN 36
#define DECIMAL_MAX 18
#define DEPTH_MAX 64

enum tag {
	TAG_NULL,
	TAG_FALSE,
	TAG_TRUE,
	TAG_INTEGER, /* zigzag varint */
	TAG_REAL, /* eight bytes */
	TAG_STRING, /* length, bytes */
	TAG_WORD, /* number */
	TAG_UUID, /* the string before it, sixteen bytes */
	TAG_DECIMAL, /* varint */
	TAG_ARRAY, /* count, values */
	TAG_OBJECT, /* count, string and value each */
	TAG_FIRST_WORD, /* this and more: word 0 and more */
};

void compact_init(struct compact *c)
{
	pthread_mutex_init(&c->lock, NULL);
}

void compact_done(struct compact *c)
{
	for (unsigned i = 0; i < c->count; i++)
		free(c->words[i]);
	pthread_mutex_destroy(&c->lock);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void put_byte(struct buf *b, unsigned byte)
{
	unsigned char c = (unsigned char)byte;

	buf_add(b, &c, 1);
}

static void put_number(struct buf *b, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		put_byte(b, 0x80 | (unsigned)(n & 0x7f));
	put_byte(b, (unsigned)n);
}

static uint32_t hash_of(const char *text, size_t len)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h;
}

/* True once the word has come often enough to be worth its place; the latest in a slot counts. */
static bool comes_often(struct compact *c, uint32_t hash)
{
	uint32_t *slot = &c->seen[hash % COMPACT_WORDS];

	if (*slot >> 8 != hash >> 8)
		*slot = hash & ~0xffu;
	++*slot;
	return (*slot & 0xff) >= WORD_AFTER;
}

/* The number of a word, or -1 where it has none; may_add: it gets one where it comes often. */
static int word_number(struct compact *c, const char *text, size_t len, bool may_add)
{
	uint32_t hash = hash_of(text, len), at = hash % ARRAY_SIZE(c->index);

	if (len > WORD_MAX)
		return -1;
	for (; c->index[at]; at = (at + 1) % ARRAY_SIZE(c->index)) {
		const char *word = c->words[c->index[at] - 1];

		if (strlen(word) == len && memcmp(word, text, len) == 0)
			return c->index[at] - 1;
	}
	if (!may_add || c->count == COMPACT_WORDS || !comes_often(c, hash))
		return -1;
	c->words[c->count] = xstrndup(text, len);
	c->index[at] = (uint16_t)++c->count;
	return (int)c->count - 1;
}

static void put_string(struct compact *c, struct buf *b, const char *text, size_t len, bool may_add)
{
	int number = word_number(c, text, len, may_add);

	if (number >= 0 && number + TAG_FIRST_WORD < 256) {
		put_byte(b, (unsigned)number + TAG_FIRST_WORD);
	} else if (number >= 0) {
		put_byte(b, TAG_WORD);
		put_number(b, (uint64_t)number);
	} else {
		put_byte(b, TAG_STRING);
		put_number(b, len);
		buf_add(b, text, len);
	}
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_uuid(const char *text, unsigned char bytes[static 16])
{
	size_t n = 0;

	for (size_t i = 0; i < UUID_LEN; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i] != '-')
				return false;
			continue;
		}
		if (hex(text[i]) < 0 || hex(text[i + 1]) < 0)
			return false;
		bytes[n++] = (unsigned char)(hex(text[i]) << 4 | hex(text[i + 1]));
		i++;
	}
	return true;
}

static bool is_decimal(const char *text, size_t len)
{
	return len > 0 && len <= DECIMAL_MAX && strspn(text, "0123456789") == len &&
	       (*text != '0' || len == 1);
}

/* Names are each their own, however often one of them changes. */
static bool is_name(const char *key)
{
	return streq(key, "name") || streq(key, "volumeName");
}

static void write_string(struct compact *c, const json_t *value, bool may_add, struct buf *b)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);
	unsigned char uuid[16];

	if (is_decimal(text, len)) {
		put_byte(b, TAG_DECIMAL);
		put_number(b, strtoull(text, NULL, 10));
	} else if (len >= UUID_LEN && parse_uuid(text + len - UUID_LEN, uuid)) {
		put_byte(b, TAG_UUID);
		put_string(c, b, text, len - UUID_LEN, true);
		buf_add(b, uuid, sizeof(uuid));
	} else {
		put_string(c, b, text, len, may_add);
	}
}

static void write_value(struct compact *c, const json_t *value, bool may_add, struct buf *b)
{
	json_int_t integer = json_integer_value(value);
	double real = json_real_value(value);
	const char *key;
	json_t *item;
	size_t i;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_byte(b, TAG_OBJECT);
		put_number(b, json_object_size(value));
		json_object_foreach ((json_t *)value, key, item) {
			put_string(c, b, key, strlen(key), true);
			write_value(c, item, !is_name(key), b);
		}
		break;
	case JSON_ARRAY:
		put_byte(b, TAG_ARRAY);
		put_number(b, json_array_size(value));
		json_array_foreach (value, i, item)
			write_value(c, item, may_add, b);
		break;
	case JSON_STRING:
		write_string(c, value, may_add, b);
		break;
	case JSON_INTEGER:
		put_byte(b, TAG_INTEGER);
		put_number(b, ((uint64_t)integer << 1) ^ (uint64_t)(integer >> 63));
		break;
	case JSON_REAL:
		put_byte(b, TAG_REAL);
		buf_add(b, &real, sizeof(real));
		break;
	default:
		put_byte(b, json_is_true(value)	   ? TAG_TRUE
			    : json_is_false(value) ? TAG_FALSE
						   : TAG_NULL);
	}
}

void compact_write(struct compact *c, const json_t *value, struct buf *ret)
{
	pthread_mutex_lock(&c->lock);
	write_value(c, value, true, ret);
	pthread_mutex_unlock(&c->lock);
}

/* ---- reading ------------------------------------------------------------------------------------ */

struct input {
	const struct compact *compact;
	const unsigned char *at, *end;
	int depth;
};

static bool get_bytes(struct input *in, void *to, size_t len)
{
	if ((size_t)(in->end - in->at) < len)
		return false;
	memcpy(to, in->at, len);
	in->at += len;
	return true;
}

static bool get_number(struct input *in, uint64_t *ret)
{
	unsigned char byte;

	*ret = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!get_bytes(in, &byte, 1))
			return false;
		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* A string that was not taken apart: its bytes are the table's or the input's. */
static bool get_string(struct input *in, unsigned tag, const char **ret, size_t *ret_len)
{
	uint64_t n = tag - TAG_FIRST_WORD;

	if (tag < TAG_FIRST_WORD && !get_number(in, &n))
		return false;
	if (tag == TAG_STRING) {
		if (n > (size_t)(in->end - in->at))
			return false;
		*ret = (const char *)in->at;
		*ret_len = n;
		in->at += n;
		return true;
	}
	/* the table grows while others read: what an entry names was there before the entry */
	if ((tag != TAG_WORD && tag < TAG_FIRST_WORD) || n >= COMPACT_WORDS ||
	    !in->compact->words[n])
		return false;
	*ret = in->compact->words[n];
	*ret_len = strlen(*ret);
	return true;
}

static json_t *read_uuid(struct input *in)
{
	unsigned char tag, u[16];
	const char *before;
	size_t len;

	if (!get_bytes(in, &tag, 1) || !get_string(in, tag, &before, &len) ||
	    !get_bytes(in, u, sizeof(u)))
		return NULL;
	return json_sprintf(
		"%.*s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		(int)len, before, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10],
		u[11], u[12], u[13], u[14], u[15]);
}

static json_t *read_value(struct input *in);

static json_t *read_array(struct input *in, uint64_t count)
{
	cleanup_json json_t *array = json_array();

	while (count-- > 0) {
		json_t *item = read_value(in);

		if (!item)
			return NULL;
		json_array_append_new(array, item);
	}
	return TAKE_PTR(array);
}

static json_t *read_object(struct input *in, uint64_t count)
{
	cleanup_json json_t *object = json_object();

	while (count-- > 0) {
		unsigned char tag;
		const char *text;
		size_t len;
		json_t *item;

		if (!get_bytes(in, &tag, 1) || !get_string(in, tag, &text, &len))
			return NULL;
		item = read_value(in);
		if (!item)
			return NULL;
		json_object_setn_new_nocheck(object, text, len, item);
	}
	return TAKE_PTR(object);
}

static json_t *read_tagged(struct input *in, unsigned tag)
{
	uint64_t n = 0;
	double real;
	const char *text;
	char decimal[24];
	size_t len;

	switch (tag) {
	case TAG_NULL:
		return json_null();
	case TAG_FALSE:
		return json_false();
	case TAG_TRUE:
		return json_true();
	case TAG_INTEGER:
		return get_number(in, &n)
			       ? json_integer((json_int_t)(n >> 1) ^ -(json_int_t)(n & 1))
			       : NULL;
	case TAG_REAL:
		return get_bytes(in, &real, sizeof(real)) ? json_real(real) : NULL;
	case TAG_UUID:
		return read_uuid(in);
	case TAG_DECIMAL:
		if (!get_number(in, &n))
			return NULL;
		snprintf(decimal, sizeof(decimal), "%llu", (unsigned long long)n);
		return json_string_nocheck(decimal);
	case TAG_ARRAY:
		return get_number(in, &n) ? read_array(in, n) : NULL;
	case TAG_OBJECT:
		return get_number(in, &n) ? read_object(in, n) : NULL;
	default:
		return get_string(in, tag, &text, &len) ? json_stringn_nocheck(text, len) : NULL;
	}
}

static json_t *read_value(struct input *in)
{
	json_t *value = NULL;
	unsigned char tag;

	if (++in->depth <= DEPTH_MAX + 1 && get_bytes(in, &tag, 1))
		value = read_tagged(in, tag);
	in->depth--;
	return value;
}

json_t *compact_read(const struct compact *c, const void *data, size_t len)
{
	struct input in = { .compact = c, .at = data, .end = (const unsigned char *)data + len };
	json_t *value = read_value(&in);

	if (value && in.at != in.end) {
		json_decref(value);
		return NULL;
	}
	return value;
}
