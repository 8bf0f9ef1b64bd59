/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on the node service, by its socket: ids and paths that lead elsewhere, links that are swapped in
 * while it works, secrets that it might repeat, storage that never answers. docs/development.md has
 * the table of attacks and their tests.
 */
#include "../skip.h"
#include "base/file.h"
#include "base/hung.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "mounts/bind.h"
#include "node_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define STEP_MS 20000
#define SECRET "hunter2-is-secret"
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SWAPS 20 /* processes are slow to make there */
#else
#define SWAPS 300
#endif

typedef char path_t[PATH_MAX];

/* Below the test's directory; the text is the caller's, since what is asked often would fill memory. */
static char *at(path_t p, const char *name)
{
	snprintf(p, sizeof(path_t), "%s/%s", dir, name);
	return p;
}
#define AT(name) at((path_t){ 0 }, name)

/* ---- requests --------------------------------------------------------------------------------- */

typedef Csi__V1__NodeStageVolumeRequest__VolumeContextEntry entry_t;
#define ENTRY(k, v)                                                                                \
	{                                                                                          \
		PROTOBUF_C_MESSAGE_INIT(                                                           \
			&csi__v1__node_stage_volume_request__volume_context_entry__descriptor),    \
			(char *)(k), (char *)(v)                                                   \
	}

static enum grpc_code stage(const char *id, const char *staging, const char *driver,
			    const char *device, bool secret, struct error *err)
{
	Csi__V1__NodeStageVolumeRequest q = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	Csi__V1__NodeStageVolumeRequest__SecretsEntry
		s = CSI__V1__NODE_STAGE_VOLUME_REQUEST__SECRETS_ENTRY__INIT,
		*secrets[] = { &s };
	entry_t e[] = { ENTRY("driverVolumeType", driver), ENTRY("devicePath", device) };
	entry_t *context[] = { &e[0], &e[1] };

	q.volume_id = (char *)id;
	q.staging_target_path = (char *)staging;
	q.volume_capability = &capability;
	q.volume_context = context;
	q.n_volume_context = 2;
	s.key = (char *)"authPassword";
	s.value = (char *)SECRET;
	q.secrets = secrets;
	q.n_secrets = secret;
	return call_err("NodeStageVolume", &q, NULL, err);
}

static enum grpc_code publish(const char *id, const char *staging, const char *target,
			      struct error *err)
{
	Csi__V1__NodePublishVolumeRequest q = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = (char *)staging;
	q.target_path = (char *)target;
	q.volume_capability = &capability;
	return call_err("NodePublishVolume", &q, NULL, err);
}

static enum grpc_code usage(const char *id, const char *path, struct error *err)
{
	Csi__V1__NodeGetVolumeStatsRequest q = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.volume_path = (char *)path;
	return call_err("NodeGetVolumeStats", &q, NULL, err);
}

/* ---- what must not change --------------------------------------------------------------------- */

static int count_in_victim(const struct mount_entry *e, void *userdata)
{
	*(int *)userdata += str_has_prefix(e->mount_point, AT("victim"));
	return 0;
}

/* Nothing was mounted, made or removed in the directory that is none of the service's business. */
static void assert_victim_whole(void)
{
	cleanup_free char *text = NULL, *mounts = NULL;
	int mounted = 0, entries = 0;
	struct stat st;
	DIR *d;

	assert_int_equal(file_read("/proc/self/mountinfo", 0, &mounts, NULL, NULL), 0);
	assert_int_equal(mountinfo_each(mounts, count_in_victim, &mounted), 0);
	assert_int_equal(mounted, 0);
	assert_int_equal(file_read(AT("victim/precious"), 0, &text, NULL, NULL), 0);
	assert_string_equal(text, "x");
	assert_true(stat(AT("victim/t"), &st) == 0 && S_ISDIR(st.st_mode));
	assert_true(stat(AT("victim/empty"), &st) == 0 && S_ISREG(st.st_mode));
	d = opendir(AT("victim"));
	assert_non_null(d);
	while (readdir(d))
		entries++;
	closedir(d);
	assert_int_equal(entries, 5); /* with . and .. */
}

/* ---- ids and paths ---------------------------------------------------------------------------- */

