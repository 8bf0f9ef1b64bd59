/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which client containers volumes came here. hostvol's records say it of each volume; the client
 * itself knows of one mount only, whatever number of volumes of a pool share it.
 */
#include "base/log.h"
#include "base/mem.h"
#include "csi/node_service.h"

json_t *csi_node_clients(struct csi_node *n)
{
	json_t *counts = json_object();
	cleanup_json json_t *records = NULL;
	struct error err = ERROR_INIT;
	int r = records_find(n->h, NULL, NULL, &records, &err);
	const json_t *record;
	size_t i;

	if (r < 0)
		log_warn("the volumes of clients are not counted: %s", error_text(&err, r));
	json_array_foreach (records, i, record) {
		const char *id = jstr(record, "detail", "client");

		if (id)
			json_object_set_new(counts, id, json_integer(jint(counts, id) + 1));
	}
	return counts;
}
