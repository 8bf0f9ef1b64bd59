/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/mem.h"
#include "csi/handle.h"
#include "csi/node_service.h"

#include <errno.h>
#include <sys/mount.h>

#define TARGET_MODE 0750

struct publishing {
	struct csi_node *n;
	const Csi__V1__NodePublishVolumeRequest *q;
	char *staging, *target;
	struct wanted w;
	struct staged s;
};

static void publishing_done(struct publishing *p)
{
	free(p->staging);
	free(p->target);
	wanted_done(&p->w);
	staged_done(&p->s);
}

/*
 * The staged volume, connected again: that is nothing where all is well, and a new client where the
 * old one died.
 */
static int connect_again(struct publishing *p, json_t *record, json_t **ret, struct error *err)
{
	struct map secrets = MAP_OF(p->q, secrets);
	char *connection;
	int r;

	for (size_t i = 0; i < secrets.count; i++)
		(void)jset(record, json_string(secrets.entries[i]->value), "data",
			   secrets.entries[i]->key);
	connection = json_text(record);
	r = connect_volume(p->n, connection, ret, err);
	connection_free(connection);
	return r;
}

/*
 * Whether the volume is a directory, which is staged by being connected: what was verified just now does
 * not have to be looked at in one more child, since the mount insists on a directory itself.
 */
static bool is_directory(const struct publishing *p, const json_t *record)
{
	struct handle h;

	if (streq(jstr(record, "detail", "identity"), "directory"))
		return true;
	return handle_parse(p->q->volume_id, &h, NULL) == 0 && volume_is_tree(h.kind);
}

static int find_staged(struct publishing *p, struct error *err)
{
	cleanup_json json_t *record = NULL, *now = NULL;
	int r = staged_record(p->n, p->q->volume_id, p->staging, &record, err);

	if (r == 0)
		return error_set(err, EBUSY, "volume %s is not staged at %s", p->q->volume_id,
				 p->q->staging_target_path);
	if (r > 0)
		r = connect_again(p, record, &now, err);
	if (r == 0 && (p->w.block || !is_directory(p, now)))
		r = stage_present(p->n, now, p->staging, &p->w, err);
	return r < 0 ? r : staged_look(now, &p->s, err);
}

/* 1: is there already, and answers. */
static int look_at_target(struct publishing *p, struct error *err)
{
	bool wanted_ro = p->w.set & MOUNT_ATTR_RDONLY, ro;
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	int r = bind_find(p->target, &e, err), probed;

	if (r <= 0)
		return r;
	probed = bind_probe(p->target, STEP_MS);
	if (bind_is_dead(probed))
		return take_away(p->target, true, STEP_MS, err);
	ro = strncmp(e.options, "ro", 2) == 0;
	if (!staged_is(&p->s, &e))
		return error_set(err, EEXIST, "something else (%s) is mounted on %s", e.source,
				 p->target);
	if (p->s.shape != SHAPE_DEVICE && ro != wanted_ro)
		return error_set(err, EEXIST, "%s is published already, %s", p->target,
				 ro ? "for reading only" : "for writing, too");
	return probed < 0 ? error_errno(err, -probed, "%s does not answer", p->target) : 1;
}

static int check_alone(struct publishing *p, struct error *err)
{
	cleanup_free char *other = NULL;
	int r = p->w.one_target ? staged_elsewhere(&p->s, p->target, &other, err) : 0;

	return r > 0 ? error_set(err, EBUSY,
				 "the volume may have a single user, and is published at %s", other)
		     : r;
}

