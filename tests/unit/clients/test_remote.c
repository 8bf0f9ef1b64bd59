/* SPDX-License-Identifier: Apache-2.0 */
/* A real qm-client on a socket, asked the way libhostvol asks its machine. */
#include "../skip.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "clients/client.h"
#include "clients/remote.h"
#include "clients/watch.h"
#include "core/host.h"
#include "helper.h"
#include "hostvol/hostvol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

enum { WAIT_MS = 20000 };

static char *base, *dir, *program; /* /tmp/…, its glusterfs/, its bin/glusterfs */
static pid_t client;
static struct clients_host *remote;

/* ---- the client ------------------------------------------------------------------------------ */

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static int ask_info_of(const char *where, struct client_reply *ret)
{
	cleanup_json json_t *request = json_pack("{s:s}", "op", "info");

	return client_call(where, request, NULL, 0, 5000, ret, NULL);
}

static int ask_info(struct client_reply *ret)
{
	return ask_info_of(dir, ret);
}

static pid_t start_in(const char *where, const char *image)
{
	int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("QM_CLIENT_IMAGE", image, 1);
		if (getppid() == parent)
			execl(QM_CLIENT, "qm-client", where, NULL);
		_exit(127);
	}
	for (;;) {
		cleanup_with(client_reply_done) struct client_reply reply = { 0 };

		if (ask_info_of(where, &reply) == 0 && jint(reply.text, "pid") == pid)
			return pid;
		assert_true(clock_mono_ms(&clock_real) < end);
		pause_ms(5);
	}
}

static void start_client(void)
{
	client = start_in(dir, "example.org/glusterfs:11");
}

/* 0: it has not ended within that time; otherwise what waitpid says. */
static bool client_ends(int ms, int *ret_status)
{
	int64_t end = clock_mono_ms(&clock_real) + ms;

	while (client > 0) {
		pid_t pid = waitpid(client, ret_status, WNOHANG);

		if (pid == client)
			client = 0;
		else if (clock_mono_ms(&clock_real) >= end)
			return false;
		else
			pause_ms(5);
	}
	return true;
}

static void kill_client(void)
{
	int status;

	if (client <= 0)
		return;
	kill(client, SIGKILL);
	waitpid(client, &status, 0);
	client = 0;
}

static int set_up(void **state)
{
	static char name[] = "/tmp/qm-clients-XXXXXX";
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (!mkdtemp(name) || len < 0)
		return -1;
	self[len] = '\0';
	base = name;
	dir = xasprintf("%s/glusterfs", base);
	cleanup_free char *bin = xasprintf("%s/bin", base);
	program = xasprintf("%s/glusterfs", bin);
	if (mkdir(dir, 0700) < 0 || mkdir(bin, 0700) < 0 || symlink(self, program) < 0)
		return -1;
	return clients_host_new(base, &remote, NULL);
}

static int tear_down(void **state)
{
	kill_client();
	clients_host_free(remote);
	free(dir);
	free(program);
	return remove_tree(base, NULL);
}

static int begin(void **state)
{
	if (client <= 0)
		start_client();
	return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

#define RUN(result, ...)                                                                           \
	run_command(&(struct host_command){ .argv = (const char *const[]){ program, __VA_ARGS__,   \
									   NULL },                 \
					    .timeout_ms = 60000 },                                 \
		    (result))

static int run_command(const struct host_command *command, struct host_result *result)
{
	const struct hostvol_host *host = clients_host(remote);

	return host->run(host, command, result);
}

static int await_end(const char *last, bool kill_it, int timeout_ms)
{
	const struct hostvol_host *host = clients_host(remote);

	return host->await_end(host, "glusterfs", last, kill_it, timeout_ms);
}

static size_t daemons(void)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };

	assert_int_equal(ask_info(&reply), 0);
	return json_array_size(json_object_get(reply.text, "daemons"));
}

/* ---- running --------------------------------------------------------------------------------- */

