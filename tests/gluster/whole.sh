#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whole volumes on real GlusterFS, on one machine: a claim becomes a Gluster volume of its own beside the pool, is mounted,
# written, grown, snapshotted, restored as a whole volume and as a directory, and deleted; the operator is killed on the way. In the
# end nothing of it is on the bricks, and the pool serves as before. Needs root.
# timeout: 600
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
dir=${QM_TEST_DIR:-$(mktemp -d /var/tmp/qm-whole.XXXXXX)}
export QM_STATE_DIR=$dir/state QM_RUN_DIR=/run/qm-whole.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
mnt=$QM_RUN_DIR.mnt
call=$PWD/$build/tests/unit/csi/csi-call

cleanup() {
	for m in "$mnt"/*; do [ -d "$m" ] && quartermaster umount "$m" > /dev/null 2>&1; done
	umount -l "$dir/target" 2> /dev/null
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf --one-file-system "$dir" "$QM_RUN_DIR"
	rmdir "$mnt"/* "$mnt" 2> /dev/null
}
trap cleanup EXIT

field() { quartermaster get "$1" "$2" -o json | jq -r "$3"; }
is() { [ "$(field "$1" "$2" "$3")" = "$4" ] || { field "$1" "$2" .; return 1; }; }
gone() { ! quartermaster get "$1" "$2" > /dev/null 2>&1; }
classes() {
	quartermaster apply -f - <<- END
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: whole}
		provisioner: csi.quartermaster.storage
		allowVolumeExpansion: true
		parameters: {deployment: glusterfs, namespace: default, kind: whole}
		---
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshotClass
		metadata: {name: pool, annotations: {snapshot.storage.kubernetes.io/is-default-class: "true"}}
		driver: csi.quartermaster.storage
		deletionPolicy: Delete
	END
}
# claim NAME CLASS SIZE [dataSource]
claim() {
	quartermaster apply -f - <<- END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1}
		spec:
		  storageClassName: $2
		  accessModes: [ReadWriteMany]
		  resources: {requests: {storage: $3}}
		  ${4:+dataSource: $4}
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
from_snapshot="{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}"
bound() { is pvc "$1" .status.phase Bound; }
ready() { is volumesnapshot "$1" .status.readyToUse true; }
volume() { field pvc "$1" .spec.volumeName; }
capacity() { is pvc "$1" .status.capacity.storage "$2"; }
pools() { [ "$(quartermaster get sp -o json | jq '.items | length')" = "$1" ] || { quartermaster get sp; return 1; }; }
sum() { (cd "$1" && find . -mindepth 1 -printf '%P %y %m %U:%G %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
same() { diff <(sum "$1") "$dir/sum"; }
# the size that a mount shows, in MiB
size() { df -B1M --output=size "$1" | tail -n 1; }
has_size() { local s; s=$(size "$1"); echo "$s MiB"; [ "$s" -ge $(($2 * 97 / 100)) ] && [ "$s" -le "$2" ]; }
fill() {
	mkdir -p "$mnt/w/a/b" && ln -s ../file "$mnt/w/a/link" && chmod 0750 "$mnt/w/a" && head -c 3000000 /dev/urandom > "$mnt/w/file" &&
		chown 4711:42 "$mnt/w/file" && ln "$mnt/w/file" "$mnt/w/a/hard" && seq 40 | (cd "$mnt/w/a/b" && xargs touch)
}
# the operator of this instance alone: its environment names RUN
operator() {
	local p
	grep -lzxs "QM_RUN_DIR=$QM_RUN_DIR" /proc/[0-9]*/environ 2> /dev/null | while IFS=/ read -r _ _ p _; do
		tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -Eq '^([^ ]*/)?quartermaster operator' && echo "$p"
	done
}
kill_operator() { local p; p=$(operator); [ -n "$p" ] && kill -9 $p; }
# on_nodes COMMAND…: in the box of each node that has a brick of the pool, with its path as $brick
on_nodes() {
	local node brick
	while read -r node brick; do
		nsenter --mount="$QM_RUN_DIR/boxes/default-$node.mnt" env brick="$brick" "$@" || return 1
	done < <(quartermaster get sp "$pool" -o json | jq -r '.spec.bricks[] | "\(.node) \(.path)"')
}
# what lies beside the pool's bricks: a directory for each whole volume
beside() { on_nodes sh -c 'ls -A "${brick%/*}" | grep "^\.quartermaster-" || :' | sort -u | wc -l; }
beside_are() { [ "$(beside)" = "$1" ] || { beside; return 1; }; }
writes_full() { ! head -c $(($1 << 20)) /dev/zero > "$mnt/w/much" && [ "$(stat -c %s "$mnt/w/much")" -lt $(($2 << 20)) ]; }

