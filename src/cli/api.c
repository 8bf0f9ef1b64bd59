/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/api.h"
#include "api/server.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "local/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

static const char help[] =
	"Usage: quartermaster api [--state-dir DIR] [--run-dir DIR] [--port PORT]\n"
	"\n"
	"Serves the embedded Kubernetes API in the foreground: on RUN/api.sock, and on 127.0.0.1 "
	"with TLS.\n"
	"Writes STATE/admin.kubeconfig and STATE/operator.kubeconfig; SIGTERM ends it.\n"
	"\n"
	"  --state-dir DIR  where objects, certificates and tokens are kept\n"
	"                   (default $QM_STATE_DIR, /var/lib/quartermaster)\n"
	"  --run-dir DIR    where the socket and the lock are (default $QM_RUN_DIR, "
	"/run/quartermaster)\n"
	"  --port PORT      the TCP port (default: that of the last start, else any free one)\n"
	"\n"
	"Example:\n"
	"  quartermaster api --state-dir /tmp/s --run-dir /tmp/r &\n"
	"  kubectl --kubeconfig /tmp/s/admin.kubeconfig get storagenodes\n";

struct settings {
	int port;
};

/* > 0: help was printed. */
static int parse(int argc, char **argv, struct settings *ret, struct error *err)
{
	static const struct option options[] = { { "state-dir", required_argument, NULL, 's' },
						 { "run-dir", required_argument, NULL, 'r' },
						 { "port", required_argument, NULL, 'p' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	char *end;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			setenv("QM_STATE_DIR", optarg, 1);
			break;
		case 'r':
			setenv("QM_RUN_DIR", optarg, 1);
			break;
		case 'p':
			ret->port = (int)strtol(optarg, &end, 10);
			if (*end || ret->port < 1 || ret->port > 65535)
				return error_set(err, EINVAL, "--port %s: it must be 1 to 65535",
						 optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		default:
			return error_set(err, EINVAL, "see quartermaster api --help");
		}
	}
	if (optind < argc)
		return error_set(err, EINVAL,
				 "unexpected argument \"%s\": see quartermaster api --help",
				 argv[optind]);
	return 0;
}

static int write_config(const char *socket_path, int port, const char *name, struct error *err)
{
	cleanup_free char *path = state_path("%s.kubeconfig", name);
	cleanup_free char *token = NULL;
	int rc = api_token(state_dir(), name, name, NULL, &token, err);

	return rc < 0 ? rc : api_write_kubeconfig(state_dir(), socket_path, port, token, path, err);
}

static int serve(const struct settings *x, struct error *err)
{
	cleanup_free char *socket_path = run_path("api.sock");
	const struct api_options options = { .state_dir = state_dir(),
					     .unix_path = socket_path,
					     .tcp_port = x->port };
	struct api_server *server;
	int rc = program_lock("api", err);

	if (rc < 0)
		return rc;
	daemon_begin();
	rc = api_server_start(&options, &server, err);
	if (rc < 0)
		return rc;
	rc = write_config(socket_path, api_server_port(server), "admin", err);
	if (rc >= 0)
		rc = write_config(socket_path, api_server_port(server), "operator", err);
	if (rc >= 0) {
		log_info("Serving on %s and https://127.0.0.1:%d", socket_path,
			 api_server_port(server));
		daemon_wait();
		log_info("Stopping");
	}
	api_server_stop(server);
	unlink(socket_path);
	return rc;
}

int verb_api(int argc, char **argv)
{
	struct settings x = { 0 };
	struct error err = ERROR_INIT;
	int rc = parse(argc, argv, &x, &err);

	if (rc > 0)
		return 0;
	log_init("api", getenv("QM_DEBUG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	if (rc >= 0)
		rc = serve(&x, &err);
	if (rc < 0)
		fprintf(stderr, "quartermaster api: %s\n", error_text(&err, rc));
	return rc == -EINVAL ? 2 : rc < 0 ? 1 : 0;
}
