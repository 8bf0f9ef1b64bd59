/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/input.h"
#include "cli/print.h"

#include "base/mem.h"

#include <errno.h>

/* Whether everything that is declared is there already. Lists must be the same, mappings may hold more. */
static bool covers(const json_t *live, const json_t *declared)
{
	const char *key;
	json_t *value;

	if (!json_is_object(declared))
		return live && json_equal(live, declared);
	json_object_foreach ((json_t *)declared, key, value) {
		if (!json_is_null(value) && !covers(json_object_get(live, key), value))
			return false;
	}
	return true;
}

static int refuse(const struct input_object *o, const char *field, const char *message)
{
	(void)fprintf(stderr, "%s:%d: %s\n", o->file, input_line(o, field), message);
	return QM_REFUSED;
}

/* Finds what is there now, and whether it may become what is declared. */
static int look(struct session *s, const struct input_object *o, json_t **ret_live)
{
	const char *ns = object_namespace(o->object);
	cleanup_json json_t *live = NULL, *merged = NULL, *declared = NULL;
	struct schema_problem problem = { 0 };
	struct error err = ERROR_INIT;
	int rc = kube_get(s->kube, o->kind, *ns ? ns : NULL, object_name(o->object), &live, &err);

	if (rc == -ENOENT)
		return QM_OK;
	if (rc < 0)
		return session_fail(s, rc, &err);
	merged = json_deep_copy(live);
	declared = json_deep_copy(o->object);
	schema_default(o->kind, declared);
	(void)json_object_update_recursive(merged, declared);
	if (schema_validate(o->kind, merged, live, false, &problem) < 0)
		return refuse(o, problem.path, problem.error.message);
	*ret_live = TAKE_PTR(live);
	return QM_OK;
}

static int apply_one(struct session *s, const struct input_object *o, const json_t *live,
		     bool dry_run)
{
	const char *name = object_name(o->object), *ns = object_namespace(o->object), *what;
	cleanup_json json_t *stored = NULL;
	cleanup_free char *title = object_title(o->kind, name);
	struct error err = ERROR_INIT;
	int rc;

	if (dry_run) {
		what = !live ? "created" : covers(live, o->object) ? "unchanged" : "configured";
		(void)fprintf(s->out, "%s %s (dry run)\n", title, what);
		return QM_OK;
	}
	rc = kube_patch(s->kube, o->kind, *ns ? ns : NULL, name, NULL, KUBE_PATCH_APPLY, o->object,
			&stored, &err);
	if (session_code(rc) == QM_REFUSED)
		return refuse(o, "", err.message);
	if (rc < 0)
		return session_fail(s, rc, &err);
	what = !live						     ? "created"
	       : streq(object_version(live), object_version(stored)) ? "unchanged"
								     : "configured";
	(void)fprintf(s->out, "%s %s\n", title, what);
	return QM_OK;
}

int cmd_apply(struct session *s, const struct args *a)
{
	const struct strv *files = args_values(a, "filename");
	struct input in = { 0 };
	json_t **live;
	int code;

	if (files->count == 0)
		return usage_error(a->verb, "it needs -f FILE");
	code = input_read(files, s->ns, &in);
	live = xcalloc(in.count + 1, sizeof(*live));
	for (size_t i = 0; i < in.count && code == QM_OK; i++)
		code = look(s, &in.items[i], &live[i]);
	for (size_t i = 0; i < in.count && code == QM_OK; i++)
		code = apply_one(s, &in.items[i], live[i], args_given(a, "dry-run"));
	for (size_t i = 0; i < in.count; i++)
		json_decref(live[i]);
	free(live);
	input_done(&in);
	return code;
}
