#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A claim that is deleted while it is in use, on one machine with real GlusterFS: it stays until whoever has it
# mounted lets go. And what is left where somebody tears it away all the same: ./quickstart down takes away what is ours.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
export QM_STATE_DIR=${QM_TEST_DIR:-$(mktemp -d /var/tmp/qm-in-use.XXXXXX)}/state QM_RUN_DIR QM_BIN
QM_RUN_DIR=/run/qm-in-use.$$
QM_BIN=${QM_STATE_DIR%/state}/bin
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
CALL=${CSI_CALL:-$build/tests/unit/csi/csi-call}
mnt=$QM_RUN_DIR.mnt
K=${QM_STATE_DIR%/state}/kubelet
cap='{"mount":{},"access_mode":{"mode":5}}'

cleanup() {
	[ -z "${reader:-}" ] || kill "$reader" 2> /dev/null
	[ -z "${apart:-}" ] || kill "$apart" 2> /dev/null
	umount "$mnt.five" "$mnt.own" 2> /dev/null
	umount -l "$K/six.target" "$K/six" 2> /dev/null
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$mnt" "$mnt".* "${QM_STATE_DIR%/state}" "$QM_RUN_DIR" "$QM_RUN_DIR.there"
}
trap cleanup EXIT

k() { HOME=$QM_RUN_DIR kubectl --kubeconfig "$QM_STATE_DIR/admin.kubeconfig" "$@"; }
claim() { sed "s/my-claim/$1/" docs/examples/claim.yaml | quartermaster apply -f -; }
bound() { [ "$(quartermaster get pvc "$1" -o json | jq -r .status.phase)" = Bound ]; }
there() { quartermaster get pvc "$1"; }
gone() { ! there "$1"; }
no_volume() { ! quartermaster get pv -o json | jq -e --arg c "$1" '.items[] | select(.spec.claimRef.name == $c)'; }
held() { quartermaster get pvc "$1" -o json | jq -es --arg m "$2" '.[0] | .metadata.deletionTimestamp and any(.status.conditions[]?; .type == "Held" and (.message | contains($m)))'; }
csi() { "$CALL" "$QM_RUN_DIR/node.sock" "Node.$1" "$(jq -cn "$2")"; }
# of this instance: others may run beside it
operator_pid() {
	local p
	for p in $(grep -lzxs "QM_RUN_DIR=$QM_RUN_DIR" /proc/[0-9]*/environ | cut -d/ -f3); do
		tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -q 'quartermaster operator' && echo "$p"
	done
}

test_operator() { [ -n "$(operator_pid)" ]; }

check "up --demo" quartermaster up --demo
check "a claim" claim one
check "it becomes Bound" wait_for 10 bound one
check "it is mounted" quartermaster mount one "$mnt"
check "it is written" bash -c "echo before > $mnt/file"
check "it is deleted: that waits, and says who has it" refuses "mounted on $mnt: quartermaster umount $mnt" quartermaster delete pvc one --timeout=3s
check "the claim says so, too" held one "$mnt"
check "and an Event" bash -c "quartermaster describe pvc one | grep -q ClaimInUse"
check "its user writes on" bash -c "echo after >> $mnt/file && grep -q before $mnt/file"
check "the operator is killed" kill -9 "$(operator_pid)"
check "mounted a second time it is not" refuses 'is being deleted' quartermaster mount one "$mnt.second"
check "mounting it again where it is mounted is fine" quartermaster mount one "$mnt"
check "the operator runs again" wait_for 20 test_operator
check "it is still there" there one
check "and can be written" bash -c "echo more >> $mnt/file && [ \$(wc -l < $mnt/file) = 3 ]"
check "it is unmounted" quartermaster umount "$mnt"
check "and goes" wait_for 20 gone one
check "with its volume" wait_for 20 no_volume one

echo "# unmounted by hand"
check "a claim" claim hand
check "it becomes Bound" wait_for 10 bound hand
check "it is mounted" quartermaster mount hand "$mnt"
check "unmounted" umount "$mnt"
check "and deleted: it is still connected" quartermaster delete pvc hand --wait=false
check "it says by whom" wait_for 10 held hand "quartermaster umount $mnt"
check "it is not mounted again" refuses 'is being deleted' quartermaster mount hand "$mnt"
check "it is let go" quartermaster umount "$mnt"
check "and goes" wait_for 20 gone hand

