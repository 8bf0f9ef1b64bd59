/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/gluster.h"

#include "base/mem.h"

void gluster_peers_done(struct gluster_peers *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->items[i].uuid);
		free(p->items[i].address);
		strv_done(&p->items[i].names);
		free(p->items[i].state_text);
	}
	free(p->items);
	*p = (struct gluster_peers){ 0 };
}

const struct gluster_peer *gluster_peer_find(const struct gluster_peers *p, const char *address)
{
	for (size_t i = 0; p && i < p->count; i++)
		if (streq(p->items[i].address, address) ||
		    (address && strv_contains(&p->items[i].names, address)))
			return &p->items[i];
	return NULL;
}

void gluster_volume_done(struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++) {
		free(v->bricks[i].address);
		free(v->bricks[i].path);
	}
	free(v->bricks);
	free(v->name);
	free(v->id);
	json_decref(v->options);
	*v = (struct gluster_volume){ 0 };
}

struct gluster_brick *gluster_brick_find(const struct gluster_volume *v, const char *address,
					 const char *path)
{
	for (size_t i = 0; v && i < v->brick_count; i++)
		if (streq(v->bricks[i].address, address) && streq(v->bricks[i].path, path))
			return &v->bricks[i];
	return NULL;
}

struct gluster_brick *gluster_volume_add_brick(struct gluster_volume *v, const char *address,
					       const char *path)
{
	struct gluster_brick *b;

	v->bricks = xrealloc(v->bricks, (v->brick_count + 1) * sizeof(*v->bricks));
	b = &v->bricks[v->brick_count++];
	*b = (struct gluster_brick){ .address = xstrdup(address),
				     .path = xstrdup(path),
				     .pending = -1 };
	return b;
}
