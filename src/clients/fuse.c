/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/fuse.h"

#include "base/log.h"
#include "base/mem.h"
#include "clients/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>

#define ASK_MS 10000

struct kept {
	char *point;
	json_t *argv;
	int fd;
};

struct fuse_keeper {
	char *dir;
	struct kept *kept;
	size_t count;
};

static void kept_done(struct kept *k)
{
	free(k->point);
	json_decref(k->argv);
	if (k->fd >= 0)
		close(k->fd);
}

struct fuse_keeper *fuse_keeper_new(const char *dir)
{
	struct fuse_keeper *k = xcalloc(1, sizeof(*k));

	k->dir = xstrdup(dir);
	return k;
}

void fuse_keeper_free(struct fuse_keeper *k)
{
	for (size_t i = 0; k && i < k->count; i++)
		kept_done(&k->kept[i]);
	if (k) {
		free(k->kept);
		free(k->dir);
	}
	free(k);
}

static void add(struct fuse_keeper *k, const char *point, json_t *argv, int fd)
{
	k->kept = xrealloc(k->kept, (k->count + 1) * sizeof(*k->kept));
	k->kept[k->count++] =
		(struct kept){ .point = xstrdup(point), .argv = json_incref(argv), .fd = fd };
}

static struct kept *find(const struct fuse_keeper *k, const char *point)
{
	for (size_t i = 0; i < k->count; i++)
		if (streq(k->kept[i].point, point))
			return &k->kept[i];
	return NULL;
}

/* What is unmounted, or was aborted, says so on its descriptor. */
static void forget_unmounted(struct fuse_keeper *k)
{
	for (size_t i = k->count; i-- > 0;) {
		struct pollfd p = { .fd = k->kept[i].fd };

		if (poll(&p, 1, 0) > 0 && (p.revents & POLLERR)) {
			kept_done(&k->kept[i]);
			k->kept[i] = k->kept[--k->count];
		}
	}
}

/* ---- mounting ------------------------------------------------------------------------------- */

static int mount_with(const char *point, const char *source, int fd, struct error *err)
{
	cleanup_free char *options = xasprintf(
		"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd);

	if (mount(source, point, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return error_errno(err, errno, "cannot mount %s on %s", source, point);
	return 0;
}

static int give(const struct fuse_keeper *k, const struct kept *kept, struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *request = json_pack("{s:s, s:s, s:O}", "op", "serveFuse", "mountPoint",
						 kept->point, "argv", kept->argv);

	return client_call_fd(k->dir, request, kept->fd, ASK_MS, &reply, NULL, err);
}

int fuse_keeper_mount(struct fuse_keeper *k, const char *point, const char *source,
		      const char *const *argv, struct error *err)
{
	cleanup_json json_t *words = json_array();
	cleanup_close int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return error_errno(err, errno, "cannot open /dev/fuse");
	for (; *argv; argv++)
		json_array_append_new(words, json_string(*argv));
	forget_unmounted(k);
	if (find(k, point))
		return error_set(err, EEXIST, "%s is mounted already", point);
	rc = mount_with(point, source, fd, err);
	if (rc < 0)
		return rc;
	add(k, point, words, TAKE_FD(fd));
	rc = give(k, &k->kept[k->count - 1], err);
	if (rc < 0) {
		(void)umount2(point, MNT_DETACH);
		kept_done(&k->kept[--k->count]);
	}
	return rc;
}

/* ---- renewing ------------------------------------------------------------------------------- */

static int take(struct fuse_keeper *k, const char *point, struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *request =
		json_pack("{s:s, s:s}", "op", "takeFuse", "mountPoint", point);
	int fd, rc = client_call_fd(k->dir, request, -1, ASK_MS, &reply, &fd, err);

	if (rc == 0)
		add(k, point, json_object_get(reply.text, "argv"), fd);
	return rc == -ENOENT ? 0 : rc;
}

int fuse_keeper_renew(struct fuse_keeper *k, struct error *err)
{
	cleanup_with(client_reply_done) struct client_reply info = { 0 };
	cleanup_json json_t *request = json_pack("{s:s}", "op", "info");
	const json_t *one;
	size_t i;
	int rc = client_call(k->dir, request, NULL, 0, ASK_MS, &info, err);

	if (rc < 0)
		return rc;
	forget_unmounted(k);
	json_array_foreach (json_object_get(info.text, "fuse"), i, one)
		if (rc == 0 && jstr(one, "mountPoint") && !find(k, jstr(one, "mountPoint")))
			rc = take(k, jstr(one, "mountPoint"), err);
	for (i = 0; rc == 0 && i < k->count; i++) {
		rc = give(k, &k->kept[i], err);
		if (rc == -EEXIST)
			rc = 0;
	}
	return rc;
}
