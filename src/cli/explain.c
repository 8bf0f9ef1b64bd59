/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/print.h"

#include "base/mem.h"

static int list_kinds(FILE *out)
{
	struct grid g = { .out = out };

	grid_row(&g, (const char *const[]){ "NAME", "SHORT", "APIVERSION", "NAMESPACED", "KIND",
					    NULL });
	for (size_t i = 0; kinds[i]; i++) {
		const struct kind *k = kinds[i];
		char version[128];

		grid_row(&g,
			 (const char *const[]){ k->plural, k->short_names ? k->short_names[0] : "",
						kind_api_version(k, version, sizeof(version)),
						k->namespaced ? "true" : "false", k->kind, NULL });
	}
	grid_flush(&g);
	grid_done(&g);
	return QM_OK;
}

int cmd_explain(struct session *s, const struct args *a)
{
	const char *word = a->count ? a->words[0] : NULL, *dot;
	cleanup_free char *name = NULL;
	struct error err = ERROR_INIT;
	struct buf out = { 0 };
	const struct kind *k;
	int rc;

	if (args_given(a, "markdown")) {
		schema_markdown(&out);
		(void)fputs(out.data, s->out);
		buf_done(&out);
		return QM_OK;
	}
	if (!word)
		return list_kinds(s->out);
	/* "storagenodes.coreos.com" is a kind too, so the whole word goes first */
	k = kind_by_word(word);
	dot = k ? NULL : strchr(word, '.');
	name = xstrndup(word, dot ? (size_t)(dot - word) : strlen(word));
	k = k ? k : kind_of_word(name);
	if (!k)
		return QM_NOT_FOUND;
	rc = schema_explain(k, dot ? dot + 1 : NULL, args_given(a, "recursive"), &out, &err);
	if (rc < 0)
		(void)fprintf(stderr, "quartermaster: %s\n", err.message);
	else
		(void)fputs(out.data, s->out);
	buf_done(&out);
	return rc < 0 ? QM_NOT_FOUND : QM_OK;
}
