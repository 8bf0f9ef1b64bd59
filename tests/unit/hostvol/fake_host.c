/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_host.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

static struct fake *fake_of(const struct hostvol_host *host)
{
	return host->userdata;
}

/* Whether this call is the one that fails; the process may end here. */
static bool begin(struct fake *f, int *ret_call)
{
	*ret_call = atomic_fetch_add(&f->calls, 1) + 1;
	if (*ret_call != f->fault_at)
		return false;
	if (f->fault == FAULT_DIE_BEFORE)
		_exit(FAKE_DIED);
	return f->fault == FAULT_FAIL;
}

static int end(struct fake *f, int call, int r)
{
	if (call == f->fault_at && f->fault == FAULT_DIE_AFTER)
		_exit(FAKE_DIED);
	return r;
}

#define STEP(host, error, action)                                                                  \
	do {                                                                                       \
		struct fake *f_ = fake_of(host);                                                   \
		int call_;                                                                         \
                                                                                                   \
		if (begin(f_, &call_))                                                             \
			return (error);                                                            \
		return end(f_, call_, (action));                                                   \
	} while (0)

static struct fake_mount *find(struct fake *f, const char *target)
{
	for (int i = f->mount_count - 1; i >= 0; i--)
		if (streq(f->mounts[i].target, target))
			return &f->mounts[i];
	return NULL;
}

static void add_mount(struct fake *f, const char *source, const char *target, const char *type)
{
	struct fake_mount *m = &f->mounts[f->mount_count++];

	*m = (struct fake_mount){ 0 };
	snprintf(m->source, sizeof(m->source), "%s", source);
	snprintf(m->target, sizeof(m->target), "%s", target);
	snprintf(m->type, sizeof(m->type), "%s", type);
	atomic_fetch_add(&f->mounts_made, 1);
}

static int run_nfs(struct fake *f, const char *const *argv, struct host_result *ret)
{
	snprintf(f->last_options, sizeof(f->last_options), "%s", argv[4]);
	if (f->nfs_refuses > 0) {
		f->nfs_refuses--;
		ret->status = 32;
		snprintf(ret->err, sizeof(ret->err), "mount.nfs: Protocol not supported\n");
		return 0;
	}
	add_mount(f, argv[1], argv[2], "nfs4");
	return 0;
}

static int run_gluster(struct fake *f, const char *const *argv)
{
	const char *server = "", *volume = "", *point = "";
	char source[200];

	for (; *argv; argv++) {
		if (!*server && strncmp(*argv, "--volfile-server=", 17) == 0)
			server = *argv + 17;
		if (strncmp(*argv, "--volfile-id=", 13) == 0)
			volume = *argv + 13;
		point = *argv;
	}
	snprintf(source, sizeof(source), "%s:%s", server, volume);
	add_mount(f, source, point, "fuse.glusterfs");
	return 0;
}

static int do_run(struct fake *f, const struct host_command *command, struct host_result *ret)
{
	int r = -ENOENT;

	*ret = (struct host_result){ 0 };
	if (f->helper_delay_ms > command->timeout_ms)
		return -ETIMEDOUT;
	if (f->helper_says) {
		ret->status = 32;
		snprintf(ret->err, sizeof(ret->err), "%s\n", f->helper_says);
		return 0;
	}
	pthread_mutex_lock(&f->lock);
	if (streq(command->argv[0], "mount.nfs"))
		r = run_nfs(f, command->argv, ret);
	else if (streq(command->argv[0], "glusterfs"))
		r = run_gluster(f, command->argv);
	else if (f->vendor_run)
		r = f->vendor_run(f, command, ret);
	pthread_mutex_unlock(&f->lock);
	return r;
}

static int fake_run(const struct hostvol_host *host, const struct host_command *command,
		    struct host_result *ret)
{
	STEP(host, -EIO, do_run(fake_of(host), command, ret));
}

static int fake_await_end(const struct hostvol_host *host, const char *program,
			  const char *last_arg, bool kill, int timeout_ms)
{
	struct fake *f = fake_of(host);

	if (kill && streq(f->late, last_arg))
		f->late[0] = '\0';
	f->killed += kill;
	f->client_lives &= !kill;
	STEP(host, -ETIMEDOUT, f->client_lives ? -ETIMEDOUT : 0);
}

