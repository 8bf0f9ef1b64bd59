/* SPDX-License-Identifier: Apache-2.0 */
#include "local/instance.h"

#include "base/mem.h"
#include "base/paths.h"

#include <stdint.h>
#include <stdio.h>
#include <xxhash.h>

static uint64_t run_hash(void)
{
	return XXH64(run_dir(), strlen(run_dir()), 0);
}

const char *instance_name(void)
{
	static char name[8];

	if (streq(run_dir(), "/run/quartermaster"))
		return "qm";
	snprintf(name, sizeof(name), "qm%04x", (unsigned)(run_hash() & 0xffff));
	return name;
}

int instance_number(void)
{
	return streq(run_dir(), "/run/quartermaster") ? 0 : (int)(1 + run_hash() % 254);
}
