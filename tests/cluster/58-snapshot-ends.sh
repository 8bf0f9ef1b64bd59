#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How snapshots end on a real cluster: VolumeSnapshot, VolumeSnapshotContent, class, claim and namespace are deleted
# in every order, of snapshots that were taken here and of such that were there before, and nothing is left. All
# orders at once, each in a namespace of its own. Prints TAP.
# timeout: 900
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh

own_cleanup() {
	kubectl delete namespace -l ends=snapshots --timeout=300s
	kubectl delete volumesnapshotclass -l ends=snapshots
	kubectl delete volumesnapshotclass keep --ignore-not-found
}

check "images are built and imported" images
check "a deployment is installed, and ONLINE" install
namespace apps
check "snapshots are known" wait_for 60 kubectl get crd volumesnapshots.snapshot.storage.k8s.io

# ---- one that is there before: its objects are gone, its data stays

source_claim='{apiVersion: "v1", kind: "PersistentVolumeClaim", spec: {storageClassName: "glusterfs", accessModes: ["ReadWriteMany"],
	resources: {requests: {storage: "4Mi"}}}}'
first() {
	jq -n "{apiVersion: \"v1\", kind: \"List\", items: [$source_claim + {metadata: {name: \"first\"}},
		{apiVersion: \"snapshot.storage.k8s.io/v1\", kind: \"VolumeSnapshotClass\", metadata: {name: \"keep\"}, driver: \"csi.quartermaster.storage\", deletionPolicy: \"Retain\"},
		{apiVersion: \"snapshot.storage.k8s.io/v1\", kind: \"VolumeSnapshot\", metadata: {name: \"first\"},
			spec: {volumeSnapshotClassName: \"keep\", source: {persistentVolumeClaimName: \"first\"}}}]}" | k apply -f - &&
		k wait volumesnapshot/first --for=jsonpath='{.status.readyToUse}'=true --timeout=90s
}
check "a snapshot whose objects go" first
content=$(k get volumesnapshot first -o 'jsonpath={.status.boundVolumeSnapshotContentName}')
handle=$(kubectl get volumesnapshotcontent "$content" -o 'jsonpath={.status.snapshotHandle}')
ends_alone() { k delete volumesnapshot,pvc first --timeout=90s && kubectl delete volumesnapshotcontent "$content" --timeout=90s; }
check "and whose data stays" ends_alone

# ---- 120 orders, each with one of both; the policy of an order is that of its parity, with QM_LONG both

orders() {
	jq -nc 'def orders: if length == 0 then [] else . as $all | range(length) as $i | [$all[$i]] + ($all[:$i] + $all[$i + 1:] | orders) end;
		["VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshotClass", "PersistentVolumeClaim", "Namespace"] | orders'
}
# objects POLICY-OFFSET: of all orders
objects() {
	orders | jq -s --argjson offset "$1" --arg handle "$handle" '
		def snap($kind): {apiVersion: "snapshot.storage.k8s.io/v1", kind: $kind};
		[to_entries[] | "ends-\(.key)" as $ns | (if (.key + $offset) % 2 == 0 then "Delete" else "Retain" end) as $policy |
		{apiVersion: "v1", kind: "Namespace", metadata: {name: $ns, labels: {ends: "snapshots"}}},
		(snap("VolumeSnapshotClass") + {metadata: {name: $ns, labels: {ends: "snapshots"}}, driver: "csi.quartermaster.storage", deletionPolicy: $policy}),
		('"$source_claim"' + {metadata: {name: "a", namespace: $ns}}),
		(snap("VolumeSnapshotContent") + {metadata: {name: $ns, labels: {ends: "snapshots"}}, spec: {driver: "csi.quartermaster.storage", deletionPolicy: $policy,
			source: {snapshotHandle: $handle}, volumeSnapshotRef: {name: "given", namespace: $ns}}}),
		(snap("VolumeSnapshot") + {metadata: {name: "given", namespace: $ns}, spec: {source: {volumeSnapshotContentName: $ns}}}),
		(snap("VolumeSnapshot") + {metadata: {name: "taken", namespace: $ns}, spec: {volumeSnapshotClassName: $ns, source: {persistentVolumeClaimName: "a"}}})]
		| {apiVersion: "v1", kind: "List", items: .}'
}
snapshots() { kubectl get volumesnapshots -A -o json | jq -e --argjson n "$1" '[.items[] | select(.metadata.namespace | startswith("ends-")) | select(.status.readyToUse)] | length == $n'; }
# which content was made for which namespace, before all that tells it is gone
contents() { kubectl get volumesnapshotcontents -o json | jq -c '[.items[] | select(.spec.volumeSnapshotRef.namespace | startswith("ends-")) | {ns: .spec.volumeSnapshotRef.namespace, name: .metadata.name}]'; }
# step I CONTENTS: what each order deletes as its I-th
step() {
	orders | jq -s --argjson i "$1" --argjson contents "$2" '
		[to_entries[] | "ends-\(.key)" as $ns | .value[$i] as $kind |
		if $kind == "VolumeSnapshotContent" then $contents[] | select(.ns == $ns) | {apiVersion: "snapshot.storage.k8s.io/v1", kind: $kind, metadata: {name: .name}}
		elif $kind == "VolumeSnapshot" then ("given", "taken") | {apiVersion: "snapshot.storage.k8s.io/v1", kind: $kind, metadata: {name: ., namespace: $ns}}
		elif $kind == "VolumeSnapshotClass" then {apiVersion: "snapshot.storage.k8s.io/v1", kind: $kind, metadata: {name: $ns}}
		elif $kind == "PersistentVolumeClaim" then {apiVersion: "v1", kind: $kind, metadata: {name: "a", namespace: $ns}}
		else {apiVersion: "v1", kind: $kind, metadata: {name: $ns}} end] | {apiVersion: "v1", kind: "List", items: .}' |
		kubectl delete --wait=false --ignore-not-found -f -
}
left() { { kubectl get namespaces,volumesnapshotclasses -l ends=snapshots -o name; kubectl get volumesnapshots -A -o name; kubectl get volumesnapshotcontents,pv -o name; } 2>&1; }
nothing_left() { [ -z "$(left)" ] || { left | head -n 20; return 1; }; }

replaced() { q delete pod -l quartermaster.storage/role=operator --wait=false; }
for offset in 0 ${QM_LONG:+1}; do
	objects "$offset" > "$tap_out.objects"
	check "120 orders, each with a snapshot that is taken and one that was there" kubectl apply -f "$tap_out.objects"
	check "all are ready" wait_for 200 snapshots 240
	all=$(contents)
	for i in 0 1 2 3 4; do
		check "what each order deletes as its number $((i + 1))" step "$i" "$all"
		# restarts in between: the operator begins anew with what the API says
		[ $((i % 2)) = 0 ] || check "the operator is replaced" replaced
	done
	check "nothing is left" wait_for 150 nothing_left
done
rm -f "$tap_out.objects"
keep
plan
