/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/mem.h"
#include "schema/crd.h"

int cmd_crds(struct session *s, const struct args *a)
{
	cleanup_free char *text = schema_crds_yaml();

	(void)fputs(text, s->out);
	return QM_OK;
}
