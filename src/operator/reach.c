/* SPDX-License-Identifier: Apache-2.0 */
/* How each pool is reached now, told to those who bring volumes to machines (csi/pools.h). */
#include "base/log.h"
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/system.h"

json_t *pool_reach(const json_t *pool, const char *volume)
{
	struct pool_access access;
	struct buf others = { 0 };

	pool_access(pool, &access);
	for (size_t i = 1; access.hosts[0] && access.hosts[i]; i++)
		buf_printf(&others, "%s%s",
			   i > 1 ? ":" : "backup-volfile-servers=", access.hosts[i]);
	cleanup_free char *options = buf_take(&others);
	cleanup_free char *export = xasprintf("%s:/%s", access.hosts[0] ? access.hosts[0] : "",
					      volume ? volume : object_name(pool));
	return json_pack("{s:s, s:s, s:s}", "driverVolumeType", "GLUSTERFS", "export", export,
			 "options", options);
}

struct telling {
	const struct operator* op;
	json_t *pools;
};

/* Nothing more is made in one that has been promised to the last byte. */
static bool takes_ephemeral(const struct operator* op, const json_t *pool)
{
	struct ledger_offer offer = { .pool = object_name(pool), .limit = pool_limit(op, pool) };

	return !object_deleting(pool) && pool_serves(pool) && ledger_left(op->ledger, &offer) > 0;
}

static int add_pool(const json_t *pool, void *userdata)
{
	struct telling *t = userdata;
	json_t *reach;

	/* one that is still to be made has nothing to be reached; a whole volume has its pool's hosts */
	if (!pool_takes_volumes(t->op, pool) || !jstr(pool, "status", "volumeId"))
		return 0;
	reach = pool_reach(pool, NULL);
	json_object_set_new(reach, "ephemeral", json_boolean(takes_ephemeral(t->op, pool)));
	json_object_set_new(t->pools, object_name(pool), reach);
	return 0;
}

int pools_tell(struct system *s)
{
	struct platform *p = s->op->platform;
	cleanup_json json_t *pools = json_object();
	struct telling t = { .op = s->op, .pools = pools };
	struct error err = ERROR_INIT;
	int rc;

	if (!p->ops->pools)
		return 0;
	reader_each(s->r->cache, &KIND_STORAGEPOOL, s->op->ns, add_pool, &t);
	rc = p->ops->pools(p, pools, &err);
	/* volumes say themselves where they were when they were made: nobody waits for this */
	if (rc < 0)
		log_warn("how pools are reached is not told to the machines: %s",
			 error_text(&err, rc));
	return 0;
}
