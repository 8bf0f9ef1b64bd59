/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/brick.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 5))) static void fail(struct brick_result *r, const char *state,
						       const char *reason, const char *format, ...)
{
	va_list ap;

	r->verdict.state = state;
	r->verdict.reason = reason;
	va_start(ap, format);
	vsnprintf(r->verdict.message, sizeof(r->verdict.message), format, ap);
	va_end(ap);
}

static char *record_name(const char *id)
{
	return xasprintf(BRICK_RECORD_PREFIX "%s", id);
}

/*
 * What holds the marker and the brick: <mount point or directory>/.quartermaster-<id>, or, in stores made before
 * device bricks had that directory, the file system's root.
 */
static char *root_of(const char *path)
{
	return xstrndup(path, (size_t)(strrchr(path, '/') - path));
}

/* Where a device's file system is mounted. */
static char *mountpoint_of(const char *path, const char *id)
{
	cleanup_free char *tail = xasprintf("/.quartermaster-%s", id);
	char *root = root_of(path);

	if (str_has_suffix(root, tail))
		root[strlen(root) - strlen(tail)] = '\0';
	return root;
}

int brick_find(struct node_host *h, const json_t *record, char device[static DEVICE_PATH_MAX],
	       struct error *err)
{
	const char *path = jstr(record, "path"), *id = jstr(record, "id");
	cleanup_free char *at = path && id ? mountpoint_of(path, id) : NULL;
	struct disk_wanted wanted = { .uuid = jstr(record, "uuid"),
				      .wwn = jstr(record, "wwn"),
				      .mountpoint = at };

	return h->ops->find_device(h, &wanted, device, err);
}

static bool id_valid(const char *id)
{
	return id && *id && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(id);
}

bool brick_order_valid(const struct brick_order *o)
{
	cleanup_free char *tail = NULL, *before = NULL;

	if (!id_valid(o->id) || !o->path || !path_is_clean(o->path) || !o->node_uid ||
	    !o->device == !o->directory || (o->parent && !o->directory))
		return false;
	if (o->directory) {
		tail = xasprintf("%s/.quartermaster-%s/brick", o->directory, o->id);
		return path_is_clean(o->directory) && streq(o->path, tail);
	}
	tail = xasprintf("/%s/.quartermaster-%s/brick", o->id, o->id);
	before = xasprintf("/%s/brick", o->id);
	return path_is_clean(o->device) &&
	       (str_has_suffix(o->path, tail) || str_has_suffix(o->path, before));
}

static int record_get(struct node_host *h, const char *id, json_t **ret, struct error *err)
{
	cleanup_free char *name = record_name(id);

	return h->ops->record_get(h, name, ret, err);
}

static int record_put(struct node_host *h, const char *id, const json_t *record, struct error *err)
{
	cleanup_free char *name = record_name(id);

	return h->ops->record_put(h, name, record, err);
}

/* ---- whose it is --------------------------------------------------------------------------- */
static bool same_pool(const json_t *record, const char *pool_uid)
{
	const char *had = jstr(record, "poolUid");

	return !had || !pool_uid || streq(had, pool_uid);
}

static int refuse_other_pool(const struct brick_order *o, const json_t *record, struct error *err)
{
	return error_set(err, ESTALE,
			 "Brick %s is here for another pool that had the name %s (uid %s, not "
			 "%s): it stays as it is until it has been released",
			 o->id, o->pool ? o->pool : "?", jstr(record, "poolUid"), o->pool_uid);
}

/* A record of before names no uid; that of a pool that was declared anew, and uses it, another. */
static int take_over(struct node_host *h, const struct brick_order *o, json_t *record,
		     struct error *err)
{
	if (!same_pool(record, o->pool_uid) && !o->prepared)
		return refuse_other_pool(o, record, err);
	if (!o->pool_uid || streq(jstr(record, "poolUid"), o->pool_uid))
		return 0;
	json_object_set_new(record, "poolUid", json_string(o->pool_uid));
	return record_put(h, o->id, record, err);
}

