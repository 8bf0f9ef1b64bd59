/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "mountinfo.h"
#include "params.h"

#include <errno.h>

#define PROBE_MS 10000
#define STACKED_MAX 8 /* mounts over one another at one mount point */

bool option_is_set(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = options; p && *p;) {
		if (strncmp(p, name, len) == 0 && strchr("=,", p[len]))
			return true;
		p += strcspn(p, ",");
		p += *p == ',';
	}
	return false;
}

/* Options as given, and "ro" where the access mode asks for it. */
static int effective_options(const struct attachment *a, char **ret, struct error *err)
{
	const char *options = attachment_param(a, "options");
	bool ro = streq(attachment_param(a, "accessMode"), "ro");

	options = options ? options_text(options) : "";
	if (option_is_set(options, "ro"))
		ro = false;
	return text_format(ret, err, "%s%s%s", options, ro && *options ? "," : "", ro ? "ro" : "");
}

int mount_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	return mount_prepare_as(c, a, attachment_param(a, "export"), NULL, err);
}

static void choose_client(const struct call *c, const struct attachment *a, char *id, size_t size)
{
	const char *program = a->driver->mount->client, *wanted = attachment_param(a, "client");

	id[0] = '\0';
	if (program && c->host->choose_client)
		c->host->choose_client(c->host, program, wanted ? wanted : "", id, size);
}

int mount_prepare_as(const struct call *c, struct attachment *a, const char *source,
		     const char *sub_path, struct error *err)
{
	const char *base = attachment_param(a, "mountPointBase");
	cleanup_free char *options = NULL, *standard = NULL, *target = NULL, *point = NULL;
	char client[CLIENT_ID_MAX];
	int r;

	r = effective_options(a, &options, err);
	if (r < 0)
		return r;
	if (!base) {
		r = text_format(&standard, err, "%s/mnt", c->h->state_dir);
		if (r < 0)
			return r;
		base = standard;
	}
	choose_client(c, a, client, sizeof(client));
	r = text_format(&target, err, "%s %s -o %s at %s%s%s", a->driver->name, source,
			*options ? options : "defaults", base, *client ? " by " : "", client);
	if (r < 0)
		return r;
	attachment_set_target(a, TAKE_PTR(target));
	if (a->driver->mount->in_place)
		r = text_format(&point, err, "%s", base);
	else
		r = text_format(&point, err, "%s/%s", base, a->target_id);
	if (r >= 0)
		r = attachment_set_detail(a, "source", source, err);
	if (r >= 0 && sub_path)
		r = attachment_set_detail(a, "subPath", sub_path, err);
	if (r >= 0 && *client)
		r = attachment_set_detail(a, "client", client, err);
	if (r >= 0)
		r = attachment_set_detail(a, "options", options, err);
	if (r >= 0)
		r = attachment_set_detail(a, "mountPoint", point, err);
	return r;
}

/* ---- what is there -------------------------------------------------------------------------- */

enum mount_found { MOUNT_ABSENT, MOUNT_OURS, MOUNT_FOREIGN };

bool mount_same_source(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);

	while (a_len > 1 && a[a_len - 1] == '/' && a[a_len - 2] != ':')
		a_len--;
	while (b_len > 1 && b[b_len - 1] == '/' && b[b_len - 2] != ':')
		b_len--;
	return a_len == b_len && strncmp(a, b, a_len) == 0;
}

static bool is_ours(const struct attachment *a, const struct mount_entry *e)
{
	const struct mount_type *type = a->driver->mount;

	if (!streq(e->root, "/") ||
	    !(type->is_source ? type->is_source(a, e->source)
			      : mount_same_source(e->source, attachment_detail(a, "source"))))
		return false;
	for (const char *const *t = a->driver->mount->fs_types; *t; t++)
		if (streq(*t, e->fs_type))
			return true;
	return false;
}

/* Reads the mount table only: the file system itself is not asked. */
static int look(const struct call *c, struct attachment *a, struct error *err)
{
	const char *point = attachment_detail(a, "mountPoint");
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	cleanup_free char *text = NULL;
	int r = c->host->mountinfo(c->host, &text);

	if (r < 0)
		return error_errno(err, -r, "cannot read the mount table");
	r = mountinfo_find(text, point, &e);
	if (r < 0)
		return no_memory(err);
	if (r == 0)
		return MOUNT_ABSENT;
	if (is_ours(a, &e))
		return MOUNT_OURS;
	error_set(err, EBUSY, "%.150s (%.40s) is mounted at %.200s, where %.150s belongs", e.source,
		  e.fs_type, point, attachment_detail(a, "source"));
	return MOUNT_FOREIGN;
}

/* Whether the program that serves the mount point runs. */
static bool is_served(const struct call *c, const struct attachment *a)
{
	const char *program = a->driver->mount->client;

	return program && c->host->await_end(c->host, program, attachment_detail(a, "mountPoint"),
					     false, 0) < 0;
}

