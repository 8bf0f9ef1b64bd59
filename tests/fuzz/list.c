/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drop(json_t *object, void *userdata)
{
	return 0;
}

/* A list, in pieces whose size the first byte says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece = size > 0 ? 1 + data[0] % 64 : 1;
	struct list_items items = { 0 };
	json_t *rest = NULL;
	int rc = 0;

	for (size_t at = 1; at < size && rc == 0; at += piece)
		rc = list_items_feed(&items, (const char *)data + at,
				     size - at < piece ? size - at : piece, drop, NULL, NULL);
	if (rc == 0 && list_items_end(&items, &rest, NULL) == 0)
		json_decref(rest);
	list_items_done(&items);
	return 0;
}