int brick_choose(struct node_host *h, const struct brick_order *o, char uuid[static UUID_TEXT_MAX],
		 struct error *err)
{
	cleanup_json json_t *record = NULL;
	int rc = record_get(h, o->id, &record, err);

	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (rc == 0 && !jbool(record, "released") && jstr(record, "uuid")) {
		snprintf(uuid, UUID_TEXT_MAX, "%s", jstr(record, "uuid"));
		return take_over(h, o, record, err);
	}
	if (rc == 0 && jbool(record, "released")) {
		/* It comes back before it could be freed: what it held is old, and goes first. */
		rc = brick_release(h, o->id, err);
		if (rc != 0)
			return rc < 0 ? rc
				      : error_set(err, EAGAIN,
						  "The disk of brick %s left its pool and could "
						  "not be freed yet: it is not there, or another "
						  "one took its place",
						  o->id);
	}
	if (o->known_uuid && strlen(o->known_uuid) == UUID_TEXT_MAX - 1)
		memcpy(uuid, o->known_uuid, UUID_TEXT_MAX);
	else if (o->prepared && o->device)
		return error_set(err, ENODATA,
				 "Brick %s on %s was in use, but neither this node's records nor "
				 "its status say which file system it has: nothing is made anew "
				 "there; restore the records, or remove the device from the spec",
				 o->id, o->device);
	else
		uuid_text(uuid);
	json_decref(record);
	record = json_pack("{s:s, s:s, s:s*, s:s*, s:s, s:s*, s:s*, s:s*, s:b}", "id", o->id,
			   "uuid", uuid, "device", o->device, "directory", o->directory, "path",
			   o->path, "parent", o->parent, "pool", o->pool, "poolUid", o->pool_uid, "ready",
			   o->prepared || (o->known_uuid && o->known_ready));
	return record_put(h, o->id, record, err);
}

/* ---- the marker ---------------------------------------------------------------------------- */
static bool marker_fits(const json_t *marker, const struct brick_order *o)
{
	return streq(jstr(marker, "id"), o->id) && streq(jstr(marker, "node"), o->node_uid);
}

static bool check_marker(struct node_host *h, const struct brick_order *o, bool ready,
			 struct brick_result *ret)
{
	cleanup_free char *root = root_of(o->path);
	cleanup_json json_t *marker = NULL;
	struct error err = ERROR_INIT;
	int rc = h->ops->marker_read(h, root, &marker, &err);