static void assert_no_such(enum grpc_code code, const char *what, const char *with)
{
	if (code != GRPC_INVALID_ARGUMENT && code != GRPC_NOT_FOUND)
		fail_msg("%s of \"%s\": %s", what, with, grpc_code_name(code));
}

static void test_ids(void **state)
{
	static const char *const ids[] = { "../victim",
					   "..",
					   "/etc/passwd",
					   "v1.p.d.../..",
					   "v1.p.d.x/../../",
					   "%2e%2e%2fvictim",
					   "v1.p.d.%00",
					   "v1.p.d.\xc3\xa4",
					   "v1.p.d.\xe2\x80\xaex",
					   "v1.p.d.a\nb",
					   "v1.p.d.$(id)",
					   "v1.p.d.x;reboot",
					   "v1.p.d.x y",
					   "v1.p.d.x\\..",
					   "\xef\xbc\x8e\xef\xbc\x8e\xef\xbc\x8f",
					   "v1.p.d.{{.Env}}" };
	char longest[400];

	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i <= ARRAY_SIZE(ids); i++) {
		const char *id = i < ARRAY_SIZE(ids) ? ids[i] : longest;

		assert_no_such(stage(id, AT("kubelet/s"), "LOCAL", AT("data"), false, NULL),
			       "stage", id);
		assert_no_such(publish(id, AT("kubelet/s"), AT("kubelet/t"), NULL), "publish", id);
		assert_no_such(unpublish(id, AT("kubelet/t")), "unpublish", id);
		assert_no_such(unstage(id, AT("kubelet/s")), "unstage", id);
		assert_no_such(usage(id, AT("kubelet/t"), NULL), "stats", id);
		assert_no_such(expand(id, AT("kubelet/t")), "expand", id);
	}
	assert_victim_whole();
	assert_int_equal(access(AT("kubelet/t"), F_OK), -1);
}

