/* SPDX-License-Identifier: Apache-2.0 */
#include "local/config.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>

#define CONFIG "config.json"

static const struct {
	const char *key, *value;
	size_t offset;
} fields[] = {
	{ "deployment", "glusterfs", offsetof(struct local_config, deployment) },
	{ "namespace", "default", offsetof(struct local_config, ns) },
	{ "type", "glusterfs", offsetof(struct local_config, type) },
	{ "volumeType", "replicate:3", offsetof(struct local_config, volume_type) },
	{ "overcommit", "1", offsetof(struct local_config, overcommit) },
	{ "reclaim", "delete", offsetof(struct local_config, reclaim) },
};

static char **field_of(const struct local_config *c, size_t i)
{
	return (char **)((char *)c + fields[i].offset);
}

void local_config_default(struct local_config *ret)
{
	*ret = (struct local_config){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		*field_of(ret, i) = xstrdup(fields[i].value);
}

void local_config_done(struct local_config *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		free(*field_of(c, i));
	*c = (struct local_config){ 0 };
}

int local_config_load(struct local_config *ret, struct error *err)
{
	cleanup_free char *path = state_path(CONFIG), *text = NULL;
	cleanup_json json_t *o = NULL;
	size_t len;
	int r = file_read(path, 0, &text, &len, err);

	if (r == 0)
		r = json_parse(text, len, &o, err);
	if (r < 0)
		return r == -ENOENT ? r : error_prefix(err, "reading %s", path);
	local_config_default(ret);
	ret->demo = jbool(o, "demo");
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *value = jstr(o, fields[i].key);

		if (value) {
			free(*field_of(ret, i));
			*field_of(ret, i) = xstrdup(value);
		}
	}
	return 0;
}

int local_config_save(const struct local_config *c, struct error *err)
{
	cleanup_free char *path = state_path(CONFIG), *text = NULL;
	cleanup_json json_t *o = json_object();
	int r = mkdir_parents(state_dir(), 0755, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		json_object_set_new(o, fields[i].key, json_string(*field_of(c, i)));
	json_object_set_new(o, "demo", json_boolean(c->demo));
	text = json_text_pretty(o);
	return file_write(path, text, strlen(text), 0644, err);
}

static bool stays(const char *name)
{
	return streq(name, ".") || streq(name, "..") || streq(name, CONFIG);
}

static int remove_others(struct error *err)
{
	DIR *d = opendir(state_dir());
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0
				       : error_errno(err, errno, "cannot list %s", state_dir());
	for (struct dirent *e; r == 0 && (e = readdir(d));) {
		cleanup_free char *path = state_path("%s", e->d_name);

		if (!stays(e->d_name))
			r = remove_tree(path, err);
	}
	closedir(d);
	return r;
}

int local_config_forget(struct error *err)
{
	int r = remove_others(err);

	if (r == 0)
		r = remove_tree(run_dir(), err);
	return r < 0 ? r : remove_tree(state_dir(), err);
}