	if (rc == -ENOENT && !ready) {
		marker = json_pack("{s:s, s:s, s:s*}", "id", o->id, "node", o->node_uid, "pool",
				   o->pool);
		rc = h->ops->marker_write(h, root, marker, &err);
	} else if (rc == -ENOENT || rc == -ENOTEMPTY) {
		fail(ret, "Failed", "MarkerMissing",
		     "%s holds no marker of brick %s although it %s: has somebody else written "
		     "there? Restore it or remove it "
		     "from the spec",
		     root, o->id, rc == -ENOENT ? "was in use before" : "holds files");
		return false;
	} else if (rc == 0 && !marker_fits(marker, o)) {
		fail(ret, "Failed", "ForeignBrick",
		     "%s is a brick of another node or another name (%s): it stays untouched; "
		     "remove it from the spec",
		     root, jstr(marker, "id") ? jstr(marker, "id") : "?");
		return false;
	}
	if (rc < 0) {
		fail(ret, "Failed", "MarkerFailed", "%s", error_text(&err, rc));
		return false;
	}
	return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */
/*
 * Is what has the name of a brick's disk, which is nowhere, another disk? Where both say who they
 * are, that decides: the same disk without its file system was erased, or is broken, and is not
 * made anew unasked. Where one of them does not, an empty device is taken for another one: a disk
 * that is merely away has no name at all, and of one that was erased nothing is left that a brick
 * could be. A device with data on it is not: that somebody once allowed to erase what had this name
 * says nothing of what has it today.
 */
static bool both_say(const json_t *record, const struct device_facts *f)
{
	return jstr(record, "wwn") && f->wwn[0];
}

static bool is_another(const json_t *record, const struct device_facts *f)
{
	return both_say(record, f) ? !streq(jstr(record, "wwn"), f->wwn) : !f->signature[0];
}

/*
 * Another disk has its name and can be used, or is in use already: as the brick that took its
 * place.
 */
static bool is_replaced(struct node_host *h, const struct brick_order *o, const json_t *record,
			const struct device_facts *now, bool settled, struct device_verdict *there)
{
	char by[BRICK_OWNER_MAX];

	/* whatever wipe says: that is of a disk that had the name when it was written */
	device_judge(o->device, now, false, there);
	if (jbool(record, "replaced") && now->error == 0 && now->uuid[0] &&
	    brick_recorded(h, now->uuid, o->id, by, NULL) > 0)
		return true;
	return (settled || jbool(record, "replaced")) && streq(there->state, "Available") &&
	       is_another(record, now) && !brick_spoken_for(h, o, o->device, now, there);
}

static void say_instead(const struct device_facts *now, char text[static BRICK_OWNER_MAX])
{
	if (now->error)
		snprintf(text, BRICK_OWNER_MAX, "error %d", now->error);
	else
		snprintf(text, BRICK_OWNER_MAX, "%s %u:%u %lld", now->wwn, now->major, now->minor,
			 (long long)now->size);
}

/*
 * What is to be done about what has the name of a disk that is away. What wipe lists was written of
 * another disk: it does not help here.
 */
static char *advice(const struct brick_order *o, const struct device_facts *now, bool settled,
		    const struct device_verdict *there)
{
	if (now->error)
		return xstrdup("");
	if (!settled)
		return xstrdup("; what has its name now may be used in its place soon");
	if (streq(there->reason, "Signature"))
		return xasprintf(", or, if %s is to take its place, which carries data (%s), erase "
				 "that: `wipefs -a %s`",
				 o->device, now->signature, o->device);
	return there->message[0] ? xasprintf("; what has its name now stays as it is: %.250s",
					     there->message)
				 : xstrdup("");
}

/* Its disk is nowhere; `now`: what has its name. */
static void miss(struct node_host *h, const struct brick_order *o, json_t *record,
		 const struct device_facts *now, struct brick_result *ret)
{
	cleanup_free char *at = mountpoint_of(o->path, o->id);
	struct device_verdict there;
	const char *wwn = jstr(record, "wwn");
	bool settled;

	say_instead(now, ret->instead);
	settled = streq(o->settled, ret->instead);
	/*
	 * nothing can be done with what is left of its mount, which keeps the disk's name from the
	 * next one
	 */
	h->ops->unmount(h, at, NULL);
	if (is_replaced(h, o, record, now, settled, &there)) {
		fail(ret, "Missing", "Replaced",
		     "The disk of brick %s (file system %s) is not there, and another one is in "
		     "its place at %s: a new brick can be made there",
		     o->id, ret->uuid, o->device);
		/* what serves as another brick already is no broken one of this */
		ret->unsure = streq(there.state, "Available") && !both_say(record, now);
		if (jbool(record, "replaced"))
			return;
		json_object_set_new(record, "replaced", json_true());
		record_put(h, o->id, record, NULL);
	} else if (now->error == 0 && wwn && streq(wwn, now->wwn)) {
		fail(ret, "Missing", "Erased",
		     "%s is the disk of brick %s (%s), but its file system %s is not on it any "
		     "more: restore it, or remove the device from the spec and add it again",
		     o->device, o->id, wwn, ret->uuid);
	} else {
		cleanup_free char *then = advice(o, now, settled, &there);

		fail(ret, "Missing", "NotFound",
		     "The disk of brick %s (%s, file system %s) is not there: attach it again%s",
		     o->id, o->device, ret->uuid, then);
	}
}

/* It has the brick's file system, and is the very disk that this was on: no copy comes first. */
static bool is_its_disk(const json_t *record, const struct device_facts *f)
{
	const char *wwn = jstr(record, "wwn");

	return !f->error && !f->held && wwn && streq(wwn, f->wwn) &&
	       strcasecmp(f->uuid, jstr(record, "uuid")) == 0;
}

/* Where it is found under another name than the order's, `seen` becomes what is there. */
static int find(struct node_host *h, const struct brick_order *o, const json_t *record,
		struct device_facts *seen, char device[static DEVICE_PATH_MAX], struct error *err)
{
	struct device_facts found;
	int rc = is_its_disk(record, seen) ? 1 : brick_find(h, record, device, err);