static void says_and_ends(void **state)
{
	struct host_result r;

	assert_int_equal(RUN(&r, "say", "out\xff", "err\n"), -EILSEQ);
	assert_non_null(strstr(r.err, "UTF-8"));
	assert_int_equal(RUN(&r, "say", "out", "err\n"), 0);
	assert_int_equal(r.status, 3);
	assert_string_equal(r.out, "out");
	assert_string_equal(r.err, "err\n");
	assert_int_equal(RUN(&r, "exit", "0"), 0);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.out, "");
	assert_int_equal(RUN(&r, "kill", "9"), 0);
	assert_int_equal(r.status, 128 + 9);
}

static void no_such_program(void **state)
{
	struct host_result r;

	assert_int_equal(
		run_command(
			&(struct host_command){
				.argv = (const char *const[]){ "/nowhere/glusterfs", NULL },
				.timeout_ms = 5000 },
			&r),
		-ENOENT);
	assert_non_null(strstr(r.err, "client on this node has no program /nowhere/glusterfs"));
}

static void secret_in_input_only(void **state)
{
	static const char secret[] = "s3cr\xff\x01t";
	struct host_result r;
	const char *line;

	assert_int_equal(
		run_command(&(struct host_command){ .argv = (const char *const[]){ program, "echo",
										   NULL },
						    .input = secret,
						    .input_len = strlen(secret),
						    .timeout_ms = 20000 },
			    &r),
		0);
	line = strchr(r.out, '\n');
	assert_non_null(line);
	assert_int_equal(strncmp(r.out, secret, strlen(secret)), 0);
	assert_null(strstr(line, "s3cr"));
	assert_non_null(strstr(line, "glusterfs"));
}

static void environment(void **state)
{
	static const char *const env[] = { "PASSWD_FD=0", NULL };
	struct host_result r;

	assert_int_equal(
		run_command(
			&(struct host_command){
				.argv = (const char *const[]){ program, "env", "PASSWD_FD", NULL },
				.env = env,
				.timeout_ms = 20000 },
			&r),
		0);
	assert_string_equal(r.out, "0");
	/* nothing of the client's own */
	assert_int_equal(RUN(&r, "env", "QM_CLIENT_IMAGE"), 0);
	assert_string_equal(r.out, "(none)");
}

static void long_output(void **state)
{
	cleanup_free char *out = xcalloc(1, 200001);
	struct host_result r;

	assert_int_equal(RUN(&r, "fill", "100000"), 0);
	assert_int_equal(strlen(r.out), sizeof(r.out) - 1);
	assert_int_equal(r.out[sizeof(r.out) - 2], 'a' + 99999 % 26);
	assert_int_equal(
		run_command(&(struct host_command){ .argv = (const char *const[]){ program, "fill",
										   "200000", NULL },
						    .timeout_ms = 20000,
						    .out = out,
						    .out_size = 200001 },
			    &r),
		0);
	assert_int_equal(strlen(out), 200000);
	assert_int_equal(out[199999], 'a' + 199999 % 26);
}

static void deadline_kills(void **state)
{
	int64_t begun = clock_mono_ms(&clock_real);
	struct host_result r;

	assert_int_equal(
		run_command(
			&(struct host_command){
				.argv = (const char *const[]){ program, "hang", "/deadline", NULL },
				.timeout_ms = 200 },
			&r),
		-ETIMEDOUT);
	assert_in_range(clock_mono_ms(&clock_real) - begun, 150, 5000);
	assert_int_equal(await_end("/deadline", false, 0), 0);
}

struct hung {
	int rc, status;
	atomic_bool ended;
};

static void *hang(void *arg)
{
	struct hung *h = arg;
	struct host_result r;

	h->rc = RUN(&r, "hang", "/hung");
	h->status = r.status;
	atomic_store(&h->ended, true);
	return NULL;
}

/* Until so many requests are being served, this one not counted. */
static void await_requests(int count)
{
	for (int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;; pause_ms(5)) {
		cleanup_with(client_reply_done) struct client_reply reply = { 0 };

		assert_int_equal(ask_info(&reply), 0);
		if (jint(reply.text, "requests") >= count)
			return;
		assert_true(clock_mono_ms(&clock_real) < end);
	}
}

