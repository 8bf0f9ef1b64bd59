/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent may destroy, and tell gluster, when it has just started: its cache is cold or old, its records may
 * be lost, its machine may have been started again. What the API itself says is another thing than what a cache has.
 */
#include "agent/state.h"
#include "base/mem.h"
#include "systems/glusterfs/options.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define UUID "0c5d3a2e-0000-4000-8000-000000000001"
#define ID "b-0123456789ab"
#define MOUNTPOINT "/bricks/" ID
#define OLD_PATH MOUNTPOINT "/brick"
#define NEW_PATH MOUNTPOINT "/.quartermaster-" ID "/brick"

/* A node n1 with one device, the API, and a cache that has only the node. */
struct world {
	struct node_host host;
	struct kube kube;
	struct reader reader;
	struct agent agent;
	struct reconcile r;
	json_t *node, *pool; /* in the API; pool NULL: there is none */
	json_t *stale; /* the node in the cache; NULL: as in the API */
	json_t *other; /* StorageNode n2 in the API */
	int api_error; /* what reading a pool from the API comes to */
	int list_error; /* and the nodes */
	json_t *record, *marker;
	char uuid[UUID_TEXT_MAX]; /* of the XFS on the device, "" for none */
	bool volume; /* of three bricks: ours, n2's b-2, which is offline, and another */
	bool away; /* the disk: nothing has its name */
	const char *wwn;
	bool broken, mounted, leads, glusterd, in_volume;
	bool mounted_when_started; /* what the API said of the brick when glusterd was started */
	int formats, wipes, records, creates, lists;
};
#define OF(p, member) ((struct world *)((char *)(p) - offsetof(struct world, member)))

/* ---- the machine --------------------------------------------------------------------------- */
static int identity(struct node_host *h, struct node_identity *ret, struct error *err)
{
	return 0;
}

static void probe(struct node_host *h, const char *device, struct device_facts *f)
{
	struct world *w = OF(h, host);

	*f = (struct device_facts){ .block = true, .size = 2LL << 30, .in_use = w->mounted };
	if (w->away) {
		*f = (struct device_facts){ .error = ENOENT };
		return;
	}
	snprintf(f->wwn, sizeof(f->wwn), "%s", w->wwn ? w->wwn : "");
	snprintf(f->uuid, sizeof(f->uuid), "%s", w->uuid);
	snprintf(f->signature, sizeof(f->signature), "%s", w->uuid[0] ? "xfs" : "");
}

static int find_device(struct node_host *h, const struct disk_wanted *w,
		char device[static DEVICE_PATH_MAX],
		       struct error *err)
{
	if (OF(h, host)->away || !streq(OF(h, host)->uuid, w->uuid))
		return -ENOENT;
	snprintf(device, DEVICE_PATH_MAX, "/dev/vdb");
	return 0;
}

static int format(struct node_host *h, const char *device, const struct device_facts *seen,
		  const char *uuid, const char *label, struct error *err)
{
	struct world *w = OF(h, host);

	if (!streq(w->uuid, seen->uuid))
		return -ESTALE;
	w->formats++;
	w->broken = false;
	snprintf(w->uuid, sizeof(w->uuid), "%s", uuid);
	return 0;
}

static int mount_device(struct node_host *h, const char *device, const char *uuid,
			const char *mountpoint, struct error *err)
{
	assert_string_equal(mountpoint, MOUNTPOINT);
	if (OF(h, host)->broken)
		return error_set(err, EUCLEAN, "it does not mount");
	OF(h, host)->mounted = true;
	return 0;
}

static int unmount(struct node_host *h, const char *mountpoint, struct error *err)
{
	assert_string_equal(mountpoint, MOUNTPOINT);
	OF(h, host)->mounted = false;
	return 0;
}

static int wipe(struct node_host *h, const char *device, const char *uuid, struct error *err)
{
	OF(h, host)->wipes++;
	OF(h, host)->uuid[0] = '\0';
	return 0;
}

