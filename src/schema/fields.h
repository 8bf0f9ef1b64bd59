/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/mem.h"
#include "schema/checks.h"
#include "schema/schema.h"

/* How the tables are written: one line a field, NAME, HELP, then what else there is to say of it. */
#define F_STRING(n, h, ...)                                                                        \
	{                                                                                          \
		.name = n, .type = FIELD_STRING, .help = h, ##__VA_ARGS__                          \
	}
#define F_INTEGER(n, h, ...)                                                                       \
	{                                                                                          \
		.name = n, .type = FIELD_INTEGER, .help = h, ##__VA_ARGS__                         \
	}
#define F_NUMBER(n, h, ...)                                                                        \
	{                                                                                          \
		.name = n, .type = FIELD_NUMBER, .help = h, ##__VA_ARGS__                          \
	}
#define F_BOOLEAN(n, h, ...)                                                                       \
	{                                                                                          \
		.name = n, .type = FIELD_BOOLEAN, .help = h, ##__VA_ARGS__                         \
	}
#define F_TIME(n, h, ...)                                                                          \
	{                                                                                          \
		.name = n, .type = FIELD_TIME, .help = h, ##__VA_ARGS__                            \
	}
#define F_ANY(n, h, ...)                                                                           \
	{                                                                                          \
		.name = n, .type = FIELD_ANY, .help = h, ##__VA_ARGS__                             \
	}
#define F_OBJECT(n, h, f, ...)                                                                     \
	{                                                                                          \
		.name = n, .type = FIELD_OBJECT, .help = h, .fields = f, ##__VA_ARGS__             \
	}
#define F_ARRAY(n, h, i, ...)                                                                      \
	{                                                                                          \
		.name = n, .type = FIELD_ARRAY, .help = h, .items = i, ##__VA_ARGS__               \
	}
#define F_MAP(n, h, i, ...)                                                                        \
	{                                                                                          \
		.name = n, .type = FIELD_MAP, .help = h, .items = i, ##__VA_ARGS__                 \
	}
#define F_STRINGS(n, h, ...) F_ARRAY(n, h, &ITEM_STRING, ##__VA_ARGS__)
#define F_COUNT(n, h, ...) F_INTEGER(n, h, .min = 0, .max = INT64_MAX, ##__VA_ARGS__)
#define F_CONDITIONS                                                                               \
	F_ARRAY("conditions", "What is true of the object now, one entry for each type.",          \
		&ITEM_CONDITION, .list_map_key = "type")
/* Cells of `get` that are computed, for those who can only read: see schema_display. */
#define F_DISPLAY(f)                                                                               \
	F_OBJECT("display", "Texts for people: columns of `get` that are made of several fields.", f)
#define F_END                                                                                      \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* Long texts: messages, values of ConfigMaps. The whole object is limited elsewhere. */
#define TEXT_MAX (2U << 20)

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Elements and groups of fields that several kinds share. */
extern const struct field ITEM_STRING, ITEM_TEXT, ITEM_ANY, ITEM_SIZE, ITEM_CONDITION,
	ITEM_ACCESS_MODE;
extern const struct field FIELDS_OBJECT_REFERENCE[], FIELDS_SECRET_REFERENCE[],
	FIELDS_LABEL_SELECTOR[];
extern const char *const SYSTEM_TYPES[], *const VOLUME_MODES[], *const RECLAIM_POLICIES[];

#define C_STRING(n, p, h, ...)                                                                     \
	{                                                                                          \
		.name = n, .type = "string", .path = p, .help = h, ##__VA_ARGS__                   \
	}
#define C_INTEGER(n, p, h, ...)                                                                    \
	{                                                                                          \
		.name = n, .type = "integer", .path = p, .help = h, ##__VA_ARGS__                  \
	}
#define C_DATE(n, p, h, ...)                                                                       \
	{                                                                                          \
		.name = n, .type = "date", .path = p, .help = h, ##__VA_ARGS__                     \
	}
#define C_CELL(n, c, h, ...)                                                                       \
	{                                                                                          \
		.name = n, .type = "string", .cell = c, .help = h, ##__VA_ARGS__                   \
	}
#define C_END                                                                                      \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* "string", "[]object", "map[string]string" */
void field_type_name(const struct field *f, struct buf *out);

/* Pieces of cells. A size for people, or "-" where it is not known. */
void cell_size(const json_t *bytes, struct buf *out);
void cell_access_modes(const json_t *modes, struct buf *out);
