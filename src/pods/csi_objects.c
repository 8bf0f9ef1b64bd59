/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "clients/remote.h"
#include "operator/operator.h"
#include "pods/csi.h"
#include "pods/pod.h"
#include "pods/workload.h"

#define KUBELET_DIR "/var/lib/kubelet"
/* namespaces of that level of pod security may use what a pod's author can ask for inline */
#define EPHEMERAL_PROFILE "security.kubernetes.io/csi-ephemeral-volume-profile"
#define STATE_DIR "/var/lib/quartermaster"
#define RUN_DIR "/run/quartermaster"
#define CLIENT_END_S 31536000 /* a client stays while it serves a mount: whoever deletes it waits */

const char *csi_client_image(const struct csi_settings *s, size_t protocol)
{
	const char *image = s->clients[protocol];

	if (!image)
		return streq(client_protocols[protocol].name, "glusterfs") ? s->own_image : NULL;
	return streq(image, CLIENT_HOST) ? NULL : image;
}

/* Said in so many words: only then is the machine entered, and what that takes asked for. */
static bool is_hosts(const struct csi_settings *s, size_t protocol)
{
	return streq(s->clients[protocol], CLIENT_HOST);
}

static bool any_is_hosts(const struct csi_settings *s)
{
	for (size_t i = 0; client_protocols[i].name; i++)
		if (is_hosts(s, i))
			return true;
	return false;
}

json_t *csi_driver(const struct csi_settings *s, int64_t now_ms)
{
	cleanup_free char *owner = xasprintf("%s/%s", s->ns, s->deployment);
	char now[TIME_TEXT_MAX];

	return json_pack("{s:s, s:s, s:{s:s, s:{s:s}, s:{s:s, s:s}}, "
			 "s:{s:b, s:b, s:s, s:[s, s], s:b, s:b}}",
			 "apiVersion", "storage.k8s.io/v1", "kind", "CSIDriver", "metadata", "name",
			 QM_DRIVER, "labels", EPHEMERAL_PROFILE, "restricted", "annotations",
			 CSI_OWNER, owner, CSI_RENEWED, time_text(now_ms, now), "spec",
			 "attachRequired", 0, "podInfoOnMount", 1, "fsGroupPolicy", "File",
			 "volumeLifecycleModes", "Persistent", "Ephemeral", "requiresRepublish", 0,
			 "storageCapacity", 1);
}

/* ---- what both workloads have in common ------------------------------------------------------ */

static json_t *daemonset(const struct csi_settings *s, const char *name, json_t *labels,
			 json_t *strategy, json_t *pod_spec)
{
	json_t *spec =
		json_pack("{s:o, s:{s:O}, s:i, s:{s:{s:O}, s:o}}", "updateStrategy", strategy,
			  "selector", "matchLabels", labels, "revisionHistoryLimit", 2, "template",
			  "metadata", "labels", labels, "spec", pod_spec);
	cleanup_free char *hash = pod_hash(spec);

	return json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:{s:s}}, s:o}", "apiVersion", "apps/v1",
			 "kind", "DaemonSet", "metadata", "name", name, "namespace", s->ns,
			 "labels", labels, "annotations", WORKLOAD_HASH, hash, "spec", spec);
}

/* On every machine, whatever it refuses to others: an application can be anywhere. */
static json_t *pod_spec(const char *account, int end_s, json_t *volumes, json_t *container)
{
	return json_pack("{s:b, s:s, s:s, s:b, s:s, s:i, s:[{s:s}], s:o, s:[o]}", "hostNetwork", 1,
			 "dnsPolicy", "ClusterFirstWithHostNet", "serviceAccountName", account,
			 "automountServiceAccountToken", 0, "priorityClassName",
			 "system-node-critical", "terminationGracePeriodSeconds", end_s,
			 "tolerations", "operator", "Exists", "volumes", volumes, "containers",
			 container);
}

