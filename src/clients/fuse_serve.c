/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE servers whose /dev/fuse descriptor is kept, so that the next one goes on with it (client.h). */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "clients/client.h"
#include "clients/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#define SERVER_FD 3
#define SOON_MS 1000 /* one that ended before that has not served */
#define QUICK_MAX 8 /* so many in a row, and it is given up */
#define DELAY_MS 100 /* before the second of them; doubled each time */
#define DELAY_MAX_MS 2000

static const char *point_of(const struct fuse_server *f)
{
	return jstr(f->text, "mountPoint");
}

/* The kernel says on the descriptor when the file system is unmounted, or was aborted. */
static bool is_over(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLNVAL));
}

static void forget(struct fuse_server *f)
{
	close(f->fd);
	json_decref(f->text);
	*f = (struct fuse_server){ 0 };
}

/* ---- starting ------------------------------------------------------------------------------- */

static void run(const struct serve *s, const struct fuse_server *f)
{
	const json_t *words = json_object_get(f->text, "argv");
	size_t count = json_array_size(words);
	char *argv[CLIENT_WORDS_MAX + 1] = { 0 };
	sigset_t none;

	for (size_t i = 0; i < count; i++)
		argv[i] = (char *)json_string_value(json_array_get(words, i));
	/*
	 * A session of its own makes it a daemon (serve.h). It ends with the client: the next
	 * client has another one, and two would take each other's requests.
	 */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->pid)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* a descriptor that is in its place already would keep its close-on-exec flag */
	if (f->fd == SERVER_FD ? fcntl(SERVER_FD, F_SETFD, 0) < 0 : dup2(f->fd, SERVER_FD) < 0)
		_exit(1);
	close_range(SERVER_FD + 1, ~0u, 0);
	execvp(argv[0], argv);
	fprintf(stderr, "qm-client: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static void start(struct serve *s, struct fuse_server *f)
{
	pid_t pid = fork();

	if (pid == 0)
		run(s, f);
	f->started = clock_mono_ms(&clock_real);
	f->starts++;
	f->due = pid < 0 ? f->started + DELAY_MAX_MS : 0;
	f->pid = pid < 0 ? 0 : pid;
}

int fuse_start_due(struct serve *s)
{
	int64_t now = clock_mono_ms(&clock_real), next = -1;

	for (int i = 0; i < SERVE_FUSE; i++) {
		struct fuse_server *f = &s->fuse[i];

		if (f->due && f->due <= now)
			start(s, f);
		if (f->due && (next < 0 || f->due - now < next))
			next = f->due - now;
	}
	return (int)next;
}

/* ---- ending --------------------------------------------------------------------------------- */

static void start_again(struct fuse_server *f)
{
	int64_t now = clock_mono_ms(&clock_real);
	int delay = 0;

	f->quick = now - f->started < SOON_MS ? f->quick + 1 : 0;
	if (f->quick >= QUICK_MAX) {
		snprintf(f->message, sizeof(f->message),
			 "its server ended %d times in a row within %d s: see the client's log",
			 f->quick, SOON_MS / 1000);
		log_warn("%s is not served any more: %s", point_of(f), f->message);
		return;
	}
	if (f->quick > 1)
		delay = DELAY_MS << (f->quick - 2);
	log_warn("the server of %s ended and is started again", point_of(f));
	f->due = now + (delay < DELAY_MAX_MS ? delay : DELAY_MAX_MS);
}

bool fuse_ended(struct serve *s, pid_t pid)
{
	for (int i = 0; i < SERVE_FUSE; i++) {
		struct fuse_server *f = &s->fuse[i];

		if (!f->text || f->pid != pid)
			continue;
		f->pid = 0;
		if (is_over(f->fd))
			forget(f);
		else
			start_again(f);
		return true;
	}
	return false;
}

/* ---- asked for ------------------------------------------------------------------------------ */

bool fuse_any(const struct serve *s)
{
	for (int i = 0; i < SERVE_FUSE; i++)
		if (s->fuse[i].pid || s->fuse[i].due)
			return true;
	return false;
}

const struct fuse_server *fuse_find(const struct serve *s, const char *mount_point)
{
	for (int i = 0; i < SERVE_FUSE; i++)
		if (s->fuse[i].text && streq(point_of(&s->fuse[i]), mount_point))
			return &s->fuse[i];
	return NULL;
}

/* What was given up, and what is unmounted, makes room. */
static int find_place(struct serve *s, const char *point, struct fuse_server **ret,
		      struct error *err)
{
	struct fuse_server *f = (struct fuse_server *)fuse_find(s, point);

	if (f && (f->pid || f->due) && !is_over(f->fd))
		return error_set(err, EEXIST, "%s is served already", point);
	if (f)
		forget(f);
	for (int i = 0; i < SERVE_FUSE; i++)
		if (!s->fuse[i].text) {
			*ret = &s->fuse[i];
			return 0;
		}
	return error_set(err, EBUSY, "this client serves %d file systems, and no more", SERVE_FUSE);
}

int fuse_serve(struct serve *s, json_t *request, int fd, struct error *err)
{
	struct fuse_server *f = NULL;
	int rc = is_over(fd) ? error_set(err, ENOTCONN, "the file system is not mounted any more")
			     : find_place(s, jstr(request, "mountPoint"), &f, err);

	if (rc < 0) {
		close(fd);
		return rc;
	}
	*f = (struct fuse_server){ .text = json_incref(request), .fd = fd };
	start(s, f);
	return 0;
}

json_t *fuse_list(const struct serve *s)
{
	json_t *list = json_array();

	for (int i = 0; i < SERVE_FUSE; i++) {
		const struct fuse_server *f = &s->fuse[i];

		if (f->text)
			json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s*}", "mountPoint",
							      point_of(f), "pid", (int)f->pid,
							      "starts", f->starts, "message",
							      *f->message ? f->message : NULL));
	}
	return list;
}

void fuse_name_daemons(const struct serve *s, json_t *daemons)
{
	json_t *daemon;
	size_t i;

	json_array_foreach (daemons, i, daemon)
		for (int j = 0; j < SERVE_FUSE; j++)
			if (s->fuse[j].text && s->fuse[j].pid == jint(daemon, "pid"))
				json_object_set_new(daemon, "lastArgument",
						    json_string(point_of(&s->fuse[j])));
}
