/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access.h"
#include "api/patch.h"
#include "api/serving.h"

#include <errno.h>
#include <stdio.h>

#define MANAGER_MAX 128

/* Everything about one write besides its body. */
struct writing {
	struct store_write w;
	struct access access;
	struct access_guard guard;
	char manager[MANAGER_MAX];
	char *warning;
	json_t *status;
};

static struct access access_of(const struct request *r)
{
	return (struct access){ r->verb, r->kind, r->ns, r->name, r->subresource };
}

/* The fieldManager parameter, else the first word of the user agent. */
static void find_manager(const struct request *r, char manager[static MANAGER_MAX])
{
	const char *given = request_param(r, "fieldManager");
	const char *agent = h2_call_header(r->call, "user-agent");

	if (given && given[0])
		snprintf(manager, MANAGER_MAX, "%s", given);
	else if (patch_is_apply(h2_call_header(r->call, "content-type")) && r->verb == VERB_PATCH)
		manager[0] = '\0'; /* apply wants one said aloud */
	else if (agent && agent[0])
		snprintf(manager, MANAGER_MAX, "%.*s", (int)strcspn(agent, "/ "), agent);
	else
		snprintf(manager, MANAGER_MAX, "unknown");
}

static int read_options(const struct request *r, struct writing *x, struct error *err)
{
	const char *validation = request_param(r, "fieldValidation");
	const char *dry = request_param(r, "dryRun");

	x->access = access_of(r);
	x->guard = (struct access_guard){ .who = &r->who, .access = &x->access };
	find_manager(r, x->manager);
	x->w = (struct store_write){ .kind = r->kind,
				     .ns = r->ns,
				     .name = r->name,
				     .subresource = r->subresource,
				     .manager = x->manager,
				     .force = request_flag(r, "force"),
				     .ret_status = &x->status,
				     .guard = access_guard,
				     .guard_data = &x->guard };
	if (dry && !streq(dry, "All"))
		return error_set(err, EINVAL, "dryRun: Unsupported value: \"%.40s\": use All", dry);
	x->w.dry_run = dry != NULL;
	if (!validation || !validation[0] || streq(validation, "Warn"))
		x->w.ret_warning = &x->warning;
	else if (streq(validation, "Strict"))
		x->w.strict = true;
	else if (!streq(validation, "Ignore"))
		return error_set(
			err, EINVAL,
			"fieldValidation: Unsupported value: \"%.40s\": use Ignore, Warn or "
			"Strict",
			validation);
	return 0;
}

static void writing_done(struct writing *x)
{
	free(x->warning);
	json_decref(x->status);
}

/* The store's verdict, as HTTP. ok: the status of a success. */
static void answer(struct api_server *s, const struct request *r, struct writing *x, int rc, int ok,
		   json_t *result)
{
	cleanup_json json_t *formed = NULL;

	if (rc < 0) {
		reply_json(r, (int)jint(x->status, "code"), x->status, NULL);
		return;
	}
	if (!streq(jstr(result, "kind"), "Status"))
		formed = output_form(r, result, true, clock_wall_ms(s->store->clock));
	reply_json(r, ok, formed ? formed : result, x->warning);
}

static void refuse_body(const struct request *r, int rc, const struct error *err)
{
	if (rc == -ENOTSUP)
		reply_fault(r, FAULT_MEDIA_TYPE, "%s", err->message);
	else
		reply_fault(r, FAULT_BAD_REQUEST, "the body cannot be read: %s",
			    error_text(err, rc));
}

static void handle_write(struct api_server *s, const struct request *r)
{
	cleanup_json json_t *body = NULL, *result = NULL;
	struct writing x = { 0 };
	struct error err = ERROR_INIT;
	int ok = 200, rc = read_options(r, &x, &err);

	if (rc < 0) {
		reply_fault(r, FAULT_BAD_REQUEST, "%s", err.message);
		return;
	}
	rc = request_body(r, &body, &err);
	if (rc < 0) {
		refuse_body(r, rc, &err);
		return;
	}
	switch (r->verb) {
	case VERB_CREATE:
		rc = store_create(s->store, &x.w, body, &result, &err);
		ok = 201;
		break;
	case VERB_UPDATE:
		rc = store_update(s->store, &x.w, body, &result, &err);
		break;
	default:
		x.w.patch_type = h2_call_header(r->call, "content-type");
		rc = store_patch(s->store, &x.w, body, &result, &err);
		ok = rc > 0 ? 201 : 200;
		break;
	}
	answer(s, r, &x, rc, ok, result);
	writing_done(&x);
}

/* ---- delete --------------------------------------------------------------------------------- */

/* DeleteOptions from body and query; values point into *body. */
static int read_delete(const struct request *r, struct writing *x, json_t **body,
		       struct kube_delete_options *ret, struct error *err)
{
	const char *policy = request_param(r, "propagationPolicy");
	size_t len;
	int rc = read_options(r, x, err);