static int marker_read(struct node_host *h, const char *root, json_t **ret, struct error *err)
{
	struct world *w = OF(h, host);

	assert_true(streq(root, MOUNTPOINT) || streq(root, MOUNTPOINT "/.quartermaster-" ID));
	if (!w->mounted || !w->marker)
		return -ENOENT;
	*ret = json_incref(w->marker);
	return 0;
}

static int marker_write(struct node_host *h, const char *root, const json_t *marker,
			struct error *err)
{
	assert_true(OF(h, host)->mounted);
	json_decref(OF(h, host)->marker);
	OF(h, host)->marker = json_deep_copy(marker);
	return 0;
}

static int record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	if (!OF(h, host)->record || !streq(name, "brick." ID))
		return -ENOENT;
	*ret = json_deep_copy(OF(h, host)->record);
	return 0;
}

static int record_put(struct node_host *h, const char *name, const json_t *record,
		      struct error *err)
{
	json_decref(OF(h, host)->record);
	OF(h, host)->record = json_deep_copy(record);
	OF(h, host)->records++;
	return 0;
}

static int record_remove(struct node_host *h, const char *name, struct error *err)
{
	json_decref(OF(h, host)->record);
	OF(h, host)->record = NULL;
	return 0;
}

static int record_list(struct node_host *h, const char *prefix, struct strv *ret, struct error *err)
{
	if (OF(h, host)->record)
		strv_add(ret, "brick." ID);
	return 0;
}

static int glusterd_ensure(struct node_host *h, bool start, struct glusterd_state *ret,
			   struct error *err)
{
	struct world *w = OF(h, host);

	if (start && !w->glusterd) {
		w->glusterd = true;
		w->mounted_when_started = jbool(
			json_array_get(jget(w->node, "status", "agent", "bricks"), 0), "mounted");
	}
	*ret = (struct glusterd_state){ .running = w->glusterd, .pid = 1 };
	return 0;
}

static int brick_usage(struct node_host *h, const char *volume, const char *path,
		       struct brick_usage *ret, struct error *err)
{
	if (OF(h, host)->away)
		return error_set(err, ENODEV, "its disk is gone");
	*ret = (struct brick_usage){ .pid = 2 };
	return 0;
}

static int peers(struct node_host *h, struct gluster_peers *ret, struct error *err)
{
	*ret = (struct gluster_peers){ .items = xcalloc(1, sizeof(*ret->items)), .count = 1 };
	ret->items[0] = (struct gluster_peer){ .uuid = xstrdup("u"),
					       .address = xstrdup("10.0.0.2"),
					       .connected = true,
					       .state = GLUSTER_PEER_BEFRIENDED,
					       .state_text = xstrdup("Peer in Cluster") };
	return 0;
}

static int volume_get(struct node_host *h, const char *name, enum volume_look look,
		      struct gluster_volume *ret, struct error *err)
{
	if (!OF(h, host)->volume)
		return error_set(err, ENOENT, "no such volume");
	ret->id = xstrdup("v");
	ret->state = VOLUME_STARTED;
	ret->replica = 3;
	ret->options = volume_options_for(LAYOUT_REPLICATE);
	json_object_set(ret->options, VOLUME_OPTION_POOL,
			jget(OF(h, host)->pool, "metadata", "uid"));
	for (int i = 1; i <= 3; i++) {
		cleanup_free char *address = xasprintf("10.0.0.%d", i);

		gluster_volume_add_brick(ret, address, i == 2 ? "/bricks/b-2/brick" : NEW_PATH);
		ret->bricks[i - 1].online = i != 2;
		ret->bricks[i - 1].pid = i != 2 ? 7 : 0;
		ret->bricks[i - 1].pending = 0;
	}
	return 0;
}

static int volume_apply(struct node_host *h, const struct volume_step *step, struct error *err)
{
	assert_int_equal(step->kind, OF(h, host)->volume ? STEP_REPLACE_BRICK : STEP_CREATE);
	OF(h, host)->creates++;
	return error_set(err, EIO, "one is enough");
}

