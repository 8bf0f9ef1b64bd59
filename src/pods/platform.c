/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/platform.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/operator.h"
#include "pods/certs.h"

#include <errno.h>
#include <stdio.h>

#define CERTS_EVERY_MS 3600000
#define CSI_EVERY_MS 30000
#define CSI_MOVING_MS 5000 /* the same while clients are changing */

struct pods {
	struct platform platform;
	struct platform_pods_options options;
	char *certificate; /* owned: see workload.h */
	/* monotonic, when these were last looked at; 0: never */
	int64_t certs_ms, client_cert_ms, csi_ms;
	bool csi_ours; /* we keep it */
	int64_t pools_ms; /* when what is told of pools was last looked at */
	json_t *pools; /* what that was; owned */
	struct csi_report clients; /* owned */
};

static struct pods *pods(struct platform *p)
{
	return (struct pods *)p;
}

static struct certs_options certs_of(struct pods *p)
{
	return (struct certs_options){ .kube = p->options.kube,
				       .ns = p->options.ns,
				       .deployment = p->options.settings.deployment,
				       .dir = p->options.tls_dir,
				       .secure_file = p->options.secure_file };
}

static int prepare_certs(struct pods *p, struct error *err)
{
	struct certs_options certs = certs_of(p);
	int64_t now = clock_mono_ms(p->options.kube->clock);
	char *id = NULL;
	int rc;

	if (!p->options.settings.tls || (p->certs_ms && now - p->certs_ms < CERTS_EVERY_MS))
		return 0;
	rc = certs_ensure(&certs, &id, err);
	if (rc < 0)
		return rc;
	p->certs_ms = now;
	free(p->certificate);
	p->certificate = id;
	p->options.settings.certificate = id;
	return 0;
}

/* Pools and claims do not wait for what brings volumes to machines: a failure is told, and tried again. */
static void prepare_csi(struct pods *p)
{
	struct certs_options certs = certs_of(p);
	int64_t now = clock_mono_ms(p->options.kube->clock);
	struct error err = ERROR_INIT;
	bool moving =
		p->clients.known && !p->clients.updated && !streq(p->clients.reason, "RolledBack");
	int rc = 0;

	if (!p->options.csi.node_image ||
	    (p->csi_ms && now - p->csi_ms < (moving ? CSI_MOVING_MS : CSI_EVERY_MS)))
		return;
	if (p->options.settings.tls && (!p->csi_ms || now - p->client_cert_ms >= CERTS_EVERY_MS)) {
		rc = certs_ensure_client(&certs, &err);
		if (rc == 0)
			p->client_cert_ms = now;
	}
	p->csi_ms = now;
	if (rc == 0)
		rc = csi_ensure(&p->options.csi, p->options.kube, &p->clients, &err);
	if (rc >= 0)
		p->csi_ours = rc == 0;
	if (rc < 0)
		log_warn("what brings volumes to machines is not up to date: %s",
			 error_text(&err, rc));
}

static int prepare(struct platform *platform, struct error *err)
{
	struct pods *p = pods(platform);
	int rc = prepare_certs(p, err);

	if (rc == 0)
		prepare_csi(p);
	return rc;
}

/* Of a deployment that does not keep the node service it would be in the wrong namespace. */
static int tell_pools(struct platform *platform, const json_t *wanted, struct error *err)
{
	struct pods *p = pods(platform);
	int64_t now = clock_mono_ms(p->options.kube->clock);
	int rc;

	if (!p->csi_ours || (json_equal(p->pools, wanted) && now - p->pools_ms < CSI_EVERY_MS))
		return 0;
	rc = csi_pools_ensure(&p->options.csi, p->options.kube, wanted, err);
	if (rc < 0)
		return rc;
	json_decref(p->pools);
	p->pools = json_incref((json_t *)wanted);
	p->pools_ms = now;
	return 0;
}

static void add_conditions(struct platform *platform, json_t *conditions, int64_t generation)
{
	struct pods *p = pods(platform);

	if (p->clients.known)
		condition_set(conditions, "ClientsUpdated", p->clients.updated, p->clients.reason,
			      p->clients.message, generation,
			      clock_wall_ms(p->options.kube->clock));
}

/* ---- machines ------------------------------------------------------------------------------ */
static char *selector_text(const json_t *selector)
{
	struct buf text = { 0 };
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)selector, key, value)
		buf_printf(&text, "%s%s=%s", text.len ? "," : "", key,
			   json_string_value(value) ? json_string_value(value) : "");
	return buf_take(&text);
}

struct found {
	size_t count;
	struct buf names; /* of the first four */
};

static int find(json_t *node, void *userdata)
{
	struct found *f = userdata;

	if (f->count < 4)
		buf_printf(&f->names, "%s%s", f->count ? ", " : "", object_name(node));
	f->count++;
	return 0;
}

