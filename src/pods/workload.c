/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/workload.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"
#include "operator/operator.h"
#include "pods/pod.h"

#include <xxhash.h>

#define LABEL_MAX 63
#define HASH_DIGITS 8
#define STATE_ROOT "/var/lib/quartermaster/nodes"
#define RUN_ROOT "/run/quartermaster/nodes"
#define END_S 30 /* bricks get 15 s of it to end by themselves */
#define SETTLE_S                                                                                   \
	10 /* a storage pod counts as up so long after it answers: its agent has said by then what is to heal */

static unsigned hash_of(const char *text)
{
	return (unsigned)XXH64(text, strlen(text), 0);
}

/* At most max bytes of a name that stays unique, and valid as a label. */
static char *shortened(const char *name, size_t max)
{
	size_t kept = max - HASH_DIGITS - 1;

	if (strlen(name) <= max)
		return xstrdup(name);
	while (kept > 1 && (name[kept - 1] == '.' || name[kept - 1] == '-'))
		kept--;
	return xasprintf("%.*s-%08x", (int)kept, name, hash_of(name));
}

char *workload_node_label(const char *storage_node)
{
	return shortened(storage_node, LABEL_MAX);
}

/* A pod's name adds 17 bytes of its own to its Deployment's, and is cut at 63. */
char *workload_name(const char *storage_node, const char *role)
{
	cleanup_free char *base = shortened(storage_node, LABEL_MAX - 17 - strlen(role) - 1);

	return xasprintf("%s-%s", base, role);
}

/* ---- volumes ------------------------------------------------------------------------------- */
static void add_volumes(struct pod *p, const struct workload_settings *s, bool agent,
			const json_t *node)
{
	cleanup_free char *key = xasprintf("%s.%s", object_namespace(node), object_name(node));
	cleanup_free char *state = xasprintf(STATE_ROOT "/%s", key),
			  *run = xasprintf(RUN_ROOT "/%s", key);
	cleanup_free char *glusterd = xasprintf("%s/glusterd", state),
			  *log = xasprintf("%s/log", state);
	const char *propagation = agent ? "Bidirectional" : "HostToContainer";
	const json_t *directory;
	size_t i;

	pod_add_host_path(p, "state", state, "/var/lib/quartermaster", propagation);
	pod_add_host_path(p, "glusterd", glusterd, "/var/lib/glusterd", NULL);
	pod_add_host_path(p, "log", log, "/var/log/glusterfs", NULL);
	pod_add_host_path(p, "run", run, "/run", NULL);
	pod_add_volume(p, "tmp", json_pack("{s:{}}", "emptyDir"), "/tmp", NULL);
	if (agent)
		pod_add_host_path(p, "dev", "/dev", "/dev", NULL);
	if (s->tls) {
		cleanup_free char *secret = xasprintf("%s-tls", s->deployment);

		pod_add_volume(p, "tls",
			       json_pack("{s:{s:s, s:i}}", "secret", "secretName", secret,
					 "defaultMode", 0400),
			       TLS_DIR, NULL);
	}
	json_array_foreach (jget(node, "spec", "directories"), i, directory) {
		cleanup_free char *name = xasprintf("directory-%zu", i);

		pod_add_host_path(p, name, json_string_value(directory),
				  json_string_value(directory), propagation);
	}
}

/* ---- the container ------------------------------------------------------------------------- */
static json_t *command(const struct workload_settings *s, bool agent, const json_t *node,
		       const json_t *machine)
{
	const char *id = jstr(machine, "status", "nodeInfo", "machineID");
	json_t *words;

	if (!agent) {
		words = json_pack("[s, s, s, s]", "quartermaster", "storage", "--address",
				  json_string_value(json_array_get(
					  jget(node, "spec", "storageNetwork", "ips"), 0)));
		if (s->tls)
			json_array_append_new(words, json_string("--secure"));
		return words;
	}
	cleanup_free char *key = object_key(node);
	words = json_pack("[s, s, s, s, s]", "quartermaster", "agent", "--node", key,
			  "--storage-pod");
	if (id && *id) {
		json_array_append_new(words, json_string("--machine-id"));
		json_array_append_new(words, json_string(id));
	}
	return words;
}

