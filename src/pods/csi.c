/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/csi.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "clients/remote.h"
#include "kube/controller.h"
#include "operator/operator.h"
#include "pods/csi_clients.h"
#include "pods/workload.h"

#include <errno.h>

#define RENEW_MS 300000
#define ABANDONED_MS 1800000

/* ---- whose it is ----------------------------------------------------------------------------- */

static int64_t age_of(const json_t *driver, int64_t now)
{
	const char *text = object_annotation(driver, CSI_RENEWED);
	int64_t then;

	return text && time_parse(text, &then) == 0 ? now - then : INT64_MAX;
}

/* An older version's: its modes cannot be changed in place. Mounts do not depend on the object. */
static int remake_driver(struct kube *kube, const json_t *have, const json_t *wanted,
			 struct error *err)
{
	struct kube_delete_options options = { .uid = object_uid(have),
					       .resource_version = object_version(have) };
	int rc = kube_delete(kube, &KIND_CSIDRIVER, NULL, QM_DRIVER, &options, err);

	if (rc == 0 || rc == -ENOENT)
		rc = kube_create(kube, &KIND_CSIDRIVER, wanted, NULL, err);
	return rc == -ESTALE || rc == -EEXIST ? 1 : rc;
}

/* 1: another deployment's. */
static int ensure_driver(const struct csi_settings *s, struct kube *kube, struct error *err)
{
	int64_t now = clock_wall_ms(kube->clock);
	cleanup_json json_t *wanted = csi_driver(s, now), *have = NULL, *patch = NULL;
	int rc = kube_get(kube, &KIND_CSIDRIVER, NULL, QM_DRIVER, &have, err);
	const char *owner, *ours = object_annotation(wanted, CSI_OWNER);

	if (rc == -ENOENT) {
		rc = kube_create(kube, &KIND_CSIDRIVER, wanted, NULL, err);
		return rc == -EEXIST ? 1 : rc; /* somebody was faster: the next look says who */
	}
	if (rc < 0)
		return rc;
	owner = object_annotation(have, CSI_OWNER);
	if (owner && !streq(owner, ours) && age_of(have, now) < ABANDONED_MS)
		return 1;
	if (streq(owner, ours) && age_of(have, now) < RENEW_MS)
		return 0;
	if (!streq(owner, ours))
		log_info("the CSI driver is ours now; it was %s's", owner ? owner : "nobody");
	if (!json_equal(jget(have, "spec", "volumeLifecycleModes"),
			jget(wanted, "spec", "volumeLifecycleModes")))
		return remake_driver(kube, have, wanted, err);
	patch = json_pack("{s:{s:s, s:O, s:O}, s:O}", "metadata", "resourceVersion",
			  object_version(have), "labels", jget(wanted, "metadata", "labels"),
			  "annotations", jget(wanted, "metadata", "annotations"), "spec",
			  jget(wanted, "spec"));
	rc = kube_patch(kube, &KIND_CSIDRIVER, NULL, QM_DRIVER, NULL, KUBE_PATCH_MERGE, patch, NULL,
			err);
	return rc == -ESTALE ? 1 : rc;
}

/* ---- workloads ------------------------------------------------------------------------------- */

/* daemonset is stolen. */
static int ensure_daemonset(const struct csi_settings *s, struct kube *kube, json_t *daemonset,
			    struct error *err)
{
	cleanup_json json_t *wanted = daemonset, *have = NULL, *patch = NULL;
	const char *name = object_name(wanted);
	int rc = kube_get(kube, &KIND_DAEMONSET, s->ns, name, &have, err);

