/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times libhostvol's connect and disconnect in a process that runs already, as a CSI plugin's does:
 * hostvol-time NAME FILE. One round for each line that it reads, answered by three lines. For
 * bench/hostvol.
 */
#include "hostvol/hostvol.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int round_trip(struct hostvol *h, const char *name, const char *json)
{
	struct hostvol_error err = { 0 };
	cleanup_free char *record = NULL, *done = NULL;
	cleanup_json json_t *o = NULL;
	cleanup_close int fd = -1;
	int64_t begin = now_us(), connected, begun;
	char block[512];

	if (hostvol_connect_volume_json(h, json, &record, &err) < 0) {
		fprintf(stderr, "hostvol-time: %s\n", err.message);
		return -1;
	}
	connected = now_us() - begin;
	if (json_parse(record, strlen(record), &o, NULL) < 0)
		return -1;
	fd = open(jstr(o, "path"), O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, block, sizeof(block)) != sizeof(block)) {
		perror(jstr(o, "path"));
		return -1;
	}
	close(TAKE_FD(fd));
	begun = now_us();
	if (hostvol_disconnect_volume_json(h, json, 0, &done, &err) < 0) {
		fprintf(stderr, "hostvol-time: %s\n", err.message);
		return -1;
	}
	printf("%s connect %" PRId64 "\n%s disconnect %" PRId64 "\n", name, connected, name,
	       now_us() - begun);
	return 0;
}

int main(int argc, char **argv)
{
	struct hostvol *h = NULL;
	cleanup_free char *json = NULL;
	struct rusage usage;
	char line[16];
	int r = 0;

	if (argc != 3 || file_read(argv[2], 0, &json, NULL, NULL) < 0 ||
	    hostvol_open(NULL, &h, NULL) < 0)
		return 2;
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		r = round_trip(h, argv[1], json);
		getrusage(RUSAGE_SELF, &usage);
		printf("peak %s %ld\n", argv[1], usage.ru_maxrss);
		fflush(stdout);
	}
	hostvol_close(h);
	return r < 0;
}
