/* SPDX-License-Identifier: Apache-2.0 */
/* What brings volumes to machines, as it is asked of a cluster. */
#include "api/store.h"
#include "base/mem.h"
#include "base/str.h"
#include "pods/csi.h"
#include "pods/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct csi_settings plain = { .ns = "storage",
					   .deployment = "gold",
					   .node_image = "operator:1",
					   .own_image = "glusterfs:1" };

static size_t protocol(const char *name)
{
	size_t i = 0;

	while (client_protocols[i].name && !streq(client_protocols[i].name, name))
		i++;
	assert_non_null(client_protocols[i].name);
	return i;
}

static const json_t *pod_of(const json_t *o)
{
	return jget(o, "spec", "template", "spec");
}

static const json_t *container_of(const json_t *o)
{
	return json_array_get(jget(pod_of(o), "containers"), 0);
}

/* The element of a list whose name (or other key) is that. */
static const json_t *find(const json_t *list, const char *key, const char *name)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (streq(jstr(item, key), name))
			return item;
	return NULL;
}

static const json_t *mount_at(const json_t *o, const char *path)
{
	return find(jget(container_of(o), "volumeMounts"), "mountPath", path);
}

static bool has_word(const json_t *o, const char *prefix)
{
	const json_t *word;
	size_t i;

	json_array_foreach (jget(container_of(o), "command"), i, word)
		if (str_has_prefix(json_string_value(word), prefix))
			return true;
	return false;
}

/* The machine is entered, and what that takes asked for, only where that was said. */
static void software_of_the_machine(void **state)
{
	cleanup_json json_t *orders = json_pack("{s:[s]}", "nfs", "abc"), *without = NULL,
			    *with = NULL;
	struct csi_settings s = plain;

	without = csi_node(&s, orders);
	assert_null(jget(pod_of(without), "hostPID"));
	assert_false(has_word(without, CSI_ORDER_FLAG "iscsi"));
	assert_null(mount_at(without, "/etc/iscsi"));
	s.clients[protocol("iscsi")] = s.clients[protocol("nfs")] = "host";
	with = csi_node(&s, orders);
	assert_true(jbool(pod_of(with), "hostPID"));
	assert_true(has_word(with, CSI_ORDER_FLAG "iscsi=host"));
	assert_true(has_word(with, CSI_ORDER_FLAG "nfs=host"));
	assert_false(has_word(with, CSI_ORDER_FLAG "nfs=abc"));
	/* records are read and written by hostvol itself */
	assert_non_null(mount_at(with, "/etc/iscsi"));
	assert_null(mount_at(with, CLIENTS_DIR "/iscsi"));
}

static void choice_of_client(void **state)
{
	struct csi_settings s = plain;
	size_t glusterfs = protocol("glusterfs"), nfs = protocol("nfs");

	assert_string_equal(csi_client_image(&s, glusterfs), "glusterfs:1");
	assert_null(csi_client_image(&s, nfs));
	s.clients[glusterfs] = "host";
	s.clients[nfs] = "example.org/nfs:4";
	assert_null(csi_client_image(&s, glusterfs));
	assert_string_equal(csi_client_image(&s, nfs), "example.org/nfs:4");
}

static void driver(void **state)
{
	cleanup_json json_t *o = csi_driver(&plain, 0);

	assert_non_null(o);
	assert_string_equal(jstr(o, "metadata", "annotations", CSI_OWNER), "storage/gold");
	assert_string_equal(jstr(o, "metadata", "annotations", CSI_RENEWED),
			    "1970-01-01T00:00:00Z");
	assert_true(json_is_false(jget(o, "spec", "attachRequired")));
	assert_string_equal(jstr(o, "spec", "fsGroupPolicy"), "File");
	assert_int_equal(json_array_size(jget(o, "spec", "volumeLifecycleModes")), 2);
	assert_string_equal(jstr(o, "metadata", "labels",
				 "security.kubernetes.io/csi-ephemeral-volume-profile"),
			    "restricted");
}

static void node(void **state)
{
	cleanup_json json_t *o = csi_node(&plain, NULL);

	assert_non_null(o);
	assert_string_equal(jstr(pod_of(o), "priorityClassName"), "system-node-critical");
	assert_true(json_is_false(jget(pod_of(o), "automountServiceAccountToken")));
	assert_string_equal(jstr(container_of(o), "image"), "operator:1");
	assert_string_equal(jstr(mount_at(o, "/var/lib/kubelet"), "mountPropagation"),
			    "Bidirectional");
	assert_string_equal(jstr(mount_at(o, "/var/lib/quartermaster"), "mountPropagation"),
			    "Bidirectional");
	assert_non_null(mount_at(o, "/dev"));
	assert_string_equal(jstr(o, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),
			    "10%");
}

