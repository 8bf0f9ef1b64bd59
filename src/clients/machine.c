/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/machine.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/*
 * All but the pids, which are the machine's already, and users. The cgroup's comes before anything
 * is written there: who is in another may not move what is outside of it.
 */
static const char *const namespaces[] = { "cgroup", "ipc", "uts", "net", "mnt" };

struct machine {
	int ns[ARRAY_SIZE(namespaces)];
	size_t ns_count;
	struct strv cgroups; /* where they are mounted on the machine */
	const char **list; /* the same, ended by NULL */
};

static int take_cgroup(const struct mount_entry *e, void *userdata)
{
	struct machine *m = userdata;

	if (streq(e->fs_type, "cgroup") || streq(e->fs_type, "cgroup2"))
		strv_add(&m->cgroups, e->mount_point);
	return 0;
}

static int find_cgroups(struct machine *m, const char *proc, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/mountinfo", proc), *text = NULL;
	int r = file_read(path, 0, &text, NULL, err);

	if (r < 0)
		return r;
	mountinfo_each(text, take_cgroup, m);
	m->list = xcalloc(m->cgroups.count + 1, sizeof(*m->list));
	for (size_t i = 0; i < m->cgroups.count; i++)
		m->list[i] = m->cgroups.items[i];
	return 0;
}

static int open_namespaces(struct machine *m, const char *proc, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		cleanup_free char *path = xasprintf("%s/ns/%s", proc, namespaces[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			continue; /* a kernel without them */
		if (fd < 0)
			return error_errno(err, errno,
					   "cannot reach the machine's programs (%s); the node "
					   "service needs hostPID and privileged for that",
					   path);
		m->ns[m->ns_count++] = fd;
	}
	return 0;
}

int machine_open(const char *proc, struct machine **ret, struct error *err)
{
	struct machine *m;
	int r;

	/* the first process that is seen here is ourselves: what is meant is out of sight */
	if (getpid() == 1)
		return error_set(err, EPERM,
				 "the machine's programs are out of reach: the node service sees "
				 "its own processes only; give its pod hostPID");
	m = xcalloc(1, sizeof(*m));
	r = open_namespaces(m, proc, err);
	if (r == 0)
		r = find_cgroups(m, proc, err);
	if (r < 0) {
		machine_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

int machine_run(const struct machine *m, const struct host_command *command,
		struct host_result *ret)
{
	struct process_place place = { .ns = m->ns, .ns_count = m->ns_count, .cgroups = m->list };

	return process_run_at(&place, command, ret);
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->ns_count; i++)
		close(m->ns[i]);
	strv_done(&m->cgroups);
	free(m->list);
	free(m);
}
