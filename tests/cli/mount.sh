#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quartermaster mount and umount on the embedded API: claims, quota reports and volumes (LOCAL
# directories) are written by hand. Needs root and kubectl. Prints TAP. QUARTERMASTER names the program.
set -u
here=$(dirname "$(realpath "$0")")
. "$here/../lib/tap.sh"
QM=$(realpath "${QUARTERMASTER:-$here/../../build/src/cli/quartermaster}")
if [ "$(id -u)" != 0 ] || ! command -v kubectl >/dev/null; then
	echo "1..0 # SKIP needs root and kubectl"
	exit 0
fi
dir=$(mktemp -d)
api=
export QM_STATE_DIR=$dir/state QM_RUN_DIR=$dir/run HOME=$dir
mkdir -p "$dir"/{state,run,volume,other}
cleanup() {
	trap - EXIT
	for m in $(awk -v d="$dir/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | tac); do umount -l "$m"; done
	[ -z "$api" ] || { kill "$api" && wait "$api"; } 2>/dev/null
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

k() { kubectl --kubeconfig "$dir/state/admin.kubeconfig" "$@"; }
qm() { timeout 60 "$QM" "$@"; }
is_mounted() { grep -q " $1 " /proc/self/mountinfo; }
not_mounted() { ! is_mounted "$1"; }
once() { [ "$(grep -c " $1 " /proc/self/mountinfo)" = 1 ]; }
records() { ls "$dir/state/hostvol/attachments" 2>/dev/null | wc -l; }
status() { k patch "$1" "$2" --subresource=status --type=merge -p "$3"; } # KIND NAME JSON

volume() { # NAME DIRECTORY [LABELS]
	k apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: pv-$1, labels: {${3:-}}}
		spec:
		  capacity: {storage: 1Gi}
		  accessModes: [ReadWriteMany]
		  csi:
		    driver: csi.quartermaster.storage
		    volumeHandle: v1.p.d.pv-$1
		    volumeAttributes: {driverVolumeType: LOCAL, devicePath: $2, volumeId: pv-$1}
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: default}
		spec:
		  accessModes: [ReadWriteMany]
		  resources: {requests: {storage: 1Gi}}
		  volumeName: pv-$1
	END
}

"$QM" api >"$dir/api.log" 2>&1 &
api=$!
check "the API" wait_for 20 k get namespaces
check "a claim and a volume" volume data "$dir/volume"

check "a claim that is not there" refuses 'no claim nosuch in namespace default' qm mount nosuch "$dir/mnt"
check "a claim that does not get bound" refuses 'not bound in time.*describe pvc data' qm mount data "$dir/mnt" --timeout=1s
check "nothing was made" test ! -e "$dir/mnt"

(sleep 1; status pvc data '{"status":{"phase":"Bound"}}' >"$dir/patch.log" 2>&1) &
check "waits until it is bound, makes the directory" qm mount data "$dir/new/mnt"
check "is mounted" is_mounted "$dir/new/mnt"
echo hello >"$dir/volume/file"
check "shows the volume" grep -q hello "$dir/new/mnt/file"
check "mounting again is fine" qm mount data "$dir/new/mnt"
check "and mounts nothing twice" once "$dir/new/mnt"
check "also on a second directory" qm mount data "$dir/second"
check "two records" test "$(records)" = 2
check "umount the second" qm umount "$dir/second"
check "the first stays" grep -q hello "$dir/new/mnt/file"
(cd "$dir/new/mnt" && refuses 'is in use.*fuser' qm umount "$dir/new/mnt") >"$dir/out" 2>&1
check "in use: refused, with who to ask" test $? = 0
check "and still mounted" is_mounted "$dir/new/mnt"
check "umount, with a slash at the end" qm umount "$dir/new/mnt/"
check "is unmounted" not_mounted "$dir/new/mnt"
check "umount again is fine" qm umount "$dir/new/mnt"
check "umount of what does not exist too" qm umount "$dir/no/such"
check "which makes nothing" test ! -e "$dir/no"
check "no record is left" test "$(records)" = 0