static const struct node_host_ops host_ops = {
	.identity = identity,
	.probe_device = probe,
	.find_device = find_device,
	.format = format,
	.mount = mount_device,
	.unmount = unmount,
	.wipe = wipe,
	.marker_read = marker_read,
	.marker_write = marker_write,
	.record_get = record_get,
	.record_put = record_put,
	.record_remove = record_remove,
	.record_list = record_list,
	.glusterd_ensure = glusterd_ensure,
	.brick_usage = brick_usage,
	.peers = peers,
	.volume_get = volume_get,
	.volume_apply = volume_apply,
};

/* ---- the API and the cache ----------------------------------------------------------------- */
static int api_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		   json_t **ret, struct error *err)
{
	struct world *w = OF(k, kube);
	json_t *o = kind == &KIND_STORAGEPOOL ? w->pool : streq(name, "n1") ? w->node : w->other;

	if (w->api_error && kind == &KIND_STORAGEPOOL)
		return error_set(err, w->api_error, "the API does not answer");
	if (!o)
		return error_set(err, ENOENT, "there is no %s", name);
	*ret = json_deep_copy(o);
	return 0;
}

static int api_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		     const char *subresource, enum kube_patch type, const json_t *patch,
		     json_t **ret, struct error *err)
{
	struct world *w = OF(k, kube);
	json_t *o = kind == &KIND_STORAGEPOOL ? w->pool : w->node;
	const json_t *agent = jget(patch, "status", "agent");

	if (agent && !jget(o, "status", "agent"))
		jset(o, json_object(), "status", "agent");
	if (agent)
		json_object_update(jget(o, "status", "agent"), (json_t *)agent);
	else
		json_object_update(jget(o, "status"), jget(patch, "status"));
	*ret = json_deep_copy(o);
	return 0;
}

static int api_list(struct kube *k, const struct kind *kind, const char *ns,
		    const struct kube_selector *sel, json_t **ret, char **ret_version,
		    struct error *err)
{
	struct world *w = OF(k, kube);

	assert_ptr_equal(kind, &KIND_STORAGENODE);
	w->lists++;
	if (w->list_error)
		return error_set(err, w->list_error, "the API does not answer");
	*ret = json_pack("[O, O]", w->node, w->other);
	return 0;
}

static const struct kube_ops kube_ops = { .get = api_get, .patch = api_patch, .list = api_list };

static json_t *cached(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	struct world *w = OF(r, reader);

	if (kind == &KIND_STORAGENODE)
		return streq(name, "n1") ? json_deep_copy(w->stale ? w->stale : w->node) : NULL;
	/* who leads has read its pools */
	return w->leads ? json_deep_copy(w->pool) : NULL;
}

static int each(struct reader *r, const struct kind *kind, const char *ns,
		int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return kind == &KIND_STORAGENODE ? fn(OF(r, reader)->other, userdata) : 0;
}

static void learned(struct reader *r, const struct kind *kind, const json_t *object)
{
}

static const struct reader_ops reader_ops = { .get = cached, .each = each, .learned = learned };

/* ---- the world ------------------------------------------------------------------------------ */
static bool leads(struct agent *a, const char *deployment, const char *cluster, int64_t *ret_epoch)
{
	*ret_epoch = 1;
	return OF(a, agent)->leads;
}

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

