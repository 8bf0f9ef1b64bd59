/* SPDX-License-Identifier: Apache-2.0 */
#include "containers/runtime.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/spawn.h"

#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/vfs.h>

#define CALL_MS 30000
#define CGROUPS "/sys/fs/cgroup"

/* ---- which one ------------------------------------------------------------------------------- */

/* crun refuses a machine whose controllers are partly of version 1 and partly of version 2. */
static bool is_hybrid(void)
{
	cleanup_free char *controllers = NULL;

	return file_read(CGROUPS "/unified/cgroup.controllers", 4096, &controllers, NULL, NULL) ==
		       0 &&
	       controllers[strspn(controllers, "\n")];
}

const char *runtime_find(struct error *err)
{
	bool crun = program_installed("crun");

	if (crun && !is_hybrid())
		return "crun";
	if (program_installed("runc"))
		return "runc";
	error_set(err, ENOENT,
		  crun ? "crun does not run on a machine that mixes cgroups of version 1 and 2, as "
			 "this one does; run: apt-get install runc"
		       : "neither crun nor runc is installed, and containers are made with one of "
			 "them; run: apt-get install crun");
	return NULL;
}

bool runtime_has_cgroups(void)
{
	struct statfs fs;

	return statfs(CGROUPS, &fs) == 0 &&
	       (fs.f_type == CGROUP2_SUPER_MAGIC || access(CGROUPS "/devices", F_OK) == 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

#define WORDS_MAX 12

/* RUNTIME --root ROOT words… */
static int command(const char *argv[static WORDS_MAX + 6], const char *root,
		   const char *const *words, struct error *err)
{
	const char *runtime = runtime_find(err);
	size_t n = 0;

	if (!runtime)
		return -ENOENT;
	argv[n++] = runtime;
	if (!runtime_has_cgroups() && streq(runtime, "crun"))
		argv[n++] = "--cgroup-manager=disabled";
	argv[n++] = "--root";
	argv[n++] = root;
	while (*words)
		argv[n++] = *words++;
	argv[n] = NULL;
	return 0;
}

int container_pid(const char *root, const char *id, pid_t *ret, struct error *err)
{
	const char *argv[WORDS_MAX + 6];
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	cleanup_free char *dir = xasprintf("%s/%s", root, id);
	cleanup_json json_t *state = NULL;
	int r;

	*ret = 0;
	if (access(dir, F_OK) < 0)
		return 0;
	r = command(argv, root, (const char *const[]){ "state", id, NULL }, err);
	if (r == 0)
		r = spawn_run(&(struct spawn){ .argv = argv, .timeout_ms = CALL_MS }, &result, err);
	if (r < 0)
		return r;
	/* one that is half made is as good as none: container_run removes it */
	if (result.status == 0 && json_parse(result.out.data, result.out.len, &state, NULL) == 0 &&
	    streq(jstr(state, "status"), "running"))
		*ret = (pid_t)jint(state, "pid");
	return 0;
}

int container_delete(const char *root, const char *id, struct error *err)
{
	const char *argv[WORDS_MAX + 6];
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	cleanup_free char *dir = xasprintf("%s/%s", root, id);
	pid_t pid;
	int r;

	if (access(dir, F_OK) < 0)
		return 0;
	r = command(argv, root, (const char *const[]){ "delete", "--force", id, NULL }, err);
	if (r == 0)
		r = spawn_run(&(struct spawn){ .argv = argv, .timeout_ms = CALL_MS }, &result, err);
	if (r < 0)
		return r;
	r = container_pid(root, id, &pid, err);
	if (r == 0 && pid)
		r = error_set(err, EBUSY, "the container %s (pid %d) cannot be ended", id, pid);
	/* what a killed runtime has left need not be what it can read */
	return r < 0 ? r : remove_tree(dir, err);
}

void container_last_words(const char *log, char *ret, size_t size)
{
	cleanup_free char *text = NULL;
	char *line, *message;
	size_t len;

	snprintf(ret, size, "it does not say why");
	if (file_read(log, 0, &text, &len, NULL) < 0)
		return;
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	message = strstr(line, " msg=\""); /* runc's way */
	if (message) {
		line = message + strlen(" msg=\"");
		line[strcspn(line, "\"")] = '\0';
	}
	if (*line)
		snprintf(ret, size, "%s", line);
}

static int await(pid_t pid)
{
	cleanup_close int fd = pidfd_open(pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd < 0 || poll(&p, 1, CALL_MS) > 0 ? 0 : -ETIMEDOUT;
}

/* Not by spawn_run: the container keeps the descriptors, so their end would never come. */
int container_run(const char *root, const char *bundle, const char *id, const char *log, pid_t *ret,
		  struct error *err)
{
	const char *argv[WORDS_MAX + 6];
	char why[200];
	pid_t pid;
	int r = container_delete(root, id, err);

	if (r == 0)
		r = mkdir_parents(root, 0700, err);
	if (r == 0)
		r = command(
			argv, root,
			(const char *const[]){ "run", "--detach", "--bundle", bundle, id, NULL },
			err);
	if (r == 0)
		r = spawn_daemon(&(struct spawn_daemon){ .argv = argv,
							 .log_path = log,
							 .netns_fd = -1,
							 .mntns_fd = -1,
							 .keep_fd = -1 },
				 &pid, err);
	if (r < 0)
		return r;
	if (await(pid) < 0)
		return error_set(err, ETIMEDOUT, "%s has not made the container %s in time",
				 argv[0], id);
	r = container_pid(root, id, ret, err);
	if (r < 0 || *ret)
		return r;
	container_last_words(log, why, sizeof(why));
	return error_set(err, EIO, "%s could not make the container %s: %s (see %s)", argv[0], id,
			 why, log);
}
