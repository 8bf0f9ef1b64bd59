/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "systems/glusterfs/cluster.h"
#include "systems/glusterfs/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A pool of bricks on nodes n1, n2, … (10.0.0.N:/b/b-N/brick), and a gluster that does what it is told. */
struct world {
	json_t *pool;
	struct gluster_volume volume;
	bool have;
	struct gluster_peers peers;
	size_t members;
	bool lost; /* bricks that are offline are so for long */
	const char *unmounted; /* id of a brick that is prepared, but not there now */
	json_t *marks; /* as status.bricks keeps them from look to look */
	bool inexact; /* no exact look answers */
	bool patient; /* it has not been so for long */
	bool runs; /* bricks that are offline run all the same, as their nodes say */
	int pids;
	struct volume_step step;
};

static json_t *brick(int n, bool arbiter)
{
	char id[16], node[16], address[32], path[64];

	snprintf(id, sizeof(id), "b-%d", n);
	snprintf(node, sizeof(node), "n%d", n);
	snprintf(address, sizeof(address), "10.0.0.%d", n);
	snprintf(path, sizeof(path), "/b/b-%d/brick", n);
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "id", id, "node", node, "address",
			 address, "path", path, "arbiter", (int)arbiter, "prepared", 1);
}

static void world_init(struct world *w, const char *type)
{
	*w = (struct world){ .pool = json_pack("{s:{s:s, s:s, s:i}, s:{s:s, s:[]}}", "metadata",
					       "name", "p-1", "uid", "uid-1", "generation", 1,
					       "spec", "volumeType", type, "bricks") };
	for (int i = 2; i <= 9; i++) {
		w->peers.items =
			xrealloc(w->peers.items, (w->peers.count + 1) * sizeof(*w->peers.items));
		w->peers.items[w->peers.count++] =
			(struct gluster_peer){ .address = xasprintf("10.0.0.%d", i),
					       .connected = true,
					       .state = GLUSTER_PEER_BEFRIENDED };
	}
}

static void world_done(struct world *w)
{
	json_decref(w->pool);
	json_decref(w->marks);
	gluster_volume_done(&w->volume);
	gluster_peers_done(&w->peers);
	volume_step_done(&w->step);
}

static void want(struct world *w, const char *nodes, int arbiter)
{
	json_t *bricks = json_array();

	for (; *nodes; nodes++)
		json_array_append_new(bricks, brick(*nodes - '0', *nodes - '0' == arbiter));
	jset(w->pool, bricks, "spec", "bricks");
}

static int64_t offline_ms(void *userdata, const char *address, const char *path)
{
	return ((struct world *)userdata)->lost ? BRICK_LOST_MS : BRICK_LOST_MS - 1;
}

static bool mounted(void *userdata, const json_t *b)
{
	return !streq(((struct world *)userdata)->unmounted, jstr(b, "id"));
}

static bool runs(void *userdata, const char *address, const char *path)
{
	return ((struct world *)userdata)->runs;
}

static struct volume_view view_of(struct world *w)
{
	return (struct volume_view){ .pool = w->pool,
				     .volume = w->have ? &w->volume : NULL,
				     .peers = &w->peers,
				     .address = "10.0.0.1",
				     .members = w->members,
				     .offline_ms = offline_ms,
				     .mounted = mounted,
				     .runs = runs,
				     .userdata = w };
}

/* A look, and an exact one where that can make copies whole. */
static void mark(struct world *w)
{
	bool blind = false;

	for (size_t i = 0; i < w->volume.brick_count; i++)
		blind |= w->runs && !w->volume.bricks[i].online;
	for (int exact = 0; exact < (w->inexact ? 1 : 2); exact++) {
		volume_mark(&w->volume, w->marks,
			    &(struct volume_marking){ exact == 1, blind, w->patient });
		json_decref(w->marks);
		w->marks = volume_bricks_status(&w->volume);
	}
}

static enum volume_step_kind next(struct world *w)
{
	struct volume_view view = view_of(w);

	mark(w);
	volume_step_done(&w->step);
	volume_next_step(&view, &w->step);
	return w->step.kind;
}

static void split(const char *name, char *address, const char **path)
{
	const char *colon = strstr(name, ":/");

	snprintf(address, 32, "%.*s", (int)(colon - name), name);
	*path = colon + 1;
}

static struct gluster_brick *add(struct world *w, const char *name)
{
	char address[32];
	const char *path;
	struct gluster_brick *b;

