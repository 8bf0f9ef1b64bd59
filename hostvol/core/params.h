/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver.h"

/*
 * Reads a connection's data by the driver's table: gives an object with the table's own spelling
 * of every parameter that was given, checked. -EINVAL: unknown (with a suggestion), missing,
 * given twice, of the wrong type.
 */
int params_read(const struct driver *driver, const json_t *data, json_t **ret, struct error *err);
/* A copy without the secret ones, for records; new reference. */
int params_without_secrets(const struct driver *driver, const json_t *params, json_t **ret,
			   struct error *err);
/* Whether two sets mean the same volume. */
bool params_same_volume(const struct driver *driver, const json_t *a, const json_t *b);
/* Whether key is a spelling of the parameter. */
bool param_matches(const struct param *p, const char *key);

/* Checks that several drivers share. */
int check_clean_path(const char *value, struct error *err);
int check_sub_path(const char *value, struct error *err);
int check_mount_options(const char *value, struct error *err);
/* Mount options without the "-o " that some send before them. */
const char *options_text(const char *value);
/* HOST:/PATH; the host is a name, an address or an address in brackets. */
int check_export(const char *value, struct error *err);
