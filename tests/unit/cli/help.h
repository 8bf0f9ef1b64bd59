/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/mem.h"
#include "cli/connect.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

/* What goes to standard error between the two. */
struct capture {
	int fd, saved;
};

static inline struct capture capture_begin(void)
{
	struct capture c = { .fd = memfd_create("stderr", MFD_CLOEXEC),
			     .saved = dup(STDERR_FILENO) };

	(void)fflush(stderr);
	assert_int_not_equal(dup2(c.fd, STDERR_FILENO), -1);
	return c;
}

/* Caller frees. */
static inline char *capture_end(struct capture c)
{
	char text[8192];
	ssize_t n;

	(void)fflush(stderr);
	(void)dup2(c.saved, STDERR_FILENO);
	n = pread(c.fd, text, sizeof(text) - 1, 0);
	close(c.saved);
	close(c.fd);
	text[n > 0 ? n : 0] = '\0';
	return xstrdup(text);
}