mkdir -p "$mnt"/{w,restored,dir,d}
check "up --demo" quartermaster up --demo
check "classes" classes
own=$(quartermaster get sp -o json | jq '.items | length')
enforced=$(quartermaster get sn -o json | jq '[.items[].status.agent.quota.enforced == true] | all')
started=$SECONDS
check "a claim of a whole volume" claim w whole 200Mi
check "and one of a directory beside it" claim d glusterfs 100Mi
check "it becomes Bound" wait_for 20 bound w
echo "# made in $((SECONDS - started)) s"
w=$(volume w)
pool=$(field sp "$w" .spec.parent)
check "it is a StoragePool of its own" is sp "$w" '"\(.spec.sizeBytes) \(.status.phase) \(.spec.bricks | length)"' "209715200 Online 3"
check "and a Gluster volume of that name" is pv "$w" '.spec.csi.volumeAttributes | "\(.export | split("/")[1]) \(.name)"' "$w null"
check "no other pool was made" pools $((own + 1))
check "its bricks lie beside the pool's" beside_are 3
check "it is mounted" quartermaster mount w "$mnt/w"
check "and filled" fill
check "what of it is promised is what it has" bash -c "quartermaster get ss glusterfs -o json | jq -e '.status.promisedBytes == $(((200 + 100 + 100) << 20))' || quartermaster get ss glusterfs -o yaml"
sum "$mnt/w" > "$dir/sum"

if [ "$enforced" = true ]; then
	check "it shows its size" wait_for 10 has_size "$mnt/w" 200
	check "which holds" writes_full 300 201
	rm -f "$mnt/w/much"
else
	skip "it shows its size, which holds" "this kernel enforces no project quota: tests/guest/40-claim-quota.sh has it"
fi
check "it grows" claim w whole 300Mi
check "and is larger" wait_for 20 capacity w 300Mi
check "the StoragePool too" is sp "$w" .spec.sizeBytes 314572800
[ "$enforced" != true ] || check "which is seen at once" wait_for 10 has_size "$mnt/w" 300

check "a snapshot" snapshot s w
check "the operator is killed" kill_operator
check "it is ready all the same" wait_for 30 ready s
check "a whole volume of it" claim restored whole 300Mi "$from_snapshot"
check "the operator is killed in between" bash -c "sleep 1; $(declare -f operator kill_operator); kill_operator"
check "and a directory of it" claim dir glusterfs 300Mi "$from_snapshot"
for c in restored dir; do
	check "$c becomes Bound" wait_for 30 bound $c
	check "$c is mounted" quartermaster mount $c "$mnt/$c"
	check "$c has all that was in it" same "$mnt/$c"
done

# the node service, as an orchestrator calls it
node() { "$call" "$QM_RUN_DIR/node.sock" "Node.$1" "$2"; }
cap='{"mount":{},"access_mode":{"mode":5}}'
id=$(field pv "$w" .spec.csi.volumeHandle)
context=$(field pv "$w" '.spec.csi.volumeAttributes | tojson')
paths="\"volume_id\":\"$id\",\"staging_target_path\":\"$dir/staging\""
mkdir -p "$dir/staging"
check "it is staged" node NodeStageVolume "{$paths,\"volume_capability\":$cap,\"volume_context\":$context}"
check "published for reading only" node NodePublishVolume "{$paths,\"target_path\":\"$dir/target\",\"volume_capability\":$cap,\"volume_context\":$context,\"readonly\":true}"
check "with what is in it" same "$dir/target"
check "nobody writes there" refuses 'Read-only' touch "$dir/target/x"
check "its usage is told" bash -c "'$call' '$QM_RUN_DIR/node.sock' Node.NodeGetVolumeStats '{\"volume_id\":\"$id\",\"volume_path\":\"$dir/target\"}' | jq -e '.usage | length == 2'"
check "it is unpublished" node NodeUnpublishVolume "{\"volume_id\":\"$id\",\"target_path\":\"$dir/target\"}"
check "and unstaged" node NodeUnstageVolume "{$paths}"

for c in w restored dir; do check "$c is unmounted" quartermaster umount "$mnt/$c"; done
started=$SECONDS
check "they are deleted" quartermaster delete pvc w restored dir
check "and the snapshot" quartermaster delete volumesnapshot s
check "the operator is killed once more" kill_operator
check "the Gluster volumes are gone" wait_for 40 pools "$own"
echo "# removed in $((SECONDS - started)) s"
check "the PersistentVolume too" wait_for 10 gone pv "$w"
check "and their directories on the bricks" wait_for 20 beside_are 0

check "a claim that is deleted at once" claim short whole 100Mi
sleep "0.$((RANDOM % 10))"
check "is deleted" quartermaster delete pvc short
check "and leaves nothing" wait_for 40 pools "$own"
check "no directory either" wait_for 20 beside_are 0
check "the pool serves on" bash -c "quartermaster mount d '$mnt/d' && echo x > '$mnt/d/x' && quartermaster umount '$mnt/d'"
check "nothing is promised but what is there" wait_for 10 bash -c "quartermaster get ss glusterfs -o json | jq -e '.status.promisedBytes == $(((100 + 100) << 20))'"
check "down" quartermaster down --delete-data --force
plan