	if (rc < 0)
		return rc;
	if (rc == 0) {
		h->ops->probe_device(h, device, &found);
		rc = !seen->held && device_same(seen, &found);
	}
	if (rc > 0)
		snprintf(device, DEVICE_PATH_MAX, "%s", o->device);
	else
		*seen = found;
	return 0;
}

/*
 * The device that carries our file system; "" when it was never made, and may be made on what was
 * seen; false: a verdict was given.
 */
static bool locate(struct node_host *h, const struct brick_order *o, json_t *record, bool ready,
		   struct device_facts *seen, struct brick_result *ret)
{
	struct error err = ERROR_INIT;
	int rc;

	h->ops->probe_device(h, o->device, seen);
	rc = find(h, o, record, seen, ret->device, &err);
	if (rc == 0)
		return true;
	ret->device[0] = '\0';
	/* what was never made is on none that cannot be read; what was may be */
	if (rc != -ENOENT && (ready || rc != -EIO)) {
		fail(ret, "Failed", rc == -ENOTUNIQ ? "Ambiguous" : "ProbeFailed", "%s",
		     error_text(&err, rc));
		return false;
	}
	if (ready) {
		miss(h, o, record, seen, ret);
		return false;
	}
	device_judge(o->device, seen, o->wipe, &ret->verdict);
	return streq(ret->verdict.state, "Available") &&
	       !brick_spoken_for(h, o, o->device, seen, &ret->verdict);
}

/* On the device that was seen, in place of what was seen on it. */
static bool format(struct node_host *h, const struct brick_order *o, const char *device,
		   const struct device_facts *seen, struct brick_result *ret)
{
	struct error err = ERROR_INIT;
	/* an XFS label has 12 bytes: the digits of "b-0123456789ab" */
	const char *label = strlen(o->id) > 12 ? o->id + strlen(o->id) - 12 : o->id;
	int rc = h->ops->format(h, device, seen, ret->uuid, label, &err);

	if (rc < 0)
		fail(ret, "Failed",
		     rc == -EBUSY    ? "InUse"
		     : rc == -ESTALE ? "Changed"
				     : "FormatFailed",
		     "%s", error_text(&err, rc));
	return rc >= 0;
}

/* Never used, and ours by its UUID: what a crash during mkfs left is made again. */
static bool make_again(struct node_host *h, const struct brick_order *o,
		       const struct device_facts *seen, int rc, struct brick_result *ret)
{
	return rc != -EBUSY && rc != -ETIMEDOUT && strcasecmp(seen->uuid, ret->uuid) == 0 &&
	       !brick_spoken_for(h, o, ret->device, seen, &ret->verdict) &&
	       format(h, o, ret->device, seen, ret);
}

/*
 * A disk that failed and is back under the same name and number left a file system that was shut
 * down, and answers everything with errors for ever. Nothing can be lost by unmounting it; while
 * somebody has files of it open that is refused, and it is tried again at the next look.
 */
static int mount_again(struct node_host *h, const struct brick_order *o, const char *at,
		       const struct brick_result *r, struct error *err)
{
	cleanup_free char *root = root_of(o->path);
	cleanup_json json_t *marker = NULL;
	int rc;

	if (h->ops->marker_read(h, root, &marker, NULL) != -EIO)
		return 0;
	rc = h->ops->unmount(h, at, err);
	return rc < 0 ? rc : h->ops->mount(h, r->device, r->uuid, at, err);
}

static bool mount_device(struct node_host *h, const struct brick_order *o, bool ready,
			 const struct device_facts *seen, struct brick_result *ret)
{
	cleanup_free char *at = mountpoint_of(o->path, o->id);
	struct error err = ERROR_INIT;
	int rc = h->ops->mount(h, ret->device, ret->uuid, at, &err);

	if (rc < 0 && !ready && make_again(h, o, seen, rc, ret))
		rc = h->ops->mount(h, ret->device, ret->uuid, at, &err);
	if (rc > 0)
		rc = mount_again(h, o, at, ret, &err);
	if (rc < 0) {
		fail(ret, "Failed", "MountFailed", "%s", error_text(&err, rc));
		return false;
	}
	return true;
}

static int not_in_volume(struct node_host *h, const json_t *record, struct error *err);

/* Another brick is in use under the name that its device had. */
static bool place_taken(struct node_host *h, const struct brick_order *o)
{
	cleanup_json json_t *records = brick_records(h);
	const json_t *r;
	size_t i;

	json_array_foreach (records, i, r)
		if (!streq(jstr(r, "id"), o->id) && streq(jstr(r, "device"), o->device) &&
		    jbool(r, "ready") && !jbool(r, "released"))
			return true;
	return false;
}

/* A disk that was replaced is back, and its volume has let go of it: it is neither used nor erased. */
static bool came_too_late(struct node_host *h, const struct brick_order *o, const json_t *record,
			  struct brick_result *ret)
{
	struct error err = ERROR_INIT;
	int rc;

