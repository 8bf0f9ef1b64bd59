/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/process.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Words of QM_WRAP come before the program: valgrind, perf. */
static void add_wrap(struct strv *argv)
{
	const char *wrap = getenv("QM_WRAP");
	cleanup_free char *words = wrap ? xstrdup(wrap) : NULL;
	char *save = NULL;
	for (char *word = words ? strtok_r(words, " ", &save) : NULL; word;
	     word = strtok_r(NULL, " ", &save))
		strv_add(argv, word);
}

static int spawn(const struct strv *argv, int channel, const char *log_path, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, channel, STDIN_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log_path,
					 O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);

	int rc = posix_spawnp(ret, argv->items[0], &actions, &attr, argv->items, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

int process_start(const char *program, const char *log_dir, const struct worker_pool *pool,
		  int64_t epoch, struct process *ret, struct error *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, errno, "cannot start a worker for pool %s", pool->name);

	cleanup_free char *log_path = xasprintf("%s/qm-gluster-%s.log", log_dir, pool->name);
	struct strv argv = { 0 };
	add_wrap(&argv);
	strv_add(&argv, program);
	strv_add(&argv, "--pool");
	strv_add(&argv, pool->name);
	strv_add(&argv, "--log");
	strv_add(&argv, log_path);
	strv_add(&argv, "--epoch");
	strv_add_take(&argv, xasprintf("%lld", (long long)epoch));
	for (size_t i = 0; pool->hosts[i]; i++) {
		strv_add(&argv, "--host");
		strv_add(&argv, pool->hosts[i]);
	}
	pid_t pid;
	int rc = spawn(&argv, pair[1], log_path, &pid);
	strv_done(&argv);
	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return error_errno(err, -rc, "cannot start %s for pool %s", program, pool->name);
	}
	*ret = (struct process){ .pid = pid, .fd = pair[0] };
	return 0;
}

void process_list_add(struct process_list *l, struct process *p, int grace_ms)
{
	l->items = xrealloc(l->items, (l->count + 1) * sizeof(*l->items));
	l->items[l->count++] = (struct process_end){
		.pid = p->pid,
		.kill_at = clock_mono_ms(&clock_real) + grace_ms,
	};
	close(p->fd);
	p->fd = -1;
	process_list_reap(l);
}

bool process_list_reap(struct process_list *l)
{
	int64_t now = clock_mono_ms(&clock_real);
	for (size_t i = 0; i < l->count;) {
		struct process_end *e = &l->items[i];
		if (now >= e->kill_at) {
			kill(-e->pid, SIGKILL);
			e->kill_at = INT64_MAX;
		}
		if (waitpid(e->pid, NULL, WNOHANG) == 0)
			i++;
		else
			*e = l->items[--l->count];
	}
	return l->count > 0;
}

void process_list_done(struct process_list *l)
{
	int64_t last = clock_mono_ms(&clock_real);
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].kill_at != INT64_MAX && l->items[i].kill_at > last)
			last = l->items[i].kill_at;
	while (process_list_reap(l) && clock_mono_ms(&clock_real) < last + 1000)
		poll(NULL, 0, 10);
	free(l->items);
	*l = (struct process_list){ 0 };
}
