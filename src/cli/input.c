/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/input.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define INPUT_MAX (4U << 20)

struct reading {
	struct input input;
	const char *ns;
	int problems;
};

void input_done(struct input *in)
{
	for (size_t i = 0; i < in->count; i++) {
		json_decref(in->items[i].object);
		json_decref(in->items[i].doc.lines);
		free(in->items[i].file);
		free(in->items[i].source);
	}
	free(in->items);
	*in = (struct input){ 0 };
}

int input_line(const struct input_object *o, const char *path)
{
	cleanup_free char *full = xasprintf("%s%s", o->prefix, path[0] ? path : "kind");

	return path[0] || o->prefix[0] ? yaml_line_of(&o->doc, full) : o->doc.line;
}

static void complain(struct reading *r, const char *message)
{
	(void)fprintf(stderr, "%s\n", message);
	r->problems++;
}

static void complain_at(struct reading *r, const char *name, int line, const char *message)
{
	cleanup_free char *text = xasprintf("%s:%d: %s", name, line, message);

	complain(r, text);
}

static const struct input_object *find(const struct input *in, const struct input_object *wanted)
{
	const json_t *meta = json_object_get(wanted->object, "metadata");

	for (size_t i = 0; i < in->count; i++) {
		const json_t *other = json_object_get(in->items[i].object, "metadata");

		if (in->items[i].kind == wanted->kind &&
		    streq(jstr(other, "name"), jstr(meta, "name")) &&
		    streq(jstr(other, "namespace"), jstr(meta, "namespace")))
			return &in->items[i];
	}
	return NULL;
}

/* What is wrong with the object, in buf, and the field that it is about; false where nothing is. */
static bool is_wrong(struct reading *r, struct input_object *o, char *field, size_t size,
		     struct error *ret)
{
	struct schema_problem problem = { 0 };
	const struct input_object *other;

	if (schema_identify(o->object, &o->kind, ret) < 0) {
		(void)snprintf(field, size, "%.*s", (int)strcspn(ret->message, ":"), ret->message);
		return true;
	}
	if (schema_validate(o->kind, o->object, NULL, true, &problem) < 0) {
		(void)snprintf(field, size, "%s", problem.path);
		*ret = problem.error;
		return true;
	}
	(void)snprintf(field, size, "metadata.name");
	if (!jstr(o->object, "metadata", "name")) {
		(void)error_set(
			ret, EINVAL,
			"metadata.name: missing; one that the API makes up cannot be found again");
		return true;
	}
	if (o->kind->namespaced && !jstr(o->object, "metadata", "namespace"))
		(void)jset(o->object, json_string(r->ns), "metadata", "namespace");
	other = find(&r->input, o);
	if (!other)
		return false;
	(void)error_set(ret, EEXIST, "metadata.name: %s \"%s\" is declared already, at %s",
			o->kind->kind, jstr(o->object, "metadata", "name"), other->source);
	return true;
}

static void take_object(struct reading *r, const char *name, const struct yaml_doc *doc,
			json_t *object, const char *prefix)
{
	struct input_object o = { .object = object,
				  .doc = { .lines = doc->lines, .line = doc->line } };
	struct error err = ERROR_INIT;
	char field[200];

	(void)snprintf(o.prefix, sizeof(o.prefix), "%s", prefix);
	if (is_wrong(r, &o, field, sizeof(field), &err)) {
		complain_at(r, name, input_line(&o, field), err.message);
		return;
	}
	(void)json_incref(o.object);
	(void)json_incref(o.doc.lines);
	o.file = xstrdup(name);
	o.source = xasprintf("%s:%d", name, input_line(&o, ""));
	r->input.items = xrealloc(r->input.items, (r->input.count + 1) * sizeof(*r->input.items));
	r->input.items[r->input.count++] = o;
}

static void take_document(struct reading *r, const char *name, const struct yaml_doc *doc)
{
	const char *kind = jstr(doc->value, "kind");
	json_t *item;
	size_t i;

	if (!kind || !str_has_suffix(kind, "List") || !json_is_array(jget(doc->value, "items"))) {
		take_object(r, name, doc, doc->value, "");
		return;
	}
	json_array_foreach (jget(doc->value, "items"), i, item) {
		char prefix[32];

		(void)snprintf(prefix, sizeof(prefix), "items[%zu].", i);
		take_object(r, name, doc, item, prefix);
	}
}

static void take_text(struct reading *r, const char *name, const char *text, size_t len)
{
	struct yaml_docs docs = { 0 };
	struct error err = ERROR_INIT;

	if (yaml_parse(text, len, name, &docs, &err) < 0) {
		complain(r, err.message);
		return;
	}
	if (docs.count == 0)
		complain_at(r, name, 1, "holds no object");
	for (size_t i = 0; i < docs.count; i++)
		take_document(r, name, &docs.items[i]);
	yaml_docs_done(&docs);
}

static void take_stdin(struct reading *r)
{
	struct buf text = { 0 };
	char block[16384];
	ssize_t n;

	while ((n = read(STDIN_FILENO, block, sizeof(block))) > 0 && text.len <= INPUT_MAX)
		buf_add(&text, block, (size_t)n);
	if (n < 0)
		complain(r, "-: cannot read standard input");
	else if (text.len > INPUT_MAX)
		complain(r, "-: standard input holds more than 4 MiB");
	else
		take_text(r, "-", text.data ? text.data : "", text.len);
	buf_done(&text);
}

static void take_file(struct reading *r, const char *path)
{
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;
	size_t len;

	if (file_read(path, INPUT_MAX, &text, &len, &err) < 0)
		complain(r, err.message);
	else
		take_text(r, path, text, len);
}

static int is_manifest(const struct dirent *e)
{
	return e->d_name[0] != '.' &&
	       (str_has_suffix(e->d_name, ".yaml") || str_has_suffix(e->d_name, ".yml") ||
		str_has_suffix(e->d_name, ".json"));
}

static void take_directory(struct reading *r, const char *path)
{
	struct dirent **entries = NULL;
	int n = scandir(path, &entries, is_manifest, alphasort);
	cleanup_free char *text = xasprintf(
		"%s: %s", path, n < 0 ? strerror(errno) : "holds no .yaml, .yml or .json");

	if (n <= 0)
		complain(r, text);
	for (int i = 0; i < n; i++) {
		cleanup_free char *file = xasprintf("%s/%s", path, entries[i]->d_name);

		take_file(r, file);
		free(entries[i]);
	}
	free(entries);
}

int input_read(const struct strv *paths, const char *ns, struct input *ret)
{
	struct reading r = { .ns = ns };

	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->items[i];
		struct stat st;

		if (streq(path, "-"))
			take_stdin(&r);
		else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			take_directory(&r, path);
		else
			take_file(&r, path);
	}
	if (r.problems) {
		input_done(&r.input);
		return QM_FAILED;
	}
	*ret = r.input;
	return QM_OK;
}