	if (rc == -ENOENT)
		return kube_create(kube, &KIND_DAEMONSET, wanted, NULL, err);
	if (rc < 0)
		return rc;
	if (streq(object_annotation(have, WORKLOAD_HASH), object_annotation(wanted, WORKLOAD_HASH)))
		return 0;
	log_info("%s is brought up to date", name);
	patch = json_pack("{s:{s:s, s:O, s:O}, s:{s:O, s:O}}", "metadata", "resourceVersion",
			  object_version(have), "labels", jget(wanted, "metadata", "labels"),
			  "annotations", jget(wanted, "metadata", "annotations"), "spec",
			  "updateStrategy", jget(wanted, "spec", "updateStrategy"), "template",
			  jget(wanted, "spec", "template"));
	return kube_patch(kube, &KIND_DAEMONSET, s->ns, name, NULL, KUBE_PATCH_MERGE, patch, NULL,
			  err);
}

static int remove_daemonset(const struct csi_settings *s, struct kube *kube, const char *name,
			    struct error *err)
{
	int rc = kube_delete(kube, &KIND_DAEMONSET, s->ns, name, NULL, err);

	if (rc == 0)
		log_info("%s is removed; its pods end when nobody uses them", name);
	return rc == -ENOENT ? 0 : rc;
}

/* ---- clients --------------------------------------------------------------------------------- */

void csi_report_done(struct csi_report *r)
{
	free(r->reason);
	free(r->message);
	*r = (struct csi_report){ 0 };
}

struct clients {
	const struct csi_settings *s;
	struct kube *kube;
	json_t *node; /* its DaemonSet as it is, or NULL */
	json_t *daemonsets, *pods; /* by protocol */
	json_t *named; /* {id: image} that classes and volumes ask for */
	json_t *counts; /* the ConfigMap, or NULL */
	json_t *orders;
	struct csi_report report;
};

static void clients_done(struct clients *c)
{
	json_decref(c->node);
	json_decref(c->daemonsets);
	json_decref(c->pods);
	json_decref(c->orders);
	json_decref(c->named);
	json_decref(c->counts);
	csi_report_done(&c->report);
}

static void add_to(json_t *lists, const char *protocol, json_t *item)
{
	json_t *list = protocol ? json_object_get(lists, protocol) : NULL;

	if (protocol && !list) {
		list = json_array();
		json_object_set_new(lists, protocol, list);
	}
	json_array_append(list, item);
}

static int take_daemonset(json_t *o, void *userdata)
{
	struct clients *c = userdata;

	add_to(c->daemonsets, object_label(o, CSI_CLIENT), o);
	return 0;
}

static int take_pod(json_t *o, void *userdata)
{
	struct clients *c = userdata;
	cleanup_json json_t *pod = client_pod(o);

	add_to(c->pods, object_label(o, CSI_CLIENT), pod);
	return 0;
}

/* Whether the one DaemonSet of each protocol says all; a thousand pods are not read for nothing. */
static bool is_settled(const struct clients *c)
{
	const char *protocol;
	json_t *list;

	json_object_foreach (c->daemonsets, protocol, list) {
		const json_t *one = json_array_get(list, 0);

		if (json_array_size(list) > 1 ||
		    jint(one, "status", "numberReady") <
			    jint(one, "status", "desiredNumberScheduled"))
			return false;
	}
	return true;
}

static void add_named(struct clients *c, const char *image)
{
	cleanup_free char *id = image && *image ? client_image_id(image) : NULL;

	if (id)
		json_object_set_new(c->named, id, json_string(image));
}

static int take_class(json_t *o, void *userdata)
{
	if (streq(jstr(o, "provisioner"), QM_DRIVER))
		add_named(userdata, jstr(o, "parameters", "clientImage"));
	return 0;
}

static int take_volume(json_t *o, void *userdata)
{
	if (streq(jstr(o, "spec", "csi", "driver"), QM_DRIVER))
		add_named(userdata, object_annotation(o, QM_ANNOTATION_CLIENT_IMAGE));
	return 0;
}

/* Volumes outlive their class, and what they name is used while they are there. */
static int read_named(struct clients *c, struct error *err)
{
	struct kube_selector all = { .recent = true },
			     volumes = { .labels = QM_LABEL_CLIENT_ID, .recent = true };
	int rc = kube_list_each(c->kube, &KIND_STORAGECLASS, NULL, &all, take_class, c, NULL, err);

	return rc < 0 ? rc
		      : kube_list_each(c->kube, &KIND_PV, NULL, &volumes, take_volume, c, NULL,
				       err);
}

