/* SPDX-License-Identifier: Apache-2.0 */
#include "scsi.h"

#include "base/file.h"
#include "base/mem.h"
#include "usage.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define SCANS 3 /* storage that was just told to export may take a moment */
#define SCAN_AGAIN_MS 1000
#define GONE_MS 30000

int scsi_lun(const char *text, const char *mode, uint64_t *ret, struct error *err)
{
	uint64_t lun;
	char *end;

	errno = 0;
	lun = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || lun > 16383)
		return error_set(err, EINVAL, "\"%.40s\" is not a LUN from 0 to 16383", text);
	/* in flat space addressing the first two bits of the number say so */
	if ((streq(mode, "SAM2") && lun >= 256) || streq(mode, "SAM3-flat"))
		lun += 16384;
	*ret = lun;
	return 0;
}

static int take_name(const char *name, void *userdata)
{
	return snprintf(userdata, DISK_NAME_MAX, "%s", name) < DISK_NAME_MAX ? 1 : -ENAMETOOLONG;
}

int scsi_find(const struct call *c, const struct scsi_address *at, char name[static DISK_NAME_MAX])
{
	char dir[128];

	snprintf(dir, sizeof(dir), "/sys/class/scsi_device/%u:%u:%u:%" PRIu64 "/device/block",
		 at->host, at->channel, at->target, at->lun);
	return sys_each(c, dir, take_name, name);
}

struct arrival {
	const struct call *c;
	const struct scsi_address *at;
	char *name;
};

/* There is a device at all: then its disk comes, when the kernel has looked at it. */
static bool is_known(const struct call *c, const struct scsi_address *at)
{
	return sys_exists(c, "/sys/class/scsi_device/%u:%u:%u:%" PRIu64, at->host, at->channel,
			  at->target, at->lun);
}

static int has_arrived(void *arg)
{
	struct arrival *a = arg;
	int r = scsi_find(a->c, a->at, a->name);

	return r <= 0 ? r : disk_is_ready(a->c, a->name);
}

static int is_known_now(void *arg)
{
	struct arrival *a = arg;

	return is_known(a->c, a->at);
}

static int scan_once(const struct call *c, const struct scsi_address *at, struct error *err)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/sys/class/scsi_host/host%u/scan", at->host);
	snprintf(text, sizeof(text), "%u %u %" PRIu64, at->channel, at->target, at->lun);
	return sys_write(c, path, text, err);
}

int scsi_scan(const struct call *c, const struct scsi_address *at, char name[static DISK_NAME_MAX],
	      struct error *err)
{
	struct arrival arrival = { .c = c, .at = at, .name = name };
	cleanup_watch struct watch w = WATCH_INIT;
	int r = watch_open(c, &w, err);

	for (int i = 0; r >= 0 && i < SCANS && !is_known(c, at); i++) {
		r = scan_once(c, at, err);
		if (r >= 0 && i + 1 < SCANS) {
			r = watch_until(c, &w, SCAN_AGAIN_MS, is_known_now, &arrival, err);
			if (r == -ETIMEDOUT && call_left(c, 0, NULL) > 0)
				r = 0;
		}
	}
	if (r < 0)
		return r;
	if (!is_known(c, at))
		return error_set(err, ENOENT,
				 "the target has no LUN %" PRIu64
				 " for this host: is the volume exported to it?",
				 at->lun);
	r = watch_until(c, &w, 0, has_arrived, &arrival, err);
	return r < 0 ? r : 0;
}

bool scsi_is_stale(const struct call *c, const char *name, const struct identity *live)
{
	cleanup_free char *path = NULL, *page = NULL;
	struct identity cached = { 0 };
	size_t len;

	if (text_format(&path, NULL, "%s/sys/block/%s/device/vpd_pg83", c->host->root, name) < 0 ||
	    file_read(path, 64 << 10, &page, &len, NULL) < 0 ||
	    identity_from_page83((const unsigned char *)page, len, &cached) < 0)
		return false;
	return cached.count && !identity_same(&cached, live);
}

/* ---- going ---------------------------------------------------------------------------------- */

struct departure {
	const struct call *c;
	const char *address; /* H:C:T:L: a disk's name may be another's at once */
};

static int has_gone(void *arg)
{
	struct departure *d = arg;

	return !sys_exists(d->c, "/sys/class/scsi_device/%s", d->address);
}

int scsi_remove(const struct call *c, const char *name, enum scsi_removal how, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	cleanup_close int claim = -1;
	char where[600], path[64];
	struct departure departure = { .c = c };
	struct disk d;
	int r = disk_read(c, name, &d);

	if (r < 0 || sys_resolve(c, where, sizeof(where), "/sys/block/%s/device", name) < 0)
		return 0; /* it is gone */
	departure.address = strrchr(where, '/') + 1;
	r = watch_open(c, &w, err);
	if (r >= 0 && (how == SCSI_CAREFUL || how == SCSI_UNDO))
		r = usage_refuse(c, &d, NULL, err);
	if (r >= 0 && (how == SCSI_CAREFUL || how == SCSI_LOOKED_AT))
		r = disk_flush(c, &d, err);
	if (r < 0)
		return r;
	if (how != SCSI_FORCE) {
		/* held while it goes, so that nobody mounts it in between */
		claim = c->host->claim(c->host, d.path);
		if (claim == -EBUSY)
			return error_set(err, EBUSY, "%s is in use: end that first", d.path);
	}
	snprintf(path, sizeof(path), "/sys/block/%s/device/delete", name);
	r = sys_write(c, path, "1", err);
	if (r < 0 && r != -ENOENT && r != -ENODEV)
		return r;
	r = watch_until(c, &w, GONE_MS, has_gone, &departure, err);
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "%s was removed, but has not gone in time",
				 d.path);
	return r < 0 ? r : 0;
}

int scsi_rescan(const struct call *c, const char *name, struct error *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/%s/device/rescan", name);
	return sys_write(c, path, "1", err);
}
