/* SPDX-License-Identifier: Apache-2.0 */
#include "containers/image.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "containers/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define TEXT_MAX (4 << 20)
#define LAYERS_MAX 128
#define UNPACK_MS (30 * 60 * 1000)
#define HEX_LEN 64
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define LIST_TYPE "application/vnd.docker.distribution.manifest.list.v2+json"

struct unpacking {
	const char *source;
	char *layout; /* where the blobs are */
	char *work; /* STORE/new.XXXXXX, or NULL */
	int work_fd; /* locked, so that nobody takes it for left behind */
	int layers[LAYERS_MAX];
	size_t count;
	json_t *image; /* image.json */
};

/* ---- blobs ----------------------------------------------------------------------------------- */

/* The 64 digits of a digest that can be a file's name, or NULL. */
static const char *digest_hex(const char *digest)
{
	const char *hex = digest && str_has_prefix(digest, "sha256:") ? digest + 7 : NULL;

	return hex && strlen(hex) == HEX_LEN && strspn(hex, "0123456789abcdef") == HEX_LEN ? hex
											   : NULL;
}

static int hash_fd(int fd, char ret[static HEX_LEN + 1])
{
	unsigned char block[16 << 10], sum[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	ssize_t n = -1;
	bool good = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);

	while (good && (n = read(fd, block, sizeof(block))) > 0)
		good = EVP_DigestUpdate(ctx, block, (size_t)n);
	good = good && n == 0 && EVP_DigestFinal_ex(ctx, sum, NULL);
	EVP_MD_CTX_free(ctx);
	for (int i = 0; good && i < HEX_LEN / 2; i++)
		snprintf(ret + 2 * (size_t)i, 3, "%02x", sum[i]);
	return good ? 0 : -EIO;
}

/* A descriptor of the blob that a descriptor (OCI's) names, when it has proved to be that. */
static int blob_open(const struct unpacking *u, const json_t *descriptor, struct error *err)
{
	const char *digest = jstr(descriptor, "digest"), *hex = digest_hex(digest);
	cleanup_free char *path = hex ? xasprintf("%s/blobs/sha256/%s", u->layout, hex) : NULL;
	cleanup_close int fd = -1;
	char sum[HEX_LEN + 1] = "";
	struct stat st;

	if (!hex)
		return error_set(err, EINVAL, "%s: \"%.80s\" is not a sha256 digest", u->source,
				 digest ? digest : "");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(err, ENOENT, "%s lacks the blob %s", u->source, digest);
	if (st.st_size != jint(descriptor, "size") || hash_fd(fd, sum) < 0 || !streq(sum, hex))
		return error_set(err, EBADMSG,
				 "%s: the blob %s is damaged: it is not what its "
				 "digest says",
				 u->source, digest);
	return TAKE_FD(fd);
}

static int blob_json(const struct unpacking *u, const json_t *descriptor, json_t **ret,
		     struct error *err)
{
	cleanup_close int fd = blob_open(u, descriptor, err);
	cleanup_free char *text = NULL, *path = NULL;
	size_t len;
	int rc;

	if (fd < 0)
		return fd;
	path = xasprintf("/proc/self/fd/%d", fd);
	rc = file_read(path, TEXT_MAX, &text, &len, err);
	if (rc == 0)
		rc = json_parse(text, len, ret, err);
	return rc < 0 ? error_prefix(err, "%s: the blob %s", u->source, jstr(descriptor, "digest"))
		      : 0;
}

/* ---- which image ----------------------------------------------------------------------------- */

static const char *architecture(void)
{
	static const char *const names[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };
	static struct utsname u;

	uname(&u);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(u.machine, names[i][0]))
			return names[i][1];
	return u.machine;
}

