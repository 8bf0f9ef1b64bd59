/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <errno.h>
#include <stdio.h>

#define INPUT_MAX (1 << 20)

static int read_input(const char *file, char **ret, size_t *ret_len, struct error *err)
{
	return file_read(streq(file, "-") ? "/dev/stdin" : file, INPUT_MAX, ret, ret_len, err);
}

char *cli_read_connection(const char *file, const char *consumer)
{
	cleanup_with(yaml_docs_done) struct yaml_docs docs = { 0 };
	struct error err = ERROR_INIT;
	char *text = NULL, *json = NULL;
	size_t len = 0;
	int r = read_input(file, &text, &len, &err);

	if (r >= 0)
		r = yaml_parse(text, len, file, &docs, &err);
	if (r >= 0 && docs.count != 1)
		r = error_set(&err, EINVAL,
			      "%s: %zu documents, where one ConnectionInfo is expected", file,
			      docs.count);
	if (r >= 0 && consumer && json_is_object(docs.items[0].value))
		json_object_set_new(docs.items[0].value, "consumer", json_string(consumer));
	if (r >= 0)
		json = json_text(docs.items[0].value);
	else
		fprintf(stderr, "hostvol: %s\n", error_text(&err, r));
	if (text)
		explicit_bzero(text, len);
	free(text);
	return json;
}

void cli_print_json(const char *text)
{
	cleanup_json json_t *o = NULL;
	cleanup_free char *pretty = NULL;

	if (isatty(STDOUT_FILENO) && json_parse(text, strlen(text), &o, NULL) >= 0)
		pretty = json_text_pretty(o);
	puts(pretty ? pretty : text);
}
