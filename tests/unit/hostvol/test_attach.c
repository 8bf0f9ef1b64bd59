/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char *must_connect(struct rig *rig, const char *json)
{
	int r;
	char *path = rig_connect(rig, json, &r);

	assert_int_equal(r, 0);
	assert_non_null(path);
	return path;
}

static void connect_only(struct rig *rig, const char *json)
{
	free(must_connect(rig, json));
}

static void fails_with(struct rig *rig, const char *json, int code, const char *words)
{
	struct hostvol_error err = { 0 };
	char *text = NULL;
	int r = hostvol_connect_volume_json(rig->h, json, &text, &err);

	assert_int_equal(r, -code);
	assert_int_equal(err.code, code);
	assert_null(text);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" does not say \"%s\"", err.message, words);
}

static void test_one_mount_serves_all(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = must_connect(rig, NFS_A), *b = must_connect(rig, NFS_B),
			  *again = NULL, *found = NULL;

	assert_int_equal(rig->fake->mount_count, 1);
	assert_true(str_has_suffix(a, "/a"));
	assert_true(str_has_suffix(b, "/b"));
	again = must_connect(rig, NFS_A);
	assert_string_equal(a, again);
	assert_int_equal(rig_records(rig), 2);
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &found, NULL), 0);
	assert_string_equal(a, found);

	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 1);
	assert_int_equal(rig_disconnect(rig, "b", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &found, NULL), -ENOENT);
}

