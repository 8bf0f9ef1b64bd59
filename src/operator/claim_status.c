/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/op.h"

/*
 * What the loops that change a volume say in its claim, in the form that people know from
 * Kubernetes.
 */

json_t *claim_condition(struct reconcile *r, const char *type, const char *message)
{
	char now[TIME_TEXT_MAX];

	time_text(clock_wall_ms(r->clock), now);
	return json_pack("{s:s, s:s, s:n, s:s, s:s*}", "type", type, "status", "True",
			 "lastProbeTime", "lastTransitionTime", now, "message", message);
}

static bool is_one_of(const char *type, const char *const *types)
{
	for (; *types; types++)
		if (streq(type, *types))
			return true;
	return false;
}

json_t *claim_conditions(const json_t *claim, const char *const *without, json_t *more)
{
	json_t *all = json_array(), *c;
	size_t i;

	json_array_foreach (jget(claim, "status", "conditions"), i, c)
		if (!is_one_of(jstr(c, "type"), without))
			json_array_append(all, c);
	if (more)
		json_array_append_new(all, more);
	return all;
}

const char *claim_said(const json_t *claim, const char *type)
{
	size_t i;
	json_t *c;

	json_array_foreach (jget(claim, "status", "conditions"), i, c)
		if (streq(jstr(c, "type"), type))
			return jstr(c, "message") ? jstr(c, "message") : "";
	return NULL;
}

int claim_tell(struct reconcile *r, json_t **claim, json_t *status)
{
	json_t *newer = NULL;
	int rc = op_patch(r, &KIND_PVC, *claim, "status", json_pack("{s:o}", "status", status),
			  &newer);

	if (rc == 0) {
		json_decref(*claim);
		*claim = newer;
	}
	return rc;
}