	split(name, address, &path);
	b = gluster_volume_add_brick(&w->volume, address, path);
	b->online = w->volume.state == VOLUME_STARTED;
	b->pending = 0;
	b->pid = ++w->pids;
	return b;
}

static struct gluster_brick *find(struct world *w, const char *name)
{
	char address[32];
	const char *path;

	split(name, address, &path);
	return gluster_brick_find(&w->volume, address, path);
}

static void drop(struct world *w, const char *name)
{
	struct gluster_brick *b = find(w, name);

	assert_non_null(b);
	free(b->address);
	free(b->path);
	memmove(b, b + 1, (size_t)(w->volume.bricks + w->volume.brick_count - b - 1) * sizeof(*b));
	w->volume.brick_count--;
}

static void pending(struct world *w, int64_t n)
{
	for (size_t i = 0; i < w->volume.brick_count; i++)
		w->volume.bricks[i].pending = n;
}

/* Those that have something list what this one misses. */
static void misses(struct world *w, const char *name, int64_t n)
{
	pending(w, n);
	find(w, name)->pending = 0;
}

static int copies_online(struct world *w)
{
	int n = 0;

	for (size_t i = 0; i < w->volume.brick_count; i++)
		n += w->volume.bricks[i].online;
	return n;
}

/* What gluster does with a step. */
static void gluster_does(struct world *w)
{
	struct volume_step *s = &w->step;

	switch (s->kind) {
	case STEP_CREATE:
		w->have = true;
		w->volume = (struct gluster_volume){ .name = xstrdup("p-1"),
						     .id = xstrdup("id"),
						     .replica = s->replica ? s->replica : 1,
						     .arbiter = s->arbiter,
						     .disperse = s->disperse,
						     .redundancy = s->redundancy,
						     .options = json_object() };
		for (size_t i = 0; i < s->bricks.count; i++)
			add(w, s->bricks.items[i])->arbiter =
				s->arbiter && i + 1 == s->bricks.count;
		break;
	case STEP_SET:
		json_object_update(w->volume.options, s->options);
		break;
	case STEP_START:
		w->volume.state = VOLUME_STARTED;
		for (size_t i = 0; i < w->volume.brick_count; i++)
			w->volume.bricks[i].online = true;
		break;
	case STEP_ADD_BRICK:
		assert_int_equal(copies_online(w),
				 w->volume.brick_count); /* gluster refuses otherwise */
		add(w, s->bricks.items[0]);
		w->volume.replica = s->replica;
		misses(w, s->bricks.items[0], 7);
		break;
	case STEP_REMOVE_BRICK:
		drop(w, s->bricks.items[0]);
		w->volume.replica = s->replica;
		break;
	case STEP_REPLACE_BRICK: {
		bool arbiter = find(w, s->bricks.items[0])->arbiter;

		drop(w, s->bricks.items[0]);
		add(w, s->bricks.items[1])->arbiter = arbiter;
		misses(w, s->bricks.items[1], 7);
		break;
	}
	case STEP_HEAL:
		pending(w, 0);
		break;
	case STEP_STOP:
		w->volume.state = VOLUME_STOPPED;
		break;
	case STEP_DELETE:
		gluster_volume_done(&w->volume);
		w->have = false;
		break;
	default:
		fail();
	}
}

static bool is_rest(enum volume_step_kind k)
{
	return k == STEP_NONE || k == STEP_WAIT || k == STEP_BLOCKED || k == STEP_GONE;
}

static enum volume_step_kind settle(struct world *w, int min_copies)
{
	for (int i = 0; i < 100; i++) {
		if (is_rest(next(w)))
			return w->step.kind;
		gluster_does(w);
		if (min_copies > 0 && w->have && w->volume.state == VOLUME_STARTED)
			assert_true(copies_online(w) >= min_copies);
	}
	fail_msg("no end");
	return STEP_NONE;
}

static void assert_bricks(struct world *w, const char *nodes)
{
	assert_int_equal(w->volume.brick_count, strlen(nodes));
	for (; *nodes; nodes++) {
		char name[64];

		snprintf(name, sizeof(name), "10.0.0.%c:/b/b-%c/brick", *nodes, *nodes);
		assert_non_null(find(w, name));
	}
}

static void test_create(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	assert_int_equal(next(&w), STEP_CREATE);
	assert_int_equal(w.step.replica, 3);
	assert_string_equal(w.step.bricks.items[2], "10.0.0.3:/b/b-3/brick");
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_string_equal(jstr(w.volume.options, "cluster.quorum-type"), "auto");
	world_done(&w);
}