volume two "$dir/other" >"$dir/out" && status pvc two '{"status":{"phase":"Bound"}}' >"$dir/out"
check "mount one" qm mount data "$dir/mnt"
check "another volume on the same directory is refused" refuses 'pv-data is mounted on' qm mount two "$dir/mnt"
check "umount it" qm umount "$dir/mnt"
mount -t tmpfs tmpfs "$dir/mnt"
check "a mount point of others is refused" refuses 'is a mount point already' qm mount data "$dir/mnt"
check "and not unmounted" refuses 'was not mounted by quartermaster' qm umount "$dir/mnt"
umount "$dir/mnt"
ln -s "$dir/second" "$dir/link"
check "a symbolic link is refused" refuses 'symbolic link' qm mount data "$dir/link"
check "no record is left" test "$(records)" = 0

# killed between its steps: a record without its mount, of this volume and of another
crash() { qm mount "$1" "$dir/mnt" && umount "$dir/mnt"; }
check "a mount that died before its end" crash data
check "the same again" qm mount data "$dir/mnt"
check "is mounted" once "$dir/mnt"
umount "$dir/mnt"
check "another volume takes the place" qm mount two "$dir/mnt"
check "and only that is recorded" test "$(records)" = 1
check "--force although in use" bash -c "cd '$dir/mnt' && '$QM' umount '$dir/mnt' --force"
check "is unmounted" not_mounted "$dir/mnt"

# quota
pool() {
	k apply -f - <<-END
		apiVersion: coreos.com/v1
		kind: StorageNode
		metadata: {name: n1, namespace: default}
		spec: {type: glusterfs, storageNetwork: {ips: [192.0.2.1]}, devices: [/dev/none], glusterfs: {cluster: c}}
		---
		apiVersion: coreos.com/v1
		kind: StoragePool
		metadata: {name: store-1, namespace: default, labels: {quartermaster.storage/deployment: store}}
		spec:
		  type: glusterfs
		  deployment: store
		  cluster: c
		  volumeType: none
		  epoch: 1
		  bricks: [{id: b1, node: n1, address: 192.0.2.1, device: /dev/none, path: /b, zone: 1}]
	END
}
check "a pool" pool
volume three "$dir/volume" "quartermaster.storage/deployment: store, quartermaster.storage/pool: store-1" >"$dir/out"
status pvc three '{"status":{"phase":"Bound"}}' >"$dir/out"
quota() { status storagenode n1 "{\"status\":{\"agent\":{\"quota\":$1}}}"; }
check "quota is not enforced there" quota '{"enforced":false,"reason":"Kernel","message":"this kernel has no project quota"}'
says() { local out; out=$(qm mount three "$dir/mnt" 2>&1) && grep -Eq "$1" <<<"$out" || { echo "$out"; return 1; }; }
check "which is said" says '^not enforced: this kernel has no project quota'
check "umount" qm umount "$dir/mnt"
version=$(k get pv pv-three -o 'jsonpath={.metadata.resourceVersion}')
check "it is enforced, for older volumes" quota '{"enforced":true,"message":"","pools":{"store-1":"1"}}'
check "a limit that does not come is said" bash -c "'$QM' mount three '$dir/mnt' --timeout=1s 2>&1 | grep -q '^not enforced: node n1 has not set the limit yet'"
check "umount" qm umount "$dir/mnt"
(sleep 1; quota "{\"enforced\":true,\"pools\":{\"store-1\":\"$version\"}}" >"$dir/patch.log" 2>&1) &
silent() { local out; out=$(qm mount three "$dir/mnt" 2>&1) && ! grep -q 'not enforced' <<<"$out" || { echo "$out"; return 1; }; }
check "one that comes is waited for" silent
check "umount" qm umount "$dir/mnt"
check "no record is left" test "$(records)" = 0
plan
