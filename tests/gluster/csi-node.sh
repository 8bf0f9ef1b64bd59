#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The CSI node service on a real GlusterFS volume: directories, files with a file system of their own
# and block devices staged, published, grown; the service killed under I/O, its client killed, two
# writers, symbolic links put where targets belong. Then the same socket in local mode. Prints TAP.
set -u
# in a mount namespace of its own: those of others that are made meanwhile would copy our mounts, and keep them
[ -n "${QM_CSI_NODE_NS:-}" ] || QM_CSI_NODE_NS=1 exec unshare --mount --propagation private "$0" "$@"
here=$(dirname "$(realpath "$0")")
. "$here/../lib/tap.sh"
. "$here/one_node.sh"
build=$(realpath "${QM_BUILD:-$here/../../build}")
QM=$build/src/cli/quartermaster CALL=$build/tests/unit/csi/csi-call HOSTVOL=$build/hostvol/hostvol
K=$dir/kubelet
sock=$dir/node.sock
mkdir -p "$K/pods" "$K/plugins" "$dir/state" "$dir/run" "$dir/pools"
service=

one_node_cleanup=$(declare -f cleanup)
eval "base_$one_node_cleanup"
cleanup() {
	local loop
	[ -z "${local_run:-}" ] || QM_STATE_DIR=$dir/local QM_RUN_DIR=$local_run "$QM" down --delete-data --force > /dev/null 2>&1
	for loop in $(losetup -a | grep -F "vol-$id-" | cut -d: -f1); do
		umount -l "$loop" 2> /dev/null
		losetup -d "$loop"
	done
	base_cleanup
}

start() { # start [NAME]: a node service of its own state
	local name=${1:-node}
	mkdir -p "$dir/$name-run"
	"$QM" node --endpoint "$dir/$name.sock" --node-id "$name" --kubelet-dir "$K" --no-registration \
		--pools "$dir/pools" --state-dir "$dir/$name-state" --run-dir "$dir/$name-run" >> "$dir/$name.log" 2>&1 &
	service=$!
	others+=" $service"
	disown $service
	wait_for 5 "$CALL" "$dir/$name.sock" Identity.Probe
}

gone() { ! kill -0 "$1" 2> /dev/null; }

# request KIND NAME: the volume's part; the service's words come on standard error
context() { printf '{"driverVolumeType":"GLUSTERFS","export":"%s:/%s","name":"%s","volumeId":"%s","storage.kubernetes.io/csiProvisionerIdentity":"x"}' $node $id "$1" "$2"; }
mount_cap='{"mount":{"fs_type":"","mount_flags":["noatime"]},"access_mode":{"mode":1}}'
block_cap='{"block":{},"access_mode":{"mode":1}}'
single_cap='{"mount":{},"access_mode":{"mode":6}}'
reader_cap='{"mount":{},"access_mode":{"mode":3}}'
cap_of() { case $1 in b) echo "$block_cap" ;; *) echo "${cap:-$mount_cap}" ;; esac; }
vid() { echo "v1.$id.${1/x/f}.vol-$id-$1"; } # x: an XFS in a file
dir_of() { [ "$1" = d ] && echo "subvol/d" || echo "virtblock/vol-$id-$1"; }
call() { "$CALL" "${to:-$sock}" "Node.$1" "$2"; }
stage() { call NodeStageVolume "{\"volume_id\":\"$(vid $1)\",\"staging_target_path\":\"$K/plugins/stage-$1${2:-}\",\"volume_capability\":$(cap_of $1),\"volume_context\":$(context "$(dir_of $1)" vol-$id-$1)}"; }
unstage() { call NodeUnstageVolume "{\"volume_id\":\"$(vid $1)\",\"staging_target_path\":\"$K/plugins/stage-$1${2:-}\"}"; }
publish() { # publish KIND TARGET [READONLY]
	call NodePublishVolume "{\"volume_id\":\"$(vid $1)\",\"staging_target_path\":\"$K/plugins/stage-$1\",\"target_path\":\"$K/pods/$2\",\"volume_capability\":$(cap_of $1),\"readonly\":${3:-false}}"
}
unpublish() { call NodeUnpublishVolume "{\"volume_id\":\"$(vid $1)\",\"target_path\":\"$K/pods/$2\"}"; }
stats() { call NodeGetVolumeStats "{\"volume_id\":\"$(vid $1)\",\"volume_path\":\"${3:-$K/pods}/$2\"}"; }
expand() { call NodeExpandVolume "{\"volume_id\":\"$(vid $1)\",\"volume_path\":\"$K/pods/$2\",\"capacity_range\":{\"required_bytes\":$3}}"; }
total() { stats "$1" "$2" | jq '.usage[] | select(.unit == 1) | .total'; }
loops() { losetup -a | grep -cF "vol-$id-"; }
targets() { grep -c " $K/" /proc/self/mountinfo; }
once() { [ "$(grep -c " $1 " /proc/self/mountinfo)" = 1 ]; }
records() { find "$dir/node-state/hostvol/attachments" -name '*.json' 2> /dev/null | wc -l; }
clean() { echo "$(targets) $(loops) $(records) $(grep -c " $dir/node-state/" /proc/self/mountinfo)"; [ "$(targets) $(loops) $(records) $(grep -c " $dir/node-state/" /proc/self/mountinfo)" = "0 0 0 0" ]; }

