/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the place of qm-gluster, where the operator and not the pool is measured: everything asked of it is done
 * at once, and nothing is kept.
 */
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>

int main(void)
{
	cleanup_free char *line = NULL;
	size_t size = 0;
	ssize_t len;

	/* standard output is its log: the answers go back where the questions come from */
	while ((len = getline(&line, &size, stdin)) > 0) {
		cleanup_json json_t *request = NULL, *reply = NULL;
		cleanup_free char *text = NULL;
		const char *op;

		if (json_parse(line, (size_t)len, &request, NULL) < 0)
			return 1;
		op = jstr(request, "op");
		reply = json_pack(
			"{sI si so}", "id", (json_int_t)jint(request, "id"), "rc", 0, "result",
			streq(op, "list") || streq(op, "snapshots") ? json_array() : json_object());
		text = json_text(reply);
		if (dprintf(STDIN_FILENO, "%s\n", text) < 0)
			return 1;
	}
	return 0;
}
