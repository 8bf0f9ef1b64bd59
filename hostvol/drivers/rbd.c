/* SPDX-License-Identifier: Apache-2.0 */
/* Ceph RBD: an image mapped by the kernel, through sysfs alone; no program of Ceph is needed. */
#include "rbd.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "block/disk_volume.h"
#include "block/events.h"
#include "block/mark.h"
#include "core/recorded.h"
#include "drivers.h"

#include <errno.h>
#include <stdio.h>

#define BUS "/sys/bus/rbd"
#define MARKS "rbd"
#define ATTEMPTS "rbd-attempts" /* marked until what was mapped is seen to be the volume */
#define KEY_MAX 256
#define READY_MS 15000
#define GONE_MS 15000
#define BUSY_MS 10000 /* for who looks at a disk for a moment to let go of it */
#define WRITE_MS 60000
#define LOCK_S 20 /* for who holds the lock to give it up, or to be found dead */

/* What becomes an option for the kernel must not end it. */
static int check_word(const char *value, struct error *err)
{
	if (strlen(value) > 1023 || strpbrk(value, " \\\"'=/"))
		return error_set(err, EINVAL, "too long, or with a blank, quote, slash or =");
	return 0;
}

static int check_ports(const char *value, struct error *err)
{
	char port[16];

	for (const char *p = value; *p;) {
		size_t len = strcspn(p, ",");

		snprintf(port, sizeof(port), "%.*s", (int)len, p);
		if (len >= sizeof(port) || check_number_to(port, 65535, err) < 0)
			return error_set(err, EINVAL, "\"%.40s\" is no port", p);
		p += len + (p[len] == ',');
	}
	return 0;
}

static int check_image(const char *value, struct error *err)
{
	struct rbd_image image;

	return rbd_name_parse(value, &image, err);
}

static int check_keyring(const char *value, struct error *err)
{
	unsigned char key[KEY_MAX];
	int r = rbd_key_parse(value, key, sizeof(key), err);

	explicit_bzero(key, sizeof(key));
	return r < 0 ? r : 0;
}

