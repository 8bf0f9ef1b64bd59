/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs.h"

#define F_FILES(h)                                                                                 \
	{                                                                                          \
		'f', "filename", "FILE", h                                                         \
	}
#define F_ALL_NAMESPACES                                                                           \
	{                                                                                          \
		'A', "all-namespaces", NULL, "Of all namespaces."                                  \
	}
#define F_SELECTOR                                                                                 \
	{                                                                                          \
		'l', "selector", "LABELS", "Only objects with these labels: a=b,c!=d,e."           \
	}
#define F_TIMEOUT(h)                                                                               \
	{                                                                                          \
		0, "timeout", "TIME", h                                                            \
	}
#define F_END                                                                                      \
	{                                                                                          \
		.name = NULL                                                                       \
	}

static const struct flag apply_flags[] = {
	F_FILES("File or directory of YAML or JSON, or - for standard input; may be repeated."),
	{ 0, "dry-run", NULL, "Check everything and say what would happen; change nothing." },
	F_END,
};

static const struct flag get_flags[] = {
	{ 'o', "output", "FORMAT", "table (default), wide, yaml, json or name." },
	{ 'w', "watch", NULL, "Then print changes as they happen, until interrupted." },
	F_ALL_NAMESPACES,
	F_SELECTOR,
	F_END,
};

static const struct flag delete_flags[] = {
	F_FILES("Delete what is declared there; may be repeated."),
	F_SELECTOR,
	{ 0, "wait", "BOOL", "Wait until the objects are gone (default true).",
	  .optional = "true" },
	F_TIMEOUT("Wait at most so long (default 5m)."),
	{ 0, "ignore-not-found", NULL, "It is fine if an object is not there." },
	F_END,
};

static const struct flag crds_flags[] = {
	{ 0, "snapshots", NULL,
	  "Those of snapshots instead, for a cluster that has none: usually they come with it." },
	{ 0, "register", NULL,
	  "Instead, do as the operator does: create or update them, and wait until they are "
	  "served." },
	{ 0, "kubeconfig", "FILE", "Where to register them (default: $KUBECONFIG)." },
	F_END,
};

static const struct flag explain_flags[] = {
	{ 'r', "recursive", NULL, "The names of all fields, as a tree." },
	{ 0, "markdown", NULL, "All kinds and fields as a page, as docs/resources.md has it." },
	F_END,
};

static const struct flag plan_flags[] = {
	F_FILES("As if these StorageNodes were applied; may be repeated."),
	{ 0, "deployment", "NAME", "The deployment to plan for, where there are several." },
	{ 0, "volume-type", "TYPE",
	  "As if pools were kept so: replicate:3, disperse:4:2, arbiter, none." },
	{ 'o', "output", "FORMAT", "text (default) or json." },
	F_END,
};

static const struct flag status_flags[] = {
	{ 'o', "output", "FORMAT", "text (default) or json." },
	{ 'w', "watch", NULL, "Show it again every two seconds, until interrupted." },
	F_ALL_NAMESPACES,
	F_END,
};

static const struct flag wait_flags[] = {
	{ 0, "for", "WHAT", "condition=TYPE[=STATUS], phase=PHASE, status=ONLINE or delete." },
	F_TIMEOUT("Wait at most so long (default 30s)."),
	F_END,
};

static const struct flag bundle_flags[] = {
	{ 'o', "output", "FILE", "Write it there (default quartermaster-support-TIME.tar.gz)." },
	F_END,
};

static const struct flag version_flags[] = {
	{ 'o', "output", "FORMAT", "text (default) or json." },
	F_END,
};

/* Of each protocol of clients/protocols.c. */
#define F_CLIENT(protocol)                                                                         \
	{ 0, protocol "-mount-container", "IMAGE",                                                 \
	  "The " protocol " client is a container of this OCI archive, or the host's (host)." }