one_node
# the pool's side of the volumes, made through a mount of the test's own
root=$(printf '{"driverVolumeType":"GLUSTERFS","export":"%s:/%s","volumeId":"root"}' $node $id | "$HOSTVOL" connect -)
mkdir -p "$root/subvol/d" "$root/virtblock" && ln -s /etc "$root/subvol/link"
truncate -s 64M "$root/virtblock/vol-$id-f"
truncate -s 400M "$root/virtblock/vol-$id-x"
truncate -s 32M "$root/virtblock/vol-$id-b"

check "the service starts" start
check "it names itself" bash -c "'$CALL' $sock Identity.GetPluginInfo | grep -q csi.quartermaster.storage"
check "and its node" bash -c "'$CALL' $sock Node.NodeGetInfo | grep -q '\"node_id\":\"node\"'"
check "its socket is root's" [ "$(stat -c %a "$sock")" = 600 ]

echo "# a directory"
check "stage" stage d
check "stage again" stage d
check "publish" publish d d1
check "publish again" publish d d1
check "stands there once" once "$K/pods/d1"
check "with its mount flags" grep -q " $K/pods/d1 .*noatime" /proc/self/mountinfo
check "is written" bash -c "echo hello > $K/pods/d1/file"
check "is the pool's directory" grep -q hello "$root/subvol/d/file"
check "a second target, read only" publish d d2 true
check "can be read" grep -q hello "$K/pods/d2/file"
check "and not written" refuses "Read-only" touch "$K/pods/d2/x"
check "the same target cannot become writable" refuses ALREADY_EXISTS publish d d2
check "its usage" [ "$(total d d1)" -gt 0 ]
check "of the staging path, too" bash -c "$(declare -f call vid stats); CALL=$CALL sock=$sock id=$id K=$K; stats d stage-d $K/plugins | grep -q total"
check "a relative path is not found" refuses NOT_FOUND call NodeGetVolumeStats "{\"volume_id\":\"$(vid d)\",\"volume_path\":\"some/path\"}"
check "nor another volume there" refuses NOT_FOUND call NodeGetVolumeStats "{\"volume_id\":\"v1.$id.d.other\",\"volume_path\":\"$K/pods/d1\"}"
check "expand says its size" bash -c "$(declare -f call vid expand); CALL=$CALL sock=$sock id=$id K=$K; expand d d1 123456789 | grep -q 123456789"
check "as a block device it is refused" refuses INVALID_ARGUMENT call NodeStageVolume "{\"volume_id\":\"$(vid d)\",\"staging_target_path\":\"$K/plugins/stage-d\",\"volume_capability\":$block_cap,\"volume_context\":$(context subvol/d vol-$id-d)}"
check "unpublish" unpublish d d2
check "the target is gone" [ ! -e "$K/pods/d2" ]
check "unpublish again" unpublish d d2
check "one that is busy is refused" bash -c "cd $K/pods/d1 && $(declare -f call vid unpublish refuses); CALL=$CALL sock=$sock id=$id K=$K; refuses FAILED_PRECONDITION unpublish d d1"

