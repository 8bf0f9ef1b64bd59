/* SPDX-License-Identifier: Apache-2.0 */
#include "scaleio_rest.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define REPLY_MAX 16384
#define CONFIG_MAX 16384
#define CURL_PACKAGE "package curl"

/* ---- what curl is told ---------------------------------------------------------------------- */

struct config {
	char *buf;
	size_t size, len;
	bool full;
};

static void add_char(struct config *o, char ch)
{
	if (o->len + 1 >= o->size) {
		o->full = true;
		return;
	}
	o->buf[o->len++] = ch;
	o->buf[o->len] = '\0';
}

static void add_text(struct config *o, const char *text)
{
	for (; *text; text++)
		add_char(o, *text);
}

/* Inside the quotes of a value, in which a backslash has a meaning. */
static void add_quoted(struct config *o, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			add_char(o, '\\');
		add_char(o, *text);
	}
}

/* name = "the texts, one after the other", which end with NULL */
static void add_option(struct config *o, const char *name, ...)
{
	const char *text;
	va_list args;

	add_text(o, name);
	add_text(o, " = \"");
	va_start(args, name);
	while ((text = va_arg(args, const char *)))
		add_quoted(o, text);
	va_end(args);
	add_text(o, "\"\n");
}

int scaleio_config_write(const struct scaleio_request *q, int timeout_ms, char *buf, size_t size,
			 struct error *err)
{
	struct config o = { .buf = buf, .size = size };
	bool v6 = strchr(q->server, ':') && q->server[0] != '[';
	char seconds[32];

	snprintf(seconds, sizeof(seconds), "%d.%03d", timeout_ms / 1000, timeout_ms % 1000);
	add_option(&o, "url", "https://", v6 ? "[" : "", q->server, v6 ? "]" : "", ":", q->port,
		   q->path, NULL);
	add_option(&o, "user", q->user, ":", q->secret, NULL);
	add_option(&o, "proto", "=https", NULL);
	add_option(&o, "max-time", seconds, NULL);
	add_option(&o, "max-filesize", "65536", NULL);
	add_text(&o, "write-out = \"\\n%{http_code}\"\n"); /* the status on a line of its own */
	add_option(&o, "header", "Content-Type: application/json", NULL);
	add_text(&o, "silent\nshow-error\ngloboff\n");
	if (q->body)
		add_option(&o, "data-raw", q->body, NULL);
	if (!q->verify)
		add_text(&o, "insecure\n");
	else if (q->ca_file)
		add_option(&o, "cacert", q->ca_file, NULL);
	return o.full ? error_set(err, E2BIG, "the request is too long") : 0;
}

/* ---- what comes back ------------------------------------------------------------------------ */

static void copy_printable(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
	for (; *to; to++)
		if (iscntrl((unsigned char)*to))
			*to = '?';
}

int scaleio_reply_read(const char *text, struct scaleio_reply *ret, struct error *err)
{
	cleanup_json json_t *o = NULL;
	const char *last = strrchr(text, '\n'), *string;
	struct scaleio_reply reply = { 0 };

	if (!last || strlen(last + 1) != 3 || strspn(last + 1, "0123456789") != 3)
		return error_set(err, EBADMSG, "the reply has no HTTP status");
	reply.status = atoi(last + 1);
	/* what is not JSON (a proxy's page, nothing) has only its status */
	o = json_loadb(text, (size_t)(last - text), JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	string = json_string_value(o);
	if (string && strlen(string) < sizeof(reply.text))
		memcpy(reply.text, string, strlen(string) + 1);
	if (json_is_integer(jget(o, "errorCode")))
		reply.code = (long)jint(o, "errorCode");
	copy_printable(reply.message, sizeof(reply.message), jstr(o, "message"));
	*ret = reply;
	return 0;
}

/* Statuses of curl before anything of the request has gone out. */
static bool nothing_sent(int status)
{
	static const int list[] = { 1,	2,  3,	4,  5,	6,  7,	27, 35, 43, 45, 48,  51, 53,
				    54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91, 126, 127 };

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		if (list[i] == status)
			return true;
	return false;
}

static int curl_failed(const struct scaleio_request *q, struct host_result *result,
		       struct error *err)
{
	const char *hint = "";

	result->err[strcspn(result->err, "\n")] = '\0';
	if (result->status == 60)
		hint = ": give the gateway's certificate authority as certificatePath";
	return error_set(err,
			 nothing_sent(result->status) ? ECONNREFUSED
			 : result->status == 28	      ? ETIMEDOUT
						      : EIO,
			 "the ScaleIO gateway %s port %s cannot be asked: %.200s%s", q->server,
			 q->port, result->err[0] ? result->err : "curl failed", hint);
}

int scaleio_send(const struct call *c, const struct scaleio_request *q, struct scaleio_reply *ret,
		 struct error *err)
{
	char config[CONFIG_MAX], reply[REPLY_MAX];
	struct host_result result;
	int r = call_left(c, 0, err), left = r;

	if (r >= 0)
		r = scaleio_config_write(q, left, config, sizeof(config), err);
	if (r >= 0) {
		r = c->host->run(c->host,
				 &(struct host_command){
					 /* -q: no configuration but what it is given here */
					 .argv = (const char *const[]){ "curl", "-q", "--config",
									"-", NULL },
					 .input = config,
					 .input_len = strlen(config),
					 .timeout_ms = left,
					 .out = reply,
					 .out_size = sizeof(reply) },
				 &result);
		if (r == -ENOENT)
			error_set(err, ENOENT,
				  "the program curl, which asks the ScaleIO gateway, is not "
				  "installed (" CURL_PACKAGE ")");
		else if (r < 0)
			error_errno(err, -r, "the ScaleIO gateway %s does not answer", q->server);
	}
	explicit_bzero(config, sizeof(config));
	if (r >= 0)
		r = result.status ? curl_failed(q, &result, err)
				  : scaleio_reply_read(reply, ret, err);
	explicit_bzero(reply, sizeof(reply));
	return r == -ENOENT ? -ECONNREFUSED : r;
}