/* The only one, or the one for this machine. Borrowed. */
static int choose(const char *source, const json_t *index, const json_t **ret, struct error *err)
{
	const json_t *list = jget(index, "manifests"), *item, *found = NULL;
	size_t i;
	int count = 0;

	json_array_foreach (list, i, item) {
		const char *arch = jstr(item, "platform", "architecture");

		if (json_array_size(list) > 1 && arch && !streq(arch, architecture()))
			continue;
		found = item;
		count++;
	}
	if (count != 1)
		return error_set(err, EINVAL,
				 "%s holds %d images for this machine (%s): one is needed", source,
				 count, architecture());
	*ret = found;
	return 0;
}

static int read_index(const char *source, bool directory, json_t **ret, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/index.json", source), *text = NULL;
	size_t len;
	int rc = directory ? file_read(path, TEXT_MAX, &text, &len, err)
			   : archive_member(source, "index.json", TEXT_MAX, &text, &len, err);

	if (rc == -ENOENT)
		return error_set(err, EINVAL,
				 "%s is not an OCI image: it has no index.json; make "
				 "one with: skopeo copy SOURCE oci-archive:FILE",
				 source);
	if (rc == 0)
		rc = json_parse(text, len, ret, err);
	return rc < 0 ? error_prefix(err, "reading the image %s", source) : 0;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static int open_layers(struct unpacking *u, const json_t *manifest, struct error *err)
{
	const json_t *layers = jget(manifest, "layers"), *layer;
	size_t i;

	if (json_array_size(layers) < 1 || json_array_size(layers) > LAYERS_MAX)
		return error_set(err, EINVAL, "%s: the image has %zu layers, not 1 to %d",
				 u->source, json_array_size(layers), LAYERS_MAX);
	json_array_foreach (layers, i, layer) {
		int fd = blob_open(u, layer, err);

		if (fd < 0)
			return fd;
		u->layers[u->count++] = fd;
	}
	return 0;
}

/* An index with a single image may not say for which machine it is; the image does. */
static int check_architecture(const struct unpacking *u, const json_t *settings, struct error *err)
{
	const char *arch = jstr(settings, "architecture");

	if (!arch || streq(arch, architecture()))
		return 0;
	return error_set(err, ENOEXEC,
			 "the image %s is for %.40s machines, and this one is %s: use an image for %s",
			 u->source, arch, architecture(), architecture());
}

/* Through an index of architectures, if there is one, to the manifest, its settings and layers. */
static int read_manifest(struct unpacking *u, const json_t *descriptor, struct error *err)
{
	cleanup_json json_t *manifest = NULL, *settings = NULL;
	const json_t *env;
	const char *type;
	int rc = blob_json(u, descriptor, &manifest, err);

	if (rc < 0)
		return rc;
	type = jstr(manifest, "mediaType") ?: jstr(descriptor, "mediaType");
	if (streq(type, INDEX_TYPE) || streq(type, LIST_TYPE)) {
		cleanup_json json_t *index = TAKE_PTR(manifest);
		const json_t *chosen;

		rc = choose(u->source, index, &chosen, err);
		if (rc == 0)
			rc = blob_json(u, chosen, &manifest, err);
	}
	if (rc == 0)
		rc = blob_json(u, jget(manifest, "config"), &settings, err);
	if (rc == 0)
		rc = check_architecture(u, settings, err);
	if (rc == 0)
		rc = open_layers(u, manifest, err);
	if (rc < 0)
		return rc;
	env = jget(settings, "config", "Env");
	json_object_set_new(u->image, "env",
			    json_is_array(env) ? json_copy((json_t *)env) : json_array());
	return 0;
}

static int fill(struct unpacking *u, const json_t *descriptor, struct error *err)
{
	cleanup_free char *root = xasprintf("%s/rootfs", u->work),
			  *info = xasprintf("%s/image.json", u->work), *text = NULL;
	int rc = read_manifest(u, descriptor, err);

	if (rc == 0)
		rc = mkdir_parents(root, 0755, err);
	if (rc == 0)
		rc = layers_apply(u->layers, u->count, root, UNPACK_MS, err);
	if (rc < 0)
		return rc;
	text = json_text(u->image);
	return file_write(info, text, strlen(text), 0644, err);
}

static int unpack_to(struct unpacking *u, bool directory, const json_t *descriptor,
		     const char *final, struct error *err)
{
	cleanup_free char *layout = xasprintf("%s/layout", u->work);
	int rc = 0;

	u->layout = xstrdup(directory ? u->source : layout);
	if (!directory)
		rc = archive_unpack_layout(u->source, layout, err);
	if (rc == 0)
		rc = fill(u, descriptor, err);
	if (rc == 0)
		rc = remove_tree(layout, err);
	/* another may have been faster: its result is the same */
	if (rc == 0 && rename(u->work, final) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		rc = error_errno(err, errno, "cannot keep the image %s", u->source);
	return rc;
}

/* What those who were killed left: nobody holds a lock on it. */
static void sweep(const char *store)
{
	DIR *d = opendir(store);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		cleanup_free char *path = xasprintf("%s/%s", store, e->d_name);
		cleanup_close int fd = str_has_prefix(e->d_name, "new.")
					       ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
					       : -1;

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			remove_tree(path, NULL);
	}
	if (d)
		closedir(d);
}

static int begin(struct unpacking *u, const char *store, struct error *err)
{
	int rc = mkdir_parents(store, 0700, err);

	if (rc < 0)
		return rc;
	sweep(store);
	u->work = xasprintf("%s/new.XXXXXX", store);
	if (!mkdtemp(u->work)) {
		free(TAKE_PTR(u->work));
		return error_errno(err, errno, "cannot make a directory in %s", store);
	}
	u->work_fd = open(u->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->work_fd < 0 || flock(u->work_fd, LOCK_EX | LOCK_NB) < 0)
		return error_errno(err, errno, "cannot lock %s", u->work);
	return 0;
}

static void end(struct unpacking *u)
{
	if (u->work)
		remove_tree(u->work, NULL);
	for (size_t i = 0; i < u->count; i++)
		close(u->layers[i]);
	if (u->work_fd >= 0)
		close(u->work_fd);
	free(u->work);
	free(u->layout);
	json_decref(u->image);
}

static int read_info(const char *final, json_t **ret)
{
	cleanup_free char *path = xasprintf("%s/image.json", final), *text = NULL;
	size_t len;
	int rc = file_read(path, TEXT_MAX, &text, &len, NULL);

	return rc < 0 ? rc : json_parse(text, len, ret, NULL);
}

int image_unpack(const char *source, const char *store, json_t **ret, struct error *err)
{
	cleanup_with(end) struct unpacking u = { .source = source, .work_fd = -1 };
	cleanup_free char *final = NULL, *root = NULL;
	cleanup_json json_t *index = NULL;
	const json_t *descriptor;
	struct stat st;
	int rc;

	if (stat(source, &st) < 0)
		return error_errno(err, errno, "cannot read the image %s", source);
	rc = read_index(source, S_ISDIR(st.st_mode), &index, err);
	if (rc == 0)
		rc = choose(source, index, &descriptor, err);
	if (rc < 0)
		return rc;
	if (!digest_hex(jstr(descriptor, "digest")))
		return error_set(err, EINVAL, "%s: its image has no sha256 digest", source);
	final = xasprintf("%s/%s", store, digest_hex(jstr(descriptor, "digest")));
	if (read_info(final, ret) == 0)
		return 0;
	root = xasprintf("%s/rootfs", final);
	u.image = json_pack("{s:s, s:s}", "digest", jstr(descriptor, "digest"), "rootfs", root);
	rc = begin(&u, store, err);
	if (rc == 0)
		rc = unpack_to(&u, S_ISDIR(st.st_mode), descriptor, final, err);
	if (rc == 0)
		*ret = json_incref(u.image);
	return rc;
}
