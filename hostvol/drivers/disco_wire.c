/* SPDX-License-Identifier: Apache-2.0 */
#include "disco_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static const char instance[14] = { 'D', 'E', 'F', 'A', 'U', 'L', 'T',
				   '-', 'I', 'N', 'S', 'T', 'I', 'D' };

void disco_request(unsigned char ret[static DISCO_REQUEST_LEN], enum disco_op op, uint64_t volume)
{
	/* the length is of what follows it */
	uint16_t len = htobe16(DISCO_REQUEST_LEN - 2), code = htobe16((uint16_t)op);

	volume = htobe64(volume);
	memcpy(ret, &len, 2);
	memcpy(ret + 2, &code, 2);
	memcpy(ret + 4, &volume, 8);
	memcpy(ret + 12, instance, sizeof(instance));
}

int disco_reply(const unsigned char *data, size_t len, struct error *err)
{
	uint32_t code;

	if (len != sizeof(code))
		return error_set(err, EBADMSG, "%zu bytes are no reply", len);
	memcpy(&code, data, sizeof(code));
	code = be32toh(code);
	return code ? error_set(err, EIO, "it answers code %u (0x%08x)", code, code) : 0;
}