static void test_create_waits(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	jset(json_array_get(jget(w.pool, "spec", "bricks"), 1), json_false(), "prepared");
	assert_int_equal(next(&w), STEP_WAIT);
	jset(json_array_get(jget(w.pool, "spec", "bricks"), 1), json_true(), "prepared");
	w.peers.items[0].connected = false;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, "10.0.0.2"));
	w.peers.items[0].connected = true;
	/* a volume that was there is never made a second time */
	jset(w.pool, json_string("some-id"), "status", "volumeId");
	assert_int_equal(next(&w), STEP_BLOCKED);
	world_done(&w);
}

/* Gluster is told by force: what was prepared once, and is not mounted after a reboot, is not for it. */
static void test_unmounted_is_not_given_to_gluster(void **state)
{
	static const char *const types[] = { "replicate:3", "disperse:2:1" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct world w;

		world_init(&w, types[i]);
		want(&w, "123", 0);
		w.unmounted = "b-3";
		assert_int_equal(next(&w), STEP_WAIT);
		assert_non_null(strstr(w.step.why, "n3"));
		w.unmounted = NULL;
		assert_int_equal(settle(&w, 0), STEP_NONE);
		/* what the volume has already is not asked for */
		w.unmounted = "b-1";
		assert_int_equal(next(&w), STEP_NONE);
		want(&w, "124", 0);
		w.unmounted = "b-4";
		assert_int_equal(next(&w), STEP_WAIT);
		assert_non_null(strstr(w.step.why, "n4"));
		w.unmounted = NULL;
		assert_int_equal(next(&w), i ? STEP_REPLACE_BRICK : STEP_ADD_BRICK);
		/* nor is one that is lost replaced by one that is not there */
		find(&w, "10.0.0.3:/b/b-3/brick")->online = false;
		w.lost = true;
		w.unmounted = "b-4";
		assert_int_equal(next(&w), STEP_WAIT);
		world_done(&w);
	}
}

static void test_arbiter_is_last(void **state)
{
	struct world w;

	world_init(&w, "arbiter");
	want(&w, "123", 1);
	assert_int_equal(next(&w), STEP_CREATE);
	assert_int_equal(w.step.arbiter, 1);
	assert_string_equal(w.step.bricks.items[2], "10.0.0.1:/b/b-1/brick");
	assert_int_equal(settle(&w, 0), STEP_NONE);
	world_done(&w);
}

static void test_replicate_never_below(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	settle(&w, 0);
	want(&w, "456", 0);
	assert_int_equal(settle(&w, 3), STEP_NONE);
	assert_bricks(&w, "456");
	world_done(&w);
}

static void test_single_copy_moves(void **state)
{
	struct world w;

	world_init(&w, "none");
	want(&w, "1", 0);
	settle(&w, 0);
	want(&w, "2", 0);
	assert_int_equal(settle(&w, 1), STEP_NONE);
	assert_bricks(&w, "2");
	world_done(&w);
}

static void test_remove_waits_for_heal(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	settle(&w, 0);
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_ADD_BRICK);
	assert_int_equal(w.step.replica, 4);
	gluster_does(&w);
	assert_int_equal(next(&w), STEP_HEAL);
	pending(&w, 0);
	find(&w, "10.0.0.2:/b/b-2/brick")->pending = 1; /* one brick still has something */
	assert_int_equal(next(&w), STEP_HEAL);
	find(&w, "10.0.0.2:/b/b-2/brick")->pending = -1; /* not known is not zero */
	assert_int_equal(next(&w), STEP_WAIT);
	pending(&w, 0);
	find(&w, "10.0.0.4:/b/b-4/brick")->online = false; /* the new copy is not there */
	assert_int_equal(next(&w), STEP_WAIT);
	find(&w, "10.0.0.4:/b/b-4/brick")->online = true;
	assert_int_equal(next(&w), STEP_REMOVE_BRICK);
	assert_string_equal(w.step.bricks.items[0], "10.0.0.3:/b/b-3/brick");
	world_done(&w);
}

static void test_lost_brick(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	settle(&w, 0);
	find(&w, "10.0.0.3:/b/b-3/brick")->online = false;
	assert_int_equal(next(&w), STEP_WAIT);
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_WAIT); /* it may come back */
	assert_non_null(strstr(w.step.why, "after five minutes"));
	w.lost = true;
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	/* but not while another one is away: it might have the only good copy */
	find(&w, "10.0.0.2:/b/b-2/brick")->online = false;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, "is to stay"));
	want(&w, "145", 0);
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, "another one is offline"));
	want(&w, "124", 0);
	find(&w, "10.0.0.2:/b/b-2/brick")->online = true;
	assert_int_equal(settle(&w, 2), STEP_NONE);
	assert_bricks(&w, "124");
	world_done(&w);
}

