/* SPDX-License-Identifier: Apache-2.0 */
/* What a ScaleIO gateway answers, as curl prints it; and any text as parts of a request to it. */
#include "drivers/scaleio_rest.h"

#include "base/mem.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_reply(const char *text)
{
	struct scaleio_reply reply;
	struct error err = ERROR_INIT;

	if (scaleio_reply_read(text, &reply, &err) < 0) {
		if (!err.message[0])
			abort();
		return;
	}
	if (reply.status < 0 || reply.status > 999 || strchr(reply.message, '\n'))
		abort();
}

/* Whatever a secret is, it stays inside its quotes: no line of it becomes an option. */
static void check_config(const char *text)
{
	struct scaleio_request q = { .server = "h",
				     .port = "443",
				     .user = "u",
				     .secret = text,
				     .path = "/p",
				     .body = text,
				     .verify = true };
	static char config[200000];
	size_t lines = 0;

	if (strpbrk(text, "\n\r") || scaleio_config_write(&q, 1, config, sizeof(config), NULL) < 0)
		return;
	for (const char *p = config; *p; p++)
		lines += *p == '\n';
	if (lines != 11)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = strndup((const char *)data, size);

	if (!text)
		return 0;
	check_reply(text);
	check_config(text);
	return 0;
}
