/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/mem.h"

int cmd_version(struct session *s, const struct args *a)
{
	const char *format = args_value(a, "output");

	if (format && !streq(format, "json") && !streq(format, "text"))
		return usage_error(a->verb, "-o is text or json, not \"%s\"", format);
	(void)fprintf(s->out,
		      streq(format, "json") ? "{\"version\": \"%s\"}\n" : "quartermaster %s\n",
		      QM_VERSION);
	return QM_OK;
}