static void hung_blocks_nobody(void **state)
{
	struct hung h[8] = { 0 };
	pthread_t threads[ARRAY_SIZE(h)];
	struct host_result r;

	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hang, &h[i]), 0);
	await_requests(ARRAY_SIZE(h));
	for (int i = 0; i < 5; i++) {
		assert_int_equal(RUN(&r, "exit", "4"), 0);
		assert_int_equal(r.status, 4);
	}
	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		assert_false(atomic_load(&h[i].ended));
	/* not all of them may have got as far as to be found by their name at once */
	for (size_t i = 0; i < ARRAY_SIZE(h); i++)
		while (!atomic_load(&h[i].ended))
			assert_int_equal(await_end("/hung", true, 10000), 0);
	for (size_t i = 0; i < ARRAY_SIZE(h); i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(h[i].rc, 0);
		assert_int_equal(h[i].status, 128 + SIGKILL);
	}
}

/* ---- daemons --------------------------------------------------------------------------------- */

/* Children of the client that have ended and were not reaped. */
static int zombies(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	int count = 0;

	assert_non_null(proc);
	while ((e = readdir(proc))) {
		cleanup_free char *path = xasprintf("/proc/%s/stat", e->d_name), *text = NULL;
		char state, *p;
		int parent;

		if (!isdigit((unsigned char)e->d_name[0]) ||
		    file_read(path, 0, &text, NULL, NULL) < 0)
			continue;
		p = strrchr(text, ')');
		if (p && sscanf(p + 1, " %c %d", &state, &parent) == 2 && parent == client)
			count += state == 'Z';
	}
	closedir(proc);
	return count;
}

static void daemons_are_adopted_and_reaped(void **state)
{
	struct host_result r;
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	const json_t *daemon;
	int64_t end;

	assert_int_equal(RUN(&r, "daemon", "/mount/a"), 0);
	assert_int_equal(r.status, 0);
	assert_int_equal(RUN(&r, "daemon", "/mount/b"), 0);
	assert_int_equal(ask_info(&reply), 0);
	assert_int_equal(json_array_size(json_object_get(reply.text, "daemons")), 2);
	assert_string_equal(jstr(reply.text, "image"), "example.org/glusterfs:11");
	daemon = json_array_get(json_object_get(reply.text, "daemons"), 0);
	assert_string_equal(jstr(daemon, "program"), "glusterfs");
	assert_int_equal(await_end("/mount/a", false, 100), -ETIMEDOUT);
	assert_int_equal(await_end("/mount/a", true, 10000), 0);
	assert_int_equal(daemons(), 1);
	assert_int_equal(await_end("/mount/b", true, 10000), 0);
	assert_int_equal(daemons(), 0);
	end = clock_mono_ms(&clock_real) + WAIT_MS; /* from now: what came before may have been slow */
	while (zombies() != 0 && clock_mono_ms(&clock_real) < end)
		pause_ms(10);
	assert_int_equal(zombies(), 0);
}

/* A command that is waited for must not be taken by whoever reaps daemons. */
static void reaping_takes_no_command(void **state)
{
	struct host_result r;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(RUN(&r, "daemon", "/mount/c"), 0);
		assert_int_equal(r.status, 0);
		assert_int_equal(await_end("/mount/c", true, 10000), 0);
		assert_int_equal(RUN(&r, "exit", "7"), 0);
		assert_int_equal(r.status, 7);
	}
}

