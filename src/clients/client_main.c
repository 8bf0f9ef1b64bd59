/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qm-client, the first process of a client container. It is linked statically, and brought into
 * the container from outside: the image needs nothing of ours, only the client software.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "clients/client.h"
#include "clients/protocols.h"
#include "clients/serve.h"
#include "core/host.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#define PROGRAM_MS 10000
#define CANNOT_RUN 126 /* exit statuses from here on: not executable, a missing library, a signal */

static const char usage[] =
	"Usage: qm-client [FLAG…] DIR\n"
	"       qm-client --install DIR    puts this program into DIR\n"
	"       qm-client --info DIR       asks the client that serves DIR how it is\n"
	"\n"
	"Runs the client software of a container for the node service, which asks on\n"
	"DIR/client.sock. At SIGTERM it stays while a daemon lives that serves a mount.\n"
	"\n"
	"  --protocol NAME       whose client it is: the daemon that it needs is kept running, "
	"unless\n"
	"                        this machine has it\n"
	"  --leave               ends at SIGTERM all the same\n"
	"  --link PATH=TARGET    makes a symbolic link first, where there is nothing yet\n"
	"  --touch PATH          makes an empty file first, where there is nothing yet\n"
	"  --need PROGRAM        fails unless PROGRAM --version runs: an image without what it is\n"
	"                        for never listens, and so is never given a mount\n"
	"\n"
	"The variable QM_CLIENT_IMAGE is what `--info` names as the image.\n";

static const struct option flags[] = {
	{ "install", required_argument, NULL, 'I' },
	{ "info", required_argument, NULL, 'i' },
	{ "leave", no_argument, NULL, 'e' },
	{ "protocol", required_argument, NULL, 'p' },
	{ "link", required_argument, NULL, 'l' },
	{ "touch", required_argument, NULL, 't' },
	{ "need", required_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct settings {
	const char *dir;
	bool leave, help;
	const struct client_protocol *protocol;
	int (*instead)(const char *dir, struct error *err);
};

/* ---- what the image may lack ----------------------------------------------------------------- */

static int make_parent(const char *path, struct error *err)
{
	cleanup_free char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');

	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	return mkdir_parents(dir, 0755, err);
}

static int make_link(const char *text, struct error *err)
{
	cleanup_free char *path = xstrdup(text);
	char *target = strchr(path, '=');
	int rc;

	if (!target)
		return error_set(err, EINVAL, "--link %s: use PATH=TARGET", text);
	*target++ = '\0';
	rc = make_parent(path, err);
	if (rc < 0)
		return rc;
	if (symlink(target, path) < 0 && errno != EEXIST)
		return error_errno(err, errno, "cannot make the link %s", path);
	return 0;
}

static int touch(const char *path, struct error *err)
{
	cleanup_close int fd = -1;
	int rc = make_parent(path, err);

	if (rc < 0)
		return rc;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return fd < 0 ? error_errno(err, errno, "cannot make %s", path) : 0;
}

/* ---- other uses ------------------------------------------------------------------------------ */

/* Not every program knows --version, but one that lacks a library or crashes ends in another way. */
static int check_program(const char *program, struct error *err)
{
	struct host_command command = { .argv = (const char *const[]){ program, "--version", NULL },
					.timeout_ms = PROGRAM_MS };
	struct host_result result = { 0 };
	int rc = process_run(&command, &result);

	if (rc == -ENOENT)
		return error_set(err, ENOENT, "the image has no program %s", program);
	if (rc < 0)
		return error_errno(err, -rc, "%s does not run in this image", program);
	if (result.status >= CANNOT_RUN || (result.status && streq(program, "glusterfs"))) {
		result.err[strcspn(result.err, "\n")] = '\0';
		return error_set(err, EIO, "%s does not run in this image (status %d): %.200s",
				 program, result.status, result.err);
	}
	return 0;
}

static int install(const char *dir, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/qm-client", dir), *program = NULL;
	size_t len;
	int rc = file_read("/proc/self/exe", 64 << 20, &program, &len, err);

	if (rc == 0)
		rc = mkdir_parents(dir, 0755, err);
	return rc < 0 ? rc : file_write(path, program, len, 0755, err);
}

static int show_info(const char *dir, struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *request = json_pack("{s:s}", "op", "info");
	cleanup_free char *text = NULL;
	int rc = client_call(dir, request, NULL, 0, 2000, &reply, err);

	if (rc < 0)
		return rc;
	json_object_del(reply.text, "error");
	text = json_text_pretty(reply.text);
	puts(text);
	return 0;
}

/* ---- serving --------------------------------------------------------------------------------- */

static bool may_end(const struct serve *s, bool leave)
{
	cleanup_json json_t *daemons = NULL;

	if (!s->ending || leave)
		return s->ending;
	daemons = daemons_list(s->pid);
	return s->running == 0 && !keep_holds(s, daemons) && !fuse_any(s);
}

static void take_signals(struct serve *s, int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (!s->ending)
			log_info("told to end");
		s->ending = true;
	}
	serve_reap(s);
}

static int open_signals(struct error *err)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_errno(err, errno, "cannot wait for signals") : fd;
}

