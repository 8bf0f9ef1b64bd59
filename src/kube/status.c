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

int transport_error(const struct kube_http *h, int rc, const char *what, struct error *err)
{
	if (rc == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "cannot %s: the API at %s did not answer in time",
				 what, h->where);
	if (rc == -ECONNREFUSED || rc == -ENOENT)
		return error_set(
			err, EAGAIN,
			"cannot %s: nothing listens on the API's address %s; is it running?", what,
			h->where);
	return error_set(err, EAGAIN, "cannot %s: the connection to the API at %s failed: %s", what,
			 h->where, strerror(-rc));
}
