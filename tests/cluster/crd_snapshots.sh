#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# crd_snapshots.sh [PROGRAM] - our definitions of the kinds of snapshot.storage.k8s.io on a real API server:
# accepted, in use, and left alone where they are another's. Prints TAP.
# timeout: 120
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$(readlink -f "${1:-$here/../../${QM_BUILD:-build}/src/cli/quartermaster}")
. "$here/../lib/tap.sh"
. "$here/apiserver.sh"
cp_begin "our definitions on a real API server"
k() { cp_kubectl "$@"; }
group=snapshot.storage.k8s.io
crds="volumesnapshots.$group volumesnapshotcontents.$group volumesnapshotclasses.$group"
register() { "$program" crds --register --kubeconfig "$cp_dir/admin.kubeconfig"; }

created() {
	local out
	out=$("$program" crds --snapshots | k create -f - 2>&1) || { echo "$out"; return 1; }
	! grep -i warning <<< "$out"
}
check 'the definitions are accepted, without a warning' created
if [ "$tap_failed" != 0 ]; then plan; exit 1; fi
# shellcheck disable=SC2086 # three names
check 'they are established' k wait --for=condition=Established --timeout=60s crd $crds
# shellcheck disable=SC2086
structural() { ! k get crd $crds -o jsonpath='{.items[*].status.conditions[*].type}' | grep NonStructural; }
check 'their schemas are structural' structural
check 'short names are known' wait_for 60 k get vs,vsc,vsclass -A

class() {
	k create -f - <<- END
		apiVersion: $group/v1
		kind: VolumeSnapshotClass
		metadata: {name: c}
		driver: csi.quartermaster.storage
		deletionPolicy: Delete
	END
}
check 'a class' class
snapshot() {
	k create -f - <<- END
		apiVersion: $group/v1
		kind: VolumeSnapshot
		metadata: {name: s}
		spec: {volumeSnapshotClassName: c, source: {persistentVolumeClaimName: data}}
	END
}
check 'a snapshot' snapshot
content() {
	k create -f - <<- END
		apiVersion: $group/v1
		kind: VolumeSnapshotContent
		metadata: {name: snapcontent-1}
		spec:
		  driver: csi.quartermaster.storage
		  deletionPolicy: Delete
		  volumeSnapshotClassName: c
		  sourceVolumeMode: Filesystem
		  source: {volumeHandle: v1.gold-1.d.pvc-1}
		  volumeSnapshotRef: {namespace: default, name: s, uid: 00000000-0000-4000-8000-000000000001}
	END
}
check 'a content' content
k patch vs s --subresource status --type merge -p '{"status":{"readyToUse":true,"restoreSize":"1Gi",
	"boundVolumeSnapshotContentName":"snapcontent-1","creationTime":"2026-01-01T00:00:00Z"}}' > /dev/null
k patch vsc snapcontent-1 --subresource status --type merge -p '{"status":{"readyToUse":true,"restoreSize":1073741824,
	"creationTime":1767225600000000000,"snapshotHandle":"v1.gold-1.s.snap-1"}}' > /dev/null
# row KIND NAME HEADER ROW
row() {
	local out
	out=$(k get "$1" "$2" | tr -s ' ')
	[ "$(sed -n 1p <<< "$out")" = "$3" ] && grep -Eq "^$4\$" <<< "$(sed -n 2p <<< "$out")" || { echo "$out"; return 1; }
}
check 'columns of a snapshot' row vs s \
	'NAME READYTOUSE SOURCEPVC SOURCESNAPSHOTCONTENT RESTORESIZE SNAPSHOTCLASS SNAPSHOTCONTENT CREATIONTIME AGE' \
	's true data 1Gi c snapcontent-1 [0-9a-z]+ [0-9a-z]+'
check 'columns of a content' row vsc snapcontent-1 \
	'NAME READYTOUSE RESTORESIZE DELETIONPOLICY DRIVER VOLUMESNAPSHOTCLASS VOLUMESNAPSHOT VOLUMESNAPSHOTNAMESPACE AGE' \
	'snapcontent-1 true 1073741824 Delete csi.quartermaster.storage c s default [0-9a-z]+'
check 'columns of a class' row vsclass c 'NAME DRIVER DELETIONPOLICY AGE' 'c csi.quartermaster.storage Delete [0-9a-z]+'

# with SOURCE: a snapshot of that
with() {
	k create -f - <<- END
		apiVersion: $group/v1
		kind: VolumeSnapshot
		metadata: {name: refused}
		spec: {source: $1}
	END
}
check 'two sources are refused' refuses 'exactly one of' with '{persistentVolumeClaimName: a, volumeSnapshotContentName: b}'
check 'none is refused' refuses 'exactly one of' with '{}'
change() { k patch vs s --type merge -p '{"spec":{"source":{"persistentVolumeClaimName":"other"}}}'; }
check 'the source does not change' refuses 'cannot be changed' change

# ---- definitions of another ----
theirs() {
	local name
	for name in $crds; do
		k label crd "$name" quartermaster.storage/schema-version- && k annotate crd "$name" example.com/theirs=yes || return
	done
}
check 'they are made those of another' theirs
versions() { k get crd $crds -o jsonpath='{.items[*].metadata.resourceVersion}'; }
before=$(versions)
check 'our kinds are registered all the same' register
check 'and theirs are as they were' [ "$(versions)" = "$before" ]
# shellcheck disable=SC2086
check 'they go' k delete crd $crds
check 'where there are none, they are registered' register
check 'and served' wait_for 60 k get vs,vsc,vsclass -A
plan
