/* SPDX-License-Identifier: Apache-2.0 */
/* What devices say of themselves, and what people write of them. */
#include "block/identity.h"
#include "block/scsi.h"
#include "core/params.h"
#include "drivers/iscsi.h"
#include "drivers/nvme.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* As LIO sends it: NAA, T10, then what is of ports and of the target. */
static size_t lio_page(unsigned char *page, unsigned char naa, const char *serial)
{
	static const unsigned char port[] = { 0x51, 0x94, 0, 4, 0, 0, 0, 1 };
	static const char target[] = "iqn.2026-01.net.example:t1";
	size_t at = 4, len = 8 + strlen(serial) + 1;

	memset(page, 0, 512);
	page[1] = 0x83;
	memcpy(page + at, (unsigned char[]){ 1, 3, 0, 16, 0x60, 0x01, 0x40, 0x50, naa }, 9);
	at += 20;
	memcpy(page + at, (unsigned char[]){ 2, 1, 0, (unsigned char)len }, 4);
	memcpy(page + at + 4, "LIO-ORG ", 8);
	memcpy(page + at + 12, serial, strlen(serial));
	at += 4 + len;
	memcpy(page + at, port, sizeof(port));
	at += sizeof(port);
	memcpy(page + at, (unsigned char[]){ 0x53, 0xa8, 0, sizeof(target) }, 4);
	memcpy(page + at + 4, target, sizeof(target));
	at += 4 + sizeof(target);
	page[2] = (unsigned char)((at - 4) >> 8);
	page[3] = (unsigned char)(at - 4);
	return at;
}

/* Trap 3: all designators count, and only those of the unit. */
static void test_trap_3_designators(void **state)
{
	unsigned char page[512];
	struct identity id = { 0 };
	size_t len = lio_page(page, 0x1f, "disk:1f1c2a9e-0000");

	assert_int_equal(identity_from_page83(page, len, &id), 0);
	assert_int_equal(id.count, 2);
	assert_string_equal(id.names[0], "naa.600140501f0000000000000000000000");
	assert_string_equal(id.names[1], "t10.lio-org_disk:1f1c2a9e-0000");
	/* cut at every length: never beyond its end, never a half one */
	for (size_t i = 0; i < len; i++) {
		struct identity part = { 0 };
		cleanup_free unsigned char *copy = malloc(i + 1);

		memcpy(copy, page, i);
		identity_from_page83(copy, i, &part);
		assert_true(part.count <= 2);
	}
	page[1] = 0x80;
	assert_int_equal(identity_from_page83(page, len, &id), -EBADMSG);
}

/* Trap 1: two volumes whose NAA is the same, as some storage cuts it short. */
static void test_trap_1_same_naa(void **state)
{
	unsigned char page[512];
	struct identity a = { 0 }, b = { 0 }, c = { 0 }, none = { 0 };

	identity_from_page83(page, lio_page(page, 0x1f, "disk:aaaa"), &a);
	identity_from_page83(page, lio_page(page, 0x1f, "disk:bbbb"), &b);
	identity_from_page83(page, lio_page(page, 0x1f, "disk:aaaa"), &c);
	assert_false(identity_same(&a, &b));
	assert_true(identity_same(&a, &c));
	assert_false(identity_same(&a, &none));
	/* one more name than before, after the storage was upgraded */
	identity_add(&c, "serial", "77", 2);
	assert_true(identity_same(&a, &c) && identity_same(&c, &a));
}

