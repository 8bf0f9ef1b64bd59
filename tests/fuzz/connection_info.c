/* SPDX-License-Identifier: Apache-2.0 */
/* ConnectionInfo, flat or not, up to a prepared attachment, its record, and back. */
#include "core/attachment.h"
#include "core/info.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct attachment *a)
{
	cleanup_attachment struct attachment *b = NULL;
	cleanup_json json_t *o = NULL, *again = NULL;

	if (attachment_to_json(a, &o, NULL) < 0 || attachment_from_json(o, &b, NULL) < 0 ||
	    attachment_to_json(b, &again, NULL) < 0 || !json_equal(o, again) ||
	    !streq(a->id, b->id) || !streq(a->target_id, b->target_id))
		abort();
	/* whatever the text was: a mount point stays below its base */
	if (strstr(attachment_detail(a, "mountPoint"), "/../"))
		abort();
}

static void check_connection(const char *text)
{
	struct hostvol_connection_info *c = NULL;
	cleanup_free char *json = NULL, *json2 = NULL;

	if (hostvol_connection_info_from_json(text, &c, NULL) < 0)
		return;
	if (hostvol_connection_info_to_json(c, &json, NULL) < 0)
		abort();
	hostvol_connection_info_free(c);
	/* written once, it is read and written the same */
	if (hostvol_connection_info_from_json(json, &c, NULL) < 0 ||
	    hostvol_connection_info_to_json(c, &json2, NULL) < 0 || !streq(json, json2))
		abort();
	hostvol_connection_info_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hostvol h = { .state_dir = (char *)"/s",
				    .run_dir = (char *)"/r",
				    .deadline_ms = 1000,
				    .host = &host_real };
	cleanup_free char *text = strndup((const char *)data, size);
	cleanup_with(info_done) struct info i = { 0 };
	cleanup_attachment struct attachment *a = NULL;
	struct hostvol_iscsi_connection_data *iscsi = NULL;
	struct call c = call_begin(&h);
	struct error err = ERROR_INIT;

	if (!text)
		return 0;
	check_connection(text);
	if (hostvol_iscsi_connection_data_from_json(text, &iscsi, NULL) >= 0)
		hostvol_iscsi_connection_data_free(iscsi);
	if (info_parse(text, &i, &err) < 0 || !i.driver)
		return 0;
	if (attachment_new(&c, i.driver, i.data, i.volume_id, i.consumer, &a, &err) >= 0)
		check_record(a);
	else if (!err.message[0])
		abort();
	return 0;
}
