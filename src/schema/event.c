/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <ctype.h>

static const char *const types[] = { "Normal", "Warning", NULL };

static const struct field source_fields[] = {
	F_STRING("component", "The program that saw it."),
	F_STRING("host", "The machine on which it runs."),
	F_END,
};

static const struct field series_fields[] = {
	F_COUNT("count", "How often it happened."),
	F_TIME("lastObservedTime", "When it last happened."),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("involvedObject", "The object that it happened to.", FIELDS_OBJECT_REFERENCE,
		 .required = true),
	F_STRING("reason", "What happened, as one word in CamelCase."),
	F_STRING("message", "What happened, as a sentence.", .max_len = 32768),
	F_OBJECT("source", "Who saw it.", source_fields),
	F_TIME("firstTimestamp", "When it first happened."),
	F_TIME("lastTimestamp", "When it last happened."),
	F_COUNT("count", "How often it happened."),
	F_STRING("type", "Normal or Warning.", .values = types),
	F_TIME("eventTime", "When it first happened, to the microsecond."),
	F_OBJECT("series", "What is known of its repetitions.", series_fields),
	F_STRING("action", "What was done or failed."),
	F_OBJECT("related", "Another object that has to do with it.", FIELDS_OBJECT_REFERENCE),
	F_STRING("reportingComponent", "The program that reports it."),
	F_STRING("reportingInstance", "The instance of that program."),
	F_END,
};

static void cell_last_seen(const json_t *o, struct buf *out)
{
	const char *times[] = { jstr(o, "series", "lastObservedTime"), jstr(o, "lastTimestamp"),
				jstr(o, "eventTime"), jstr(o, "metadata", "creationTimestamp") };

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (!times[i])
			continue;
		buf_puts(out, times[i]);
		return;
	}
}

static void cell_object(const json_t *o, struct buf *out)
{
	const char *kind = jstr(o, "involvedObject", "kind"),
		   *name = jstr(o, "involvedObject", "name");

	for (const char *c = kind ? kind : ""; *c; c++)
		buf_printf(out, "%c", tolower((unsigned char)*c));
	buf_printf(out, "/%s", name ? name : "");
}

static void cell_message(const json_t *o, struct buf *out)
{
	const char *message = jstr(o, "message");
	size_t len = message ? strlen(message) : 0;

	while (len > 0 && isspace((unsigned char)message[len - 1]))
		len--;
	buf_add(out, message ? message : "", len);
}

static const struct column columns[] = {
	{ .name = "Last Seen",
	  .type = "date",
	  .cell = cell_last_seen,
	  .help = "Time since it last happened." },
	C_STRING("Type", ".type", "Normal or Warning."),
	C_STRING("Reason", ".reason", "What happened, as one word."),
	C_CELL("Object", cell_object, "The object that it happened to."),
	C_STRING("Source", ".source.component", "Who saw it.", .priority = 1),
	C_CELL("Message", cell_message, "What happened."),
	C_INTEGER("Count", ".count", "How often it happened.", .priority = 1),
	C_STRING("Name", ".metadata.name", "Name of the event.", .priority = 1),
	C_END,
};

const struct kind KIND_EVENT = {
	.group = "",
	.version = "v1",
	.kind = "Event",
	.plural = "events",
	.singular = "event",
	.short_names = WORDS("ev"),
	.help = "Something that happened to an object.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
	.own_columns = true,
};
