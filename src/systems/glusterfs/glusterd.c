/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/glusterd.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define START_TIMEOUT_MS 20000
#define LOG_FILE "/var/log/glusterfs/glusterd.log"

/* Standard paths throughout: a person's `gluster` on the node finds this glusterd. */
static const char config_head[] = "volume management\n"
				  "    type mgmt/glusterd\n"
				  "    option working-directory /var/lib/glusterd\n"
				  "    option run-directory " GLUSTERD_RUN_DIR "\n"
				  "    option transport-type socket\n"
				  "    option transport.socket.keepalive-time 10\n"
				  "    option transport.socket.keepalive-interval 2\n"
				  "    option transport.socket.read-fail-log off\n"
				  "    option transport.socket.listen-port 24007\n"
				  "    option ping-timeout 0\n"
				  "    option event-threads 1\n"
				  "    option max-port 60999\n";

/* ---- processes ----------------------------------------------------------------------------- */
static int pid_from(const char *path)
{
	cleanup_free char *text = NULL;

	return file_read(path, 64, &text, NULL, NULL) < 0 ? 0 : atoi(text);
}

bool process_is(int pid, const char *word)
{
	cleanup_free char *stat_path = xasprintf("/proc/%d/stat", pid);
	cleanup_free char *cmdline_path = xasprintf("/proc/%d/cmdline", pid);
	cleanup_free char *stat_text = NULL, *cmdline = NULL;
	size_t len = 0;
	char *paren;

	if (pid <= 0 || file_read(stat_path, 4096, &stat_text, NULL, NULL) < 0 ||
	    file_read(cmdline_path, 1 << 16, &cmdline, &len, NULL) < 0)
		return false;
	paren = strrchr(stat_text, ')');
	if (!paren || paren[1] == '\0' || paren[2] == 'Z' || paren[2] == 'X')
		return false;
	for (size_t i = 0; i < len; i += strlen(cmdline + i) + 1)
		if (streq(cmdline + i, word) || (i == 0 && str_has_suffix(cmdline, word)))
			return true;
	return false;
}

static bool same_mount_namespace(int pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/ns/mnt", pid);
	struct stat ours, theirs;

	return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_ino == theirs.st_ino;
}

static int glusterd_pid(void)
{
	int pid = pid_from(GLUSTERD_PID_FILE);

	return process_is(pid, "glusterd") && same_mount_namespace(pid) ? pid : 0;
}

/* ---- glusterd ------------------------------------------------------------------------------ */
static bool answers(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = GLUSTERD_SOCKET };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
}

int glusterd_wait(int (*pid)(void *userdata), void *userdata, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + START_TIMEOUT_MS;

	while (!(pid(userdata) > 0 && answers())) {
		if (clock_mono_ms(&clock_real) >= end)
			return error_set(err, ETIMEDOUT,
					 "glusterd does not answer after %d s: see " LOG_FILE,
					 START_TIMEOUT_MS / 1000);
		nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000000 }, NULL);
	}
	return 0;
}

int glusterd_launch(const char *config_path, const char *address, pid_t *ret, struct error *err)
{
	const char *argv[] = { "glusterd",	  "-N", "-f",	  config_path, "-p",
			       GLUSTERD_PID_FILE, "-l", LOG_FILE, NULL };
	cleanup_free char *bind =
		address ? xasprintf("    option transport.socket.bind-address %s\n", address)
			: xstrdup("");
	cleanup_free char *config = xasprintf("%s%send-volume\n", config_head, bind);
	int rc;

	if ((rc = mkdir_parents(GLUSTERD_RUN_DIR, 0755, err)) < 0 ||
	    (rc = mkdir_parents("/var/lib/glusterd", 0755, err)) < 0 ||
	    (rc = mkdir_parents("/var/log/glusterfs", 0755, err)) < 0 ||
	    (rc = glusterd_forget_half_join(err)) < 0 ||
	    (rc = file_write(config_path, config, strlen(config), 0644, err)) < 0)
		return rc;
	unlink(GLUSTERD_PID_FILE);
	rc = spawn_daemon(&(struct spawn_daemon){ .argv = argv,
						  .log_path = LOG_FILE,
						  .netns_fd = -1,
						  .mntns_fd = -1,
						  .keep_fd = -1 },
			  ret, err);
	return rc < 0 ? error_prefix(err, "Cannot start glusterd") : 0;
}

