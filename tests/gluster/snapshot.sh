#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Snapshots and clones on real GlusterFS, on one machine: data goes into a claim, a snapshot is taken, a
# claim made from it, another cloned; what is in them is compared; in the end nothing of it is in the pool.
# The operator is killed while copies are under way.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
export QM_STATE_DIR=${QM_TEST_DIR:-$(mktemp -d /var/tmp/qm-snapshot.XXXXXX)}/state QM_RUN_DIR
QM_RUN_DIR=/run/qm-snapshot.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
mnt=$QM_RUN_DIR.mnt

cleanup() {
	for m in "$mnt"/*; do [ -d "$m" ] && quartermaster umount "$m" > /dev/null 2>&1; done
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "${QM_STATE_DIR%/state}" "$QM_RUN_DIR"
	rmdir "$mnt"/* "$mnt" 2> /dev/null
}
trap cleanup EXIT

field() { quartermaster get "$1" "$2" -o json | jq -r "$3"; }
is() { [ "$(field "$1" "$2" "$3")" = "$4" ] || { field "$1" "$2" .; return 1; }; }
gone() { ! quartermaster get "$1" "$2" > /dev/null 2>&1; }

# claim NAME SIZE [dataSource]
claim() {
	quartermaster apply -f - <<- END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1}
		spec:
		  storageClassName: glusterfs
		  accessModes: [ReadWriteMany]
		  resources: {requests: {storage: $2}}
		  ${3:+dataSource: $3}
	END
}
snapshot_class() {
	quartermaster apply -f - <<- END
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshotClass
		metadata: {name: pool, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}
		driver: csi.quartermaster.storage
		deletionPolicy: Delete
	END
}
snapshot() {
	quartermaster apply -f - <<- END
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshot
		metadata: {name: $1}
		spec: {source: {persistentVolumeClaimName: $2}}
	END
}
from_snapshot() { echo "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: $1}"; }
from_claim() { echo "{kind: PersistentVolumeClaim, name: $1}"; }

fill() {
	local i
	mkdir -p "$mnt/data/a/b" && ln -s ../file "$mnt/data/a/link" && chmod 0750 "$mnt/data/a" &&
		head -c 3000000 /dev/urandom > "$mnt/data/file" && chown 4711:42 "$mnt/data/file" || return 1
	for i in $(seq 40); do echo "$i" > "$mnt/data/a/b/$i" || return 1; done
}
# names, modes, owners and contents below a directory
sum() { (cd "$1" && find . -mindepth 1 -printf '%P %y %m %U:%G %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
same() { diff <(sum "$1") "$2"; }
# the operator of this instance alone: its environment names RUN
operator() {
	local p
	grep -lzxs "QM_RUN_DIR=$QM_RUN_DIR" /proc/[0-9]*/environ 2> /dev/null | while IFS=/ read -r _ _ p _; do
		tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -Eq '^([^ ]*/)?quartermaster operator' && echo "$p"
	done
}
kill_operator() { kill -9 "$(operator)"; }
ready() { is volumesnapshot "$1" .status.readyToUse true; }
bound() { is pvc "$1" .status.phase Bound; }
# what lies in the pool: files and directories of volumes and snapshots, and the info files of them
in_pool() {
	local root export
	export=$(jq -r .spec.csi.volumeAttributes.export "$QM_RUN_DIR/pv.json")
	root=$(printf '{"driverVolumeType":"GLUSTERFS","export":"%s","volumeId":"root"}' "$export" |
		hostvol --state-dir "$QM_STATE_DIR/look" --run-dir "$QM_RUN_DIR/look" connect -) || return 1
	(cd "$root" && find . \( -name 'pvc-*' -o -name 'snap-*' \))
	hostvol --state-dir "$QM_STATE_DIR/look" --run-dir "$QM_RUN_DIR/look" disconnect root > /dev/null
}
# the demonstration's own claim stays
nothing_in_pool() { local n; n=$(in_pool | grep -v "$demo"); [ -z "$n" ] || { echo "$n"; return 1; }; }

mkdir -p "$mnt/data" "$mnt/restored" "$mnt/cloned"
check "up --demo" quartermaster up --demo
demo=$(field pvc demo .spec.volumeName)
check "a class of snapshots" snapshot_class
check "a claim" claim data 100Mi
check "it becomes Bound" wait_for 15 bound data
quartermaster get pv "$(field pvc data .spec.volumeName)" -o json > "$QM_RUN_DIR/pv.json"
check "it is mounted" quartermaster mount data "$mnt/data"
check "it is filled" fill
sum "$mnt/data" > "$QM_RUN_DIR/sum"

check "a snapshot of it" snapshot s data
check "the operator is killed" kill_operator
check "it is ready all the same" wait_for 30 ready s
check "and has its size" is volumesnapshot s .status.restoreSize 100Mi
check "and stands in a table" bash -c 'quartermaster get volumesnapshot | grep -E "^s +true +data"'
rm -r "$mnt/data/a" && echo changed > "$mnt/data/file"
check "a claim made from it" claim restored 150Mi "$(from_snapshot s)"
check "the operator is killed again" kill_operator
check "it becomes Bound all the same" wait_for 30 bound restored
check "it is mounted" quartermaster mount restored "$mnt/restored"
check "all is in it as it was" same "$mnt/restored" "$QM_RUN_DIR/sum"
check "a clone of that" claim cloned 150Mi "$(from_claim restored)"
check "becomes Bound" wait_for 30 bound cloned
check "it is mounted" quartermaster mount cloned "$mnt/cloned"
check "all is in it too" same "$mnt/cloned" "$QM_RUN_DIR/sum"
echo other > "$mnt/cloned/file"
check "what is written to it is in it alone" same "$mnt/restored" "$QM_RUN_DIR/sum"

for m in data restored cloned; do check "umount of $m" quartermaster umount "$mnt/$m"; done
check "the claim of the snapshot goes" quartermaster delete pvc data
check "the snapshot stays" ready s
check "the snapshot goes" quartermaster delete volumesnapshot s
check "and is gone" wait_for 15 gone volumesnapshot s
check "no content is left" bash -c '[ "$(quartermaster get volumesnapshotcontent -o json | jq ".items | length")" = 0 ]'
check "the others go" quartermaster delete pvc restored cloned
check "nothing of them is in the pool" wait_for 20 nothing_in_pool
check "down, with the data" quartermaster down --delete-data
plan