echo "# an outage: no brick answers, while a pod is in its volume"
its_client() { pgrep -f "^glusterfs .*$dir/node-state/hostvol/mnt/"; }
was=$(its_client)
exec 8>> "$K/pods/d1/held"
brick_down
check "its users get errors" wait_for 5 bash -c "! stat $K/pods/d1/file"
check "publishing fails" refuses UNAVAILABLE publish d d4
check "also where it is published" refuses UNAVAILABLE publish d d1
check "which ends no client" [ "$(its_client)" = "$was" ]
check "and takes nothing away" once "$K/pods/d1"
check "the brick comes back" wait_for 30 brick_up
check "after it, the pod has its files" wait_for 30 stat "$K/pods/d1/file" "$root/subvol/d"
echo held >&8
exec 8>&-
check "what it held open included" grep -q held "$root/subvol/d/held"
check "and publishing works" publish d d4
check "by the same client" [ "$(its_client)" = "$was" ]
check "unpublish" unpublish d d4

echo "# paths"
check "a single writer has one target" bash -c "$(declare -f call vid publish cap_of refuses); CALL=$CALL sock=$sock id=$id K=$K block_cap= mount_cap= cap='$single_cap'; refuses FAILED_PRECONDITION publish d d3"
check "a target outside kubelet's directory" refuses INVALID_ARGUMENT publish d ../../out
check "a target by .." refuses INVALID_ARGUMENT call NodePublishVolume "{\"volume_id\":\"$(vid d)\",\"staging_target_path\":\"$K/plugins/stage-d\",\"target_path\":\"$K/../x\",\"volume_capability\":$mount_cap}"
ln -s /etc "$K/pods/evil"
check "a target that is a link" refuses "symbolic link" publish d evil
mkdir "$dir/outside" && ln -s "$dir/outside" "$K/pods/parent"
check "a target behind a link" refuses "symbolic link" publish d parent/t
check "nothing was mounted or made there" [ "$(grep -cE " (/etc|$dir/outside)" /proc/self/mountinfo) $(ls "$dir/outside")" = "0 " ]
check "unpublish behind a link removes nothing" bash -c "mkdir $dir/outside/t; $(declare -f call vid unpublish refuses); CALL=$CALL sock=$sock id=$id K=$K; refuses . unpublish d parent/t; test -d $dir/outside/t"
check "a volume's name over a link of the pool" refuses "symbolic link" call NodeStageVolume "{\"volume_id\":\"x\",\"staging_target_path\":\"$K/plugins/x\",\"volume_capability\":$mount_cap,\"volume_context\":$(context subvol/link x)}"
check "and by .." refuses INVALID_ARGUMENT call NodeStageVolume "{\"volume_id\":\"x\",\"staging_target_path\":\"$K/plugins/x\",\"volume_capability\":$mount_cap,\"volume_context\":$(context ../../etc x)}"
check "an id with a slash" refuses INVALID_ARGUMENT call NodeStageVolume "{\"volume_id\":\"../x\",\"staging_target_path\":\"$K/plugins/x\",\"volume_capability\":$mount_cap,\"volume_context\":$(context subvol/d x)}"
# a link that comes and goes where the target belongs, while it is published again and again
mkdir "$dir/victim"
(while :; do ln -sfn "$dir/victim" "$K/pods/swap"; rm -f "$K/pods/swap"; done) 2> /dev/null &
swapper=$!
others+=" $swapper"
for _ in $(seq 12); do
	publish d swap > /dev/null 2>&1
	unpublish d swap > /dev/null 2>&1
