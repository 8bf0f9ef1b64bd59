#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The AoE driver of hostvol against vblade, at the far end of a veth. A check that bears a trap's number shows that
# one of the known mistakes of such drivers is not made here.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
command -v vblade > /dev/null || { skip "AoE" "vblade is not installed"; plan; exit; }
declare -A blade

# start NAME SHELF SLOT [HOST]: vblade's serial number is made of place and host name
start() {
	[ -e "/run/$1.img" ] || truncate -s 64M "/run/$1.img" || return 1
	ip netns exec far unshare -u bash -c "hostname ${4:-far}; exec vblade $2 $3 a1 /run/$1.img" > "/run/$1.log" 2>&1 &
	blade[$1]=$!
}
stop() { kill "${blade[$1]}" && wait "${blade[$1]}"; true; }
network() {
	modprobe -a aoe veth loop && /lib/systemd/systemd-udevd --daemon && ip netns add far && ip link add a0 type veth peer name a1 netns far &&
		ip link set a0 up && ip -n far link set a1 up && wait_for 10 test -c /dev/etherd/discover
}
info() { printf '{"driverVolumeType":"aoe","data":{"volumeId":"%s","target_shelf":%s,"target_lun":%s%s}}\n' "$1" "$2" "$3" "${4:+,$4}" > "/run/$1.json"; }
connect() { info "$@" && hostvol connect "/run/$1.json"; }
disk() { test -e "/sys/block/etherd!$1"; }
gone() { ! disk "$1"; }
written() { dd if=/dev/urandom of=/run/data bs=1M count=4 status=none && dd if=/run/data of="$(hostvol path "$1")" bs=1M oflag=direct status=none && cmp -n 4194304 /run/data "/run/$2.img"; }

check "without the module it is said so" refuses 'load the module aoe' connect a 7 3
check "a segment with the kernel's AoE" network
start v3 7 3
start v30 7 30
check "a disk is connected" connect a 7 3
check "its path" bash -c '[ "$(hostvol path a)" = /dev/etherd/e7.3 ]'
check "what is written reaches the target" written a v3
check "a second one, in camelCase" bash -c 'echo "{\"driverVolumeType\":\"AOE\",\"data\":{\"volumeId\":\"b\",\"targetShelf\":\"7\",\"targetLun\":\"30\"}}" > /run/b.json && hostvol connect /run/b.json'
check "is the other disk" written b v30
check "connecting again changes nothing" connect a 7 3

echo "# --- use, extend, plan"
mounted() { mkfs.ext4 -q /dev/etherd/e7.3 && mkdir -p /mnt/a && mount /dev/etherd/e7.3 /mnt/a; }
check "a file system on it" mounted
check "a mounted disk is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
used() { hostvol plan --json a > /run/out && jq -e '.usedBy == ["mounted at /mnt/a"] and (.steps | index("flush AoE e7.3") != null)' /run/out; }
check "plan says who uses it" used
check "it still works" bash -c 'echo x > /mnt/a/x && sync -f /mnt/a'
umount /mnt/a
stop v3
truncate -s 128M /run/v3.img
start v3 7 3
# the new target has to listen before it is asked; the kernel may have seen the new size before that by itself
grown() { hostvol extend --json a > /run/out && jq -e '.size == 134217728 and .paths[0].after == 134217728' /run/out; }
check "the disk grows with its target (trap 20)" wait_for 20 grown

echo "# --- end"
stop v3
check "the disk ends" hostvol disconnect a
check "it is gone" gone e7.3
check "and only it: e7.30 begins with the same letters" disk e7.30
check "which still works" written b v30
check "the second ends" hostvol disconnect b
stop v30

echo "# --- identity"
check "a target that nobody is (trap 12)" refuses 'no AoE target answers as e9.9' connect x 9 9
start v3 7 3
check "another disk than the expected one is refused (trap 1)" refuses 'as expected' connect a 7 3 '"serial":"7.3:other"'
check "no record is left (trap 18)" bash -c '[ "$(hostvol list --json)" = "[]" ]'
check "the expected one is not" connect a 7 3 '"serial":"7.3:far"'
stop v3
start v9 7 3 other
other() { printf e7.3 > /dev/etherd/revalidate; refuses 'another volume stands there' hostvol path a; }
check "another target in its place is not handed out (trap 1)" wait_for 20 other
check "it ends" hostvol disconnect a
stop v9
check "no record is left" bash -c '[ "$(hostvol list --json)" = "[]" ]'
check "nor anything to repair" hostvol repair --dry-run
plan