static const struct flag up_flags[] = {
	{ 0, "demo", NULL, "Three storage nodes on this machine, with disks made of files." },
	F_FILES("StorageNodes of one's own, and claims; may be repeated."),
	{ 0, "volume-type", "TYPE",
	  "How pools keep data: replicate:3 (default), disperse:4:2, arbiter, none." },
	{ 0, "overcommit", "X", "Promise up to X times the capacity (default 1)." },
	{ 0, "reclaim", "WHAT",
	  "What becomes of a deleted claim's data: delete (default), retain, archive." },
	{ 0, "deployment", "NAME", "The store's name, and its class's (default glusterfs)." },
	F_CLIENT("glusterfs"),
	F_CLIENT("nfs"),
	F_CLIENT("smb"),
	F_CLIENT("quobyte"),
	F_CLIENT("iscsi"),
	F_TIMEOUT("Wait so long until it is ONLINE (default 2m)."),
	F_END,
};

static const struct flag down_flags[] = {
	{ 0, "delete-data", NULL,
	  "Also forget the store; the demonstration's disks go, one's own stay as they are." },
	{ 0, "force", NULL, "Unmount claims although programs use them." },
	F_END,
};

static const struct flag mount_flags[] = {
	F_TIMEOUT("Wait so long for the claim, and for the mount (default 60s)."),
	F_END,
};

static const struct flag umount_flags[] = {
	{ 0, "force", NULL, "Although it is in use; unwritten data may be lost." },
	F_END,
};

#define ANY_NUMBER 1000

