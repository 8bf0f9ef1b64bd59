/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/operator.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "clients/remote.h"
#include "local/platform.h"
#include "local/program.h"
#include "local/self.h"
#include "local/wake.h"
#include "operator/crd.h"
#include "pods/certs.h"
#include "pods/platform.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

int verb_operator(int argc, char **argv);

static const char usage[] =
	"Usage: quartermaster operator [FLAG…]\n"
	"\n"
	"The control loops of one deployment: nodes, pools, status, claims. It is normally started "
	"by\n"
	"the supervisor of `quartermaster up`, not by hand.\n"
	"\n"
	"  --kubeconfig FILE     where the API is and who we are\n"
	"  --deployment NAME     default glusterfs: names the StorageStatus, the class and the "
	"pools\n"
	"  --namespace NAME      default default: where its StorageNodes are\n"
	"  --type TYPE           default glusterfs\n"
	"  --volume-type TYPE    default replicate:3; also disperse:D:R, arbiter, none\n"
	"  --overcommit FACTOR   default 1: promised sizes stay within capacity times this\n"
	"  --reclaim POLICY      default delete; also retain, archive\n"
	"  --platform local      what runs the agents: processes of this machine, or kubernetes\n"
	"  --image IMAGE         on Kubernetes: of storage pods and agents\n"
	"  --node-image IMAGE    on Kubernetes: of the node service, this operator's own image; "
	"without\n"
	"                        it volumes are not brought to machines\n"
	"  --glusterfs-mount-container IMAGE|host\n"
	"                        on Kubernetes: the image with the client software of a protocol "
	"(also\n"
	"                        nfs, smb, quobyte, iscsi), default --image for GlusterFS, what "
	"--node-image\n"
	"                        has for the others; host: the machine's own software\n"
	"  --kubelet-dir DIR     on Kubernetes, default /var/lib/kubelet: kubelet's directory\n"
	"  --max-volumes N       on Kubernetes: how many volumes a machine may have; default: no "
	"limit\n"
	"  --client-patience SECONDS\n"
	"                        on Kubernetes, default 600: a new image of a client that fails on "
	"a\n"
	"                        machine is taken back after that time; machines use the old one\n"
	"  --tls on|off          on Kubernetes, default on: pools use TLS, and nobody without a\n"
	"                        certificate reaches them\n"
	"  --csi-socket FILE     where CSI is served, for root only; default RUN/csi.sock\n"
	"  --worker FILE         the program qm-gluster, where it is not found by itself\n"
	"\n"
	"Example: quartermaster operator --deployment gold --volume-type arbiter --reclaim "
	"retain\n";

static const struct option flags[] = {
	{ "kubeconfig", required_argument, NULL, 'k' },
	{ "deployment", required_argument, NULL, 'd' },
	{ "namespace", required_argument, NULL, 'n' },
	{ "type", required_argument, NULL, 't' },
	{ "volume-type", required_argument, NULL, 'v' },
	{ "overcommit", required_argument, NULL, 'o' },
	{ "reclaim", required_argument, NULL, 'r' },
	{ "platform", required_argument, NULL, 'p' },
	{ "worker", required_argument, NULL, 'w' },
	{ "csi-socket", required_argument, NULL, 'c' },
	{ "image", required_argument, NULL, 'i' },
	{ "tls", required_argument, NULL, 's' },
	{ "node-image", required_argument, NULL, 'N' },
	{ "kubelet-dir", required_argument, NULL, 'K' },
	{ "max-volumes", required_argument, NULL, 'm' },
	{ "client-patience", required_argument, NULL, 'P' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* "delete" as the flag has it, "Delete" as a StorageClass has it. */
static int parse_reclaim(const char *text, const char **ret, struct error *err)
{
	static const struct {
		const char *flag, *policy;
	} table[] = { { "delete", "Delete" }, { "retain", "Retain" }, { "archive", "archive" } };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcasecmp(text, table[i].flag) == 0) {
			*ret = table[i].policy;
			return 0;
		}
	return error_set(err, EINVAL, "--reclaim %s: use delete, retain or archive", text);
}

static int parse_overcommit(const char *text, double *ret, struct error *err)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value > 0 && value <= 1000))
		return error_set(err, EINVAL,
				 "--overcommit %s: use a number above 0, such as 1 or 1.5", text);
	*ret = value;
	return 0;
}

struct settings {
	struct operator_options o;
	bool kubernetes, tls;
	const char *image, *node_image, *kubelet_dir;
	int64_t max_volumes;
	const char *clients[CLIENT_PROTOCOLS_MAX]; /* see pods/csi.h */
	int64_t client_patience_ms;
	char *worker; /* owned */
};

static int parse_platform(const char *text, struct settings *s, struct error *err)
{
	s->kubernetes = streq(text, "kubernetes");
	if (!s->kubernetes && !streq(text, "local"))
		return error_set(err, EINVAL, "--platform %s: use local or kubernetes", text);
	return 0;
}

