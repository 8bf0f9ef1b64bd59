/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/mem.h"
#include "base/paths.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PROBE_MS 2000
#define RESTART_MS 3000
#define RESTART_TICK_MS 50

static bool answers(const struct session *s);

/*
 * The API of this machine is started again by itself when it dies: a moment of patience spares a
 * person an error. Not where it was taken down, or never ran.
 */
static void await_restart(const struct session *s)
{
	cleanup_free char *lock = run_path("api.lock"), *down = run_path("down"),
			  *socket = run_path("api.sock");

	if (!streq(s->socket, socket) || access(lock, F_OK) < 0 || access(down, F_OK) == 0)
		return;
	for (int waited = 0; waited < RESTART_MS && !answers(s); waited += RESTART_TICK_MS)
		(void)poll(NULL, 0, RESTART_TICK_MS);
}

int session_open(const struct args *a, struct session *ret)
{
	cleanup_with(kube_config_done) struct kube_config c = { 0 };
	const char *ns = args_value(a, "namespace");
	struct error err = ERROR_INIT;
	struct session s = { .out = stdout };
	struct kube_config_source source = { .path = args_value(a, "kubeconfig"),
					     .context = args_value(a, "context") };
	int rc = kube_config_find(&source, &c, &err);

	if (rc < 0) {
		(void)fprintf(stderr, "quartermaster: %s\n", err.message);
		return rc == -ENOENT ? QM_NOT_REACHABLE : QM_FAILED;
	}
	if (ns && !name_is_label(ns))
		return usage_error(a->verb, "\"%s\" is not the name of a namespace", ns);
	free(c.manager);
	c.manager = xstrdup("quartermaster");
	s.where = c.unix_path ? xstrdup(c.unix_path) : xasprintf("%s:%d", c.host, c.port);
	rc = kube_connect(&c, &s.kube, &err);
	if (rc < 0) {
		rc = session_fail(&s, rc, &err);
		session_done(&s);
		return rc;
	}
	s.ns = xstrdup(ns ? ns : c.ns ? c.ns : "default");
	s.socket = TAKE_PTR(c.unix_path);
	s.host = TAKE_PTR(c.host);
	s.port = c.port;
	await_restart(&s);
	*ret = s;
	return QM_OK;
}

void session_done(struct session *s)
{
	if (s->kube)
		kube_free(s->kube);
	free(s->ns);
	free(s->where);
	free(s->socket);
	free(s->host);
	*s = (struct session){ 0 };
}

static bool connects_to(const struct sockaddr *address, socklen_t len)
{
	cleanup_close int fd =
		socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int failure = 0;
	socklen_t size = sizeof(failure);

	if (fd < 0)
		return false;
	if (connect(fd, address, len) == 0)
		return true;
	if (errno != EINPROGRESS || poll(&p, 1, PROBE_MS) != 1)
		return false;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 && failure == 0;
}

/* Whether anybody listens there: "not running" and "answers badly" need different advice. */
static bool answers(const struct session *s)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV },
			*list = NULL;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char port[16];
	bool found = false;

	if (s->socket) {
		(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->socket);
		return connects_to((struct sockaddr *)&un, sizeof(un));
	}
	(void)snprintf(port, sizeof(port), "%d", s->port);
	if (!s->host || getaddrinfo(s->host, port, &hints, &list) != 0)
		return false;
	for (struct addrinfo *i = list; i && !found; i = i->ai_next)
		found = connects_to(i->ai_addr, i->ai_addrlen);
	freeaddrinfo(list);
	return found;
}

int session_code(int rc)
{
	if (rc >= 0)
		return QM_OK;
	switch (-rc) {
	case ENOENT:
		return QM_NOT_FOUND;
	case EEXIST:
	case ESTALE:
	case EINVAL:
	case E2BIG:
	case EACCES:
	case EPERM:
	case EOPNOTSUPP:
		return QM_REFUSED;
	case EAGAIN:
	case ETIMEDOUT:
		return QM_NOT_REACHABLE;
	default:
		return QM_FAILED;
	}
}

int session_fail(const struct session *s, int rc, const struct error *err)
{
	int code = session_code(rc);

	if (code == QM_NOT_REACHABLE && s->where && !answers(s))
		(void)fprintf(
			stderr,
			"quartermaster: the API at %s does not answer; run: quartermaster up\n",
			s->where);
	else
		(void)fprintf(stderr, "quartermaster: %s\n", error_text(err, rc));
	return code;
}

const struct kind *kind_of_word(const char *word)
{
	const struct kind *k = kind_by_word(word);
	const char *near;

	if (k)
		return k;
	near = kind_suggest(word);
	if (near)
		(void)fprintf(stderr,
			      "quartermaster: there is no kind \"%s\"; did you mean \"%s\"?\n",
			      word, near);
	else
		(void)fprintf(stderr,
			      "quartermaster: there is no kind \"%s\"; `quartermaster explain` "
			      "lists the kinds\n",
			      word);
	return NULL;
}

const char *session_ns(const struct session *s, const struct kind *k)
{
	return k->namespaced ? s->ns : NULL;
}

static int run_command(const struct verb *v, int argc, char **argv)
{
	struct session s = { .out = stdout };
	struct args a;
	int code = args_parse(v, argc, argv, &a);

	if (code != QM_OK)
		return code;
	if (args_given(&a, "help")) {
		verb_help(v, stdout);
		args_done(&a);
		return QM_OK;
	}
	if (v->connects)
		code = session_open(&a, &s);
	if (code == QM_OK)
		code = v->command(&s, &a);
	session_done(&s);
	args_done(&a);
	/* a full disk or a closed pipe is a failure as well */
	if (fflush(stdout) != 0 && code == QM_OK)
		code = QM_FAILED;
	return code;
}

int verb_run(const struct verb *v, int argc, char **argv)
{
	argv[0] = (char *)v->name;
	if (v->command)
		return run_command(v, argc, argv);
	if (v->run)
		return v->run(argc, argv);
	(void)fprintf(stderr, "quartermaster: this program was built without the verb \"%s\"\n",
		      v->name);
	return QM_USAGE;
}