static const struct param params[] = {
	{ .name = "name",
	  .aliases = (const char *const[]){ "image", NULL },
	  .required = true,
	  .identity = true,
	  .check = check_image,
	  .help = "POOL/IMAGE, or POOL/NAMESPACE/IMAGE.",
	  .example = "rbd/pvc-0f3a" },
	{ .name = "hosts",
	  .aliases = (const char *const[]){ "monitors", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .check = check_word,
	  .help = "The cluster's monitors.",
	  .example = "192.0.2.10,192.0.2.11" },
	{ .name = "ports",
	  .type = PARAM_LIST,
	  .fallback = "6789",
	  .check = check_ports,
	  .help = "Their ports, one for each or one for all. Where all are 3300, the protocol's "
		  "second version is spoken." },
	{ .name = "clusterName",
	  .fallback = "ceph",
	  .check = check_word,
	  .help = "Names the file of a keyring that is not given." },
	{ .name = "clusterFsid",
	  .aliases = (const char *const[]){ "fsid", NULL },
	  .identity = true,
	  .check = check_word,
	  .help = "The cluster's own identifier. Where it is given, no other cluster's image is "
		  "connected.",
	  .example = "3f1c2a9e-0000-4000-8000-00000000c0de" },
	{ .name = "authUsername",
	  .aliases = (const char *const[]){ "userId", NULL },
	  .fallback = "admin",
	  .check = check_word,
	  .help = "Who this host is to the cluster, without \"client.\"." },
	{ .name = "keyring",
	  .aliases = (const char *const[]){ "key", "authPassword", NULL },
	  .type = PARAM_TEXT,
	  .secret = true,
	  .fallback = "/etc/ceph/CLUSTER.client.USER.keyring",
	  .check = check_keyring,
	  .help = "The user's key, or a keyring file's text with it. It goes to the kernel's "
		  "keyring "
		  "for the moment of mapping, and into no file." },
	{ .name = "authEnabled",
	  .type = PARAM_BOOLEAN,
	  .fallback = "true",
	  .help = "False for a cluster without authentication." },
	{ .name = "exclusive",
	  .type = PARAM_BOOLEAN,
	  .fallback = "false",
	  .help = "True: the image's exclusive lock is held for as long as it is mapped, so that "
		  "no "
		  "other host writes to it; who holds it and is gone is blocklisted by the "
		  "cluster. "
		  "The image needs the feature exclusive-lock." },
	{ .name = "secretType", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "secretUuid", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "doLocalAttach", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ 0 },
};

/* Which image of which cluster, as the parameters and the record have it. */
struct wanted {
	struct rbd_image image;
	const char *fsid;
	char *monitors;
	bool v2;
};

static void wanted_done(struct wanted *w)
{
	free(w->monitors);
}
#define cleanup_wanted __attribute__((cleanup(wanted_done)))

static int wanted_read(const struct attachment *a, struct wanted *ret, struct error *err)
{
	int r = rbd_name_parse(attachment_param(a, "name"), &ret->image, err);

	if (r < 0)
		return r;
	ret->fsid = attachment_param(a, "clusterFsid");
	if (!ret->fsid)
		ret->fsid = attachment_detail(a, "fsid");
	return rbd_monitors(attachment_param(a, "hosts"), attachment_param(a, "ports"),
			    &ret->monitors, &ret->v2, err);
}

/* The first of the monitors in the order of the alphabet: callers list them in any. */
static int rbd_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	const char *hosts = attachment_param(a, "hosts"), *first = hosts;
	int r;

	for (const char *p = hosts; *p; p += *p == ',') {
		if (strncmp(p, first, strcspn(p, ",") + 1) < 0)
			first = p;
		p += strcspn(p, ",");
	}
	r = text_format(&target, err, "RBD %.*s %s", (int)strcspn(first, ","), first,
			attachment_param(a, "name"));
	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

/* ---- mapping -------------------------------------------------------------------------------- */

static const char *user_of(const struct attachment *a)
{
	const char *user = attachment_param(a, "authUsername");

	return !user ? "admin" : str_has_prefix(user, "client.") ? user + 7 : user;
}

/* The length of the user's key; 0 where none is needed. */
static int read_key(const struct call *c, const struct attachment *a, unsigned char *buf,
		    size_t size, struct error *err)
{
	const char *given = attachment_param(a, "keyring"),
		   *cluster = attachment_param(a, "clusterName");
	const json_t *enabled = json_object_get(a->params, "authEnabled");
	cleanup_free char *path = NULL, *text = NULL;
	int r;

	if (json_is_false(enabled))
		return 0;
	if (given)
		return rbd_key_parse(given, buf, size, err);
	r = text_format(&path, err, "%s/etc/ceph/%s.client.%s.keyring", c->host->root,
			cluster ? cluster : "ceph", user_of(a));
	if (r < 0)
		return r;
	r = file_read(path, 65536, &text, NULL, NULL);
	if (r < 0)
		return error_errno(err, -r, "keyring is not given, and %s cannot be read", path);
	r = rbd_key_parse(text, buf, size, err);
	explicit_bzero(text, strlen(text));
	return r < 0 ? error_prefix(err, "%s", path) : r;
}

/* "add_single_major" where the kernel has it. */
static int bus_file(const struct call *c, const char *what, char *buf, size_t size,
		    struct error *err)
{
	snprintf(buf, size, BUS "/%s_single_major", what);
	if (!sys_exists(c, "%s", buf))
		snprintf(buf, size, BUS "/%s", what);
	return sys_exists(c, "%s", buf)
		       ? 0
		       : error_set(err, ENODEV, "this host has no RBD: load the module rbd");
}

static bool is_exclusive(const struct attachment *a)
{
	return json_is_true(json_object_get(a->params, "exclusive"));
}

static int explain(int r, const struct attachment *a, const struct wanted *w, struct error *err)
{
	const char *name = attachment_param(a, "name");

	if (r == -ENOENT)
		return error_set(err, ENOENT, "the cluster at %.100s has no image %.150s",
				 w->monitors, name);
	if (r == -EACCES || r == -EPERM)
		return error_set(err, EACCES,
				 "the cluster at %.100s does not accept client.%.60s with this key",
				 w->monitors, user_of(a));
	if (r == -EROFS || (r == -ETIMEDOUT && is_exclusive(a)))
		return error_set(
			err, EBUSY,
			"another host holds the lock of %.150s: end its use there; one that is "
			"gone is found dead after half a minute",
			name);
	if (r == -EINVAL && is_exclusive(a))
		return error_set(
			err, EINVAL,
			"the kernel cannot map %.150s with its lock: the image needs the feature "
			"exclusive-lock, and no feature that the kernel lacks",
			name);
	if (r == -ENXIO || r == -EINVAL)
		return error_errno(err, -r,
				   "the kernel cannot map %.150s (the image may have features that "
				   "it lacks; its log says which)",
				   name);
	return error_errno(err, -r, "cannot map %.150s from %.100s", name, w->monitors);
}

static int map(const struct call *c, struct attachment *a, const struct wanted *w,
	       struct error *err)
{
	const char *mode = attachment_param(a, "accessMode");
	cleanup_free char *text = NULL;
	char lock[48] = "";
	unsigned char key[KEY_MAX];
	char file[64];
	int r = bus_file(c, "add", file, sizeof(file), err), key_len, left;

	if (r < 0)
		return r;
	key_len = read_key(c, a, key, sizeof(key), err);
	if (key_len < 0)
		return key_len;
	left = call_left(c, WRITE_MS, err);
	r = left < 0 ? left : mark_set(c, ATTEMPTS, a->target, err);
	if (r >= 0)
		r = mark_set(c, MARKS, a->target, err);
	if (is_exclusive(a))
		snprintf(lock, sizeof(lock), ",exclusive,lock_timeout=%d",
			 left / 2000 < LOCK_S ? left / 2000 + 1 : LOCK_S);
	if (r >= 0)
		r = text_format(&text, err, "%s name=%s%s%s%s%s,%s%s,mount_timeout=%d %s %s -",
				w->monitors, user_of(a), key_len ? ",key=" RBD_KEY_NAME : "",
				w->v2 ? ",ms_mode=prefer-crc" : "",
				w->image.space[0] ? ",_pool_ns=" : "", w->image.space,
				mode && streq(mode, "ro") ? "ro" : "rw", lock, left / 1000 + 1,
				w->image.pool, w->image.image);
	if (r >= 0) {
		r = c->host->rbd_add(c->host, file, text, key, (size_t)key_len, left);
		if (r < 0)
			r = explain(r, a, w, err);
	}
	explicit_bzero(key, sizeof(key));
	return r;
}

/* ---- the disk ------------------------------------------------------------------------------- */

struct awaited {
	const struct call *c;
	const struct wanted *wanted;
	struct rbd_mapping *mapping;
};

/*
 * The image's mapping, or, in its place, one of another cluster that has the monitors' addresses by
 * now: that is refused as it stands, since to map it once more would be no other image.
 */
static int find_at_monitors(const struct call *c, const struct wanted *w, struct rbd_mapping *ret)
{
	int r = rbd_find(c, &w->image, w->fsid, w->monitors, ret);

	return r == 0 && w->fsid[0] ? rbd_find(c, &w->image, "", w->monitors, ret) : r;
}

static int is_there(void *arg)
{
	struct awaited *w = arg;

	return find_at_monitors(w->c, w->wanted, w->mapping) == 1 &&
	       disk_is_ready(w->c, w->mapping->disk.name);
}

static int is_gone(void *arg)
{
	struct awaited *w = arg;

	return !sys_exists(w->c, BUS "/devices/%u", w->mapping->id);
}

/* The image must be the one that was recorded; the first time it is put into the record. */
static int check_identity(struct attachment *a, const struct rbd_mapping *m, struct error *err)
{
	const char *fsid = attachment_detail(a, "fsid"), *id = attachment_detail(a, "imageId"),
		   *expected = attachment_param(a, "clusterFsid");
	char now[120], before[120];
	int r;

	if (expected && !streq(expected, m->fsid))
		return error_set(err, ESTALE,
				 "%s is an image of cluster %.60s, not of %.60s as expected: "
				 "another volume stands there (see the monitors and clusterFsid)",
				 m->disk.path, m->fsid, expected);
	if ((fsid[0] && !streq(fsid, m->fsid)) || (id[0] && !streq(id, m->image_id))) {
		snprintf(now, sizeof(now), "image %.32s of cluster %.40s", m->image_id, m->fsid);
		snprintf(before, sizeof(before), "image %.32s of cluster %.40s", id, fsid);
		return recorded_differs(a, m->disk.path, now, before, err);
	}
	r = attachment_set_detail(a, "fsid", m->fsid, err);
	return r < 0 ? r : attachment_set_detail(a, "imageId", m->image_id, err);
}

/* One that somebody mapped before, without the lock, would give it to any host that asks. */
static int check_lock(const struct call *c, const struct attachment *a, const struct rbd_mapping *m,
		      struct error *err)
{
	char line[2048], *options;

	if (!is_exclusive(a))
		return 0;
	sys_line(c, line, sizeof(line), BUS "/devices/%u/config_info", m->id);
	options = strchr(line, ' ');
	return options && strstr(options, ",exclusive,")
		       ? 0
		       : error_set(err, EBUSY,
				   "%.150s is mapped here without its lock: unmap it first",
				   attachment_param(a, "name"));
}

/* udev's link by pool and image, where it leads to the disk. */
static int set_path(const struct call *c, struct attachment *a, const struct rbd_mapping *m,
		    struct error *err)
{
	char link[400], real[300];

	snprintf(link, sizeof(link), "/dev/rbd/%.300s", attachment_param(a, "name"));
	if (sys_resolve(c, real, sizeof(real), "%s", link) < 0 || !streq(real, m->disk.path))
		return disk_volume_set_path(a, &m->disk, NULL, err);
	return disk_volume_set_path(a, &m->disk, link, err);
}

/* ---- operations ----------------------------------------------------------------------------- */

static int rbd_connect(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_watch struct watch watch = WATCH_INIT;
	cleanup_wanted struct wanted w = { 0 };
	struct rbd_mapping m;
	struct awaited awaited = { .c = c, .wanted = &w, .mapping = &m };
	int r = wanted_read(a, &w, err);

	if (r >= 0)
		r = watch_open(c, &watch, err);
	if (r >= 0)
		r = find_at_monitors(c, &w, &m);
	if (r == 0)
		r = map(c, a, &w, err);
	if (r < 0)
		return r;
	r = watch_until(c, &watch, READY_MS, is_there, &awaited, err);
	if (r == -ETIMEDOUT && call_left(c, 0, err) >= 0)
		return error_set(err, EIO, "%.150s was mapped, and cannot be opened",
				 attachment_param(a, "name"));
	if (r >= 0)
		r = check_identity(a, &m, err);
	if (r < 0)
		return r;
	mark_clear(c, ATTEMPTS, a->target);
	r = check_lock(c, a, &m, err);
	return r < 0 ? r : set_path(c, a, &m, err);
}

static int find(const struct call *c, struct attachment *a, struct rbd_mapping *ret,
		struct error *err)
{
	cleanup_wanted struct wanted w = { 0 };
	int r = wanted_read(a, &w, err);

	return r < 0 ? r : rbd_find(c, &w.image, w.fsid, w.monitors, ret);
}

static int rbd_verify(const struct call *c, struct attachment *a, struct error *err)
{
	struct rbd_mapping m;
	int r = find(c, a, &m, err);

	if (r < 0)
		return r;
	if (r == 0)
		return error_set(err, ENOENT, "%.150s is not mapped any more: connect it again",
				 attachment_param(a, "name"));
	r = check_identity(a, &m, err);
	return r < 0 ? r : set_path(c, a, &m, err);
}

struct removal {
	const struct call *c;
	char file[64], text[32];
};

static int is_removed(void *arg)
{
	struct removal *o = arg;
	int r = sys_write(o->c, o->file, o->text, NULL);

	return r == -EBUSY ? 0 : r < 0 && r != -ENOENT ? r : 1;
}

/* udev looks at a disk that somebody has just written to and closed; it tells when it is done. */
static int order_removal(const struct call *c, struct watch *watch, struct removal *o,
			 const struct rbd_mapping *m, struct error *err)
{
	int r = watch_until(c, watch, BUSY_MS, is_removed, o, err);

	if (r == -ETIMEDOUT && call_left(c, 0, err) >= 0)
		return error_set(err, EBUSY, "%s is in use: a program has it open; end that first",
				 m->disk.path);
	if (r < 0 && r != -ETIMEDOUT && r != -ECANCELED)
		return error_errno(err, -r, "cannot unmap %s", m->disk.path);
	return r;
}

static int unmap(const struct call *c, struct rbd_mapping *m, bool force, struct error *err)
{
	cleanup_watch struct watch watch = WATCH_INIT;
	struct awaited awaited = { .c = c, .mapping = m };
	struct removal removal = { .c = c };
	int r = bus_file(c, "remove", removal.file, sizeof(removal.file), err);

	snprintf(removal.text, sizeof(removal.text), "%u%s", m->id, force ? " force" : "");
	if (r >= 0)
		r = watch_open(c, &watch, err);
	if (r >= 0)
		r = order_removal(c, &watch, &removal, m, err);
	if (r < 0)
		return r;
	r = watch_until(c, &watch, GONE_MS, is_gone, &awaited, err);
	return r == -ETIMEDOUT ? error_set(err, ETIMEDOUT, "%s was unmapped, but has not gone",
					   m->disk.path)
	       : r < 0	       ? r
			       : 0;
}

/* What an attempt has mapped of another cluster is known by its monitors alone. */
static int find_to_remove(const struct call *c, struct attachment *a, struct rbd_mapping *ret,
			  struct error *err)
{
	cleanup_wanted struct wanted w = { 0 };
	int r = wanted_read(a, &w, err);

	if (r < 0)
		return r;
	if (mark_is_set(c, ATTEMPTS, a->target))
		return find_at_monitors(c, &w, ret);
	return rbd_find(c, &w.image, w.fsid, w.monitors, ret);
}

static void clear_marks(const struct call *c, const char *target)
{
	mark_clear(c, MARKS, target);
	mark_clear(c, ATTEMPTS, target);
}

static int rbd_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	struct rbd_mapping m;
	int r;

	if (a->others)
		return 0;
	r = find_to_remove(c, a, &m, err);
	if (r > 0) {
		if (!mark_is_set(c, MARKS, a->target))
			return 0; /* somebody else mapped it */
		r = force ? 0 : disk_volume_release(c, a, &m.disk, err);
		if (r >= 0)
			r = unmap(c, &m, force, err);
	}
	if (r >= 0)
		clear_marks(c, a->target);
	return r;
}