static int parse_kubelet_dir(const char *text, struct settings *s, struct error *err)
{
	s->kubelet_dir = text;
	return path_is_clean(text) && text[1]
		       ? 0
		       : error_set(err, EINVAL,
				   "--kubelet-dir %s: use an absolute path without \"..\"", text);
}

static int parse_max_volumes(const char *text, int64_t *ret, struct error *err)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	if (end == text || *end || value < 0 || value > 100000)
		return error_set(err, EINVAL, "--max-volumes %s: use a number, 0 for no limit",
				 text);
	*ret = value;
	return 0;
}

static int parse_tls(const char *text, struct settings *s, struct error *err)
{
	s->tls = streq(text, "on");
	if (!s->tls && !streq(text, "off"))
		return error_set(err, EINVAL, "--tls %s: use on or off", text);
	return 0;
}

static int parse_patience(const char *text, struct settings *s, struct error *err)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 1 || value > 86400)
		return error_set(err, EINVAL,
				 "--client-patience %s: use a number of seconds, 1 to 86400", text);
	s->client_patience_ms = value * 1000;
	return 0;
}

#define CLIENT_FLAG 256 /* of the first protocol; the others follow */
#define CLIENT_FLAGS_MAX (2 * CLIENT_PROTOCOLS_MAX)

/* The flags above, and those of each protocol in both spellings. names: ended by NULL, caller frees. */
static void all_flags(struct option *all, char **names)
{
	size_t n = 0, count = 0;

	for (; flags[n].name; n++)
		all[n] = flags[n];
	for (size_t i = 0; client_protocols[i].name; i++)
		for (int dashes = 0; dashes <= 1; dashes++) {
			names[count] = xasprintf("%s%smount%scontainer", client_protocols[i].name,
						 dashes ? "-" : "_", dashes ? "-" : "_");
			all[n++] = (struct option){ names[count++], required_argument, NULL,
						    CLIENT_FLAG + (int)i };
		}
	all[n] = (struct option){ 0 };
	names[count] = NULL;
}

static int parse_flag(int c, struct settings *s, struct error *err)
{
	struct operator_options *o = &s->o;

	if (c >= CLIENT_FLAG) {
		s->clients[c - CLIENT_FLAG] = optarg;
		return *optarg ? 0
			       : error_set(err, EINVAL,
					   "--%s-mount-container: use an image, or host",
					   client_protocols[c - CLIENT_FLAG].name);
	}
	switch (c) {
	case 'k':
		o->kubeconfig = optarg;
		return 0;
	case 'd':
		o->deployment = optarg;
		return 0;
	case 'n':
		o->ns = optarg;
		return 0;
	case 't':
		o->type = optarg;
		return 0;
	case 'v':
		o->volume_type = optarg;
		return 0;
	case 'o':
		return parse_overcommit(optarg, &o->overcommit, err);
	case 'r':
		return parse_reclaim(optarg, &o->reclaim, err);
	case 'w':
		free(s->worker);
		s->worker = xstrdup(optarg);
		return 0;
	case 'c':
		o->csi_socket = optarg;
		return 0;
	case 'i':
		s->image = optarg;
		return 0;
	case 'N':
		s->node_image = optarg;
		return 0;
	case 'K':
		return parse_kubelet_dir(optarg, s, err);
	case 'm':
		return parse_max_volumes(optarg, &s->max_volumes, err);
	case 's':
		return parse_tls(optarg, s, err);
	case 'P':
		return parse_patience(optarg, s, err);
	case 'p':
		return parse_platform(optarg, s, err);
	default:
		return error_set(err, EINVAL, "see quartermaster operator --help");
	}
}

/* A pool's name is the deployment's with a number behind it, at most 60 bytes, and Gluster's volume name too. */
static int check(const struct settings *s, struct error *err)
{
	const struct operator_options *o = &s->o;
	struct volume_type type;
	if (s->kubernetes && (!s->image || !*s->image))
		return error_set(err, EINVAL,
				 "--image IMAGE is needed: what storage pods and agents run");
	if (!name_is_label(o->deployment) || strlen(o->deployment) > 50)
		return error_set(err, EINVAL,
				 "--deployment %s: use a-z, 0-9 and -, at most 50 of them",
				 o->deployment);
	if (!name_is_label(o->ns))
		return error_set(err, EINVAL, "--namespace %s: not the name of a namespace", o->ns);
	if (!streq(o->type, "glusterfs"))
		return error_set(err, EINVAL, "--type %s: only glusterfs is there", o->type);
	return volume_type_parse(o->volume_type, &type, err);
}