	if (!jbool(record, "replaced") || !place_taken(h, o))
		return false;
	rc = not_in_volume(h, record, &err);
	if (rc == -EBUSY)
		return false;
	if (rc < 0)
		fail(ret, "Failed", "VolumeUnknown", "%s", error_text(&err, rc));
	else
		fail(ret, "Refused", "OldDisk",
		     "%.200s holds what brick %s had when another disk took its place at %s: it is "
		     "neither used nor erased; take it away, or erase it with `wipefs -a`",
		     ret->device, o->id, o->device);
	return true;
}

static bool prepare_device(struct node_host *h, const struct brick_order *o, json_t *record,
			   bool ready, struct device_facts *seen, struct brick_result *ret)
{
	if (!locate(h, o, record, ready, seen, ret))
		return false;
	if (ret->device[0] && came_too_late(h, o, record, ret))
		return false;
	if (!ret->device[0]) {
		/* locate gives no name only to what was never made; where it does, that is no leave to format */
		if (ready) {
			fail(ret, "Missing", "NotFound", "The disk of brick %s is not there", o->id);
			return false;
		}
		if (!format(h, o, o->device, seen, ret))
			return false;
		snprintf(ret->device, sizeof(ret->device), "%s", o->device);
	}
	return mount_device(h, o, ready, seen, ret);
}

/* What it lies beside says that this is the right place: an empty mount point does not. */
static int find_parent(struct node_host *h, const char *directory, const char *parent,
		       struct error *err)
{
	cleanup_json json_t *marker = NULL;
	int rc = h->ops->marker_read(h, directory, &marker, err);

	return rc < 0 ? rc : streq(jstr(marker, "id"), parent) ? 0 : -ENOENT;
}

static bool prepare_beside(struct node_host *h, const struct brick_order *o,
			   struct brick_result *ret)
{
	struct error err = ERROR_INIT;
	int rc = find_parent(h, o->directory, o->parent, &err);

	snprintf(ret->device, sizeof(ret->device), "%s", o->directory);
	if (rc == 0)
		return true;
	fail(ret, "Failed", "ParentMissing",
	     "%s does not hold brick %s, beside which brick %s lies: %s", o->directory, o->parent,
	     o->id, err.message[0] ? err.message : "it holds another");
	return false;
}

static bool prepare_directory(struct node_host *h, const struct brick_order *o, bool ready,
			      struct brick_result *ret)
{
	struct device_facts facts;

	snprintf(ret->device, sizeof(ret->device), "%s", o->directory);
	h->ops->probe_directory(h, o->directory, &facts);
	if (ready)
		facts.free = facts.free < DEVICE_SIZE_MIN
				     ? DEVICE_SIZE_MIN
				     : facts.free; /* it may have filled up since */
	device_judge(o->directory, &facts, false, &ret->verdict);
	return streq(ret->verdict.state, "Available");
}

/*
 * It is in use, on that disk; what is on record already is not written again. Of a device that says
 * nothing the record does neither: what is above a disk (an array, a volume) is not that disk.
 */
static int note_ready(struct node_host *h, const char *id, json_t *record, const char *wwn,
		      struct error *err)
{
	const char *had = jstr(record, "wwn");