static void node_is_told(void **state)
{
	struct csi_settings s = plain;
	cleanup_json json_t *standard = csi_node(&s, NULL), *o = NULL;
	const json_t *pools = find(jget(pod_of(standard), "volumes"), "name", "pools");

	/* without it the node service runs, too; by a subPath it would never see a change */
	assert_true(jbool(pools, "configMap", "optional"));
	assert_string_equal(jstr(pools, "configMap", "name"), CSI_POOLS);
	assert_null(jget(mount_at(standard, POOLS_DIR), "subPath"));
	assert_true(has_word(standard, "--pools=" POOLS_DIR));
	assert_true(has_word(standard, "--kubelet-dir=/var/lib/kubelet"));
	assert_false(has_word(standard, "--max-volumes"));
	s.kubelet_dir = "/var/lib/k0s/kubelet";
	s.max_volumes = 120;
	o = csi_node(&s, NULL);
	assert_true(has_word(o, "--kubelet-dir=/var/lib/k0s/kubelet"));
	assert_true(has_word(o, "--max-volumes=120"));
	assert_null(mount_at(o, "/var/lib/kubelet"));
	assert_string_equal(jstr(mount_at(o, "/var/lib/k0s/kubelet"), "mountPropagation"),
			    "Bidirectional");
}

/* ---- the pools' ConfigMap -------------------------------------------------------------------- */

static json_t *config(struct kube *kube)
{
	json_t *o = NULL;

	assert_int_equal(kube_get(kube, &KIND_CONFIGMAP, "default", CSI_POOLS, &o, NULL), 0);
	return o;
}

/* Sees to it that it says that of pools. New reference to what is there then. */
static json_t *told(struct kube *kube, json_t *pools /* stolen */)
{
	struct csi_settings s = plain;
	struct error err = ERROR_INIT;

	s.ns = "default";
	if (csi_pools_ensure(&s, kube, pools, &err) < 0)
		fail_msg("%s", err.message);
	json_decref(pools);
	return config(kube);
}

static void pools_follow(void **state)
{
	struct store_options options = { .path = ":memory:", .clock = &clock_real };
	struct store *store = NULL;
	struct kube *kube;
	cleanup_json json_t *first = NULL, *same = NULL, *other = NULL, *one = NULL;

	assert_int_equal(store_open(&options, &store, NULL), 0);
	assert_int_equal(store_bootstrap(store, NULL), 0);
	kube = store_client(store, "test");
	first = told(kube,
		     json_pack("{s:{s:s}, s:{s:s}}", "a", "export", "h:/a", "b", "export", "h:/b"));
	assert_string_equal(jstr(first, "data", "a"), "{\"export\":\"h:/a\"}");
	assert_non_null(jstr(first, "data", "b"));
	same = told(kube,
		    json_pack("{s:{s:s}, s:{s:s}}", "b", "export", "h:/b", "a", "export", "h:/a"));
	assert_string_equal(object_version(same), object_version(first));
	other = told(kube, json_pack("{s:{s:s}}", "a", "export", "i:/a"));
	assert_string_equal(jstr(other, "data", "a"), "{\"export\":\"i:/a\"}");
	assert_null(jget(other, "data", "b"));
	/* somebody has deleted it */
	assert_int_equal(kube_delete(kube, &KIND_CONFIGMAP, "default", CSI_POOLS, NULL, NULL), 0);
	one = told(kube, json_pack("{s:{s:s}}", "a", "export", "i:/a"));
	assert_non_null(jstr(one, "data", "a"));
	kube_free(kube);
	store_close(store);
}

/* The directory that says that there is a container is there before the container is. */
static void node_knows_the_choice(void **state)
{
	struct csi_settings s = plain;
	cleanup_json json_t *with = csi_node(&s, NULL), *without = NULL;

	s.clients[protocol("glusterfs")] = "host";
	without = csi_node(&s, NULL);
	assert_non_null(mount_at(with, CLIENTS_DIR "/glusterfs"));
	assert_null(mount_at(with, CLIENTS_DIR "/nfs"));
	assert_null(mount_at(without, CLIENTS_DIR "/glusterfs"));
	/* what was left on the machine is hidden */
	assert_non_null(mount_at(without, CLIENTS_DIR));
	assert_string_not_equal(jstr(with, "metadata", "annotations", WORKLOAD_HASH),
				jstr(without, "metadata", "annotations", WORKLOAD_HASH));
}

/* Where it is to be found after whatever is killed: in the pod itself. */
static void node_knows_the_order(void **state)
{
	cleanup_json json_t *orders =
		json_pack("{s:[s, s], s:[s]}", "glusterfs", "new", "old", "nfs", "unwanted");
	cleanup_json json_t *o = csi_node(&plain, orders);

	assert_true(has_word(o, "--client=glusterfs=new,old"));
	assert_false(has_word(o, "--client=nfs"));
}

