/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a device is, before it is formatted: what is on it, and what may be inside it. */
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <stdio.h>

/*
 * The first record that is asked for: 1 and who it is. What cannot be read may be that record.
 */
struct question {
	struct node_host *h;
	const char *id; /* of the brick that the device is for: not its own record */
	const char *uuid;
	const struct device_facts *facts;
	int (*is)(const struct question *q, const json_t *record, struct error *err);
};

static int ask_records(const struct question *q, char by[static BRICK_OWNER_MAX], struct error *err)
{
	struct strv names cleanup_with(strv_done) = { 0 };
	int rc = q->h->ops->record_list(q->h, BRICK_RECORD_PREFIX, &names, err);

	for (size_t i = 0; rc >= 0 && i < names.count; i++) {
		cleanup_json json_t *record = NULL;

		rc = q->h->ops->record_get(q->h, names.items[i], &record, err);
		if (rc == -ENOENT)
			rc = 0;
		if (rc < 0 || !jstr(record, "uuid") || streq(jstr(record, "id"), q->id))
			continue;
		rc = q->is(q, record, err);
		if (rc <= 0)
			continue;
		snprintf(by, BRICK_OWNER_MAX, "brick %s of this node",
			 jstr(record, "id") ? jstr(record, "id") : "?");
		return 1;
	}
	return rc < 0 ? rc : 0;
}

static int has_uuid(const struct question *q, const json_t *record, struct error *err)
{
	return strcasecmp(jstr(record, "uuid"), q->uuid) == 0;
}

int brick_recorded(struct node_host *h, const char *uuid, const char *id,
		   char by[static BRICK_OWNER_MAX], struct error *err)
{
	struct question q = { .h = h, .id = id, .uuid = uuid, .is = has_uuid };

	return ask_records(&q, by, err);
}

/* ---- what is inside ------------------------------------------------------------------------ */
/*
 * A member of an array or volume group, an encrypted disk, or one with partitions shows a brick's
 * file system only while what is above it is up. One whose disk gave its name lies on that disk
 * itself, and so in no other.
 */
static bool may_be_inside(const json_t *record, const struct device_facts *f)
{
	const char *wwn = jstr(record, "wwn");

	return jbool(record, "ready") && !jstr(record, "parent") &&
	       (!jbool(record, "released") || jbool(record, "replaced")) &&
	       !(wwn && f->wwn[0] && !streq(wwn, f->wwn));
}

static int is_missing(const struct question *q, const json_t *record, struct error *err)
{
	struct node_host *h = q->h;
	char device[DEVICE_PATH_MAX];
	struct device_facts other;
	int rc;

	if (!may_be_inside(record, q->facts))
		return 0;
	if (jstr(record, "directory"))
		return !brick_is_there(h, jstr(record, "path"), jstr(record, "id"));
	rc = brick_find(h, record, device, err);
	if (rc < 0)
		return rc == -ENOENT || rc == -EIO ? 1 : rc;
	h->ops->probe_device(h, device, &other);
	return other.error || device_in(&other, q->facts);
}

static bool is_own(struct node_host *h, const char *id, const char *uuid)
{
	cleanup_free char *name = xasprintf(BRICK_RECORD_PREFIX "%s", id ? id : "");
	cleanup_json json_t *record = NULL;

	return id && *uuid && h->ops->record_get(h, name, &record, NULL) == 0 &&
	       jstr(record, "uuid") && strcasecmp(jstr(record, "uuid"), uuid) == 0;
}

/* 1: some brick of this node is nowhere else, and may be in what is on the device. */
static int hidden(struct node_host *h, const char *id, const struct device_facts *f,
		  char by[static BRICK_OWNER_MAX], struct error *err)
{
	struct question q = { .h = h, .id = id, .facts = f, .is = is_missing };

	return f->signature[0] && !is_own(h, id, f->uuid) ? ask_records(&q, by, err) : 0;
}

/* ---- the answer ---------------------------------------------------------------------------- */
static void cannot_be_asked(const char *device, const struct error *err, int rc,
			    struct device_verdict *ret)
{
	*ret = (struct device_verdict){ .state = "Failed", .reason = "OwnerUnknown" };
	snprintf(ret->message, sizeof(ret->message),
		 "%.150s carries data, and whose it is cannot be asked: %s", device,
		 error_text(err, rc));
}

bool brick_spoken_for(struct node_host *h, const struct brick_order *o, const char *device,
		      const struct device_facts *f, struct device_verdict *ret)
{
	char by[BRICK_OWNER_MAX] = "";
	struct error err = ERROR_INIT;
	int rc = f->uuid[0] ? brick_recorded(h, f->uuid, o->id, by, &err) : 0;

	if (rc == 0 && f->uuid[0] && o->claimed)
		rc = o->claimed(o->userdata, f->uuid, o->id, by, &err);
	if (rc > 0) {
		*ret = (struct device_verdict){ .state = "Refused", .reason = "OtherBrick" };
		snprintf(ret->message, sizeof(ret->message),
			 "%.150s carries the file system of %s and stays untouched, whatever wipe "
			 "says: take that brick out of its store first, or erase the device with "
			 "`wipefs -a`",
			 device, by);
		return true;
	}
	if (rc == 0)
		rc = hidden(h, o->id, f, by, &err);
	if (rc > 0) {
		*ret = (struct device_verdict){ .state = "Refused", .reason = "OwnerUnknown" };
		snprintf(ret->message, sizeof(ret->message),
			 "%.100s carries data (%.40s) and stays untouched, whatever wipe says: "
			 "%.60s is nowhere to be seen, and may lie inside it (array, encryption, "
			 "partition): bring it back, or erase the device with `wipefs -a`",
			 device, f->signature, by);
	} else if (rc < 0) {
		cannot_be_asked(device, &err, rc, ret);
	}
	return rc != 0;
}