	h2_call_body(r->call, &len);
	if (rc >= 0 && len)
		rc = request_body(r, body, err);
	if (rc < 0)
		return rc;
	ret->uid = jstr(*body, "preconditions", "uid");
	ret->resource_version = jstr(*body, "preconditions", "resourceVersion");
	ret->propagation = jstr(*body, "propagationPolicy");
	if (!ret->propagation)
		ret->propagation = policy;
	if (!ret->propagation &&
	    (jbool(*body, "orphanDependents") || request_flag(r, "orphanDependents")))
		ret->propagation = "Orphan";
	if (json_array_size(jget(*body, "dryRun")))
		x->w.dry_run = true;
	if (ret->propagation && !streq(ret->propagation, "Background") &&
	    !streq(ret->propagation, "Foreground") && !streq(ret->propagation, "Orphan"))
		return error_set(err, EINVAL,
				 "propagationPolicy: Unsupported value: \"%.40s\": use Background, "
				 "Foreground or Orphan",
				 ret->propagation);
	return 0;
}

static void handle_delete(struct api_server *s, const struct request *r)
{
	cleanup_json json_t *body = NULL, *result = NULL;
	struct kube_delete_options options = { 0 };
	struct writing x = { 0 };
	struct error err = ERROR_INIT;
	int rc = read_delete(r, &x, &body, &options, &err);

	if (rc < 0) {
		refuse_body(r, rc, &err);
		return;
	}
	rc = store_delete(s->store, &x.w, &options, &result, &err);
	answer(s, r, &x, rc, 200, result);
	writing_done(&x);
}

static int keep_name(const struct row *row, void *userdata)
{
	struct strv *v = userdata;

	strv_add(v, row->ns);
	strv_add(v, row->name);
	return 0;
}

static void handle_delete_collection(struct api_server *s, const struct request *r,
				     const struct store_query *q)
{
	cleanup_json json_t *body = NULL, *status = NULL;
	struct kube_delete_options options = { 0 };
	struct writing x = { 0 };
	struct error err = ERROR_INIT;
	struct strv names = { 0 };
	struct page page = { 0 };
	int rc = read_delete(r, &x, &body, &options, &err);

	if (rc >= 0)
		rc = store_each(s->store, q, keep_name, &names, &page, &err);
	free(page.next);
	for (size_t i = 0; rc >= 0 && i + 1 < names.count; i += 2) {
		x.w.ns = names.items[i];
		x.w.name = names.items[i + 1];
		rc = store_delete(s->store, &x.w, &options, NULL, &err);
		/* Gone meanwhile is as good. */
		if (rc == -ENOENT) {
			json_decref(TAKE_PTR(x.status));
			rc = 0;
		}
	}
	strv_done(&names);
	status = json_pack("{s:s, s:s, s:{}, s:s}", "kind", "Status", "apiVersion", "v1",
			   "metadata", "status", "Success");
	if (rc < 0 && !x.status)
		x.status = status_failure(fault_of(-rc), error_text(&err, rc), r->kind, NULL, NULL);
	answer(s, r, &x, rc, 200, status);
	writing_done(&x);
}

/* ---- all of them ---------------------------------------------------------------------------- */

static int read_query(const struct request *r, struct store_query *q, char **fields,
		      struct error *err)
{
	const char *limit = request_param(r, "limit");
	char *end = NULL;

	*q = (struct store_query){ .kind = r->kind,
				   .ns = r->ns,
				   .labels = request_param(r, "labelSelector"),
				   .fields = request_param(r, "fieldSelector"),
				   .continue_token = request_param(r, "continue") };
	if (limit && limit[0]) {
		q->limit = strtoll(limit, &end, 10);
		if (*end || q->limit < 0)
			return error_set(err, EINVAL, "limit: \"%.40s\" is not a number", limit);
	}
	if (r->name) {
		*fields = xasprintf("metadata.name=%s%s%s", r->name, q->fields ? "," : "",
				    q->fields ? q->fields : "");
		q->fields = *fields;
	}
	return 0;
}

static void handle_many(struct api_server *s, const struct request *r)
{
	cleanup_free char *fields = NULL;
	struct error err = ERROR_INIT;
	struct store_query q;

	if (read_query(r, &q, &fields, &err) < 0)
		reply_fault(r, FAULT_BAD_REQUEST, "%s", err.message);
	else if (r->verb == VERB_WATCH)
		watches_start(s, r, &q);
	else if (r->verb == VERB_LIST)
		output_list(s, r, &q);
	else
		handle_delete_collection(s, r, &q);
}

void rest_handle(struct api_server *s, struct request *r)
{
	struct access access;
	char text[800];

	if (r->verb == VERB_GET && request_flag(r, "watch"))
		r->verb = VERB_WATCH;
	access = access_of(r);
	if (!access_allowed(&r->who, &access)) {
		reply_fault(r, FAULT_FORBIDDEN, "%s",
			    access_refusal(&r->who, &access, text, sizeof(text)));
		return;
	}
	switch (r->verb) {
	case VERB_GET:
		output_get(s, r);
		break;
	case VERB_LIST:
	case VERB_WATCH:
	case VERB_DELETE_COLLECTION:
		handle_many(s, r);
		break;
	case VERB_DELETE:
		handle_delete(s, r);
		break;
	default:
		handle_write(s, r);
		break;
	}
}
