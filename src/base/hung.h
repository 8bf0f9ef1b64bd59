/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

/*
 * Children that hang in the kernel although they were killed. They are remembered until they end, by
 * what they do (a function, NULL: a program) and the path that they hang on; whoever is about
 * to do the same again is refused at once. So a file system that hangs for days, and is asked for every few
 * seconds, costs one process for each kind of step; and all that hang are at most HUNG_MAX.
 * libhostvol uses this: nothing here ends the program for want of memory. Thread-safe.
 */
#define HUNG_MAX 256

/* Forgets those that have ended. -ETIMEDOUT and a sentence where no child may be started; about: NULL: any path. */
int hung_check(int (*fn)(void *arg), const char *about, struct error *err);

/* A child that did not end; block is its memory, unmapped when it has (NULL: none). */
void hung_leave(pid_t pid, int (*fn)(void *arg), const char *about, void *block, size_t size);
