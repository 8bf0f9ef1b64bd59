/* SPDX-License-Identifier: Apache-2.0 */
#include "local/self.h"

#include "base/mem.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

const char *self_path(void)
{
	static char path[PATH_MAX];

	if (!path[0]) {
		ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		/* under valgrind /proc/self/exe is valgrind's own tool */
		const char *given = getenv("QM_SELF");

		if (given)
			snprintf(path, sizeof(path), "%s", given);
		else
			path[n > 0 ? n : 0] = '\0';
	}
	return path;
}

char *self_sibling(const char *name)
{
	static const char *const places[] = { "",
					      "../worker/",
					      "../clients/",
					      "../containers/",
					      "../libexec/quartermaster/",
					      "../../hostvol/" };
	cleanup_free char *dir = xstrdup(self_path());
	char *slash = strrchr(dir, '/');

	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		cleanup_free char *path = xasprintf("%s/%s%s", dir, places[i], name);

		if (access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return xstrdup(name);
}