static void test_paths(void **state)
{
	static const char *const paths[] = { "victim/t",
					     "kubelet/../victim/t",
					     "kubelet/./x",
					     "kubelet//x",
					     "kubelet",
					     "kubelet/",
					     "kubeletx/t",
					     "kubelet/..",
					     "kubelet/x/../../victim/t",
					     "kubelet/a\nb" };
	static const char *const others[] = { "/etc/x", "relative", "/", "..", "kubelet/x" };
	char deep[PATH_MAX + 100];

	snprintf(deep, sizeof(deep), "%s/kubelet/", dir);
	memset(deep + strlen(deep), 'a', sizeof(deep) - strlen(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	for (size_t i = 0; i <= ARRAY_SIZE(paths) + ARRAY_SIZE(others); i++) {
		const char *p = i < ARRAY_SIZE(paths)	 ? AT(paths[i])
				: i == ARRAY_SIZE(paths) ? deep
							 : others[i - ARRAY_SIZE(paths) - 1];

		assert_no_such(stage(ID, p, "LOCAL", AT("data"), false, NULL), "stage", p);
		assert_no_such(publish(ID, AT("kubelet/s"), p, NULL), "publish", p);
		assert_no_such(publish(ID, p, AT("kubelet/t"), NULL), "publish", p);
		assert_no_such(unpublish(ID, p), "unpublish", p);
		assert_no_such(unstage(ID, p), "unstage", p);
		assert_no_such(usage(ID, p, NULL), "stats", p);
	}
	assert_victim_whole();
}

/* ---- links that are swapped in ---------------------------------------------------------------- */

struct swapper {
	path_t one, two;
	atomic_bool stop;
	atomic_int count;
	pthread_t thread;
};

static void *swap(void *userdata)
{
	struct swapper *s = userdata;

	while (!atomic_load(&s->stop))
		if (renameat2(AT_FDCWD, s->one, AT_FDCWD, s->two, RENAME_EXCHANGE) == 0)
			atomic_fetch_add(&s->count, 1);
	return NULL;
}

static void swapper_start(struct swapper *s, const char *one, const char *two)
{
	at(s->one, one);
	at(s->two, two);
	assert_int_equal(pthread_create(&s->thread, NULL, swap, s), 0);
}

static void swapper_end(struct swapper *s)
{
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	assert_true(s->count > 0);
	if (s->count % 2)
		assert_int_equal(renameat2(AT_FDCWD, s->one, AT_FDCWD, s->two, RENAME_EXCHANGE), 0);
}

/*
 * What is above the target becomes a link to elsewhere and back, without a pause. Whatever the
 * service says, the mount is at the place that was asked for, or nowhere.
 */
static void test_target_swapped(void **state)
{
	struct swapper s = { 0 };
	int done = 0, refused = 0;

	if (!can_mount)
		skip_without("the right to mount");
	assert_int_equal(mkdir(AT("kubelet/pods"), 0755), 0);
	assert_int_equal(symlink(AT("victim"), AT("kubelet/link")), 0);
	assert_int_equal(stage(ID, AT("kubelet/s"), "LOCAL", AT("data"), false, NULL), GRPC_OK);
	swapper_start(&s, "kubelet/pods", "kubelet/link");
	for (int i = 0; i < SWAPS; i++) {
		enum grpc_code code = publish(ID, AT("kubelet/s"), AT("kubelet/pods/t"), NULL);

		done += code == GRPC_OK;
		refused += code == GRPC_INVALID_ARGUMENT;
		(void)unpublish(ID, AT("kubelet/pods/t"));
		(void)unpublish(ID, AT("kubelet/pods/empty"));
		if (i % 20 == 0)
			assert_victim_whole();
	}
	swapper_end(&s);
	assert_victim_whole();
	print_message("%d published, %d refused, %d swaps\n", done, refused, (int)s.count);
	assert_true(done > 0 && refused > 0); /* else nothing was tested */
	for (int i = 0; i < SWAPS && unpublish(ID, AT("kubelet/pods/t")) != GRPC_OK; i++)
		;
	assert_int_equal(access(AT("kubelet/pods/t"), F_OK), -1);
	assert_int_equal(unstage(ID, AT("kubelet/s")), GRPC_OK);
	assert_int_equal(unlink(AT("kubelet/link")), 0);
}

/* A volume's directory in its pool becomes a link to elsewhere: it is never what is shown. */
static void test_source_swapped(void **state)
{
	struct swapper s = { 0 };
	struct bind b = { .root = AT("pool"),
			  .sub = "subvol/v",
			  .target = AT("kubelet/shown"),
			  .kind = PLACE_DIRECTORY,
			  .make = 0750 };
	int done = 0, refused = 0;

	if (!can_mount)
		skip_without("the right to mount");
	assert_int_equal(mkdir(AT("pool"), 0755), 0);
	assert_int_equal(mkdir(AT("pool/subvol"), 0755), 0);
	assert_int_equal(mkdir(AT("pool/subvol/v"), 0755), 0);
	assert_int_equal(file_write(AT("pool/subvol/v/own"), "x", 1, 0600, NULL), 0);
	assert_int_equal(symlink("../../victim", AT("pool/subvol/link")), 0);
	swapper_start(&s, "pool/subvol/v", "pool/subvol/link");
	for (int i = 0; i < SWAPS; i++) {
		int r = bind_mount(&b, STEP_MS, NULL);

		refused += r == -ELOOP;
		if (r < 0)
			continue;
		done++;
		assert_int_equal(access(AT("kubelet/shown/own"), F_OK), 0);
		assert_int_equal(access(AT("kubelet/shown/precious"), F_OK), -1);
		assert_int_equal(bind_end(b.target, STEP_MS), 0);
	}
	swapper_end(&s);
	print_message("%d shown, %d refused, %d swaps\n", done, refused, (int)s.count);
	assert_true(done > 0 && refused > 0);
	assert_int_equal(access(b.target, F_OK), -1);
	assert_victim_whole();
}

/* ---- secrets ---------------------------------------------------------------------------------- */

/* Whatever goes wrong, what is said and what is logged do not have them. */
static void test_secrets(void **state)
{
	static const char *const drivers[] = { "LOCAL",	    "ISCSI",   "NFS",	   "SMB", "RBD",
					       "GLUSTERFS", "SCALEIO", "NONSENSE", "" };
	cleanup_free char *log = NULL;
	int keep = dup(STDERR_FILENO), fd = open(AT("log"), O_CREAT | O_WRONLY | O_APPEND, 0600);

	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		struct error err = ERROR_INIT;
		enum grpc_code code =
			stage(ID, AT("kubelet/s"), drivers[i], AT("nothing-here"), true, &err);

		if (code == GRPC_OK || strstr(err.message, SECRET)) {
			dup2(keep, STDERR_FILENO);
			fail_msg("%s: %s: %s", drivers[i], grpc_code_name(code), err.message);
		}
	}
	assert_true(dup2(keep, STDERR_FILENO) >= 0);
	close(keep);
	close(fd);
	assert_int_equal(file_read(AT("log"), 0, &log, NULL, NULL), 0);
	assert_non_null(strstr(log, "cannot stage volume " ID)); /* else nothing was logged */
	assert_null(strstr(log, SECRET));
}

/* ---- storage that does not answer ------------------------------------------------------------- */

/* A file system of one empty directory that answers until it is told not to. */
static struct {
	int device;
	atomic_bool mute;
	atomic_int unanswered;
	pthread_t thread;
} fuse;

static void fuse_reply(uint64_t unique, int error, const void *body, size_t len)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + len),
				     .error = -error,
				     .unique = unique };
	struct iovec io[] = { { &h, sizeof(h) }, { (void *)body, len } };

	if (writev(fuse.device, io, 2) < 0)
		return; /* nobody waits for it any more */
}

