/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/serve.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/mountinfo.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* A child outside of the client's process group (serve.h). */
static bool is_daemon(int proc, const char *pid, pid_t client)
{
	cleanup_close int fd = -1;
	char path[64], text[1024], state, *p;
	int parent, group;
	ssize_t len;

	snprintf(path, sizeof(path), "%.20s/stat", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	p = strrchr(text, ')'); /* the name before it may hold anything */
	return p && sscanf(p + 1, " %c %d %d", &state, &parent, &group) == 3 && state != 'Z' &&
	       parent == client && group != getpgid(client);
}

/* Only its name and last argument, which is where it mounts: the rest is nobody's business. */
static json_t *describe(const char *pid)
{
	cleanup_free char *path = xasprintf("/proc/%s/cmdline", pid), *text = NULL;
	const char *name, *last;
	size_t len;
	json_t *o = json_pack("{s:i}", "pid", atoi(pid));

	if (file_read(path, 64 << 10, &text, &len, NULL) < 0 || len < 2)
		return o;
	name = strrchr(text, '/');
	last = memrchr(text, '\0', len - 1);
	json_object_set_new(o, "program", json_string(name ? name + 1 : text));
	json_object_set_new(o, "lastArgument", json_string(last ? last + 1 : ""));
	return o;
}

json_t *daemons_list(pid_t client)
{
	json_t *list = json_array();
	DIR *proc = opendir("/proc");
	struct dirent *e;

	while (proc && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    is_daemon(dirfd(proc), e->d_name, client))
			json_array_append_new(list, describe(e->d_name));
	if (proc)
		closedir(proc);
	return list;
}

static int count_mounts(const char *mountinfo, const char *device)
{
	int count = 0;

	for (const char *line = mountinfo; line && *line;) {
		char found[32];

		if (sscanf(line, "%*d %*d %31s", found) == 1 && streq(found, device))
			count++;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return count;
}

int daemons_users(const json_t *daemons)
{
	cleanup_free char *mountinfo = NULL;
	const json_t *daemon;
	size_t i;
	int count = 0;

	if (file_read("/proc/self/mountinfo", 0, &mountinfo, NULL, NULL) < 0)
		return 0;
	json_array_foreach (daemons, i, daemon) {
		cleanup_with(mount_entry_done) struct mount_entry entry = { 0 };
		const char *point = jstr(daemon, "lastArgument");

		if (point && mountinfo_find(mountinfo, point, &entry) > 0)
			count += count_mounts(mountinfo, entry.device);
	}
	return count;
}
