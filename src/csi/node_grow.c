/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file system that is smaller than its device, since that is a larger clone, or grew while it was not staged. It is
 * grown when it is staged. Where that fails it is used as it is, and those who use it are told: when it is staged no
 * pod is known, so why it failed is kept in RUN/ungrown/HASH until the volume is published, and unstaged.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/handle.h"
#include "csi/filesystem.h"
#include "csi/node_service.h"

#include <errno.h>
#include <sys/mount.h>

#define WHY_MAX 4096

static char *note_path(const struct csi_node *n, const char *staging)
{
	char hash[HASH_TEXT_MAX];

	hash_of(hash, staging);
	return xasprintf("%s/%s", n->ungrown, hash);
}

void ungrown_forget(const struct csi_node *n, const char *staging)
{
	cleanup_free char *path = note_path(n, staging);

	(void)unlink(path);
}

char *ungrown_why(const struct csi_node *n, const char *staging)
{
	cleanup_free char *path = note_path(n, staging);
	char *why = NULL;

	return file_read(path, WHY_MAX, &why, NULL, NULL) < 0 ? NULL : why;
}

static void note(const struct csi_node *n, const char *staging, const char *why)
{
	cleanup_free char *path = note_path(n, staging);
	struct error err = ERROR_INIT;
	int r;

	log_warn("the file system at %s was not grown, and is used with its old size: %s", staging,
		 why);
	r = mkdir_parents(n->ungrown, 0700, &err);
	if (r == 0)
		r = file_write(path, why, strlen(why), 0600, &err);
	if (r < 0)
		log_warn("that will be told to nobody: %s", error_text(&err, r));
}

static bool is_to_grow(const struct wanted *w)
{
	return !w->read_only && !(w->set & MOUNT_ATTR_RDONLY);
}

void grow_unmounted(const char *device, const char *type, const struct wanted *w, struct growth *ret)
{
	ret->r = is_to_grow(w) ? filesystem_grow_unmounted(device, type, &ret->err) : 0;
}

/* What could not be grown before is tried again: the kernel may be able to. */
void grow_mounted(const struct csi_node *n, const char *device, const char *type,
		  const char *staging, const struct wanted *w, const struct growth *before)
{
	struct error err = ERROR_INIT;
	int r = is_to_grow(w) && before->r != 0 ? filesystem_grow(device, type, staging, &err) : 0;

	if (r < 0 && r != -EOPNOTSUPP)
		note(n, staging, before->r < 0 ? before->err.message : error_text(&err, r));
	else
		ungrown_forget(n, staging);
}

void ungrown_tell(const struct csi_node *n, const char *id, const char *staging, struct map context)
{
	cleanup_free char *why = ungrown_why(n, staging), *message = NULL;
	const char *name = map_value(context, "csi.storage.k8s.io/pod.name"),
		   *ns = map_value(context, "csi.storage.k8s.io/pod.namespace"),
		   *uid = map_value(context, "csi.storage.k8s.io/pod.uid");
	cleanup_json json_t *what = NULL;

	if (!why || !n->tell || !name || !ns || !uid)
		return;
	message = xasprintf("the file system of volume %s is smaller than the volume, since it "
			    "could not be grown: %s; it can be used as it is; when that is mended, "
			    "end this pod and start it again: it is grown before it is mounted",
			    id, why);
	what = json_pack("{s:[{s:s, s:s, s:s, s:s}]}", "ungrown", "name", name, "namespace", ns,
			 "uid", uid, "message", message);
	if (what)
		n->tell(what, n->tell_userdata);
}