static json_t *container(const char *name, const char *image, json_t *command, json_t *env,
			 json_t *mounts, bool read_only, const char *memory)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:{s:b, s:b}, s:{s:{s:s, s:s}}}", "name",
			 name, "image", image, "imagePullPolicy", "IfNotPresent", "command",
			 command, "env", env, "volumeMounts", mounts, "securityContext",
			 "privileged", 1, "readOnlyRootFilesystem", (int)read_only, "resources",
			 "requests", "cpu", "10m", "memory", memory);
}

/* ---- the node service ------------------------------------------------------------------------ */

/* What of the machine the protocol's software needs (clients/protocols.h). */
static void add_paths(struct pod *p, const struct client_protocol *protocol)
{
	for (const struct client_path *path = protocol->paths; path && path->path; path++) {
		cleanup_free char *name = xasprintf("%s%s", protocol->name, path->path);

		for (char *c = name; *c; c++)
			if (*c == '/' || *c == '.')
				*c = '-';
		if (!path->file)
			pod_add_host_path(p, name, path->path, path->path, NULL);
	}
}

/*
 * Which protocols have a container is said by directories (clients/remote.h). What a machine has
 * left of former choices is hidden by an empty one, in which are those of now.
 */
static void add_clients(struct pod *p, const struct csi_settings *s)
{
	pod_add_volume(p, "clients", json_pack("{s:{}}", "emptyDir"), CLIENTS_DIR, NULL);
	for (size_t i = 0; client_protocols[i].name; i++) {
		cleanup_free char *dir = xasprintf(CLIENTS_DIR "/%s", client_protocols[i].name),
				  *name = xasprintf("client-%s", client_protocols[i].name);

		if (csi_client_image(s, i))
			pod_add_host_path(p, name, dir, dir, NULL);
		/* hostvol reads and writes there what the client's programs do */
		if (csi_client_image(s, i) || is_hosts(s, i))
			add_paths(p, &client_protocols[i]);
	}
}

/* Not by subPath: only a directory follows what the operator writes. */
static void add_pools(struct pod *p)
{
	pod_add_volume(p, "pools",
		       json_pack("{s:{s:s, s:b}}", "configMap", "name", CSI_POOLS, "optional", 1),
		       POOLS_DIR, NULL);
}

/* --client=PROTOCOL=ID,ID…: see clients_host_prefer. */
static void add_order(const struct csi_settings *s, const json_t *orders, json_t *command)
{
	for (size_t i = 0; client_protocols[i].name; i++) {
		const char *name = client_protocols[i].name;
		const json_t *order = json_object_get(orders, name), *id;
		struct buf text = { 0 };
		size_t k;

		if (is_hosts(s, i))
			json_array_append_new(command,
					      json_sprintf(CSI_ORDER_FLAG "%s=" CLIENT_HOST, name));
		if (!csi_client_image(s, i) || !json_array_size(order))
			continue;
		json_array_foreach (order, k, id)
			buf_printf(&text, "%s%s", k ? "," : "", json_string_value(id));
		json_array_append_new(command,
				      json_sprintf(CSI_ORDER_FLAG "%s=%s", name, text.data));
		buf_done(&text);
	}
}

/* As Kubernetes itself would mount it, but only here: whoever reads the account sees that it has none. */
static void add_token(struct pod *p)
{
	json_t *sources =
		json_pack("[{s:{s:s, s:i}}, {s:{s:s, s:[{s:s, s:s}]}}, {s:{s:[{s:s, s:{s:s}}]}}]",
			  "serviceAccountToken", "path", "token", "expirationSeconds", 3607,
			  "configMap", "name", "kube-root-ca.crt", "items", "key", "ca.crt", "path",
			  "ca.crt", "downwardAPI", "items", "path", "namespace", "fieldRef",
			  "fieldPath", "metadata.namespace");

	pod_add_volume(
		p, "token",
		json_pack("{s:{s:i, s:o}}", "projected", "defaultMode", 0400, "sources", sources),
		"/var/run/secrets/kubernetes.io/serviceaccount", NULL);
}

