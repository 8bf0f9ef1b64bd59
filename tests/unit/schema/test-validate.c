/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include <errno.h>

static const char seed_example[] = "apiVersion: \"coreos.com/v1\"\n"
				   "kind: StorageNode\n"
				   "metadata:\n"
				   "  name: storage-node1\n"
				   "spec:\n"
				   "  type: glusterfs\n"
				   "  nodeSelector:\n"
				   "    'kubernetes.io/hostname': storage-node1\n"
				   "  storageNetwork:\n"
				   "    ips:\n"
				   "      - 10.10.10.100\n"
				   "  devices:\n"
				   "    - /dev/vdb\n"
				   "    - /dev/vdc\n"
				   "    - /dev/vdd\n"
				   "  glusterfs:\n"
				   "    cluster: cluster1\n"
				   "    zone: 1\n";

#define NODE "apiVersion: coreos.com/v1\nkind: StorageNode\nmetadata: {name: n}\nspec: "
#define META(m)                                                                                    \
	"apiVersion: coreos.com/v1\nkind: StorageNode\nspec: {type: glusterfs}\nmetadata: " m
#define CLAIM(spec) "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: " spec
#define SIZED(size)                                                                                \
	CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: " size "}}}")
#define VOLUME(spec) "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: " spec
#define CLASS(rest) "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\n" rest
#define ATTRIBUTES(rest)                                                                           \
	"apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: c}\n" rest
#define SECRET(rest) "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" rest
#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const char *const good[] = {
	seed_example,
	NODE "{type: glusterfs}",
	NODE "{type: torus, torus: {anything: [1, 2]}, glusterfs: null}",
	NODE "{type: glusterfs, directories: [/srv/a, /srv/ab], storageNetwork: {ips: ['fd00::1', "
	     "10.0.0.1]}}",
	NODE
	"{type: glusterfs, devices: [/dev/disk/by-id/x], glusterfs: {wipe: [/dev/disk/by-id/x]}}",
	NODE "{type: glusterfs, glusterfs: {zone: 2147483647}}",
	META("{name: n, creationTimestamp: null, labels: {a.b/C_d: x.Y, e: ''}, annotations: {a: b "
	     "c}}"),
	META("{generateName: n-}"),
	"apiVersion: coreos.com/v1\nkind: StorageStatus\nmetadata: {name: store}\n"
	"spec: {type: glusterfs, status: OFFLINE, storageNodes: [], glusterfs: {overcommit: 1.5}, "
	"torus: null}",
	SIZED("10Gi"),
	SIZED("1024"),
	CLAIM("{accessModes: [ReadWriteMany], storageClassName: '', volumeMode: Filesystem, "
	      "volumeName: v, "
	      "resources: {requests: {storage: 1.5G}}, selector: {matchLabels: {a: b}}}"),
	VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], nfs: {server: a, path: "
	       "/b}}"),
	VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d, "
	       "volumeHandle: h, "
	       "volumeAttributes: {a: b}}, claimRef: {namespace: d, name: c, uid: u}, hostPath: "
	       "null}"),
	CLASS("provisioner: csi.quartermaster.storage\nparameters: {deployment: d}\nmountOptions: "
	      "[ro]"),
	ATTRIBUTES("driverName: csi.quartermaster.storage\nparameters: {reclaim: archive}"),
	SECRET("data: {a: YWJj, b: ''}\nstringData: {c: d}\ntype: Opaque"),
	"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a.conf: 'x'}",
	"apiVersion: v1\nkind: Namespace\nmetadata: {name: c}",
	"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l}\n"
	"spec: {holderIdentity: me, leaseDurationSeconds: 15, renewTime: "
	"'2026-11-15T20:52:06.123456Z'}",
	"apiVersion: v1\nkind: Event\nmetadata: {name: e.17}\ninvolvedObject: {kind: Pod, name: "
	"p}\n"
	"reason: R\nmessage: m\ntype: Warning\ncount: 3\nlastTimestamp: '2026-11-15T20:52:06Z'",
};