echo "# shown where no record tells of it"
check "a claim" claim shown
check "it becomes Bound" wait_for 10 bound shown
check "it is mounted" quartermaster mount shown "$mnt"
mkdir -p "$mnt.own"
check "and shown at another place" mount --bind "$mnt" "$mnt.own"
check "it is unmounted" quartermaster umount "$mnt"
check "and deleted" quartermaster delete pvc shown --wait=false
check "it says where it is" wait_for 10 held shown "umount $mnt.own"
check "it can be written" touch "$mnt.own/written"
check "it is unmounted there, too" umount "$mnt.own"
check "and goes" wait_for 20 gone shown
check "a claim" claim apart
check "it becomes Bound" wait_for 10 bound apart
unshare -m bash -c "quartermaster mount apart $mnt && touch $QM_RUN_DIR.there && exec sleep 10000" > /dev/null &
apart=$!
check "it is mounted in a mount namespace of its own" wait_for 20 [ -e "$QM_RUN_DIR.there" ]
check "and deleted" quartermaster delete pvc apart --wait=false
check "it says by which process" wait_for 10 held apart "process $apart"
check "it can be written" nsenter -m -t $apart touch "$mnt/written"
kill $apart
check "when that has ended it goes" wait_for 20 gone apart
check "what it left is taken away" quartermaster umount "$mnt"

echo "# published by the node service"
check "a claim" claim two
check "it becomes Bound" wait_for 10 bound two
pv=$(quartermaster get pv "$(quartermaster get pvc two -o json | jq -r .spec.volumeName)" -o json | jq -c .spec.csi)
id=$(jq .volumeHandle <<< "$pv")
mkdir -p "$K"
check "it is staged" csi NodeStageVolume "{volume_id: $id, staging_target_path: \"$K/stage\", volume_capability: $cap, volume_context: $(jq .volumeAttributes <<< "$pv")}"
check "and published" csi NodePublishVolume "{volume_id: $id, staging_target_path: \"$K/stage\", target_path: \"$K/target\", volume_capability: $cap}"
check "it is deleted" quartermaster delete pvc two --wait=false
check "it says who has it" wait_for 10 held two "staged at $K/stage"
check "it can be written" touch "$K/target/written"
check "it is unpublished" csi NodeUnpublishVolume "{volume_id: $id, target_path: \"$K/target\"}"
check "and unstaged" csi NodeUnstageVolume "{volume_id: $id, staging_target_path: \"$K/stage\"}"
check "it goes" wait_for 20 gone two
check "with its volume" wait_for 20 no_volume two

