/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"
#include "cli/input.h"
#include "cli/print.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>

#define TICK_MS 500

struct deleted {
	const struct kind *kind;
	char *ns, *name, *uid;
};

/* All are deleted before the first is waited for: what goes together need not be moved from one to the next. */
struct deletion {
	struct session *s;
	bool wait, ignore_missing;
	int64_t timeout_ms;
	struct deleted *list;
	size_t count;
};

struct waiting {
	struct progress progress;
	char *uid;
	char holder[400];
};

/* What keeps a deleted object: the condition that speaks of it, else its finalizers. */
static void say_holder(const json_t *o, char *out, size_t size)
{
	const json_t *conditions = jget(o, "status", "conditions"),
		     *list = jget(o, "metadata", "finalizers");
	struct buf names = { 0 };
	size_t i;
	json_t *c;

	json_array_foreach (conditions, i, c) {
		const char *type = jstr(c, "type"), *message = jstr(c, "message");

		if (!message || !*message ||
		    !(streq(type, "Emptying") || streq(type, "Emptied") || streq(type, "Held")))
			continue;
		(void)snprintf(out, size, "%s", message);
		return;
	}
	json_array_foreach (list, i, c) {
		buf_printf(&names, "%s%s", i ? ", " : "", json_string_value(c));
	}
	(void)snprintf(out, size, names.len ? "held by %s" : "%s", names.len ? names.data : "");
	buf_done(&names);
}

static int is_gone(const json_t *o, void *userdata)
{
	struct waiting *w = userdata;

	/* a new object of the same name is not the one that was deleted */
	if (!o || !streq(object_uid(o), w->uid))
		return 1;
	say_holder(o, w->holder, sizeof(w->holder));
	progress_note(&w->progress, "%s", w->holder);
	return 0;
}

static int wait_gone(struct deletion *d, const struct deleted *o, int64_t timeout_ms)
{
	cleanup_free char *title = object_title(o->kind, o->name);
	struct waiting w = { .uid = o->uid };
	struct error err = ERROR_INIT;
	int rc;

	progress_begin(&w.progress, d->s->out, "%s deleting", title);
	rc = follow(d->s, o->kind, o->ns, o->name, timeout_ms, TICK_MS, is_gone, &w, &err);
	if (rc > 0) {
		progress_end(&w.progress, true, "%s deleted", title);
		return QM_OK;
	}
	progress_end(&w.progress, false, NULL);
	if (rc != -ETIMEDOUT)
		return session_fail(d->s, rc, &err);
	(void)fprintf(stderr,
		      "quartermaster: %s is deleted but still there%s%s; it goes when that is "
		      "done, see: quartermaster "
		      "describe %s %s\n",
		      title, w.holder[0] ? ": " : "", w.holder, o->kind->singular, o->name);
	return QM_TIMED_OUT;
}

/* The time is that of all of them together; one that is gone by then is seen to be. */
static int wait_all(struct deletion *d, int worst)
{
	int64_t end = clock_mono_ms(&clock_real) + d->timeout_ms;

	for (size_t i = 0; i < d->count; i++) {
		struct deleted *o = &d->list[i];
		int64_t left = end - clock_mono_ms(&clock_real);
		int code = wait_gone(d, o, left > TICK_MS ? left : TICK_MS);

		worst = code != QM_OK ? code : worst;
		free(o->ns);
		free(o->name);
		free(o->uid);
	}
	free(d->list);
	return worst;
}

static void note_deleted(struct deletion *d, const struct kind *k, const char *ns, const char *name,
			 const char *uid)
{
	d->list = xrealloc(d->list, (d->count + 1) * sizeof(*d->list));
	d->list[d->count++] = (struct deleted){ .kind = k,
						.ns = ns ? xstrdup(ns) : NULL,
						.name = xstrdup(name),
						.uid = xstrdup(uid ? uid : "") };
}

static int delete_one(struct deletion *d, const struct kind *k, const char *ns, const char *name)
{
	cleanup_free char *title = object_title(k, name);
	cleanup_json json_t *live = NULL;
	struct kube_delete_options options = { 0 };
	struct error err = ERROR_INIT;
	int rc = kube_get(d->s->kube, k, ns, name, &live, &err);

	if (rc == 0) {
		options.uid = object_uid(live);
		rc = kube_delete(d->s->kube, k, ns, name, &options, &err);
	}
	if (rc == -ENOENT && (d->ignore_missing || live))
		return QM_OK;
	if (rc < 0)
		return session_fail(d->s, rc, &err);
	if (d->wait)
		note_deleted(d, k, ns, name, options.uid);
	else
		(void)fprintf(d->s->out, "%s deleted\n", title);
	return QM_OK;
}

static int delete_files(struct deletion *d, const struct strv *files)
{
	struct input in = { 0 };
	int code = input_read(files, d->s->ns, &in), worst = code;

	/* what was made last may need what was made first */
	for (size_t i = in.count; i > 0; i--) {
		const struct input_object *o = &in.items[i - 1];
		const char *ns = object_namespace(o->object);

		code = delete_one(d, o->kind, *ns ? ns : NULL, object_name(o->object));
		worst = code != QM_OK ? code : worst;
	}
	input_done(&in);
	return worst;
}

static int delete_selected(struct deletion *d, const struct kind *k, const char *labels)
{
	struct kube_selector sel = { .labels = labels };
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;
	struct error err = ERROR_INIT;
	int worst = QM_OK,
	    rc = kube_list(d->s->kube, k, session_ns(d->s, k), &sel, &items, &version, &err);
	size_t i;
	json_t *o;

	if (rc < 0)
		return session_fail(d->s, rc, &err);
	json_array_foreach (items, i, o) {
		int code = delete_one(d, k, session_ns(d->s, k), object_name(o));

		worst = code != QM_OK ? code : worst;
	}
	return worst;
}

int cmd_delete(struct session *s, const struct args *a)
{
	struct deletion d = { .s = s, .ignore_missing = args_given(a, "ignore-not-found") };
	const struct strv *files = args_values(a, "filename");
	const char *labels = args_value(a, "selector");
	const struct kind *k;
	int worst = QM_OK;

	if (args_bool(a, "wait", true, &d.wait) != QM_OK ||
	    args_duration(a, "timeout", 300000, &d.timeout_ms) != QM_OK)
		return QM_USAGE;
	if (files->count > 0)
		return a->count ? usage_error(a->verb, "give a kind and names or -f, not both")
				: wait_all(&d, delete_files(&d, files));
	if (a->count < 1)
		return usage_error(a->verb, "it needs KIND NAME or -f FILE");
	k = kind_of_word(a->words[0]);
	if (!k)
		return QM_USAGE;
	if (labels)
		return a->count > 1 ? usage_error(a->verb, "give names or -l, not both")
				    : wait_all(&d, delete_selected(&d, k, labels));
	if (a->count < 2)
		return usage_error(a->verb, "it needs the name of a %s", k->singular);
	for (size_t i = 1; i < a->count; i++) {
		int code = delete_one(&d, k, session_ns(s, k), a->words[i]);

		worst = code != QM_OK ? code : worst;
	}
	return wait_all(&d, worst);
}
