/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include "base/quantity.h"

const struct field ITEM_STRING = F_STRING("", "A string.");
const struct field ITEM_TEXT = F_STRING("", "A text.", .max_len = TEXT_MAX);
const struct field ITEM_ANY = F_ANY("", "Anything.");
const struct field ITEM_SIZE = {
	.name = "",
	.type = FIELD_QUANTITY,
	.help = "A quantity such as 10Gi, 500M or a number of bytes.",
	.min = 1,
};

static const char *const condition_statuses[] = { "True", "False", "Unknown", NULL };
static const struct field condition_fields[] = {
	F_STRING("type", "What the condition is about, in CamelCase.", .required = true,
		 .max_len = 316),
	F_STRING("status", "Whether it holds: True, False or Unknown.", .required = true,
		 .values = condition_statuses),
	F_STRING("reason", "Why, as one word in CamelCase that a program can act on.",
		 .max_len = 1024),
	F_STRING("message", "Why, as a sentence for a person, with what to do about it.",
		 .max_len = 32768),
	F_COUNT("observedGeneration", "The metadata.generation for which this was found."),
	F_TIME("lastTransitionTime", "When status last changed."),
	F_TIME("lastProbeTime", "When the condition was last looked at."),
	F_END,
};
const struct field ITEM_CONDITION = F_OBJECT("", "One condition.", condition_fields);

static const char *const access_modes[] = { "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
					    "ReadWriteOncePod", NULL };
const struct field ITEM_ACCESS_MODE =
	F_STRING("", "A way to mount the volume.", .values = access_modes);

const char *const SYSTEM_TYPES[] = { "glusterfs", "torus", NULL };
const char *const VOLUME_MODES[] = { "Filesystem", "Block", NULL };
const char *const RECLAIM_POLICIES[] = { "Delete", "Retain", "Recycle", NULL };

const struct field FIELDS_OBJECT_REFERENCE[] = {
	F_STRING("apiVersion", "API version of the object."),
	F_STRING("kind", "Kind of the object."),
	F_STRING("namespace", "Namespace of the object."),
	F_STRING("name", "Name of the object."),
	F_STRING("uid", "UID of the object; a later object of the same name has another."),
	F_STRING("resourceVersion", "The version of the object that is meant, if it matters."),
	F_STRING("fieldPath",
		 "The part of the object that is meant, such as spec.containers{name}."),
	F_END,
};

const struct field FIELDS_SECRET_REFERENCE[] = {
	F_STRING("name", "Name of the Secret."),
	F_STRING("namespace", "Namespace of the Secret."),
	F_END,
};

static const char *const selector_operators[] = { "In", "NotIn", "Exists", "DoesNotExist", NULL };
static const struct field selector_expression_fields[] = {
	F_STRING("key", "The label's key.", .required = true, .check = check_qualified_name),
	F_STRING("operator", "How the label's value relates to values.", .required = true,
		 .values = selector_operators),
	F_STRINGS("values", "Values, for In and NotIn."),
	F_END,
};
static const struct field selector_expression =
	F_OBJECT("", "One requirement.", selector_expression_fields);
const struct field FIELDS_LABEL_SELECTOR[] = {
	F_MAP("matchLabels", "Labels that must be there with exactly these values.", &ITEM_STRING,
	      .check = check_labels),
	F_ARRAY("matchExpressions", "Requirements on labels; all must hold.", &selector_expression),
	F_END,
};

void cell_size(const json_t *bytes, struct buf *out)
{
	char text[QUANTITY_TEXT_MAX];

	buf_puts(out,
		 json_is_integer(bytes) ? quantity_human(json_integer_value(bytes), text) : "-");
}

void cell_access_modes(const json_t *modes, struct buf *out)
{
	static const char *const short_modes[] = { "RWO", "ROX", "RWX", "RWOP" };
	const char *comma = "";

	for (size_t m = 0; m < ARRAY_SIZE(short_modes); m++) {
		size_t i;
		json_t *mode;

		json_array_foreach (modes, i, mode) {
			if (!streq(json_string_value(mode), access_modes[m]))
				continue;
			buf_printf(out, "%s%s", comma, short_modes[m]);
			comma = ",";
			break;
		}
	}
}