static void test_good(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		cleanup_json json_t *o = from_yaml(good[i]);
		struct schema_problem p = { 0 };
		struct error err = ERROR_INIT;
		const struct kind *k;

		if (schema_identify(o, &k, &err) < 0)
			fail_msg("%s: %s", good[i], err.message);
		if (schema_validate(k, o, NULL, true, &p) < 0)
			fail_msg("%s: %s", good[i], p.error.message);
		/* what the API would store passes as well, and may stay as it is */
		cleanup_json json_t *stored = json_deep_copy(o);

		schema_default(k, stored);
		schema_prune(k, stored);
		assert_int_equal(schema_validate(k, stored, stored, true, &p), 0);
	}
}

struct bad {
	const char *yaml, *message;
};

static const struct bad bad[] = {
	{ NODE "{type: gluster}",
	  "spec.type: \"gluster\" is not supported (did you mean \"glusterfs\"?); "
	  "supported: glusterfs, torus" },
	{ NODE "{type: zfs}", "spec.type: \"zfs\" is not supported; supported: glusterfs, torus" },
	{ NODE "{type: 7}", "spec.type: must be a string, not a number" },
	{ NODE "{}", "spec.type: missing" },
	{ NODE "[]", "spec: must be a mapping, not a list" },
	{ NODE "null", "spec: missing" },
	{ NODE "{type: glusterfs, devicess: []}",
	  "spec.devicess: unknown field (did you mean \"devices\"?)" },
	{ NODE "{type: glusterfs, zone: 1}",
	  "spec.zone: unknown field (it belongs below \"spec.glusterfs\")" },
	{ NODE "{type: glusterfs, quux: 1}", "spec.quux: unknown field" },
	{ NODE "{type: glusterfs, \"\\e[31mquux\": 1}", "spec.?[31mquux: unknown field" },
	{ META("{name: n}\n'': {}"), "\"\": unknown field" },
	{ META("{name: n}\nspce: {}"), "spce: unknown field (did you mean \"spec\"?)" },
	{ META("{name: n, lables: {}}"),
	  "metadata.lables: unknown field (did you mean \"labels\"?)" },
	{ NODE "{type: glusterfs, devices: /dev/vdb}",
	  "spec.devices: must be a list, not a string" },
	{ NODE "{type: glusterfs, devices: [vdb]}",
	  "spec.devices[0]: \"vdb\" is not an absolute path" },
	{ NODE "{type: glusterfs, devices: [/dev/vdb, /srv/x]}",
	  "spec.devices[1]: \"/srv/x\" is not below /dev/; to store on a file system, name a "
	  "directory in "
	  "spec.directories" },
	{ NODE "{type: glusterfs, devices: [/dev/../etc]}",
	  "spec.devices[0]: \"/dev/../etc\" is not a clean path; write it without \".\" and \"..\" "
	  "parts, "
	  "doubled or final slashes and control characters" },
	{ NODE "{type: glusterfs, devices: [/dev/vdb, /dev/vdb]}",
	  "spec.devices[1]: \"/dev/vdb\" stands there already" },
	{ NODE "{type: glusterfs, directories: [/srv/../etc]}",
	  "spec.directories[0]: \"/srv/../etc\" is not a clean path; write it without \".\" and "
	  "\"..\" parts, "
	  "doubled or final slashes and control characters" },
	{ NODE "{type: glusterfs, directories: [../etc]}",
	  "spec.directories[0]: \"../etc\" is not an absolute path" },
	{ NODE "{type: glusterfs, directories: [\"/a\\x1bb\"]}",
	  "spec.directories[0]: \"/a\\x1bb\" is not a clean path; write it without \".\" and "
	  "\"..\" parts, "
	  "doubled or final slashes and control characters" },
	{ NODE "{type: glusterfs, directories: [/]}",
	  "spec.directories[0]: the root directory cannot be given to a storage system" },
	{ NODE "{type: glusterfs, directories: [/proc/x]}",
	  "spec.directories[0]: \"/proc/x\" lies in /proc, which does not outlive a reboot" },
	{ NODE "{type: glusterfs, directories: [/tmp/x]}",
	  "spec.directories[0]: \"/tmp/x\" lies in /tmp, which does not outlive a reboot" },
	{ NODE "{type: glusterfs, directories: [/a, /a]}",
	  "spec.directories[1]: \"/a\" stands there already" },
	{ NODE "{type: glusterfs, directories: [/a/b, /a]}",
	  "spec.directories[0]: \"/a/b\" lies inside \"/a\"; keep one of them" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: [127.1.2.3]}}",
	  "spec.storageNetwork.ips[0]: 127.1.2.3 is a loopback address, which no other node can "
	  "reach; give "
	  "the address in the storage network" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: ['::1']}}",
	  "spec.storageNetwork.ips[0]: ::1 is a loopback address, which no other node can reach; "
	  "give the "
	  "address in the storage network" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: [10.0.0.256]}}",
	  "spec.storageNetwork.ips[0]: \"10.0.0.256\" is not an IPv4 or IPv6 address" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: [0.0.0.0]}}",
	  "spec.storageNetwork.ips[0]: 0.0.0.0 stands for any address; give the node's own" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: [224.0.0.1]}}",
	  "spec.storageNetwork.ips[0]: 224.0.0.1 is a multicast or broadcast address; give the "
	  "node's own" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: ['fe80::1']}}",
	  "spec.storageNetwork.ips[0]: fe80::1 is link-local, which means nothing without an "
	  "interface; give "
	  "a routed or unique local address" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: ['::ffff:10.0.0.1']}}",
	  "spec.storageNetwork.ips[0]: ::ffff:10.0.0.1 is an IPv4 address in IPv6 form; write it "
	  "as a.b.c.d" },
	{ NODE "{type: glusterfs, storageNetwork: {ips: ['fd00::1', 'fd00:0::1']}}",
	  "spec.storageNetwork.ips[1]: \"fd00:0::1\" stands there already" },
	{ NODE "{type: glusterfs, glusterfs: {zone: 0}}",
	  "spec.glusterfs.zone: must be between 1 and 2147483647" },
	{ NODE "{type: glusterfs, glusterfs: {zone: 2147483648}}",
	  "spec.glusterfs.zone: must be between 1 and 2147483647" },
	{ NODE "{type: glusterfs, glusterfs: {zone: 1.5}}",
	  "spec.glusterfs.zone: must be a whole number" },
	{ NODE "{type: glusterfs, glusterfs: {zone: '1'}}",
	  "spec.glusterfs.zone: must be an integer, not a string" },
	{ NODE "{type: glusterfs, glusterfs: {cluster: A}}",
	  "spec.glusterfs.cluster: \"A\" is not a name: use lower case letters, digits and \"-\", "
	  "with a "
	  "letter or digit at both ends" },
	{ NODE "{type: glusterfs, devices: [/dev/a], glusterfs: {wipe: [/dev/b]}}",
	  "spec.glusterfs.wipe[0]: \"/dev/b\" is not one of spec.devices" },
	{ NODE "{type: glusterfs, maintenance: yes}",
	  "spec.maintenance: must be true or false, not a string" },
	{ NODE "{type: glusterfs, nodeSelector: {a b: c}}",
	  "spec.nodeSelector: \"a b\" is not a key: write NAME or example.com/NAME, NAME of at "
	  "most 63 letters, "
	  "digits, \"-\", \"_\" and \".\"" },
	{ META("{}"), "metadata.name: missing" },
	{ META("{name: null}"), "metadata.name: missing" },
	{ META("null"), "metadata: missing" },
	{ META("{name: A_b}"),
	  "metadata.name: \"A_b\" is not a name: use lower case letters, digits, \"-\" and "
	  "\".\", with a letter or digit at both ends" },
	{ META("{name: " A64 "}"),
	  "metadata.name: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\" is "
	  "longer than the 63 "
	  "bytes that StorageNode allows" },
	{ META("{name: n, namespace: a.b}"), "metadata.namespace: \"a.b\" is not a name: use lower "
					     "case letters, digits and \"-\", with a letter or "
					     "digit at both ends" },
	{ META("{name: n, labels: {a: b c}}"),
	  "metadata.labels: \"b c\" is not a label's value: at most 63 letters, digits, \"-\", "
	  "\"_\" and \".\", "
	  "with a letter or digit at both ends" },
	{ META("{name: n, labels: {a: 1}}"), "metadata.labels.a: must be a string, not a number" },
	{ META("{name: n, annotations: {-a: b}}"),
	  "metadata.annotations: \"-a\" is not a key: write NAME or example.com/NAME, NAME of at "
	  "most 63 "
	  "letters, digits, \"-\", \"_\" and \".\"" },
	{ META("{name: n, finalizers: [a/b, a/b]}"),
	  "metadata.finalizers[1]: \"a/b\" stands there already" },
	{ META("{name: n, creationTimestamp: yesterday}"),
	  "metadata.creationTimestamp: \"yesterday\" is not a time; write it as "
	  "2026-11-15T20:52:06Z" },
	{ SIZED("0"), "spec.resources.requests.storage: must be more than 0" },
	{ SIZED("0Gi"), "spec.resources.requests.storage: must be more than 0" },
	{ SIZED("-1Gi"), "spec.resources.requests.storage: must not be negative" },
	{ SIZED("-5"), "spec.resources.requests.storage: must not be negative" },
	{ SIZED("9Ei"), "spec.resources.requests.storage: \"9Ei\" is too large; at most "
			"9223372036854775807 bytes "
			"can be asked for" },
	{ SIZED("1e300"), "spec.resources.requests.storage: is too large; at most "
			  "9223372036854775807 bytes can be asked for" },
	{ SIZED("much"),
	  "spec.resources.requests.storage: \"much\" is not a quantity; write a number of bytes or "
	  "one such as 10Gi" },
	{ SIZED("[1]"),
	  "spec.resources.requests.storage: must be a quantity such as 10Gi, not a list" },
	{ CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {}}}"),
	  "spec.resources.requests.storage: missing; say how much storage is needed, such as "
	  "10Gi" },
	{ CLAIM("{accessModes: [ReadWriteOnce]}"), "spec.resources: missing" },
	{ CLAIM("{resources: {requests: {storage: 1Gi}}}"), "spec.accessModes: missing" },
	{ CLAIM("{accessModes: [], resources: {requests: {storage: 1Gi}}}"),
	  "spec.accessModes: must not be empty" },
	{ CLAIM("{accessModes: [ReadWriteOnc], resources: {requests: {storage: 1Gi}}}"),
	  "spec.accessModes[0]: \"ReadWriteOnc\" is not supported (did you mean "
	  "\"ReadWriteOnce\"?); supported: "
	  "ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod" },
	{ CLAIM("{accessModes: [ReadWriteOnce], storage: 1Gi, resources: {}}"),
	  "spec.storage: unknown field" },
	{ VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]}"),
	  "spec: names no source of the volume, such as csi or nfs" },
	{ VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], nfs: {}, local: {}}"),
	  "spec: names both nfs and local; a volume has one source" },
	{ VOLUME("{capacity: {}, accessModes: [ReadWriteOnce], nfs: {}}"),
	  "spec.capacity.storage: missing; say how large the volume is" },
	{ "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v, namespace: d}\n"
	  "spec: {capacity: {storage: 1}, accessModes: [ReadWriteOnce], nfs: {}}",
	  "metadata.namespace: must not be set: a PersistentVolume is in no namespace" },
	{ CLASS("parameters: {}"), "provisioner: missing" },
	{ CLASS("provisioner: p\nparameters: {a: 1}"),
	  "parameters.a: must be a string, not a number" },
	{ ATTRIBUTES("parameters: {a: b}"), "driverName: missing" },
	{ ATTRIBUTES("driverName: d"), "parameters: missing" },
	{ ATTRIBUTES("driverName: d\nparameters: {}"), "parameters: must not be empty" },
	{ SECRET("data: {a: 'not base64!'}"),
	  "data: the value of \"a\" is not base64; write plain text below stringData instead" },
	{ "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {../a: b}",
	  "data: \"../a\" is not a key: use at most 253 letters, digits, \"-\", \"_\" and \".\"" },
};