static int read_clients(struct clients *c, bool was_updated, struct error *err)
{
	cleanup_free char *labels =
		xasprintf(QM_LABEL_DEPLOYMENT "=%s," WORKLOAD_ROLE "=client", c->s->deployment);
	struct kube_selector selector = { .labels = labels };
	int rc = kube_get(c->kube, &KIND_DAEMONSET, c->s->ns, CSI_NODE_NAME, &c->node, err);

	c->daemonsets = json_object();
	c->named = json_object();
	c->orders = json_object();
	if (rc == 0 || rc == -ENOENT)
		rc = kube_list_each(c->kube, &KIND_DAEMONSET, c->s->ns, &selector, take_daemonset,
				    c, NULL, err);
	if (rc == 0)
		rc = read_named(c, err);
	if (rc < 0 || (was_updated && is_settled(c)))
		return rc;
	c->pods = json_object();
	for (size_t i = 0; client_protocols[i].name; i++)
		json_object_set_new(c->pods, client_protocols[i].name, json_array());
	/* only told, so a cluster that has not got it does without */
	(void)kube_get(c->kube, &KIND_CONFIGMAP, c->s->ns, CSI_COUNTS, &c->counts, NULL);
	return kube_list_each(c->kube, &KIND_POD, c->s->ns, &selector, take_pod, c, NULL, err);
}

/* Machines take back what they said; one that was lost meanwhile does not. */
static void forget_counts(const struct clients *c)
{
	cleanup_json json_t *patch = json_pack("{s:n}", "data");

	if (c->report.updated && json_object_size(jget(c->counts, "data")))
		(void)kube_patch(c->kube, &KIND_CONFIGMAP, c->s->ns, CSI_COUNTS, NULL,
				 KUBE_PATCH_MERGE, patch, NULL, NULL);
}

/* The order that the node service has been given. New reference, or NULL. */
static json_t *order_now(const json_t *node, const char *protocol)
{
	const json_t *c = json_array_get(jget(node, "spec", "template", "spec", "containers"), 0);
	cleanup_free char *flag = xasprintf(CSI_ORDER_FLAG "%s=", protocol);
	json_t *order = NULL, *word;
	size_t i;

	json_array_foreach (json_object_get(c, "command"), i, word) {
		cleanup_free char *list = NULL;

		if (!str_has_prefix(json_string_value(word), flag) || order)
			continue;
		list = xstrdup(json_string_value(word) + strlen(flag));
		order = json_array();
		for (char *id = list, *save; (id = strtok_r(id, ",", &save)); id = NULL)
			if (!streq(id, CLIENT_HOST))
				json_array_append_new(order, json_string(id));
	}
	return order;
}

/* It stays as a record of why, and on no machine. */
static int refuse_client(struct clients *c, const char *name, const char *why, struct error *err)
{
	cleanup_json json_t *patch = json_pack("{s:{s:{s:s}}, s:{s:{s:{s:{s:s}}}}}", "metadata",
					       "annotations", CSI_REFUSED, why, "spec", "template",
					       "spec", "nodeSelector", CSI_REFUSED, "true");

	log_warn("%s is taken back: %s", name, why);
	return kube_patch(c->kube, &KIND_DAEMONSET, c->s->ns, name, NULL, KUBE_PATCH_MERGE, patch,
			  NULL, err);
}

/* Beside what the condition says, for whoever looks at Events. The same again only raises a count. */
static void tell(struct clients *c, const struct clients_plan *p)
{
	cleanup_json json_t *status = NULL;
	bool bad = p->refuse || streq(p->reason, "ClientFails");

	if (bad || (!p->updated && json_array_size(p->remove)))
		if (kube_get(c->kube, &KIND_STORAGESTATUS, c->s->ns, c->s->deployment, &status,
			     NULL) == 0)
			event_record(c->kube, &KIND_STORAGESTATUS, status, "quartermaster", bad,
				     bad ? p->refuse ? "ClientRolledBack" : "ClientFails"
					 : "ClientUpdated",
				     "%s", p->message);
}

