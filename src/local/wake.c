/* SPDX-License-Identifier: Apache-2.0 */
#include "local/wake.h"

#include "base/clock.h"
#include "base/mem.h"
#include "kube/kube.h"
#include "local/box.h"

#include <errno.h>
#include <time.h>

enum { API_TIMEOUT_MS = 20000, POLL_MS = 50 };

struct stale {
	const struct kind *kind;
	const char *part, *field, *value;
	const char *subresource;
};

/* Only where something is said that may be wrong now: a pool that is still to be made stays so. */
static const char *const claims_to_live[] = { "ONLINE", "Online",      "Degraded", "Healing",
					      "Ready",	"Maintenance", "Emptying", NULL };

static const struct stale all_stale[] = {
	{ &KIND_STORAGEPOOL, "status", "phase", "Offline", "status" },
	{ &KIND_STORAGENODE, "status", "phase", "Offline", "status" },
	{ &KIND_STORAGESTATUS, "spec", "status", "OFFLINE", NULL },
};

static int put_down(struct kube *kube, const struct stale *s, const char *ns, struct error *err)
{
	cleanup_json json_t *objects = NULL;
	size_t i;
	json_t *o;
	int r = kube_list(kube, s->kind, ns, NULL, &objects, NULL, err);

	json_array_foreach (objects, i, o) {
		cleanup_json json_t *patch = json_pack("{s:{s:s}}", s->part, s->field, s->value);
		const char *now = jstr(o, s->part, s->field);
		bool lives = false;

		for (size_t k = 0; claims_to_live[k]; k++)
			lives |= streq(now, claims_to_live[k]);
		if (r == 0 && lives)
			r = kube_patch(kube, s->kind, ns, object_name(o), s->subresource,
				       KUBE_PATCH_MERGE, patch, NULL, err);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

static int put_all_down(const char *kubeconfig, const char *ns, struct error *err)
{
	struct kube_config config = { 0 };
	struct kube *kube = NULL;
	int r = kube_config_load(kubeconfig, &config, err);

	if (r == 0) {
		free(config.manager);
		config.manager = xstrdup("quartermaster-operator");
		r = kube_connect(&config, &kube, err);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(all_stale); i++)
		r = put_down(kube, &all_stale[i], ns, err);
	kube_free(kube);
	kube_config_done(&config);
	return r;
}

int instance_wake(const char *kubeconfig, const char *ns, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + API_TIMEOUT_MS;
	int r;

	if (box_any())
		return 0;
	while ((r = put_all_down(kubeconfig, ns, err)) < 0 && clock_mono_ms(&clock_real) < end)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
	return r < 0 ? error_prefix(err, "waiting for the API") : 0;
}
