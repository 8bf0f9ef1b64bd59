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
 *
 * A disk that dies under its brick is seen so first: clients have let go of the brick, and write to
 * the others, while gluster calls it online for half a minute more. So a brick that alone lists
 * nothing, or of which alone nothing is known, loses its own mark at once, and the others theirs
 * only if that does not explain all for so long that its node would have told, or the brick ended.
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

static bool all_online(const struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++)
		if (!v->bricks[i].online)
			return false;
	return true;
}

/* The one brick whose count is unknown, or zero; NULL: there is none, or several. */
static struct gluster_brick *only(struct gluster_volume *v, bool unknown, size_t *ret_count)
{
	struct gluster_brick *found = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < v->brick_count; i++) {
		struct gluster_brick *b = &v->bricks[i];

		if (unknown ? b->pending < 0 : b->pending == 0)
			found = b, (*ret_count)++;
	}
	return *ret_count == 1 ? found : NULL;
}

struct gluster_brick *volume_silent_brick(struct gluster_volume *v)
{
	size_t unknown, silent;
	struct gluster_brick *b = only(v, true, &unknown);

	if (unknown == 0)
		b = only(v, false, &silent);
	return all_online(v) && v->brick_count > 1 ? b : NULL;
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

/* True: it is not clear yet what copies miss. */
static bool judge(struct gluster_volume *v, bool patient)
{
	struct gluster_brick *silent;

	if (!all_online(v) || !unexplained(v))
		return false;
	silent = volume_silent_brick(v);
	if (silent)
		silent->whole = false;
	if (!unexplained(v))
		return false;
	if (!silent || !patient)
		mark_all(v, false);
	return silent;
}

bool volume_mark(struct gluster_volume *v, const json_t *marks, const struct volume_marking *how)
{
	bool doubt;

	for (size_t i = 0; i < v->brick_count; i++) {
		struct gluster_brick *b = &v->bricks[i];

		b->whole = b->online && marked(marks, b);
	}
	doubt = judge(v, how->patient);
	if (how->blind)
		mark_all(v, false);
	else if (how->exact && volume_seems_whole(v))
		mark_all(v, true);
	return doubt;
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
