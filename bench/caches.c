/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What looking and reading costs in directories that are one, each by another mount: the same steps in all of
 * them, in turns, each for the second time (what is cached then is cached). Prints a line a step: the shortest
 * time of each, since a machine that does other things as well only adds to it, and the first one's as a multiple
 * of each other's. Take so few files that they are done in well under a second.
 *
 *   bench-caches FILES MIB ROUNDS DIR DIR…
 */
#include "base/mem.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SMALL 4096
#define BLOCK (128 << 10)
#define ROUNDS_MAX 99
#define DIRS_MAX 4

static int files, mib;
static char block[BLOCK];

struct place {
	const char *dir;
	int fd; /* of the large file, kept open */
	const char *map;
	double times[ROUNDS_MAX];
};

static void must(bool good, const char *what)
{
	if (!good)
		error(1, errno, "%s", what);
}

static const char *path_of(const struct place *p, const char *kind, int i)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s-%d", p->dir, kind, i);
	return path;
}

static void write_file(const char *path, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	must(fd >= 0, path);
	for (size_t n; size; size -= n) {
		n = size < BLOCK ? size : BLOCK;
		must(write(fd, block, n) == (ssize_t)n, path);
	}
	must(close(fd) == 0, path);
}

static void read_fd(int fd, size_t size)
{
	for (size_t at = 0; at < size; at += BLOCK)
		must(pread(fd, block, BLOCK, (off_t)at) > 0, "read");
}

/* ---- steps ---- */

static void stat_files(struct place *p)
{
	struct stat st;

	for (int i = 0; i < files; i++)
		must(stat(path_of(p, "small", i), &st) == 0, "stat");
}

static void read_files(struct place *p)
{
	for (int i = 0; i < files; i++) {
		int fd = open(path_of(p, "small", i), O_RDONLY);

		must(fd >= 0 && read(fd, block, SMALL) == SMALL && close(fd) == 0, "small");
	}
}

static void write_files(struct place *p)
{
	for (int i = 0; i < files; i++)
		write_file(path_of(p, "written", i), SMALL);
}

static void open_large(struct place *p)
{
	int fd = open(path_of(p, "large", 0), O_RDONLY);

	must(fd >= 0, "large");
	read_fd(fd, (size_t)mib << 20);
	close(fd);
}

static void held_large(struct place *p)
{
	read_fd(p->fd, (size_t)mib << 20);
}

/* Through a mapping: no call, so nothing is asked. */
static void mapped_large(struct place *p)
{
	for (size_t at = 0; at < (size_t)mib << 20; at += BLOCK)
		memcpy(block, p->map + at, BLOCK);
}

static void write_large(struct place *p)
{
	write_file(path_of(p, "rewritten", 0), (size_t)mib << 20);
}

/* In this order: no step takes from the caches what the next one measures. */
static const struct step {
	const char *name;
	void (*run)(struct place *p);
	void (*before)(struct place *p); /* not measured: what is measured is the second time */
} steps[] = {
	{ "stat", stat_files, stat_files },
	{ "open-read-close", read_files, read_files },
	{ "open-write-close", write_files, write_files },
	{ "large: open and read again", open_large, open_large },
	{ "large: read again, kept open", held_large, held_large },
	{ "large: mapped, kept open", mapped_large, mapped_large },
	{ "large: write", write_large, NULL },
};

/* ---- measuring ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(const struct step *s, struct place *p, int round)
{
	double begin;

	if (s->before)
		s->before(p);
	begin = now();
	s->run(p);
	p->times[round] = now() - begin;
}

static void hold(struct place *p)
{
	p->fd = open(path_of(p, "large", 0), O_RDONLY);
	must(p->fd >= 0, "large");
	p->map = mmap(NULL, (size_t)mib << 20, PROT_READ, MAP_SHARED, p->fd, 0);
	must(p->map != MAP_FAILED, "mmap");
}

static void report(const char *name, struct place *places, int count, int rounds)
{
	double first = 0;

	printf("%-30s", name);
	for (int i = 0; i < count; i++) {
		double t = places[i].times[0];

		for (int k = 1; k < rounds; k++)
			t = places[i].times[k] < t ? places[i].times[k] : t;
		first = i ? first : t;
		printf(i ? "  %9.2f ms (%.2f times)" : "  %9.2f ms", t * 1e3, first / t);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct place places[DIRS_MAX] = { 0 };
	int count = argc - 4, rounds = argc > 4 ? atoi(argv[3]) : 0;

	if (count < 1 || count > DIRS_MAX || rounds < 1 || rounds > ROUNDS_MAX)
		error(2, 0, "use: bench-caches FILES MIB ROUNDS DIR DIR…");
	files = atoi(argv[1]);
	mib = atoi(argv[2]);
	for (int i = 0; i < count; i++)
		places[i].dir = argv[4 + i];
	for (int i = 0; i < files; i++)
		write_file(path_of(places, "small", i), SMALL);
	write_file(path_of(places, "large", 0), (size_t)mib << 20);
	for (int i = 0; i < count; i++)
		hold(&places[i]);
	for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
		for (int round = 0; round < rounds; round++)
			for (int i = 0; i < count; i++)
				measure(&steps[s], &places[i], round);
		report(steps[s].name, places, count, rounds);
	}
	return 0;
}