static int several(const struct found *f, const char *selector, struct error *err)
{
	return error_set(err, ENOTUNIQ,
			 "spec.nodeSelector (%s) matches %zu machines (%s%s), but must match "
			 "exactly one; kubernetes.io/hostname names one",
			 *selector ? selector : "empty", f->count, f->names.data,
			 f->count > 4 ? ", …" : "");
}

static int machine(struct platform *p, const json_t *node, char **ret, struct error *err)
{
	cleanup_free char *labels = selector_text(jget(node, "spec", "nodeSelector"));
	/* machines seldom change, and one that goes is noticed when its agent is run */
	struct kube_selector selector = { .labels = *labels ? labels : NULL, .recent = true };
	struct found f = { 0 };
	int rc = kube_list_each(pods(p)->options.kube, &KIND_NODE, NULL, &selector, find, &f, NULL,
				err);

	if (rc == 0 && f.count == 0)
		rc = error_set(err, ENOENT,
			       "spec.nodeSelector (%s) matches no machine; compare it with: "
			       "kubectl get nodes --show-labels",
			       labels);
	else if (rc == 0 && f.count > 1)
		rc = several(&f, labels, err);
	else if (rc == 0)
		*ret = buf_take(&f.names);
	buf_done(&f.names);
	return rc;
}

/* Bricks are on one machine; another that has taken its name has none of them. */
static int get_machine(struct pods *p, const json_t *node, json_t **ret, struct error *err)
{
	const char *name = jstr(node, "status", "nodeName"), *there, *ours;
	int rc = kube_get(p->options.kube, &KIND_NODE, NULL, name, ret, err);

	if (rc == -ENOENT)
		return error_set(err, ENOENT, "the machine %s is no longer in the cluster", name);
	if (rc < 0)
		return rc;
	there = jstr(*ret, "status", "nodeInfo", "machineID");
	ours = jstr(node, "status", "agent", "machineId");
	if (ours && *ours && there && *there && !streq(ours, there) &&
	    json_array_size(jget(node, "status", "plan", "bricks")))
		return error_set(err, EXDEV,
				 "the machine %s has been replaced: its machine-id is %s, the "
				 "node's bricks are on %s; bring that back, or delete the "
				 "StorageNode and declare the new machine under another name",
				 name, there, ours);
	return 0;
}

/* ---- workloads ----------------------------------------------------------------------------- */
static bool is_up(const json_t *deployment)
{
	return jint(deployment, "status", "observedGeneration") ==
		       jint(deployment, "metadata", "generation") &&
	       jint(deployment, "status", "updatedReplicas") >= 1 &&
	       jint(deployment, "status", "availableReplicas") >= 1 &&
	       jint(deployment, "status", "replicas") ==
		       jint(deployment, "status", "updatedReplicas");
}

static int stop_where_down(json_t *deployment, void *but)
{
	return !streq(object_name(deployment), but) && !is_up(deployment);
}

/* 1: all other storage pods of the deployment run; 0: one does not. */
static int others_are_up(struct pods *p, const char *but, struct error *err)
{
	cleanup_free char *labels = xasprintf(QM_LABEL_DEPLOYMENT "=%s," WORKLOAD_ROLE "=storage",
					      p->options.settings.deployment);
	struct kube_selector selector = { .labels = labels };
	int rc = kube_list_each(p->options.kube, &KIND_DEPLOYMENT, p->options.ns, &selector,
				stop_where_down, (void *)but, NULL, err);

	return rc < 0 ? rc : rc == 0;
}

/* What differs is replaced whole; the version that was read is the precondition. */
static int change(struct pods *p, const json_t *have, const json_t *wanted, struct error *err)
{
	cleanup_json json_t *patch =
		json_pack("{s:{s:s, s:O, s:O}, s:{s:O, s:O}}", "metadata", "resourceVersion",
			  object_version(have), "labels", jget(wanted, "metadata", "labels"),
			  "annotations", jget(wanted, "metadata", "annotations"), "spec",
			  "minReadySeconds", jget(wanted, "spec", "minReadySeconds"), "template",
			  jget(wanted, "spec", "template"));

	log_info("%s is brought up to date", object_name(have));
	return kube_patch(p->options.kube, &KIND_DEPLOYMENT, p->options.ns, object_name(have), NULL,
			  KUBE_PATCH_MERGE, patch, NULL, err);
}

static bool is_secure(const json_t *deployment)
{
	const json_t *container =
		json_array_get(jget(deployment, "spec", "template", "spec", "containers"), 0);
	const json_t *word;
	size_t i;

	json_array_foreach (json_object_get(container, "command"), i, word)
		if (streq(json_string_value(word), "--secure"))
			return true;
	return false;
}

/* Rolled one at a time, the first storage pod would be cut off from all others. */
static int refuse_tls_change(const json_t *have, const json_t *wanted, struct error *err)
{
	if (is_secure(have) == is_secure(wanted))
		return 0;
	return error_set(
		err, EBUSY,
		"--tls=%s: the storage pods run with TLS %s, and those with and without "
		"it do not reach each other; set it back, or delete the StorageNodes first",
		is_secure(wanted) ? "on" : "off", is_secure(have) ? "on" : "off");
}