static void test_lost_while_leaving(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	settle(&w, 0);
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_ADD_BRICK);
	gluster_does(&w);
	find(&w, "10.0.0.3:/b/b-3/brick")->online = false;
	assert_int_equal(next(&w), STEP_WAIT);
	w.lost = true;
	assert_int_equal(next(&w), STEP_REMOVE_BRICK);
	world_done(&w);
}

#define B1 "10.0.0.1:/b/b-1/brick"
#define B2 "10.0.0.2:/b/b-2/brick"
#define B3 "10.0.0.3:/b/b-3/brick"

static void made(struct world *w, const char *type, const char *nodes, int arbiter)
{
	world_init(w, type);
	want(w, nodes, arbiter);
	assert_int_equal(settle(w, 0), STEP_NONE);
}

/* The process ended and another came: what was written meanwhile it misses. */
static void bounce(struct world *w, const char *name, int64_t missed)
{
	find(w, name)->online = false;
	next(w);
	find(w, name)->online = true;
	find(w, name)->pid = ++w->pids;
	misses(w, name, missed);
	next(w);
}

static void assert_whole(struct world *w, const char *nodes)
{
	for (size_t i = 0; i < w->volume.brick_count; i++) {
		const struct gluster_brick *b = &w->volume.bricks[i];

		if (b->whole != !!strchr(nodes, b->address[7]))
			fail_msg("%s is %swhole", b->address, b->whole ? "" : "not ");
	}
}

/* Two parts are needed, and one of the two that are left misses what the lost one has. */
static void test_lost_part_while_another_heals(void **state)
{
	struct world w;

	made(&w, "disperse:2:1", "123", 0);
	bounce(&w, B2, 5);
	assert_whole(&w, "13");
	find(&w, B3)->online = false;
	want(&w, "124", 0);
	w.lost = true;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, B2));
	assert_non_null(strstr(w.step.why, POOL_ANNOTATION_LOST "=b-3"));
	assert_null(strstr(w.step.why, B1));
	/* the disk is brought back, all heals, and then it may die */
	find(&w, B3)->online = true;
	pending(&w, 0);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	find(&w, B3)->online = false;
	pending(&w, 3); /* which is what it misses itself */
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	world_done(&w);
}

/* The other copy is back and not healed: the one that is lost may have the newest data. */
static void test_lost_copy_while_the_other_is_stale(void **state)
{
	for (int arbiter = 0; arbiter < 2; arbiter++) {
		struct world w;

		made(&w, arbiter ? "arbiter" : "replicate:2", arbiter ? "123" : "12",
		     arbiter ? 3 : 0);
		bounce(&w, B2, 5);
		find(&w, B1)->online = false;
		w.lost = true;
		want(&w, arbiter ? "423" : "42", arbiter ? 3 : 0);
		assert_int_equal(next(&w), STEP_WAIT);
		assert_non_null(strstr(w.step.why, B2));
		/* it is the stale one that may go */
		find(&w, B1)->online = true;
		bounce(&w, B2, 5);
		misses(&w, B2, 5);
		pending(&w, 0);
		assert_int_equal(next(&w), arbiter ? STEP_REPLACE_BRICK : STEP_ADD_BRICK);
		find(&w, B2)->online = false;
		want(&w, arbiter ? "143" : "14", arbiter ? 3 : 0);
		assert_int_equal(next(&w), STEP_REPLACE_BRICK);
		world_done(&w);
	}
}

/* It has no data; but it is no copy that could be counted on either. */
static void test_lost_arbiter(void **state)
{
	struct world w;

	made(&w, "arbiter", "123", 3);
	bounce(&w, B2, 5);
	find(&w, B3)->online = false;
	w.lost = true;
	want(&w, "124", 4);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	world_done(&w);
}

/* The move of a data brick waits for the arbiter, which is lost: its own replacement comes first. */
static void test_lost_arbiter_while_another_moves(void **state)
{
	struct world w;

	made(&w, "arbiter", "123", 3);
	find(&w, B3)->online = false;
	w.lost = true;
	want(&w, "425", 5);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	assert_string_equal(w.step.bricks.items[0], B3);
	assert_non_null(strstr(w.step.bricks.items[1], "10.0.0.5"));
	world_done(&w);
}

