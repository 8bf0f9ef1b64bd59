/* SPDX-License-Identifier: Apache-2.0 */
#include "local/client.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/spawn.h"
#include "clients/client.h"
#include "containers/runtime.h"
#include "local/bundle.h"
#include "local/instance.h"
#include "local/self.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

enum { UNPACK_MS = 30 * 60 * 1000, ASK_MS = 3000, STOP_MS = 15000, PAUSE_MS = 50 };

static char *settings_path(const struct client_protocol *p)
{
	return state_path("clients/%s.json", p->name);
}

static char *runtime_root(void)
{
	return run_path("containers/state");
}

static char *container_id(const struct client_protocol *p)
{
	return xasprintf("%s-%s", instance_name(), p->name);
}

static int read_settings(const struct client_protocol *p, json_t **ret, struct error *err)
{
	cleanup_free char *path = settings_path(p), *text = NULL;
	size_t len;
	int r = file_read(path, 0, &text, &len, err);

	return r < 0 ? r : json_parse(text, len, ret, err);
}

bool local_client_chosen(const struct client_protocol *p)
{
	cleanup_free char *path = settings_path(p);

	return access(path, F_OK) == 0;
}

int local_clients_host(struct clients_host **ret, struct error *err)
{
	cleanup_free char *dir = run_path("clients");

	return clients_host_new(dir, ret, err);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask(const struct client_protocol *p, struct client_reply *ret, struct error *err)
{
	cleanup_free char *dir = run_path("clients/%s", p->name);
	cleanup_json json_t *request = json_pack("{s:s}", "op", "info");

	return client_call(dir, request, NULL, 0, ASK_MS, ret, err);
}

/* Who uses it; -errno where it does not answer. */
static int users_of(const struct client_protocol *p, bool *ret_right, bool *ret_ending,
		    struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *settings = NULL;
	cleanup_free char *image = NULL;
	int r = ask(p, &reply, err);

	if (r < 0)
		return r;
	if (read_settings(p, &settings, NULL) == 0)
		image = bundle_image(settings);
	*ret_right = image && streq(jstr(reply.text, "image"), image);
	*ret_ending = jbool(reply.text, "ending");
	return (int)jint(reply.text, "users");
}

static int check_idle(const struct client_protocol *p, struct error *err)
{
	bool right, ending;
	int users = users_of(p, &right, &ending, NULL);

	return users <= 0 ? 0
			  : error_set(err, EBUSY,
				      "the %s client has %d users yet (mounts, or sessions of a "
				      "target); end them first",
				      p->name, users);
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Links lead where they would in the container, not out of it. */
static bool has_program(int root, const char *program)
{
	static const char *const dirs[] = { "usr/sbin", "usr/bin",	  "sbin",
					    "bin",	"usr/local/sbin", "usr/local/bin" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dirs[i], program);
		struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
		cleanup_close int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111))
			return true;
	}
	return false;
}

static int check_program(const struct client_protocol *p, const char *image, int root,
			 const char *program, struct error *err)
{
	if (has_program(root, program))
		return 0;
	return error_set(
		err, ENOENT,
		"the image %s has no program %s, so it cannot be the %s client; Debian has "
		"it in: %s",
		image, program, p->name, p->packages);
}

static int check_programs(const struct client_protocol *p, const char *image, const char *rootfs,
			  struct error *err)
{
	cleanup_close int root = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (root < 0)
		return error_errno(err, errno, "cannot open %s", rootfs);
	for (const char *const *program = p->programs; *program && r == 0; program++)
		r = check_program(p, image, root, *program, err);
	return r < 0 || !p->daemon ? r : check_program(p, image, root, p->daemon->argv[0], err);
}

static int unpack(const char *image, json_t **ret, struct error *err)
{
	cleanup_free char *program = self_sibling("qm-image"), *store = state_path("images");
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	const char *argv[] = { program, image, store, NULL };
	int r = spawn_run(&(struct spawn){ .argv = argv, .timeout_ms = UNPACK_MS }, &result, err);

	if (r < 0)
		return error_prefix(err, "unpacking the image %s", image);
	if (result.status != 0) { /* its one sentence is ours */
		if (result.err.data)
			result.err.data[strcspn(result.err.data, "\n")] = '\0';
		return error_set(err, EINVAL, "%s",
				 result.err.data ? result.err.data : "qm-image failed");
	}
	return json_parse(result.out.data, result.out.len, ret, err);
}

/* Its directory stays until it has ended (local_clients_stop): until then it is whom to ask. */
static int choose_host(const struct client_protocol *p, struct error *err)
{
	cleanup_free char *path = settings_path(p);
	int r = check_idle(p, err);

	if (r == 0 && unlink(path) < 0 && errno != ENOENT)
		return error_errno(err, errno, "removing %s", path);
	return r;
}