/*
 * Whether r is the answer of a mount that will never work again. A client that lives says -ENOTCONN
 * too, while no server of its volume can be reached; when one can, all who use it work on.
 */
static bool means_dead(const struct call *c, const struct attachment *a, int r)
{
	if (r == -ENOTCONN)
		return !is_served(c, a);
	return r == -ESTALE || r == -EHOSTDOWN || r == -ESHUTDOWN;
}

static int probe(const struct call *c, struct attachment *a, struct error *err)
{
	const char *point = attachment_detail(a, "mountPoint");
	int r = call_left(c, PROBE_MS, err);

	if (r < 0)
		return r;
	r = c->host->probe(c->host, point, r);
	if (r < 0)
		return error_errno(err, -r, "%s of %s at %s does not answer", a->driver->title,
				   attachment_detail(a, "source"), point);
	return 0;
}

/* Of the volume, below the mount; or NULL. */
static const char *sub_path_of(const struct attachment *a)
{
	const char *path = attachment_detail(a, "subPath");

	return *path ? path : attachment_param(a, "name");
}

/* The sub path, below the mount, exists. */
static int check_path(const struct call *c, struct attachment *a, struct error *err)
{
	const char *name = sub_path_of(a);
	int r;

	if (!name)
		return 0;
	r = call_left(c, 0, err);
	if (r < 0)
		return r;
	r = c->host->lookup(c->host, attachment_detail(a, "mountPoint"), name, r);
	if (r == -ELOOP)
		return error_set(err, ELOOP, "%s of %s has a symbolic link in it, which is refused",
				 name, attachment_detail(a, "source"));
	if (r < 0)
		return error_errno(err, -r, "cannot find %s in %s", name,
				   attachment_detail(a, "source"));
	return 0;
}

const char *mount_client(const struct attachment *a)
{
	const char *client = attachment_detail(a, "client");

	return *client ? client : NULL;
}

int mount_verify(const struct call *c, struct attachment *a, struct error *err)
{
	int r = look(c, a, err);

	if (r < 0)
		return r;
	if (r == MOUNT_FOREIGN)
		return -EBUSY;
	if (r == MOUNT_ABSENT)
		return error_set(err, ENOENT,
				 "%s is not mounted any more (a reboot?): connect it again",
				 attachment_detail(a, "source"));
	r = probe(c, a, err);
	return r < 0 ? r : check_path(c, a, err);
}

int host_cannot_mount(const char *source, int r, const struct host_result *result,
		      struct error *err)
{
	if (result->err[0])
		return error_set(err, -r, "cannot mount %.150s: %.300s", source, result->err);
	return error_errno(err, -r, "cannot mount %s", source);
}

