#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks as a kernel shows them. One drops off the bus while it is mounted, and comes back under another name: it is
# mounted again (with QM_LONG: under a brick that runs). A file system that is seen on the paths of a map, or the members
# of a mirror, is mounted and freed through that. And what is formatted is what was looked at.
# timeout: 1200
if [ -z "${QM_GUEST:-}" ]; then
	[ -z "${QM_LONG:-}" ] || export QM_GUEST_TIMEOUT=1100 QM_GUEST_MEMORY=3G
	exec "$(dirname "$0")/run" "$0" "$@"
fi
set -u
. tests/lib/tap.sh
. tests/guest/lio.sh
driver=${QM_BUILD:-build}/tests/unit/agent/agent-driver
uuid=0c5d3a2e-0000-4000-8000-000000000001

# ---- disks ------------------------------------------------------------------------------------------
# SCSI disks of the guest's own: their WWN says which they are, whatever their name
start() {
	modprobe -a loop xfs target_core_mod target_core_file tcm_loop sd_mod dm_mod raid1 &&
		{ mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config; } &&
		mkdir -p $lio/loopback/naa.5001/tpgt_1 && echo naa.5002 > $lio/loopback/naa.5001/tpgt_1/nexus
}
# scsi NAME SERIAL LUN
scsi() {
	local tpg=$lio/loopback/naa.5001/tpgt_1
	local dir=$lio/core/fileio_0/$1
	truncate -s 2G "/run/$1.img" && mkdir -p "$dir" && echo "fd_dev_name=/run/$1.img,fd_dev_size=2147483648" > "$dir/control" &&
		echo 1 > "$dir/enable" && echo "$2" > "$dir/wwn/vpd_unit_serial" && mkdir "$tpg/lun/lun_$3" && ln -s "$dir" "$tpg/lun/lun_$3/" && wait_for 10 named "$3"
}
block() { basename "$(echo /sys/class/scsi_disk/*:0:1:"$1"/device/block/*)"; }
named() { [ -b "/dev/$(block "$1")" ]; }
drop() { echo 1 > "/sys/block/$(block "$1")/device/delete"; }
rescan() { local host; for host in /sys/class/scsi_host/host*/scan; do echo "- - -" > "$host"; done; wait_for 10 named "$1"; }

check "disks on a bus" start
check "one of them" scsi one 11111111 0

# ---- a disk that comes back under another name ----------------------------------------------------------
old=/dev/$(block 0)
found() { local out; out=$("$driver" find $uuid) || return 1; echo "$out"; [ "$out" = "$1" ]; }
mounted() { [ "$(awk -v at="$1" '$2 == at { print $1 }' /proc/mounts)" = "$2" ]; }
check "a brick's file system on it" "$driver" format "$old" $uuid "$old"
check "is mounted" "$driver" mount "$old" /mnt/a
echo whole > /mnt/a/file
sync
sleep 1000 < /mnt/a/file & # as a brick's process, which has files open
holder=$!
check "the disk drops off" drop 0
check "and is back" rescan 0
new=/dev/$(block 0)
check "under another name" [ "$new" != "$old" ]
check "where it is found" found "$new"
check "what is left of the old mount makes way for it" "$driver" mount "$new" /mnt/a
check "nothing else is mounted there" mounted /mnt/a "$new"
check "with what was written" [ "$(cat /mnt/a/file)" = whole ]
check "who had it open is not harmed" kill $holder
check "again is the same" "$driver" mount "$new" /mnt/a
check "it is unmounted" umount /mnt/a
check "and freed" "$driver" wipe "$new" $uuid

# ---- what is on top -----------------------------------------------------------------------------------
check "two disks more" scsi two 22222222 1
check "another" scsi three 33333333 2
a=/dev/$(block 1) b=/dev/$(block 2)
check "a file system on one" "$driver" format "$a" $uuid "$a"
check "is found there" found "$a"
wwid() { cat "/sys/block/${1#/dev/}/device/wwid"; }
named_so() { local out; out=$("$driver" find $uuid "$(wwid "$1")") || return 1; echo "$out"; [ "$out" = "$1" ]; }
check "it is copied to the other" dd if="$a" of="$b" bs=1M count=64 conv=fsync status=none
check "which of them is the brick is not guessed" refuses 'cannot be told' "$driver" find $uuid
check "the disk's own name decides" named_so "$a"
check "either way" named_so "$b"
check "the copy is erased" wipefs -qa "$b"
check "it is found again" found "$a"
map() { dmsetup create path --table "0 $(blockdev --getsz "$a") linear $a 0"; }
check "the disk becomes a path of a map" map
top=/dev/$(dmsetup info -c --noheadings -o blkdevname path)
check "the map is found, not its path" found "$top"
check "it is mounted" "$driver" mount "$top" /mnt/b
check "again is the same" "$driver" mount "$top" /mnt/b
check "another is not mounted over one that lives" refuses 'another file system is mounted there' "$driver" mount "$b" /mnt/b
check "and it is still there" mountpoint -q /mnt/b
check "by way of a link, too" sh -c "ln -s /mnt /run/link && $driver mount $top /run/link/b"
check "it is mounted once" [ "$(grep -c ' /mnt/b ' /proc/mounts)" = 1 ]
check "it is unmounted" umount /mnt/b
check "and freed" "$driver" wipe "$top" $uuid
check "so that nothing is found" refuses 'No device' "$driver" find $uuid
check "the map goes" dmsetup remove path
check "a disk that cannot be read" dmsetup create bad --table "0 $(blockdev --getsz "$a") error"
bad=/dev/$(dmsetup info -c --noheadings -o blkdevname bad)
check "is not taken for one that was freed" refuses 'Cannot free' "$driver" wipe "$bad" $uuid
check "it goes" dmsetup remove bad
mirror() { mdadm --create /dev/md9 --run --level=1 --metadata=1.0 --raid-devices=2 --assume-clean "$a" "$b"; }
check "a mirror of both" mirror
check "with a file system" "$driver" format /dev/md9 $uuid /dev/md9
check "which is found, not its members" found /dev/md9
check "the mirror is stopped" mdadm --stop /dev/md9
check "its members alone are not taken for the file system" refuses 'No device' "$driver" find $uuid
check "the mirror is no more" mdadm --zero-superblock "$a" "$b"
check "nor is what was on it" wipefs -qa "$a" "$b"