int local_client_choose(const struct client_protocol *p, const char *image, struct error *err)
{
	cleanup_free char *path = settings_path(p), *dir = state_path("clients"), *text = NULL;
	char archive[PATH_MAX];
	cleanup_json json_t *settings = NULL;
	int r;

	if (streq(image, "host"))
		return choose_host(p, err);
	if (!*image)
		return error_set(err, EINVAL, "--%s-mount-container: use an OCI archive, or host",
				 p->name);
	if (!runtime_find(err))
		return -err->code;
	if (!realpath(image, archive))
		return error_errno(err, errno, "cannot read the image %s of the %s client", image,
				   p->name);
	r = unpack(archive, &settings, err);
	if (r == 0)
		r = check_programs(p, image, jstr(settings, "rootfs"), err);
	if (r == 0)
		r = mkdir_parents(dir, 0755, err);
	if (r < 0)
		return r;
	json_object_set_new(settings, "archive", json_string(archive));
	text = json_text_pretty(settings);
	return file_write(path, text, strlen(text), 0644, err);
}

/* ---- preparing ------------------------------------------------------------------------------- */

struct mounts_at {
	bool shared; /* what is mounted there, or the mount that it lies in */
	bool itself; /* it is a mount point */
	bool below; /* there are mounts below it */
};

static int look_at(const char *path, struct mounts_at *ret, struct error *err)
{
	cleanup_free char *text = NULL;
	size_t best = 0, path_len = strlen(path);
	char *save = NULL;
	int r = file_read("/proc/self/mountinfo", 0, &text, NULL, err);

	if (r < 0)
		return r;
	*ret = (struct mounts_at){ 0 };
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char point[PATH_MAX], *rest = strstr(line, " - ");
		size_t len;

		if (!rest || sscanf(line, "%*d %*d %*s %*s %4095s", point) != 1)
			continue;
		*rest = '\0';
		len = streq(point, "/") ? 0 : strlen(point);
		if (strncmp(point, path, path_len) == 0 && point[path_len] == '/')
			ret->below = true;
		if (len > path_len || strncmp(point, path, len) != 0 ||
		    (path[len] != '/' && path[len] != '\0') || len < best)
			continue;
		best = len;
		ret->itself = len == path_len;
		ret->shared = strstr(line, " shared:") != NULL;
	}
	return 0;
}

/*
 * Mounts that are made in a container are seen here only below a mount that is shared. Most machines
 * have one for all; where not, this one directory is made one.
 */
static int share(const char *path, struct error *err)
{
	struct mounts_at at;
	int r = look_at(path, &at, err);

	if (r < 0 || at.shared)
		return r;
	if (at.below)
		return error_set(err, EBUSY,
				 "mounts below %s would not be seen by client containers: end "
				 "those that are there, with: quartermaster umount DIR",
				 path);
	if ((!at.itself && mount(path, path, NULL, MS_BIND, NULL) < 0) ||
	    mount(NULL, path, NULL, MS_SHARED, NULL) < 0)
		return error_errno(err, errno, "cannot make %s a shared mount", path);
	return 0;
}

static int unshare_mounts(struct error *err)
{
	cleanup_free char *path = state_path("hostvol/mnt");
	struct mounts_at at;
	int r = look_at(path, &at, err);

	if (r == 0 && at.itself && !at.below && umount2(path, UMOUNT_NOFOLLOW) < 0)
		return error_errno(err, errno, "unmounting %s", path);
	return r;
}

int local_clients_prepare(struct error *err)
{
	cleanup_free char *top = state_path("hostvol"), *mnt = state_path("hostvol/mnt"),
			  *log = state_path("hostvol/log");
	bool any = false;
	int r = 0;

	for (const struct client_protocol *p = client_protocols; p->name && r == 0; p++) {
		cleanup_free char *dir = run_path("clients/%s", p->name);

		if (!local_client_chosen(p))
			continue;
		any = true;
		r = mkdir_parents(dir, 0700, err);
	}
	if (r == 0 && any)
		r = mkdir_parents(top, 0700, err);
	/* whole pools are mounted below it; the modes in there are for those whom a claim is shown to */
	if (r == 0 && any && chmod(top, 0700) < 0)
		r = error_errno(err, errno, "cannot set the mode of %s", top);
	if (r == 0 && any)
		r = mkdir_parents(mnt, 0755, err);
	if (r == 0 && any)
		r = mkdir_parents(log, 0755, err);
	if (r == 0 && any)
		r = share(mnt, err);
	return r;
}

/* ---- running --------------------------------------------------------------------------------- */

static int find_pid(const struct client_protocol *p, pid_t *ret, struct error *err)
{
	cleanup_free char *root = runtime_root(), *id = container_id(p);

	return container_pid(root, id, ret, err);
}

