/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vendors' programs print and answer (Huawei's sds_cli, HGST's vgc-cluster, DISCO), and share
 * strings with a password in them.
 */
#include "drivers/vendor_text.h"
#include "core/params.h"
#include "drivers/disco_wire.h"
#include "drivers/share_text.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_output(const char *text)
{
	struct sds_output out;
	const char *p = text, *word;
	size_t len;

	if (sds_output_read(text, &out, NULL) >= 0 && out.device[0] &&
	    (!path_is_clean(out.device) || !str_has_prefix(out.device, "/dev/")))
		abort();
	while ((word = next_word(&p, &len)))
		if (len == 0 || word < text || p > text + strlen(text) || memchr(word, '\n', len))
			abort();
}

/* Through the table, as a caller gives it: no password may stay in what is recorded. */
static void check_share(const char *driver_name, const char *key, const char *text)
{
	const struct driver *d;
	cleanup_json json_t *data = json_object(), *out = NULL;
	const char *options;

	json_object_set_new(data, "export", json_string(key[0] == 'o' ? "//h/s" : text));
	json_object_set_new(data, key, json_string(text));
	if (driver_find(driver_name, &d, NULL) < 0 || params_read(d, data, &out, NULL) < 0)
		return;
	options = jstr(out, "options");
	if (options && (str_has_prefix(options, "password=") || strstr(options, ",password=") ||
			str_has_prefix(options, "pass=") || strstr(options, ",pass=")))
		abort();
	if (streq(driver_name, "VZSTORAGE")) {
		const char *cluster;
		size_t servers;

		vz_split(jstr(out, "export"), &servers, &cluster);
		if (strpbrk(cluster, ":/"))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = strndup((const char *)data, size);

	if (!text)
		return 0;
	check_output(text);
	disco_reply(data, size, NULL);
	check_share("VZSTORAGE", "export", text);
	check_share("SMB", "export", text);
	check_share("SMB", "options", text);
	check_share("QUOBYTE", "export", text);
	return 0;
}