done
kill $swapper; wait $swapper 2> /dev/null
rm -f "$K/pods/swap" 2> /dev/null
check "a link swapped in: never mounted through it" bash -c "! grep -q ' $dir/victim' /proc/self/mountinfo && test -d $dir/victim"
unpublish d swap > /dev/null 2>&1

echo "# a file with a file system of its own"
check "stage formats it" stage f
check "it is ext4" grep -q " $K/plugins/stage-f .* ext4 " /proc/self/mountinfo
check "stage again" stage f
check "one loop device" [ "$(loops)" = 1 ]
check "without a second cache" [ "$(cat /sys/block/"$(losetup -a | grep -F "vol-$id-f" | sed 's|/dev/\([^:]*\):.*|\1|')"/loop/dio)" = 1 ]
check "publish" publish f f1
check "is written" bash -c "echo data > $K/pods/f1/file && sync $K/pods/f1/file"
check "its usage" [ "$(total f f1)" -gt 40000000 ]
check "two writers: the second is refused" bash -c "$(declare -f start wait_for); $(declare -p QM CALL K dir) ; others=; start second && $(declare -f call vid dir_of cap_of context stage refuses); CALL=$CALL to=$dir/second.sock id=$id node=$node mount_cap='$mount_cap'; refuses 'FAILED_PRECONDITION.*another writer' stage f -second; r=\$?; kill \$service; exit \$r"
grows() { # grows KIND TARGET BYTES
	local before
	before=$(total $1 $2)
	truncate -s $3 "$root/virtblock/vol-$id-$1"
	check "expand" expand $1 $2 $3
	check "it is larger" [ "$(total $1 $2)" -gt $((before * 5 / 4)) ]
}
if capsh --has-p=cap_sys_resource 2> /dev/null; then grows f f1 134217728; else skip "expand ext4" "needs CAP_SYS_RESOURCE"; fi
cap='{"mount":{"fs_type":"xfs"},"access_mode":{"mode":1}}'
check "one with XFS" stage x
check "published" publish x x1
grows x x1 603979776
check "its end" bash -c "$(declare -f call vid unpublish unstage); CALL=$CALL sock=$sock id=$id K=$K; unpublish x x1 && unstage x"
cap=$mount_cap
check "another file system than what is on it is refused" bash -c "$(declare -f call vid dir_of cap_of context stage refuses); CALL=$CALL sock=$sock id=$id K=$K node=$node cap='{\"mount\":{\"fs_type\":\"ext4\"},\"access_mode\":{\"mode\":1}}'; refuses 'INVALID_ARGUMENT.*xfs' stage x"
check "beyond the file's size is to be tried again" refuses UNAVAILABLE expand f f1 999999999
check "unstage and unpublish in the right order" bash -c "$(declare -f call vid unpublish unstage); CALL=$CALL sock=$sock id=$id K=$K; unpublish f f1 && unstage f"
check "no loop device is left" [ "$(loops)" = 0 ]
check "readers" bash -c "$(declare -f call vid dir_of cap_of context stage unstage); CALL=$CALL sock=$sock id=$id K=$K node=$node cap='$reader_cap'; stage f && grep -q ' $K/plugins/stage-f ro' /proc/self/mountinfo && grep -q data $K/plugins/stage-f/file && unstage f"
check "many writers of a file system are refused" bash -c "$(declare -f call vid dir_of cap_of context stage refuses); CALL=$CALL sock=$sock id=$id K=$K node=$node cap='{\"mount\":{},\"access_mode\":{\"mode\":5}}'; refuses INVALID_ARGUMENT stage f"
check "what is on it is kept" bash -c "$(declare -f call vid dir_of cap_of context stage publish); CALL=$CALL sock=$sock id=$id K=$K node=$node mount_cap='$mount_cap'; stage f && publish f f1 && grep -q data $K/pods/f1/file"

