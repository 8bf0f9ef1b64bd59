/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"
#include "base/mem.h"

#include <errno.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads anything without harm; and what was read, printed and read again, is the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct yaml_docs docs = { 0 };
	struct error err = ERROR_INIT;

	if (yaml_parse((const char *)data, size, "fuzz", &docs, &err) < 0) {
		if (!err.code || !err.message[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < docs.count; i++) {
		cleanup_with(yaml_docs_done) struct yaml_docs again = { 0 };
		cleanup_free char *text = yaml_text(docs.items[i].value);

		yaml_line_of(&docs.items[i], "spec.devices[1].a");
		/* printed text may exceed the limit on text that is read */
		if (yaml_parse(text, strlen(text), "again", &again, &err) < 0) {
			if (err.code != EFBIG)
				abort();
		} else if (again.count != 1 ||
			   !json_equal(again.items[0].value, docs.items[i].value)) {
			abort();
		}
	}
	yaml_docs_done(&docs);
	return 0;
}
