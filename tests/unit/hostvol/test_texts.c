/* SPDX-License-Identifier: Apache-2.0 */
/* What vendors' software says and what others send in one string, taken apart. */
#include "core/params.h"
#include "drivers/disco_wire.h"
#include "drivers/scaleio_rest.h"
#include "drivers/share_text.h"
#include "drivers/vendor_text.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_disco(void **state)
{
	static const unsigned char attach[] = { 0,   24,  0,   1,   0,	 0,   0,   0,	1,
						2,   3,	  4,   'D', 'E', 'F', 'A', 'U', 'L',
						'T', '-', 'I', 'N', 'S', 'T', 'I', 'D' };
	unsigned char request[DISCO_REQUEST_LEN];
	struct error err = ERROR_INIT;

	disco_request(request, DISCO_ATTACH, 0x01020304);
	assert_memory_equal(request, attach, sizeof(request));
	disco_request(request, DISCO_DETACH, UINT64_MAX);
	assert_int_equal(request[3], 2);
	for (int i = 4; i < 12; i++)
		assert_int_equal(request[i], 0xff);
	assert_int_equal(disco_reply((const unsigned char *)"\0\0\0\0", 4, &err), 0);
	assert_int_equal(disco_reply((const unsigned char *)"\0\0\0\7", 4, &err), -EIO);
	assert_non_null(strstr(err.message, "code 7 "));
	assert_int_equal(disco_reply((const unsigned char *)"\0\0", 2, &err), -EBADMSG);
}

static void test_sds(void **state)
{
	struct sds_output out;

	assert_int_equal(
		sds_output_read("ret_code=0\ndev_addr=/dev/vdb\nret_desc=\"success\"", &out, NULL),
		0);
	assert_int_equal(out.code, 0);
	assert_string_equal(out.device, "/dev/vdb");
	assert_string_equal(out.words, "success");
	assert_int_equal(sds_output_read("noise\r\n ret_code=1\nret_code=50151401\r\n", &out, NULL),
			 0);
	assert_int_equal(out.code, 50151401);
	assert_string_equal(out.device, "");
	assert_int_equal(sds_output_read("", &out, NULL), -EBADMSG);
	assert_int_equal(sds_output_read("ret_code=", &out, NULL), -EBADMSG);
	assert_int_equal(sds_output_read("ret_code=zero", &out, NULL), -EBADMSG);
	assert_int_equal(sds_output_read("ret_code=99999999999999999999", &out, NULL), -EBADMSG);
	assert_int_equal(sds_output_read("ret_code=0\ndev_addr=vdb", &out, NULL), -EBADMSG);
	assert_int_equal(sds_output_read("ret_code=0\ndev_addr=/dev/../x", &out, NULL), -EBADMSG);
}

static void test_scaleio_replies(void **state)
{
	struct scaleio_reply r;

	assert_int_equal(scaleio_reply_read("\"token\"\n200", &r, NULL), 0);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.text, "token");
	assert_int_equal(
		scaleio_reply_read("{\"message\":\"no\\nway\",\"errorCode\":81}\n500", &r, NULL),
		0);
	assert_int_equal(r.status, 500);
	assert_int_equal(r.code, 81);
	assert_string_equal(r.message, "no?way");
	assert_string_equal(r.text, "");
	assert_int_equal(scaleio_reply_read("<html>\n</html>\n401", &r, NULL), 0);
	assert_int_equal(r.status, 401);
	assert_int_equal(r.code, 0);
	/* a code that is no number is none: 81 would mean that all is well */
	assert_int_equal(scaleio_reply_read("{\"errorCode\":\"81\"}\n500", &r, NULL), 0);
	assert_int_equal(r.code, 0);
	assert_int_equal(scaleio_reply_read("", &r, NULL), -EBADMSG);
	assert_int_equal(scaleio_reply_read("{}", &r, NULL), -EBADMSG);
	assert_int_equal(scaleio_reply_read("{}\n20x", &r, NULL), -EBADMSG);
}

static void test_scaleio_config(void **state)
{
	struct scaleio_request q = { .server = "fd00::1",
				     .port = "443",
				     .user = "u",
				     .secret = "p\"a\\s",
				     .path = "/api/login",
				     .verify = true };
	char text[2000];

	assert_int_equal(scaleio_config_write(&q, 1500, text, sizeof(text), NULL), 0);
	assert_non_null(strstr(text, "url = \"https://[fd00::1]:443/api/login\"\n"));
	assert_non_null(strstr(text, "user = \"u:p\\\"a\\\\s\"\n"));
	assert_non_null(strstr(text, "max-time = \"1.500\"\n"));
	assert_null(strstr(text, "insecure"));
	assert_null(strstr(text, "data-raw"));
	q.verify = false;
	q.body = "{\"a\":1}";
	assert_int_equal(scaleio_config_write(&q, 1500, text, sizeof(text), NULL), 0);
	assert_non_null(strstr(text, "\ninsecure\n"));
	assert_non_null(strstr(text, "data-raw = \"{\\\"a\\\":1}\"\n"));
	assert_int_equal(scaleio_config_write(&q, 1500, text, 60, NULL), -E2BIG);
}

