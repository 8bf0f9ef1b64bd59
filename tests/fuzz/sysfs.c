/* SPDX-License-Identifier: Apache-2.0 */
/* Values of sysfs files, and the addresses that are compared with them. */
#include "block/scsi.h"
#include "drivers/iscsi.h"
#include "drivers/nvme.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A tree in which one disk and one session have this value everywhere. */
static void read_tree(const char *text)
{
	static char root[] = "/tmp/hostvol-fuzz.XXXXXX";
	static bool made;
	static struct hostvol h = { .state_dir = (char *)"/s", .run_dir = (char *)"/r" };
	struct hostvol_host host = host_real;
	struct call c = { .h = &h, .host = &host, .deadline_ms = INT64_MAX };
	char path[100];
	struct disk d;
	uint64_t number;
	FILE *f;

	if (!made && !mkdtemp(root))
		abort();
	made = true;
	host.root = root;
	snprintf(path, sizeof(path), "%s/value", root);
	f = fopen(path, "we");
	if (!f)
		abort();
	fputs(text, f);
	fclose(f);
	sys_number(&c, &number, "/value");
	disk_read(&c, text, &d);
	unlink(path);
	rmdir(root);
	made = false;
	snprintf(root, sizeof(root), "/tmp/hostvol-fuzz.XXXXXX");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = strndup((const char *)data, size);
	struct nvme_address a = { 0 }, b = { 0 };
	struct iscsi_path p;
	uint64_t lun;

	if (!text)
		return 0;
	read_tree(text);
	nvme_address_parse(text, &a);
	if (!nvme_address_same(&a, &a))
		abort();
	/* what becomes part of the kernel's options cannot add one */
	if (nvme_portal_parse(text, "tcp", "4420", &b, NULL) >= 0 &&
	    (strchr(b.traddr, ',') || strchr(b.trsvcid, ',') || !b.traddr[0]))
		abort();
	/* nor a portal a line or a directory */
	if (iscsi_portal_parse(text, &p, NULL) >= 0 && (strpbrk(p.host, "/\n ") || !p.port))
		abort();
	if (scsi_lun(text, NULL, &lun, NULL) >= 0 && lun > 16383)
		abort();
	return 0;
}