/* The brick is in a pool that has used it: its file system is on the device, and the API remembers that. */
static void world_init(struct world *w, const char *path)
{
	*w = (struct world){ .host.ops = &host_ops,
			     .kube = { .ops = &kube_ops, .clock = &clock_real },
			     .reader.ops = &reader_ops,
			     .agent = { .ns = "qm", .node = "n1", .leads = leads },
			     .uuid = UUID };
	w->agent.host = &w->host;
	agent_init(&w->agent);
	w->r = (struct reconcile){
		.kube = &w->kube, .cache = &w->reader, .clock = &clock_real, .app = &w->agent
	};
	w->node = parse(
		"{\"metadata\": {\"name\": \"n1\", \"namespace\": \"qm\", \"uid\": \"u1\", "
		"\"generation\": 1}, \"spec\": {\"devices\": [\"/dev/vdb\"]}, \"status\": {"
		" \"plan\": {\"epoch\": 1, \"cluster\": \"c\", \"address\": \"10.0.0.1\","
		"  \"peers\": [\"10.0.0.1\", \"10.0.0.2\"],"
		"  \"bricks\": [{\"id\": \"" ID "\", \"device\": \"/dev/vdb\", \"pool\": \"p-1\"}]},"
		" \"agent\": {\"planEpoch\": 1, \"devices\": [{\"device\": \"/dev/vdb\", \"brick\": "
		"\"" ID "\", \"uuid\": \"" UUID "\", \"state\": \"Failed\"}],"
		"  \"bricks\": [{\"id\": \"" ID "\", \"pool\": \"p-1\", \"mounted\": true}]}}}");
	w->pool = parse("{\"metadata\": {\"name\": \"p-1\", \"namespace\": \"qm\", \"uid\": \"u2\"},"
			" \"spec\": {\"cluster\": \"c\", \"volumeType\": \"replicate:2\", \"bricks\": ["
			"{\"id\": \"" ID "\", \"node\": \"n1\", \"address\": \"10.0.0.1\", \"device\": "
			"\"/dev/vdb\", \"prepared\": true},"
			"{\"id\": \"b-2\", \"node\": \"n2\", \"address\": \"10.0.0.2\", \"device\": "
			"\"/dev/vdb\", \"path\": \"/bricks/b-2/brick\", \"prepared\": true}]},"
			" \"status\": {}}");
	w->other = parse("{\"metadata\": {\"name\": \"n2\", \"namespace\": \"qm\", \"uid\": \"u3\"},"
			 " \"status\": {\"agent\": {\"bricks\": [{\"id\": \"b-2\", \"path\": "
			 "\"/bricks/b-2/brick\", \"mounted\": true}]}}}");
	json_object_set_new(json_array_get(jget(w->node, "status", "plan", "bricks"), 0), "path",
			    json_string(path));
	json_object_set_new(json_array_get(jget(w->node, "status", "agent", "bricks"), 0), "path",
			    json_string(path));
	json_object_set_new(json_array_get(jget(w->pool, "spec", "bricks"), 0), "path",
			    json_string(path));
	w->marker = parse("{\"id\": \"" ID "\", \"node\": \"u1\"}");
}

static void world_done(struct world *w)
{
	agent_done(&w->agent);
	json_decref(w->node);
	json_decref(w->pool);
	json_decref(w->stale);
	json_decref(w->other);
	json_decref(w->record);
	json_decref(w->marker);
}

static void set_prepared(struct world *w, bool prepared)
{
	json_object_set_new(json_array_get(jget(w->pool, "spec", "bricks"), 0), "prepared",
			    json_boolean(prepared));
}

static int look(struct world *w)
{
	int rc = AGENT_NODE.reconcile(&w->r, "qm/n1");

	/* what it told the API comes back to it */
	return rc == 0 && w->r.again_ms == 1 ? AGENT_NODE.reconcile(&w->r, "qm/n1") : rc;
}

static const char *device_state(struct world *w)
{
	return jstr(json_array_get(jget(w->node, "status", "agent", "devices"), 0), "state");
}

static bool reported_mounted(struct world *w)
{
	return jbool(json_array_get(jget(w->node, "status", "agent", "bricks"), 0), "mounted");
}

/* ---- formatting ------------------------------------------------------------------------------ */
/* The system was installed anew, the file system does not mount, and the cache has not one pool yet. */
static void brick_of_a_live_pool_is_not_formatted(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	w.broken = true;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 0);
	assert_true(jbool(w.record, "ready"));
	assert_string_equal(jstr(w.record, "uuid"), UUID);
	assert_string_equal(device_state(&w), "Failed");
	/* and as soon as it can be mounted again, it is used */
	w.broken = false;
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Ready");
	assert_int_equal(w.formats, 0);
	world_done(&w);
}

