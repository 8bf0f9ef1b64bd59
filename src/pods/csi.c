/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/csi.h"

#include "base/log.h"
#include "base/mem.h"
#include "clients/remote.h"
#include "operator/operator.h"
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

/* wanted is stolen. */
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

/* Its pods end when what they serve is no longer mounted. */
static int remove_client(const struct csi_settings *s, struct kube *kube, size_t protocol,
			 struct error *err)
{
	cleanup_free char *name =
		xasprintf("quartermaster-client-%s", client_protocols[protocol].name);
	int rc = kube_delete(kube, &KIND_DAEMONSET, s->ns, name, NULL, err);

	return rc == -ENOENT ? 0 : rc;
}

int csi_ensure(const struct csi_settings *s, struct kube *kube, bool tidy, struct error *err)
{
	int rc = ensure_driver(s, kube, err);

	for (size_t i = 0; client_protocols[i].name && rc == 0; i++)
		if (csi_client_image(s, i))
			rc = ensure_daemonset(s, kube, csi_client(s, i), err);
		else if (tidy)
			rc = remove_client(s, kube, i, err);
	return rc == 0 ? ensure_daemonset(s, kube, csi_node(s), err) : rc;
}
