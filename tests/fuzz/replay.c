/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Feeds every file of a corpus to a fuzz target: what the fuzzer found once stays found. The
 * data is copied to a block of its exact size, so that a sanitizer sees any step beyond it.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *dir, const char *name)
{
	char path[4096];
	uint8_t *data;
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f || fstat(fileno(f), &st) < 0) {
		perror(path);
		exit(1);
	}
	if (!S_ISREG(st.st_mode)) {
		fclose(f);
		return 0;
	}
	data = malloc(st.st_size ? (size_t)st.st_size : 1);
	if (!data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(1);
	}
	fclose(f);
	/* said before it runs: if it crashes, this is the file */
	printf("# %s\n", name);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	int count, replayed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	count = scandir(argv[1], &entries, NULL, alphasort);
	if (count < 0) {
		perror(argv[1]);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.')
			replayed += replay(argv[1], entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	printf("%s %d inputs of %s\n", replayed ? "replayed" : "FAILED: no", replayed, argv[1]);
	return replayed ? 0 : 1;
}