static json_t *node_command(const struct csi_settings *s, const char *kubelet, const json_t *orders)
{
	cleanup_free char *dir = xasprintf("--kubelet-dir=%s", kubelet),
			  *max = xasprintf("--max-volumes=%lld", (long long)s->max_volumes);
	json_t *command = json_pack("[s, s, s, s, s, s, s]", "quartermaster", "node",
				    "--node-id=$(NODE_NAME)", dir, "--clients=" CLIENTS_DIR,
				    "--pools=" POOLS_DIR, "--pod-events");

	if (s->max_volumes)
		json_array_append_new(command, json_string(max));
	add_order(s, orders, command);
	return command;
}

json_t *csi_node(const struct csi_settings *s, const json_t *orders)
{
	const char *kubelet = s->kubelet_dir ? s->kubelet_dir : KUBELET_DIR;
	struct pod p = { .volumes = json_array(), .mounts = json_array() };
	json_t *spec, *labels = json_pack("{s:s, s:s}", QM_LABEL_DEPLOYMENT, s->deployment,
					  WORKLOAD_ROLE, "node");
	json_t *env = json_pack("[{s:s, s:{s:{s:s}}}]", "name", "NODE_NAME", "valueFrom",
				"fieldRef", "fieldPath", "spec.nodeName");

	pod_add_host_path(&p, "kubelet", kubelet, kubelet, "Bidirectional");
	pod_add_host_path(&p, "state", STATE_DIR, STATE_DIR, "Bidirectional");
	pod_add_host_path(&p, "run", RUN_DIR, RUN_DIR, NULL);
	add_clients(&p, s);
	add_pools(&p);
	pod_add_host_path(&p, "dev", "/dev", "/dev", NULL);
	pod_add_volume(&p, "tmp", json_pack("{s:{}}", "emptyDir"), "/tmp", NULL);
	add_token(&p);
	spec = pod_spec("quartermaster-node", 30, p.volumes,
			container("node", s->node_image, node_command(s, kubelet, orders), env,
				  p.mounts, true, "32Mi"));
	/* the machine's first process leads to the machine's own programs (clients/machine.h) */
	if (any_is_hosts(s))
		json_object_set_new(spec, "hostPID", json_true());
	return daemonset(s, CSI_NODE_NAME, labels,
			 json_pack("{s:s, s:{s:s}}", "type", "RollingUpdate", "rollingUpdate",
				   "maxUnavailable", "10%"),
			 spec);
}

/* ---- a client -------------------------------------------------------------------------------- */

/* Where GlusterFS looks for certificates is decided when it is built: the project's, Debian's, Fedora's. */
static void add_links(json_t *command)
{
	static const char *const dirs[] = { "/etc/ssl", "/usr/lib/ssl", "/etc/pki/tls" };
	static const char *const files[][2] = { { "pem", "tls.crt" },
						{ "key", "tls.key" },
						{ "ca", "ca.crt" } };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		for (size_t j = 0; j < ARRAY_SIZE(files); j++) {
			cleanup_free char *link = xasprintf("--link=%s/glusterfs.%s=" TLS_DIR "/%s",
							    dirs[i], files[j][0], files[j][1]);

			json_array_append_new(command, json_string(link));
		}
}

static void add_glusterfs(struct pod *p, const struct csi_settings *s, json_t *command, bool own)
{
	cleanup_free char *secret = xasprintf("%s-client", s->deployment);

	pod_add_volume(p, "glusterd", json_pack("{s:{}}", "emptyDir"), "/var/lib/glusterd", NULL);
	pod_add_volume(p, "log", json_pack("{s:{}}", "emptyDir"), "/var/log/glusterfs", NULL);
	if (!s->tls)
		return;
	pod_add_volume(
		p, "tls",
		json_pack("{s:{s:s, s:i}}", "secret", "secretName", secret, "defaultMode", 0400),
		TLS_DIR, NULL);
	json_array_append_new(command, json_string("--touch=/var/lib/glusterd/secure-access"));
	if (!own)
		add_links(command);
}

