/* SPDX-License-Identifier: Apache-2.0 */
/* What callers of the node service send: ids, paths, capabilities, contexts. */
#include "base/mem.h"
#include "csi/node_args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

static void test_volume_ids(void **state)
{
	static const char *const good[] = { "v1.store-1.d.pvc-0f3a", "nfs:server:share", "x",
					    "a.b" };
	static const char *const wrong[] = {
		"../x", "a/b", "a..b", "a b", "a\nb", "ä", "..", "a%2e"
	};
	char longest[VOLUME_ID_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(check_volume_id(good[i], true, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(check_volume_id(wrong[i], true, NULL), -EINVAL);
		assert_int_equal(check_volume_id(wrong[i], false, NULL), -ENOENT);
	}
	assert_int_equal(check_volume_id("", false, NULL), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	longest[VOLUME_ID_MAX] = '\0';
	assert_int_equal(check_volume_id(longest, true, NULL), 0);
	longest[VOLUME_ID_MAX] = 'a';
	longest[VOLUME_ID_MAX + 1] = '\0';
	assert_int_equal(check_volume_id(longest, true, NULL), -EINVAL);
}

static void test_paths(void **state)
{
	static const char *const wrong[] = { "",	 "relative", "/k/../etc",  "/k//x",
					     "/",	 "/k/x/..",  "/kubelet/x", "/k",
					     "/other/x", "/k/./x",   "/k/x\ny",	   "/kx" };

	assert_int_equal(check_target_path("target_path", "/k/pods/x", "/k", NULL), 0);
	assert_int_equal(check_target_path("target_path", "/anywhere/x", NULL, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(check_target_path("target_path", wrong[i], "/k", NULL), -EINVAL);
	assert_int_equal(check_target_path("target_path", "/", NULL, NULL), -EINVAL);
}

/* ---- capabilities ----------------------------------------------------------------------------- */

static int read_capability(int mode, bool block, const char *fs_type, size_t n_flags,
			   const char *const *flags, struct wanted *ret)
{
	Csi__V1__VolumeCapability c = CSI__V1__VOLUME_CAPABILITY__INIT;
	Csi__V1__VolumeCapability__BlockVolume b = CSI__V1__VOLUME_CAPABILITY__BLOCK_VOLUME__INIT;
	Csi__V1__VolumeCapability__MountVolume m = CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	Csi__V1__VolumeCapability__AccessMode a = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;

	a.mode = (Csi__V1__VolumeCapability__AccessMode__Mode)mode;
	c.access_mode = &a;
	m.fs_type = (char *)fs_type;
	m.mount_flags = (char **)flags;
	m.n_mount_flags = n_flags;
	if (block) {
		c.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		c.block = &b;
	} else {
		c.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
		c.mount = &m;
	}
	return wanted_read(&c, ret, NULL);
}

static void test_access_modes(void **state)
{
	static const struct {
		bool read_only, many_nodes, one_target;
	} modes[] = { [1] = { 0 },
		      [2] = { .read_only = true },
		      [3] = { .read_only = true },
		      [4] = { .many_nodes = true },
		      [5] = { .many_nodes = true },
		      [6] = { .one_target = true },
		      [7] = { 0 } };
	struct wanted w;

	for (int i = 1; i <= 7; i++) {
		assert_int_equal(read_capability(i, i % 2, "", 0, NULL, &w), 0);
		assert_int_equal(w.block, i % 2);
		assert_int_equal(w.read_only, modes[i].read_only);
		assert_int_equal(w.many_nodes, modes[i].many_nodes);
		assert_int_equal(w.one_target, modes[i].one_target);
		assert_int_equal(!!(w.set & MOUNT_ATTR_RDONLY), modes[i].read_only);
		wanted_done(&w);
	}
	assert_int_equal(read_capability(0, false, "", 0, NULL, &w), -EINVAL);
	assert_int_equal(read_capability(8, false, "", 0, NULL, &w), -EINVAL);
	assert_int_equal(wanted_read(NULL, &w, NULL), -EINVAL);
	assert_int_equal(
		wanted_read(&(Csi__V1__VolumeCapability)CSI__V1__VOLUME_CAPABILITY__INIT, &w, NULL),
		-EINVAL);
	assert_int_equal(read_capability(1, false, "ext4 -o x", 0, NULL, &w), -EINVAL);
	assert_int_equal(read_capability(1, false, "../ext4", 0, NULL, &w), -EINVAL);
}

static void test_mount_flags(void **state)
{
	static const char *const flags[] = { "noatime,nosuid", "discard", "ro", "",
					     "data=journal" };
	static const char *const later[] = { "nodev", "dev", "noatime", "strictatime" };
	static const char *const refused[] = { "bind", "remount", "shared", "a\nb" };
	struct wanted w;

	assert_int_equal(read_capability(1, false, "ext4", ARRAY_SIZE(flags), flags, &w), 0);
	assert_int_equal(w.set, MOUNT_ATTR_NOATIME | MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY);
	assert_int_equal(w.clear, MOUNT_ATTR__ATIME);
	assert_string_equal(w.options, "discard,data=journal");
	assert_string_equal(w.fs_type, "ext4");
	wanted_done(&w);
	assert_int_equal(read_capability(1, false, "", ARRAY_SIZE(later), later, &w), 0);
	assert_int_equal(w.set, MOUNT_ATTR_STRICTATIME);
	assert_int_equal(w.clear & MOUNT_ATTR_NODEV, MOUNT_ATTR_NODEV);
	wanted_done(&w);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(read_capability(1, false, "", 1, &refused[i], &w), -EINVAL);
}

/* ---- contexts --------------------------------------------------------------------------------- */

#define ENTRY(k, v)                                                                                \
	&(struct map_entry)                                                                        \
	{                                                                                          \
		.key = (char *)(k), .value = (char *)(v)                                           \
	}
#define MAP(...)                                                                                   \
	((struct map){ (struct map_entry *[]){ __VA_ARGS__ },                                      \
		       sizeof((struct map_entry *[]){ __VA_ARGS__ }) / sizeof(void *) })

static json_t *connection(struct map context, struct map secrets, const char *options)
{
	json_t *o = NULL;
	char *text = NULL;

	assert_int_equal(
		connection_of(context, secrets, "v1.p.d.x", "/stage", options, &text, NULL), 0);
	assert_int_equal(json_parse(text, strlen(text), &o, NULL), 0);
	connection_free(text);
	return o;
}

static void test_connection(void **state)
{
	struct map context =
		MAP(ENTRY("driverVolumeType", "GLUSTERFS"), ENTRY("export", "h:/v"),
		    ENTRY("options", "acl"), ENTRY("consumer", "/evil"), ENTRY("fencing", "none"),
		    ENTRY("csi.storage.k8s.io/pod.name", "p"));
	struct map secrets = MAP(ENTRY("authPassword", "secret"));
	json_t *o = connection(context, secrets, "noatime,x=y");

	assert_string_equal(jstr(o, "driverVolumeType"), "GLUSTERFS");
	assert_string_equal(jstr(o, "consumer"), "/stage");
	assert_string_equal(jstr(o, "data", "export"), "h:/v");
	assert_string_equal(jstr(o, "data", "options"), "acl,noatime,x=y");
	assert_string_equal(jstr(o, "data", "authPassword"), "secret");
	assert_string_equal(jstr(o, "data", "volumeId"), "v1.p.d.x");
	assert_null(jget(o, "data", "csi.storage.k8s.io/pod.name"));
	assert_null(jget(o, "data", "driverVolumeType"));
	assert_null(jget(o, "data", "fencing"));
	json_decref(o);

	context = MAP(ENTRY("driverVolumeType", "LOCAL"), ENTRY("volumeId", "mine"));
	o = connection(context, (struct map){ 0 }, "");
	assert_string_equal(jstr(o, "data", "volumeId"), "mine");
	assert_null(jget(o, "data", "options"));
	json_decref(o);
}

static void test_connection_refused(void **state)
{
	char *text = NULL;

	assert_int_equal(
		connection_of((struct map){ 0 }, (struct map){ 0 }, "x", "/s", "", &text, NULL),
		-EINVAL);
	assert_int_equal(connection_of(MAP(ENTRY("driverVolumeType", "\xff")), (struct map){ 0 },
				       "x", "/s", "", &text, NULL),
			 -EINVAL);
	assert_null(text);
}

static void test_fencing(void **state)
{
	bool unfenced = true;

	assert_int_equal(context_unfenced(MAP(ENTRY("export", "none")), &unfenced, NULL), 0);
	assert_false(unfenced);
	assert_int_equal(context_unfenced(MAP(ENTRY("fencing", "none")), &unfenced, NULL), 0);
	assert_true(unfenced);
	assert_int_equal(context_unfenced(MAP(ENTRY("fencing", "reservation")), &unfenced, NULL),
			 0);
	assert_false(unfenced);
	assert_int_equal(context_unfenced(MAP(ENTRY("fencing", "lock")), &unfenced, NULL), -EINVAL);
	assert_int_equal(context_unfenced(MAP(ENTRY("fencing", "")), &unfenced, NULL), -EINVAL);
}

static void test_records(void **state)
{
	json_t *record = json_pack("{s:s}", "volumeId", "pvc-1");

	assert_true(record_is_of(record, "pvc-1"));
	assert_true(record_is_of(record, "v1.pool.f.pvc-1"));
	assert_false(record_is_of(record, "v1.pool.f.pvc-2"));
	json_decref(record);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_volume_ids),   cmocka_unit_test(test_paths),
		cmocka_unit_test(test_access_modes), cmocka_unit_test(test_mount_flags),
		cmocka_unit_test(test_connection),   cmocka_unit_test(test_connection_refused),
		cmocka_unit_test(test_fencing),	     cmocka_unit_test(test_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
