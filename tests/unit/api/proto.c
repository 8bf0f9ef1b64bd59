/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"
#include "unit.h"

#define TYPE                                                                                       \
	"\x0a\x0f\x0a\x02v1\x12\x09"                                                               \
	"ConfigMap"

/* Each field: number << 3 | 2, length, bytes. */
static void test_configmap(void **state)
{
	static const char data[] = "k8s\0" TYPE "\x12\x26"
				   /* metadata {name "m", labels {a: b}, creationTimestamp {}} */
				   "\x0a\x0d\x0a\x01m\x42\x00\x5a\x06\x0a\x01"
				   "a\x12\x01"
				   "b"
				   /* data {k: v}, binaryData {x: 00 ff}, immutable */
				   "\x12\x06\x0a\x01k\x12\x01v"
				   "\x1a\x07\x0a\x01x\x12\x02\x00\xff"
				   "\x20\x01"
				   "\x32\x02\x08\x01"; /* a field that we do not know */
	json_t *o = NULL;

	(void)state;
	assert_int_equal(sizeof(data) - 1 - 4 - 17 - 2, 0x26);
	if (proto_parse(data, sizeof(data) - 1, &o, &err) < 0)
		fail_msg("%s", err.message);
	assert_json(o, quoted("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'m','"
			      "labels':{'a':'b'}},"
			      "'data':{'k':'v'},'binaryData':{'x':'AP8='},'immutable':true}"));
	/* cut anywhere: refused or shorter, never read beyond */
	for (size_t len = 0; len < sizeof(data) - 1; len++) {
		cleanup_free char *copy = xmalloc(len + 1);

		memcpy(copy, data, len);
		o = NULL;
		proto_parse(copy, len, &o, NULL);
		json_decref(o);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		int rc;
	} cases[] = {
		{ "", 0, -EINVAL },
		{ "json", 4, -EINVAL },
		{ "k8s\0", 4, -ENOTSUP },
		{ "k8s\0\x0a\x05\x12\x03Pod", 11, -ENOTSUP },
		{ "k8s\0\x0b", 5, -EINVAL }, /* a group */
		{ "k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15,
		  -EINVAL }, /* longer than all */
		{ "k8s\0\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 16,
		  -EINVAL }, /* endless number */
	};
	json_t *o = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(proto_parse(cases[i].data, cases[i].len, &o, &err), cases[i].rc);
	assert_null(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_configmap),
					    cmocka_unit_test(test_refusals) };
	int rc = cmocka_run_group_tests_name("api proto", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
