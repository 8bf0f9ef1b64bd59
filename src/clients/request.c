/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/client.h"

#include "base/mem.h"

#include <errno.h>

/* Strings of an array into words, which has room for max and a NULL. */
static int decode_words(const json_t *array, const char *what, const char **words, size_t max,
			struct error *err)
{
	size_t count = json_array_size(array);

	if (array && !json_is_array(array))
		return error_set(err, EINVAL, "%s is not a list", what);
	if (count > max)
		return error_set(err, EINVAL, "%s has %zu words, more than %zu", what, count, max);
	for (size_t i = 0; i < count; i++) {
		words[i] = json_string_value(json_array_get(array, i));
		if (!words[i])
			return error_set(err, EINVAL, "%s has something that is no text", what);
	}
	words[count] = NULL;
	return 0;
}

/* A number from 0 to max; a missing one is 0. */
static int decode_number(const json_t *o, const char *key, json_int_t max, json_int_t *ret,
			 struct error *err)
{
	const json_t *value = json_object_get(o, key);
	json_int_t n = json_integer_value(value);

	if ((value && !json_is_integer(value)) || n < 0 || n > max)
		return error_set(err, EINVAL, "%s is not a number from 0 to %lld", key,
				 (long long)max);
	*ret = n;
	return 0;
}

static int decode_run(struct client_request *r, struct error *err)
{
	json_int_t input = 0, out = 0;
	int rc = decode_words(json_object_get(r->text, "argv"), "argv", r->argv, CLIENT_WORDS_MAX,
			      err);

	if (rc == 0)
		rc = decode_words(json_object_get(r->text, "env"), "env", r->env, CLIENT_ENV_MAX,
				  err);
	if (rc == 0)
		rc = decode_number(r->text, "inputLength", CLIENT_INPUT_MAX, &input, err);
	if (rc == 0)
		rc = decode_number(r->text, "outSize", CLIENT_OUTPUT_MAX, &out, err);
	if (rc < 0)
		return rc;
	if (!r->argv[0] || !*r->argv[0])
		return error_set(err, EINVAL, "argv names no program");
	r->input_len = (size_t)input;
	r->out_size = (size_t)out;
	return 0;
}

static int decode_await_end(struct client_request *r, struct error *err)
{
	r->program = jstr(r->text, "program");
	r->last_arg = jstr(r->text, "lastArgument");
	r->kill = jbool(r->text, "kill");
	if (!r->program || !*r->program || !r->last_arg || !*r->last_arg)
		return error_set(err, EINVAL, "program and lastArgument are needed");
	return 0;
}

static int decode_fuse(struct client_request *r, bool serve, struct error *err)
{
	int rc = !serve ? 0
			: decode_words(json_object_get(r->text, "argv"), "argv", r->argv,
				       CLIENT_WORDS_MAX, err);

	if (rc < 0)
		return rc;
	r->mount_point = jstr(r->text, "mountPoint");
	if (!r->mount_point || r->mount_point[0] != '/')
		return error_set(err, EINVAL, "mountPoint is not an absolute path");
	if (serve && (!r->argv[0] || !*r->argv[0]))
		return error_set(err, EINVAL, "argv names no program");
	return 0;
}

static int decode_op(struct client_request *r, struct error *err)
{
	const char *op = jstr(r->text, "op");

	if (streq(op, "run")) {
		r->op = CLIENT_RUN;
		return decode_run(r, err);
	}
	if (streq(op, "awaitEnd")) {
		r->op = CLIENT_AWAIT_END;
		return decode_await_end(r, err);
	}
	if (streq(op, "info") || streq(op, "watch")) {
		r->op = streq(op, "info") ? CLIENT_INFO : CLIENT_WATCH;
		return 0;
	}
	if (streq(op, "serveFuse") || streq(op, "takeFuse")) {
		r->op = streq(op, "serveFuse") ? CLIENT_SERVE_FUSE : CLIENT_TAKE_FUSE;
		return decode_fuse(r, r->op == CLIENT_SERVE_FUSE, err);
	}
	return error_set(err, EINVAL, "\"%.40s\" is no operation of this client", op ? op : "");
}

int client_request_decode(const char *text, size_t len, struct client_request *ret,
			  struct error *err)
{
	struct client_request r = { 0 };
	json_int_t timeout = 0;
	int rc = json_parse(text, len, &r.text, err);

	if (rc < 0)
		return error_set(err, EINVAL, "the request is not JSON");
	rc = decode_number(r.text, "timeoutMs", CLIENT_TIMEOUT_MAX_MS, &timeout, err);
	if (rc == 0) {
		r.timeout_ms = (int)timeout;
		rc = decode_op(&r, err);
	}
	if (rc < 0) {
		client_request_done(&r);
		return rc;
	}
	*ret = r;
	return 0;
}

void client_request_done(struct client_request *r)
{
	json_decref(r->text);
	r->text = NULL;
}