static void ends_when_told(void **state)
{
	int status;

	kill(client, SIGTERM);
	assert_true(client_ends(WAIT_MS, &status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void stays_while_a_mount_is_served(void **state)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	struct host_result r;
	int status;

	assert_int_equal(RUN(&r, "daemon", "/mount/d"), 0);
	kill(client, SIGTERM);
	assert_false(client_ends(300, &status));
	assert_int_equal(ask_info(&reply), 0);
	assert_true(jbool(reply.text, "ending"));
	assert_int_equal(RUN(&r, "exit", "5"), 0);
	assert_int_equal(r.status, 5);
	assert_int_equal(await_end("/mount/d", true, 10000), 0);
	assert_true(client_ends(WAIT_MS, &status));
	assert_int_equal(status, 0);
}

/* ---- who asks, and what ---------------------------------------------------------------------- */

static void only_root(void **state)
{
	cleanup_free char *socket = xasprintf("%s/" CLIENT_SOCKET, dir);
	cleanup_json json_t *request = json_pack("{s:s}", "op", "info");
	int status;
	pid_t pid;

	if (getuid() != 0)
		skip_without("root");
	/* as if somebody had opened the way: the client itself looks too */
	chmod(base, 0755);
	chmod(dir, 0755);
	chmod(socket, 0666);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct client_reply reply = { 0 };

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		_exit(client_call(dir, request, NULL, 0, 5000, &reply, NULL) == -EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(daemons(), 0); /* root is still answered */
}

static void private_socket(void **state)
{
	cleanup_free char *socket = xasprintf("%s/" CLIENT_SOCKET, dir);
	struct stat st;

	kill_client();
	start_client();
	assert_int_equal(stat(socket, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static int dial(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/" CLIENT_SOCKET, dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void nonsense_is_refused(void **state)
{
	int64_t until = clock_mono_ms(&clock_real) + WAIT_MS;
	static const uint32_t lengths[] = { 0, 5, CLIENT_TEXT_MAX + 1, 0xffffffff };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		cleanup_close int fd = dial();
		cleanup_free char *text = NULL;
		cleanup_json json_t *reply = NULL;
		uint32_t prefix = htonl(lengths[i]);
		size_t len;

		assert_int_equal(wire_write(fd, &prefix, sizeof(prefix), until), 0);
		if (lengths[i] == 5)
			assert_int_equal(wire_write(fd, "{\"a\"\n", 5, until), 0);
		assert_int_equal(wire_read_text(fd, &text, &len, until), 0);
		assert_int_equal(json_parse(text, len, &reply, NULL), 0);
		assert_int_equal(jint(reply, "error"),
				 lengths[i] > CLIENT_TEXT_MAX ? EMSGSIZE : EINVAL);
	}
	assert_int_equal(daemons(), 0);
}

/* ---- no client ------------------------------------------------------------------------------- */

static void missing_client(void **state)
{
	struct host_result r;

	kill_client();
	assert_int_equal(RUN(&r, "exit", "0"), -EAGAIN);
	assert_non_null(strstr(r.err, "the glusterfs client on this node does not run (yet)"));
	assert_int_equal(await_end("/mount/a", true, 1000), 0);
	/* and one that was killed is replaced in the same directory */
	start_client();
	assert_int_equal(RUN(&r, "exit", "6"), 0);
	assert_int_equal(r.status, 6);
}

static void dies_meanwhile(void **state)
{
	struct hung h = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, hang, &h), 0);
	await_requests(1);
	kill_client();
	pthread_join(thread, NULL);
	assert_int_equal(h.rc, -EAGAIN);
	assert_int_equal(process_await_end("glusterfs", "/hung", true, 10000), 0);
}

static void says_so_through_the_library(void **state)
{
	cleanup_free char *hostvol_state = xasprintf("%s/state", base),
			  *run = xasprintf("%s/run", base);
	struct hostvol_options o = { .size = sizeof(o),
				     .state_dir = hostvol_state,
				     .run_dir = run,
				     .host = clients_host(remote) };
	struct hostvol_error err = { 0 };
	struct hostvol *h;
	char *path = NULL;
	int rc;

	kill_client();
	assert_int_equal(hostvol_open(&o, &h, &err), 0);
	rc = hostvol_connect_volume_json(
		h,
		"{\"driverVolumeType\": \"GLUSTERFS\", \"data\": {\"export\": "
		"\"192.0.2.1:/none\"}}",
		&path, &err);
	assert_int_equal(rc, -EAGAIN);
	assert_non_null(strstr(err.message, "the glusterfs client on this node does not run"));
	hostvol_close(h);
}

/* A protocol without a directory is the host's. */
static void chosen_by_directory(void **state)
{
	cleanup_free char *mount_nfs = xasprintf("%s/bin/mount.nfs", base),
			  *nfs = xasprintf("%s/nfs", base);
	const char *const argv[] = { mount_nfs, "-V", NULL };
	struct host_command command = { .argv = argv, .timeout_ms = 10000 };
	struct host_result r;

	assert_int_equal(symlink("/bin/true", mount_nfs), 0);
	assert_int_equal(run_command(&command, &r), 0);
	assert_int_equal(r.status, 0);
	assert_int_equal(mkdir(nfs, 0700), 0);
	assert_int_equal(run_command(&command, &r), -EAGAIN);
	assert_non_null(strstr(r.err, "the nfs client"));
	assert_int_equal(rmdir(nfs), 0);
}

/* ---- several clients of a protocol ------------------------------------------------------------ */

struct several {
	char *dir, *old_dir, *new_dir;
	pid_t old, new;
	struct clients_host *c;
};

static struct several *begin_several(void)
{
	struct several *s = xcalloc(1, sizeof(*s));

	s->dir = xasprintf("%s/several", base);
	s->old_dir = xasprintf("%s/glusterfs/old", s->dir);
	s->new_dir = xasprintf("%s/glusterfs/new", s->dir);
	assert_int_equal(mkdir_parents(s->old_dir, 0700, NULL), 0);
	assert_int_equal(mkdir_parents(s->new_dir, 0700, NULL), 0);
	assert_int_equal(clients_host_new(s->dir, &s->c, NULL), 0);
	assert_int_equal(clients_host_prefer(s->c, "glusterfs=new,old", NULL), 0);
	return s;
}

static void end_one(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void end_several(struct several *s)
{
	clients_host_free(s->c);
	free(s->dir);
	free(s->old_dir);
	free(s->new_dir);
	free(s);
}

static void assert_chosen(const struct several *s, const char *wanted, const char *id)
{
	const struct hostvol_host *host = clients_host(s->c);
	char chosen[CLIENT_ID_MAX];

	host->choose_client(host, "glusterfs", wanted, chosen, sizeof(chosen));
	assert_string_equal(chosen, id);
}

/* Its parent is the process that served the request, its grandparent the client. */
static void assert_runs_in(const struct several *s, const char *id, const char *last, pid_t pid)
{
	const struct hostvol_host *host = clients_host(s->c);
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	struct host_result r;
	struct host_command command = { .argv = (const char *const[]){ program, "daemon", last,
								       NULL },
					.client = id,
					.timeout_ms = 20000 };
	const json_t *daemon;

	assert_int_equal(host->run(host, &command, &r), 0);
	assert_int_equal(ask_info_of(pid == s->old ? s->old_dir : s->new_dir, &reply), 0);
	daemon = json_array_get(json_object_get(reply.text, "daemons"), 0);
	assert_string_equal(jstr(daemon, "lastArgument"), last);
}

static void the_first_that_listens(void **state)
{
	struct several *s = begin_several();
	const struct hostvol_host *host = clients_host(s->c);

	assert_chosen(s, "", "new"); /* none: the one that is wanted is waited for */
	s->old = start_in(s->old_dir, "old");
	assert_chosen(s, "", "old");
	assert_runs_in(s, NULL, "/mnt/1", s->old);
	s->new = start_in(s->new_dir, "new");
	assert_chosen(s, "", "new");
	assert_chosen(s, "old", "old");
	assert_runs_in(s, "new", "/mnt/2", s->new);
	/* whichever has it */
	assert_int_equal(host->await_end(host, "glusterfs", "/mnt/1", false, 50), -ETIMEDOUT);
	assert_int_equal(host->await_end(host, "glusterfs", "/mnt/1", true, 20000), 0);
	assert_int_equal(host->await_end(host, "glusterfs", "/mnt/2", true, 20000), 0);
	end_one(s->new);
	assert_chosen(s, "", "old");
	end_one(s->old);
	end_several(s);
}

static void orders_that_are_none(void **state)
{
	struct clients_host *c;

	assert_int_equal(clients_host_new(base, &c, NULL), 0);
	assert_int_equal(clients_host_prefer(c, "glusterfs", NULL), -EINVAL);
	assert_int_equal(clients_host_prefer(c, "nothing=a", NULL), -EINVAL);
	assert_int_equal(clients_host_prefer(c, "glusterfs=../a", NULL), -EINVAL);
	clients_host_free(c);
}

static void count_told(void *userdata)
{
	atomic_fetch_add((atomic_int *)userdata, 1);
}

static void await_told(atomic_int *told, int before)
{
	int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;

	while (atomic_load(told) <= before) {
		assert_true(clock_mono_ms(&clock_real) < end);
		pause_ms(5);
	}
}

static atomic_size_t most_seen;

static void note_most(size_t most, void *userdata)
{
	atomic_store(&most_seen, most);
}

/* At the beginning, when a daemon ends, and when a client does. */
static void watched(void **state)
{
	struct several *s = begin_several();
	const struct hostvol_host *host = clients_host(s->c);
	struct clients_watch *w;
	atomic_int told = 0;

	s->old = start_in(s->old_dir, "old");
	s->new = start_in(s->new_dir, "new");
	assert_runs_in(s, "old", "/mnt/1", s->old);
	assert_int_equal(clients_watch_start(s->dir, count_told, note_most, &told, &w, NULL), 0);
	await_told(&told, 1);
	assert_int_equal(atomic_load(&most_seen), 2); /* two clients of one protocol */
	assert_int_equal(host->await_end(host, "glusterfs", "/mnt/1", true, 20000), 0);
	await_told(&told, 3);
	end_one(s->new);
	await_told(&told, 5);
	clients_watch_free(w);
	assert_int_equal(atomic_load(&told), 6);
	end_one(s->old);
	end_several(s);
}

static int run_qm_client(const char *flag, const char *where)
{
	const char *const argv[] = { QM_CLIENT, flag, where, NULL };
	struct host_result r;

	assert_int_equal(
		process_run(&(struct host_command){ .argv = argv, .timeout_ms = 5000 }, &r), 0);
	if (r.status)
		assert_non_null(strstr(r.err, "qm-client: "));
	return r.status;
}

/* An image without what it is for never listens. */
static void needs_its_programs(void **state)
{
	cleanup_free char *where = xasprintf("%s/needy", base),
			  *need = xasprintf("--need=%s/glusterfs-that-is-not", base),
			  *bad = xasprintf("--need=%s/bin/bad", base),
			  *bad_path = xasprintf("%s/bin/bad", base);

	assert_int_equal(run_qm_client(need, where), 1);
	assert_int_equal(file_write(bad_path, "#!/nowhere\n", 11, 0755, NULL), 0);
	assert_int_equal(run_qm_client(bad, where), 1);
	assert_false(client_listens(where));
}

static void needs_a_clean_path(void **state)
{
	struct clients_host *c;

	assert_int_equal(clients_host_new("run/clients", &c, NULL), -EINVAL);
	assert_int_equal(clients_host_new("/run/../clients", &c, NULL), -EINVAL);
	assert_int_equal(clients_host_new(NULL, &c, NULL), 0);
	clients_host_free(c);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(says_and_ends, begin),
		cmocka_unit_test_setup(no_such_program, begin),
		cmocka_unit_test_setup(secret_in_input_only, begin),
		cmocka_unit_test_setup(environment, begin),
		cmocka_unit_test_setup(long_output, begin),
		cmocka_unit_test_setup(deadline_kills, begin),
		cmocka_unit_test_setup(hung_blocks_nobody, begin),
		cmocka_unit_test_setup(daemons_are_adopted_and_reaped, begin),
		cmocka_unit_test_setup(reaping_takes_no_command, begin),
		cmocka_unit_test_setup(ends_when_told, begin),
		cmocka_unit_test_setup(stays_while_a_mount_is_served, begin),
		cmocka_unit_test_setup(only_root, begin),
		cmocka_unit_test_setup(private_socket, begin),
		cmocka_unit_test_setup(nonsense_is_refused, begin),
		cmocka_unit_test_setup(missing_client, begin),
		cmocka_unit_test_setup(dies_meanwhile, begin),
		cmocka_unit_test(says_so_through_the_library),
		cmocka_unit_test(chosen_by_directory),
		cmocka_unit_test(the_first_that_listens),
		cmocka_unit_test(orders_that_are_none),
		cmocka_unit_test(watched),
		cmocka_unit_test(needs_its_programs),
		cmocka_unit_test(needs_a_clean_path),
	};

	if (streq(name ? name + 1 : argv[0], "glusterfs"))
		return helper_main(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