echo "# a block device"
check "stage" stage b
check "publish" publish b b1
check "is a block device" test -b "$K/pods/b1"
check "publish again" publish b b1
check "is written" bash -c "dd if=/dev/urandom of=$K/pods/b1 bs=1M count=4 oflag=direct conv=fsync 2>&1 && cmp -n 4194304 $K/pods/b1 $root/virtblock/vol-$id-b"
check "its size" [ "$(total b b1)" = 33554432 ]
truncate -s 48M "$root/virtblock/vol-$id-b"
check "expand" expand b b1 50331648
check "it is larger" [ "$(total b b1)" = 50331648 ]

echo "# the service dies under I/O"
writer() { local i=0; while [ ! -e "$dir/stop" ]; do i=$((i + 1)); echo $i > "$1/count" && dd if=/dev/zero of="$1/bulk" bs=64k count=8 conv=fsync 2> /dev/null || { echo "$1: $i" >> "$dir/io-errors"; }; done; }
writer "$K/pods/d1" & others+=" $!"; w1=$!
writer "$K/pods/f1" & others+=" $!"; w2=$!
for i in 1 2 3 4 5; do
	kill -9 $service
	wait_for 5 gone $service # it runs once, by a lock
	start > /dev/null || break
	publish d "again$i" > /dev/null 2>> "$dir/again" && unpublish d "again$i" > /dev/null 2>> "$dir/again" || break
	i=done
done
touch "$dir/stop"; wait $w1 $w2
check "killed five times, and it goes on" [ "$i" = done ]
check "no application saw an error" [ ! -e "$dir/io-errors" ]
check "idempotent after a restart: stage" bash -c "$(declare -f call vid dir_of cap_of context stage); CALL=$CALL sock=$sock id=$id K=$K node=$node mount_cap='$mount_cap' block_cap='$block_cap'; stage d && stage f && stage b"
check "and publish" bash -c "$(declare -f call vid cap_of publish); CALL=$CALL sock=$sock id=$id K=$K mount_cap='$mount_cap' block_cap='$block_cap'; publish d d1 && publish f f1 && publish b b1"
check "still one loop device each" [ "$(loops)" = 2 ]
check "RSS below 8 MiB ($(awk '/VmRSS/ { print $2 }' /proc/$service/status) KiB)" [ "$(awk '/VmRSS/ { print $2 }' /proc/$service/status)" -lt 8192 ]

storage_health() { "$CALL" "$sock" Node.NodeGetStorageHealth '{}' | jq -e "$1"; }
check "the storage is well" storage_health '.backend_health | length == 0'

echo "# the client dies"
kill -9 $(pgrep -f "^glusterfs .*$dir/node-state/hostvol/mnt/")
check "its users get errors" wait_for 5 bash -c "! ls $K/pods/d1"
check "stats say so" refuses . stats d d1
check "and its health" bash -c "$CALL $sock Node.NodeGetVolumeHealth '{\"volume_id\":\"$(vid d)\"}' | grep -q NotConnected"
check "and the storage's: one entry that names it" storage_health '.backend_health | length == 1 and (.[0] | .reason == "StorageUnreachable" and (.message | contains(":/")))'
check "publish makes it work again" publish d d1
check "is read" grep -q . "$K/pods/d1/count"
check "stands there once" once "$K/pods/d1"
check "a file's, too: staged afresh" publish f f2
check "what was written is there" grep -q data "$K/pods/f2/file"
check "unpublish what is dead" unpublish f f1
check "a device's" publish b b2
check "is read, too" bash -c "cmp -n 4194304 $K/pods/b2 $root/virtblock/vol-$id-b"
kill -9 $(pgrep -f "^glusterfs .*$dir/node-state/hostvol/mnt/")
all_away() {
	local t
	for t in d1; do unpublish d $t || return 1; done
	for t in f1 f2; do unpublish f $t || return 1; done
	for t in b1 b2; do unpublish b $t || return 1; done
	unstage d && unstage f && unstage b
}
check "all is taken away although the client is dead" all_away
check "nothing is left" wait_for 5 clean
check "unstage again" all_away