/* What the API cannot be asked about is neither done nor written down. */
static void nothing_is_written_down_unasked(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	w.broken = true;
	w.api_error = ETIMEDOUT;
	assert_int_equal(look(&w), -ETIMEDOUT);
	assert_int_equal(w.formats + w.records, 0);
	w.api_error = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 0);
	world_done(&w);
}

/* Nor what belongs to no pool: the plan is older than the pool's end, or was never for this one. */
static void brick_of_no_pool_is_left_alone(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	w.broken = true;
	json_decref(w.pool);
	w.pool = NULL;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats + w.records, 0);
	/* what the API remembers of it stays there */
	assert_string_equal(
		jstr(json_array_get(jget(w.node, "status", "agent", "devices"), 0), "uuid"), UUID);
	world_done(&w);
}

/* The record was written when the pool was not known yet: the pool's word is the stronger one. */
static void record_that_knows_less_than_the_pool(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	w.broken = true;
	w.record = parse("{\"id\": \"" ID "\", \"uuid\": \"" UUID "\", \"device\": \"/dev/vdb\", "
			 "\"path\": \"" NEW_PATH "\", \"pool\": \"p-1\", \"ready\": false}");
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 0);
	assert_string_equal(device_state(&w), "Failed");
	world_done(&w);
}

/* Nobody knows any more which file system it was, and a person lists the device in wipe. */
static void prepared_brick_is_not_wiped(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	jset(w.node, json_array(), "status", "agent", "devices");
	jset(w.node, json_pack("[s]", "/dev/vdb"), "spec", "glusterfs", "wipe");
	json_object_set_new(json_array_get(jget(w.node, "status", "plan", "bricks"), 0), "wipe",
			    json_true());
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 0);
	assert_string_equal(w.uuid, UUID);
	assert_string_equal(device_state(&w), "Failed");
	world_done(&w);
}

static void new_brick_is_formatted_once(void **state)
{
	static const char *const paths[] = { OLD_PATH, NEW_PATH };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct world w;

		world_init(&w, paths[i]);
		set_prepared(&w, false);
		jset(w.node, json_object(), "status", "agent");
		w.uuid[0] = '\0';
		json_decref(w.marker);
		w.marker = NULL;
		assert_int_equal(look(&w), 0);
		assert_int_equal(w.formats, 1);
		assert_string_equal(device_state(&w), "Ready");
		assert_string_equal(jstr(w.record, "uuid"), w.uuid);
		w.agent.state->next_full_ms = 0;
		assert_int_equal(look(&w), 0);
		assert_int_equal(w.formats, 1);
		world_done(&w);
	}
}

/* A new brick, on a device that is listed in wipe. */
static void world_init_wiped(struct world *w)
{
	world_init(w, NEW_PATH);
	set_prepared(w, false);
	jset(w->node, json_object(), "status", "agent");
	jset(w->node, json_pack("[s]", "/dev/vdb"), "spec", "glusterfs", "wipe");
	json_object_set_new(json_array_get(jget(w->node, "status", "plan", "bricks"), 0), "wipe",
			    json_true());
	json_decref(w->marker);
	w->marker = NULL;
}

/*
 * The disk comes from another node, which reports it as its own; that is asked of the API before it
 * is erased.
 */
static void wipe_asks_the_nodes(void **state)
{
	struct world w;

	world_init_wiped(&w);
	jset(w.other, json_pack("[{s:s, s:s, s:s}]", "device", "/dev/vdc", "brick", "b-2", "uuid",
				UUID),
	     "status", "agent", "devices");
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 0);
	assert_string_equal(device_state(&w), "Refused");
	assert_true(w.lists > 0);
	/* who cannot be asked has not agreed */
	w.list_error = ETIMEDOUT;
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 0);
	assert_string_equal(device_state(&w), "Failed");
	/* it has been let go there */
	w.list_error = 0;
	jset(w.other, json_array(), "status", "agent", "devices");
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats, 1);
	assert_string_equal(device_state(&w), "Ready");
	world_done(&w);
}

/* ---- disks that go, and come ------------------------------------------------------------------ */
static const json_t *device_line(struct world *w)
{
	return json_array_get(jget(w->node, "status", "agent", "devices"), 0);
}

