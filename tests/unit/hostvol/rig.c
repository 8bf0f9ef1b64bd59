/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void remember(enum hostvol_log_level level, const char *message, void *userdata)
{
	struct rig *rig = userdata;
	size_t len = strlen(rig->log);

	snprintf(rig->log + len, sizeof(rig->log) - len, "%s\n", message);
}

int rig_setup(void **state)
{
	struct rig *rig = xcalloc(1, sizeof(*rig));

	rig->fake = fake_new();
	rig->dir = temp_make();
	rig->state_dir = xasprintf("%s/state", rig->dir);
	rig->run_dir = xasprintf("%s/run", rig->dir);
	assert_int_equal(
		hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = rig->state_dir,
							.run_dir = rig->run_dir,
							.deadline_ms = 20000,
							.log = remember,
							.log_userdata = rig,
							.host = &rig->fake->host },
			     &rig->h, NULL),
		0);
	*state = rig;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *rig = *state;

	hostvol_close(rig->h);
	fake_free(rig->fake);
	temp_remove(rig->dir);
	free(rig->state_dir);
	free(rig->run_dir);
	free(rig);
	return 0;
}

int rig_records(const struct rig *rig)
{
	cleanup_free char *path = xasprintf("%s/attachments", rig->state_dir);
	DIR *dir = opendir(path);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir)))
		n += str_has_suffix(e->d_name, ".json");
	if (dir)
		closedir(dir);
	return n;
}

char *rig_connect(struct rig *rig, const char *json, int *ret_code)
{
	struct hostvol_error err = { 0 };
	struct hostvol_connection_info *info;
	char *path = NULL;

	*ret_code = hostvol_connection_info_from_json(json, &info, &err);
	if (*ret_code >= 0) {
		*ret_code = hostvol_connect_volume(rig->h, info, &path, &err);
		hostvol_connection_info_free(info);
	}
	if (*ret_code < 0)
		assert_string_not_equal(err.message, "");
	return path;
}

int rig_disconnect(struct rig *rig, const char *volume_id, const char *consumer, unsigned flags)
{
	cleanup_json json_t *o =
		json_pack("{s:s, s:s}", "volumeId", volume_id, "consumer", consumer);
	cleanup_free char *text = json_text(o), *out = NULL;

	return hostvol_disconnect_volume_json(rig->h, text, flags, &out, NULL);
}

int rig_fault_step(void)
{
	const char *step = getenv("QM_FAULT_STEP");

	return step && atoi(step) > 0 ? atoi(step) : 1;
}

int rig_first_fault(void)
{
	static unsigned asked;
	const char *seed = getenv("QM_SEED");

	return 1 + (int)(((seed ? strtoul(seed, NULL, 0) : 0) + asked++) % (unsigned)rig_fault_step());
}
