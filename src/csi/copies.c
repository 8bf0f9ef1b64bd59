/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/copies.h"

#include "base/mem.h"
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRAPH ".meta/graphs/active"
#define NAME_MAX_LEN 256

/* ---- lines, without memory: this runs in a child ---------------------------------------------- */

struct lines {
	int fd;
	size_t start, end;
	char text[8192];
};

/* The next line, cut where it is longer than the buffer; NULL at the end. */
static char *next_line(struct lines *l)
{
	for (;;) {
		char *from = l->text + l->start, *stop = memchr(from, '\n', l->end - l->start);
		ssize_t n;

		if (stop || (l->start == 0 && l->end == sizeof(l->text) - 1)) {
			if (!stop)
				stop = l->text + l->end;
			*stop = '\0';
			l->start = (size_t)(stop - l->text) + (stop < l->text + l->end);
			return from;
		}
		memmove(l->text, from, l->end - l->start);
		l->end -= l->start;
		l->start = 0;
		n = read(l->fd, l->text + l->end, sizeof(l->text) - 1 - l->end);
		if (n <= 0)
			return NULL;
		l->end += (size_t)n;
	}
}

static int open_at(const char *root, const char *name, const char *file)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" GRAPH "/%s%s%s", root, name, *name ? "/" : "",
			 file),
	    fd;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- what a client has open ------------------------------------------------------------------- */

struct view {
	const char *root;
	size_t count, groups;
	struct lines graph, client;
	struct copies found[]; /* in memory that is shared with the child */
};

/* Of the copies of one set: which files are there, open or lost. */
struct group {
	uint32_t connected;
	struct member {
		bool known;
		uint32_t open[2];
	} *members;
};

static const char *value_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? at + strlen(key) : NULL;
}

/* granted-posix-lock[0] = …, fl_start = N, fl_end = N, … */
static void note_lock(const struct view *v, const char *line, bool open, uint32_t bit,
		      struct member *members)
{
	const char *start = value_of(line, "fl_start = ");
	uint64_t from = start ? strtoull(start, NULL, 10) : 0;

	for (size_t i = 0; i < v->count; i++)
		if (from >> 1 == v->found[i].slots >> 1) {
			members[i].known = true;
			if (open)
				members[i].open[from & 1] |= bit;
		}
}

/*
 * Each descriptor's number at the brick, -1 where it has none, and then its locks. One that was closed
 * while it had none stays in the list.
 */
static int read_client(struct view *v, const char *name, uint32_t bit, struct group *g)
{
	cleanup_close int fd = open_at(v->root, name, "private");
	bool open = false;
	char *line;

	if (fd < 0)
		return fd;
	v->client = (struct lines){ .fd = fd };
	while ((line = next_line(&v->client))) {
		const char *number = value_of(line, ".remote_fd = ");

		if (number)
			open = *number != '-';
		else if (strncmp(line, "granted-posix-lock", strlen("granted-posix-lock")) == 0)
			note_lock(v, line, open, bit, g->members);
		else if (strcmp(line, "connected = 1") == 0)
			g->connected |= bit;
	}
	return 0;
}

/* names: of clients, separated by blanks. */
static int read_group(struct view *v, char *names, struct member *members)
{
	struct group g = { .members = members };
	uint32_t bit = 1;
	int r = 0;

	memset(members, 0, v->count * sizeof(*members));
	v->groups++;
	for (char *rest, *name = strtok_r(names, " ", &rest); name && bit && r == 0;
	     name = strtok_r(NULL, " ", &rest), bit <<= 1)
		r = read_client(v, name, bit, &g);
	for (size_t i = 0; i < v->count && r == 0; i++)
		if (members[i].known) {
			v->found[i].connected = g.connected;
			memcpy(v->found[i].open, members[i].open, sizeof(members[i].open));
		}
	return r;
}

static bool is_type(const char *line, bool sets)
{
	const char *type = value_of(line, "    type ");

	if (!type)
		return false;
	return sets ? strcmp(type, "cluster/replicate") == 0 || strcmp(type, "cluster/disperse") == 0
		    : strcmp(type, "protocol/client") == 0;
}

/* Sets of copies; where the volume has none, each client is one. */
static int read_graph(struct view *v, bool sets, struct member *members)
{
	cleanup_close int fd = open_at(v->root, "", "volfile");
	char name[NAME_MAX_LEN] = "", *line;
	bool wanted = false;
	int r = 0;

	if (fd < 0)
		return fd;
	v->graph = (struct lines){ .fd = fd };
	while (r == 0 && (line = next_line(&v->graph))) {
		if (strncmp(line, "volume ", 7) == 0) {
			snprintf(name, sizeof(name), "%s", line + 7);
			wanted = false;
		} else if (is_type(line, sets)) {
			wanted = true;
			if (!sets)
				r = read_group(v, name, members);
		} else if (wanted && sets && strncmp(line, "    subvolumes ", 15) == 0) {
			r = read_group(v, line + 15, members);
		}
	}
	return r;
}

static int do_look(void *arg)
{
	struct view *v = arg;
	struct member *members = (struct member *)(v->found + v->count);
	int r = read_graph(v, true, members);

	return r == 0 && !v->groups ? read_graph(v, false, members) : r;
}

int copies_look(const char *root, size_t n, struct copies *c, int timeout_ms, struct error *err)
{
	size_t size = sizeof(struct view) + n * (sizeof(struct copies) + sizeof(struct member));
	struct view *v =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (v == MAP_FAILED)
		return error_errno(err, errno, "cannot ask the client of %s", root);
	v->root = root;
	v->count = n;
	for (size_t i = 0; i < n; i++)
		v->found[i] = (struct copies){ .slots = c[i].slots };
	r = spawn_call_keeping(do_look, v, -1, root, timeout_ms, NULL);
	if (r == 0)
		memcpy(c, v->found, n * sizeof(*c));
	munmap(v, size);
	return r < 0 ? error_errno(err, -r, "cannot ask the client of %s for its copies", root) : 0;
}

unsigned copies_slot(const struct copies *c)
{
	return __builtin_popcount(c->open[1]) > __builtin_popcount(c->open[0]);
}

bool copies_miss(const struct copies *c)
{
	return c->connected & ~c->open[copies_slot(c)];
}
