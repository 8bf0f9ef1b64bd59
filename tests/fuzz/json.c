/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads anything without harm; and what was read, printed and read again, is the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *value = NULL, *again = NULL;
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;

	if (json_parse((const char *)data, size, &value, &err) < 0) {
		if (!err.code || !err.message[0])
			abort();
		return 0;
	}
	text = json_text(value);
	if (json_parse(text, strlen(text), &again, &err) < 0 || !json_equal(value, again))
		abort();
	return 0;
}
