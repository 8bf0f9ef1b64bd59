/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells pods that the client of their volume died. The node service runs it when that happens, with
 * what it found on standard input: so what speaks to the API is not in its memory all the time.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/controller.h"

#include <errno.h>
#include <stdio.h>

#define INPUT_MAX (1 << 20)

int verb_pod_events(int argc, char **argv);

static json_t *read_input(struct error *err)
{
	cleanup_free char *text = xcalloc(1, INPUT_MAX + 1);
	size_t len = fread(text, 1, INPUT_MAX, stdin);
	json_t *list = NULL;

	return json_parse(text, len, &list, err) < 0 ? NULL : list;
}

static void tell(struct kube *kube, const json_t *lost)
{
	cleanup_json json_t *pod =
		json_pack("{s:{s:s, s:s, s:s}}", "metadata", "name", jstr(lost, "name"),
			  "namespace", jstr(lost, "namespace"), "uid", jstr(lost, "uid"));

	if (pod)
		event_record(
			kube, &KIND_POD, pod, "quartermaster-node", true, "VolumeClientDied",
			"the client of volume %s died, and gives errors: restart this pod, its "
			"volume is mounted again then",
			jstr(lost, "volume"));
}

static int run(struct error *err)
{
	cleanup_json json_t *list = read_input(err);
	struct kube_config config = { 0 };
	struct kube *kube = NULL;
	const json_t *lost;
	size_t i;
	int rc = list ? kube_config_load(NULL, &config, err) : -EINVAL;

	if (rc < 0)
		return rc;
	rc = kube_connect(&config, &kube, err);
	kube_config_done(&config);
	json_array_foreach (list, i, lost)
		if (rc == 0)
			tell(kube, lost);
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
