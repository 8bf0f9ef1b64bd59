#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks as a kernel shows them. One drops off the bus while it is mounted, and comes back under another name: it is mounted
# again. A file system that is seen on the paths of a map, or the members of a mirror, is mounted
# and freed through that. And what is formatted is what was looked at.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
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
map() { dmsetup create path --table "0 $(blockdev --getsz "$a") linear $a 0"; }
check "the disk becomes a path of a map" map
top=/dev/$(dmsetup info -c --noheadings -o blkdevname path)
check "the map is found, not its path" found "$top"
check "it is mounted" "$driver" mount "$top" /mnt/b
check "again is the same" "$driver" mount "$top" /mnt/b
check "another is not mounted over one that lives" refuses 'another file system is mounted there' "$driver" mount "$b" /mnt/b
check "and it is still there" mountpoint -q /mnt/b
check "it is unmounted" umount /mnt/b
check "and freed" "$driver" wipe "$top" $uuid
check "so that nothing is found" refuses 'No device' "$driver" find $uuid
check "the map goes" dmsetup remove path
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
plan
