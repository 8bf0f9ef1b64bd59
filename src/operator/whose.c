/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to a deployment: for its operator, and for `quartermaster plan`, which says what that would do. */
#include "operator/ledger.h"
#include "operator/op.h"

#include <errno.h>

enum whose node_whose(const struct operator* op, const json_t *node, bool only)
{
	const char *label = object_label(node, QM_LABEL_DEPLOYMENT);

	if (!streq(jstr(node, "spec", "type"), op->type) ||
	    (object_deleting(node) && !object_has_finalizer(node, QM_FINALIZER_NODE)))
		return WHOSE_OTHERS;
	if (label)
		return streq(label, op->deployment) ? WHOSE_OURS : WHOSE_OTHERS;
	return only ? WHOSE_OURS : WHOSE_UNCLEAR;
}

/* ---- how many volumes ------------------------------------------------------------------------- */

/* What loops read from their caches is read from the API: who asks once has none. */
struct direct {
	struct reader base;
	struct kube *kube;
};

static json_t *direct_get(struct reader *r, const struct kind *kind, const char *ns,
			  const char *name)
{
	json_t *object = NULL;

	return kube_get(((struct direct *)r)->kube, kind, ns, name, &object, NULL) < 0 ? NULL :
											 object;
}

static const struct reader_ops direct_ops = { .get = direct_get };

int pools_count(const struct operator* op, struct kube *kube, const json_t *pools, json_t **ret,
		struct error *err)
{
	struct operator asking = { .deployment = op->deployment,
				   .ns = op->ns,
				   .type = op->type,
				   .volume_type = op->volume_type,
				   .overcommit = op->overcommit };
	struct direct cache = { .base.ops = &direct_ops, .kube = kube };
	struct reconcile r = { .kube = kube, .cache = &cache.base, .app = &asking };
	struct ledger *ledger = ledger_new();
	int rc = ledger_load(ledger, &r, 0);
	size_t i;
	json_t *p;

	if (rc == 0) {
		*ret = json_object();
		json_array_foreach (pools, i, p)
			json_object_set_new(*ret, object_name(p),
					    json_integer(ledger_count(ledger, object_name(p))));
	}
	ledger_free(ledger);
	if (rc > 0) /* what was listed changed too fast */
		return error_set(err, EAGAIN, "the volumes could not be counted; try again");
	return rc < 0 ? error_set(err, -rc, "%s", error_text(&r.error, rc)) : 0;
}
