/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/glusterd.h"
#include "systems/glusterfs/storage.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LINE_MAX_BYTES 65536
#define TOLD_MS 5000 /* the line comes at once, unless the node is very busy */
#define AGAIN_MS 1000 /* between two tries while there is no storage pod */

struct storage_watch {
	pthread_t thread;
	int end; /* eventfd */
	void (*changed)(void *userdata);
	void *userdata;
};

static int connect_storage(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = STORAGE_SOCKET };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- one look ------------------------------------------------------------------------------ */
/* What runs now; NULL: there is no storage pod. New reference. */
static json_t *storage_state(void)
{
	cleanup_close int fd = connect_storage();
	int64_t end = clock_mono_ms(&clock_real) + TOLD_MS;
	struct buf line cleanup_with(buf_done) = { 0 };
	json_t *state = NULL;

	while (fd >= 0 && line.len < LINE_MAX_BYTES && (!line.data || !strchr(line.data, '\n'))) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - clock_mono_ms(&clock_real);
		char piece[4096];
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) <= 0 ||
		    (n = recv(fd, piece, sizeof(piece), 0)) <= 0)
			return NULL;
		buf_add(&line, piece, (size_t)n);
	}
	if (line.data && json_parse(line.data, strcspn(line.data, "\n"), &state, NULL) < 0)
		return NULL;
	return state;
}

int storage_brick_pid(const char *path)
{
	cleanup_json json_t *state = storage_state();

	return (int)jint(state, "bricks", path);
}

static int glusterd_pid_there(void *userdata)
{
	cleanup_json json_t *state = storage_state();

	*(int *)userdata = (int)jint(state, "glusterd");
	return *(int *)userdata;
}

int storage_glusterd(struct glusterd_state *ret, struct error *err)
{
	int pid = 0, rc = glusterd_wait(glusterd_pid_there, &pid, err);

	if (rc < 0)
		return pid ? rc
			   : error_set(err, -rc,
				       "glusterd does not run: is the node's storage pod up?");
	*ret = (struct glusterd_state){ .running = true, .pid = pid };
	glusterd_uuid(ret->uuid);
	return 0;
}

/* ---- changes ------------------------------------------------------------------------------- */
/* Waits for a byte of fd (-1: just waits); -1: the end has come. */
static int await(struct storage_watch *w, int fd, int ms)
{
	struct pollfd fds[] = { { .fd = w->end, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };
	int rc = poll(fds, 2, ms);

	return fds[0].revents ? -1 : rc;
}

static void *watch_thread(void *arg)
{
	struct storage_watch *w = arg;
	int fd = -1;

	while (await(w, fd, fd < 0 ? AGAIN_MS : -1) >= 0) {
		char piece[4096];

		if (fd < 0) {
			fd = connect_storage();
			continue;
		}
		if (recv(fd, piece, sizeof(piece), MSG_DONTWAIT) == 0) {
			close(fd);
			fd = -1;
		}
		w->changed(w->userdata);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

struct storage_watch *storage_watch_new(void (*changed)(void *userdata), void *userdata)
{
	struct storage_watch *w = xcalloc(1, sizeof(*w));
	pthread_attr_t attr;

	w->changed = changed;
	w->userdata = userdata;
	w->end = eventfd(0, EFD_CLOEXEC);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	if (w->end < 0 || pthread_create(&w->thread, &attr, watch_thread, w) != 0)
		abort();
	pthread_attr_destroy(&attr);
	return w;
}

void storage_watch_free(struct storage_watch *w)
{
	uint64_t one = 1;

	if (!w)
		return;
	while (write(w->end, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(w->thread, NULL);
	close(w->end);
	free(w);
}
