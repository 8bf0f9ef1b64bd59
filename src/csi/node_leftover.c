/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is staged without a record: one was lost, or removed by hand. hostvol has nothing to end,
 * but a file system or a device that was left at the staging path would keep its loop device, and
 * with it the file's lock, for as long as the machine runs: no node could ever stage it again.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "csi/handle.h"
#include "csi/node_service.h"

#include <errno.h>

/* The file of a loop device, or of the one below a device of ours; NULL: it is none. Caller frees. */
static char *file_of(const struct staged *s)
{
	struct linear_state above;
	bool below = linear_look(s->major, s->minor, &above) && above.count > 0;
	cleanup_free char *path = xasprintf("/sys/dev/block/%u:%u/loop/backing_file",
					    below ? LOOP_MAJOR : s->major,
					    below ? above.loops[0] : s->minor);
	char *text = NULL;

	if (file_read(path, 0, &text, NULL, NULL) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* A mount holds its device; but one that is bound by its name alone may be another's by now. */
static bool is_file_of(const struct staged *s, const char *file, const char *id)
{
	const char *name = strrchr(file, '/');
	struct handle h;

	if (s->shape == SHAPE_FILESYSTEM)
		return true;
	return name && streq(name + 1, handle_parse(id, &h, NULL) == 0 ? h.name : id);
}

/* A file system of its own, or a device: nothing else is ever staged here. */
static bool is_ours(const struct staged *s)
{
	return s->shape == SHAPE_DEVICE || (s->shape == SHAPE_FILESYSTEM && s->major);
}

int unstage_leftover(struct csi_node *n, const char *id, const char *staging, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	cleanup_json json_t *records = NULL, *record = json_pack("{s:s}", "consumer", staging);
	cleanup_free char *file = NULL, *elsewhere = NULL;
	int r = records_find(n->h, NULL, staging, &records, err);

	/* another volume's staging path is none of this call's business */
	if (r < 0 || json_array_size(records) || !record)
		return r;
	r = staged_look(record, &s, err);
	if (r < 0 || !is_ours(&s))
		return r;
	file = file_of(&s);
	if (file && is_file_of(&s, file, id))
		(void)jset(record, json_string(file), "path");
	r = staged_elsewhere(&s, staging, &elsewhere, err);
	if (r > 0)
		return error_set(err, EBUSY, "what is staged at %s is published at %s", staging,
				 elsewhere);
	if (r == 0)
		r = stage_remove(&s, false, err);
	if (r == 0)
		log_warn("volume %s had no record, but was staged (%s): it is taken away", id,
			 file ? file : s.entry.source);
	return r;
}
