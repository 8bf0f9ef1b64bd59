/* SPDX-License-Identifier: Apache-2.0 */
#include "core/params.h"
#include "drivers/glusterfs_args.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct driver *driver(const char *name)
{
	const struct driver *d = NULL;

	assert_int_equal(driver_find(name, &d, NULL), 0);
	return d;
}

static json_t *read_ok(const char *name, const char *text)
{
	cleanup_json json_t *data = json_loads(text, 0, NULL);
	struct error err = ERROR_INIT;
	json_t *out = NULL;

	assert_non_null(data);
	if (params_read(driver(name), data, &out, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return out;
}

static void refused(const char *name, const char *text, int code, const char *words)
{
	cleanup_json json_t *data = json_loads(text, 0, NULL);
	struct error err = ERROR_INIT;
	json_t *out = NULL;

	assert_non_null(data);
	assert_int_equal(params_read(driver(name), data, &out, &err), -code);
	assert_null(out);
	if (!strstr(err.message, words))
		fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, words);
}

static void test_spellings(void **state)
{
	static const char *const texts[] = {
		"{\"export\":\"h:/e\",\"mountPointBase\":\"/m\"}",
		"{\"export\":\"h:/e\",\"mount_point_base\":\"/m\"}",
		"{\"exports\":\"h:/e\",\"mount_point_bases\":\"/m\"}",
		"{\"export\":\"h:/e\",\"mountPointBase\":\"/m\",\"mount_point_base\":\"/m\"}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_json json_t *p = read_ok("NFS", texts[i]);

		assert_string_equal(jstr(p, "export"), "h:/e");
		assert_string_equal(jstr(p, "mountPointBase"), "/m");
		assert_int_equal(json_object_size(p), 2);
	}
	refused("NFS", "{\"export\":\"h:/e\",\"exports\":\"h:/f\"}", EINVAL, "given twice");
	refused("NFS", "{\"export\":\"h:/e\",\"mountPoint_base\":\"/m\"}", EINVAL, "no parameter");
	refused("NFS", "{\"export\":\"h:/e\",\"mountpointbase\":\"/m\"}", EINVAL,
		"did you mean \"mountPointBase\"");
}

static void test_what_others_send(void **state)
{
	cleanup_json json_t *p = read_ok(
		"NFS", "{\"export\":\"h:/e\",\"qos_specs\":null,\"access_mode\":\"rw\","
		       "\"encrypted\":false,\"cacheable\":true,\"discard\":1,\"name\":\"\"}");

	assert_null(jget(p, "qosSpecs"));
	assert_null(jget(p, "name"));
	refused("NFS", "{\"export\":\"h:/e\",\"encrypted\":\"true\"}", EOPNOTSUPP, "encrypted");
	refused("NFS", "{\"export\":\"h:/e\",\"encrypted\":\"maybe\"}", EINVAL,
		"neither true nor false");
	refused("NFS", "{\"export\":\"h:/e\",\"access_mode\":\"wr\"}", EINVAL,
		"neither \"rw\" nor \"ro\"");
}

static void test_bad_values(void **state)
{
	refused("NFS", "{}", EINVAL, "needs the parameter \"export\"");
	refused("NFS", "{\"export\":7}", EINVAL, "export: not a string");
	refused("NFS", "{\"export\":\"/e\"}", EINVAL, "not HOST:/PATH");
	refused("NFS", "{\"export\":\":/e\"}", EINVAL, "not HOST:/PATH");
	refused("NFS", "{\"export\":\"-o:/e\"}", EINVAL, "not HOST:/PATH");
	refused("NFS", "{\"export\":\"h;x:/e\"}", EINVAL, "not HOST:/PATH");
	refused("NFS", "{\"export\":\"h:/e/../f\"}", EINVAL, "clean path");
	refused("NFS", "{\"export\":\"h:/e\\n\"}", EINVAL, "control characters");
	refused("NFS", "{\"export\":\"h:/e\",\"name\":\"../x\"}", EINVAL, "not allowed");
	refused("NFS", "{\"export\":\"h:/e\",\"name\":\"a/../x\"}", EINVAL, "not allowed");
	refused("NFS", "{\"export\":\"h:/e\",\"name\":\"/x\"}", EINVAL, "relative");
	refused("NFS", "{\"export\":\"h:/e\",\"name\":\"x/\"}", EINVAL, "ends with a slash");
	refused("NFS", "{\"export\":\"h:/e\",\"name\":\"a//x\"}", EINVAL, "not allowed");
	refused("NFS", "{\"export\":\"h:/e\",\"options\":\"ro bind\"}", EINVAL,
		"\" \" is not allowed");
	refused("NFS", "{\"export\":\"h:/e\",\"options\":\"ro,$(x)\"}", EINVAL,
		"\"$\" is not allowed");
	refused("NFS", "{\"export\":\"h:/e\",\"options\":\"ro,bind\"}", EINVAL,
		"\"bind\" is not allowed");
	refused("NFS", "{\"export\":\"h:/e\",\"mountPointBase\":\"m\"}", EINVAL, "absolute path");
	refused("LOCAL", "{\"devicePath\":\"/dev/../etc\"}", EINVAL, "absolute path");
	refused("GLUSTERFS", "{\"export\":\"h:/v/sub\"}", EINVAL, "not HOST:/VOLUME");
	refused("GLUSTERFS", "{\"export\":\"h:/v\",\"options\":\"backup-volfile-server=x\"}",
		EINVAL, "did you mean \"backup");
	refused("GLUSTERFS", "{\"export\":\"h:/v\",\"options\":\"acl=1\"}", EINVAL,
		"takes no value");
	refused("GLUSTERFS", "{\"export\":\"h:/v\",\"options\":\"log-level\"}", EINVAL,
		"needs a value");
}

/* What the kernel may keep: nothing, unless the options say so. */
static void test_gluster_caches(void **state)
{
	static const struct {
		const char *options, *wanted[3];
	} cases[] = {
		{ "", { "--attribute-timeout=0", "--entry-timeout=0", "--fopen-keep-cache=no" } },
		{ "entry-timeout=5,acl,fopen-keep-cache",
		  { "--attribute-timeout=0", "--entry-timeout=5", "--fopen-keep-cache" } },
		{ "fopen-keep-cache=yes,attribute-timeout=1",
		  { "--fopen-keep-cache=yes", "--attribute-timeout=1", "--entry-timeout=0" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_with(gluster_args_done) struct gluster_args args = { 0 };
		size_t found = 0;

		assert_int_equal(gluster_args_build(&args, "h:/v", cases[i].options, "/l", "/m", NULL),
				 0);
		for (size_t k = 0; k < args.count; k++) {
			found += strstr(args.items[k], "-timeout") || strstr(args.items[k], "keep");
			for (size_t w = 0; w < 3; w++)
				found += streq(args.items[k], cases[i].wanted[w]);
		}
		assert_int_equal(found, 6);
	}
}

static void test_gluster_arguments(void **state)
{
	static const char *const wanted[] = {
		"glusterfs",
		"--process-name=fuse",
		"--log-file=/l",
		"--volfile-server=fd00::1",
		"--volfile-server=h2",
		"--attribute-timeout=0",
		"--entry-timeout=0",
		"--fopen-keep-cache=no",
		"--volfile-server=fd00::3",
		"--volfile-server=h4",
		"--read-only",
		"--log-level=WARNING",
		"--volfile-server-port=24010",
		"--fuse-mountopts=noatime,nodev",
		"--volfile-id=/v",
		"/m",
	};
	cleanup_with(gluster_args_done) struct gluster_args args = { 0 };

	assert_int_equal(
		gluster_args_build(&args, "[fd00::1],h2:/v",
				   "backup-volfile-servers=[fd00::3]:h4,ro,noatime,_netdev,x-test,"
				   "log-level=WARNING,nodev,server-port=24010",
				   "/l", "/m", NULL),
		0);
	assert_int_equal(args.count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_string_equal(args.items[i], wanted[i]);
	assert_null(args.items[args.count]);
}

/* Walks the table: what holds for every driver. */
static void test_table(void **state)
{
	size_t n = 0;

	for (; drivers[n]; n++) {
		const struct driver *d = drivers[n], *found;

		assert_non_null(d->title);
		assert_non_null(d->help);
		assert_int_equal(driver_find(d->name, &found, NULL), 0);
		assert_ptr_equal(d, found);
		if (!d->connect)
			continue;
		assert_true(d->prepare && d->disconnect && d->verify);
		for (const struct param *p = d->params; p->name; p++) {
			assert_non_null(p->help);
			assert_true(islower((unsigned char)p->name[0]));
			assert_null(strchr(p->name, '_'));
			/* a name of its own, also in every other spelling */
			for (const struct param *q = d->params; q->name; q++)
				assert_true(p == q || !param_matches(q, p->name));
			for (const struct param *q = common_params; q->name; q++)
				assert_false(param_matches(q, p->name));
		}
	}
	assert_int_equal(n, 19);
}

static void test_secrets_stay_out(void **state)
{
	static const struct param table[] = { { .name = "user" },
					      { .name = "password", .secret = true },
					      { 0 } };
	static const struct driver d = { .name = "X", .params = table };
	cleanup_json json_t *all = json_loads("{\"user\":\"u\",\"password\":\"hush\"}", 0, NULL),
			    *out = NULL;

	assert_int_equal(params_without_secrets(&d, all, &out, NULL), 0);
	assert_string_equal(jstr(out, "user"), "u");
	assert_null(jget(out, "password"));
	assert_non_null(jget(all, "password"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings),  cmocka_unit_test(test_what_others_send),
		cmocka_unit_test(test_bad_values), cmocka_unit_test(test_gluster_arguments),
		cmocka_unit_test(test_table),	   cmocka_unit_test(test_secrets_stay_out),
		cmocka_unit_test(test_gluster_caches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
