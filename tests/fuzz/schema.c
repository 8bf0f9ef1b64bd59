/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema.h"
#include "base/mem.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An object of anybody's making: it is refused with a sentence, or taken and then stays good. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *object = NULL, *items = NULL, *table = NULL;
	struct schema_problem problem = { 0 };
	struct error err = ERROR_INIT;
	const struct kind *k;
	int strict;

	if (json_parse((const char *)data, size, &object, &err) < 0)
		return 0;
	if (schema_identify(object, &k, &err) < 0) {
		assert(err.message[0]);
		return 0;
	}
	items = json_pack("[O]", object);
	table = schema_table(k, items, "1", true, 1700000000000);
	strict = schema_validate(k, object, NULL, true, &problem);
	assert(strict == 0 || (problem.path[0] && problem.error.message[0]));

	schema_default(k, object);
	schema_prune(k, object);
	if (strict == 0) {
		assert(schema_validate(k, object, NULL, true, &problem) == 0);
		assert(schema_validate(k, object, object, true, &problem) == 0);
	}
	return 0;
}
