/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "base/yaml_scalar.h"

#include <stdio.h>
#include <yaml.h>

static int add_to_buf(void *userdata, unsigned char *data, size_t size)
{
	buf_add(userdata, data, size);
	return 1;
}

/* Each event is owned by the emitter from here on, also where it fails. */
static bool emit(yaml_emitter_t *e, yaml_event_t *event, int made)
{
	return made && yaml_emitter_emit(e, event);
}

static bool emit_scalar(yaml_emitter_t *e, const char *text, size_t len, yaml_scalar_style_t style)
{
	yaml_event_t event;

	return emit(e, &event,
		    yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
						 (int)len, 1, 1, style));
}

static bool emit_string(yaml_emitter_t *e, const char *text, size_t len)
{
	yaml_scalar_style_t style = YAML_PLAIN_SCALAR_STYLE;

	if (yaml_needs_quotes(text))
		style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	else if (strchr(text, '\n'))
		style = YAML_LITERAL_SCALAR_STYLE;
	return emit_scalar(e, text, len, style);
}

/* The shortest form that is read back as the same number, and as a real. */
static const char *real_text(double value, char buf[static 40])
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, 40, "%.*g", digits, value);
		if (strtod(buf, NULL) == value)
			break;
	}
	if (!strpbrk(buf, ".e"))
		strcat(buf, ".0");
	return buf;
}

static bool emit_value(yaml_emitter_t *e, const json_t *value);

static bool emit_object(yaml_emitter_t *e, const json_t *value)
{
	yaml_event_t event;
	const char *key;
	json_t *item;

	if (!emit(e, &event,
		  yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
						      YAML_BLOCK_MAPPING_STYLE)))
		return false;
	json_object_foreach ((json_t *)value, key, item) {
		if (!emit_string(e, key, strlen(key)) || !emit_value(e, item))
			return false;
	}
	return emit(e, &event, yaml_mapping_end_event_initialize(&event));
}

static bool emit_array(yaml_emitter_t *e, const json_t *value)
{
	yaml_event_t event;
	json_t *item;
	size_t i;

	if (!emit(e, &event,
		  yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
						       YAML_BLOCK_SEQUENCE_STYLE)))
		return false;
	json_array_foreach (value, i, item) {
		if (!emit_value(e, item))
			return false;
	}
	return emit(e, &event, yaml_sequence_end_event_initialize(&event));
}

static bool emit_plain(yaml_emitter_t *e, const char *text)
{
	return emit_scalar(e, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
}

static bool emit_value(yaml_emitter_t *e, const json_t *value)
{
	char number[40];

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return emit_object(e, value);
	case JSON_ARRAY:
		return emit_array(e, value);
	case JSON_STRING:
		return emit_string(e, json_string_value(value), json_string_length(value));
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		return emit_plain(e, number);
	case JSON_REAL:
		return emit_plain(e, real_text(json_real_value(value), number));
	case JSON_TRUE:
		return emit_plain(e, "true");
	case JSON_FALSE:
		return emit_plain(e, "false");
	case JSON_NULL:
		break;
	}
	return emit_plain(e, "null");
}

static bool emit_document(yaml_emitter_t *e, const json_t *value)
{
	yaml_event_t event;

	return emit(e, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
	       emit(e, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
	       emit_value(e, value) &&
	       emit(e, &event, yaml_document_end_event_initialize(&event, 1)) &&
	       emit(e, &event, yaml_stream_end_event_initialize(&event)) && yaml_emitter_flush(e);
}

char *yaml_text(const json_t *value)
{
	struct buf out = { 0 };
	yaml_emitter_t e;

	if (!value)
		return xstrdup("null\n");
	if (!yaml_emitter_initialize(&e))
		abort();
	yaml_emitter_set_output(&e, add_to_buf, &out);
	yaml_emitter_set_unicode(&e, 1);
	yaml_emitter_set_width(&e, -1);
	/* a json_t is always writable as YAML: only the want of memory makes this fail */
	if (!emit_document(&e, value))
		abort();
	yaml_emitter_delete(&e);
	return buf_take(&out);
}
