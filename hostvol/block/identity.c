/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include "base/mem.h"
#include "core/recorded.h"
#include "sysfs.h"

#include <errno.h>
#include <stdio.h>

#define ASK_MS 10000
#define PAGE_MAX 1024

const char *const identity_keys[] = { "identity", NULL };

/* Whether it is what is recorded, where something is. */
static bool is_recorded(const struct identity *id, const char *recorded)
{
	struct identity before;

	identity_from_text(recorded, &before);
	return !before.count || identity_same(&before, id);
}

int identity_of_scsi(const struct call *c, const char *disk, const char *expected,
		     const char *recorded, struct identity *ret, struct error *err)
{
	unsigned char page[PAGE_MAX] = { 0 };
	struct identity id = { 0 };
	char path[DISK_NAME_MAX + 8];
	int r, left = call_left(c, ASK_MS, err);

	if (left < 0)
		return left;
	snprintf(path, sizeof(path), "/dev/%s", disk);
	r = c->host->inquiry(c->host, path, 0x83, page, sizeof(page), left);
	if (r >= 0)
		r = identity_from_page83(page, (size_t)r, &id);
	/* without page 0x83 the serial number is all there is; a device that does not answer is none */
	if (r < 0 && r != -EOPNOTSUPP && r != -EBADMSG)
		return error_errno(err, -r, "%s does not say which volume it is", path);
	if (!id.count || (expected && !identity_is_called(&id, expected)) ||
	    !is_recorded(&id, recorded)) {
		memset(page, 0, sizeof(page));
		r = c->host->inquiry(c->host, path, 0x80, page, 252, left);
		if (r >= 0)
			identity_from_page80(page, (size_t)r, &id);
	}
	if (!id.count)
		return error_set(err, ENODATA,
				 "%s has neither a name (page 0x83) nor a serial number (page "
				 "0x80): it cannot be told from another volume",
				 path);
	*ret = id;
	return 0;
}

/* What older controllers give instead of descriptors: a structure with NGUID and EUI64 in it. */
static void from_structure(const unsigned char *ns, struct identity *id)
{
	identity_add_hex(id, "nguid", ns + 104, 16);
	identity_add_hex(id, "eui", ns + 120, 8);
}

int identity_of_nvme(const struct call *c, const char *disk, struct identity *ret,
		     struct error *err)
{
	cleanup_free unsigned char *data = calloc(1, NVME_IDENTIFY_SIZE);
	struct identity id = { 0 };
	char path[DISK_NAME_MAX + 8];
	int r, left = call_left(c, ASK_MS, err);

	if (left < 0)
		return left;
	if (!data)
		return no_memory(err);
	snprintf(path, sizeof(path), "/dev/%s", disk);
	r = c->host->nvme_identify(c->host, path, 3, data, left);
	if (r >= 0)
		identity_from_nvme(data, NVME_IDENTIFY_SIZE, &id);
	if (!id.count) {
		r = c->host->nvme_identify(c->host, path, 0, data, left);
		if (r >= 0)
			from_structure(data, &id);
	}
	if (r < 0)
		return error_errno(err, -r, "%s does not say which volume it is", path);
	if (!id.count)
		return error_set(err, ENODATA,
				 "%s has neither UUID nor NGUID nor EUI64: it cannot be told from "
				 "another volume",
				 path);
	*ret = id;
	return 0;
}

/* A name that the other has not, where there is one: what tells the two apart. */
static const char *telling_name(const struct identity *id, const struct identity *other)
{
	for (int i = 0; i < id->count; i++) {
		bool common = false;

		for (int k = 0; k < other->count; k++)
			common |= streq(id->names[i], other->names[k]);
		if (!common)
			return id->names[i];
	}
	return id->names[0];
}

int identity_check(struct attachment *a, const char *where, const struct identity *live,
		   const char *expected, struct error *err)
{
	const char *recorded = attachment_detail(a, "identity");
	cleanup_free char *text = NULL;
	struct identity before;
	int r;

	if (expected && !identity_is_called(live, expected))
		return error_set(err, ESTALE,
				 "%.150s is %.100s, not %.100s as expected: another volume stands "
				 "there (see what the storage exports to this host, and the "
				 "parameter)",
				 where, live->names[0], expected);
	if (recorded[0]) {
		identity_from_text(recorded, &before);
		if (!identity_same(&before, live))
			return recorded_differs(a, where, telling_name(live, &before),
						telling_name(&before, live), err);
		return 0;
	}
	r = identity_to_text(live, &text, err);
	return r < 0 ? r : attachment_set_detail(a, "identity", text, err);
}