/* 0: it is as it should be, or on its way; 1: it is to change, but not now. */
static int ensure_workload(struct pods *p, const char *role, const json_t *node, const json_t *host,
			   bool may_roll, struct error *err)
{
	cleanup_json json_t *wanted = workload_deployment(&p->options.settings, role, node, host);
	cleanup_json json_t *have = NULL;
	const char *name = object_name(wanted);
	int rc = kube_get(p->options.kube, &KIND_DEPLOYMENT, p->options.ns, name, &have, err);

	if (rc == -ENOENT)
		return kube_create(p->options.kube, &KIND_DEPLOYMENT, wanted, NULL, err);
	if (rc < 0)
		return rc;
	if (!streq(jstr(have, "metadata", "labels", WORKLOAD_NODE),
		   jstr(wanted, "metadata", "labels", WORKLOAD_NODE)))
		return error_set(err, EEXIST,
				 "Deployment %s is there and is not this node's; rename it", name);
	if (streq(object_annotation(have, WORKLOAD_HASH), object_annotation(wanted, WORKLOAD_HASH)))
		return 0;
	if (streq(role, "storage")) {
		rc = refuse_tls_change(have, wanted, err);
		if (rc < 0)
			return rc;
		rc = may_roll ? others_are_up(p, name, err) : 0;
		if (rc <= 0)
			return rc < 0 ? rc : 1;
	}
	return change(p, have, wanted, err);
}

static int agent_ensure(struct platform *platform, const json_t *node, bool may_roll,
			struct error *err)
{
	struct pods *p = pods(platform);
	cleanup_json json_t *host = NULL;
	int rc = get_machine(p, node, &host, err), waits;

	if (rc < 0)
		return rc;
	waits = ensure_workload(p, "storage", node, host, may_roll, err);
	if (waits < 0)
		return waits;
	rc = ensure_workload(p, "agent", node, host, may_roll, err);
	return rc < 0 ? rc : waits;
}

static int remove_workload(struct pods *p, const char *role, const json_t *node, struct error *err)
{
	cleanup_free char *name = workload_name(object_name(node), role);
	struct kube_delete_options options = { .propagation = "Foreground" };
	int rc = kube_delete(p->options.kube, &KIND_DEPLOYMENT, p->options.ns, name, &options, err);

	return rc == -ENOENT ? 0 : rc < 0 ? rc : 1;
}

static int agent_remove(struct platform *platform, const json_t *node, struct error *err)
{
	struct pods *p = pods(platform);
	int storage = remove_workload(p, "storage", node, err);
	int agent = storage < 0 ? 0 : remove_workload(p, "agent", node, err);

	return storage < 0 ? storage : agent < 0 ? agent : storage || agent;
}

/* ---- those who drain machines --------------------------------------------------------------- */
static int disruption(struct platform *platform, bool allowed, struct error *err)
{
	struct pods *p = pods(platform);
	const char *deployment = p->options.settings.deployment;
	cleanup_free char *name = xasprintf("%s-storage", deployment);
	cleanup_json json_t *have = NULL, *spec = NULL;
	int rc = kube_get(p->options.kube, &KIND_PDB, p->options.ns, name, &have, err);

	if (rc == 0 && jint(have, "spec", "maxUnavailable") == allowed)
		return 0;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	spec = json_pack("{s:i, s:{s:{s:s, s:s}}}", "maxUnavailable", (int)allowed, "selector",
			 "matchLabels", QM_LABEL_DEPLOYMENT, deployment, WORKLOAD_ROLE, "storage");
	if (rc == 0) {
		cleanup_json json_t *patch = json_pack("{s:O}", "spec", spec);

		return kube_patch(p->options.kube, &KIND_PDB, p->options.ns, name, NULL,
				  KUBE_PATCH_MERGE, patch, NULL, err);
	}
	cleanup_json json_t *pdb =
		json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:O}", "apiVersion", "policy/v1",
			  "kind", "PodDisruptionBudget", "metadata", "name", name, "namespace",
			  p->options.ns, "labels", QM_LABEL_DEPLOYMENT, deployment, "spec", spec);
	return kube_create(p->options.kube, &KIND_PDB, pdb, NULL, err);
}

static const struct platform_ops pods_ops = {
	.machine = machine,
	.agent_ensure = agent_ensure,
	.agent_remove = agent_remove,
	.prepare = prepare,
	.pools = tell_pools,
	.conditions = add_conditions,
	.disruption = disruption,
};

struct platform *platform_pods_new(const struct platform_pods_options *options)
{
	struct pods *p = xcalloc(1, sizeof(*p));

	p->platform.ops = &pods_ops;
	p->options = *options;
	return &p->platform;
}

void platform_pods_free(struct platform *p)
{
	if (!p)
		return;
	csi_report_done(&pods(p)->clients);
	free(pods(p)->certificate);
	json_decref(pods(p)->pools);
	free(p);
}