echo "# a file, whose mount by hostvol is detached: what is mounted from it goes on"
file_class() {
	quartermaster apply -f - <<- END
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: file}
		provisioner: csi.quartermaster.storage
		parameters: {deployment: glusterfs, namespace: default, kind: file}
	END
}
file_claim() { sed "s/my-claim/$1/; s/storageClassName: .*/storageClassName: file/; s/ReadWriteMany/ReadWriteOnce/" docs/examples/claim.yaml | quartermaster apply -f -; }
# by whichever of its places it is still mounted
detach() {
	local m some=1
	for m in "$QM_STATE_DIR"/hostvol/mnt/*/; do umount -l "$m" && some=0; done
	return $some
}
one='{"mount":{},"access_mode":{"mode":1}}'
check "a class" file_class
check "a claim" file_claim six
check "it becomes Bound" wait_for 10 bound six
pv=$(quartermaster get pv "$(quartermaster get pvc six -o json | jq -r .spec.volumeName)" -o json | jq -c .spec.csi)
id=$(jq .volumeHandle <<< "$pv")
if [ -e /dev/loop-control ]; then
	check "it is staged" csi NodeStageVolume "{volume_id: $id, staging_target_path: \"$K/six\", volume_capability: $one, volume_context: $(jq .volumeAttributes <<< "$pv")}"
	check "and published" csi NodePublishVolume "{volume_id: $id, staging_target_path: \"$K/six\", target_path: \"$K/six.target\", volume_capability: $one}"
	check "the mount that its file lies in is detached" detach
	check "it is deleted" quartermaster delete pvc six --wait=false
	check "it says who has it" wait_for 10 held six "staged at $K/six"
	check "it is there" there six
	check "and can be written, down to the pool" dd if=/dev/zero of="$K/six.target/written" bs=64k count=1 conv=fsync
	check "it is unpublished" csi NodeUnpublishVolume "{volume_id: $id, target_path: \"$K/six.target\"}"
	check "and unstaged" csi NodeUnstageVolume "{volume_id: $id, staging_target_path: \"$K/six\"}"
	check "it goes" wait_for 20 gone six
	check "with its volume" wait_for 20 no_volume six
else
	skip "a file volume whose mount is detached" "no loop devices here"
	quartermaster delete pvc six > /dev/null
fi

echo "# an orchestrator's, without a claim"
controller() { "$CALL" "$QM_RUN_DIR/csi.sock" "Controller.$1" "$(jq -cn "$2")"; }
made=$(controller CreateVolume "{name: \"seven\", capacity_range: {required_bytes: 10485760}, volume_capabilities: [$cap]}")
id=$(jq .volume.volume_id <<< "$made")
check "it is staged" csi NodeStageVolume "{volume_id: $id, staging_target_path: \"$K/seven\", volume_capability: $cap, volume_context: $(jq .volume.volume_context <<< "$made")}"
check "and published" csi NodePublishVolume "{volume_id: $id, staging_target_path: \"$K/seven\", target_path: \"$K/seven.target\", volume_capability: $cap}"
check "it is not removed meanwhile" refuses "FAILED_PRECONDITION.*staged at $K/seven" controller DeleteVolume "{volume_id: $id}"
check "and can be written" touch "$K/seven.target/written"
check "it is unpublished" csi NodeUnpublishVolume "{volume_id: $id, target_path: \"$K/seven.target\"}"
check "and unstaged" csi NodeUnstageVolume "{volume_id: $id, staging_target_path: \"$K/seven\"}"
check "it is removed" controller DeleteVolume "{volume_id: $id}"

echo "# torn away"
check "a claim" claim three
check "it becomes Bound" wait_for 10 bound three
check "it is mounted" quartermaster mount three "$mnt"
check "twice" quartermaster mount three "$mnt.twice"
place=$(quartermaster get pv "$(quartermaster get pvc three -o json | jq -r .spec.volumeName)" -o json | jq -r .spec.csi.volumeAttributes.name)
check "it is deleted" quartermaster delete pvc three --wait=false
check "its owner takes the finalizers away" k patch pvc three --type=merge -p '{"metadata":{"finalizers":null}}'
check "its volume goes" wait_for 20 no_volume three
check "the mount is stale" wait_for 20 bash -c "! ls $mnt"
# who looks for it by its name makes the kernel forget that: from now on it is "//deleted"
look() { stat "$QM_STATE_DIR"/hostvol/mnt/*/"$place"; grep " $mnt.twice " /proc/self/mountinfo | grep -q '//deleted '; }
check "it has no name any more" wait_for 10 look
check "it can be unmounted all the same" quartermaster umount "$mnt.twice"
check "a claim whose mount is busy, too" claim four
check "it becomes Bound" wait_for 10 bound four
check "it is mounted" quartermaster mount four "$mnt.four"
(cd "$mnt.four" && exec sleep 10000) &
reader=$!
check "one that its owner unmounted by hand, who has mounted something else there" claim five
check "it becomes Bound" wait_for 10 bound five
check "it is mounted" quartermaster mount five "$mnt.five"
mkdir -p "$mnt.own"
check "unmounted" umount "$mnt.five"
check "something else" mount -t tmpfs own "$mnt.own"
check "is mounted there, too" mount --bind "$mnt.own" "$mnt.five"
check "quickstart down" ./quickstart down
check "what is not ours stays" bash -c "mountpoint -q $mnt.own && mountpoint -q $mnt.five"
umount "$mnt.five" "$mnt.own"
check "no mount is left" bash -c "! grep -E 'qm-in-use' /proc/self/mountinfo"
check "no loop device is left" bash -c "! losetup -a | grep -F '$QM_STATE_DIR'"
check "no file is left" [ ! -e "$QM_STATE_DIR" -a ! -e "$QM_RUN_DIR" ]
kill "$reader"
rmdir "$mnt" "$mnt.twice" "$mnt.four" "$mnt.five" "$mnt.own"
plan
