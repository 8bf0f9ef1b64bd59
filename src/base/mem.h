/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Allocation and scope-bound cleanup. Programs end on an allocation failure (x* functions below:
 * a control plane that restarts from what is stored is safer than one that limps on).
 * libhostvol, which lives in other people's processes, never calls an x* function.
 */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void cleanup_free_p(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close_p(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define cleanup_free __attribute__((cleanup(cleanup_free_p)))
#define cleanup_close __attribute__((cleanup(cleanup_close_p)))
/* cleanup(func): calls func(&variable) at the end of the scope */
#define cleanup_with(func) __attribute__((cleanup(func)))

#define TAKE_PTR(p)                    \
	({                             \
		__typeof__(p) t_ = (p); \
		(p) = NULL;            \
		t_;                    \
	})
#define TAKE_FD(fd)          \
	({                   \
		int t_ = (fd); \
		(fd) = -1;   \
		t_;          \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline bool streq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}