static void test_bad(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_json json_t *o = from_yaml(bad[i].yaml);
		struct schema_problem p = { 0 };
		struct error err = ERROR_INIT;
		const struct kind *k;

		assert_int_equal(schema_identify(o, &k, &err), 0);
		if (schema_validate(k, o, NULL, true, &p) != -EINVAL)
			fail_msg("%s: was accepted", bad[i].yaml);
		assert_string_equal(p.error.message, bad[i].message);
		assert_true(str_has_prefix(bad[i].message, p.path));
		assert_int_equal(schema_validate(k, o, NULL, true, NULL), -EINVAL);
	}
}

static void test_identify(void **state)
{
	static const struct bad strange[] = {
		{ "[]", "not an object; it must begin with apiVersion, kind and metadata" },
		{ "{apiVersion: v1}", "kind: missing" },
		{ "{kind: [], apiVersion: v1}", "kind: must be a string" },
		{ "{kind: Secret}", "apiVersion: missing; use v1 for Secret" },
		{ "{kind: Secret, apiVersion: 1}",
		  "apiVersion: must be a string; use v1 for Secret" },
		{ "{kind: StorageNode, apiVersion: coreos.com/v2}",
		  "apiVersion: \"coreos.com/v2\" is not served for StorageNode; use "
		  "coreos.com/v1" },
		{ "{kind: StorageNod, apiVersion: coreos.com/v1}",
		  "kind: \"StorageNod\" is unknown (did you mean \"StorageNode\"?)" },
		{ "{kind: storagenode, apiVersion: coreos.com/v1}",
		  "kind: \"storagenode\" is unknown (did you mean \"StorageNode\"?)" },
		{ "{kind: Deployment, apiVersion: apps/v1}",
		  "kind: \"Deployment\" is unknown; `quartermaster explain` lists the kinds" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(strange); i++) {
		cleanup_json json_t *o = from_yaml(strange[i].yaml);
		struct error err = ERROR_INIT;
		const struct kind *k = NULL;

		assert_int_equal(schema_identify(o, &k, &err), -EINVAL);
		assert_string_equal(err.message, strange[i].message);
		assert_null(k);
	}
}

struct change {
	const char *before, *after, *message; /* NULL: allowed */
};

static void test_changes(void **state)
{
	static const char frozen[] = "cannot be changed; delete the object and create it anew";
	static const struct change changes[] = {
		{ NODE "{type: glusterfs}", NODE "{type: torus}", "spec.type: " },
		{ NODE "{type: glusterfs}", NODE "{type: glusterfs, devices: [/dev/a]}", NULL },
		{ META("{name: a}"), META("{name: b}"), "metadata.name: " },
		{ CLASS("provisioner: a"), CLASS("provisioner: b"), "provisioner: " },
		{ CLASS("provisioner: a\nparameters: {a: b}"),
		  CLASS("provisioner: a\nparameters: {a: c}"), "parameters: " },
		{ CLASS("provisioner: a\nparameters: {a: b}"), CLASS("provisioner: a"),
		  "parameters: " },
		{ CLASS("provisioner: a"), CLASS("provisioner: a\nallowVolumeExpansion: true"),
		  NULL },
		{ ATTRIBUTES("driverName: d\nparameters: {a: b}"),
		  ATTRIBUTES("driverName: d\nparameters: {a: c}"), "parameters: " },
		{ VOLUME("{capacity: {storage: 1}, accessModes: [ReadWriteOnce], csi: {driver: d, "
			 "volumeHandle: h}}"),
		  VOLUME("{capacity: {storage: 1}, accessModes: [ReadWriteOnce], csi: {driver: d, "
			 "volumeHandle: i}}"),
		  "spec.csi: " },
		{ SIZED("1Gi"), SIZED("2Gi"), NULL },
		{ SIZED("1Gi"), SIZED("1023Mi"),
		  "spec.resources.requests.storage: cannot shrink; a claim can only grow" },
		{ SIZED("9Gi") "\nstatus: {phase: Bound, capacity: {storage: 1Gi}}", SIZED("2Gi"),
		  NULL },
		{ SIZED("9Gi") "\nstatus: {phase: Bound, capacity: {storage: 1Gi}}", SIZED("1Gi"),
		  "spec.resources.requests.storage: cannot be less than what the volume has; a "
		  "volume never shrinks" },
		{ CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"),
		  CLAIM("{accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}"),
		  "spec.accessModes: cannot be changed once the claim exists; only its size can "
		  "grow" },
		{ CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"),
		  CLAIM("{accessModes: [ReadWriteOnce], volumeName: v, resources: {requests: "
			"{storage: 1Gi}}}"),
		  NULL },
		{ CLAIM("{accessModes: [ReadWriteOnce], volumeName: v, resources: {requests: "
			"{storage: 1Gi}}}"),
		  CLAIM("{accessModes: [ReadWriteOnce], volumeName: w, resources: {requests: "
			"{storage: 1Gi}}}"),
		  "spec.volumeName: cannot be changed once the claim exists; only its size can "
		  "grow" },
		{ CLAIM("{accessModes: [ReadWriteOnce], volumeName: v, resources: {requests: "
			"{storage: 1Gi}}}"),
		  CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"),
		  "spec.volumeName: cannot be changed once the claim exists; only its size can "
		  "grow" },
		{ SECRET("data: {a: YWJj}\nimmutable: true"),
		  SECRET("data: {a: YWJk}\nimmutable: true"),
		  "data: cannot be changed, since immutable is true; delete the object and create "
		  "it anew" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		cleanup_json json_t *before = from_yaml(changes[i].before);
		cleanup_json json_t *after = from_yaml(changes[i].after);
		const char *message = changes[i].message;
		struct schema_problem p = { 0 };
		const struct kind *k;

		assert_int_equal(schema_identify(before, &k, NULL), 0);
		schema_default(k, before);
		schema_default(k, after);
		if (!message) {
			assert_int_equal(schema_validate(k, after, before, true, &p), 0);
			continue;
		}
		cleanup_free char *expected =
			xasprintf("%s%s", message, str_has_suffix(message, ": ") ? frozen : "");

		assert_int_equal(schema_validate(k, after, before, true, &p), -EINVAL);
		assert_string_equal(p.error.message, expected);
	}
}

static void test_lenient(void **state)
{
	cleanup_json json_t *o = from_yaml(NODE "{type: glusterfs, devicess: []}");

	assert_int_equal(schema_validate(&KIND_STORAGENODE, o, NULL, false, NULL), 0);
	assert_int_equal(schema_validate(&KIND_STORAGENODE, NULL, NULL, false, NULL), -EINVAL);
	assert_int_equal(schema_validate(&KIND_STORAGEPOOL, o, NULL, false, NULL), -EINVAL);
}

static void test_long_path(void **state)
{
	cleanup_json json_t *o = from_yaml(NODE "{type: glusterfs, nodeSelector: {}}");
	struct schema_problem p = { 0 };
	char key[1000];

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(jset(o, json_integer(1), "spec", "nodeSelector", key), 0);
	assert_int_equal(schema_validate(&KIND_STORAGENODE, o, NULL, true, &p), -EINVAL);
	assert_int_equal(strlen(p.path), sizeof(p.path) - 1);
	assert_true(str_has_suffix(p.error.message, ": must be a string, not a number"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	 cmocka_unit_test(test_bad),
		cmocka_unit_test(test_identify), cmocka_unit_test(test_changes),
		cmocka_unit_test(test_lenient),	 cmocka_unit_test(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