/* As a store of an earlier version is found, whose disk died before. */
static void test_lost_without_marks(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	w.inexact = true;
	settle(&w, 0);
	w.marks = (json_decref(w.marks), NULL);
	find(&w, B3)->online = false;
	w.lost = true;
	want(&w, "124", 0);
	w.inexact = false;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, "earlier version"));
	/* that of another brick is not meant */
	jset(w.pool, json_string("b-2"), "metadata", "annotations", POOL_ANNOTATION_LOST);
	assert_int_equal(next(&w), STEP_WAIT);
	jset(w.pool, json_string("b-3"), "metadata", "annotations", POOL_ANNOTATION_LOST);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	/* nor is one given up that is there, or was a moment ago */
	w.lost = false;
	assert_int_equal(next(&w), STEP_WAIT);
	world_done(&w);
}

/* What glusterd does not know of may serve. */
static void test_brick_that_serves_is_not_lost(void **state)
{
	struct world w;

	made(&w, "replicate:3", "123", 0);
	find(&w, B3)->online = false;
	w.lost = true;
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	find(&w, B3)->connected = true;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, "it runs, but"));
	find(&w, B3)->connected = false;
	/* its node says so: then others may miss what it takes in */
	w.runs = true;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_whole(&w, "");
	world_done(&w);
}

static void test_marks(void **state)
{
	struct world w;

	made(&w, "replicate:3", "123", 0);
	assert_whole(&w, "123");
	/* one that goes and comes back unseen is whole when all is healed, which no index tells */
	find(&w, B2)->pid = ++w.pids;
	misses(&w, B2, 5);
	next(&w);
	assert_whole(&w, "13");
	pending(&w, 0);
	w.inexact = true;
	next(&w);
	assert_whole(&w, "13");
	w.inexact = false;
	/* what cannot be counted may be missing anywhere */
	find(&w, B1)->pending = -1;
	next(&w);
	assert_whole(&w, "");
	find(&w, B1)->pending = 0;
	next(&w);
	assert_whole(&w, "123");
	/* what all others list, one alone misses */
	misses(&w, B2, 1);
	next(&w);
	assert_whole(&w, "13");
	pending(&w, 0);
	next(&w);
	assert_whole(&w, "123");
	/* something is missing, and nobody knows where */
	find(&w, B2)->pending = 1;
	next(&w);
	assert_whole(&w, "");
	pending(&w, 0);
	next(&w);
	assert_whole(&w, "123");
	/* what one lists that misses something itself, another misses */
	bounce(&w, B2, 5);
	assert_whole(&w, "13");
	find(&w, B2)->pending = 1;
	next(&w);
	assert_whole(&w, "");
	/* but not what it lists while one is away */
	pending(&w, 0);
	next(&w);
	find(&w, B3)->online = false;
	pending(&w, 4);
	next(&w);
	assert_whole(&w, "12");
	/* one that is new is not whole */
	w.lost = true;
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	gluster_does(&w);
	next(&w);
	assert_whole(&w, "12");
	gluster_does(&w);
	next(&w);
	assert_whole(&w, "124");
	world_done(&w);
}

/*
 * Clients have let go of the brick, and gluster calls it online for half a minute more: the others
 * are whole all the same, if it was that.
 */
static void test_disk_that_dies_under_its_brick(void **state)
{
	for (int written = 0; written < 2; written++) {
		struct world w;

		made(&w, "replicate:3", "123", 0);
		w.patient = true;
		pending(&w, written * 4);
		find(&w, B3)->pending = -1;
		next(&w);
		assert_whole(&w, "12");
		next(&w);
		assert_whole(&w, "12");
		/* it was something else: nothing is known of what it has alone */
		w.patient = false;
		next(&w);
		assert_whole(&w, "");
		pending(&w, 0);
		next(&w);
		w.patient = true;
		find(&w, B3)->pending = -1;
		next(&w);
		find(&w, B3)->online = false;
		pending(&w, 4);
		w.lost = true;
		want(&w, "124", 0);
		assert_int_equal(next(&w), STEP_REPLACE_BRICK);
		world_done(&w);
	}
}

/* Where two can be spared, a second one may miss what the first is blamed for: not for long. */
static void test_disk_that_dies_of_many(void **state)
{
	struct world w;

	made(&w, "disperse:4:2", "123456", 0);
	w.patient = true;
	misses(&w, B3, 2);
	next(&w);
	assert_whole(&w, "12456");
	w.patient = false;
	next(&w);
	assert_whole(&w, "");
	world_done(&w);
}

