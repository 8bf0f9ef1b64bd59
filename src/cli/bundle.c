/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/tar.h"
#include "cli/term.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/spawn.h"
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#define LOG_MAX (1U << 20) /* of a log its last part tells most */
#define DEPTH_MAX 16
#define GLUSTER_TIMEOUT_MS 5000

struct bundle {
	struct session *s;
	struct tar *tar;
	struct buf notes; /* what could not be collected, and why */
	int files;
};

static struct bundle *current; /* nftw passes no pointer on */

static int add(struct bundle *b, const char *name, const char *text, size_t len)
{
	struct error err = ERROR_INIT;

	if (tar_add(b->tar, name, text, len, &err) == 0)
		b->files++;
	else
		buf_printf(&b->notes, "%s: %s\n", name, err.message);
	return 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

static void strip(json_t *o)
{
	json_t *annotations = jget(o, "metadata", "annotations");

	(void)json_object_del(json_object_get(o, "metadata"), "managedFields");
	(void)json_object_del(annotations, "kubectl.kubernetes.io/last-applied-configuration");
}

static void add_objects(struct bundle *b, const struct kind *k)
{
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL, *text = NULL, *name = NULL;
	struct error err = ERROR_INIT;
	size_t i;
	json_t *o;

	if (kube_list(b->s->kube, k, NULL, NULL, &items, &version, &err) < 0) {
		buf_printf(&b->notes, "%s: %s\n", k->plural, err.message);
		return;
	}
	if (json_array_size(items) == 0)
		return;
	json_array_foreach (items, i, o) {
		strip(o);
	}
	text = yaml_text(items);
	name = xasprintf("objects/%s.yaml", k->plural);
	(void)add(b, name, text, strlen(text));
}

/* ---- logs and what glusterd has stored ------------------------------------------------------- */

/* The last part of a file, from the beginning of a line on. */
static int read_tail(const char *path, struct buf *out)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	char block[16384];
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EIO;
	if (st.st_size > LOG_MAX && lseek(fd, st.st_size - LOG_MAX, SEEK_SET) < 0)
		return -EIO;
	while (out->len < 2 * LOG_MAX && (n = read(fd, block, sizeof(block))) > 0)
		buf_add(out, block, (size_t)n);
	return 0;
}

/* glusterd keeps the volumes' passwords in clear text beside what is of interest. */
static void redact(struct buf *text)
{
	static const char *const secret[] = { "password=", "username=", "trusted-password", "auth.",
					      "ssl." };
	struct buf out = { 0 };
	char *line = text->data, *next;

	for (; line && *line; line = next) {
		size_t len = strcspn(line, "\n");
		bool hide = false;

		next = line + len + (line[len] == '\n');
		for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
			hide = hide || strncmp(line, secret[i], strlen(secret[i])) == 0;
		buf_add(&out, line, hide ? strcspn(line, "=") : len);
		buf_puts(&out, hide ? "=(hidden)\n" : "\n");
	}
	buf_done(text);
	*text = out;
}

static bool is_gluster_state(const char *path)
{
	const char *base = strrchr(path, '/');

	return (strstr(path, "/glusterd/vols/") && base &&
		(streq(base, "/info") || streq(base, "/node_state.info"))) ||
	       strstr(path, "/glusterd/peers/");
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	bool log = str_has_suffix(path, ".log"), gluster = is_gluster_state(path);
	const char *root = state_dir();
	struct buf text = { 0 };

	if (type == FTW_D && ftw->level > 0 && strcmp(path + ftw->base, "bricks") == 0)
		return FTW_SKIP_SUBTREE; /* people's data */
	if (type != FTW_F || !(log || gluster) || ftw->level > DEPTH_MAX)
		return FTW_CONTINUE;
	if (read_tail(path, &text) == 0) {
		cleanup_free char *name = xasprintf("state%s", path + strlen(root));

		if (gluster)
			redact(&text);
		(void)add(current, name, text.data ? text.data : "", text.len);
	}
	buf_done(&text);
	return FTW_CONTINUE;
}

static void add_state(struct bundle *b)
{
	current = b;
	if (nftw(state_dir(), visit, 16, FTW_PHYS | FTW_MOUNT | FTW_ACTIONRETVAL) < 0)
		buf_printf(&b->notes, "%s: %s\n", state_dir(), strerror(errno));
	current = NULL;
}

/* ---- versions -------------------------------------------------------------------------------- */

static void add_program(struct buf *out, const char *const *argv)
{
	struct spawn_result r = { 0 };
	struct spawn s = { .argv = argv, .timeout_ms = GLUSTER_TIMEOUT_MS };

	if (spawn_run(&s, &r, NULL) == 0 && r.out.data)
		buf_printf(out, "%.*s\n", (int)strcspn(r.out.data, "\n"), r.out.data);
	else
		buf_printf(out, "%s: not found\n", argv[0]);
	spawn_result_done(&r);
}

static void add_versions(struct bundle *b)
{
	cleanup_free char *os = NULL;
	struct buf out = { 0 };
	struct utsname u;
	size_t len;

	buf_printf(&out, "quartermaster %s\n", QM_VERSION);
	if (uname(&u) == 0)
		buf_printf(&out, "%s %s %s\n", u.sysname, u.release, u.machine);
	add_program(&out, (const char *const[]){ "glusterfsd", "--version", NULL });
	add_program(&out, (const char *const[]){ "mkfs.xfs", "-V", NULL });
	if (file_read("/etc/os-release", 0, &os, &len, NULL) == 0)
		buf_puts(&out, os);
	(void)add(b, "versions.txt", out.data, out.len);
	buf_done(&out);
}

int cmd_support_bundle(struct session *s, const struct args *a)
{
	const char *path = args_value(a, "output");
	struct bundle b = { .s = s };
	struct error err = ERROR_INIT;
	char name[80];
	time_t now = time(NULL);
	struct tm tm;
	int rc;

	(void)strftime(name, sizeof(name), "quartermaster-support-%Y%m%d-%H%M%S.tar.gz",
		       gmtime_r(&now, &tm));
	path = path ? path : name;
	rc = tar_create(path, &b.tar, &err);
	if (rc == 0) {
		for (size_t i = 0; kinds[i]; i++)
			if (kinds[i] != &KIND_SECRET)
				add_objects(&b, kinds[i]);
		add_state(&b);
		add_versions(&b);
		if (b.notes.len)
			(void)add(&b, "missing.txt", b.notes.data, b.notes.len);
		rc = tar_close(b.tar, &err);
	}
	if (rc < 0)
		(void)fprintf(stderr, "quartermaster: %s\n", err.message);
	else
		(void)fprintf(s->out, "%s: %d files, no secrets%s\n", path, b.files,
			      b.notes.len ? "; missing.txt in it says what could not be had" : "");
	buf_done(&b.notes);
	return rc < 0 ? QM_FAILED : QM_OK;
}
