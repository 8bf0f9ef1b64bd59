/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A qm-gluster without GlusterFS: speaks the protocol on standard input and behaves as the name in
 * a request says: "hang" never answers, "die" ends the process, "fail" answers with an error,
 * "lost" with that of a lost connection, "slow" after 200 ms, "slower" after 2500. `find`
 * and `copy` answer with the request; "making" is under way; "copying" makes it busy, and "copied" makes
 * it idle again. A pool named "refuse" cannot be opened. `stat` answers with the pid.
 */
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

static void answer(json_t *reply)
{
	cleanup_free char *text = json_text(reply);
	cleanup_free char *line = xasprintf("%s\n", text);
	if (send(0, line, strlen(line), MSG_NOSIGNAL) < 0)
		_exit(3);
	json_decref(reply);
}

static void serve(const json_t *request)
{
	const char *name = jstr(request, "name");
	json_int_t id = jint(request, "id");

	if (streq(name, "hang"))
		return;
	if (streq(name, "die"))
		_exit(1);
	if (streq(name, "slow"))
		poll(NULL, 0, 200);
	if (streq(name, "slower"))
		poll(NULL, 0, 2500);
	if (streq(name, "lost"))
		answer(json_pack("{s:I, s:i, s:s}", "id", id, "rc", -ENOTCONN, "error", "lost"));
	else if (streq(name, "fail"))
		answer(json_pack("{s:I, s:i, s:s}", "id", id, "rc", -ENOSPC, "error", "no room"));
	else if (streq(jstr(request, "op"), "stat"))
		answer(json_pack("{s:I, s:i, s:{s:i}}", "id", id, "rc", 0, "result", "pid",
				 (int)getpid()));
	else if (streq(jstr(request, "op"), "find") || streq(jstr(request, "op"), "copy"))
		answer(json_pack("{s:I, s:i, s:O}", "id", id, "rc", streq(name, "making"), "result",
				 request));
	else
		answer(json_pack("{s:I, s:i}", "id", id, "rc", 0));
	if (streq(name, "copying") || streq(name, "copied"))
		answer(json_pack("{s:i, s:b, s:b}", "id", 0, "busy", streq(name, "copying"),
				 "copying", streq(name, "copying")));
}

int main(int argc, char **argv)
{
	char line[4096];
	for (int i = 1; i + 1 < argc; i++) {
		if (streq(argv[i], "--pool") && streq(argv[i + 1], "refuse")) {
			answer(json_pack("{s:i, s:i, s:s}", "id", 0, "rc", -ENOTCONN, "error",
					 "cannot be opened"));
			return 1;
		}
	}
	while (fgets(line, sizeof(line), stdin)) {
		cleanup_json json_t *request = NULL;
		if (json_parse(line, strlen(line), &request, NULL) == 0)
			serve(request);
	}
	return 0;
}
