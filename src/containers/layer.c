/* SPDX-License-Identifier: Apache-2.0 */
#include "containers/layer.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define BLOCK_SIZE (64 << 10)
#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq" /* the directory's own content goes, not the directory */
#define RESERVED ".wh..wh." /* what union file systems keep for themselves */
#define DIGEST_DIR "blobs/sha256/"
#define DIGEST_LEN 64

/* ---- reading --------------------------------------------------------------------------------- */

static void reader_free(struct archive **a)
{
	archive_read_free(*a);
}

static int failed(struct archive *a, const char *what, struct error *err)
{
	int code = archive_errno(a);
	const char *why = archive_error_string(a);

	return error_set(err, code > 0 ? code : EINVAL, "%s: %s", what,
			 why ? why : "it is no tar archive");
}

static int reader_open(int fd, const char *what, struct archive **ret, struct error *err)
{
	struct archive *a = archive_read_new();

	if (!a)
		return error_set(err, ENOMEM, "%s: out of memory", what);
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_format_tar(a);
	archive_read_support_format_empty(a);
	if (lseek(fd, 0, SEEK_SET) < 0 || archive_read_open_fd(a, fd, BLOCK_SIZE) != ARCHIVE_OK) {
		int rc = failed(a, what, err);

		archive_read_free(a);
		return rc;
	}
	*ret = a;
	return 0;
}

/* 1: an entry; 0: the end. */
static int reader_next(struct archive *a, const char *what, struct archive_entry **ret,
		       struct error *err)
{
	int rc = archive_read_next_header(a, ret);

	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc < ARCHIVE_WARN)
		return failed(a, what, err);
	return archive_entry_pathname(*ret)
		       ? 1
		       : error_set(err, EINVAL, "%s: a member has no name", what);
}

/* ---- the archive of an image ----------------------------------------------------------------- */

static const char *member_name(struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);

	while (str_has_prefix(name, "./"))
		name += 2;
	return name;
}

static bool is_of_layout(struct archive_entry *e)
{
	const char *name = member_name(e);

	if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
		return false;
	if (streq(name, "oci-layout") || streq(name, "index.json"))
		return true;
	return str_has_prefix(name, DIGEST_DIR) &&
	       strlen(name) == strlen(DIGEST_DIR) + DIGEST_LEN &&
	       strspn(name + strlen(DIGEST_DIR), "0123456789abcdef") == DIGEST_LEN;
}

static int read_member(struct archive *a, struct archive_entry *e, const char *path, size_t limit,
		       char **ret, size_t *ret_len, struct error *err)
{
	int64_t size = archive_entry_size(e);
	cleanup_free char *text = NULL;

	if (size < 0 || (uint64_t)size > limit)
		return error_set(err, EFBIG, "%s: %s is too large", path, member_name(e));
	text = xcalloc(1, (size_t)size + 1);
	if (archive_read_data(a, text, (size_t)size) != size)
		return failed(a, path, err);
	*ret = TAKE_PTR(text);
	*ret_len = (size_t)size;
	return 0;
}

int archive_member(const char *path, const char *name, size_t limit, char **ret, size_t *ret_len,
		   struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_with(reader_free) struct archive *a = NULL;
	struct archive_entry *e;
	int rc;

	if (fd < 0)
		return error_errno(err, errno, "cannot read %s", path);
	rc = reader_open(fd, path, &a, err);
	if (rc < 0)
		return rc;
	while ((rc = reader_next(a, path, &e, err)) > 0)
		if (is_of_layout(e) && streq(member_name(e), name))
			return read_member(a, e, path, limit, ret, ret_len, err);
	return rc < 0 ? rc : error_set(err, ENOENT, "%s has no %s", path, name);
}

int archive_unpack_layout(const char *path, const char *dir, struct error *err)
{
	cleanup_free char *blobs = xasprintf("%s/" DIGEST_DIR, dir);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_with(reader_free) struct archive *a = NULL;
	struct archive_entry *e;
	int rc;

	if (fd < 0)
		return error_errno(err, errno, "cannot read %s", path);
	rc = mkdir_parents(blobs, 0700, err);
	if (rc == 0)
		rc = reader_open(fd, path, &a, err);
	while (rc >= 0 && (rc = reader_next(a, path, &e, err)) > 0) {
		cleanup_free char *to = xasprintf("%s/%s", dir, member_name(e));
		cleanup_close int out = -1;

		if (!is_of_layout(e))
			continue;
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (out < 0)
			return error_errno(err, errno, "cannot write %s", to);
		if (archive_read_data_into_fd(a, out) < ARCHIVE_WARN)
			return failed(a, path, err);
	}
	return rc;
}

/* ---- layers, where the root is the image's ---------------------------------------------------- */

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

/* The directory that a member stands in, as a path from the root; the caller frees. */
static char *parent_of(const char *name)
{
	return xasprintf("/%.*s", (int)(last_part(name) - name), name);
}

