/* SPDX-License-Identifier: Apache-2.0 */
#include "mountinfo.h"

#include "base/mem.h"

#include <errno.h>

/* "\040" and the like, in place. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/* Splits a line in place; the first 6 fields, then those after the "-" that ends the optional ones. */
static bool split_line(char *line, char *fixed[6], char *after[3])
{
	size_t n = 0, m = 0;
	bool separator = false;
	char *save = NULL;

	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (n < 6)
			fixed[n++] = word;
		else if (!separator)
			separator = streq(word, "-");
		else if (m < 3)
			after[m++] = word;
	}
	return n == 6 && m >= 2;
}

static int copy_entry(const struct mount_entry *e, struct mount_entry *ret)
{
	mount_entry_done(ret);
	*ret = (struct mount_entry){ .device = strdup(e->device),
				     .root = strdup(e->root),
				     .fs_type = strdup(e->fs_type),
				     .source = strdup(e->source),
				     .mount_point = strdup(e->mount_point),
				     .options = strdup(e->options) };
	if (ret->device && ret->root && ret->fs_type && ret->source && ret->mount_point &&
	    ret->options)
		return 0;
	mount_entry_done(ret);
	return -ENOMEM;
}

int mountinfo_each(const char *text, int (*fn)(const struct mount_entry *e, void *userdata),
		   void *userdata)
{
	char *fixed[6], *after[3];
	int r = 0;

	while (*text && r == 0) {
		size_t len = strcspn(text, "\n");
		cleanup_free char *line = strndup(text, len);

		if (!line)
			return -ENOMEM;
		text += len;
		text += *text == '\n';
		if (!split_line(line, fixed, after))
			continue;
		unescape(fixed[3]);
		unescape(fixed[4]);
		unescape(after[0]);
		unescape(after[1]);
		r = fn(&(struct mount_entry){ .device = fixed[2],
					      .root = fixed[3],
					      .mount_point = fixed[4],
					      .options = fixed[5],
					      .fs_type = after[0],
					      .source = after[1] },
		       userdata);
	}
	return r;
}

struct find {
	const char *mount_point;
	struct mount_entry found;
};

static int find_one(const struct mount_entry *e, void *userdata)
{
	struct find *f = userdata;

	/* later lines lie over earlier ones */
	return streq(e->mount_point, f->mount_point) ? copy_entry(e, &f->found) : 0;
}

int mountinfo_find(const char *text, const char *mount_point, struct mount_entry *ret)
{
	struct find f = { .mount_point = mount_point };
	int r = mountinfo_each(text, find_one, &f);

	if (r < 0) {
		mount_entry_done(&f.found);
		return r;
	}
	if (!f.found.device)
		return 0;
	*ret = f.found;
	return 1;
}

void mount_entry_done(struct mount_entry *e)
{
	free(e->device);
	free(e->root);
	free(e->fs_type);
	free(e->source);
	free(e->mount_point);
	free(e->options);
	*e = (struct mount_entry){ 0 };
}
