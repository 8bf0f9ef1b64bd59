/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>
#include <stdio.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* A whole number of 1 … 64 at *text, which is moved behind it; 0: none. */
static int small_number(const char **text)
{
	char *end;
	if (**text < '1' || **text > '9')
		return 0;
	long n = strtol(*text, &end, 10);
	*text = end;
	return n > 64 ? 0 : (int)n;
}

static int parse_replicate(const char *rest, struct volume_type *ret)
{
	int n = small_number(&rest);
	if (n < 2 || *rest)
		return -EINVAL;
	*ret = (struct volume_type){ LAYOUT_REPLICATE, n, 1, n - 1 };
	return 0;
}

/* Gluster wants more data than redundancy bricks: D > R, R >= 1. */
static int parse_disperse(const char *rest, struct volume_type *ret)
{
	int data = small_number(&rest);
	if (!data || *rest++ != ':')
		return -EINVAL;
	int redundancy = small_number(&rest);
	if (!redundancy || *rest || data <= redundancy || data + redundancy > 64)
		return -EINVAL;
	*ret = (struct volume_type){ LAYOUT_DISPERSE, data + redundancy, data, redundancy };
	return 0;
}

int volume_type_parse(const char *text, struct volume_type *ret, struct error *err)
{
	int rc = -EINVAL;

	if (str_has_prefix(text, "replicate:") || str_has_prefix(text, "replica:")) {
		rc = parse_replicate(strchr(text, ':') + 1, ret);
	} else if (str_has_prefix(text, "disperse:")) {
		rc = parse_disperse(strchr(text, ':') + 1, ret);
	} else if (streq(text, "arbiter")) {
		*ret = (struct volume_type){ LAYOUT_ARBITER, 3, 1, 1 };
		rc = 0;
	} else if (streq(text, "none")) {
		*ret = (struct volume_type){ LAYOUT_NONE, 1, 1, 0 };
		rc = 0;
	}
	if (rc < 0)
		return error_set(err, EINVAL,
				 "volume type \"%.60s\" is not known: use replicate:N (N from 2), "
				 "disperse:D:R (D "
				 "greater than R), arbiter or none",
				 text);
	return 0;
}

void brick_id(const char *node_uid, const char *source, char id[static 16])
{
	char *text = xasprintf("%s\n%s", node_uid, source);
	unsigned long long hash = XXH64(text, strlen(text), 0);
	snprintf(id, 16, "b-%012llx", hash & 0xffffffffffffULL);
	free(text);
}
