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

static int copy_entry(char *fixed[6], char *after[3], struct mount_entry *ret)
{
	unescape(fixed[3]);
	unescape(after[0]);
	unescape(after[1]);
	mount_entry_done(ret);
	*ret = (struct mount_entry){ .device = strdup(fixed[2]),
				     .root = strdup(fixed[3]),
				     .fs_type = strdup(after[0]),
				     .source = strdup(after[1]) };
	if (ret->device && ret->root && ret->fs_type && ret->source)
		return 0;
	mount_entry_done(ret);
	return -ENOMEM;
}

int mountinfo_find(const char *text, const char *mount_point, struct mount_entry *ret)
{
	struct mount_entry found = { 0 };
	char *fixed[6], *after[3];
	int r, any = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");
		cleanup_free char *line = strndup(text, len);

		if (!line) {
			mount_entry_done(&found);
			return -ENOMEM;
		}
		text += len;
		text += *text == '\n';
		if (!split_line(line, fixed, after))
			continue;
		unescape(fixed[4]);
		if (!streq(fixed[4], mount_point))
			continue;
		/* later lines lie over earlier ones */
		r = copy_entry(fixed, after, &found);
		if (r < 0)
			return r;
		any = 1;
	}
	if (any)
		*ret = found;
	return any;
}

void mount_entry_done(struct mount_entry *e)
{
	free(e->device);
	free(e->root);
	free(e->fs_type);
	free(e->source);
	*e = (struct mount_entry){ 0 };
}
