/* SPDX-License-Identifier: Apache-2.0 */
#include "local/users.h"

#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "kube/kube.h"
#include "mounts/bind.h"
#include "mounts/records.h"

#include <errno.h>
#include <unistd.h>

#define NAMED_MAX 3 /* more are counted */

/* Those who connect a volume call it as its attributes say; else by its name, or its handle. */
static bool is_of(const json_t *record, const json_t *pv)
{
	const char *id = jstr(record, "volumeId");

	return streq(id, jstr(pv, "spec", "csi", "volumeAttributes", "volumeId")) ||
	       streq(id, jstr(pv, "spec", "csi", "volumeHandle")) || streq(id, object_name(pv));
}

/*
 * A record outlives a reboot, what it connected does not. Whether that is shown anywhere is not asked: whoever has it
 * connected may do so at any moment.
 */
static int is_connected(const json_t *record, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	const char *point = jstr(record, "detail", "mountPoint"), *path = jstr(record, "path");

	if (point)
		return bind_find(point, &e, err);
	return path && access(path, F_OK) == 0;
}

static int is_mounted(const json_t *record, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	int r = bind_find(jstr(record, "consumer"), &e, err);

	return r > 0 ? record_is_mount(record, &e) : r;
}

static int say_user(const json_t *record, size_t before, struct buf *out, struct error *err)
{
	const char *consumer = jstr(record, "consumer");
	bool path = consumer && consumer[0] == '/';
	int mounted = path ? is_mounted(record, err) : 0;

	if (mounted < 0 || before >= NAMED_MAX)
		return mounted;
	buf_printf(out, "%s", before ? ", and " : "");
	if (mounted)
		buf_printf(out, "it is mounted on %s: quartermaster umount %s", consumer, consumer);
	else if (path)
		buf_printf(out, "it is staged at %s: unpublish and unstage it there, or, of a "
				"mount that was interrupted, quartermaster umount %s",
			   consumer, consumer);
	else
		buf_printf(out, "it is connected: hostvol disconnect %s", jstr(record, "volumeId"));
	return 0;
}

static int say_users(const json_t *records, const json_t *pv, struct buf *out, size_t *ret,
		     struct error *err)
{
	const json_t *record;
	size_t i;

	json_array_foreach (records, i, record) {
		int r = is_of(record, pv) ? is_connected(record, err) : 0;

		if (r > 0)
			r = say_user(record, (*ret)++, out, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_records(json_t **ret, struct error *err)
{
	cleanup_free char *state = state_path("hostvol"), *run = run_path("hostvol");
	struct hostvol_error failed = { 0 };
	struct hostvol *h = NULL;
	int r = hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = state,
							.run_dir = run },
			     &h, &failed);

	if (r < 0)
		return from_hostvol(r, &failed, err);
	r = records_find(h, NULL, NULL, ret, err);
	hostvol_close(h);
	return r;
}

int volume_users(const json_t *pv, char **ret, struct error *err)
{
	cleanup_json json_t *records = NULL;
	struct buf out = { 0 };
	size_t count = 0;
	int r = read_records(&records, err);

	if (r == 0)
		r = say_users(records, pv, &out, &count, err);
	if (r == 0 && count > NAMED_MAX)
		buf_printf(&out, ", and %zu more", count - NAMED_MAX);
	if (r == 0 && count)
		*ret = xstrdup(out.data);
	buf_done(&out);
	return r < 0 ? r : count > 0;
}
