/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "systems/glusterfs/cluster.h"

/*
 * What the indices list while a brick is away is mostly what that brick misses, so they do not tell
 * whether the others are whole. The marks do: they were set by a look that found all bricks there
 * and nothing to heal. All that may have made a copy miss something since then takes its mark
 * away; where it cannot be known which copy that is, all lose theirs.
 */
json_t *volume_brick_id(const char *path)
{
	static const char prefix[] = ".quartermaster-";
	const char *end = strrchr(path, '/'), *start = end;

	while (start && start > path && start[-1] != '/')
		start--;
	if (!end || start == end)
		return json_string(path);
	if (str_has_prefix(start, prefix))
		start += sizeof(prefix) - 1;
	return json_stringn(start, (size_t)(end - start));
}

static bool marked(const json_t *marks, const struct gluster_brick *b)
{
	cleanup_json json_t *id = volume_brick_id(b->path);
	const json_t *m;
	size_t i;

	json_array_foreach (marks, i, m)
		if (json_equal(jget(m, "id"), id))
			return jbool(m, "whole") && jint(m, "pid") == b->pid;
	return false;
}

/*
 * A copy that misses an entry does not list it: those that have it do. So what only marked copies
 * list is what the others miss. An entry that is listed by a copy without a mark, or while all
 * copies have one, may be missing anywhere; so may those that nobody can count. Where two parts can
 * be spared, a second one may miss what the first is blamed for.
 */
static bool unexplained(const struct gluster_volume *v)
{
	bool pending = false, missing = false;

	for (size_t i = 0; i < v->brick_count; i++) {
		const struct gluster_brick *b = &v->bricks[i];

		if (b->pending < 0 || (b->pending > 0 && !b->whole))
			return true;
		pending |= b->pending > 0;
		missing |= !b->whole;
	}
	return pending && (!missing || v->redundancy > 1);
}

static void mark_all(struct gluster_volume *v, bool whole)
{
	for (size_t i = 0; i < v->brick_count; i++)
		v->bricks[i].whole = whole;
}

bool volume_seems_whole(const struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++)
		if (!v->bricks[i].online || v->bricks[i].pending != 0)
			return false;
	return v->state == VOLUME_STARTED && v->brick_count > 0;
}

void volume_mark(struct gluster_volume *v, const json_t *marks, bool exact, bool blind)
{
	bool all_online = true;

	for (size_t i = 0; i < v->brick_count; i++) {
		struct gluster_brick *b = &v->bricks[i];

		b->whole = b->online && marked(marks, b);
		all_online &= b->online;
	}
	if (blind || (all_online && unexplained(v)))
		mark_all(v, false);
	else if (exact && volume_seems_whole(v))
		mark_all(v, true);
}

json_t *volume_bricks_status(const struct gluster_volume *v)
{
	json_t *bricks = json_array();

	for (size_t i = 0; v && i < v->brick_count; i++) {
		const struct gluster_brick *b = &v->bricks[i];
		json_t *s = json_object();

		json_object_set_new(s, "id", volume_brick_id(b->path));
		json_object_set_new(s, "online", json_boolean(b->online));
		if (b->pending >= 0)
			json_object_set_new(s, "pending", json_integer(b->pending));
		json_object_set_new(s, "whole", json_boolean(b->whole));
		if (b->whole)
			json_object_set_new(s, "pid", json_integer(b->pid));
		json_array_append_new(bricks, s);
	}
	return bricks;
}