/* qm-client is put into a directory that both share, since the image has nothing of ours. */
static json_t *install_container(const struct csi_settings *s)
{
	return json_pack("{s:s, s:s, s:s, s:[s, s, s], s:[{s:s, s:s}], s:{s:b, s:b, s:{s:[s]}}}",
			 "name", "install", "image", s->node_image, "imagePullPolicy",
			 "IfNotPresent", "command", "qm-client", "--install", "/qm", "volumeMounts",
			 "name", "qm", "mountPath", "/qm", "securityContext",
			 "readOnlyRootFilesystem", 1, "allowPrivilegeEscalation", 0, "capabilities",
			 "drop", "ALL");
}

static void add_needs(const struct client_protocol *protocol, json_t *command)
{
	for (const char *const *p = protocol->programs; *p; p++)
		json_array_append_new(command, json_sprintf("--need=%s", *p));
}

json_t *csi_client(const struct csi_settings *s, size_t protocol, const char *image)
{
	const char *name = client_protocols[protocol].name;
	bool own = streq(image, s->own_image);
	cleanup_free char *id = client_image_id(image),
			  *dir = xasprintf(CLIENTS_DIR "/%s/%s", name, id),
			  *full = xasprintf("quartermaster-client-%s-%s", name, id);
	struct pod p = { .volumes = json_array(), .mounts = json_array() };
	json_t *labels = json_pack("{s:s, s:s, s:s, s:s}", QM_LABEL_DEPLOYMENT, s->deployment,
				   WORKLOAD_ROLE, "client", CSI_CLIENT, name, CSI_CLIENT_ID, id);
	json_t *command = json_pack("[s]", "/qm/qm-client"), *spec, *c;

	pod_add_volume(&p, "qm", json_pack("{s:{}}", "emptyDir"), "/qm", NULL);
	pod_add_host_path(&p, "state", STATE_DIR, STATE_DIR, "Bidirectional");
	pod_add_host_path(&p, "socket", dir, dir, NULL);
	pod_add_host_path(&p, "dev", "/dev", "/dev", NULL);
	pod_add_volume(&p, "tmp", json_pack("{s:{}}", "emptyDir"), "/tmp", NULL);
	add_paths(&p, &client_protocols[protocol]);
	if (streq(name, "glusterfs"))
		add_glusterfs(&p, s, command, own);
	json_array_append_new(command, json_string("--protocol"));
	json_array_append_new(command, json_string(name));
	add_needs(&client_protocols[protocol], command);
	json_array_append_new(command, json_string(dir));
	c = container("client", image, command,
		      json_pack("[{s:s, s:s}]", "name", "QM_CLIENT_IMAGE", "value", image),
		      p.mounts, own, "64Mi");
	json_object_set_new(c, "readinessProbe",
			    json_pack("{s:{s:[s, s, s]}, s:i, s:i}", "exec", "command",
				      "/qm/qm-client", "--info", dir, "periodSeconds", 5,
				      "timeoutSeconds", 5));
	/* why it does not run is then in the pod's status */
	json_object_set_new(c, "terminationMessagePolicy", json_string("FallbackToLogsOnError"));
	spec = pod_spec("quartermaster-client", CLIENT_END_S, p.volumes, c);
	json_object_set_new(spec, "initContainers", json_pack("[o]", install_container(s)));
	if (client_protocols[protocol].pid)
		json_object_set_new(spec, "hostPID", json_true());
	if (client_protocols[protocol].ipc)
		json_object_set_new(spec, "hostIPC", json_true());
	return daemonset(s, full, labels, json_pack("{s:s}", "type", "OnDelete"), spec);
}