/* That a brick's disk is gone is seen at the next look at its numbers, not in five minutes. */
static void a_disk_that_goes_is_seen_at_once(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Ready");
	w.away = true;
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Missing");
	assert_string_equal(jstr(device_line(&w), "reason"), "NotFound");
	assert_false(reported_mounted(&w));
	w.away = false;
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Ready");
	assert_int_equal(w.formats, 0);
	world_done(&w);
}

/* The planner is told that another disk has the name, and by which brick it must not go. */
static void disk_in_its_place(const char *had, const char *has)
{
	struct world w;

	world_init(&w, NEW_PATH);
	w.wwn = had;
	assert_int_equal(look(&w), 0);
	assert_true(!had || streq(jstr(w.record, "wwn"), had));
	w.mounted = false;
	w.uuid[0] = '\0';
	w.wwn = has;
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_string_equal(jstr(device_line(&w), "reason"), "NotFound");
	assert_false(jbool(device_line(&w), "unsure"));
	/* half a minute later */
	json_t *missing = json_object_get(w.agent.state->missing, ID);
	json_object_set_new(missing, "since", json_integer(jint(missing, "since") - 31000));
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Missing");
	assert_string_equal(jstr(device_line(&w), "reason"), "Replaced");
	assert_true(!has || streq(jstr(device_line(&w), "wwn"), has));
	assert_string_equal(jstr(device_line(&w), "brick"), ID);
	assert_string_equal(json_string_value(json_array_get(jget(device_line(&w), "lost"), 0)),
			    ID);
	assert_int_equal(jbool(device_line(&w), "unsure"), !had || !has);
	assert_int_equal(w.formats, 0);
	world_done(&w);
}

static void a_disk_in_its_place_is_reported(void **state)
{
	disk_in_its_place("naa.1", "naa.2");
	disk_in_its_place("naa.1", NULL);
	disk_in_its_place(NULL, NULL);
}

/* After a restart two names lead to its disk, and the other had a brick, too: it stays in use. */
static void two_names_of_one_disk(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	jset(w.node, json_pack("[s, s]", "/dev/vda", "/dev/vdb"), "spec", "devices");
	json_array_insert_new(jget(w.node, "status", "plan", "bricks"), 0,
			      json_pack("{s:s, s:s, s:s, s:s, s:b}", "id", "b-00000000000a",
					"device", "/dev/vda", "pool", "p-1", "path",
					"/b/b-00000000000a/.quartermaster-b-00000000000a/brick",
					"wipe", 1));
	assert_int_equal(look(&w), 0);
	assert_string_equal(jstr(json_array_get(jget(w.node, "status", "agent", "devices"), 1),
				 "state"),
			    "Ready");
	assert_true(w.mounted);
	assert_true(jbool(json_array_get(jget(w.node, "status", "agent", "bricks"), 1), "mounted"));
	assert_int_equal(w.formats, 0);
	assert_string_not_equal(device_state(&w), "Ready");
	/* one of them is no brick's: it is named twice */
	json_array_remove(jget(w.node, "status", "plan", "bricks"), 0);
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_string_equal(jstr(device_line(&w), "reason"), "Duplicate");
	assert_true(w.mounted);
	world_done(&w);
}

/* ---- releasing ------------------------------------------------------------------------------- */
static void order_release(json_t *node)
{
	jset(node, json_array(), "status", "plan", "bricks");
	jset(node, json_pack("[s]", ID), "status", "plan", "release");
}

/* The cache still has a plan that the operator has taken back. */
static void release_is_asked_of_the_api(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	assert_int_equal(look(&w), 0);
	w.stale = json_deep_copy(w.node);
	order_release(w.stale);
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.wipes, 0);
	assert_false(jbool(w.record, "released"));
	/* and one that stands is carried out */
	order_release(w.node);
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.wipes, 1);
	assert_null(w.record);
	world_done(&w);
}

/* ---- names that come again ------------------------------------------------------------------- */
static json_t *planned_brick(struct world *w)
{
	return json_array_get(jget(w->node, "status", "plan", "bricks"), 0);
}