static void fuse_answer(const struct fuse_in_header *q)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = 31,
				      .max_write = 4096 };
	struct fuse_attr_out attr = { .attr = { .ino = 1, .mode = S_IFDIR | 0755, .nlink = 2 } };
	struct fuse_statfs_out fs = { .st = { .bsize = 512, .namelen = 255 } };

	if (q->opcode == FUSE_INIT)
		fuse_reply(q->unique, 0, &init, sizeof(init));
	else if (atomic_load(&fuse.mute))
		atomic_fetch_add(&fuse.unanswered, 1);
	else if (q->opcode == FUSE_GETATTR)
		fuse_reply(q->unique, 0, &attr, sizeof(attr));
	else if (q->opcode == FUSE_STATFS)
		fuse_reply(q->unique, 0, &fs, sizeof(fs));
	else if (q->opcode != FUSE_FORGET && q->opcode != FUSE_BATCH_FORGET)
		fuse_reply(q->unique, q->opcode == FUSE_LOOKUP ? ENOENT : ENOSYS, NULL, 0);
}

static void *fuse_serve(void *arg)
{
	static char in[64 << 10];
	ssize_t n;

	while ((n = read(fuse.device, in, sizeof(in))) > 0 || errno == EINTR || errno == ENOENT)
		if (n > 0)
			fuse_answer((const struct fuse_in_header *)in);
	return arg;
}

/* Where there is no FUSE the test is skipped. */
static void fuse_start(const char *where)
{
	char options[100];

	if (!can_mount)
		skip_without("the right to mount");
	fuse.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse.device < 0)
		skip_without("/dev/fuse");
	assert_int_equal(mkdir(where, 0755), 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0",
		 fuse.device);
	if (mount("hangs", where, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		skip_without("a mount of FUSE: %s", strerror(errno));
	assert_int_equal(pthread_create(&fuse.thread, NULL, fuse_serve, NULL), 0);
}

/* Ends the connection, by which all that hang in it get an error. */
static void fuse_end(const char *where)
{
	umount2(where, MNT_DETACH | MNT_FORCE);
	pthread_join(fuse.thread, NULL);
	close(fuse.device);
}

/* Processes that we started and that are still there. */
static int children(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int count = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		cleanup_free char *text = NULL;
		path_t path;
		int parent;
		const char *end;

		snprintf(path, sizeof(path), "/proc/%.20s/stat", e->d_name);
		if (e->d_name[0] > '9' || file_read(path, 4096, &text, NULL, NULL) < 0)
			continue;
		end = strrchr(text, ')');
		count += end && sscanf(end, ") %*c %d", &parent) == 1 && parent == getpid();
	}
	closedir(d);
	return count;
}

static atomic_int hung_calls;

