/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/remote.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "clients/client.h"
#include "clients/machine.h"
#include "core/host.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

struct clients_host {
	struct hostvol_host host; /* its userdata is this */
	char *dir; /* NULL: no containers */
	struct strv
		order[CLIENT_PROTOCOLS_MAX]; /* as client_protocols; ids of clients, best first */
	bool of_machine[CLIENT_PROTOCOLS_MAX]; /* its programs are the machine's own */
	struct machine *machine; /* NULL: none is */
	const char *proc; /* its first process */
};

/* Its index in client_protocols, -1: none. */
static int protocol_index(const char *program)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

	for (int i = 0; client_protocols[i].name; i++)
		for (const char *const *known = client_protocols[i].programs; *known; known++)
			if (streq(*known, name))
				return i;
	return -1;
}

static bool is_of_machine(const struct clients_host *c, const char *program)
{
	int i = protocol_index(program);

	return i >= 0 && c->of_machine[i];
}

static const char *protocol_of(const char *program)
{
	int i = protocol_index(program);

	return i < 0 ? NULL : client_protocols[i].name;
}

/* The directory of the containers that have this program, or NULL: it is the host's. */
static char *containers_of(const struct clients_host *c, const char *program)
{
	const char *protocol = c->dir && !is_of_machine(c, program) ? protocol_of(program) : NULL;
	cleanup_free char *dir = protocol ? xasprintf("%s/%s", c->dir, protocol) : NULL;
	struct stat st;

	return dir && stat(dir, &st) == 0 && S_ISDIR(st.st_mode) ? TAKE_PTR(dir) : NULL;
}

/*
 * The first in the operator's order that listens, which a client does when it has shown that its
 * programs work. Where none does the first is waited for. NULL: the one container has no id.
 */
static const char *best_client(const struct clients_host *c, const char *dir, const char *program)
{
	const struct strv *order = &c->order[protocol_index(program)];

	for (size_t i = 0; i < order->count; i++) {
		cleanup_free char *one = xasprintf("%s/%s", dir, order->items[i]);

		if (client_listens(one))
			return order->items[i];
	}
	return order->count ? order->items[0] : NULL;
}

/* The directory of the container that runs this program, or NULL: it is the host's. */
static char *container_of(const struct clients_host *c, const char *program, const char *client)
{
	cleanup_free char *dir = containers_of(c, program);

	if (dir && !client)
		client = best_client(c, dir, program);
	return dir && client ? xasprintf("%s/%s", dir, client) : TAKE_PTR(dir);
}

static void remote_choose_client(const struct hostvol_host *host, const char *program,
				 const char *wanted, char *id, size_t size)
{
	const struct clients_host *c = host->userdata;
	cleanup_free char *dir = containers_of(c, program);
	const char *best = !dir ? NULL : *wanted ? wanted : best_client(c, dir, program);

	snprintf(id, size, "%s", best ? best : "");
}

static int clamp(int timeout_ms)
{
	return timeout_ms < 0			    ? 0
	       : timeout_ms > CLIENT_TIMEOUT_MAX_MS ? CLIENT_TIMEOUT_MAX_MS
						    : timeout_ms;
}

/* ---- run ------------------------------------------------------------------------------------ */

static json_t *words(const char *const *list)
{
	json_t *array = json_array();

	for (; list && *list; list++)
		json_array_append_new(array, json_string(*list));
	return array;
}

static bool is_text(const json_t *array, const char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	/* words that are not UTF-8 were left out */
	return json_array_size(array) == count;
}