static json_t *tidied(const char *driver_name, const char *text)
{
	cleanup_json json_t *data = json_loads(text, 0, NULL);
	const struct driver *d;
	struct error err = ERROR_INIT;
	json_t *out = NULL;

	assert_non_null(data);
	assert_int_equal(driver_find(driver_name, &d, NULL), 0);
	if (params_read(d, data, &out, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return out;
}

static void test_smb(void **state)
{
	cleanup_json json_t *p = tidied("cifs",
					"{\"export\":\"\\\\\\\\srv\\\\data\",\"options\":\"-o "
					"vers=3.0,user=u,password=hu$h,dom=D\"}"),
			    *q = tidied("SMB", "{\"export\":\"//srv/data\",\"user\":\"A\\\\b\","
					       "\"password\":\"x,y\",\"options\":\"pass=other\"}"),
			    *g = tidied("SMB", "{\"export\":\"//srv/data\"}");
	struct error err = ERROR_INIT;

	assert_string_equal(jstr(p, "export"), "//srv/data");
	assert_string_equal(jstr(p, "options"), "vers=3.0,username=u,domain=D");
	assert_string_equal(jstr(p, "password"), "hu$h");
	assert_string_equal(jstr(q, "options"), "username=A\\b");
	assert_string_equal(jstr(q, "password"), "x,y");
	assert_null(jget(g, "options"));
	assert_int_equal(check_smb_options("password=s3cret,ro;x", &err), -EINVAL);
	assert_null(strstr(err.message, "s3cret"));
	assert_int_equal(check_smb_options("ro,bind,password=x", NULL), -EINVAL);
	assert_int_equal(check_smb_export("//h", NULL), -EINVAL);
	assert_int_equal(check_smb_export("///s", NULL), -EINVAL);
	assert_int_equal(check_smb_export("//h/", NULL), -EINVAL);
	assert_int_equal(check_smb_export("//h/s/../t", NULL), -EINVAL);
	assert_int_equal(check_smb_export("//h/a,b", NULL), -EINVAL);
	assert_int_equal(check_smb_export("//-h/a", NULL), -EINVAL);
	assert_int_equal(check_smb_export("//[fd00::1]/a", NULL), 0);
}

static void test_vzstorage(void **state)
{
	cleanup_json json_t *p = tidied("VZSTORAGE", "{\"export\":\"h1:2510,h2:/c:pa:ss\"}"),
			    *q = tidied("VZSTORAGE", "{\"export\":\"c:x\",\"password\":\"y\"}");
	struct error err = ERROR_INIT;

	assert_string_equal(jstr(p, "export"), "h1:2510,h2:/c");
	assert_string_equal(jstr(p, "password"), "pa:ss");
	assert_string_equal(jstr(q, "export"), "c");
	assert_string_equal(jstr(q, "password"), "y");
	assert_int_equal(check_vz_export("h:/c/x:s3cret", &err), -EINVAL);
	assert_null(strstr(err.message, "s3cret"));
	assert_int_equal(check_vz_export(":/c", NULL), -EINVAL);
	assert_int_equal(check_vz_export("", NULL), -EINVAL);
	assert_int_equal(check_vz_export("-c", NULL), -EINVAL);
}

/* Numbers come as numbers or as strings, groups as objects. */
static void test_numbers_and_groups(void **state)
{
	cleanup_json json_t *p = tidied("disco", "{\"disco_id\":7,\"conf\":{\"server_ip\":\"::1\","
						 "\"server_port\":\"9\"}}"),
			    *q = tidied("disco", "{\"discoId\":\"7\",\"serverIP\":\"192.0.2.1\","
						 "\"serverPort\":9,\"conf\":null}");
	const struct driver *d;

	assert_string_equal(jstr(p, "discoId"), "7");
	assert_string_equal(jstr(p, "serverIp"), "::1");
	assert_string_equal(jstr(p, "serverPort"), "9");
	assert_null(jget(p, "conf"));
	assert_string_equal(jstr(q, "serverPort"), "9");
	assert_int_equal(driver_find("DISCO", &d, NULL), 0);
	for (int i = 0; i < 6; i++) {
		static const char *const bad[] = {
			"-1", "1.5", "true", "\"1e3\"", "\" 7\"", "\"99999999999999999999\""
		};
		cleanup_free char *text =
			xasprintf("{\"discoId\":%s,\"serverIp\":\"::1\",\"serverPort\":1}", bad[i]);
		cleanup_json json_t *data = json_loads(text, 0, NULL);
		json_t *out = NULL;

		assert_int_equal(params_read(d, data, &out, NULL), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disco),
		cmocka_unit_test(test_sds),
		cmocka_unit_test(test_scaleio_replies),
		cmocka_unit_test(test_scaleio_config),
		cmocka_unit_test(test_smb),
		cmocka_unit_test(test_vzstorage),
		cmocka_unit_test(test_numbers_and_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
