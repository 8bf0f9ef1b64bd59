/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells pods that the client of their volume died, or that its file system could not be grown, and the operator how many volumes a machine has
 * by clients that are to end. The node service runs it when there is something to tell, with that on
 * standard input: so what speaks to the API is not in its memory all the time.
 *
 *   {"lost": [{"name", "namespace", "uid", "volume"}…]}, {"ungrown": [{"name", "namespace", "uid", "message"}…]}
 *   or {"node": NAME, "clients": {ID: COUNT…}}
 */
#include "cli/pod_events.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/controller.h"
#include "operator/operator.h"

#include <errno.h>
#include <stdio.h>

#define INPUT_MAX (1 << 20)

int verb_pod_events(int argc, char **argv);

static json_t *read_input(struct error *err)
{
	cleanup_free char *text = xcalloc(1, INPUT_MAX + 1);
	size_t len = fread(text, 1, INPUT_MAX, stdin);
	json_t *what = NULL;

	return json_parse(text, len, &what, err) < 0 ? NULL : what;
}

static json_t *pod_of(const json_t *one)
{
	return json_pack("{s:{s:s, s:s, s:s}}", "metadata", "name", jstr(one, "name"), "namespace",
			 jstr(one, "namespace"), "uid", jstr(one, "uid"));
}

static void tell_lost(struct kube *kube, const json_t *lost)
{
	cleanup_json json_t *pod = pod_of(lost);

	if (pod)
		event_record(
			kube, &KIND_POD, pod, "quartermaster-node", true, "VolumeClientDied",
			"the client of volume %s died, and gives errors: restart this pod, its "
			"volume is mounted again then",
			jstr(lost, "volume"));
}

static void tell_ungrown(struct kube *kube, const json_t *ungrown)
{
	cleanup_json json_t *pod = pod_of(ungrown);

	if (pod && jstr(ungrown, "message"))
		event_record(kube, &KIND_POD, pod, "quartermaster-node", true,
			     "FileSystemResizeFailed", "%s", jstr(ungrown, "message"));
}

/* Each machine has a key of its own in one object; without anything to say it has none. */
static int tell_counts(struct kube *kube, const char *ns, const json_t *what, struct error *err)
{
	const json_t *counts = json_object_get(what, "clients");
	cleanup_free char *text = json_text(counts);
	cleanup_json json_t *patch =
		json_pack("{s:{s:o}}", "data", jstr(what, "node"),
			  json_object_size(counts) ? json_string(text) : json_null());

	return patch ? kube_patch(kube, &KIND_CONFIGMAP, ns, QM_CLIENT_COUNTS, NULL,
				  KUBE_PATCH_MERGE, patch, NULL, err)
		     : error_set(err, EINVAL, "no machine is named");
}

int pod_events_tell(struct kube *kube, const char *ns, const json_t *what, struct error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(what, "lost"), i, one)
		tell_lost(kube, one);
	json_array_foreach (json_object_get(what, "ungrown"), i, one)
		tell_ungrown(kube, one);
	return json_object_get(what, "clients") ? tell_counts(kube, ns, what, err) : 0;
}

static int run(struct error *err)
{
	cleanup_json json_t *what = read_input(err);
	struct kube_config config = { 0 };
	struct kube *kube = NULL;
	int rc = what ? kube_config_load(NULL, &config, err) : -EINVAL;

	if (rc == 0)
		rc = kube_connect(&config, &kube, err);
	if (rc == 0)
		rc = pod_events_tell(kube, config.ns, what, err);
	kube_config_done(&config);
	kube_free(kube);
	return rc;
}

int verb_pod_events(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	int rc;

	log_init("pod-events", LOG_LEVEL_INFO);
	rc = run(&err);
	if (rc < 0)
		fprintf(stderr, "quartermaster pod-events: %s\n", error_text(&err, rc));
	return rc < 0 ? 1 : 0;
}