static void test_names(void **state)
{
	static const char *const right[] = { "naa.600140501f0000000000000000000000",
					     "600140501F0000000000000000000000",
					     "0x600140501f0000000000000000000000",
					     "wwn-0x600140501f0000000000000000000000",
					     "3600140501f0000000000000000000000",
					     "mpath-3600140501f0000000000000000000000",
					     "scsi-3600140501f0000000000000000000000",
					     "3F1C2A9E-0000-4000-8000-000000000001",
					     "3f1c2a9e000040008000000000000001",
					     "uuid.3f1c2a9e-0000-4000-8000-000000000001",
					     "Disk One",
					     "serial.disk_one" };
	static const char *const wrong[] = { "",	   "naa.",
					     "3",	   "0x",
					     "600140501f", "600140501f0000000000000000000001",
					     "disk",	   "disk onex",
					     "6.00140501f" };
	struct identity id = { 0 }, again;
	cleanup_free char *text = NULL;

	identity_add(&id, "naa", "600140501f0000000000000000000000", 32);
	identity_add(&id, "uuid", "3f1c2a9e000040008000000000000001", 32);
	identity_add(&id, "serial", "Disk  One   ", 12);
	identity_add(&id, "serial", "    ", 4);
	assert_int_equal(id.count, 3);
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		if (!identity_is_called(&id, right[i]))
			fail_msg("%s is its name", right[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (identity_is_called(&id, wrong[i]))
			fail_msg("\"%s\" is not its name", wrong[i]);
	assert_int_equal(identity_to_text(&id, &text, NULL), 0);
	identity_from_text(text, &again);
	assert_memory_equal(&id, &again, sizeof(id));
}

static void test_nvme_descriptors(void **state)
{
	unsigned char list[64] = { 1, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 16, 0, 0, 0x3f, 0x1c };
	struct identity id = { 0 };

	assert_int_equal(identity_from_nvme(list, sizeof(list), &id), 0);
	assert_int_equal(id.count, 2);
	assert_string_equal(id.names[0], "eui.0102030405060708");
	assert_string_equal(id.names[1], "uuid.3f1c0000000000000000000000000000");
	list[13] = 60;
	id.count = 0;
	assert_int_equal(identity_from_nvme(list, sizeof(list), &id), -EBADMSG);
}

/* Trap 14 */
static void test_trap_14_luns(void **state)
{
	static const struct {
		const char *text, *mode;
		uint64_t lun;
	} right[] = { { "0", NULL, 0 },		 { "255", "SAM2", 255 },
		      { "256", "SAM2", 16640 },	 { "256", "transparent", 256 },
		      { "300", NULL, 300 },	 { "5", "SAM3-flat", 16389 },
		      { "16383", "SAM2", 32767 } };
	static const char *const wrong[] = { "",  "-1", "x", "1x", "16384", "99999999999999999999",
					     " 1" };
	uint64_t lun;

	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_int_equal(scsi_lun(right[i].text, right[i].mode, &lun, NULL), 0);
		assert_int_equal(lun, right[i].lun);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(scsi_lun(wrong[i], NULL, &lun, NULL), -EINVAL);
}

/* Trap 15 */
static void test_trap_15_portals(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port;
	} right[] = { { "192.0.2.1:3261", "192.0.2.1", 3261 },
		      { "192.0.2.1", "192.0.2.1", 3260 },
		      { "[2001:db8::1]:3261", "2001:db8::1", 3261 },
		      { "[2001:DB8::1]", "2001:DB8::1", 3260 },
		      { "2001:db8::1", "2001:db8::1", 3260 },
		      { "[fe80::1%eth0]:1", "fe80::1%eth0", 1 },
		      { "array.example.net:3260", "array.example.net", 3260 } };
	static const char *const wrong[] = { "",    ":3260", "[::1", "[::1]3260", "a:0", "a:65536",
					     "a:x", "a b",   "a/b",  "[]:1",	  "a\nb" };
	struct iscsi_path p;

	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_int_equal(iscsi_portal_parse(right[i].text, &p, NULL), 0);
		assert_string_equal(p.host, right[i].host);
		assert_int_equal(p.port, right[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(iscsi_portal_parse(wrong[i], &p, NULL), -EINVAL);
}

static void test_nvme_portals(void **state)
{
	static const struct {
		const char *text, *transport, *traddr, *trsvcid;
	} right[] = { { "192.0.2.1", "tcp", "192.0.2.1", "4420" },
		      { "192.0.2.1:8009", "tcp", "192.0.2.1", "8009" },
		      { "[2001:db8::1]:8009", "tcp", "2001:db8::1", "8009" },
		      { "rdma://192.0.2.1:4421", "rdma", "192.0.2.1", "4421" },
		      { "192.0.2.1;4421;RDMA", "rdma", "192.0.2.1", "4421" },
		      { "192.0.2.1;4421;RoCEv2", "rdma", "192.0.2.1", "4421" },
		      { "2001:db8::1;4420;rdma", "rdma", "2001:db8::1", "4420" },
		      { "[2001:db8::1];4420;tcp", "tcp", "2001:db8::1", "4420" },
		      { "2001:db8::1", "tcp", "2001:db8::1", "4420" },
		      { "storage.example:65535", "tcp", "storage.example", "65535" },
		      { "FC://nn-0x1:pn-2", "fc", "nn-0x0000000000000001:pn-0x0000000000000002",
			"" },
		      { "nn-0x20000090FA942779:pn-0x10000090fa942779;none;fc", "fc",
			"nn-0x20000090fa942779:pn-0x10000090fa942779", "" } };
	static const char *const wrong[] = { "",
					     "tcp://",
					     "udp://192.0.2.1",
					     "a,nqn=b",
					     "a:b",
					     "a;;tcp",
					     "a:0",
					     "a:65536",
					     "[::1",
					     "[::1]x",
					     "a;1;roce",
					     "fc://192.0.2.1",
					     "fc://nn-0x1",
					     "fc://nn-0x:pn-0x2",
					     "fc://nn-0x1:pn-0x2x",
					     "fc://nn-0x11112222333344445:pn-0x2",
					     "fc://pn-0x2:nn-0x1" };
	struct nvme_address a;

	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_int_equal(nvme_portal_parse(right[i].text, "tcp", "4420", &a, NULL), 0);
		assert_string_equal(a.transport, right[i].transport);
		assert_string_equal(a.traddr, right[i].traddr);
		assert_string_equal(a.trsvcid, right[i].trsvcid);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(nvme_portal_parse(wrong[i], "tcp", "4420", &a, NULL), -EINVAL);
}

static json_t *read_params(const char *driver, const char *json, int expected)
{
	cleanup_json json_t *data = json_loads(json, 0, NULL);
	const struct driver *d;
	struct error err = ERROR_INIT;
	json_t *out = NULL;

	assert_int_equal(driver_find(driver, &d, NULL), 0);
	assert_int_equal(params_read(d, data, &out, &err), expected);
	return out;
}

/* Over Fibre Channel the kernel asks by which of this host's ports. */
static void test_nvme_targets(void **state)
{
	static const char *const texts[] = {
		"{\"nqn\":\"n\",\"nsid\":1,\"portal\":\"nn-0x1:pn-0x2\",\"transport\":\"fc\"}",
		"{\"nqn\":\"n\",\"nsid\":1,\"portal\":\"nn-0x1:pn-0x2\",\"transport\":\"fc\","
		"\"hostTraddr\":\"192.0.2.1\"}",
		"{\"nqn\":\"n\",\"nsid\":1,\"portal\":\"nn-0x1:pn-0x2\",\"transport\":\"fc\","
		"\"host_traddr\":\"nn-0xA:pn-0xB\"}",
		"{\"nqn\":\"n\",\"nsid\":1,\"target_portal\":\"192.0.2.1\",\"target_port\":"
		"\"4421\","
		"\"transport_type\":\"RoCEv2\",\"hostTraddr\":\"192.0.2.9\"}",
	};
	struct nvme_target t;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_json json_t *params = read_params("NVMEOF", texts[i], 0);
		struct attachment a = { .params = params };
		int r = nvme_target_read(&a, &t, NULL);

		assert_int_equal(r, i < 2 ? -EINVAL : 0);
		if (i == 2)
			assert_string_equal(t.portals[0].host_traddr,
					    "nn-0x000000000000000a:pn-0x000000000000000b");
	}
	assert_string_equal(t.portals[0].transport, "rdma");
	assert_string_equal(t.portals[0].trsvcid, "4421");
	assert_string_equal(t.portals[0].host_traddr, "192.0.2.9");
}

/* Trap 4: the kernel adds where the connection leaves from. */
static void test_trap_4_address(void **state)
{
	struct nvme_address seen = { .transport = "tcp" }, wanted = { .transport = "tcp" };

	nvme_address_parse("traddr=127.0.0.1,trsvcid=4420,src_addr=127.0.0.1\n", &seen);
	nvme_address_parse("traddr=127.0.0.1,trsvcid=4420", &wanted);
	assert_true(nvme_address_same(&seen, &wanted));
	nvme_address_parse("traddr=127.0.0.1,trsvcid=4421", &wanted);
	assert_false(nvme_address_same(&seen, &wanted));
	nvme_address_parse("xtraddr=1,traddr=", &seen);
	assert_string_equal(seen.traddr, "");
}

/* As os-brick's callers send them: one of each, and beside it the lists. */
static void test_lists(void **state)
{
	cleanup_json json_t *a =
		read_params("ISCSI",
			    "{\"target_iqn\":\"i\",\"target_portal\":\"p1:1\",\"target_lun\":7,"
			    "\"target_portals\":[\"p1:1\",\"p2:1\"],"
			    "\"target_iqns\":[\"i\",\"j\"],\"target_luns\":[7,8]}",
			    0);
	cleanup_json json_t *b =
		read_params("nvme",
			    "{\"target_nqn\":\"n\",\"vol_uuid\":null,\"ns_id\":3,"
			    "\"portals\":[[\"a\",4420,\"tcp\"],[\"b\",\"1\",\"rdma\"]]}",
			    0);

	assert_string_equal(jstr(a, "targetPortal"), "p1:1,p2:1");
	assert_string_equal(jstr(a, "targetIqn"), "i,j");
	assert_string_equal(jstr(a, "targetLun"), "7,8");
	assert_string_equal(jstr(b, "targetPortal"), "a;4420;tcp,b;1;rdma");
	assert_string_equal(jstr(b, "nsId"), "3");
	read_params("ISCSI", "{\"targetIqn\":\"i\",\"targetPortal\":\"p\",\"targetLun\":[{}]}",
		    -EINVAL);
	read_params(
		"ISCSI",
		"{\"targetIqn\":\"i\",\"targetPortal\":\"p\",\"targetLun\":1,\"targetLuns\":[2]}",
		-EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trap_3_designators),
		cmocka_unit_test(test_trap_1_same_naa),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nvme_descriptors),
		cmocka_unit_test(test_trap_14_luns),
		cmocka_unit_test(test_trap_15_portals),
		cmocka_unit_test(test_nvme_portals),
		cmocka_unit_test(test_nvme_targets),
		cmocka_unit_test(test_trap_4_address),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
