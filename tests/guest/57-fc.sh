#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Fibre Channel driver of hostvol on real ports of the kernel: Fibre Channel over Ethernet between the ends of a veth,
# with the kernel's own target behind one of them.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/lio.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
host=20:00:02:00:00:00:00:01
target=20:00:02:00:00:00:00:02

fabric() {
	local tpg=$lio/fc/$target/tpgt_1 i
	modprobe -a target_core_mod target_core_iblock sd_mod loop veth libfc libfcoe fcoe tcm_fc && mount -t configfs config /sys/kernel/config &&
		/lib/systemd/systemd-udevd --daemon && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 &&
		lio_disk d1 64M 1f1c2a9e-0000-4000-8000-000000000000 && mkdir -p "$tpg/acls/$host" || return 1
	for i in 0 1; do
		mkdir -p "$tpg/lun/lun_$i" && ln -s "$lio/core/iblock_0/d$i" "$tpg/lun/lun_$i/" && mkdir -p "$tpg/acls/$host/lun_$i" &&
			ln -s "$tpg/lun/lun_$i" "$tpg/acls/$host/lun_$i/" || return 1
	done
	# the links come up last: the kernel does not survive frames on a port in the making
	ip link add a0 address ${host#20:00:} mtu 2500 type veth peer name a1 address ${target#20:00:} mtu 2500 &&
		echo a1 > /sys/module/libfcoe/parameters/create_vn2vn && echo a0 > /sys/module/libfcoe/parameters/create_vn2vn &&
		ip link set a1 up && ip link set a0 up && wait_for 30 sees_target
}
sees_target() { grep -l 'FCP Target' /sys/class/fc_remote_ports/rport-*/roles && grep -q -x "0x${target//:/}" /sys/class/fc_remote_ports/rport-*/port_name; }
info() { # VOLUME LUN [MORE]
	printf '{"driverVolumeType":"fibre_channel","data":{"volumeId":"%s","target_wwn":["%s"],"target_lun":%s%s}}\n' \
		"$1" "${target//:/}" "$2" "${3:+,$3}" > "/run/$1.json"
}
connect() { info "$@" && hostvol connect "/run/$1.json"; }

check "a fabric with a target" fabric
check "the properties have this host's ports" bash -c "hostvol properties | jq -e '.wwpns | index(\"${host//:/}\")'"
check "a volume is connected" connect a 0 '"wwn":"0f1c2a9e-0000-4000-8000-000000000000"'
check "what is written reaches the target" written a d0
check "a second one" connect b 1
check "is the other disk" written b d1
check "the target's disk grows" lio_grow d0 128M
check "the volume grows with it" bash -c 'hostvol extend --json a | jq -e ".size == 134217728"'
mounted() { mkfs.ext4 -q "$(device a)" && mkdir -p /mnt/a && mount "$(device a)" /mnt/a; }
check "a file system on it" mounted
check "a mounted volume is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
umount /mnt/a
check "the first ends" hostvol disconnect a
check "its disk is gone, the other's is there" count disks 1
check "the second is still written" written b d1
check "the second ends" hostvol disconnect b
check "no disk is left" count disks 0
check "another volume than the expected one is refused (trap 1)" refuses 'as expected' connect a 0 '"wwn":"1f1c2a9e-0000-4000-8000-000000000000"'
check "a missing LUN is an error (trap 12)" refuses 'no LUN 7' connect x 7
check "a target that nobody sees" refuses 'no Fibre Channel port of this host sees' bash -c "sed s/${target//:/}/2000020000000009/ /run/a.json > /run/far.json && hostvol connect /run/far.json"
check "nothing is left (trap 18)" count disks 0
check "no record either" bash -c '[ "$(hostvol list --json)" = "[]" ]'
plan
