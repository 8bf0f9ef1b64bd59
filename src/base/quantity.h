/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/*
 * Kubernetes quantities ("10Gi", "1.5G", "100m", "1e9") as whole bytes, rounded up.
 * -EINVAL: not a quantity, or negative; -ERANGE: does not fit.
 */
int quantity_parse(const char *text, int64_t *ret, struct error *err);
#define QUANTITY_TEXT_MAX 32
/* The shortest exact binary form: 10737418240 is "10Gi", 1000 is "1000". */
const char *quantity_text(int64_t bytes, char buf[static QUANTITY_TEXT_MAX]);
/* For people: "9.8Gi". */
const char *quantity_human(int64_t bytes, char buf[static QUANTITY_TEXT_MAX]);