static void add_report(struct csi_report *r, const struct clients_plan *p)
{
	cleanup_free char *before = TAKE_PTR(r->message);

	r->message = xasprintf("%s%s%s", before ? before : "", before ? "; " : "", p->message);
	if (!r->known || (r->updated && !p->updated)) {
		free(r->reason);
		r->reason = xstrdup(p->reason);
		r->updated = p->updated;
	}
	r->known = true;
}

static int carry_out(struct clients *c, size_t protocol, const struct clients_plan *p,
		     struct error *err)
{
	const char *image = csi_client_image(c->s, protocol);
	cleanup_json json_t *wanted = csi_client(c->s, protocol, image);
	const json_t *name;
	size_t i;
	int rc = 0;

	if (p->refuse)
		rc = refuse_client(c, object_name(wanted), p->message, err);
	else if (p->create)
		rc = ensure_daemonset(c->s, c->kube, json_incref(wanted), err);
	json_array_foreach (p->remove, i, name)
		if (rc == 0)
			rc = remove_daemonset(c->s, c->kube, json_string_value(name), err);
	return rc;
}

/* Those that are the default as well are there already. */
static int ensure_named(struct clients *c, size_t protocol, const char *but, const json_t *named,
			struct error *err)
{
	const char *id;
	json_t *image;
	int rc = 0;

	json_object_foreach ((json_t *)named, id, image)
		if (rc == 0 && !streq(json_string_value(image), but))
			rc = ensure_daemonset(c->s, c->kube,
					      csi_client(c->s, protocol, json_string_value(image)),
					      err);
	return rc;
}

static int ensure_clients(struct clients *c, size_t protocol, struct error *err)
{
	const char *name = client_protocols[protocol].name;
	cleanup_json json_t *order = order_now(c->node, name);
	struct clients_view v = { .image = csi_client_image(c->s, protocol),
				  .daemonsets = json_object_get(c->daemonsets, name),
				  .pods = json_object_get(c->pods, name),
				  .named = streq(name, "glusterfs") ? c->named : NULL,
				  .order = order,
				  .counts = c->counts,
				  .now_ms = clock_wall_ms(c->kube->clock),
				  .patience_ms = c->s->patience_ms };
	cleanup_with(clients_plan_done) struct clients_plan p = { 0 };
	const json_t *o;
	size_t i;
	int rc = 0;

	if (!v.image) { /* the host's is wanted */
		json_array_foreach (v.daemonsets, i, o)
			if (rc == 0)
				rc = remove_daemonset(c->s, c->kube, object_name(o), err);
		return rc;
	}
	clients_plan(&v, &p);
	json_object_set(c->orders, name, p.order);
	rc = carry_out(c, protocol, &p, err);
	if (rc == 0)
		rc = ensure_named(c, protocol, v.image, v.named, err);
	if (rc < 0)
		return rc;
	tell(c, &p);
	add_report(&c->report, &p);
	return 0;
}

int csi_ensure(const struct csi_settings *s, struct kube *kube, struct csi_report *report,
	       struct error *err)
{
	cleanup_with(clients_done) struct clients c = { .s = s, .kube = kube };
	int rc = ensure_driver(s, kube, err);

	if (rc == 0)
		rc = read_clients(&c, report->updated, err);
	for (size_t i = 0; client_protocols[i].name && rc == 0; i++)
		rc = ensure_clients(&c, i, err);
	if (rc == 0)
		rc = ensure_daemonset(s, kube, csi_node(s, c.orders), err);
	if (rc < 0)
		return rc;
	forget_counts(&c);
	csi_report_done(report);
	*report = c.report;
	c.report = (struct csi_report){ 0 };
	return rc;
}
