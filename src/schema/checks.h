/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "schema/schema.h"

/* Checks of single values, for `check` of a field: 0, or -EINVAL and a sentence without the field's name. */
int check_ip(const json_t *value, struct error *err);
int check_path(const json_t *value, struct error *err); /* absolute and clean */
int check_device(const json_t *value, struct error *err);
int check_directory(const json_t *value, struct error *err);
int check_label_name(const json_t *value, struct error *err); /* a DNS-1123 label */
int check_subdomain_name(const json_t *value, struct error *err); /* a DNS-1123 subdomain */
int check_qualified_name(const json_t *value,
			 struct error *err); /* [prefix/]name, as of labels and finalizers */
int check_labels(const json_t *value, struct error *err);
int check_annotations(const json_t *value, struct error *err);
int check_base64_map(const json_t *value, struct error *err);
int check_data_keys(const json_t *value, struct error *err);
int check_not_empty(const json_t *value, struct error *err);

/* "glusterd\n" in quotes, cut at 60 bytes, with everything escaped that a terminal would act on. */
#define QUOTED_MAX 260
const char *quoted(const char *text, char buf[static QUOTED_MAX]);

/* Fills in ret (may be NULL) with "path: message"; returns -EINVAL. */
int problem(struct schema_problem *ret, const char *path, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