echo "# the client hangs"
mkdir "$dir/here" && echo here > "$dir/here/file"
here_args="\"volume_id\":\"local:1\",\"staging_target_path\":\"$K/plugins/stage-l\",\"volume_capability\":$mount_cap"
check "a directory of this machine by a static id" call NodeStageVolume "{$here_args,\"volume_context\":{\"driverVolumeType\":\"LOCAL\",\"devicePath\":\"$dir/here\"}}"
check "beside one of the pool" bash -c "$(declare -f call vid dir_of cap_of context stage publish); CALL=$CALL sock=$sock id=$id K=$K node=$node mount_cap='$mount_cap'; stage d && publish d d1"
hung=$(pgrep -f "^glusterfs .*$dir/node-state/hostvol/mnt/")
kill -STOP $hung
stats d d1 > /dev/null 2> "$dir/hung" &
asked=$!
check "another volume is published meanwhile" timeout 8 "$CALL" "$sock" Node.NodePublishVolume "{$here_args,\"target_path\":\"$K/pods/l1\"}"
check "and used" grep -q here "$K/pods/l1/file"
check "and measured" call NodeGetVolumeStats "{\"volume_id\":\"local:1\",\"volume_path\":\"$K/pods/l1\"}"
check "and taken away" timeout 8 "$CALL" "$sock" Node.NodeUnpublishVolume "{\"volume_id\":\"local:1\",\"target_path\":\"$K/pods/l1\"}"
check "one that hangs is unpublished all the same" timeout 40 "$CALL" "$sock" Node.NodeUnpublishVolume "{\"volume_id\":\"$(vid d)\",\"target_path\":\"$K/pods/d1\"}"
wait $asked
check "its usage was given up after a while" grep -q DEADLINE_EXCEEDED "$dir/hung"
kill -CONT $hung
check "unstage" bash -c "$(declare -f call vid unstage); CALL=$CALL sock=$sock id=$id K=$K; unstage d"
check "the other one's" call NodeUnstageVolume "{\"volume_id\":\"local:1\",\"staging_target_path\":\"$K/plugins/stage-l\"}"
check "nothing is left" wait_for 5 clean

echo "# hosts that change"
# the PersistentVolume names a host that nobody has any more
away='"driverVolumeType":"GLUSTERFS","export":"'$spare:/$id'","name":"subvol/d"'
moved_args="\"volume_id\":\"$(vid d)\",\"staging_target_path\":\"$K/plugins/stage-m\",\"volume_capability\":$mount_cap,\"volume_context\":{$away,\"volumeId\":\"vol-$id-d\"}"
pool_says() { printf '{"driverVolumeType":"GLUSTERFS","export":"%s:/%s","options":"%s","ephemeral":true}' "$1" $id "$2" > "$dir/pool.new" && mv "$dir/pool.new" "$dir/pools/$id"; }
pool_says $node ""
check "a volume whose host is gone is reached by its pool's" call NodeStageVolume "{$moved_args}"
check "and published" call NodePublishVolume "{\"volume_id\":\"$(vid d)\",\"staging_target_path\":\"$K/plugins/stage-m\",\"target_path\":\"$K/pods/m1\",\"volume_capability\":$mount_cap}"
check "is the pool's directory" bash -c "echo moved > $K/pods/m1/moved && grep -q moved $root/subvol/d/moved"
pool_says "$node" "backup-volfile-servers=$node"
check "while it is used, another list of hosts changes nothing" bash -c "$CALL $sock Node.NodeStageVolume '{$moved_args}' && [ \$(grep -c ' $dir/node-state/' /proc/self/mountinfo) = 1 ]"
check "its end" bash -c "$CALL $sock Node.NodeUnpublishVolume '{\"volume_id\":\"$(vid d)\",\"target_path\":\"$K/pods/m1\"}' && $CALL $sock Node.NodeUnstageVolume '{\"volume_id\":\"$(vid d)\",\"staging_target_path\":\"$K/plugins/stage-m\"}'"
check "nothing is left" wait_for 5 clean