/* Its list is so long that nobody waits for its end: whether clients reach it is not known then. */
static void test_list_without_an_end(void **state)
{
	struct world w;

	made(&w, "replicate:3", "123", 0);
	find(&w, B3)->online = false;
	pending(&w, -1);
	w.lost = true;
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK); /* as its glusterd says */
	for (size_t i = 0; i < w.volume.brick_count; i++)
		w.volume.bricks[i].unasked = true;
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	w.peers.items[1].connected = false;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, POOL_ANNOTATION_LOST));
	json_object_set_new(jget(w.pool, "metadata"), "annotations",
			    json_pack("{s:s}", POOL_ANNOTATION_LOST, "b-3"));
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	world_done(&w);
}

/* The new copy is not whole yet, and the old one is the data. */
static void test_only_copy_is_not_given_up(void **state)
{
	struct world w;

	world_init(&w, "none");
	want(&w, "1", 0);
	settle(&w, 0);
	want(&w, "2", 0);
	assert_int_equal(next(&w), STEP_ADD_BRICK);
	gluster_does(&w);
	find(&w, "10.0.0.1:/b/b-1/brick")->online = false;
	w.lost = true;
	assert_int_equal(next(&w), STEP_WAIT);
	assert_non_null(strstr(w.step.why, "the only copy"));
	find(&w, "10.0.0.1:/b/b-1/brick")->online = true;
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_bricks(&w, "2");
	world_done(&w);
}

static void test_disperse_replace(void **state)
{
	struct world w;

	world_init(&w, "disperse:2:1");
	want(&w, "123", 0);
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_int_equal(w.volume.disperse, 3);
	want(&w, "145", 0);
	pending(&w, 3);
	assert_int_equal(next(&w),
			 STEP_HEAL); /* whole first: a replacement takes a fragment away */
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_bricks(&w, "145");
	/* nothing is listed of a part that nobody has met yet: that does not make it whole */
	want(&w, "167", 0);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	gluster_does(&w);
	pending(&w, 0);
	w.inexact = true;
	assert_int_equal(next(&w), STEP_WAIT);
	w.inexact = false;
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_bricks(&w, "167");
	want(&w, "16", 0);
	assert_int_equal(next(&w), STEP_BLOCKED);
	world_done(&w);
}

static void test_arbiter_keeps_roles(void **state)
{
	struct world w;

	world_init(&w, "arbiter");
	want(&w, "123", 3);
	settle(&w, 0);
	want(&w, "124", 4);
	assert_int_equal(next(&w), STEP_REPLACE_BRICK);
	assert_int_equal(settle(&w, 0), STEP_NONE);
	want(&w, "125", 1); /* the arbiter's place for a brick with data: no */
	assert_int_equal(next(&w), STEP_BLOCKED);
	world_done(&w);
}

static void test_wrong_layout(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	settle(&w, 0);
	jset(w.pool, json_string("disperse:2:1"), "spec", "volumeType");
	assert_int_equal(next(&w), STEP_BLOCKED);
	jset(w.pool, json_string("nonsense"), "spec", "volumeType");
	assert_int_equal(next(&w), STEP_BLOCKED);
	world_done(&w);
}

static void test_own_options_last(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	jset(w.pool, json_string("30"), "spec", "options", "network.ping-timeout");
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_string_equal(jstr(w.volume.options, "network.ping-timeout"), "30");
	jset(w.pool, json_string("no"), "spec", "options", "no.such");
	assert_int_equal(next(&w), STEP_SET);
	assert_int_equal(w.volume.state, VOLUME_STARTED);
	assert_int_equal(json_object_size(w.step.options), 1);
	world_done(&w);
}

