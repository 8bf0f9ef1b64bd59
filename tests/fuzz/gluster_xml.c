/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every reader on every text: they refuse what is not theirs, and leak nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct gluster_reply reply;
	struct gluster_peers peers = { 0 };
	struct gluster_volume volume = { 0 };

	gluster_xml_reply(text, size, &reply, NULL);
	if (gluster_xml_peers(text, size, &reply, &peers, NULL) == 0)
		gluster_peers_done(&peers);
	if (gluster_xml_volume(text, size, "v1", &reply, &volume, NULL) < 0) {
		gluster_volume_add_brick(&volume, "10.213.7.11", "/bricks/m1/brick");
		gluster_volume_add_brick(&volume, "10.213.7.12", "/bricks/m2/brick");
	}
	gluster_xml_status(text, size, &reply, &volume, NULL);
	gluster_xml_heal(text, size, &reply, &volume, NULL);
	gluster_text_heal(text, size, &volume);
	gluster_volume_done(&volume);
	return 0;
}
