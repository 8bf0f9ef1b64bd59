/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trim.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapping {
	uintptr_t start, end;
	int clean_file; /* read-only and of a file; cleared when a private copy of a page turns up */
};

long memory_resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%*s %ld", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Only pages that are the file's own go: dropping a private copy (relocated data) would lose it. */
static void drop(const struct mapping *m)
{
	if (m->end > m->start && m->clean_file)
		madvise((void *)m->start, m->end - m->start, MADV_DONTNEED);
}

static void drop_file_pages(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	struct mapping m = { 0 };
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end, kib;
		char perms[5];

		if (sscanf(line, "%lx-%lx %4s", &start, &end, perms) == 3) {
			drop(&m);
			m = (struct mapping){
				start, end, perms[0] == 'r' && perms[1] == '-' && strchr(line, '/')
			};
		} else if ((sscanf(line, "Private_Dirty: %lu", &kib) == 1 ||
			    sscanf(line, "Anonymous: %lu", &kib) == 1) &&
			   kib > 0) {
			m.clean_file = 0;
		}
	}
	drop(&m);
	if (f)
		fclose(f);
}

long memory_trim(long limit_kib)
{
	if (memory_resident_kib() < limit_kib)
		return 0;
	malloc_trim(0);
	drop_file_pages();
	return memory_resident_kib();
}
