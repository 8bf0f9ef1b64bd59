/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qm-image: a program of its own, since only it needs libarchive, whose libraries would cost every
 * other process of ours its memory.
 */
#include "base/log.h"
#include "base/mem.h"
#include "containers/image.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *image = NULL;
	cleanup_free char *text = NULL;
	int rc;

	log_init("image", LOG_LEVEL_INFO);
	if (argc != 3 || argv[1][0] == '-') {
		fputs("Usage: qm-image IMAGE DIR\n\n"
		      "Unpacks the OCI image IMAGE (an archive of an OCI layout, or its directory) "
		      "below DIR, unless\nit is there, and prints where.\n",
		      argc == 2 && streq(argv[1], "--help") ? stdout : stderr);
		return argc == 2 && streq(argv[1], "--help") ? 0 : 2;
	}
	rc = image_unpack(argv[1], argv[2], &image, &err);
	if (rc < 0) {
		fprintf(stderr, "%s\n", error_text(&err, rc));
		return 1;
	}
	text = json_text(image);
	puts(text);
	return 0;
}