int mount_run_helper(const struct call *c, struct attachment *a, const char *package,
		     const struct host_command *command, struct error *err)
{
	const char *source = attachment_detail(a, "source"), *program = command->argv[0];
	struct host_command timed = *command;
	struct host_result result = { 0 };
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	timed.timeout_ms = r;
	timed.client = mount_client(a);
	r = c->host->run(c->host, &timed, &result);
	if (r == -ENOENT && !result.err[0])
		return error_set(err, ENOENT, "cannot mount %s: %s is not installed (%s)", source,
				 program, package);
	if (r < 0)
		return host_cannot_mount(source, r, &result, err);
	if (result.status == 0)
		return 0;
	result.err[strcspn(result.err, "\n")] = '\0';
	return error_set(err, EIO, "cannot mount %s: %.300s (%s, status %d)", source,
			 result.err[0] ? result.err : "it failed without saying why", program,
			 result.status);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int unmount_once(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	const char *point = attachment_detail(a, "mountPoint");
	int left = call_left(c, 0, err), r;

	if (left < 0)
		return left;
	r = c->host->unmount(c->host, point, force ? HOST_UNMOUNT_DETACH : HOST_UNMOUNT_PLAIN,
			     left);
	/* in use, but by those who only get errors from it: nothing is taken away from them */
	if (r == -EBUSY && !force && means_dead(c, a, c->host->probe(c->host, point, left)))
		r = c->host->unmount(c->host, point, HOST_UNMOUNT_DETACH, left);
	if (r == -EBUSY)
		return error_set(err, EBUSY, "%s, mounted at %s, is in use: end what uses it",
				 attachment_detail(a, "source"), point);
	if (r < 0 && r != -EINVAL && r != -ENOENT) /* these: it is gone already */
		return error_errno(err, -r, "cannot unmount %s", point);
	return 0;
}

/* All that is ours at the mount point, a mount that came late over another one included. */
static int unmount_all(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	int r;

	for (int i = 0; i < STACKED_MAX; i++) {
		r = look(c, a, err);
		if (r <= 0)
			return r;
		if (r == MOUNT_FOREIGN)
			return -EBUSY;
		r = unmount_once(c, a, force, err);
		if (r < 0)
			return r;
	}
	return error_set(err, EBUSY, "%s is still mounted", attachment_detail(a, "mountPoint"));
}

static int mount_now(const struct call *c, struct attachment *a, struct error *err)
{
	const char *point = attachment_detail(a, "mountPoint");
	int r;

	/* the helper of a caller that died may be at work still, and mount over what is mounted here */
	if (a->interrupted && a->driver->mount->end_helper)
		a->driver->mount->end_helper(c, a, true);
	a->begun = true;
	/* of a mount that was here before, in which somebody is still: not ours to end */
	a->served = is_served(c, a);
	r = c->host->make_dir(c->host, point, 0755);
	if (r < 0)
		return error_errno(err, -r, "cannot make the mount point %s", point);
	r = a->driver->mount->mount(c, a, err);
	if (r < 0)
		return r;
	r = look(c, a, err);
	if (r < 0)
		return r;
	if (r == MOUNT_FOREIGN)
		return -EBUSY;
	if (r == MOUNT_ABSENT)
		return error_set(err, EIO, "%s was mounted, but is not at %s",
				 attachment_detail(a, "source"), point);
	return probe(c, a, err);
}

static int set_path(struct attachment *a, struct error *err)
{
	const char *name = sub_path_of(a);
	cleanup_free char *path = NULL;
	int r = text_format(&path, err, "%s%s%s", attachment_detail(a, "mountPoint"),
			    name ? "/" : "", name ? name : "");

	if (r < 0)
		return r;
	free(a->path);
	a->path = TAKE_PTR(path);
	return 0;
}

/*
 * A mount whose client died gives every user of it nothing but errors, for ever. Detaching it
 * takes nothing from them, and lets the next one (this call) have a mount that works.
 */
static int replace_dead(const struct call *c, struct attachment *a, struct error *err)
{
	int r;

	call_log(c, HOSTVOL_LOG_WARNING, "the mount of %s at %s is dead; mounting it again",
		 attachment_detail(a, "source"), attachment_detail(a, "mountPoint"));
	r = unmount_all(c, a, true, err);
	return r < 0 ? r : mount_now(c, a, err);
}

/* ---- mount points that are the administrator's ---------------------------------------------- */

/*
 * RUN/mounted-<hash of the target> holds the id of the boot in which this library made the mount:
 * written before it is made, removed after it is unmounted, under the target's lock.
 */
static int marker_path(const struct call *c, const struct attachment *a, char **ret,
		       struct error *err)
{
	return text_format(ret, err, "%s/mounted-%s", c->h->run_dir, a->target_id);
}

static int mark_made_here(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	char boot[64];
	int r = marker_path(c, a, &path, err);

	if (r < 0)
		return r;
	host_read_line(c->host, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	r = c->host->write_file(c->host, path, boot, strlen(boot));
	return r < 0 ? error_errno(err, -r, "cannot write %s", path) : 0;
}

static bool is_made_here(const struct call *c, const struct attachment *a)
{
	cleanup_free char *path = NULL, *text = NULL;
	char boot[64];

	host_read_line(c->host, "/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	return marker_path(c, a, &path, NULL) >= 0 &&
	       file_read(path, sizeof(boot), &text, NULL, NULL) >= 0 && strcmp(text, boot) == 0;
}

static void forget_made_here(const struct call *c, const struct attachment *a)
{
	cleanup_free char *path = NULL;

	if (marker_path(c, a, &path, NULL) >= 0)
		c->host->remove_file(c->host, path);
}

int mount_connect(const struct call *c, struct attachment *a, struct error *err)
{
	int r = look(c, a, err);

	if (r < 0)
		return r;
	if (r == MOUNT_FOREIGN)
		return -EBUSY;
	if (r == MOUNT_ABSENT) {
		r = a->driver->mount->in_place ? mark_made_here(c, a, err) : 0;
		if (r >= 0)
			r = mount_now(c, a, err);
	} else {
		r = probe(c, a, err);
		if (means_dead(c, a, r))
			r = replace_dead(c, a, err);
	}
	if (r >= 0)
		r = check_path(c, a, err);
	return r < 0 ? r : set_path(a, err);
}

int mount_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	const char *point = attachment_detail(a, "mountPoint");
	bool failed = a->state == STATE_CONNECTING;
	int r;

	if (a->others || (a->driver->mount->in_place && !is_made_here(c, a)))
		return 0;
	/* it failed before it mounted anything: what is there is its consumer's, and may come back */
	if (failed && a->was_attached && !a->begun)
		return 0;
	r = unmount_all(c, a, force, err);
	/* a connect that found another's mount in the way did nothing that could be undone */
	if (failed && r == -EBUSY && look(c, a, NULL) == MOUNT_FOREIGN)
		return 0;
	if (r < 0)
		return r;
	if (a->driver->mount->end_helper && !a->served)
		a->driver->mount->end_helper(c, a, failed);
	if (a->driver->mount->in_place) {
		forget_made_here(c, a);
		return 0;
	}
	r = c->host->remove_dir(c->host, point);
	if (r < 0 && r != -ENOENT)
		call_log(c, HOSTVOL_LOG_WARNING, "cannot remove the mount point %s (errno %d)",
			 point, -r);
	return 0;
}