static void test_consumers_are_counted(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *x = NULL, *y = NULL;

	x = must_connect(rig,
			 "{\"driverVolumeType\":\"NFS\",\"consumer\":\"x\",\"data\":{\"export\":"
			 "\"h:/e\",\"volumeId\":\"v\"}}");
	y = must_connect(rig,
			 "{\"driverVolumeType\":\"NFS\",\"consumer\":\"y\",\"data\":{\"export\":"
			 "\"h:/e\",\"volumeId\":\"v\"}}");
	assert_string_equal(x, y);
	assert_int_equal(rig_disconnect(rig, "v", "", 0),
			 1); /* the one without a name never connected */
	assert_int_equal(rig_disconnect(rig, "v", "x", 0), 0);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_int_equal(rig_disconnect(rig, "v", "y", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
}

static void test_options_make_another_mount(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = must_connect(rig, NFS_A), *ro = NULL, *kept = NULL;
	int r;

	ro = must_connect(rig,
			  "{\"driverVolumeType\":\"NFS\",\"data\":{\"export\":\"192.0.2.9:/e\","
			  "\"name\":\"a\",\"volumeId\":\"ro\",\"access_mode\":\"ro\"}}");
	assert_int_equal(rig->fake->mount_count, 2);
	assert_non_null(strstr(rig->fake->last_options, "ro,"));
	assert_string_not_equal(a, ro);
	/* the same volume again with other options: what is there stays */
	kept = rig_connect(rig,
			   "{\"driverVolumeType\":\"NFS\",\"data\":{\"export\":\"192.0.2.9:/e\","
			   "\"name\":\"a\",\"volumeId\":\"a\",\"options\":\"-o hard\"}}",
			   &r);
	assert_int_equal(r, 1);
	assert_string_equal(kept, a);
	assert_int_equal(rig->fake->mount_count, 2);
}

static char chosen[CLIENT_ID_MAX];

static void choose(const struct hostvol_host *host, const char *program, const char *wanted,
		   char *id, size_t size)
{
	assert_string_equal(program, "glusterfs");
	snprintf(id, size, "%s", *wanted ? wanted : chosen);
}

#define GLUSTER_B                                                                                  \
	"{\"driverVolumeType\":\"GLUSTERFS\",\"export\":\"192.0.2.9:/v\",\"name\":\"s/"            \
	"b\",\"volumeId\":\"b\"}"

/* What is mounted stays with its client; what comes is mounted by the one that is chosen then. */
static void test_another_client_is_another_mount(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = NULL, *b = NULL, *again = NULL;
	int r;

	rig->fake->host.choose_client = choose;
	strcpy(chosen, "old");
	a = must_connect(rig, GLUSTER_A);
	strcpy(chosen, "new");
	again = rig_connect(rig, GLUSTER_A, &r);
	assert_int_equal(r, 1);
	assert_string_equal(a, again);
	b = must_connect(rig, GLUSTER_B);
	assert_int_equal(rig->fake->mount_count, 2);
	assert_string_not_equal(rig->fake->mounts[0].target, rig->fake->mounts[1].target);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_int_equal(rig_disconnect(rig, "b", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
}

/* A client died, and its successor cannot mount (yet): the consumer is not forgotten for that. */
static void test_moves_from_a_dead_client(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = NULL, *moved = NULL;
	int r;

	rig->fake->host.choose_client = choose;
	strcpy(chosen, "old");
	a = must_connect(rig, GLUSTER_A);
	rig->fake->mounts[0].dead = true;
	strcpy(chosen, "new");
	rig->fake->helper_says = "not now";
	assert_null(rig_connect(rig, GLUSTER_A, &r));
	assert_true(r < 0);
	assert_int_equal(rig_records(rig), 1);
	assert_int_equal(rig->fake->mount_count, 0);
	rig->fake->helper_says = NULL;
	moved = must_connect(rig, GLUSTER_A);
	assert_string_not_equal(a, moved);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig_records(rig), 0);
}

static void test_another_place_is_refused(void **state)
{
	struct rig *rig = *state;

	connect_only(rig, NFS_A);
	fails_with(rig,
		   "{\"driverVolumeType\":\"NFS\",\"data\":{\"export\":\"192.0.2.8:/"
		   "e\",\"volumeId\":\"a\"}}",
		   EEXIST, "connected already from another place");
	assert_int_equal(rig->fake->mount_count, 1);
}

static void test_nfs_versions(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = NULL;

	rig->fake->nfs_refuses = 2;
	a = must_connect(rig, NFS_A);
	assert_string_equal(rig->fake->last_options, "retry=0,vers=3");
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	rig->fake->nfs_refuses = 3;
	fails_with(rig, NFS_A, EPROTONOSUPPORT, "Protocol not supported");
	/* a version that was asked for is the only one tried */
	rig->fake->nfs_refuses = 1;
	fails_with(rig,
		   "{\"driverVolumeType\":\"NFS\",\"data\":{\"export\":\"h:/"
		   "e\",\"options\":\"vers=4.0\"}}",
		   EPROTONOSUPPORT, "Protocol not supported");
	assert_string_equal(rig->fake->last_options, "vers=4.0,retry=0");
	/* and no other error leads to another version */
	rig->fake->nfs_refuses = 0;
	rig->fake->helper_says = "mount.nfs: access denied by server while mounting h:/e";
	atomic_store(&rig->fake->calls, 0);
	fails_with(rig, NFS_A, EIO, "access denied");
	/* the way out is on the second line */
	rig->fake->helper_says = "mount.nfs: rpc.statd is not running but is required for remote "
				 "locking.\nmount.nfs: Either use '-o nolock' to keep locks local, "
				 "or start statd.\n";
	fails_with(rig, NFS_A, EIO,
		   "mount.nfs: rpc.statd is not running but is required for remote locking. Either "
		   "use '-o nolock' to keep locks local, or start statd.");
	assert_int_equal(rig->fake->mounts_made, 1);
	assert_int_equal(rig_records(rig), 0);
}

static void test_dead_mount_is_replaced(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = must_connect(rig, GLUSTER_A), *again = NULL, *path = NULL;
	struct hostvol_error err = { 0 };

	rig->fake->mounts[0].dead = rig->fake->mounts[0].busy = true;
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, &err), -ENOTCONN);
	again = must_connect(rig, GLUSTER_A);
	assert_string_equal(a, again);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_false(rig->fake->mounts[0].dead);
	assert_non_null(strstr(rig->log, "is dead"));
	/* one that dies is also unmounted although somebody is still in it */
	rig->fake->mounts[0].dead = rig->fake->mounts[0].busy = true;
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
}

/*
 * The servers cannot be reached for a while. The client lives, and those who use it work on afterwards:
 * an attempt to connect that fails meanwhile takes nothing away from them.
 */
static void test_outage_is_no_death(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = must_connect(rig, GLUSTER_A), *again = NULL;

	rig->fake->client_lives = rig->fake->mounts[0].dead = true;
	fails_with(rig, GLUSTER_A, ENOTCONN, "does not answer");
	assert_int_equal(rig->fake->mounts_made, 1);
	assert_int_equal(rig->fake->unmounts_made, 0);
	assert_int_equal(rig->fake->killed, 0);
	rig->fake->mounts[0].dead = false;
	again = must_connect(rig, GLUSTER_A);
	assert_string_equal(a, again);
	assert_int_equal(rig->fake->mounts_made, 1);
	/* nor is it detached from under those who are in it */
	rig->fake->mounts[0].dead = rig->fake->mounts[0].busy = true;
	assert_int_equal(rig_disconnect(rig, "a", "", 0), -EBUSY);
	assert_int_equal(rig->fake->mount_count, 1);
}

/* The mount answers, but not for this volume; or it has gone, while its client serves others. */
static void test_failed_reconnect_undoes_its_own(void **state)
{
	struct rig *rig = *state;

	connect_only(rig, GLUSTER_A);
	rig->fake->client_lives = true;
	snprintf(rig->fake->missing, sizeof(rig->fake->missing), "s/a");
	fails_with(rig, GLUSTER_A, ENOENT, "cannot find s/a");
	assert_int_equal(rig->fake->mount_count, 1);
	rig->fake->missing[0] = '\0';
	rig->fake->mount_count = 0;
	rig->fake->helper_says = "not now";
	fails_with(rig, GLUSTER_A, EIO, "cannot mount");
	assert_int_equal(rig->fake->killed, 0);
	/* where nobody was served before, what the attempt started is ended */
	rig->fake->client_lives = false;
	fails_with(rig, GLUSTER_A, EIO, "cannot mount");
	assert_int_equal(rig->fake->killed, 1);
	assert_int_equal(rig_records(rig), 1);
}

static void test_in_use_is_refused(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *path = NULL;

	connect_only(rig, NFS_A);
	rig->fake->mounts[0].busy = true;
	assert_int_equal(rig_disconnect(rig, "a", "", 0), -EBUSY);
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, NULL), 0);
	assert_int_equal(rig_disconnect(rig, "a", "", HOSTVOL_FORCE), 0);
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
}