/* As kubelet does: again and again. */
static void *ask_for_what_hangs(void *arg)
{
	atomic_bool *stop = arg;

	while (!atomic_load(stop)) {
		struct error err = ERROR_INIT;
		enum grpc_code code =
			publish("hangs", AT("kubelet/stage-hangs"), AT("kubelet/hangs"), &err);

		if (code == GRPC_OK)
			return (void *)"publish";
		if (usage("hangs", AT("kubelet/shows"), &err) == GRPC_OK)
			return (void *)"measure";
		atomic_fetch_add(&hung_calls, 1);
	}
	return NULL;
}

#define OTHERS 20

/* One volume's storage does not answer, for good; those of twenty others are published meanwhile. */
static void test_hung_mount(void **state)
{
	static const char *const shows[] = { "kubelet/shows", "kubelet/shows-1",
					     "kubelet/shows-2" };
	atomic_bool stop = false;
	pthread_t thread;
	struct error err = ERROR_INIT;
	void *result;
	int left;

	fuse_start(AT("hangs"));
	assert_int_equal(
		stage("hangs", AT("kubelet/stage-hangs"), "LOCAL", AT("hangs"), false, NULL),
		GRPC_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			publish("hangs", AT("kubelet/stage-hangs"), AT(shows[i]), NULL), GRPC_OK);
	atomic_store(&fuse.mute, true);
	assert_int_equal(pthread_create(&thread, NULL, ask_for_what_hangs, &stop), 0);
	while (atomic_load(&fuse.unanswered) == 0)
		sched_yield();
	for (int i = 0; i < OTHERS; i++) {
		char id[32], staging[64], target[64];

		snprintf(id, sizeof(id), "other-%d", i);
		snprintf(staging, sizeof(staging), "kubelet/stage-%d", i);
		snprintf(target, sizeof(target), "kubelet/other-%d", i);
		assert_int_equal(stage(id, AT(staging), "LOCAL", AT("data"), false, NULL), GRPC_OK);
		assert_int_equal(publish(id, AT(staging), AT(target), NULL), GRPC_OK);
		assert_int_equal(usage(id, AT(target), NULL), GRPC_OK);
		assert_int_equal(unpublish(id, AT(target)), GRPC_OK);
		assert_int_equal(unstage(id, AT(staging)), GRPC_OK);
	}
	/* asked for often, it costs no more than at first */
	while (atomic_load(&hung_calls) < 3)
		sched_yield();
	left = children();
	assert_in_range(left, 1, 3);
	while (atomic_load(&hung_calls) < 30)
		sched_yield();
	atomic_store(&stop, true);
	pthread_join(thread, &result);
	assert_null(result);
	assert_int_equal(children(), left);
	(void)usage("hangs", AT("kubelet/shows"), &err);
	print_message("%d hang; \"%s\"\n", left, err.message);
	assert_non_null(strstr(err.message, "still hangs in the kernel, since "));
	/* nor does each place where the same file system is shown */
	for (int i = 1; i < 3; i++) {
		(void)usage("hangs", AT(shows[i]), &err);
		assert_non_null(strstr(err.message, "still hangs in the kernel, since "));
		assert_int_equal(children(), left);
	}
	fuse_end(AT("hangs"));
	/* what hung has ended, and nothing of it is remembered */
	for (int i = 0; i < 3; i++)
		assert_int_equal(unpublish("hangs", AT(shows[i])), GRPC_OK);
	assert_int_equal(unstage("hangs", AT("kubelet/stage-hangs")), GRPC_OK);
	while (children() > 0)
		assert_int_equal(hung_check(NULL, NULL, NULL), 0);
}

/* ---- the service ------------------------------------------------------------------------------ */

static int setup(void **state)
{
	static const char *const dirs[] = { "kubelet", "victim", "victim/t" };

	node_prepare();
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(mkdir(AT(dirs[i]), 0755), 0);
	assert_int_equal(file_write(AT("victim/precious"), "x", 1, 0600, NULL), 0);
	assert_int_equal(file_write(AT("victim/empty"), "", 0, 0600, NULL), 0);
	node_start((struct csi_node_options){ .kubelet_dir = in_dir("kubelet") });
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_target_swapped),
		cmocka_unit_test(test_source_swapped),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_hung_mount),
	};

	return cmocka_run_group_tests(tests, setup, node_teardown);
}
