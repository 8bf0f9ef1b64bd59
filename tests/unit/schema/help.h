/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/mem.h"
#include "base/yaml.h"
#include "schema/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* One YAML document; the test fails where it is none. */
static inline json_t *from_yaml(const char *text)
{
	struct yaml_docs docs = { 0 };
	struct error err = ERROR_INIT;
	json_t *value;

	if (yaml_parse(text, strlen(text), "test", &docs, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(docs.count, 1);
	value = json_incref(docs.items[0].value);
	yaml_docs_done(&docs);
	return value;
}
