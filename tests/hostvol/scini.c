/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ioctl of ScaleIO's kernel driver, for a process that has this loaded before its libraries:
 * the GUID that the variable SCINI_GUID holds (32 hexadecimal digits; "none": it has none).
 * Where SCINI_PEAK names a file, the process writes its peak of memory (KiB) there when it ends.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((destructor)) static void tell_peak(void)
{
	const char *path = getenv("SCINI_PEAK");
	FILE *status = fopen("/proc/self/status", "re"), *out = path ? fopen(path, "we") : NULL;
	char line[200];
	long peak;

	while (status && out && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %ld", &peak) == 1)
			fprintf(out, "%ld\n", peak);
	if (out)
		fclose(out);
	if (status)
		fclose(status);
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, ...) =
		(int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	const char *guid = getenv("SCINI_GUID");
	unsigned char *buf;
	va_list args;

	va_start(args, request);
	buf = va_arg(args, unsigned char *);
	va_end(args);
	if ((unsigned)request != 0x610e || !guid)
		return real(fd, request, buf);
	buf[0] = 65;
	memset(buf + 8, 0, 16);
	for (int i = 0; strlen(guid) == 32 && i < 16; i++) {
		char pair[3] = { guid[i * 2], guid[i * 2 + 1], 0 };

		buf[8 + i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return 0;
}