/* 1: help was asked for. */
static int parse(int argc, char **argv, struct settings *s, struct error *err)
{
	struct option all[ARRAY_SIZE(flags) + CLIENT_FLAGS_MAX];
	char *names[CLIENT_FLAGS_MAX + 1];
	int c, rc = 0;
	all_flags(all, names);
	optind = 0; /* the command line was looked at before us */
	while (rc == 0 && (c = getopt_long(argc, argv, "h", all, NULL)) != -1)
		rc = c == 'h' ? 1 : parse_flag(c, s, err);
	for (size_t i = 0; names[i]; i++)
		free(names[i]);
	if (rc != 0)
		return rc;
	if (optind < argc)
		return error_set(err, EINVAL,
				 "\"%s\" is not a flag; see quartermaster operator --help",
				 argv[optind]);
	return check(s, err);
}

static int run_here(struct operator_options *o, struct error *err)
{
	int rc = program_lock("operator", err);
	if (rc >= 0)
		rc = instance_wake(o->kubeconfig, o->ns, err);
	if (rc >= 0)
		rc = platform_local_new(&o->platform, err);
	if (rc < 0)
		return rc;
	/* the lock makes us the only one of this instance, so a lease of a former life is ours */
	char host[64] = "?";
	gethostname(host, sizeof(host) - 1);
	cleanup_free char *identity = xasprintf("%s:%s", host, run_dir());
	o->identity = identity;
	o->binder = true; /* there is no controller manager */
	rc = operator_run(o, err);
	platform_local_free(o->platform);
	return rc;
}

static int connect_cluster(const struct operator_options *o, struct kube **ret, struct error *err)
{
	struct kube_config config = { 0 };
	int rc = kube_config_load(o->kubeconfig, &config, err);
	if (rc < 0)
		return rc;
	free(config.manager);
	config.manager = xstrdup("quartermaster-operator");
	rc = kube_connect(&config, ret, err);
	kube_config_done(&config);
	return rc;
}

static int run_on_cluster(struct settings *s, struct error *err)
{
	cleanup_free char *storage = certs_common_name(s->o.ns, s->o.deployment, "storage"),
			  *client = certs_common_name(s->o.ns, s->o.deployment, "client");
	cleanup_free char *allow = xasprintf("%s,%s", storage, client);
	struct kube *kube = NULL;
	int rc = connect_cluster(&s->o, &kube, err);
	if (rc == 0)
		rc = crds_ensure(kube, err);
	if (rc < 0) {
		kube_free(kube);
		return rc;
	}
	struct platform_pods_options pods = {
		.kube = kube,
		.ns = s->o.ns,
		.settings = { .deployment = s->o.deployment, .image = s->image, .tls = s->tls },
		.tls_dir = TLS_DIR,
		.secure_file = "/var/lib/glusterd/secure-access",
		.csi = { .ns = s->o.ns,
			 .deployment = s->o.deployment,
			 .node_image = s->node_image,
			 .own_image = s->image,
			 .kubelet_dir = s->kubelet_dir,
			 .max_volumes = s->max_volumes,
			 .patience_ms = s->client_patience_ms,
			 .tls = s->tls },
	};
	memcpy(pods.csi.clients, s->clients, sizeof(s->clients));
	s->o.tls_allow = s->tls ? allow : NULL;
	s->o.platform = platform_pods_new(&pods);
	rc = operator_run(&s->o, err);
	platform_pods_free(s->o.platform);
	kube_free(kube);
	return rc;
}

static int run(struct settings *s, struct error *err)
{
	cleanup_free char *logs = state_path("log"), *socket = run_path("csi.sock");
	int rc = mkdir_parents(logs, 0700, err);
	if (rc == 0 && !s->o.csi_socket)
		rc = mkdir_parents(run_dir(), 0755, err);
	if (rc < 0)
		return rc;
	s->o.worker_log_dir = logs;
	s->o.worker_program = s->worker;
	if (!s->o.csi_socket)
		s->o.csi_socket = socket;
	return s->kubernetes ? run_on_cluster(s, err) : run_here(&s->o, err);
}

int verb_operator(int argc, char **argv)
{
	struct settings s = {
		.o = { .deployment = "glusterfs",
		       .ns = "default",
		       .type = "glusterfs",
		       .volume_type = "replicate:3",
		       .reclaim = "Delete",
		       .overcommit = 1 },
		.tls = true,
		.client_patience_ms = 600000,
		.worker = self_sibling("qm-gluster"),
	};
	struct error err = ERROR_INIT;
	int rc = parse(argc, argv, &s, &err);

	if (rc > 0)
		fputs(usage, stdout);
	if (rc < 0)
		fprintf(stderr, "quartermaster operator: %s\n", error_text(&err, rc));
	if (rc == 0) {
		log_init("operator", LOG_LEVEL_INFO);
		rc = run(&s, &err);
		if (rc < 0)
			log_err("%s", error_text(&err, rc));
		rc = rc < 0 ? 1 : 0;
	} else {
		rc = rc < 0 ? 2 : 0;
	}
	free(s.worker);
	return rc;
}
