/* SPDX-License-Identifier: Apache-2.0 */
/* A request to qm-client: whatever is taken is within the bounds that serving it relies on. */
#include "base/mem.h"
#include "clients/client.h"

#include <errno.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client_request r;
	struct error err = ERROR_INIT;
	int rc = client_request_decode((const char *)data, size, &r, &err);

	if (rc < 0) {
		if (rc != -EINVAL || !err.message[0])
			abort();
		return 0;
	}
	if (r.timeout_ms < 0 || r.timeout_ms > CLIENT_TIMEOUT_MAX_MS ||
	    r.input_len > CLIENT_INPUT_MAX || r.out_size > CLIENT_OUTPUT_MAX)
		abort();
	if ((r.op == CLIENT_RUN || r.op == CLIENT_SERVE_FUSE) &&
	    (!r.argv[0] || !*r.argv[0] || count(r.argv) > CLIENT_WORDS_MAX ||
	     count(r.env) > CLIENT_ENV_MAX))
		abort();
	if ((r.op == CLIENT_SERVE_FUSE || r.op == CLIENT_TAKE_FUSE) && r.mount_point[0] != '/')
		abort();
	if (r.op == CLIENT_AWAIT_END && (!*r.program || !*r.last_arg))
		abort();
	client_request_done(&r);
	return 0;
}
