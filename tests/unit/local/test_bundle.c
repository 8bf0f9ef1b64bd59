/* SPDX-License-Identifier: Apache-2.0 */
/* What a client's container is made from. */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "local/bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char base[] = "/tmp/qm-bundle.XXXXXX";

static int set_up(void **state)
{
	cleanup_free char *state_dir = NULL, *run_dir = NULL;

	if (!mkdtemp(base))
		return -1;
	state_dir = xasprintf("%s/state", base);
	run_dir = xasprintf("%s/run", base);
	return setenv("QM_STATE_DIR", state_dir, 1) || setenv("QM_RUN_DIR", run_dir, 1);
}

static int tear_down(void **state)
{
	return remove_tree(base, NULL);
}

static json_t *settings(void)
{
	return json_pack("{s:s, s:s, s:s, s:[s]}", "archive", "/images/x.tar", "digest",
			 "sha256:0123", "rootfs", "/store/0123/rootfs", "env", "FROM=image");
}

static json_t *bundle(const char *protocol)
{
	cleanup_free char *dir = xasprintf("%s/%s", base, protocol),
			  *path = xasprintf("%s/config.json", dir), *text = NULL;
	cleanup_json json_t *chosen = settings();
	json_t *o = NULL;
	size_t len;

	/* without those that would have to be made on this machine */
	struct client_protocol p = *client_protocol_find(protocol);
	static const struct client_path paths[] = { { "/sys" },
						    { "/no/such/dir", .read_only = true },
						    { 0 } };

	p.paths = p.paths ? paths : NULL;
	assert_int_equal(bundle_write(&p, chosen, "qm-x", dir, NULL), 0);
	assert_int_equal(file_read(path, 0, &text, &len, NULL), 0);
	assert_int_equal(json_parse(text, len, &o, NULL), 0);
	return o;
}

static bool has_word(const json_t *list, const char *word)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (streq(json_string_value(item), word))
			return true;
	return false;
}

/* The last one at that place, which is the one that is seen. */
static const json_t *mount_at(const json_t *o, const char *path)
{
	const json_t *found = NULL, *mount;
	size_t i;

	json_array_foreach (jget(o, "mounts"), i, mount)
		if (streq(jstr(mount, "destination"), path))
			found = mount;
	return found;
}

static bool has_namespace(const json_t *o, const char *type)
{
	const json_t *item;
	size_t i;

	json_array_foreach (jget(o, "linux", "namespaces"), i, item)
		if (streq(jstr(item, "type"), type))
			return true;
	return false;
}

static void file_system_client(void **state)
{
	cleanup_json json_t *o = bundle("nfs");
	cleanup_free char *mnt = xasprintf("%s/state/hostvol/mnt", base),
			  *dir = xasprintf("%s/run/clients/nfs", base);
	const json_t *args = jget(o, "process", "args");

	assert_string_equal(jstr(o, "root", "path"), "/store/0123/rootfs");
	assert_true(jbool(o, "root", "readonly"));
	assert_string_equal(json_string_value(json_array_get(args, 0)), "/qm/qm-client");
	assert_string_equal(json_string_value(json_array_get(args, json_array_size(args) - 1)),
			    dir);
	assert_true(has_word(jget(mount_at(o, "/qm/qm-client"), "options"), "ro"));
	/* mounts go out of the container here, and nowhere else */
	assert_true(has_word(jget(mount_at(o, mnt), "options"), "rshared"));
	assert_true(has_word(jget(mount_at(o, "/dev"), "options"), "rslave"));
	assert_true(has_word(jget(mount_at(o, dir), "options"), "rslave"));
	assert_string_equal(jstr(o, "linux", "rootfsPropagation"), "rshared");
	assert_string_equal(jstr(mount_at(o, "/var/lib/nfs"), "type"), "tmpfs");
	/* the network is the machine's */
	assert_true(has_namespace(o, "pid") && has_namespace(o, "mount") &&
		    has_namespace(o, "ipc"));
	assert_false(has_namespace(o, "network"));
	assert_true(has_word(jget(o, "process", "env"), "FROM=image"));
	assert_true(
		has_word(jget(o, "process", "env"), "QM_CLIENT_IMAGE=/images/x.tar@sha256:0123"));
}

static void block_client(void **state)
{
	cleanup_json json_t *o = bundle("iscsi");

	assert_string_equal(jstr(mount_at(o, "/sys"), "type"), "bind");
	assert_null(mount_at(o, "/no/such/dir"));
	assert_false(has_namespace(o, "ipc"));
}

/* Mounts are made in their order: none may hide one that came before. */
static void none_is_hidden(void **state)
{
	cleanup_json json_t *o = bundle("glusterfs");
	const json_t *mounts = jget(o, "mounts"), *later;
	size_t i;

	json_array_foreach (mounts, i, later)
		for (size_t j = 0; j < i; j++) {
			cleanup_free char *below = xasprintf("%s/", jstr(later, "destination"));

			assert_false(str_has_prefix(jstr(json_array_get(mounts, j), "destination"),
						    below));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_system_client),
		cmocka_unit_test(block_client),
		cmocka_unit_test(none_is_hidden),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