static int rbd_extend(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	struct rbd_mapping before, after;
	char file[64];
	int r = rbd_verify(c, a, err);

	if (r >= 0)
		r = find(c, a, &before, err);
	if (r <= 0)
		return r < 0 ? r : error_set(err, ENODEV, "%s went away", a->path);
	/* the kernel has read the image's header again when this returns */
	snprintf(file, sizeof(file), BUS "/devices/%u/refresh", before.id);
	r = sys_write(c, file, "1", err);
	if (r >= 0)
		r = find(c, a, &after, err);
	if (r <= 0)
		return r < 0 ? r : error_set(err, ENODEV, "%s went away", a->path);
	return disk_volume_report(result, &before.disk, &after.disk, err);
}

static int rbd_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	struct rbd_mapping m;
	char step[300];
	int r = find(c, a, &m, err);

	if (r < 0)
		return r;
	snprintf(step, sizeof(step), "%s %.200s",
		 mark_is_set(c, MARKS, a->target) ? "unmap" : "leave mapped",
		 attachment_param(a, "name"));
	return disk_volume_plan(c, a, r ? &m.disk : NULL, step, result, err);
}

/* ---- audit ---------------------------------------------------------------------------------- */

struct orphan {
	const struct call *c;
	const char *host;
	struct rbd_image image;
	struct rbd_mapping mapping;
};

