/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/file.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>

static int echo(void)
{
	cleanup_free char *line = NULL;
	char text[4096];
	size_t n, len = 0;

	while ((n = fread(text, 1, sizeof(text), stdin)) > 0)
		fwrite(text, 1, n, stdout);
	if (file_read("/proc/self/cmdline", 0, &line, &len, NULL) < 0)
		return 1;
	fputs("\n", stdout);
	fwrite(line, 1, len, stdout);
	return 0;
}

static int fill(long bytes)
{
	for (long i = 0; i < bytes; i++)
		putchar('a' + (int)(i % 26));
	return 0;
}

static int background(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0;
	setsid();
	alarm(60); /* no test takes so long: what fails leaves nothing behind */
	for (;;)
		pause();
}

int helper_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";

	if (streq(what, "exit"))
		return atoi(arg);
	if (streq(what, "kill"))
		return raise(atoi(arg));
	if (streq(what, "say")) {
		fputs(arg, stdout);
		fputs(argc > 3 ? argv[3] : "", stderr);
		return 3;
	}
	if (streq(what, "echo"))
		return echo();
	if (streq(what, "env")) {
		fputs(getenv(arg) ? getenv(arg) : "(none)", stdout);
		return 0;
	}
	if (streq(what, "fill"))
		return fill(atol(arg));
	if (streq(what, "daemon"))
		return background();
	alarm(60);
	for (;;)
		pause();
}