# ---- what is formatted ----------------------------------------------------------------------------------
check "a device that is another than was seen is not formatted" refuses 'not as it was when that was decided' "$driver" format "$a" $uuid "$b"
check "nor one that carries anything since" sh -c "mkfs.ext4 -q -F $b && ! $driver format $b $uuid $a"
check "what was seen may be erased" "$driver" format "$b" $uuid "$b"
check "and it is that file system" [ "$(blkid -p -s UUID -o value "$b")" = $uuid ]

# ---- a store whose disk does that (--long: without KVM it takes minutes) ----------------------------
if [ -z "${QM_LONG:-}" ]; then
	skip "a store whose disk drops off and comes back" "takes minutes without KVM: with --long"
	plan
	exit
fi
. tests/lib/evidence.sh
build=$PWD/${QM_BUILD:-build}
PATH=$build/src/cli:$build/hostvol:$PATH
work=/var/tmp/disks
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/disks
mkdir -p $work
empty() { truncate -s 2G "$work/$1" && losetup --find --show "$work/$1"; }
up() {
	local i devices
	devices=("/dev/$(block 0)" "$(empty four)" "$(empty five)") || return 1
	for i in 1 2 3; do
		cat <<-END
			---
			apiVersion: coreos.com/v1
			kind: StorageNode
			metadata: {name: n$i}
			spec:
			  type: glusterfs
			  storageNetwork: {ips: [10.119.8.$i]}
			  devices: [${devices[i - 1]}]
			  glusterfs: {zone: $i}
		END
	done > $work/nodes.yaml
	quartermaster up -f $work/nodes.yaml --timeout 300s
}
whole() {
	quartermaster get sp -o json | jq -e '.items[0] | .status.phase == "Online" and .status.healPending == 0
		and ([.spec.bricks[].id] | sort) == ([.status.bricks[].id] | sort) and ([.status.bricks[] | select(.online)] | length) == 3' && return
	quartermaster get sp -o yaml
	return 1
}
claim() { quartermaster apply -f docs/examples/claim.yaml && quartermaster mount my-claim /mnt/a --timeout 120s; }
fill() { local i; for i in $(seq 10); do head -c 100000 /dev/urandom > "/mnt/a/$1$i" || return 1; done; (cd /mnt/a && sha256sum "$1"*) >> $work/sums; }
intact() { (cd /mnt/a && sha256sum -c --quiet $work/sums); }
is_now() { quartermaster get sn n1 -o json | jq -e --arg d "its disk is /dev/$1 now" '.status.agent.devices[0] | .state == "Ready" and .message == $d'; }
id_of() { quartermaster get sp -o json | jq -r '.items[0].spec.bricks[] | select(.node == "n1") | .id'; }

check "a store, with that disk and two others" up
check "a claim" claim
check "is written" fill before
check "the pool is whole" wait_for 30 whole
id=$(id_of) old=$(block 0)
check "the disk drops off under its brick" drop 0
check "and is back" rescan 0
new=$(block 0)
check "under another name" [ "$new" != "$old" ]
check "the volume is written all the while" fill during
check "the brick is on it again" wait_for 120 is_now "$new"
check "the pool is whole, without a hand" wait_for 90 whole
check "with the same brick" [ "$(id_of)" = "$id" ]
check "nothing is left of the old mount" [ "$(grep -c "bricks/$id " "/proc/$(pgrep -f "brick-name.*$id" | head -n 1)/mounts")" = 1 ]
check "the data is intact" intact
# ---- it fails for a while, and keeps its name and number ------------------------------------------------
state() { echo "$1" > "/sys/block/$(block 0)/device/state"; }
down_one() { quartermaster get sp -o json | jq -e '[.items[0].status.bricks[] | select(.online | not)] | length == 1'; }
check "the disk fails under its brick" state offline
check "the volume is written all the while" fill meanwhile
check "the brick ends" wait_for 120 down_one
check "the disk is well again" state running
check "under the same name" [ "$(block 0)" = "$new" ]
check "the pool is whole, without a hand" wait_for 420 whole
check "with the same brick" [ "$(id_of)" = "$id" ]
check "the data is intact" intact
check "down" quartermaster down --delete-data --force
plan