/* A client that does not run is waited for, not given up: whoever asked asks again. */
static int explain(const char *program, int rc, const struct error *why, struct host_result *ret)
{
	const char *protocol = protocol_of(program);

	if (rc == -ECONNREFUSED || rc == -ECONNRESET) {
		snprintf(ret->err, sizeof(ret->err),
			 "the %s client on this node %s; see: kubectl get pods -A -o wide -l "
			 "quartermaster.storage/client=%s",
			 protocol,
			 rc == -ECONNREFUSED ? "does not run (yet)" : "ended before it answered",
			 protocol);
		return -EAGAIN;
	}
	if (rc == -ENOENT)
		snprintf(ret->err, sizeof(ret->err),
			 "the image of the %s client on this node has no program %s", protocol,
			 program);
	else if (rc != -ETIMEDOUT)
		snprintf(ret->err, sizeof(ret->err), "the %s client on this node: %.400s", protocol,
			 why->message);
	return rc;
}

static void keep_end(char *text, size_t size, const char *from)
{
	size_t len = strlen(from);

	snprintf(text, size, "%s", len >= size ? from + (len - size + 1) : from);
}

static int run_in(const char *dir, const struct host_command *command, struct host_result *ret,
		  struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	size_t out_size = command->out ? command->out_size : sizeof(ret->out);
	json_t *argv = words(command->argv), *env = words(command->env);
	cleanup_json json_t *request =
		json_pack("{s:s, s:o, s:o, s:I, s:I, s:i}", "op", "run", "argv", argv, "env", env,
			  "inputLength", (json_int_t)command->input_len, "outSize",
			  (json_int_t)(out_size > CLIENT_OUTPUT_MAX ? CLIENT_OUTPUT_MAX : out_size),
			  "timeoutMs", clamp(command->timeout_ms));
	int rc;

	if (!is_text(argv, command->argv) || !is_text(env, command->env))
		return error_set(err, EILSEQ, "a word of the command is not UTF-8");
	rc = client_call(dir, request, command->input, command->input_len,
			 clamp(command->timeout_ms), &reply, err);
	if (rc < 0)
		return rc;
	ret->status = (int)jint(reply.text, "status");
	keep_end(command->out ? command->out : ret->out, out_size, reply.out);
	keep_end(ret->err, sizeof(ret->err), reply.err);
	return 0;
}

/* What the machine, or the image that we are in, does not have can be brought in three ways. */
static int explain_missing(const struct clients_host *c, const char *program,
			   struct host_result *ret)
{
	int i = protocol_index(program);
	bool machine = is_of_machine(c, program);

	if (i < 0)
		return -ENOENT;
	snprintf(ret->err, sizeof(ret->err),
		 "%s has no program %s; install it%s (Debian: %s), or have it in a container: "
		 "--%s-mount-container=IMAGE%s",
		 machine ? "this machine" : "the system that this runs on", program,
		 machine ? " there" : "", client_protocols[i].packages, client_protocols[i].name,
		 machine ? "" : ", or host for that of the machine below a pod");
	return -ENOENT;
}

static int run_here(struct clients_host *c, const struct host_command *command,
		    struct host_result *ret)
{
	bool machine = is_of_machine(c, command->argv[0]);
	int rc = machine ? machine_run(c->machine, command, ret)
			 : host_real.run(&c->host, command, ret);

	if (rc == -ENOENT)
		return explain_missing(c, command->argv[0], ret);
	if (rc < 0 && rc != -ETIMEDOUT && machine)
		snprintf(ret->err, sizeof(ret->err),
			 "cannot run %s as a program of the machine: %s", command->argv[0],
			 strerror(-rc));
	return rc;
}

static int remote_run(const struct hostvol_host *host, const struct host_command *command,
		      struct host_result *ret)
{
	struct clients_host *c = host->userdata;
	cleanup_free char *dir = container_of(c, command->argv[0], command->client);
	struct error why = ERROR_INIT;
	int rc;

	if (!dir)
		return run_here(c, command, ret);
	*ret = (struct host_result){ 0 };
	if (command->out)
		command->out[0] = '\0';
	rc = run_in(dir, command, ret, &why);
	return rc < 0 ? explain(command->argv[0], rc, &why, ret) : 0;
}

/* ---- await_end ------------------------------------------------------------------------------ */

