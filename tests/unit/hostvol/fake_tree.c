/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_tree.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* The path below root; caller frees. */
#define FULL_PATH(name, root, format)                                                              \
	cleanup_free char *name = NULL;                                                            \
	do {                                                                                       \
		cleanup_free char *below_ = NULL;                                                  \
		va_list args_;                                                                     \
                                                                                                   \
		va_start(args_, format);                                                           \
		if (vasprintf(&below_, format, args_) < 0)                                         \
			abort();                                                                   \
		va_end(args_);                                                                     \
		name = xasprintf("%s%s", root, below_);                                            \
	} while (0)

static void make_parents(const char *path)
{
	cleanup_free char *dir = xasprintf("%.*s", (int)(strrchr(path, '/') - path), path);

	if (mkdir_parents(dir, 0755, NULL) < 0)
		abort();
}

void tree_put(const char *root, const char *text, const char *format, ...)
{
	FULL_PATH(path, root, format);
	make_parents(path);
	if (text && file_write(path, text, strlen(text), 0644, NULL) < 0)
		abort();
}

void tree_link(const char *root, const char *target, const char *format, ...)
{
	cleanup_free char *full = xasprintf("%s%s", root, target);

	FULL_PATH(path, root, format);
	make_parents(path);
	unlink(path);
	if (symlink(full, path) < 0)
		abort();
}

void tree_drop(const char *root, const char *format, ...)
{
	FULL_PATH(path, root, format);
	remove_tree(path, NULL);
}

int tree_entries(const char *root, const char *dir)
{
	cleanup_free char *path = xasprintf("%s%s", root, dir);
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void load_line(const char *root, char *line, char **dir)
{
	char *arrow = strstr(line, " -> "), *value;

	if (line[0] == '/' && arrow) {
		cleanup_free char *path = xasprintf("%s%.*s", root, (int)(arrow - line), line);

		make_parents(path);
		if (symlink(arrow + 4, path) < 0)
			abort();
	} else if (line[0] == '/') {
		free(*dir);
		*dir = xstrdup(line);
		tree_put(root, NULL, "%s/x", line);
	} else if (line[0] == '\t' && *dir) {
		value = line + strcspn(line, " ");
		if (*value)
			*value++ = '\0';
		tree_put(root, value, "%s/%s", *dir, line + 1);
	}
}

void tree_load(const char *root, const char *file)
{
	cleanup_free char *text = NULL, *dir = NULL;
	char *line, *rest;

	if (file_read(file, 1 << 20, &text, NULL, NULL) < 0)
		abort();
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		load_line(root, line, &dir);
}
