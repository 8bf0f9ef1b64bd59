/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/path.h"

#include "base/mem.h"
#include "worker/worker.h"

#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

bool volume_name_ok(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return len > 0 && len <= VOLUME_NAME_MAX && !name[len] && name[0] != '-';
}

void volume_hash(const char *name, char first[static 3], char second[static 3])
{
	unsigned long long hash = XXH64(name, strlen(name), 0);
	snprintf(first, 3, "%02llx", hash >> 56);
	snprintf(second, 3, "%02llx", hash >> 48 & 0xff);
}

const char *volume_prefix(enum volume_kind kind)
{
	switch (kind) {
	case VOLUME_DIRECTORY:
		return "subvol";
	case VOLUME_FILE:
		return "virtblock";
	case VOLUME_BLOCK:
		return "rawblock";
	case VOLUME_WHOLE:
		return "whole";
	case VOLUME_SNAPSHOT:
		return "snap";
	default:
		return NULL;
	}
}

char *volume_path(const char *prefix, const char *name)
{
	char first[3], second[3];
	volume_hash(name, first, second);
	return xasprintf("%s/%s/%s/%s", prefix, first, second, name);
}
