/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_driver [OPTION…] COMMAND: the API client at work, for client.sh. Prints a line for each thing.
 *
 *   follow           ConfigMaps of the namespace as a control loop sees them: "NAME VALUE", "NAME -" when
 *                    it is gone, "synced" once
 *   ask              for each line "NAME" of standard input gets that ConfigMap: "NAME VALUE" or "error TEXT"
 *   fill N           makes ConfigMaps filler-0 … filler-(N-1)
 *   hammer N         gets the ConfigMap "one" N times: "N ok, N failed"
 *   pages            lists ConfigMaps; after the first waits for a line of standard input; "N items" or "error TEXT"
 */
#include "base/log.h"
#include "base/mem.h"
#include "kube/controller.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>

static const char *ns = "default";

static const char *value_of(const json_t *object)
{
	const char *value = jstr(object, "data", "value");

	return value ? value : "?";
}

static int print_change(struct reconcile *r, const char *key)
{
	char at[254], name[254];
	cleanup_json json_t *o = NULL;

	key_split(key, at, name);
	o = reader_get(r->cache, &KIND_CONFIGMAP, at, name);
	printf("%s %s\n", name, o ? value_of(o) : "-");
	return 0;
}

static const struct controller_watch watches[] = { { .kind = &KIND_CONFIGMAP }, { 0 } };
static const struct controller loop = { "print", watches, 1, print_change };
static const struct controller *const loops[] = { &loop, NULL };

static int follow(struct kube *k, struct error *err)
{
	struct runner_options options = { .kube = k, .ns = ns, .controllers = loops };
	sigset_t ends;
	struct runner *r;
	int rc, signal_number;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	rc = runner_start(&options, &r, err);
	if (rc < 0)
		return rc;
	sigwait(&ends, &signal_number);
	runner_stop(r);
	return 0;
}

static int ask(struct kube *k)
{
	char name[254];

	while (scanf("%253s", name) == 1) {
		cleanup_json json_t *o = NULL;
		struct error err = ERROR_INIT;
		int rc = kube_get(k, &KIND_CONFIGMAP, ns, name, &o, &err);

		if (rc < 0)
			printf("error %s\n", error_text(&err, rc));
		else
			printf("%s %s\n", name, value_of(o));
	}
	return 0;
}

static int fill(struct kube *k, int count, struct error *err)
{
	for (int i = 0; i < count; i++) {
		cleanup_free char *name = xasprintf("filler-%d", i);
		cleanup_json json_t *o =
			json_pack("{ss ss s{ss ss} s{ss}}", "apiVersion", "v1", "kind", "ConfigMap",
				  "metadata", "name", name, "namespace", ns, "data", "value", "x");
		int rc = kube_create(k, &KIND_CONFIGMAP, o, NULL, err);

		if (rc < 0 && rc != -EEXIST)
			return rc;
	}
	return 0;
}

static int hammer(struct kube *k, int count)
{
	struct error err = ERROR_INIT;
	int failed = 0;

	for (int i = 0; i < count; i++) {
		if (kube_get(k, &KIND_CONFIGMAP, ns, "one", NULL, &err) < 0) {
			printf("error %s\n", err.message);
			failed++;
		}
	}
	printf("%d ok, %d failed\n", count - failed, failed);
	return 0;
}

static int count_item(json_t *object, void *userdata)
{
	size_t *count = userdata;

	if (++*count == 1) {
		puts("first");
		(void)getchar();
	}
	return 0;
}

static int pages(struct kube *k, struct error *err)
{
	cleanup_free char *version = NULL;
	size_t count = 0;
	int rc = kube_list_each(k, &KIND_CONFIGMAP, ns, NULL, count_item, &count, &version, err);

	if (rc == -EIDRM)
		puts("expired");
	else if (rc == 0)
		printf("%zu items\n", count);
	return rc == -EIDRM ? 0 : rc;
}

static int run(struct kube *k, char **argv, struct error *err)
{
	int count = argv[0] && argv[1] ? atoi(argv[1]) : 0;

	if (streq(argv[0], "follow"))
		return follow(k, err);
	if (streq(argv[0], "ask"))
		return ask(k);
	if (streq(argv[0], "fill"))
		return fill(k, count, err);
	if (streq(argv[0], "hammer"))
		return hammer(k, count);
	if (streq(argv[0], "pages"))
		return pages(k, err);
	return error_set(err, EINVAL, "unknown command");
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "kubeconfig", required_argument, NULL, 'k' },
						 { "context", required_argument, NULL, 'c' },
						 { "root", required_argument, NULL, 'r' },
						 { "ping", required_argument, NULL, 'p' },
						 { "namespace", required_argument, NULL, 'n' },
						 { 0 } };
	cleanup_with(kube_config_done) struct kube_config config = { 0 };
	struct kube_config_source source = { 0 };
	struct error err = ERROR_INIT;
	struct kube *k = NULL;
	int c, ping_ms = 0, rc;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'k')
			source.path = optarg;
		else if (c == 'c')
			source.context = optarg;
		else if (c == 'r')
			source.root = optarg;
		else if (c == 'p')
			ping_ms = atoi(optarg);
		else if (c == 'n')
			ns = optarg;
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_init("driver", LOG_LEVEL_DEBUG);
	rc = kube_config_find(&source, &config, &err);
	config.ping_ms = ping_ms;
	if (rc == 0)
		rc = kube_connect(&config, &k, &err);
	if (rc == 0)
		rc = run(k, argv + optind, &err);
	kube_free(k);
	if (rc < 0)
		(void)fprintf(stderr, "client_driver: %s\n", error_text(&err, rc));
	return rc < 0;
}