static int do_mountinfo(struct fake *f, char **ret)
{
	char *text = NULL, *more;

	pthread_mutex_lock(&f->lock);
	if (asprintf(&text, "1 0 0:1 / / rw - ext4 /dev/root rw\n") < 0)
		text = NULL;
	for (int i = 0; i < f->mount_count && text; i++) {
		if (asprintf(&more, "%s%d 1 0:%d / %s rw shared:1 master:2 - %s %s rw\n", text,
			     i + 2, i + 2, f->mounts[i].target, f->mounts[i].type,
			     f->mounts[i].source) < 0)
			more = NULL;
		free(text);
		text = more;
	}
	pthread_mutex_unlock(&f->lock);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

static int fake_mountinfo(const struct hostvol_host *host, char **ret)
{
	STEP(host, -EIO, do_mountinfo(fake_of(host), ret));
}

static int do_unmount(struct fake *f, const char *path, enum host_unmount how)
{
	struct fake_mount *m;
	int r = 0;

	pthread_mutex_lock(&f->lock);
	m = find(f, path);
	if (!m) {
		r = -EINVAL;
	} else if (m->busy && how == HOST_UNMOUNT_PLAIN) {
		r = -EBUSY;
	} else {
		*m = f->mounts[--f->mount_count];
		atomic_fetch_add(&f->unmounts_made, 1);
	}
	pthread_mutex_unlock(&f->lock);
	return r;
}

static int fake_unmount(const struct hostvol_host *host, const char *path, enum host_unmount how,
			int timeout_ms)
{
	STEP(host, -EIO, do_unmount(fake_of(host), path, how));
}

static int do_probe(struct fake *f, const char *path)
{
	struct fake_mount *m;
	int r;

	pthread_mutex_lock(&f->lock);
	m = find(f, path);
	r = m && m->dead ? -ENOTCONN : 0;
	pthread_mutex_unlock(&f->lock);
	return r;
}

static int fake_probe(const struct hostvol_host *host, const char *path, int timeout_ms)
{
	STEP(host, -EIO, do_probe(fake_of(host), path));
}

static int fake_lookup(const struct hostvol_host *host, const char *dir, const char *sub,
		       int timeout_ms)
{
	struct fake *f = fake_of(host);
	bool there = find(f, dir) && !streq(f->missing, sub);

	STEP(host, -EIO, there ? 0 : -ENOENT);
}

static int stat_device(struct fake *f, const char *path, struct host_stat *ret)
{
	if (!fake_device(f, path)->there)
		return -ENOENT;
	*ret = (struct host_stat){ .type = HOST_FILE_BLOCK, .size = 1 << 20, .major = 7 };
	return 0;
}

static int fake_stat(const struct hostvol_host *host, const char *path, struct host_stat *ret,
		     int timeout_ms)
{
	STEP(host, -EIO,
	     strncmp(path, "/dev/", 5) == 0 && fake_of(host)->vendor_run
		     ? stat_device(fake_of(host), path, ret)
		     : host_real.stat(host, path, ret, timeout_ms));
}

static int fake_make_dir(const struct hostvol_host *host, const char *path, unsigned mode)
{
	STEP(host, -EROFS, host_real.make_dir(host, path, mode));
}

static int fake_remove_dir(const struct hostvol_host *host, const char *path)
{
	STEP(host, -EROFS, host_real.remove_dir(host, path));
}

static int fake_write_file(const struct hostvol_host *host, const char *path, const char *data,
			   size_t len)
{
	STEP(host, -ENOSPC, host_real.write_file(host, path, data, len));
}

static int fake_remove_file(const struct hostvol_host *host, const char *path)
{
	STEP(host, -EROFS, host_real.remove_file(host, path));
}

static int fake_address(const struct hostvol_host *host, char *buf, size_t size)
{
	snprintf(buf, size, "192.0.2.1");
	return 0;
}

static int fake_identify(const struct hostvol_host *host, char *machine, char *name, size_t size)
{
	snprintf(machine, size, "s390x");
	snprintf(name, size, "fake");
	return 0;
}

static bool fake_multipathd_runs(const struct hostvol_host *host)
{
	return true;
}

/* ---- vendors -------------------------------------------------------------------------------- */

struct fake_device *fake_device(struct fake *f, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->devices); i++) {
		struct fake_device *d = &f->devices[i];

		if (!d->path[0])
			snprintf(d->path, sizeof(d->path), "%s", path);
		if (strcmp(d->path, path) == 0)
			return d;
	}
	abort();
}

void fake_mount(struct fake *f, const char *source, const char *target, const char *type)
{
	add_mount(f, source, target, type);
}

static int64_t fake_mono_ms(const struct hostvol_host *host)
{
	return host_real.mono_ms(host) + fake_of(host)->slept_ms;
}