static int await_end_in(const char *dir, const json_t *request, int timeout_ms)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	int rc = client_call(dir, request, NULL, 0, timeout_ms, &reply, NULL);

	/* its processes are in its container and end with it: where it is not, none is left */
	return rc == -ECONNREFUSED || rc == -ECONNRESET ? 0 : rc;
}

/* In every container of the protocol: the process is in one of them, the others answer at once. */
static int remote_await_end(const struct hostvol_host *host, const char *program,
			    const char *last_arg, bool kill, int timeout_ms)
{
	struct clients_host *c = host->userdata;
	cleanup_free char *dir = containers_of(c, program);
	cleanup_with(strv_done) struct strv clients = { 0 };
	cleanup_json json_t *request = NULL;
	int rc = 0;

	if (!dir)
		return host_real.await_end(host, program, last_arg, kill, timeout_ms);
	request = json_pack("{s:s, s:s, s:s, s:b, s:i}", "op", "awaitEnd", "program", program,
			    "lastArgument", last_arg, "kill", (int)kill, "timeoutMs",
			    clamp(timeout_ms));
	if (!request)
		return -EILSEQ;
	clients_find(dir, &clients);
	for (size_t i = 0; i < clients.count; i++) {
		int one = await_end_in(clients.items[i], request, clamp(timeout_ms));

		rc = rc < 0 ? rc : one;
	}
	return rc;
}

/* ---- */

int clients_host_new(const char *dir, struct clients_host **ret, struct error *err)
{
	struct clients_host *c;

	if (dir && !path_is_clean(dir))
		return error_set(err, EINVAL,
				 "%s: the directory of clients is to be an absolute path without "
				 "\".\", \"..\" and doubled slashes",
				 dir);
	c = xcalloc(1, sizeof(*c));
	c->host = host_real;
	c->host.userdata = c;
	c->host.run = remote_run;
	c->host.await_end = remote_await_end;
	c->host.choose_client = remote_choose_client;
	c->dir = dir ? xstrdup(dir) : NULL;
	c->proc = "/proc/1";
	*ret = c;
	return 0;
}

static int protocol_named(const char *name, size_t len)
{
	for (int i = 0; client_protocols[i].name; i++)
		if (strlen(client_protocols[i].name) == len &&
		    strncmp(client_protocols[i].name, name, len) == 0)
			return i;
	return -1;
}

static int use_machine(struct clients_host *c, int protocol, struct error *err)
{
	int rc = c->machine ? 0 : machine_open(c->proc, &c->machine, err);

	if (rc == 0)
		c->of_machine[protocol] = true;
	return rc;
}

int clients_host_prefer(struct clients_host *c, const char *text, struct error *err)
{
	size_t len = strcspn(text, "=");
	int protocol = protocol_named(text, len);
	cleanup_free char *list = text[len] ? xstrdup(text + len + 1) : NULL;

	if (protocol < 0 || !list)
		return error_set(err, EINVAL,
				 "\"%s\": use PROTOCOL=ID,ID… or PROTOCOL=" CLIENT_HOST, text);
	if (streq(list, CLIENT_HOST))
		return use_machine(c, protocol, err);
	for (char *word = list, *save; (word = strtok_r(word, ",", &save)); word = NULL) {
		if (!name_is_label(word) || strlen(word) >= CLIENT_ID_MAX ||
		    streq(word, CLIENT_HOST))
			return error_set(err, EINVAL, "\"%s\" is not a client's id", word);
		strv_add(&c->order[protocol], word);
	}
	return 0;
}

void clients_host_set_proc(struct clients_host *c, const char *proc)
{
	c->proc = proc;
}

const struct hostvol_host *clients_host(struct clients_host *c)
{
	return &c->host;
}

void clients_host_free(struct clients_host *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CLIENT_PROTOCOLS_MAX; i++)
		strv_done(&c->order[i]);
	machine_free(c->machine);
	free(c->dir);
	free(c);
}