static int show(struct publishing *p, struct error *err)
{
	enum place_kind kind = p->s.shape == SHAPE_DEVICE ? PLACE_DEVICE : PLACE_DIRECTORY;
	cleanup_free char *device = device_place(p->staging);
	struct bind b = { .sub = "",
			  .target = p->target,
			  .kind = kind,
			  .set = p->w.set,
			  .clear = p->w.clear,
			  .make = TARGET_MODE };
	int r;

	if (p->s.shape == SHAPE_DIRECTORY) {
		b.root = record_root(p->s.record);
		b.sub = record_sub(p->s.record);
	} else {
		b.root = kind == PLACE_DEVICE ? device : p->staging;
	}
	r = bind_mount(&b, STEP_MS, err);
	return r == -ELOOP ? -EINVAL : r;
}

static int publish(struct publishing *p, struct error *err)
{
	int r = find_staged(p, err);

	/* of this target alone, and not of what is staged */
	if (p->q->readonly)
		p->w.set |= MOUNT_ATTR_RDONLY;
	/* kubelet binds a device that was published to a place of its own: a repeat comes after that */
	if (r == 0)
		r = look_at_target(p, err);
	if (r != 0)
		return r;
	r = check_alone(p, err);
	if (r < 0)
		return r;
	published_note(p->n, p->q->volume_id, p->target, MAP_OF(p->q, volume_context));
	r = show(p, err);
	/* kubelet calls no NodeUnpublish for what was never there */
	if (r < 0)
		published_forget(p->n, p->target);
	return r;
}

static int read_staging(struct publishing *p, struct error *err)
{
	if (!*p->q->staging_target_path)
		return error_set(err, EBUSY,
				 "staging_target_path is missing: stage the volume first");
	return path_of(p->n, "staging_target_path", p->q->staging_target_path, &p->staging, err);
}

int node_publish(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	cleanup_with(publishing_done) struct publishing p = { .n = grpc_call_userdata(call),
							      .q = request };
	int r = check_volume_id(p.q->volume_id, true, err);

	if (r == 0)
		r = path_of(p.n, "target_path", p.q->target_path, &p.target, err);
	if (r == 0)
		r = wanted_read(p.q->volume_capability, &p.w, err);
	if (r == 0 && !is_ephemeral(p.q))
		r = read_staging(&p, err);
	if (r == 0)
		r = volume_begin(p.n, p.q->volume_id, err);
	if (r < 0)
		return r;
	p.w.unfenced = true; /* that was settled when it was staged */
	r = is_ephemeral(p.q) ? ephemeral_publish(p.n, p.q, p.target, &p.w, err) : publish(&p, err);
	volume_end(p.n, p.q->volume_id);
	if (r == 0 && p.staging)
		ungrown_tell(p.n, p.q->volume_id, p.staging, MAP_OF(p.q, volume_context));
	if (r < 0) {
		log_warn("cannot publish volume %s: %s", p.q->volume_id, error_text(err, r));
		return r;
	}
	log_info("volume %s is published at %s", p.q->volume_id, p.target);
	return 0;
}

/* Nearly always there is one mount, which nobody uses: one step ends it. */
static int unpublish(const char *target, struct error *err)
{
	int r = bind_end(target, STEP_MS);

	if (r == 0)
		return 0;
	r = take_away(target, r == -ETIMEDOUT, STEP_MS, err);
	if (r == 0)
		r = place_remove(target, STEP_MS, err);
	return r == -ELOOP ? -EINVAL : r;
}

int node_unpublish(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__NodeUnpublishVolumeRequest *q = request;
	struct csi_node *n = grpc_call_userdata(call);
	cleanup_free char *target = NULL;
	int r = check_volume_id(q->volume_id, false, err);

	if (r == 0)
		r = path_of(n, "target_path", q->target_path, &target, err);
	if (r == 0)
		r = volume_begin(n, q->volume_id, err);
	if (r < 0)
		return r;
	r = ephemeral_unpublish(n, q->volume_id, target, err);
	if (r > 0)
		r = unpublish(target, err);
	if (r == 0)
		published_forget(n, target);
	volume_end(n, q->volume_id);
	if (r < 0)
		log_warn("cannot unpublish volume %s: %s", q->volume_id, error_text(err, r));
	return r;
}
