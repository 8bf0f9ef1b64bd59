/* SPDX-License-Identifier: Apache-2.0 */
/* What devices answer: pages 0x83 and 0x80, NVMe descriptors; and names as people write them. */
#include "block/identity.h"

#include "base/mem.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was sent: printable names, which a record gives back as they were. */
static void check(const struct identity *id)
{
	cleanup_free char *text = NULL;
	struct identity again;

	if (identity_to_text(id, &text, NULL) < 0)
		abort();
	identity_from_text(text, &again);
	if (again.count != id->count || (id->count && !identity_same(id, &again)))
		abort();
	for (int i = 0; i < id->count; i++) {
		for (const char *p = id->names[i]; *p; p++)
			if (*p <= ' ' || *p == 0x7f)
				abort();
		if (!identity_is_called(id, id->names[i]))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct identity id = { 0 };
	cleanup_free char *name = NULL;

	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0:
		identity_from_page83(data + 1, size - 1, &id);
		break;
	case 1:
		identity_from_page80(data + 1, size - 1, &id);
		break;
	case 2:
		identity_from_nvme(data + 1, size - 1, &id);
		break;
	default:
		name = strndup((const char *)data + 1, size - 1);
		identity_add(&id, "naa", "600140501f1c2a9e", 16);
		if (name)
			identity_is_called(&id, name);
	}
	check(&id);
	return 0;
}
