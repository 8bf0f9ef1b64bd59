#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ATA-over-Ethernet driver of hostvol against vblade, at the other end of a veth.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
mac=02:00:00:00:00:07
blade=

serve() { # FILE
	[ -z "$blade" ] || { kill "$blade"; wait "$blade"; }
	ip netns exec target vblade 7 3 a1 "$1" > /run/blade.log 2>&1 &
	blade=$!
}
setup() {
	modprobe -a aoe veth && ip netns add target && ip link add a0 type veth peer name a1 address $mac netns target && ip link set a0 up &&
		ip netns exec target ip link set a1 up && truncate -s 64M /run/d0.img && serve /run/d0.img && wait_for 10 test -c /dev/etherd/discover
}
nodes() { mkdir -p /dev/etherd; /lib/systemd/systemd-udevd --daemon && udevadm trigger && udevadm settle; }
info() { # VOLUME SLOT [MORE]
	printf '{"driverVolumeType":"AOE","data":{"volumeId":"%s","target_shelf":7,"target_lun":%s%s}}\n' "$1" "$2" "${3:+,$3}" > "/run/$1.json"
}
connect() { info "$@" && hostvol connect "/run/$1.json"; }
gone() { [ ! -e '/sys/block/etherd!e7.3' ]; }
written() { dd if=/dev/urandom of=/run/data bs=64k count=16 status=none && dd if=/run/data of="$(hostvol path a)" bs=64k oflag=direct status=none && cmp -n 1048576 /run/data /run/d0.img; }

check "udev" nodes
check "a target on the wire" setup
check "a volume is connected" connect a 3 "\"targetMac\":\"$mac\""
check "its path" bash -c '[ "$(hostvol path a)" = /dev/etherd/e7.3 ]'
check "what is written reaches the target" written
mounted() { mkfs.ext4 -q /dev/etherd/e7.3 && mkdir -p /mnt/a && mount /dev/etherd/e7.3 /mnt/a; }
check "a file system on it" mounted
check "a mounted volume is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
umount /mnt/a
truncate -s 128M /run/d0.img
serve /run/d0.img
check "the volume grows with its target" bash -c 'hostvol extend --json a | jq -e ".size == 134217728"'
check "it ends" hostvol disconnect a
check "and is gone" gone
check "another one's is refused (trap 1)" refuses 'as expected' connect a 3 '"targetMac":"02:00:00:00:00:99"'
check "nobody answers for the next slot" refuses 'nobody on this host' connect b 4
check "nothing is left (trap 18)" bash -c '[ "$(hostvol list --json)" = "[]" ]'
kill "$blade"
plan