static void test_delete(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	settle(&w, 0);
	jset(w.pool, json_string("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp");
	assert_int_equal(next(&w), STEP_NONE); /* it may hold volumes still */
	jset(w.pool, json_string("true"), "metadata", "annotations", POOL_ANNOTATION_EMPTY);
	assert_int_equal(next(&w), STEP_STOP);
	assert_int_equal(settle(&w, 0), STEP_GONE);
	assert_false(w.have);
	/* who is no member yet does not know */
	w.members = 18;
	assert_int_equal(next(&w), STEP_WAIT);
	w.members = 17;
	assert_int_equal(next(&w), STEP_GONE);
	world_done(&w);
}

/* ---- whose volume it is ---------------------------------------------------------------------- */
static void go(struct world *w)
{
	jset(w->pool, json_string("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp");
	jset(w->pool, json_string("true"), "metadata", "annotations", POOL_ANNOTATION_EMPTY);
}

/* A volume of the pool's name that is another's is not adopted, nor does it go with this pool. */
static void is_left_alone(struct world *w)
{
	struct volume_view view = view_of(w);
	cleanup_json json_t *s = NULL;

	assert_int_equal(next(w), STEP_BLOCKED);
	assert_string_equal(w->step.id, "");
	s = volume_pool_status(&view, &w->step);
	assert_int_equal(json_object_size(s), 1); /* nor is it said to be the pool's */
	assert_non_null(strstr(jstr(s, "message"), "stays untouched"));
	go(w);
	assert_int_equal(next(w), STEP_GONE);
	json_object_del(jget(w->pool, "metadata"), "deletionTimestamp");
}

static void made_one(struct world *w)
{
	world_init(w, "replicate:3");
	want(w, "123", 0);
	assert_int_equal(settle(w, 0), STEP_NONE);
	assert_string_equal(jstr(w->volume.options, VOLUME_OPTION_POOL), "uid-1");
}

static void test_volume_of_another_pool(void **state)
{
	struct world w;

	/* not reported yet: the mark says whose it is */
	made_one(&w);
	jset(w.pool, json_string("uid-2"), "metadata", "uid");
	is_left_alone(&w);
	world_done(&w);
	/* one of before, without a mark: it ran, and so had been reported for its own pool */
	made_one(&w);
	json_object_del(w.volume.options, VOLUME_OPTION_POOL);
	is_left_alone(&w);
	world_done(&w);
	/* reported: only that very one, whatever its mark */
	made_one(&w);
	jset(w.pool, json_string("another"), "status", "volumeId");
	is_left_alone(&w);
	world_done(&w);
}

static void test_volume_of_its_own(void **state)
{
	struct world w;

	/* its maker was lost before it could mark or report it, and a brick was chosen anew */
	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	assert_int_equal(next(&w), STEP_CREATE);
	gluster_does(&w);
	want(&w, "124", 0);
	assert_int_equal(next(&w), STEP_SET);
	assert_string_equal(w.step.id, "id");
	assert_int_equal(settle(&w, 0), STEP_NONE);
	assert_bricks(&w, "124");
	world_done(&w);
	/* but where no brick of it was prepared for this pool, it is not that */
	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	next(&w);
	gluster_does(&w);
	want(&w, "456", 0);
	is_left_alone(&w);
	world_done(&w);
	/* one of before is known by its id, and gets the mark */
	made_one(&w);
	jset(w.pool, json_string("id"), "status", "volumeId");
	json_object_del(w.volume.options, VOLUME_OPTION_POOL);
	assert_int_equal(next(&w), STEP_SET);
	assert_string_equal(jstr(w.step.options, VOLUME_OPTION_POOL), "uid-1");
	world_done(&w);
}

/* What is decided on one volume is done to no other. */
static void test_steps_name_the_volume(void **state)
{
	struct error err = ERROR_INIT;
	struct world w;

	made_one(&w);
	go(&w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(next(&w), i ? STEP_DELETE : STEP_STOP);
		assert_int_equal(volume_step_check(&w.step, &w.volume, &err), 0);
		free(w.volume.id);
		w.volume.id = xasprintf("new-%d", i);
		assert_int_equal(volume_step_check(&w.step, &w.volume, &err), -ESTALE);
		assert_non_null(strstr(err.message, w.volume.id));
		w.volume.state = VOLUME_STOPPED;
	}
	world_done(&w);
}

static void test_never_made(void **state)
{
	struct world w;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	assert_int_equal(next(&w), STEP_CREATE);
	jset(w.pool, json_string("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp");
	assert_int_equal(next(&w), STEP_GONE); /* a volume made now would belong to no pool */
	w.members = 18;
	assert_int_equal(next(&w), STEP_WAIT);
	world_done(&w);
}

static void check_status(struct world *w, const char *phase, int64_t heal)
{
	struct volume_view view = view_of(w);
	cleanup_json json_t *s = NULL;

	next(w);
	s = volume_pool_status(&view, &w->step);
	assert_string_equal(jstr(s, "phase"), phase);
	assert_int_equal(jint(s, "healPending"), heal);
	assert_string_equal(jstr(json_array_get(jget(s, "bricks"), 0), "id"), "b-1");
}

static void test_status(void **state)
{
	struct world w;
	struct volume_view view;
	cleanup_json json_t *s = NULL;

	world_init(&w, "disperse:2:1");
	want(&w, "123", 0);
	settle(&w, 0);
	check_status(&w, "Online", 0);
	pending(&w, 4);
	check_status(&w, "Healing", 4);
	find(&w, "10.0.0.2:/b/b-2/brick")->online = false;
	check_status(&w, "Degraded", 4);
	find(&w, "10.0.0.3:/b/b-3/brick")->online = false;
	check_status(&w, "Offline", 4);
	/* no brick that serves says what is left to heal: that is not nothing */
	for (size_t i = 0; i < 3; i++) {
		w.volume.bricks[i].online = true;
		w.volume.bricks[i].pending = -1;
	}
	check_status(&w, "Online", -1);
	w.volume.bricks[1].pending = 2;
	check_status(&w, "Healing", 2);
	for (size_t i = 0; i < 3; i++) {
		w.volume.bricks[i].size = 1000 + (int64_t)i;
		w.volume.bricks[i].free = 600 - (int64_t)i;
	}
	next(&w);
	view = view_of(&w);
	s = volume_pool_status(&view, &w.step);
	assert_int_equal(jint(s, "capacityBytes"), 2000);
	assert_int_equal(jint(s, "freeBytes"), 2 * 598);
	assert_int_equal(jint(s, "observedGeneration"), 1);
	/* cut off from the others, it may have missed what they did */
	for (size_t i = 0; i < w.peers.count; i++)
		w.peers.items[i].connected = false;
	w.members = 9;
	view = view_of(&w);
	json_decref(s);
	s = volume_pool_status(&view, &w.step);
	assert_null(jget(s, "observedGeneration"));
	world_done(&w);
}

/* A leader that is no member yet knows of no volume; that is not to say that it has no bricks. */
static void test_status_of_an_unknown_volume(void **state)
{
	struct world w;
	struct volume_view view;
	cleanup_json json_t *s = NULL, *made = NULL;

	world_init(&w, "replicate:3");
	want(&w, "123", 0);
	view = view_of(&w);
	next(&w);
	made = volume_pool_status(&view, &w.step);
	assert_string_equal(jstr(made, "phase"), "Creating");
	jset(w.pool, json_string("6a9f"), "status", "volumeId");
	assert_int_equal(next(&w), STEP_BLOCKED);
	s = volume_pool_status(&view, &w.step);
	assert_int_equal(json_object_size(s), 1);
	assert_non_null(strstr(jstr(s, "message"), "6a9f"));
	world_done(&w);
}

static void test_options_table(void **state)
{
	for (const struct volume_option *o = volume_options; o->name; o++) {
		assert_non_null(strchr(o->name, '.'));
		assert_true(o->value[0] && o->why[0]);
		for (const struct volume_option *p = volume_options; p < o; p++)
			assert_string_not_equal(p->name, o->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_create_waits),
		cmocka_unit_test(test_unmounted_is_not_given_to_gluster),
		cmocka_unit_test(test_arbiter_is_last),
		cmocka_unit_test(test_replicate_never_below),
		cmocka_unit_test(test_single_copy_moves),
		cmocka_unit_test(test_remove_waits_for_heal),
		cmocka_unit_test(test_lost_brick),
		cmocka_unit_test(test_lost_while_leaving),
		cmocka_unit_test(test_lost_part_while_another_heals),
		cmocka_unit_test(test_lost_copy_while_the_other_is_stale),
		cmocka_unit_test(test_lost_arbiter),
		cmocka_unit_test(test_lost_arbiter_while_another_moves),
		cmocka_unit_test(test_lost_without_marks),
		cmocka_unit_test(test_brick_that_serves_is_not_lost),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_disk_that_dies_under_its_brick),
		cmocka_unit_test(test_disk_that_dies_of_many),
		cmocka_unit_test(test_list_without_an_end),
		cmocka_unit_test(test_only_copy_is_not_given_up),
		cmocka_unit_test(test_disperse_replace),
		cmocka_unit_test(test_arbiter_keeps_roles),
		cmocka_unit_test(test_wrong_layout),
		cmocka_unit_test(test_own_options_last),
		cmocka_unit_test(test_delete),
		cmocka_unit_test(test_volume_of_another_pool),
		cmocka_unit_test(test_volume_of_its_own),
		cmocka_unit_test(test_steps_name_the_volume),
		cmocka_unit_test(test_never_made),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_status_of_an_unknown_volume),
		cmocka_unit_test(test_options_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