static void test_after_a_reboot(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *a = must_connect(rig, NFS_A), *again = NULL, *path = NULL, *list = NULL;
	struct hostvol_error err = { 0 };

	rig->fake->mount_count = 0;
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, &err), -ENOENT);
	assert_int_equal(hostvol_list_json(rig->h, NULL, &list, NULL), 0);
	assert_non_null(strstr(list, "not mounted any more"));
	/* an attempt that fails does not forget the consumer */
	rig->fake->helper_says = "mount.nfs: Connection refused";
	fails_with(rig, NFS_A, EIO, "Connection refused");
	assert_int_equal(rig_records(rig), 1);
	rig->fake->helper_says = NULL;
	again = must_connect(rig, NFS_A);
	assert_string_equal(a, again);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
}

static void test_foreign_mount_is_not_used(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *path = NULL;

	connect_only(rig, NFS_A);
	/* another server's file system where ours belongs */
	snprintf(rig->fake->mounts[0].source, sizeof(rig->fake->mounts[0].source), "evil:/e");
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, NULL), -EBUSY);
	fails_with(rig, NFS_B, EBUSY, "evil:/e (nfs4) is mounted at");
	assert_int_equal(rig_records(rig), 1);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), -EBUSY);
	assert_int_equal(rig->fake->mount_count, 1);
}

static void test_missing_sub_path(void **state)
{
	struct rig *rig = *state;

	snprintf(rig->fake->missing, sizeof(rig->fake->missing), "a");
	fails_with(rig, NFS_A, ENOENT, "cannot find a in 192.0.2.9:/e");
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
}

static void test_deadline(void **state)
{
	struct rig *rig = *state;

	rig->fake->helper_delay_ms = 1000000;
	fails_with(rig, NFS_A, ETIMEDOUT, "cannot mount");
	assert_int_equal(rig_records(rig), 0);
}

static void test_damaged_record(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *path = NULL, *list = NULL;

	connect_only(rig, NFS_A);
	path = xasprintf("%s/attachments/0123456789abcdef0123456789abcdef.json", rig->state_dir);
	assert_int_equal(file_write(path, "{\"half", 6, 0600, NULL), 0);
	assert_int_equal(hostvol_list_json(rig->h, NULL, &list, NULL), 0);
	assert_non_null(strstr(rig->log, "damaged"));
	/* it might be of another volume of the same mount */
	assert_int_equal(rig_disconnect(rig, "a", "", 0), -EBADMSG);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
}

static void test_record_is_given_back(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *record = NULL, *done = NULL;
	cleanup_json json_t *o = NULL;

	assert_int_equal(hostvol_connect_volume_json(rig->h, NFS_A, &record, NULL), 0);
	assert_int_equal(json_parse(record, strlen(record), &o, NULL), 0);
	assert_string_equal(jstr(o, "state"), "attached");
	assert_int_equal(hostvol_disconnect_volume_json(rig->h, record, 0, &done, NULL), 0);
	assert_non_null(strstr(done, jstr(o, "path")));
	assert_int_equal(rig_records(rig), 0);
}

static void test_disconnect_returns_the_path(void **state)
{
	struct rig *rig = *state;
	struct hostvol_connection_info info = { .driver_volume_type = (char *)"NFS",
						.data = (char *)"{\"export\":\"h:/e\"}" };
	cleanup_free char *a = NULL, *b = NULL, *c = NULL;

	assert_int_equal(hostvol_connect_volume(rig->h, &info, &a, NULL), 0);
	assert_int_equal(hostvol_disconnect_volume(rig->h, &info, &b, NULL), 0);
	assert_string_equal(a, b);
	assert_int_equal(hostvol_disconnect_volume(rig->h, &info, &c, NULL), 1);
	assert_string_equal(c, "");
}