	if (jbool(record, "ready") && !jbool(record, "replaced") && streq(had ? had : "", wwn))
		return 0;
	json_object_set_new(record, "ready", json_true());
	json_object_del(record, "replaced");
	json_object_del(record, "wwn");
	if (wwn[0])
		json_object_set_new(record, "wwn", json_string(wwn));
	return record_put(h, id, record, err);
}

void brick_prepare(struct node_host *h, const struct brick_order *o, struct brick_result *ret)
{
	struct device_facts seen = { 0 };
	cleanup_json json_t *record = NULL;
	struct error err = ERROR_INIT;
	bool ready;
	int rc;

	*ret = (struct brick_result){ 0 };
	rc = record_get(h, o->id, &record, &err);
	if (rc < 0 || !jstr(record, "uuid")) {
		fail(ret, "Failed", "NoRecord", "The record of brick %s cannot be read: %s", o->id,
		     error_text(&err, rc));
		return;
	}
	if (!same_pool(record, o->pool_uid)) {
		refuse_other_pool(o, record, &err);
		fail(ret, "Failed", "OtherPool", "%s", err.message);
		return;
	}
	/* the record may have been written by one who did not know the pool */
	ready = jbool(record, "ready") || o->prepared;
	snprintf(ret->uuid, sizeof(ret->uuid), "%s", jstr(record, "uuid"));
	if (!(o->device	  ? prepare_device(h, o, record, ready, &seen, ret)
	      : o->parent ? prepare_beside(h, o, ret)
			  : prepare_directory(h, o, ready, ret)) ||
	    !check_marker(h, o, ready, ret))
		return;
	rc = note_ready(h, o->id, record, seen.wwn, &err);
	if (rc < 0) {
		fail(ret, "Failed", "RecordFailed", "%s", error_text(&err, rc));
		return;
	}
	ret->verdict = (struct device_verdict){ .state = "Ready", .reason = "" };
}

/* ---- releasing ----------------------------------------------------------------------------- */
/* "freeing" is on record before the signature goes: a disk without it is then known to be free. */
static int release_device(struct node_host *h, const char *name, json_t *record, struct error *err)
{
	cleanup_free char *at = mountpoint_of(jstr(record, "path"), jstr(record, "id"));
	char device[DEVICE_PATH_MAX];
	const char *uuid = jstr(record, "uuid");
	struct error why = ERROR_INIT;
	/* while it is mounted, it is known from its copies */
	int found = brick_find(h, record, device, &why), rc = h->ops->unmount(h, at, err);

	if (rc < 0)
		return rc;
	rc = found;
	if (rc == -ENOENT || rc == -EIO)
		return jbool(record, "ready") && !jbool(record, "freeing") ? 1 : 0;
	if (rc < 0)
		return error_set(err, -rc, "%s", error_text(&why, rc));
	/*
	 * given up while it was away, and not by a person: what is on it is destroyed by nobody
	 * unasked
	 */
	if (jbool(record, "replaced"))
		return 1;
	json_object_set_new(record, "freeing", json_true());
	rc = h->ops->record_put(h, name, record, err);
	return rc < 0 ? rc : h->ops->wipe(h, device, uuid, err);
}

/* Where its file system is not mounted, nothing is there to be removed, and yet it is not gone. */
static int release_beside(struct node_host *h, const json_t *record, const char *root,
			  struct error *err)
{
	const char *parent = jstr(record, "parent");
	cleanup_json json_t *beside = NULL;

