/* SPDX-License-Identifier: Apache-2.0 */
#include "api/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int drop_clean(struct dl_phdr_info *info, size_t size, void *userdata)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)userdata;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + p->p_vaddr) & ~(page - 1);
		uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;

		/* Only what cannot have been written: dropping it loses nothing. */
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void memory_give_back(void)
{
	malloc_trim(0);
	dl_iterate_phdr(drop_clean, NULL);
}
