/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/csi_clients.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

#define SHOWN_MAX 4 /* machines that a message names */

void clients_plan_done(struct clients_plan *p)
{
	json_decref(p->remove);
	json_decref(p->order);
	free(p->message);
	*p = (struct clients_plan){ 0 };
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* The last line: qm-client's own words come after what it logged. */
static char *last_line(const char *text)
{
	cleanup_free char *copy = xstrdup(text);
	size_t len = strlen(copy);
	const char *line;

	while (len && strchr(" \n", copy[len - 1]))
		copy[--len] = '\0';
	line = strrchr(copy, '\n');
	return xasprintf("%.200s", line ? line + 1 : copy);
}

static bool is_beginning(const char *reason)
{
	return streq(reason, "ContainerCreating") || streq(reason, "PodInitializing");
}

/* Why a container does not run; NULL: nothing is wrong (yet). Caller frees. */
static char *trouble_of(const json_t *container)
{
	const char *waits = jstr(container, "state", "waiting", "reason");
	const json_t *ended = jget(container, "state", "terminated");
	const char *said = jstr(container, "lastState", "terminated", "message");
	cleanup_free char *line = NULL;

	if (ended && jint(ended, "exitCode") != 0) {
		waits = jstr(ended, "reason");
		said = jstr(ended, "message");
	} else if (!waits || is_beginning(waits)) {
		return NULL;
	}
	if (!said || !*said)
		said = jstr(container, "state", "waiting", "message");
	line = last_line(said ? said : "");
	return *line ? TAKE_PTR(line) : xstrdup(waits ? waits : "it failed");
}

/* Since when it could have been of use and was not: since it was made, or stopped being ready. */
static const char *unready_since(const json_t *pod)
{
	const char *since = jstr(pod, "metadata", "creationTimestamp"), *then;
	const json_t *condition;
	size_t i;

	json_array_foreach (jget(pod, "status", "conditions"), i, condition) {
		then = jstr(condition, "lastTransitionTime");
		/* times as Kubernetes writes them */
		if (streq(jstr(condition, "type"), "Ready") && then &&
		    (!since || strcmp(then, since) > 0))
			since = then;
	}
	return since;
}

json_t *client_pod(const json_t *pod)
{
	const json_t *container = json_array_get(jget(pod, "status", "containerStatuses"), 0);
	const json_t *first = json_array_get(jget(pod, "status", "initContainerStatuses"), 0);
	const json_t *spec = json_array_get(jget(pod, "spec", "containers"), 0);
	cleanup_free char *why = trouble_of(first);

	if (!why)
		why = trouble_of(container);
	return json_pack("{s:s*, s:s*, s:s*, s:s*, s:b, s:b, s:b, s:s*}", "node",
			 jstr(pod, "spec", "nodeName"), "id",
			 jstr(pod, "metadata", "labels", CSI_CLIENT_ID), "image",
			 jstr(spec, "image"), "since", unready_since(pod), "runs",
			 jget(container, "state", "running") != NULL, "ready",
			 (int)jbool(container, "ready"), "ending",
			 jstr(pod, "metadata", "deletionTimestamp") != NULL, "why", why);
}

/* ---- what there is --------------------------------------------------------------------------- */

static const char *id_of(const json_t *daemonset)
{
	const char *id = jstr(daemonset, "metadata", "labels", CSI_CLIENT_ID);

	return id ? id : "";
}

static const json_t *find(const json_t *daemonsets, const char *id)
{
	const json_t *o;
	size_t i;

	json_array_foreach (daemonsets, i, o)
		if (streq(id_of(o), id))
			return o;
	return NULL;
}

static bool has(const json_t *list, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		if (streq(json_string_value(one), word))
			return true;
	return false;
}

/* What a class or a volume asks for is no client of all, unless it was until now. */
static bool is_named_only(const struct clients_view *v, const char *id)
{
	return json_object_get(v->named, id) && !has(v->order, id);
}

/* Those of other images that still serve, the newest first. Borrowed ones in a new array. */
static json_t *others(const struct clients_view *v, const char *id)
{
	json_t *list = json_array(), *o;
	size_t i, k;

	json_array_foreach ((json_t *)v->daemonsets, i, o) {
		if (streq(id_of(o), id) || object_annotation(o, CSI_REFUSED) ||
		    is_named_only(v, id_of(o)))
			continue;
		for (k = 0; k < json_array_size(list); k++) /* times as Kubernetes writes them */
			if (strcmp(jstr(o, "metadata", "creationTimestamp"),
				   jstr(json_array_get(list, k), "metadata", "creationTimestamp")) >
			    0)
				break;
		json_array_insert(list, k, o);
	}
	return list;
}

struct counts {
	int64_t desired, ready, failing, old, shown;
	bool given_up; /* one fails for longer than the patience lasts */
	struct buf text; /* of the first few machines */
};

static void tell(struct counts *c, const json_t *pod, const char *words)
{
	if (c->shown++ < SHOWN_MAX)
		buf_printf(&c->text, "; %s: %s", jstr(pod, "node"), words);
}

/* How many volumes that client has on its machine, as the node service there says; -1: not known. */
static int64_t users_of(const struct clients_view *v, const json_t *pod)
{
	const char *text = jstr(v->counts, "data", jstr(pod, "node"));
	cleanup_json json_t *counts = NULL;

	if (!text || !jstr(pod, "id") || json_parse(text, strlen(text), &counts, NULL) < 0)
		return -1;
	return jint(counts, jstr(pod, "id"));
}

/* One that is not told to end yet will be. */
static void count_old(const struct clients_view *v, struct counts *c, const json_t *pod)
{
	int64_t users = users_of(v, pod);
	cleanup_free char *number =
		users < 0 ? xstrdup("")
			  : xasprintf(" (%lld volume%s)", (long long)users, users == 1 ? "" : "s");
	cleanup_free char *words = xasprintf("the client of %s stays while its mounts are used%s",
					     jstr(pod, "image"), number);

	c->old++;
	if (jbool(pod, "ending"))
		tell(c, pod, words);
}

/*
 * Its own time counts, not that of the image on other machines: one that comes up days after the
 * others gets as long as they did.
 */
static bool is_late(const struct clients_view *v, const json_t *pod)
{
	const char *text = jstr(pod, "since");
	int64_t then;

	return text && time_parse(text, &then) == 0 && v->now_ms - then >= v->patience_ms;
}

static void count_new(const struct clients_view *v, struct counts *c, const json_t *pod)
{
	const char *why = jstr(pod, "why");
	bool late = is_late(v, pod);

	if (jbool(pod, "ready")) {
		c->ready++;
		return;
	}
	if (!why && late && jbool(pod, "runs"))
		why = "it runs, but does not answer";
	if (!why || jbool(pod, "ending"))
		return;
	c->failing++;
	c->given_up = c->given_up || late;
	tell(c, pod, why);
}

static void count(const struct clients_view *v, const char *id, const json_t *have,
		  struct counts *c)
{
	const json_t *pod;
	size_t i;

	c->desired = jint(have, "status", "desiredNumberScheduled");
	if (!v->pods)
		c->ready = jint(have, "status", "numberReady");
	json_array_foreach (v->pods, i, pod) {
		if (!jstr(pod, "node"))
			continue;
		if (streq(jstr(pod, "id"), id))
			count_new(v, c, pod);
		else if (!jstr(pod, "id") || !json_object_get(v->named, jstr(pod, "id")))
			count_old(v, c, pod);
	}
}

static bool is_ready(const json_t *have, const struct counts *c)
{
	return c->desired > 0 && c->ready >= c->desired &&
	       jint(have, "status", "observedGeneration") == jint(have, "metadata", "generation");
}

/* ---- what is to be done ---------------------------------------------------------------------- */

/* What is no longer there does no harm in an order; another order would roll the node service. */
static json_t *settle_order(const json_t *before, json_t *wanted)
{
	const json_t *id;
	size_t i;

	if (!json_equal(json_array_get(before, 0), json_array_get(wanted, 0)))
		return wanted;
	json_array_foreach (wanted, i, id)
		if (!has(before, json_string_value(id)))
			return wanted;
	json_decref(wanted);
	return json_incref((json_t *)before);
}

static json_t *order_of(const char *id, const json_t *old, bool refused)
{
	json_t *list = json_array();
	const json_t *o;
	size_t i;

	if (!refused)
		json_array_append_new(list, json_string(id));
	json_array_foreach (old, i, o)
		if (*id_of(o))
			json_array_append_new(list, json_string(id_of(o)));
	if (refused)
		json_array_append_new(list, json_string(id));
	return list;
}

static void remove_all(struct clients_plan *p, const json_t *daemonsets, const json_t *named)
{
	const json_t *o;
	size_t i;

	json_array_foreach (daemonsets, i, o)
		if (!json_object_get(named, id_of(o)))
			json_array_append_new(p->remove, json_string(object_name(o)));
}

/* Those that were taken back, and that nobody wants any more. */
static void remove_refused(struct clients_plan *p, const json_t *daemonsets, const char *id)
{
	const json_t *o;
	size_t i;

	json_array_foreach (daemonsets, i, o)
		if (object_annotation(o, CSI_REFUSED) && !streq(id_of(o), id))
			json_array_append_new(p->remove, json_string(object_name(o)));
}

static const char *image_of(const json_t *daemonset)
{
	const json_t *c =
		json_array_get(jget(daemonset, "spec", "template", "spec", "containers"), 0);

	return jstr(c, "image");
}

/* In the same words from then on: they are the record's. */
static char *refused_text(const struct clients_view *v, const json_t *old, const char *why)
{
	return xasprintf("the client %s was taken back, machines use %s: %s", v->image,
			 image_of(json_array_get(old, 0)), why);
}

static void say_progress(struct clients_plan *p, const struct clients_view *v,
			 const struct counts *c)
{
	bool everywhere = c->desired > 0 && c->ready >= c->desired;

	p->updated = everywhere && !c->old;
	p->reason = p->updated	 ? "Updated"
		    : c->failing ? "ClientFails"
		    : everywhere ? "InUse"
				 : "Updating";
	p->message = xasprintf("%lld of %lld machines have the client %s%s",
			       (long long)(c->ready < c->desired ? c->ready : c->desired),
			       (long long)c->desired, v->image, c->text.len ? c->text.data : "");
}

static void plan(const struct clients_view *v, const char *id, const json_t *old,
		 struct clients_plan *p)
{
	const json_t *have = find(v->daemonsets, id);
	const char *refused = object_annotation(have, CSI_REFUSED);
	struct counts c = { 0 };

	count(v, id, have, &c);
	remove_refused(p, v->daemonsets, id);
	if (refused && !json_array_size(old)) {
		/* nothing is left to go back to */
		json_array_append_new(p->remove, json_string(object_name(have)));
		refused = NULL;
		have = NULL;
	}
	p->create = !refused;
	p->refuse = have && !refused && json_array_size(old) && c.given_up;
	if (have && !refused && is_ready(have, &c))
		remove_all(p, old, v->named);
	p->order = settle_order(v->order, order_of(id, old, refused || p->refuse));
	if (refused || p->refuse) {
		p->reason = "RolledBack";
		p->message = refused ? xstrdup(refused) : refused_text(v, old, c.text.data + 2);
	} else {
		say_progress(p, v, &c);
	}
	buf_done(&c.text);
}

void clients_plan(const struct clients_view *v, struct clients_plan *ret)
{
	cleanup_free char *id = client_image_id(v->image);
	cleanup_json json_t *old = others(v, id);

	*ret = (struct clients_plan){ .remove = json_array() };
	plan(v, id, old, ret);
}
