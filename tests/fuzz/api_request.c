/* SPDX-License-Identifier: Apache-2.0 */
#include "api/proto.h"
#include "api/request.h"
#include "api/selector.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void route(const char *method, const char *path)
{
	struct request r = { .method = method };

	if (request_parse(&r, path) >= 0 && request_route(&r) >= 0) {
		struct selector *s = NULL;
		const char *labels = request_param(&r, "labelSelector");
		const char *fields = request_param(&r, "fieldSelector");

		if (!r.kind || r.verb == VERB_NONE)
			abort();
		if (selector_parse(r.kind, labels, fields, &s, NULL) >= 0) {
			cleanup_json json_t *o = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "name",
							   "x", "labels", "a", "b");

			selector_match(s, o);
			selector_free(s);
		}
	}
	request_done(&r);
}

/* The input is a path with its query, and after a line feed a body in Kubernetes' protobuf. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	cleanup_free char *path = xstrndup((const char *)data, len);
	json_t *body = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		route(methods[i], path);
	if (end && proto_parse(end + 1, size - len - 1, &body, NULL) >= 0 && !json_is_object(body))
		abort();
	json_decref(body);
	return 0;
}
