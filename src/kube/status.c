/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"

#include <errno.h>

int status_errno(int http_status, const json_t *status)
{
	const char *reason = jstr(status, "reason");

	switch (http_status) {
	case 401:
		return EACCES;
	case 403:
		return EPERM;
	case 404:
		return ENOENT;
	case 405:
		return EOPNOTSUPP;
	case 408:
		return ETIMEDOUT;
	case 409:
		return streq(reason, "AlreadyExists") ? EEXIST : ESTALE;
	case 410:
		return EIDRM;
	case 413:
		return E2BIG;
	case 429:
		return EAGAIN;
	default:
		return http_status >= 500 ? EAGAIN : EINVAL;
	}
}

int status_error(int http_status, const char *body, size_t len, const char *what, struct error *err)
{
	cleanup_json json_t *status = NULL;
	const char *message;
	int code;

	if (len > 0)
		json_parse(body, len, &status, NULL);
	code = status_errno(http_status, status);
	message = jstr(status, "message");
	if (message && *message)
		return error_set(err, code, "%s", message);
	return error_set(err, code, "cannot %s: the API answered with HTTP status %d", what,
			 http_status);
}

/* Of "GET /path: HOST:PORT: Why" the last part: the caller says the rest in its own words. */
static const char *reason(const struct error *why)
{
	const char *text = strstr(why->message, ": "), *end;

	text = text ? text + 2 : why->message;
	end = strstr(text, ": ");
	return end && !memchr(text, ' ', (size_t)(end - text)) ? end + 2 : text;
}

int transport_error(const struct kube_http *h, int rc, const struct error *why, const char *what,
		    struct error *err)
{
	switch (-rc) {
	case ETIMEDOUT:
		return error_set(err, ETIMEDOUT, "cannot %s: the API at %s did not answer in time",
				 what, h->where);
	case ECONNREFUSED:
	case ENOENT:
		return error_set(
			err, EAGAIN,
			"cannot %s: nothing listens on the API's address %s; is it running?", what,
			h->where);
	case EPROTO:
		return error_set(err, EAGAIN,
				 "cannot %s: the API at %s has to speak HTTP/2, which this client "
				 "needs: %s",
				 what, h->where, reason(why));
	default:
		return error_set(err, EAGAIN,
				 "cannot %s: the connection to the API at %s failed: %s", what,
				 h->where, *why->message ? reason(why) : strerror(-rc));
	}
}
