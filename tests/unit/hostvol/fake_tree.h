/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files below the root of a fake host. Paths begin with a slash; a mistake ends the test. */

/* A file with its parents; text NULL: only the parents. */
void tree_put(const char *root, const char *text, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A link to another path below the same root. */
void tree_link(const char *root, const char *target, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Removes a file or a directory with all that is in it. */
void tree_drop(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How many names a directory has. */
int tree_entries(const char *root, const char *dir);
/*
 * Makes what a file describes: a line that begins with a slash is a directory, or with " -> " a
 * link as it stands; lines below it that begin with a tab are its files, each a name and its text.
 */
void tree_load(const char *root, const char *file);
