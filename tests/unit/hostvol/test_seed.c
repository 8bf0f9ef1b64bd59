/* SPDX-License-Identifier: Apache-2.0 */
/* The specification's own names, structures and JSON, as written there. */
#define HOSTVOL_SEED_NAMES
#include "fake_host.h"
#include "hostvol/hostvol.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_constants(void **state)
{
	static const char *const names[] = {
		ISCSI, ISER,	  FIBRE_CHANNEL, AOE,	  DRBD,
		NFS,   GLUSTERFS, LOCAL,	 GPFS,	  HUAWEISDSHYPERVISOR,
		HGST,  RBD,	  SCALEIO,	 SCALITY, QUOBYTE,
		DISCO, VZSTORAGE
	};
	cleanup_free char *text = NULL;
	cleanup_json json_t *table = NULL;

	assert_int_equal(hostvol_drivers_json(&text, NULL), 0);
	assert_int_equal(json_parse(text, strlen(text), &table, NULL), 0);
	/* these first; others are beyond the specification */
	assert_true(json_array_size(table) >= ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(jstr(json_array_get(table, i), "name"), names[i]);
	assert_string_equal(VOLUME_LINK_DIR, "/dev/disk/by-id/");
	assert_string_equal(PLATFORM_ALL PLATFORM_x86 PLATFORM_S390 PLATFORM_PPC64,
			    "ALLX86S390PPC64");
	assert_string_equal(OS_TYPE_ALL OS_TYPE_LINUX OS_TYPE_WINDOWS, "ALLLINUXWIN");
}

static void test_properties_json(void **state)
{
	static const char text[] =
		"{\"doLocalAttach\":true,\"platform\":\"X86\",\"osType\":\"LINUX\","
		"\"ip\":\"192.0.2.1\",\"host\":\"node-1\",\"multipath\":false,"
		"\"initiator\":\"iqn.1993-08.org.debian:01:5\"}";
	ConnectorProperties *p = NULL;
	cleanup_free char *out = NULL;

	assert_int_equal(hostvol_connector_properties_from_json(text, &p, NULL), 0);
	assert_true(p->do_local_attach);
	assert_string_equal(p->platform, PLATFORM_x86);
	assert_string_equal(p->initiator, "iqn.1993-08.org.debian:01:5");
	assert_int_equal(hostvol_connector_properties_to_json(p, &out, NULL), 0);
	assert_string_equal(out, text);
	hostvol_connector_properties_free(p);
}

static void test_iscsi_json(void **state)
{
	static const char text[] =
		"{\"targetDiscovered\":true,\"targetIqn\":\"iqn.2016-06.io:t\",\"targetPortal\":"
		"\"[fd00::1]:3260\",\"targetLun\":\"1\",\"volumeId\":\"9a0d35d0\",\"authUsername\":"
		"\"u\","
		"\"authPassword\":\"hush\"}";
	IscsiConnectionData *d = NULL;
	struct hostvol_error err = { 0 };
	cleanup_free char *out = NULL;

	assert_int_equal(hostvol_iscsi_connection_data_from_json(text, &d, NULL), 0);
	assert_true(d->target_discovered);
	assert_string_equal(d->target_lun, "1");
	assert_int_equal(hostvol_iscsi_connection_data_to_json(d, &out, NULL), 0);
	assert_string_equal(out, text);
	hostvol_iscsi_connection_data_free(d);
	/* a LUN that is a number, as others write it */
	assert_int_equal(hostvol_iscsi_connection_data_from_json("{\"targetLun\":3}", &d, NULL), 0);
	assert_string_equal(d->target_lun, "3");
	assert_string_equal(d->auth_password, "");
	hostvol_iscsi_connection_data_free(d);
	assert_int_equal(hostvol_iscsi_connection_data_from_json("{\"targetIqn\":[]}", &d, &err),
			 -EINVAL);
	assert_string_equal(err.message, "targetIqn: not a string");
}

static void test_connection_json(void **state)
{
	static const char text[] =
		"{\"driverVolumeType\":\"ISCSI\",\"data\":{\"targetDiscovered\":false,"
		"\"targetLun\":\"0\"}}";
	ConnectionInfo *c = NULL;
	cleanup_free char *out = NULL;

	assert_int_equal(hostvol_connection_info_from_json(text, &c, NULL), 0);
	assert_string_equal(c->driver_volume_type, ISCSI);
	assert_string_equal(c->data, "{\"targetDiscovered\":false,\"targetLun\":\"0\"}");
	assert_int_equal(hostvol_connection_info_to_json(c, &out, NULL), 0);
	assert_string_equal(out, text);
	hostvol_connection_info_free(c);
	/* flat, as CSI's volumeAttributes */
	assert_int_equal(
		hostvol_connection_info_from_json(
			"{\"driverVolumeType\":\"NFS\",\"export\":\"h:/e\",\"consumer\":\"x\"}", &c,
			NULL),
		0);
	assert_string_equal(c->data, "{\"export\":\"h:/e\"}");
	assert_string_equal(c->consumer, "x");
	hostvol_connection_info_free(c);
	assert_int_equal(hostvol_connection_info_from_json("{\"data\":[]}", &c, NULL), -EINVAL);
	assert_int_equal(hostvol_connection_info_from_json("7", &c, NULL), -EINVAL);
}

static void put(const char *root, const char *path, const char *text)
{
	cleanup_free char *full = xasprintf("%s%s", root, path), *dir = xstrdup(full);

	*strrchr(dir, '/') = '\0';
	assert_int_equal(mkdir_parents(dir, 0755, NULL), 0);
	assert_int_equal(file_write(full, text, strlen(text), 0644, NULL), 0);
}

static void test_get_connector_properties(void **state)
{
	struct fake *f = fake_new();
	char *root = temp_make();
	struct hostvol *h = NULL;
	cleanup_free char *before = NULL, *after = NULL;

	f->host.root = root;
	assert_int_equal(
		hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.host = &f->host },
			     &h, NULL),
		0);
	assert_int_equal(hostvol_get_connector_properties_json(h, true, false, &before, NULL), 0);
	assert_string_equal(before,
			    "{\"doLocalAttach\":false,\"platform\":\"S390\",\"osType\":\"LINUX\","
			    "\"ip\":\"192.0.2.1\",\"host\":\"fake\",\"multipath\":true,"
			    "\"initiator\":\"\"}");
	put(root, "/etc/iscsi/initiatorname.iscsi", "## a comment\nInitiatorName=iqn.x:1\n");
	put(root, "/etc/nvme/hostnqn", "nqn.2014-08.org.nvmexpress:uuid:1\n");
	put(root, "/etc/nvme/hostid", "  1-2\n");
	put(root, "/sys/class/dmi/id/product_uuid", "u-u\n");
	put(root, "/dev/scini", "");
	put(root, "/sys/class/fc_host/host2/port_name", "0x500a0982991b8dc5\n");
	put(root, "/sys/class/fc_host/host1/port_name", "0x100a0982991b8dc5\n");
	put(root, "/sys/class/fc_host/host1/node_name", "0x500a0982891b8dc5\n");
	assert_int_equal(hostvol_get_connector_properties_json(h, false, true, &after, NULL), 0);
	assert_string_equal(
		after, "{\"doLocalAttach\":true,\"platform\":\"S390\",\"osType\":\"LINUX\","
		       "\"ip\":\"192.0.2.1\",\"host\":\"fake\",\"multipath\":false,"
		       "\"initiator\":\"iqn.x:1\",\"nqn\":\"nqn.2014-08.org.nvmexpress:uuid:1\","
		       "\"hostId\":\"1-2\",\"systemUuid\":\"u-u\","
		       "\"sdcGuid\":\"41414141-4141-4141-4141-414141414141\","
		       "\"wwpns\":[\"100a0982991b8dc5\",\"500a0982991b8dc5\"],"
		       "\"wwnns\":[\"500a0982891b8dc5\"]}");
	hostvol_close(h);
	temp_remove(root);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_properties_json),
		cmocka_unit_test(test_iscsi_json),
		cmocka_unit_test(test_connection_json),
		cmocka_unit_test(test_get_connector_properties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