static void fake_sleep_ms(const struct hostvol_host *host, int ms)
{
	struct fake *f = fake_of(host);

	/* where several wait for one another, time has to pass for all of them */
	if (f->vendor_run)
		f->slept_ms += ms;
	else
		host_real.sleep_ms(host, ms);
}

static int fake_control_device(const struct hostvol_host *host, const char *path, unsigned request,
			       void *buf, size_t size, int timeout_ms)
{
	memset(buf, 0x41, size);
	STEP(host, -EIO, streq(path, "/dev/scini") && request == 0x610e ? 0 : -ENOTTY);
}

static int fake_device_in_use(const struct hostvol_host *host, const char *path, int timeout_ms)
{
	STEP(host, -EAGAIN, fake_device(fake_of(host), path)->busy);
}

static int find_device_name(struct fake *f, const char *dir, char *name, size_t size)
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(f->devices); i++)
		if (f->devices[i].there && strncmp(f->devices[i].path, dir, strlen(dir)) == 0 &&
		    n++ == 0)
			snprintf(name, size, "%s", f->devices[i].path + strlen(dir) + 1);
	return n;
}

static int fake_find_name(const struct hostvol_host *host, const char *dir, const char *prefix,
			  const char *suffix, char *name, size_t size)
{
	STEP(host, -EIO, find_device_name(fake_of(host), dir, name, size));
}

/* A DISCO client, which has volume 7. */
static int answer_disco(struct fake *f, const unsigned char *request, unsigned char *reply)
{
	struct fake_device *d = fake_device(f, "/dev/dms7");
	bool attach = request[3] == 1;

	if (f->unreachable)
		return -ECONNREFUSED;
	memset(reply, 0, 4);
	reply[3] = f->refuses || d->there == attach ? 5 : 0;
	if (!reply[3])
		d->there = attach;
	return 0;
}

static int fake_exchange(const struct hostvol_host *host, const char *address, unsigned port,
			 const void *request, size_t request_len, void *reply, size_t reply_len,
			 int timeout_ms)
{
	struct fake *f = fake_of(host);

	if (reply_len == 0)
		STEP(host, -ETIMEDOUT, streq(address, f->silent) ? -ETIMEDOUT : 0);
	STEP(host, -ETIMEDOUT, answer_disco(f, request, reply));
}

static bool fake_has_address(const struct hostvol_host *host, const char *address)
{
	return streq(address, "192.0.2.1");
}

struct fake *fake_new(void)
{
	struct fake *f =
		mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;

	if (f == MAP_FAILED)
		abort();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&f->lock, &attr);
	f->host = host_real;
	f->host.userdata = f;
	f->host.root = "/nonexistent";
	f->host.run = fake_run;
	f->host.await_end = fake_await_end;
	f->host.mountinfo = fake_mountinfo;
	f->host.unmount = fake_unmount;
	f->host.probe = fake_probe;
	f->host.lookup = fake_lookup;
	f->host.stat = fake_stat;
	f->host.make_dir = fake_make_dir;
	f->host.remove_dir = fake_remove_dir;
	f->host.write_file = fake_write_file;
	f->host.remove_file = fake_remove_file;
	f->host.address = fake_address;
	f->host.identify = fake_identify;
	f->host.multipathd_runs = fake_multipathd_runs;
	f->host.mono_ms = fake_mono_ms;
	f->host.sleep_ms = fake_sleep_ms;
	f->host.control_device = fake_control_device;
	f->host.device_in_use = fake_device_in_use;
	f->host.find_name = fake_find_name;
	f->host.exchange = fake_exchange;
	f->host.has_address = fake_has_address;
	return f;
}

void fake_free(struct fake *f)
{
	munmap(f, sizeof(*f));
}

void fake_set_fault(struct fake *f, enum fake_fault fault, int at)
{
	atomic_store(&f->calls, 0);
	f->fault = fault;
	f->fault_at = at;
}

char *temp_make(void)
{
	/* in memory where possible: each step syncs its record */
	char *dir = strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/hostvol-test.XXXXXX"
							 : "/tmp/hostvol-test.XXXXXX");

	if (!dir || !mkdtemp(dir))
		abort();
	return dir;
}

void temp_remove(char *dir)
{
	remove_tree(dir, NULL);
	free(dir);
}

bool fake_begin(struct fake *f, int *ret_call)
{
	return begin(f, ret_call);
}

int fake_end(struct fake *f, int call, int r)
{
	return end(f, call, r);
}