static void client(void **state)
{
	cleanup_json json_t *o = csi_client(&plain, protocol("glusterfs"), "glusterfs:1");
	const json_t *install = json_array_get(jget(pod_of(o), "initContainers"), 0);

	assert_non_null(o);
	cleanup_free char *id = client_image_id("glusterfs:1"),
			  *name = xasprintf("quartermaster-client-glusterfs-%s", id),
			  *dir = xasprintf(CLIENTS_DIR "/glusterfs/%s", id);

	assert_int_equal(strlen(id), 8);
	assert_string_equal(jstr(o, "metadata", "name"), name);
	assert_string_equal(jstr(o, "spec", "selector", "matchLabels", CSI_CLIENT_ID), id);
	assert_true(has_word(o, "--need=glusterfs"));
	/* else a user's further groups, such as fsGroup, would count for nothing in a volume */
	assert_true(jbool(pod_of(o), "hostPID"));
	assert_string_equal(jstr(o, "spec", "updateStrategy", "type"), "OnDelete");
	assert_string_equal(jstr(install, "image"), "operator:1");
	assert_string_equal(jstr(container_of(o), "image"), "glusterfs:1");
	assert_string_equal(jstr(mount_at(o, "/var/lib/quartermaster"), "mountPropagation"),
			    "Bidirectional");
	assert_non_null(mount_at(o, dir));
	assert_null(mount_at(o, TLS_DIR));
	assert_false(has_word(o, "--touch"));
	assert_true(jbool(container_of(o), "securityContext", "readOnlyRootFilesystem"));
}

static void client_with_tls(void **state)
{
	struct csi_settings s = plain;
	cleanup_json json_t *own = NULL, *foreign = NULL;

	s.tls = true;
	own = csi_client(&s, protocol("glusterfs"), "glusterfs:1");
	foreign = csi_client(&s, protocol("glusterfs"), "example.org/gluster:11");
	assert_non_null(mount_at(own, TLS_DIR));
	assert_string_equal(
		jstr(find(jget(pod_of(own), "volumes"), "name", "tls"), "secret", "secretName"),
		"gold-client");
	assert_true(has_word(own, "--touch=/var/lib/glusterd/secure-access"));
	/* our image leads GlusterFS there; in another the links are made */
	assert_false(has_word(own, "--link"));
	assert_true(has_word(foreign, "--link=/etc/pki/tls/glusterfs.ca=" TLS_DIR "/ca.crt"));
	assert_false(jbool(container_of(foreign), "securityContext", "readOnlyRootFilesystem"));
}

static void other_client(void **state)
{
	struct csi_settings s = plain;
	cleanup_json json_t *o = NULL;

	s.tls = true;
	s.clients[protocol("nfs")] = "example.org/nfs:4";
	o = csi_client(&s, protocol("nfs"), "example.org/nfs:4");
	assert_true(str_has_prefix(jstr(o, "metadata", "name"), "quartermaster-client-nfs-"));
	assert_true(has_word(o, "--need=mount.nfs"));
	assert_null(mount_at(o, TLS_DIR)); /* no business of NFS */
	assert_null(mount_at(o, "/etc/iscsi"));
	assert_null(jget(pod_of(o), "hostIPC"));
	assert_null(jget(pod_of(o), "hostPID"));
}

/* A block protocol's software works on the machine, and hostvol beside it on the same files. */
static void block_client(void **state)
{
	struct csi_settings s = plain;
	cleanup_json json_t *o = NULL, *service = NULL, *without = csi_node(&plain, NULL);

	s.clients[protocol("iscsi")] = "example.org/iscsi:2";
	o = csi_client(&s, protocol("iscsi"), "example.org/iscsi:2");
	service = csi_node(&s, NULL);
	for (const struct client_path *p = client_protocols[protocol("iscsi")].paths; p->path;
	     p++) {
		assert_true(p->file || mount_at(o, p->path));
		assert_true(p->file || mount_at(service, p->path));
	}
	assert_null(mount_at(without, "/etc/iscsi"));
	assert_string_equal(jstr(find(jget(pod_of(o), "volumes"), "name", "iscsi-etc-iscsi"),
				 "hostPath", "path"),
			    "/etc/iscsi");
	assert_true(jbool(pod_of(o), "hostIPC"));
	assert_true(jbool(pod_of(o), "hostNetwork"));
	assert_true(has_word(o, "--protocol"));
	assert_true(has_word(o, "iscsi"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choice_of_client),
		cmocka_unit_test(software_of_the_machine),
		cmocka_unit_test(driver),
		cmocka_unit_test(node),
		cmocka_unit_test(node_is_told),
		cmocka_unit_test(pools_follow),
		cmocka_unit_test(node_knows_the_choice),
		cmocka_unit_test(node_knows_the_order),
		cmocka_unit_test(client),
		cmocka_unit_test(client_with_tls),
		cmocka_unit_test(other_client),
		cmocka_unit_test(block_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