const struct verb verbs[] = {
	{ .name = "up",
	  .summary = "Start a store on this machine, or repair one that runs",
	  .example = "quartermaster up --demo\nquartermaster up -f nodes.yaml",
	  .help = "Waits until the storage is ONLINE. Run again, it reports and repairs what is "
		  "there; without --demo\nand -f it starts what was set up before.",
	  .flags = up_flags,
	  .command = cmd_up },
	{ .name = "down",
	  .summary = "Stop the store of this machine",
	  .help = "Claims that are mounted here are unmounted first. Data and settings stay: "
		  "\"quartermaster up\" goes\non with them.",
	  .example = "quartermaster down\nquartermaster down --delete-data",
	  .flags = down_flags,
	  .command = cmd_down },
	{ .name = "status",
	  .summary =
		  "Show the store on one screen: nodes, devices, pools, healing, capacity, claims",
	  .example = "quartermaster status\nquartermaster status --watch\nquartermaster status -o "
		     "json",
	  .flags = status_flags,
	  .connects = true,
	  .command = cmd_status },
	{ .name = "apply",
	  .usage = "-f FILE…",
	  .summary = "Create or change what the files declare",
	  .help = "All files are checked before anything is sent: an error in one leaves "
		  "everything as it was.",
	  .example = "quartermaster apply -f claim.yaml\n"
		     "quartermaster apply -f nodes/ --dry-run\n"
		     "cat node.yaml | quartermaster apply -f -",
	  .flags = apply_flags,
	  .connects = true,
	  .command = cmd_apply },
	{ .name = "get",
	  .usage = "KIND [NAME…]",
	  .summary = "List objects",
	  .example = "quartermaster get storagestatus\n"
		     "quartermaster get pvc -A -o wide\n"
		     "quartermaster get storagenode node1 -o yaml\n"
		     "quartermaster get storagepools -w",
	  .flags = get_flags,
	  .connects = true,
	  .min_words = 1,
	  .max_words = ANY_NUMBER,
	  .command = cmd_get },
	{ .name = "describe",
	  .usage = "KIND [NAME…]",
	  .summary = "Show objects with their conditions and events",
	  .example =
		  "quartermaster describe storagenode node1\nquartermaster describe pvc my-claim",
	  .connects = true,
	  .min_words = 1,
	  .max_words = ANY_NUMBER,
	  .command = cmd_describe },
	{ .name = "delete",
	  .usage = "KIND NAME… | -f FILE…",
	  .summary = "Delete objects and wait until they are gone",
	  .help = "While it waits it says what holds an object: a storage node is emptied before "
		  "it goes.",
	  .example = "quartermaster delete pvc my-claim\n"
		     "quartermaster delete storagenode node3 --wait=false\n"
		     "quartermaster delete -f claim.yaml",
	  .flags = delete_flags,
	  .connects = true,
	  .max_words = ANY_NUMBER,
	  .command = cmd_delete },
	{ .name = "wait",
	  .usage = "KIND NAME --for=WHAT",
	  .summary = "Wait until something is true of an object",
	  .example = "quartermaster wait pvc my-claim --for=phase=Bound --timeout=60s\n"
		     "quartermaster wait storagestatus demo --for=condition=Online\n"
		     "quartermaster wait storagenode node3 --for=delete",
	  .flags = wait_flags,
	  .connects = true,
	  .min_words = 2,
	  .max_words = 2,
	  .command = cmd_wait },
	{ .name = "plan",
	  .summary = "Show what the operator would do, without doing it",
	  .example = "quartermaster plan\nquartermaster plan -f new-node.yaml",
	  .flags = plan_flags,
	  .connects = true,
	  .command = cmd_plan },
	{ .name = "explain",
	  .usage = "[KIND[.FIELD…]]",
	  .summary = "Describe a kind of object and its fields",
	  .example = "quartermaster explain storagenode\n"
		     "quartermaster explain storagenode.spec.glusterfs\n"
		     "quartermaster explain pvc --recursive",
	  .flags = explain_flags,
	  .max_words = 1,
	  .command = cmd_explain },
	{ .name = "crds",
	  .summary = "Print the CustomResourceDefinitions for a Kubernetes cluster",
	  .help = "The operator registers them by itself; this is for who wants to do so, or to "
		  "look, before.",
	  .example = "quartermaster crds | kubectl create -f -\n"
		     "quartermaster crds --register --kubeconfig ~/.kube/config",
	  .flags = crds_flags,
	  .command = cmd_crds },
	{ .name = "mount",
	  .usage = "CLAIM DIR",
	  .summary = "Mount the volume of a claim on this machine",
	  .help = "Waits until the claim is bound and its size is enforced, or says why that is "
		  "not. DIR is made where\nit is missing.",
	  .example = "quartermaster mount my-claim /mnt/data",
	  .flags = mount_flags,
	  .connects = true,
	  .min_words = 2,
	  .max_words = 2,
	  .command = cmd_mount },
	{ .name = "umount",
	  .usage = "DIR",
	  .summary = "Undo mount",
	  .example = "quartermaster umount /mnt/data",
	  .flags = umount_flags,
	  .min_words = 1,
	  .max_words = 1,
	  .command = cmd_umount },
	{ .name = "support-bundle",
	  .summary = "Collect objects, logs and versions in one file, without secrets",
	  .example = "quartermaster support-bundle -o bundle.tar.gz",
	  .flags = bundle_flags,
	  .connects = true,
	  .command = cmd_support_bundle },
	{ .name = "completion",
	  .usage = "bash|zsh|fish",
	  .summary = "Print a script that completes verbs, flags and kinds",
	  .example =
		  "source <(quartermaster completion bash)\n"
		  "quartermaster completion fish > ~/.config/fish/completions/quartermaster.fish",
	  .min_words = 1,
	  .max_words = 1,
	  .command = cmd_completion },
	{ .name = "version",
	  .summary = "Print the version",
	  .example = "quartermaster version",
	  .flags = version_flags,
	  .command = cmd_version },
	{ .name = "api", .summary = "Run the embedded API", .internal = true, .run = verb_api },
	{ .name = "operator",
	  .summary = "Run the control loops",
	  .internal = true,
	  .run = verb_operator },
	{ .name = "agent",
	  .summary = "Run the part of one storage node",
	  .internal = true,
	  .run = verb_agent },
	{ .name = "node",
	  .summary = "Run the CSI node service",
	  .internal = true,
	  .run = verb_node },
	{ .name = "pod-events",
	  .summary = "Tell the cluster of the clients of a machine",
	  .internal = true,
	  .run = verb_pod_events },
	{ .name = "storage",
	  .summary = "Run glusterd and its bricks in a storage pod",
	  .internal = true,
	  .run = verb_storage },
	{ .name = "supervise",
	  .summary = "Keep the programs of this machine's store running",
	  .internal = true,
	  .run = verb_supervise },
	{ .name = NULL },
};

const char *const exit_code_help =
	"Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not found; 4 refused or in conflict;\n"
	"            5 the API cannot be reached; 6 timed out.\n";
