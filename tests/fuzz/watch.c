/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The events of a watch, in pieces whose size the first byte says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size > 0 ? 1 + data[0] % 64 : 1;
	struct watch_lines lines = { 0 };
	int rc = 0;

	for (size_t at = 0; at < size && rc >= 0; at += piece) {
		struct kube_event event;

		rc = watch_lines_feed(&lines, data + at, size - at < piece ? size - at : piece,
				      NULL);
		while (rc >= 0 && (rc = watch_lines_next(&lines, &event, NULL)) > 0)
			json_decref(event.object);
	}
	buf_done(&lines.buf);
	return 0;
}