static void test_local(void **state)
{
	struct rig *rig = *state;
	cleanup_free char
		*json = xasprintf(
			"{\"driverVolumeType\":\"local\",\"data\":{\"device_path\":\"%s\"}}",
			rig->dir),
		*path = must_connect(rig, json), *id = xasprintf("LOCAL:%s", rig->dir),
		*found = NULL;

	assert_string_equal(path, rig->dir);
	assert_int_equal(hostvol_get_device_path(rig->h, id, &found, NULL), 0);
	assert_int_equal(rig_disconnect(rig, id, "", 0), 0);
	fails_with(rig, "{\"driverVolumeType\":\"LOCAL\",\"data\":{\"devicePath\":\"/dev/none\"}}",
		   ENOENT, "cannot use /dev/none");
	fails_with(rig, "{\"driverVolumeType\":\"LOCAL\",\"data\":{\"devicePath\":\"/dev/null\"}}",
		   EINVAL, "neither a block device");
	assert_int_equal(rig_records(rig), 0);
}

/* What a local path is, is remembered as of any other volume. */
static void test_local_identity(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *place = xasprintf("%s/place", rig->dir),
			  *json = xasprintf("{\"driverVolumeType\":\"local\",\"data\":{"
					    "\"volumeId\":\"a\",\"device_path\":\"%s\"}}",
					    place),
			  *gone = NULL;

	assert_int_equal(mkdir(place, 0755), 0);
	free(must_connect(rig, json));
	assert_int_equal(rmdir(place), 0);
	fails_with(rig, json, ENOENT, "cannot use");
	assert_int_equal(file_write(place, "x", 1, 0644, NULL), 0);
	fails_with(rig, json, ESTALE, "is file, and was directory when it was connected");
	assert_int_equal(rig_records(rig), 1);
	assert_int_equal(hostvol_forget_json(rig->h, "{\"volumeId\":\"a\"}", &gone, NULL), 0);
	free(must_connect(rig, json));
}

static void test_unsupported(void **state)
{
	struct rig *rig = *state;

	fails_with(
		rig,
		"{\"driverVolumeType\":\"NFS\",\"data\":{\"export\":\"h:/e\",\"encrypted\":true}}",
		EOPNOTSUPP, "encrypted volumes are not supported in this version");
	fails_with(rig, "{\"driverVolumeType\":\"NSF\",\"data\":{}}", EINVAL,
		   "did you mean \"NFS\"");
	fails_with(rig, "{\"data\":{}}", EINVAL, "driverVolumeType is missing");
	fails_with(rig, "[]", EINVAL, "JSON object");
	fails_with(rig, "{", EINVAL, "line 1");
}

/* The machine that the export names has lost its power. */
static void test_gluster_server_gone(void **state)
{
	static const char volume[] =
		"{\"driverVolumeType\":\"GLUSTERFS\",\"export\":\"192.0.2.9:/v\",\"name\":\"s/"
		"a\",\"volumeId\":\"a\","
		"\"options\":\"backup-volfile-servers=192.0.2.10:192.0.2.11\"}";
	struct rig *rig = *state;
	cleanup_free char *a = NULL, *again = NULL;

	rig->fake->silent = "192.0.2.9";
	a = must_connect(rig, volume);
	assert_string_equal(rig->fake->mounts[0].source, "192.0.2.10:/v");
	rig->fake->silent = NULL;
	again = must_connect(rig, volume);
	assert_string_equal(a, again);
	assert_int_equal(rig->fake->mounts_made, 1);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_one_mount_serves_all),
		RIG_TEST(test_consumers_are_counted),
		RIG_TEST(test_options_make_another_mount),
		RIG_TEST(test_another_client_is_another_mount),
		RIG_TEST(test_moves_from_a_dead_client),
		RIG_TEST(test_another_place_is_refused),
		RIG_TEST(test_nfs_versions),
		RIG_TEST(test_dead_mount_is_replaced),
		RIG_TEST(test_outage_is_no_death),
		RIG_TEST(test_failed_reconnect_undoes_its_own),
		RIG_TEST(test_gluster_server_gone),
		RIG_TEST(test_in_use_is_refused),
		RIG_TEST(test_after_a_reboot),
		RIG_TEST(test_foreign_mount_is_not_used),
		RIG_TEST(test_missing_sub_path),
		RIG_TEST(test_deadline),
		RIG_TEST(test_damaged_record),
		RIG_TEST(test_record_is_given_back),
		RIG_TEST(test_disconnect_returns_the_path),
		RIG_TEST(test_local),
		RIG_TEST(test_local_identity),
		RIG_TEST(test_unsupported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
