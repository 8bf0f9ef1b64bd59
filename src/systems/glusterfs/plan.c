/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/plan.h"

#include "base/mem.h"
#include "systems/glusterfs/plan_model.h"

static json_t *pools_out(const struct plan_model *m)
{
	json_t *out = json_array();
	for (size_t i = 0; i < m->pools_count + m->children_count; i++) {
		const struct plan_pool *p =
			i < m->pools_count ? &m->pools[i] : &m->children[i - m->pools_count];
		json_array_append_new(out, json_pack("{s:s, s:O, s:s, s:s}", "name", p->name,
						     "spec", p->spec, "action", p->action, "why",
						     p->why ? p->why : ""));
	}
	return out;
}

int glusterfs_plan(const struct plan_input *in, struct plan_output *ret, struct error *err)
{
	struct plan_model m;
	int rc = model_build(&m, in, err);
	if (rc == 0) {
		plan_pools(&m);
		*ret = (struct plan_output){
			.node_plans = plan_nodes(&m),
			.pools = pools_out(&m),
			.findings = json_incref(m.findings),
			.steps = json_incref(m.steps),
		};
	}
	model_done(&m);
	return rc;
}

void plan_output_done(struct plan_output *p)
{
	json_decref(p->pools);
	json_decref(p->node_plans);
	json_decref(p->findings);
	json_decref(p->steps);
	*p = (struct plan_output){ 0 };
}