/* The target names one monitor without its port: "RBD HOST POOL/IMAGE". */
static int is_orphan(const char *device, void *userdata)
{
	struct orphan *o = userdata;
	char line[2048], fsid[64];
	const char *at;

	sys_line(o->c, line, sizeof(line), BUS "/devices/%s/config_info", device);
	line[strcspn(line, " ")] = '\0';
	at = strstr(line, o->host);
	/* the host is a whole one of the list, an IPv6 address in its bracket */
	if (!at || (at != line && at[-1] != ',' && at[-1] != '['))
		return 0;
	sys_line(o->c, fsid, sizeof(fsid), BUS "/devices/%s/cluster_fsid", device);
	return rbd_find(o->c, &o->image, fsid, "", &o->mapping);
}

static int remove_marked(const struct call *c, const char *target, bool repair, struct error *err)
{
	struct orphan o = { .c = c };
	cleanup_free char *copy = strdup(target);
	struct attachment nobody = { .state = STATE_CONNECTING };
	char *host = copy ? strchr(copy, ' ') : NULL, *name = host ? strchr(host + 1, ' ') : NULL;
	int r;

	if (!name)
		return 0;
	*name++ = '\0';
	o.host = host + 1;
	if (rbd_name_parse(name, &o.image, NULL) < 0)
		return 0;
	r = sys_each(c, BUS "/devices", is_orphan, &o);
	if (r <= 0 || !repair)
		return r;
	r = disk_volume_release(c, &nobody, &o.mapping.disk, err);
	if (r >= 0)
		r = unmap(c, &o.mapping, false, err);
	if (r >= 0)
		clear_marks(c, target);
	return r < 0 ? r : 1;
}

static int rbd_audit(const struct call *c, bool repair, json_t *findings, struct error *err)
{
	const struct mark_audit audit = { .kind = MARKS,
					  .what = "mapping",
					  .driver = "RBD",
					  .repair = repair,
					  .remove = remove_marked };

	return mark_audit(c, &audit, findings, err);
}

const struct driver driver_rbd = {
	.name = "RBD",
	.aliases = (const char *const[]){ "CEPH", NULL },
	.title = "Ceph RBD",
	.help = "An image of a Ceph cluster, mapped by the kernel's module rbd; no program of Ceph "
		"is "
		"needed. An image that was mapped before stays mapped. The path is udev's link by "
		"pool and image, where Ceph's rules are installed, else the device. As a CSI "
		"volume "
		"with a single writer it is mapped with exclusive; an image without the feature "
		"exclusive-lock needs fencing: none.",
	.params = params,
	.identity = (const char *const[]){ "fsid", "imageId", NULL },
	.prepare = rbd_prepare,
	.connect = rbd_connect,
	.disconnect = rbd_disconnect,
	.verify = rbd_verify,
	.extend = rbd_extend,
	.plan = rbd_plan,
	.audit = rbd_audit,
	.exclusive = "exclusive",
};
