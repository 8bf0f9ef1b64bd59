/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon that a protocol's commands need (protocols.h): kept running, unless the machine has it. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "clients/protocols.h"
#include "clients/serve.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#define LOOK_MS 5000 /* how often one looks whether the machine's own has gone */
#define PAUSE_MS 1000 /* between two starts */
#define BEGIN_MS 20000 /* for the first one to listen */
#define SETTLE_MS 200
#define INITIATOR_NAME "/etc/iscsi/initiatorname.iscsi"

static const struct client_daemon *daemon_of(const struct serve *s)
{
	return s->protocol ? s->protocol->daemon : NULL;
}

/* Looked up, not asked: a connection that says nothing would be an error in the daemon's log. */
static bool socket_is_taken(const char *name)
{
	cleanup_free char *text = NULL, *line = xasprintf(" @%s", name);
	const char *p = NULL;

	if (file_read("/proc/net/unix", 0, &text, NULL, NULL) == 0)
		p = strstr(text, line);
	return p && (p[strlen(line)] == '\n' || p[strlen(line)] == '@'); /* @: a NUL in its name */
}

static int count_entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int count = 0;

	while (d && (e = readdir(d)))
		count += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return count;
}

/*
 * A machine that never had the software has no name yet, and one on which it never ran may have a
 * file without one (Debian: GenerateName). It keeps the one that it gets here.
 */
static int name_initiator(struct error *err)
{
	cleanup_free char *old = NULL;
	unsigned char random[6];
	char text[128];

	if (file_read(INITIATOR_NAME, 0, &old, NULL, NULL) == 0 &&
	    (str_has_prefix(old, "InitiatorName=") || strstr(old, "\nInitiatorName=")))
		return 0;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return error_errno(err, errno, "cannot choose a name for this initiator");
	snprintf(text, sizeof(text),
		 "InitiatorName=iqn.2026-01.storage.quartermaster:%02x%02x%02x%02x%02x%02x\n",
		 random[0], random[1], random[2], random[3], random[4], random[5]);
	return file_write(INITIATOR_NAME, text, strlen(text), 0600, err);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void run(const struct serve *s, const struct client_daemon *d)
{
	sigset_t none;

	setsid(); /* as a daemon (serve.h) */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->pid)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	close_range(3, ~0u, 0);
	execvp(d->argv[0], (char **)d->argv);
	fprintf(stderr, "qm-client: cannot run %s: %s\n", d->argv[0], strerror(errno));
	_exit(127);
}

static void start(struct serve *s, const struct client_daemon *d)
{
	pid_t pid = fork();

	if (pid == 0)
		run(s, d);
	s->kept = pid < 0 ? 0 : pid;
}

int keep_due(struct serve *s)
{
	const struct client_daemon *d = daemon_of(s);
	int64_t now = clock_mono_ms(&clock_real);

	if (!d || s->kept)
		/* nobody tells when the last user has gone, which is what ends us */
		return d && s->ending ? PAUSE_MS : -1;
	if (s->kept_due > now)
		return (int)(s->kept_due - now);
	if (socket_is_taken(d->socket)) {
		s->kept_due = now + LOOK_MS;
		return LOOK_MS;
	}
	s->kept_due = now + PAUSE_MS;
	start(s, d);
	return s->kept ? -1 : PAUSE_MS;
}

/* Whether it listens and stays: one that cannot work may take its socket all the same, and end. */
static bool listens(struct serve *s, const char *socket)
{
	pid_t kept = s->kept;

	if (!socket_is_taken(socket))
		return false;
	if (kept)
		pause_ms(SETTLE_MS);
	serve_reap(s);
	return s->kept == kept;
}

/* Signals are taken from a descriptor, which nobody reads yet. */
static bool told_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT));
}

int keep_begin(struct serve *s, struct error *err)
{
	const struct client_daemon *d = daemon_of(s);
	int64_t until = clock_mono_ms(&clock_real) + BEGIN_MS;
	int rc = d && streq(s->protocol->name, "iscsi") ? name_initiator(err) : 0;

	if (!d || rc < 0)
		return rc;
	for (keep_due(s); !listens(s, d->socket); keep_due(s)) {
		if (told_to_end())
			return error_set(err, EINTR, "told to end before %s listens", d->argv[0]);
		if (clock_mono_ms(&clock_real) >= until)
			return error_set(err, ETIMEDOUT,
					 "%s does not listen; what it says stands above",
					 d->argv[0]);
		pause_ms(20);
		serve_reap(s);
	}
	log_info("%s: %s", d->argv[0], s->kept ? "started" : "the machine has its own");
	return 0;
}

bool keep_ended(struct serve *s, pid_t pid)
{
	if (!s->kept || s->kept != pid)
		return false;
	s->kept = 0;
	log_warn("%s ended", daemon_of(s)->argv[0]);
	return true;
}

/* ---- who needs it ---------------------------------------------------------------------------- */

int keep_users(const struct serve *s)
{
	return s->kept ? count_entries(daemon_of(s)->users) : 0;
}

/* What commands leave behind without a mount of its own, as mount.nfs does with rpc.statd. */
static bool is_helper(const struct serve *s, const json_t *daemon)
{
	const char *const *name = s->protocol ? s->protocol->helpers : NULL;

	while (name && *name && !streq(*name, jstr(daemon, "program")))
		name++;
	return name && *name;
}

bool keep_holds(const struct serve *s, const json_t *daemons)
{
	const json_t *daemon;
	size_t i;

	json_array_foreach (daemons, i, daemon)
		if (jint(daemon, "pid") != s->kept && !is_helper(s, daemon))
			return true;
	return keep_users(s) > 0;
}