/* Of two times to wait; -1: for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int serve(const struct settings *settings, struct error *err)
{
	const char *image = getenv("QM_CLIENT_IMAGE");
	struct serve s = { .image = image ? image : "",
			   .pid = getpid(),
			   .protocol = settings->protocol };
	cleanup_close int signals = open_signals(err), socket = -1;

	if (signals < 0)
		return signals;
	/* the first process of a container adopts anyway; elsewhere daemons are to be ours too */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return error_errno(err, errno, "cannot begin");
	if (serve_open(&s, err) < 0)
		return -err->code;
	if (keep_begin(&s, err) < 0)
		return -err->code;
	socket = serve_listen(settings->dir, err);
	if (socket < 0)
		return socket;
	log_info("serving %s", settings->dir);
	while (!may_end(&s, settings->leave)) {
		struct pollfd p[] = { { .fd = socket, .events = POLLIN },
				      { .fd = signals, .events = POLLIN },
				      { .fd = s.up[0], .events = POLLIN } };

		if (poll(p, ARRAY_SIZE(p), sooner(fuse_start_due(&s), keep_due(&s))) < 0)
			continue;
		if (p[0].revents)
			serve_accept(&s, socket);
		if (p[1].revents)
			take_signals(&s, signals);
		if (p[2].revents)
			serve_handed_up(&s);
	}
	log_info("ends");
	return 0;
}

static int parse(int argc, char **argv, struct settings *s, struct error *err)
{
	int c, rc = 0;

	while (rc == 0 && (c = getopt_long(argc, argv, "h", flags, NULL)) != -1) {
		switch (c) {
		case 'I':
		case 'i':
			s->instead = c == 'I' ? install : show_info;
			s->dir = optarg;
			break;
		case 'e':
			s->leave = true;
			break;
		case 'l':
			rc = make_link(optarg, err);
			break;
		case 't':
			rc = touch(optarg, err);
			break;
		case 'p':
			s->protocol = client_protocol_find(optarg);
			if (!s->protocol)
				return error_set(err, EINVAL, "--protocol %s is not known", optarg);
			break;
		case 'n':
			rc = check_program(optarg, err);
			break;
		case 'h':
			s->help = true;
			return 0;
		default:
			return error_set(err, EINVAL, "see qm-client --help");
		}
	}
	if (rc < 0)
		return rc;
	if (!s->dir && optind < argc)
		s->dir = argv[optind++];
	if (!s->dir || optind < argc)
		return error_set(err, EINVAL, "one directory is needed; see qm-client --help");
	return 0;
}

int main(int argc, char **argv)
{
	struct settings s = { 0 };
	struct error err = ERROR_INIT;
	int rc;

	log_init("client", LOG_LEVEL_INFO);
	rc = parse(argc, argv, &s, &err);
	if (rc == 0 && s.help)
		fputs(usage, stdout);
	else if (rc == 0)
		rc = s.instead ? s.instead(s.dir, &err) : serve(&s, &err);
	if (rc < 0)
		fprintf(stderr, "qm-client: %s\n", error_text(&err, rc));
	return rc < 0 ? 1 : 0;
}