	if (find_parent(h, jstr(record, "directory"), parent, NULL) == 0)
		return h->ops->tree_remove(h, root, jstr(record, "id"), err);
	/* it went with what it lay on, where that has been freed */
	return record_get(h, parent, &beside, NULL) == -ENOENT ? 0 : 1;
}

/* Whoever ordered it may have been mistaken: only what glusterd here does not count among a volume's bricks is destroyed. */
static int not_in_volume(struct node_host *h, const json_t *record, struct error *err)
{
	struct gluster_volume volume cleanup_with(gluster_volume_done) = { 0 };
	struct glusterd_state g = { 0 };
	const char *id = jstr(record, "id"), *pool = jstr(record, "pool");
	int rc;

	if (!pool)
		return 0;
	rc = h->ops->glusterd_ensure(h, false, &g, err);
	if (rc < 0)
		return rc;
	if (!g.running)
		return error_set(err, EAGAIN,
				 "Brick %s is kept until glusterd runs on this node again, and can "
				 "say that volume %s has let go of it",
				 id, pool);
	rc = h->ops->volume_get(h, pool, VOLUME_LOOK_DEFINITION, &volume, err);
	if (rc == -ENOENT)
		return 0;
	for (size_t i = 0; rc == 0 && i < volume.brick_count; i++)
		if (streq(volume.bricks[i].path, jstr(record, "path")))
			return error_set(
				err, EBUSY,
				"Brick %s is still part of volume %s; it is kept until the "
				"volume has let go of it",
				id, pool);
	return rc;
}

int brick_release(struct node_host *h, const char *id, struct error *err)
{
	cleanup_json json_t *record = NULL;
	cleanup_free char *name = NULL, *root = NULL;
	struct error kept = ERROR_INIT;
	int rc;

	if (!id_valid(id))
		return error_set(err, EINVAL, "\"%s\" is not a brick's id", id ? id : "");
	rc = record_get(h, id, &record, err);
	if (rc == -ENOENT || (rc == 0 && !jstr(record, "path")))
		return 0;
	if (rc < 0)
		return rc;
	rc = not_in_volume(h, record, &kept);
	if (rc < 0) {
		if (err)
			*err = kept;
		return rc;
	}
	name = record_name(id);
	root = root_of(jstr(record, "path"));
	/* On record first: should the plan forget it, it is still known to be free. */
	if (!jbool(record, "released")) {
		json_object_set_new(record, "released", json_true());
		rc = h->ops->record_put(h, name, record, err);
		if (rc < 0)
			return rc;
	}
	rc = jstr(record, "parent")	 ? release_beside(h, record, root, err)
	     : jstr(record, "directory") ? h->ops->tree_remove(h, root, id, err)
					 : release_device(h, name, record, err);
	if (rc > 0 && !jbool(record, "away")) {
		int put;

		json_object_set_new(record, "away", json_true());
		put = h->ops->record_put(h, name, record, err);
		return put < 0 ? put : 1;
	}
	return rc != 0 ? rc : h->ops->record_remove(h, name, err);
}

/* ---- looking ------------------------------------------------------------------------------- */
bool brick_known(struct node_host *h, const char *id, const char *pool_uid)
{
	cleanup_json json_t *record = NULL;

	return record_get(h, id, &record, NULL) == 0 && jstr(record, "uuid") &&
	       jbool(record, "ready") && !jbool(record, "released") && same_pool(record, pool_uid);
}

char *brick_pool_uid(struct node_host *h, const char *id)
{
	cleanup_json json_t *record = NULL;
	const char *uid = record_get(h, id, &record, NULL) == 0 ? jstr(record, "poolUid") : NULL;

	return uid ? xstrdup(uid) : NULL;
}

bool brick_is_there(struct node_host *h, const char *path, const char *id)
{
	cleanup_free char *root = root_of(path);
	cleanup_json json_t *marker = NULL;

	return h->ops->marker_read(h, root, &marker, NULL) == 0 && streq(jstr(marker, "id"), id);
}

/* ---- records ------------------------------------------------------------------------------- */
json_t *brick_records(struct node_host *h)
{
	struct strv names cleanup_with(strv_done) = { 0 };
	json_t *records = json_array();

	h->ops->record_list(h, BRICK_RECORD_PREFIX, &names, NULL);
	for (size_t i = 0; i < names.count; i++) {
		json_t *record = NULL;

		if (h->ops->record_get(h, names.items[i], &record, NULL) < 0)
			continue;
		if (jstr(record, "id") && jstr(record, "path"))
			json_array_append_new(records, record);
		else
			json_decref(record);
	}
	return records;
}

void brick_list_released(struct node_host *h, struct strv *ids)
{
	cleanup_json json_t *records = brick_records(h);
	const json_t *r;
	size_t i;

	json_array_foreach (records, i, r)
		if (jbool(r, "released") && !strv_contains(ids, jstr(r, "id")))
			strv_add(ids, jstr(r, "id"));
}