void glusterd_uuid(char uuid[static UUID_TEXT_MAX])
{
	cleanup_free char *text = NULL;
	const char *p;

	uuid[0] = '\0';
	if (file_read("/var/lib/glusterd/glusterd.info", 4096, &text, NULL, NULL) == 0 &&
	    (p = strstr(text, "UUID=")))
		snprintf(uuid, UUID_TEXT_MAX, "%.36s", p + 5);
}

static int own_pid(void *userdata)
{
	(void)userdata;
	return glusterd_pid();
}

int glusterd_start(const char *config_path, bool start, struct glusterd_state *ret,
		   struct error *err)
{
	pid_t pid;
	int rc;

	if (glusterd_pid() == 0) {
		if (!start) {
			*ret = (struct glusterd_state){ 0 };
			return 0;
		}
		rc = glusterd_launch(config_path, NULL, &pid, err);
		if (rc < 0)
			return rc;
	}
	rc = glusterd_wait(own_pid, NULL, err);
	if (rc < 0)
		return rc;
	*ret = (struct glusterd_state){ .running = true, .pid = glusterd_pid() };
	glusterd_uuid(ret->uuid);
	return 0;
}

/* ---- bricks -------------------------------------------------------------------------------- */
/* glusterd names a brick's pid file ADDRESS-path-with-dashes.pid. */
static bool pid_file_is_of(const char *name, const char *path)
{
	cleanup_free char *tail = xasprintf("%s.pid", path);

	for (char *p = tail; (p = strchr(p, '/'));)
		*p = '-';
	return str_has_suffix(name, tail);
}

int glusterd_brick_pid(const char *volume, const char *path)
{
	cleanup_free char *dir_path = xasprintf(GLUSTERD_RUN_DIR "/vols/%s", volume);
	DIR *dir = opendir(dir_path);
	const struct dirent *e;
	int pid = 0;

	if (!dir)
		return 0;
	while (pid == 0 && (e = readdir(dir))) {
		cleanup_free char *file = xasprintf("%s/%s", dir_path, e->d_name);

		if (pid_file_is_of(e->d_name, path))
			pid = pid_from(file);
	}
	closedir(dir);
	return process_is(pid, path) ? pid : 0;
}

/*
 * The file is emptied, not removed, and only under the lock that a brick takes before it writes its number and
 * keeps while it lives: one that is just starting has the file open already, and would write its
 * number where glusterd never finds it, which then starts a second process on the same directory.
 */
static void forget_if_dead(const char *path)
{
	cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
	char text[32] = "";
	int pid;

	if (fd < 0 || lockf(fd, F_TLOCK, 0) < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return;
	pid = atoi(text);
	if (!process_is(pid, GLUSTERD_BRICK_FLAG) && ftruncate(fd, 0) < 0)
		log_warn("cannot empty %s: %s", path, strerror(errno));
}

void glusterd_forget_dead(const char *volume)
{
	cleanup_free char *dir_path = xasprintf(GLUSTERD_RUN_DIR "/vols/%s", volume);
	DIR *dir = opendir(dir_path);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		cleanup_free char *file = xasprintf("%s/%s", dir_path, e->d_name);

		if (str_has_suffix(e->d_name, ".pid"))
			forget_if_dead(file);
	}
	if (dir)
		closedir(dir);
}

int64_t glusterd_brick_pending(const char *path)
{
	cleanup_free char *index = xasprintf("%s/.glusterfs/indices/xattrop", path);
	DIR *dir = opendir(index);
	const struct dirent *e;
	int64_t n = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && !str_has_prefix(e->d_name, "xattrop-"))
			n++;
	closedir(dir);
	return n;
}
