/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/print.h"

#include "base/mem.h"
#include "base/yaml.h"

#include <errno.h>
#include <time.h>

#define WATCH_MS 600000
#define PAUSE_MS 100 /* between watches, so that a server that ends them at once is not flooded */

struct get {
	struct session *s;
	const struct kind *k;
	const char *ns, *format;
	struct kube_selector sel;
	bool all, wide, table;
	struct grid grid;
};

/* managedFields are of use to nobody who reads. */
static void strip(json_t *object)
{
	(void)json_object_del(json_object_get(object, "metadata"), "managedFields");
}

static void print_text(struct get *g, const json_t *value)
{
	cleanup_free char *text =
		streq(g->format, "json") ? json_text_pretty(value) : yaml_text(value);

	(void)fputs(text, g->s->out);
	if (text[0] && text[strlen(text) - 1] != '\n')
		(void)fputc('\n', g->s->out);
}

static void print_table(struct get *g, const json_t *items)
{
	cleanup_json json_t *table =
		schema_table(g->k, items, NULL, true, clock_wall_ms(g->s->kube->clock));

	grid_table(&g->grid, table, g->wide, g->all && g->k->namespaced);
	grid_flush(&g->grid);
}

static void print_items(struct get *g, json_t *items, bool single)
{
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item) {
		strip(item);
		if (!streq(g->format, "name"))
			continue;
		cleanup_free char *title = object_title(g->k, object_name(item));

		(void)fprintf(g->s->out, "%s\n", title);
	}
	if (g->table) {
		print_table(g, items);
	} else if (!streq(g->format, "name")) {
		cleanup_json json_t *list = json_pack("{s:s, s:s, s:{}, s:O}", "apiVersion", "v1",
						      "kind", "List", "metadata", "items", items);

		print_text(g, single ? json_array_get(items, 0) : list);
	}
	(void)fflush(g->s->out);
}

static void print_change(struct get *g, json_t *object)
{
	cleanup_json json_t *items = json_pack("[O]", object);

	if (!g->table && streq(g->format, "yaml"))
		(void)fputs("---\n", g->s->out);
	print_items(g, items, true);
}

/* Prints changes from a version on until the watch ends: 0, or why; the version moves along. */
static int watch_once(struct get *g, char **version, struct error *err)
{
	const struct kube_ops *ops = g->s->kube->ops;
	struct kube_event event = { 0 };
	struct kube_watch *w;
	int rc = ops->watch(g->s->kube, g->k, g->ns, &g->sel, *version, &w, err);

	if (rc < 0)
		return rc;
	while ((rc = ops->watch_next(w, WATCH_MS, &event, err)) == 1) {
		free(*version);
		*version = xstrdup(object_version(event.object));
		if (event.type != KUBE_BOOKMARK)
			print_change(g, event.object);
		json_decref(event.object);
	}
	ops->watch_close(w);
	return rc == -ETIMEDOUT ? 0 : rc;
}

/* Until interrupted, or until the API is gone. A watch that is over is taken up again; one whose
 * version is too old begins with a new list. */
static int watch(struct get *g, char *version)
{
	cleanup_free char *from = version;
	struct error err = ERROR_INIT;
	int rc;

	for (;;) {
		rc = watch_once(g, &from, &err);
		if (rc == -EIDRM) {
			cleanup_json json_t *items = NULL;

			free(TAKE_PTR(from));
			rc = kube_list(g->s->kube, g->k, g->ns, &g->sel, &items, &from, &err);
			if (rc == 0)
				print_items(g, items, false);
		}
		if (rc < 0)
			return session_fail(g->s, rc, &err);
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
	}
}

static int get_named(struct get *g, const struct args *a, json_t *items)
{
	int code = QM_OK;

	for (size_t i = 1; i < a->count; i++) {
		json_t *object = NULL;
		struct error err = ERROR_INIT;
		int rc = kube_get(g->s->kube, g->k, g->ns, a->words[i], &object, &err);

		if (rc == 0)
			(void)json_array_append_new(items, object);
		else
			code = session_fail(g->s, rc, &err);
		if (rc < 0 && rc != -ENOENT)
			break;
	}
	return code;
}

static int get_list(struct get *g, json_t **ret, char **ret_version)
{
	struct error err = ERROR_INIT;
	int rc = kube_list(g->s->kube, g->k, g->ns, &g->sel, ret, ret_version, &err);

	if (rc < 0)
		return session_fail(g->s, rc, &err);
	if (json_array_size(*ret) == 0 && g->table)
		(void)fprintf(stderr,
			      g->ns ? "There are no %s in namespace %s.\n" : "There are no %s%s.\n",
			      g->k->plural, g->ns ? g->ns : "");
	return QM_OK;
}

static int parse(struct session *s, const struct args *a, struct get *ret)
{
	static const char *const formats[] = { "table", "wide", "yaml", "json", "name", NULL };
	const char *format = args_value(a, "output");
	struct get g = { .s = s, .format = format ? format : "table", .grid = { .out = s->out } };
	bool known = false;

	for (size_t i = 0; formats[i]; i++)
		known = known || streq(formats[i], g.format);
	if (!known)
		return usage_error(a->verb, "-o is table, wide, yaml, json or name, not \"%s\"",
				   g.format);
	g.k = kind_of_word(a->words[0]);
	if (!g.k)
		return QM_USAGE;
	g.all = args_given(a, "all-namespaces");
	if (g.all && a->count > 1)
		return usage_error(a->verb, "a name needs a namespace, so -A does not go with it");
	g.wide = streq(g.format, "wide");
	g.table = g.wide || streq(g.format, "table");
	g.ns = g.all ? NULL : session_ns(s, g.k);
	g.sel.labels = args_value(a, "selector");
	*ret = g;
	return QM_OK;
}

int cmd_get(struct session *s, const struct args *a)
{
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL, *field = NULL;
	struct get g;
	int code = parse(s, a, &g);

	if (code != QM_OK)
		return code;
	if (args_given(a, "watch")) {
		if (a->count > 2)
			return usage_error(a->verb, "-w follows one object or all");
		if (a->count == 2)
			g.sel.fields = field = xasprintf("metadata.name=%s", a->words[1]);
		code = get_list(&g, &items, &version);
	} else if (a->count > 1) {
		items = json_array();
		code = get_named(&g, a, items);
	} else {
		code = get_list(&g, &items, &version);
	}
	if (json_array_size(items) > 0 || (code == QM_OK && !g.table))
		print_items(&g, items, a->count == 2);
	if (code == QM_OK && args_given(a, "watch"))
		code = watch(&g, TAKE_PTR(version));
	grid_done(&g.grid);
	return code;
}
