/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests/gluster/agent*.sh: the embedded API, the agent, and a client that plays the operator,
 * in one program.
 *   agent-driver api STATE RUN              serves until it is killed; writes STATE/admin.kubeconfig
 *   agent-driver agent ARGS…                quartermaster agent
 *   agent-driver create FILE                creates the object of a JSON file
 *   agent-driver patch KIND NS NAME SUB JSON  merge patch (SUB: "status" or "")
 *   agent-driver get KIND NS NAME           prints it
 *   agent-driver delete KIND NS NAME
 *   agent-driver probe device|directory SOURCE  state, reason and message of a look at it
 *   agent-driver find UUID [WWN]            the device that has this file system
 *   agent-driver format DEVICE UUID SEEN    formats the device, if it is still what a look at SEEN shows now
 *   agent-driver mount DEVICE MOUNTPOINT
 *   agent-driver wipe DEVICE UUID
 */
#include "api/server.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/kube.h"
#include "systems/glusterfs/device.h"
#include "systems/glusterfs/mount.h"

#include <stdio.h>

int verb_agent(int argc, char **argv);

static int fail(const struct error *err)
{
	fprintf(stderr, "agent-driver: %s\n", err->message);
	return 1;
}

static int serve(const char *state, const char *run)
{
	cleanup_free char *socket = xasprintf("%s/api.sock", run),
			  *path = xasprintf("%s/admin.kubeconfig", state);
	cleanup_free char *token = NULL;
	struct api_options o = { .state_dir = state, .unix_path = socket };
	struct api_server *server;
	struct error err = ERROR_INIT;

	log_init("api", LOG_LEVEL_WARN);
	if (mkdir_parents(state, 0700, &err) < 0 || mkdir_parents(run, 0700, &err) < 0 ||
	    api_server_start(&o, &server, &err) < 0 ||
	    api_token(state, "admin", "admin", NULL, &token, &err) < 0 ||
	    api_write_kubeconfig(state, socket, api_server_port(server), token, path, &err) < 0)
		return fail(&err);
	pause();
	api_server_stop(server);
	return 0;
}

static int probe(bool directory, const char *source)
{
	struct device_facts facts;
	struct device_verdict v;

	if (directory)
		directory_probe(source, &facts);
	else
		device_probe(source, &facts);
	device_judge(source, &facts, false, &v);
	printf("%s %s %s\n", v.state, v.reason, v.message);
	return 0;
}

static int on_device(int argc, char **argv, struct error *err)
{
	struct disk_wanted wanted = { .uuid = argv[2], .wwn = argc > 3 ? argv[3] : NULL };
	char device[DEVICE_PATH_MAX];
	struct device_facts seen;
	int rc = -1;

	if (streq(argv[1], "find") && (rc = device_find(&wanted, device, err)) == 0) {
		puts(device);
	} else if (streq(argv[1], "format") && argc == 5) {
		device_probe(argv[4], &seen);
		rc = device_format(argv[2], &seen, argv[3], "test", err);
	} else if (streq(argv[1], "mount") && argc == 4) {
		rc = brick_mount(argv[2], argv[3], err);
	} else if (streq(argv[1], "wipe") && argc == 4) {
		rc = device_wipe(argv[2], argv[3], err);
	}
	return rc < 0 ? fail(err) : 0;
}

static int print(json_t *object)
{
	cleanup_json json_t *o = object;
	cleanup_free char *text = json_text(o);

	puts(text);
	return 0;
}

static int create(struct kube *k, const char *file, struct error *err)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *object = NULL;
	const struct kind *kind;
	size_t len;
	int rc;

	if ((rc = file_read(file, 0, &text, &len, err)) < 0 ||
	    (rc = json_parse(text, len, &object, err)) < 0)
		return rc;
	kind = kind_by_gvk(jstr(object, "apiVersion"), jstr(object, "kind"));
	return kind ? kube_create(k, kind, object, NULL, err)
		    : error_set(err, 22, "%s: unknown kind", file);
}

static int client(int argc, char **argv, struct error *err)
{
	const struct kind *kind = kind_by_word(argv[2]);
	struct kube_config config = { 0 };
	struct kube *k;
	json_t *object = NULL;
	int rc;

	if (kube_config_load(NULL, &config, err) < 0 || kube_connect(&config, &k, err) < 0)
		return -1;
	if (streq(argv[1], "create")) {
		rc = create(k, argv[2], err);
	} else if (streq(argv[1], "get") && argc == 5) {
		rc = kube_get(k, kind, argv[3], argv[4], &object, err);
		if (rc == 0)
			print(object);
	} else if (streq(argv[1], "delete") && argc == 5) {
		rc = kube_delete(k, kind, argv[3], argv[4], NULL, err);
	} else if (streq(argv[1], "patch") && argc == 7) {
		rc = json_parse(argv[6], strlen(argv[6]), &object, err);
		if (rc == 0)
			rc = kube_patch(k, kind, argv[3], argv[4], *argv[5] ? argv[5] : NULL,
					KUBE_PATCH_MERGE, object, NULL, err);
		json_decref(object);
	} else {
		rc = error_set(err, 22, "what is \"%s\"?", argv[1]);
	}
	kube_free(k);
	kube_config_done(&config);
	return rc;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;

	if (argc >= 2 && streq(argv[1], "agent"))
		return verb_agent(argc - 1, argv + 1);
	if (argc == 4 && streq(argv[1], "api"))
		return serve(argv[2], argv[3]);
	if (argc == 4 && streq(argv[1], "probe"))
		return probe(streq(argv[2], "directory"), argv[3]);
	if (argc >= 3 && (streq(argv[1], "find") || streq(argv[1], "format") ||
			  streq(argv[1], "mount") || streq(argv[1], "wipe")))
		return on_device(argc, argv, &err);
	return argc >= 3 && client(argc, argv, &err) == 0 ? 0 : fail(&err);
}