static json_t *container(const struct workload_settings *s, bool agent, const json_t *node,
			 const json_t *machine, json_t *mounts)
{
	const char *address =
		json_string_value(json_array_get(jget(node, "spec", "storageNetwork", "ips"), 0));
	json_t *c = json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:b, s:b}, s:{s:{s:s, s:s}}}", "name",
			      agent ? "agent" : "storage", "image", s->image, "imagePullPolicy",
			      "IfNotPresent", "command", command(s, agent, node, machine),
			      "volumeMounts", mounts, "securityContext", "privileged", 1,
			      "readOnlyRootFilesystem", 1, "resources", "requests", "cpu",
			      agent ? "10m" : "100m", "memory", agent ? "32Mi" : "128Mi");

	/* the agent says how it is in its StorageNode; glusterd's port says when it takes requests */
	if (!agent)
		json_object_set_new(c, "readinessProbe",
				    json_pack("{s:{s:s, s:i}, s:i}", "tcpSocket", "host", address,
					      "port", 24007, "periodSeconds", 5));
	return c;
}

/* ---- the pod ------------------------------------------------------------------------------- */
static json_t *pinned_to(const json_t *machine)
{
	return json_pack("{s:{s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}}", "nodeAffinity",
			 "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms",
			 "matchFields", "key", "metadata.name", "operator", "In", "values",
			 object_name(machine));
}

static json_t *pod_spec(const struct workload_settings *s, bool agent, const json_t *node,
			const json_t *machine)
{
	struct pod p = { .volumes = json_array(), .mounts = json_array() };

	add_volumes(&p, s, agent, node);
	return json_pack("{s:b, s:s, s:s, s:b, s:s, s:i, s:o, s:[{s:s}], s:o, s:[o]}",
			 "hostNetwork", 1, "dnsPolicy", "ClusterFirstWithHostNet",
			 "serviceAccountName",
			 agent ? "quartermaster-agent" : "quartermaster-storage",
			 "automountServiceAccountToken", (int)agent, "priorityClassName",
			 "system-node-critical", "terminationGracePeriodSeconds", END_S, "affinity",
			 pinned_to(machine), "tolerations", "operator", "Exists", "volumes",
			 p.volumes, "containers", container(s, agent, node, machine, p.mounts));
}

static json_t *pod_template(const struct workload_settings *s, bool agent, json_t *labels,
			    const json_t *node, const json_t *machine)
{
	json_t *template = json_pack("{s:{s:O}, s:o}", "metadata", "labels", labels, "spec",
				     pod_spec(s, agent, node, machine));

	/* glusterd and bricks read their certificate once; an agent's commands read it each time */
	if (!agent && s->tls && s->certificate)
		jset(template, json_string(s->certificate), "metadata", "annotations",
		     WORKLOAD_CERTIFICATE);
	return template;
}

json_t *workload_deployment(const struct workload_settings *s, const char *role, const json_t *node,
			    const json_t *machine)
{
	cleanup_free char *name = workload_name(object_name(node), role),
			  *node_label = workload_node_label(object_name(node));
	cleanup_json json_t *labels =
		json_pack("{s:s, s:s, s:s}", QM_LABEL_DEPLOYMENT, s->deployment, WORKLOAD_NODE,
			  node_label, WORKLOAD_ROLE, role);
	bool agent = streq(role, "agent");
	json_t *spec = json_pack("{s:i, s:{s:s}, s:i, s:i, s:{s:O}, s:o}", "replicas", 1,
				 "strategy", "type", "Recreate", "revisionHistoryLimit", 2,
				 "minReadySeconds", agent ? 0 : SETTLE_S, "selector", "matchLabels",
				 labels, "template", pod_template(s, agent, labels, node, machine));
	cleanup_free char *hash = pod_hash(spec);

	return json_pack("{s:s, s:s, s:{s:s, s:s, s:O, s:{s:s}, s:[o]}, s:o}", "apiVersion",
			 "apps/v1", "kind", "Deployment", "metadata", "name", name, "namespace",
			 object_namespace(node), "labels", labels, "annotations", WORKLOAD_HASH,
			 hash, "ownerReferences", owner_reference(&KIND_STORAGENODE, node), "spec",
			 spec);
}
