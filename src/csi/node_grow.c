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

static void write_note(const struct csi_node *n, const char *staging, const char *why)
{
	cleanup_free char *path = note_path(n, staging);
	struct error err = ERROR_INIT;
	int r = mkdir_parents(n->ungrown, 0700, &err);

	if (r == 0)
		r = file_write(path, why, strlen(why), 0600, &err);
	if (r < 0)
		log_warn("if the file system at %s is not grown nobody will be told: %s", staging,
			 error_text(&err, r));
}

static void note(const struct csi_node *n, const char *staging, const char *why)
{
	log_warn("the file system at %s was not grown, and is used with its old size: %s", staging,
		 why);
	write_note(n, staging, why);
}

static bool is_to_grow(const struct wanted *w)
{
	return !w->read_only && !(w->set & MOUNT_ATTR_RDONLY);
}

void ungrown_begin(const struct csi_node *n, const char *staging, const struct wanted *w)
{
	if (is_to_grow(w))
		write_note(n, staging, "that was interrupted");
}

/*
 * While it is not mounted, which takes no right; then it is mounted again, with its old size where that failed, too (*ret
 * and why). -errno: it is not staged any more.
 */
static int grow_apart(const struct filesystem_mount *m, int *ret, struct error *why,
		      struct error *err)
{
	struct error failed = ERROR_INIT;

	if (take_away(m->target, false, WRITE_OUT_MS, NULL) < 0)
		return 0; /* somebody is in it already: it stays as it is */
	*ret = filesystem_grow_unmounted(m->device, m->type, &failed);
	if (*ret == -EUCLEAN)
		return error_set(err, EIO, "%s", failed.message);
	*why = failed;
	return filesystem_mount(m, err);
}

/*
 * By the kernel, first: whatever dies on the way, its journal keeps the file system whole. Where it refuses, which it
 * does without CAP_SYS_RESOURCE, it is grown as nobody has it mounted.
 */
int grow_staged(const struct csi_node *n, const struct filesystem_mount *m, const struct wanted *w,
		struct error *err)
{
	struct error why = ERROR_INIT;
	int grown, r = 0;

	if (!is_to_grow(w))
		return 0;
	grown = filesystem_grow(m->device, m->type, m->target, &why);
	if (grown < 0 && filesystem_grows_unmounted(m->type))
		r = grow_apart(m, &grown, &why, err);
	if (r < 0)
		return r;
	if (grown < 0 && grown != -EOPNOTSUPP)
		note(n, m->target, error_text(&why, grown));
	else
		ungrown_forget(n, m->target);
	return 0;
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
			    "end this pod and start it again: it is tried anew when it is staged",
			    id, why);
	what = json_pack("{s:[{s:s, s:s, s:s, s:s}]}", "ungrown", "name", name, "namespace", ns,
			 "uid", uid, "message", message);
	if (what)
		n->tell(what, n->tell_userdata);
}
