/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor_text.h"

#include "base/file.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of "key=value" at the start of a line, without white space and quotes at its ends. */
static bool find_value(const char *text, const char *key, char *buf, size_t size)
{
	size_t key_len = strlen(key);

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		if (len > key_len && strncmp(line, key, key_len) == 0 && line[key_len] == '=') {
			const char *value = line + key_len + 1, *end = line + len;

			while (value < end && (isspace((unsigned char)*value) || *value == '"'))
				value++;
			while (end > value && (isspace((unsigned char)end[-1]) || end[-1] == '"'))
				end--;
			if ((size_t)(end - value) >= size)
				return false;
			memcpy(buf, value, (size_t)(end - value));
			buf[end - value] = '\0';
			return true;
		}
		line += len;
		line += *line == '\n';
	}
	return false;
}

int sds_output_read(const char *text, struct sds_output *ret, struct error *err)
{
	struct sds_output out = { 0 };
	char code[24], *end;

	if (!find_value(text, "ret_code", code, sizeof(code)) || !code[0])
		return error_set(err, EBADMSG, "it printed no ret_code");
	errno = 0;
	out.code = strtol(code, &end, 10);
	if (*end || errno)
		return error_set(err, EBADMSG, "it printed a ret_code that is no number");
	if (find_value(text, "dev_addr", out.device, sizeof(out.device)) && out.device[0] &&
	    (!path_is_clean(out.device) || !str_has_prefix(out.device, "/dev/")))
		return error_set(err, EBADMSG, "it printed a dev_addr that is no path below /dev");
	find_value(text, "ret_desc", out.words, sizeof(out.words));
	for (char *p = out.words; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = '?';
	*ret = out;
	return 0;
}

const char *next_word(const char **text, size_t *ret_len)
{
	static const char space[] = " \t\r\n";
	const char *word = *text + strspn(*text, space);

	*ret_len = strcspn(word, space);
	*text = word + *ret_len;
	return *ret_len ? word : NULL;
}
