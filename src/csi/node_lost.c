/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods have lost a volume. Who a target belongs to is known when it is published alone: it is
 * written to RUN/published/HASH before, and removed when the target goes; the mounts themselves say
 * whether they are dead. /run and mounts end together, with the machine's reboot.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/handle.h"
#include "csi/node_service.h"

#include <dirent.h>
#include <errno.h>

#define NOTE_MAX 8192

static char *note_path(const struct csi_node *n, const char *target)
{
	char hash[HASH_TEXT_MAX];

	hash_of(hash, target);
	return xasprintf("%s/%s", n->published, hash);
}

const char *map_value(struct map m, const char *key)
{
	for (size_t i = 0; i < m.count; i++)
		if (streq(m.entries[i]->key, key))
			return m.entries[i]->value;
	return NULL;
}

void published_note(const struct csi_node *n, const char *id, const char *target,
		    struct map context)
{
	const char *name = map_value(context, "csi.storage.k8s.io/pod.name"),
		   *ns = map_value(context, "csi.storage.k8s.io/pod.namespace"),
		   *uid = map_value(context, "csi.storage.k8s.io/pod.uid");
	cleanup_json json_t *note =
		json_pack("{s:s, s:s, s:s*, s:s*, s:s*}", "volume", id, "target", target, "name",
			  name, "namespace", ns, "uid", uid);
	cleanup_free char *path = note_path(n, target), *text = NULL;
	struct error err = ERROR_INIT;
	int r;

	if (!note || !name || !ns || !uid)
		return; /* no pod's, or nothing that could be said of it */
	text = json_text(note);
	r = mkdir_parents(n->published, 0700, &err);
	if (r == 0)
		r = file_write(path, text, strlen(text), 0600, &err);
	if (r < 0)
		log_warn("%s will not be told when it is lost: %s", target, error_text(&err, r));
}

void published_forget(const struct csi_node *n, const char *target)
{
	cleanup_free char *path = note_path(n, target);

	(void)unlink(path);
}

/* ---- what is lost ------------------------------------------------------------------------------ */

/* seen: what each file system said, since one that hangs is asked once. */
static bool is_dead(const char *target, json_t *seen)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	const json_t *before;
	int r;

	if (bind_find(target, &e, NULL) <= 0)
		return false;
	before = json_object_get(seen, e.device);
	if (before)
		return json_is_true(before);
	r = bind_probe(target, STEP_MS);
	json_object_set_new(seen, e.device, json_boolean(bind_is_dead(r)));
	return bind_is_dead(r);
}

/* A file system on a loop device answers from its cache. */
static bool is_device_lost(struct csi_node *n, const json_t *note)
{
	cleanup_with(staged_done) struct staged s = { 0 };

	return staged_at(n, jstr(note, "volume"), jstr(note, "target"), &s, NULL) == 0 &&
	       staged_loop(&s) == LOOP_LOST;
}

static json_t *read_note(const struct csi_node *n, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", n->published, name), *text = NULL;
	cleanup_json json_t *note = NULL;
	size_t len;

	if (file_read(path, NOTE_MAX, &text, &len, NULL) < 0 ||
	    json_parse(text, len, &note, NULL) < 0 || !jstr(note, "target") ||
	    !jstr(note, "volume"))
		return NULL;
	return TAKE_PTR(note);
}

json_t *csi_node_lost(struct csi_node *n)
{
	json_t *lost = json_array();
	cleanup_json json_t *seen = json_object();
	DIR *d = opendir(n->published);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup_json json_t *note = e->d_name[0] == '.' ? NULL : read_note(n, e->d_name);

		if (note && (is_dead(jstr(note, "target"), seen) || is_device_lost(n, note)))
			json_array_append(lost, note);
	}
	if (d)
		closedir(d);
	return lost;
}