static const json_t *reported_brick(struct world *w)
{
	return json_array_get(jget(w->node, "status", "agent", "bricks"), 0);
}

/* An order to let go of a brick is about that pool's, not about the next one's of its name. */
static void release_names_the_pool(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	json_object_set_new(planned_brick(&w), "poolUid", json_string("u2"));
	assert_int_equal(look(&w), 0);
	assert_string_equal(jstr(w.record, "poolUid"), "u2");
	assert_string_equal(jstr(reported_brick(&w), "poolUid"), "u2");
	order_release(w.node);
	jset(w.node, json_pack("{s:s}", ID, "u-old"), "status", "plan", "releasePools");
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.wipes, 0);
	assert_false(jbool(w.record, "released"));
	jset(w.node, json_pack("{s:s}", ID, "u2"), "status", "plan", "releasePools");
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.wipes, 1);
	world_done(&w);
}

/* The plan is of a pool that is gone; another one has its name by now. */
static void order_for_a_former_pool(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	set_prepared(&w, false);
	jset(w.node, json_object(), "status", "agent");
	w.uuid[0] = '\0';
	json_object_set_new(planned_brick(&w), "poolUid", json_string("u-old"));
	assert_int_equal(look(&w), 0);
	assert_int_equal(w.formats + w.records, 0);
	assert_string_equal(device_state(&w), "Failed");
	world_done(&w);
}

/* The node still has the brick of a pool that is gone: not the new one's, until that says so. */
static void brick_of_a_former_pool(void **state)
{
	struct world w;

	world_init(&w, NEW_PATH);
	json_object_set_new(planned_brick(&w), "poolUid", json_string("u2"));
	w.record = parse("{\"id\": \"" ID "\", \"uuid\": \"" UUID "\", \"device\": \"/dev/vdb\", "
			 "\"path\": \"" NEW_PATH "\", \"pool\": \"p-1\", \"poolUid\": \"u-old\", "
			 "\"ready\": true}");
	set_prepared(&w, false);
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Failed");
	assert_false(reported_mounted(&w));
	assert_string_equal(jstr(reported_brick(&w), "poolUid"), "u-old");
	assert_int_equal(w.formats, 0);
	set_prepared(&w, true);
	w.agent.state->next_full_ms = 0;
	assert_int_equal(look(&w), 0);
	assert_string_equal(device_state(&w), "Ready");
	assert_string_equal(jstr(reported_brick(&w), "poolUid"), "u2");
	assert_int_equal(w.formats, 0);
	world_done(&w);
}

/* ---- what gluster is told --------------------------------------------------------------------- */
/* The machine was started again: the API hears that the brick is not mounted before gluster can be told to use it. */
static void not_mounted_is_told_before_glusterd_starts(void **state)
{
	struct world w;

	world_init(&w, OLD_PATH);
	assert_int_equal(look(&w), 0);
	assert_false(w.mounted_when_started);
	assert_true(w.mounted);
	assert_true(reported_mounted(&w));
	world_done(&w);
}

static int lead(struct world *w)
{
	w->leads = true;
	json_object_del(w->agent.state->pools, "p-1");
	return AGENT_POOL.reconcile(&w->r, "qm/p-1");
}