echo "# ephemeral volumes"
eid=csi-$(printf %s "$id" | sha256sum | cut -c 1-64)
inline() { # inline ATTRIBUTES [CAPABILITY]
	call NodePublishVolume "{\"volume_id\":\"$eid\",\"target_path\":\"$K/pods/eph/mount\",\"volume_capability\":${2:-$mount_cap},\"volume_context\":{\"csi.storage.k8s.io/ephemeral\":\"true\",\"csi.storage.k8s.io/pod.name\":\"p\",$1}}"
}
inline_end() { call NodeUnpublishVolume "{\"volume_id\":\"$eid\",\"target_path\":\"$K/pods/eph/mount\"}"; }
its_file() { ls "$root/ephemeral/node/$eid"; }
no_file() { ! its_file && [ "$(losetup -a | grep -c "$eid")" = 0 ] && clean; }
mkdir "$K/pods/eph"
check "a host of the pod's own is refused" refuses 'INVALID_ARGUMENT.*"export"' inline '"size":"64Mi","export":"evil:/x"'
check "a volume of a pod" inline '"size":"64Mi"'
check "is a file in the pool" its_file
check "that takes no room until it is written to" [ "$(du -m "$root/ephemeral/node/$eid" | cut -f 1)" -lt 32 ]
check "has a file system of its own, without devices and set-uid" grep -q " $K/pods/eph/mount .*nosuid,nodev.* ext4 " /proc/self/mountinfo
check "its size holds" bash -c "dd if=/dev/zero of=$K/pods/eph/mount/f bs=1M count=80 2>&1 | grep -q 'No space left' && [ \$(stat -c %s $K/pods/eph/mount/f) -lt 67108864 ]"
check "is not locked: a brick that comes back is used again" bash -c "flock -n -x $root/ephemeral/node/$eid true && python3 -c 'import fcntl,sys; f=open(sys.argv[1],\"r+b\"); fcntl.lockf(f, fcntl.LOCK_EX|fcntl.LOCK_NB)' $root/ephemeral/node/$eid"
check "its usage" bash -c "$CALL $sock Node.NodeGetVolumeStats '{\"volume_id\":\"$eid\",\"volume_path\":\"$K/pods/eph/mount\"}' | jq -e '.usage[] | select(.unit == 1) | .total > 30000000'"
check "its health" bash -c "$CALL $sock Node.NodeGetVolumeHealth '{\"volume_id\":\"$eid\"}' | jq -e '.volume_health.health_statuses | length == 0'"
kill -9 $service
wait_for 5 gone $service
check "the service dies, and starts" start
check "publish again" inline '"size":"64Mi"'
check "with what was in it" test -s "$K/pods/eph/mount/f"
check "one that is busy is refused" bash -c "cd $K/pods/eph/mount && $(declare -f call inline_end refuses); CALL=$CALL sock=$sock eid=$eid K=$K; refuses FAILED_PRECONDITION inline_end"
# the pool is mounted anew, as after an outage, while the old client serves the pod
before=$(grep " $K/pods/eph/mount " /proc/self/mountinfo)
umount -l "$(grep -o "$dir/node-state/hostvol/mnt/[^ ]*" /proc/self/mountinfo | head -n 1)"
check "its pool gets a new client: publish again" inline '"size":"64Mi"'
check "the old one serves it on, and no second device is made" [ "$(grep " $K/pods/eph/mount " /proc/self/mountinfo) $(losetup -a | grep -c "$eid")" = "$before 1" ]
sync -f "$K/pods/eph/mount/f"
kill -9 $(pgrep -f "^glusterfs .*$dir/node-state/hostvol/mnt/")
check "its client dies: publish makes it work again" inline '"size":"64Mi"'
check "with what was in it" test -s "$K/pods/eph/mount/f"
check "it ends" inline_end
check "and its file with it" wait_for 5 no_file
check "again" inline_end
# the service is killed at some moment of the making, again and again
for i in 1 2 3 4 5 6; do
	inline '"size":"64Mi"' > /dev/null 2>&1 &
	asked=$!
	sleep 0.0$((RANDOM % 10))$((RANDOM % 10))
	kill -9 $service
	wait $asked
	wait_for 5 gone $service
	start > /dev/null || break
	wait_for 10 inline '"size":"64Mi"' > /dev/null && touch "$K/pods/eph/mount/made" || break
	(sleep 0.0$((RANDOM % 10)); kill -9 $service) &
	inline_end > /dev/null 2>&1
	wait $!
	wait_for 5 gone $service
	start > /dev/null && wait_for 10 inline_end && wait_for 5 no_file || break
	i=done