static int start(const struct program *program, pid_t *ret_pid, struct error *err)
{
	const struct client_protocol *p = client_protocol_find(program->argv[0]);
	cleanup_free char *root = runtime_root(), *id = container_id(p),
			  *log_dir = state_path("log");
	cleanup_free char *bundle = run_path("containers/%s", p->name);
	cleanup_free char *log = state_path("log/%s.log", program->name);
	cleanup_json json_t *settings = NULL;
	int r = container_pid(root, id, ret_pid, err);

	if (r < 0 || *ret_pid)
		return r;
	r = read_settings(p, &settings, err);
	if (r == -ENOENT)
		return error_set(err, ECANCELED, "%s was chosen to be the host's", p->name);
	if (r == 0)
		r = local_clients_prepare(err);
	if (r == 0)
		r = bundle_write(p, settings, id, bundle, err);
	if (r == 0)
		r = mkdir_parents(log_dir, 0755, err);
	return r < 0 ? r : container_run(root, bundle, id, log, ret_pid, err);
}

struct program *local_client_program(const struct client_protocol *p)
{
	cleanup_free char *name = xasprintf("client-%s", p->name);
	struct program *program = program_new(name, (const char *const[]){ p->name, NULL }, NULL);

	program->start = start;
	return program;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static int tell(const struct client_protocol *p, int sig, struct error *err)
{
	pid_t pid;
	int r = find_pid(p, &pid, err);
	cleanup_close int fd = r == 0 && pid ? pidfd_open(pid, 0) : -1;

	/* asked again with the descriptor in hand: the pid is still the container's */
	if (fd >= 0 && find_pid(p, &pid, NULL) == 0 && pid &&
	    pidfd_send_signal(fd, sig, NULL, 0) < 0 && errno != ESRCH)
		return error_errno(err, errno, "ending the %s client (pid %d)", p->name, pid);
	return r;
}

static int not_there(const struct client_protocol *p, struct error *err)
{
	cleanup_free char *log = state_path("log/client-%s.log", p->name);
	char why[200];

	container_last_words(log, why, sizeof(why));
	return error_set(err, ETIMEDOUT, "the %s client does not come: %s (see %s)", p->name, why,
			 log);
}

int local_client_await(const struct client_protocol *p, int timeout_ms, struct error *err)
{
	int64_t until = clock_mono_ms(&clock_real) + timeout_ms;

	for (;;) {
		bool right = false, ending = false;
		int users = users_of(p, &right, &ending, err);

		if (users >= 0 && right && !ending)
			return 0;
		if (users >= 0 && !ending) {
			int r = tell(p, SIGTERM, err);

			if (r < 0)
				return r;
		}
		if (users > 0)
			return 1;
		if (clock_mono_ms(&clock_real) >= until)
			return not_there(p, err);
		pause_ms(PAUSE_MS);
	}
}

/* ---- ending ---------------------------------------------------------------------------------- */

int local_clients_idle(struct error *err)
{
	int r = 0;

	for (const struct client_protocol *p = client_protocols; p->name && r == 0; p++)
		r = check_idle(p, err);
	return r;
}

static int await_end(const struct client_protocol *p, int timeout_ms, struct error *err)
{
	pid_t pid;
	int r = find_pid(p, &pid, err);
	cleanup_close int fd = r == 0 && pid ? pidfd_open(pid, 0) : -1;
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	if (r < 0 || fd < 0 || poll(&poll_fd, 1, timeout_ms) > 0)
		return r;
	return error_set(err, EBUSY,
			 "the %s client (pid %d) does not end: somebody uses it; see: qm-client "
			 "--info %s/clients/%s",
			 p->name, pid, run_dir(), p->name);
}

static int stop(const struct client_protocol *p, bool force, struct error *err)
{
	cleanup_free char *root = runtime_root(), *id = container_id(p);
	cleanup_free char *bundle = run_path("containers/%s", p->name),
			  *socket = run_path("clients/%s", p->name);
	int r = tell(p, SIGTERM, err);

	if (r == 0)
		r = await_end(p, STOP_MS, err);
	if (r < 0 && !force)
		return r;
	r = container_delete(root, id, err);
	if (r == 0)
		r = remove_tree(bundle, err);
	return r < 0 ? r : remove_tree(socket, err);
}

int local_clients_stop(enum local_clients_which which, bool force, struct error *err)
{
	int r = 0;

	for (const struct client_protocol *p = client_protocols; p->name && r == 0; p++)
		if (which == LOCAL_CLIENTS_ALL || !local_client_chosen(p))
			r = stop(p, force, err);
	return r == 0 && which == LOCAL_CLIENTS_ALL ? unshare_mounts(err) : r;
}