/* `prepared` says that it once was; the node's report in the API, and for its own brick a look, say what is. */
static void gluster_gets_only_what_is_mounted(void **state)
{
	static const char *const paths[] = { OLD_PATH, NEW_PATH };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		json_t *theirs;
		struct world w;

		world_init(&w, paths[i]);
		theirs = json_array_get(jget(w.other, "status", "agent", "bricks"), 0);
		w.mounted = false;
		assert_int_equal(lead(&w), 0);
		assert_int_equal(w.creates, 0);
		assert_non_null(strstr(jstr(w.pool, "status", "message"), "n1"));
		w.mounted = true;
		json_object_set_new(theirs, "mounted", json_false());
		assert_int_equal(lead(&w), 0);
		assert_int_equal(w.creates, 0);
		assert_non_null(strstr(jstr(w.pool, "status", "message"), "n2"));
		/* another brick of that id, elsewhere, is none */
		json_object_set_new(theirs, "mounted", json_true());
		json_object_set_new(theirs, "path", json_string("/elsewhere/b-2/brick"));
		assert_int_equal(lead(&w), 0);
		assert_int_equal(w.creates, 0);
		json_object_set_new(theirs, "path", json_string("/bricks/b-2/brick"));
		/* nor is that of a pool that had the name before */
		json_object_set_new(theirs, "poolUid", json_string("u-old"));
		assert_int_equal(lead(&w), 0);
		assert_int_equal(w.creates, 0);
		json_object_set_new(theirs, "poolUid", json_string("u2"));
		assert_int_equal(lead(&w), -EIO);
		assert_int_equal(w.creates, 1);
		world_done(&w);
	}
}

/*
 * n2's disk is gone, and the brick that is to take its place is there; when is the old one given
 * up?
 */
static void a_replaced_disk_is_not_waited_for(void **state)
{
	json_t *devices = json_pack("[{s:s, s:s, s:s}]", "brick", "b-2", "state", "Missing",
				    "reason", "NotFound");
	struct world w;

	world_init(&w, NEW_PATH);
	w.mounted = w.volume = true;
	jset(w.pool, json_string("replicate:3"), "spec", "volumeType");
	jset(w.pool, json_string("v"), "status", "volumeId");
	jset(w.pool, json_pack("[{s:s, s:b, s:i}]", "id", ID, "whole", 1, "pid", 7), "status", "bricks");
	json_object_update_new(json_array_get(jget(w.pool, "spec", "bricks"), 1),
			       json_pack("{s:s, s:s}", "id", "b-3", "path", "/bricks/b-3/brick"));
	json_array_append_new(jget(w.pool, "spec", "bricks"),
			      json_pack("{s:s, s:s, s:s, s:s, s:b}", "id", "b-4", "node", "n3",
					"address", "10.0.0.3", "path", NEW_PATH, "prepared", 1));
	json_array_append_new(jget(w.other, "status", "agent", "bricks"),
			      json_pack("{s:s, s:s, s:b}", "id", "b-3", "path", "/bricks/b-3/brick",
					"mounted", 1));
	jset(w.other, devices, "status", "agent", "devices");
	jset(w.other, json_object(), "status", "plan");
	jset(w.other, json_string("10.0.0.2"), "status", "plan", "address");
	assert_int_equal(lead(&w), 0);
	assert_int_equal(w.creates, 0);
	json_object_set_new(json_array_get(devices, 0), "reason", json_string("Replaced"));
	assert_int_equal(lead(&w), -EIO);
	assert_int_equal(w.creates, 1);
	/* it is said of the disk of that brick, not of one of that path elsewhere */
	jset(w.other, json_string("10.0.0.9"), "status", "plan", "address");
	assert_int_equal(lead(&w), 0);
	assert_int_equal(w.creates, 1);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brick_of_a_live_pool_is_not_formatted),
		cmocka_unit_test(nothing_is_written_down_unasked),
		cmocka_unit_test(brick_of_no_pool_is_left_alone),
		cmocka_unit_test(record_that_knows_less_than_the_pool),
		cmocka_unit_test(prepared_brick_is_not_wiped),
		cmocka_unit_test(new_brick_is_formatted_once),
		cmocka_unit_test(wipe_asks_the_nodes),
		cmocka_unit_test(a_disk_that_goes_is_seen_at_once),
		cmocka_unit_test(a_disk_in_its_place_is_reported),
		cmocka_unit_test(two_names_of_one_disk),
		cmocka_unit_test(release_is_asked_of_the_api),
		cmocka_unit_test(release_names_the_pool),
		cmocka_unit_test(order_for_a_former_pool),
		cmocka_unit_test(brick_of_a_former_pool),
		cmocka_unit_test(not_mounted_is_told_before_glusterd_starts),
		cmocka_unit_test(gluster_gets_only_what_is_mounted),
		cmocka_unit_test(a_replaced_disk_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