done
check "killed while it makes or removes one, it goes on" [ "$i" = done ]
check "one that was made when its pod goes meanwhile" inline '"size":"64Mi"'
kill -9 $service
wait_for 5 gone $service
umount "$K/pods/eph/mount" && rmdir "$K/pods/eph/mount" "$K/pods/eph"
check "the service starts" start
check "and takes it away" wait_for 10 no_file

kill $service
check "the socket goes with it" wait_for 5 [ ! -e "$sock" ]

echo "# in local mode"
local_run=/run/qm-csi.$$
lqm() { QM_STATE_DIR=$dir/local QM_RUN_DIR=$local_run "$QM" "$@"; }
check "up --demo" lqm up --demo
check "the node service runs" wait_for 5 "$CALL" "$local_run/node.sock" Identity.Probe
pv=$(lqm get pv -o json | jq -c '.items[0].spec.csi')
K=$dir/local.k; mkdir -p "$K"
lcall() { to=$local_run/node.sock call "$1" "$2"; }
check "stage the demonstration's claim" lcall NodeStageVolume "{\"volume_id\":$(jq .volumeHandle <<< "$pv"),\"staging_target_path\":\"$K/stage\",\"volume_capability\":$mount_cap,\"volume_context\":$(jq .volumeAttributes <<< "$pv")}"
check "publish it" lcall NodePublishVolume "{\"volume_id\":$(jq .volumeHandle <<< "$pv"),\"staging_target_path\":\"$K/stage\",\"target_path\":\"$K/target\",\"volume_capability\":$mount_cap}"
check "write it" touch "$K/target/written"
check "the operator says how its pools are reached" wait_for 10 jq -e '.export and .ephemeral' "$local_run/pools/$(jq -r .volumeHandle <<< "$pv" | cut -d. -f2)"
check "an ephemeral volume" lcall NodePublishVolume "{\"volume_id\":\"$eid\",\"target_path\":\"$K/eph\",\"volume_capability\":$mount_cap,\"volume_context\":{\"csi.storage.k8s.io/ephemeral\":\"true\",\"size\":\"32Mi\"}}"
check "and its end" lcall NodeUnpublishVolume "{\"volume_id\":\"$eid\",\"target_path\":\"$K/eph\"}"
check "down takes it away" lqm down --delete-data
check "nothing is left" [ "$(grep -cE " ($K|$local_run|$dir/local)/" /proc/self/mountinfo) $(ls -d $local_run 2> /dev/null)" = "0 " ]
plan