static int empty_dir(const char *path, struct error *err)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int rc = 0;

	while (d && rc == 0 && (e = readdir(d))) {
		cleanup_free char *child = xasprintf("%s/%s", path, e->d_name);

		if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
			rc = remove_tree(child, err);
	}
	if (d)
		closedir(d);
	return rc;
}

static int apply_whiteout(const char *name, struct error *err)
{
	const char *last = last_part(name), *hidden = last + strlen(WHITEOUT);
	cleanup_free char *parent = parent_of(name), *path = NULL;

	if (streq(last, OPAQUE))
		return empty_dir(parent, err);
	if (str_has_prefix(last, RESERVED))
		return 0;
	if (!*hidden || streq(hidden, ".") || streq(hidden, ".."))
		return error_set(err, EINVAL, "%s hides no file", name);
	path = xasprintf("%s%s", parent, hidden);
	return remove_tree(path, err);
}

/* What a layer below has under that name goes, unless both are directories. */
static int make_room(const char *name, bool directory, struct error *err)
{
	struct stat st;

	if (lstat(name, &st) < 0 || (directory && S_ISDIR(st.st_mode)))
		return 0;
	return remove_tree(name, err);
}

static int copy_data(struct archive *a, struct archive *disk, const char *name, struct error *err)
{
	const void *data;
	size_t len;
	int64_t at;
	int rc;

	while ((rc = archive_read_data_block(a, &data, &len, &at)) >= ARCHIVE_WARN &&
	       rc != ARCHIVE_EOF)
		if (archive_write_data_block(disk, data, len, at) < ARCHIVE_WARN)
			return failed(disk, name, err);
	if (rc < ARCHIVE_WARN)
		return failed(a, name, err);
	return archive_write_finish_entry(disk) < ARCHIVE_WARN ? failed(disk, name, err) : 0;
}

/* Not by archive_read_extract2: to it a member that could not be made is but a warning. */
static int extract(struct archive *a, struct archive_entry *e, struct archive *disk,
		   struct error *err)
{
	cleanup_free char *name = xasprintf("/%s", archive_entry_pathname(e));
	int rc = make_room(name, archive_entry_filetype(e) == AE_IFDIR, err);

	if (rc < 0)
		return rc;
	archive_entry_copy_pathname(e, name);
	return archive_write_header(disk, e) < ARCHIVE_WARN ? failed(disk, name, err)
							    : copy_data(a, disk, name, err);
}

/* disk NULL: the whiteouts alone, which concern only what lies below; else all but them. */
static int pass(int fd, struct archive *disk, struct error *err)
{
	cleanup_with(reader_free) struct archive *a = NULL;
	struct archive_entry *e;
	int rc = reader_open(fd, "a layer", &a, err);

	while (rc >= 0 && (rc = reader_next(a, "a layer", &e, err)) > 0) {
		const char *name = archive_entry_pathname(e);
		bool whiteout = str_has_prefix(last_part(name), WHITEOUT);

		if (whiteout && !disk)
			rc = apply_whiteout(name, err);
		else if (!whiteout && disk)
			rc = extract(a, e, disk, err);
	}
	return rc;
}

static int apply(int fd, struct error *err)
{
	struct archive *disk;
	int rc = pass(fd, NULL, err);

	if (rc < 0)
		return rc;
	disk = archive_write_disk_new();
	archive_write_disk_set_options(disk, ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM |
						     ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_XATTR |
						     ARCHIVE_EXTRACT_UNLINK |
						     ARCHIVE_EXTRACT_SECURE_NODOTDOT);
	rc = pass(fd, disk, err);
	/* directories get their modes and times now */
	if (archive_write_close(disk) < ARCHIVE_WARN && rc >= 0)
		rc = failed(disk, "a layer", err);
	archive_write_free(disk);
	return rc;
}

struct job {
	const int *layers;
	size_t count;
	const char *root;
	struct error *err; /* in memory that both processes see */
};

static int in_root(void *arg)
{
	const struct job *job = arg;
	int rc = 0;

	/* names are UTF-8, and no conversion may be looked for below the new root */
	setlocale(LC_CTYPE, "C.UTF-8");
	umask(0);
	if (chroot(job->root) < 0 || chdir("/") < 0)
		return error_errno(job->err, errno, "cannot enter %s", job->root);
	for (size_t i = 0; i < job->count && rc == 0; i++)
		rc = apply(job->layers[i], job->err);
	return rc;
}

int layers_apply(const int *layers, size_t count, const char *root, int timeout_ms,
		 struct error *err)
{
	struct job job = { .layers = layers, .count = count, .root = root };
	struct error called = ERROR_INIT;
	int rc;

	job.err = mmap(NULL, sizeof(*job.err), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (job.err == MAP_FAILED)
		return error_errno(err, errno, "cannot unpack an image");
	rc = spawn_call(in_root, &job, timeout_ms, &called);
	if (rc < 0)
		error_set(err, -rc, "%s",
			  rc != -ETIMEDOUT && job.err->code ? job.err->message : called.message);
	munmap(job.err, sizeof(*job.err));
	return rc;
}
