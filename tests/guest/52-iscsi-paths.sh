#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 2600
# The iSCSI driver of hostvol on several paths, interrupted, and by many at once. A check that bears a trap's number shows that one of
# the known mistakes of such drivers is not made here.
export QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-${QM_LONG:+2}580}
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/lio.sh
. tests/guest/interrupt.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH

setup() {
	lio_start && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 && lio_disk d1 64M 1f1c2a9e-0000-4000-8000-000000000000 &&
		lio_disk d2 64M 2f1c2a9e-0000-4000-8000-000000000000 && lio_target $t1 127.0.0.1:3260 127.0.0.2:3260 &&
		lio_target $t2 127.0.0.1:3261 && lio_lun $t1 0 d0 && lio_lun $t1 1 d1 && lio_lun $t2 0 d2
}
check "iSCSI targets" setup

echo "# --- interruptions"
serial0=0f1c2a9e-0000-4000-8000-000000000000
info a $t1 0 "\"wwn\":\"$serial0\""
reuse() { lio_unlun $t1 0 && case $1 in away) lio_lun $t1 0 d1 ;; back) lio_lun $t1 0 d0 ;; esac; }
is_right() { /lib/udev/scsi_id -g -u -p 0x80 "$(readlink -f "$1")" | grep -q "$serial0"; }
check "killed at any time, the next call ends in order, also where the LUN was reused (trap 1)" interrupt_all a is_right nothing_left reuse
stampede_info() { local unit=($2); info "$1" "${unit[0]}" "${unit[1]}"; sed -i "s/127.0.0.1:3260/${unit[2]}/" "/run/$1.json"; }
is_stamped() { local unit=($2); /lib/udev/scsi_id -g -u -p 0x80 "$(readlink -f "$1")" | grep -q "${unit[3]}"; }
check "16 processes on two targets (trap 17)" stampede 16 is_stamped "$t1 0 127.0.0.1:3260 0f1c2a9e" "$t1 1 127.0.0.1:3260 1f1c2a9e" "$t2 0 127.0.0.1:3261 2f1c2a9e"
check "nothing is left" nothing_left

echo "# --- paths"
check "multipathd" multipathd_start
both() { info "$1" $t1 0 "${2:-}" && sed -i 's/127.0.0.1:3260/127.0.0.1:3260,127.0.0.2:3260/' "/run/$1.json" && hostvol connect "/run/$1.json"; }
check "two portals" both a
check "two sessions" count sessions 2
check "two disks" count disks 2
check "one map of both" bash -c '[ "$(ls /sys/block/dm-0/slaves | wc -l)" = 2 ]'
check "its path is the map" bash -c '[[ $(readlink -f "$(hostvol path a)") == /dev/dm-0 ]]'
check "pinned by its UUID (trap 2)" bash -c '[ "$(hostvol list --json | jq -r ".[0].detail.map")" = "$(cat /sys/block/dm-0/dm/uuid)" ]'
check "written" written a d0
lio_grow d0 128M
grown() { hostvol extend --json a | jq -e '.size == 134217728 and (.paths | map(.after) == [134217728, 134217728])' && [ "$(blockdev --getsize64 /dev/dm-0)" = 134217728 ]; }
check "both paths and the map grow (trap 20)" grown
mounted() { mkfs.ext4 -q /dev/dm-0 && mkdir -p /mnt/a && mount /dev/dm-0 /mnt/a; }
check "a file system on the map" mounted
check "it is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
check "all paths are still there (trap 8)" count disks 2
umount /mnt/a
check "it ends" hostvol disconnect a
check "nothing is left (trap 8)" nothing_left
w0=360014050f1c2a9e00004000800000000 w1=360014051f1c2a9e00004000800000000
remembered() { grep -qx "/$1/" /etc/multipath/wwids; }
forgotten() { ! remembered "$1"; }
check "multipathd has forgotten its name (trap 23)" forgotten $w0
check "one path, on which multipathd makes a map by itself" connect b $t1 1
check "a map" wait_for 20 count maps 1
check "is its path: the disk itself is held" bash -c '[ "$(readlink -f "$(hostvol path b)")" = /dev/dm-0 ]'
check "disconnecting looks at what is there (trap 10)" hostvol disconnect b
check "nothing is left" nothing_left
check "one of two portals does not answer" connect b $t1 1 '"targetPortals":["127.0.0.1:3260","127.0.0.9:3260"],"multipath":true'
check "written" written b d1
forced() { exec 7<> "$(device b)" && hostvol disconnect --force b; local r=$?; exec 7>&-; return $r; }
check "in use, by force" forced
check "nothing is left" wait_for 10 nothing_left

echo "# --- a dead path"
check "two portals" both a
check "written" written a d0
check "one of them dies" eval 'lio_cut 127.0.0.2 && wait_for 60 lio_dead 1'
check "it ends all the same (trap 24)" hostvol disconnect a
check "nothing is left, of the dead path either (trap 24)" nothing_left
check "nor comes when it is back" eval 'lio_mend 127.0.0.2 && sleep 3 && nothing_left'
if [ -n "${QM_LONG:-}" ]; then
	mkdir $lio/iscsi/$t1/tpgt_1/np/127.0.0.3:3260
	others() { info a $t1 0 && sed -i 's/127.0.0.1:3260/127.0.0.2:3260,127.0.0.3:3260/' /run/a.json && hostvol connect /run/a.json; }
	check "two others" others
	check "written" written a d0
	check "both die" eval 'lio_cut 127.0.0.2 && lio_cut 127.0.0.3 && wait_for 60 lio_dead 2'
	check "what cannot be written out is not given up" refuses 'cannot be brought to the storage' hostvol disconnect a
	check "all is still there" eval 'count maps 1 && count disks 2 && count sessions 2'
	check "one is back" eval 'lio_mend 127.0.0.3 && wait_for 90 lio_dead 1'
	check "it ends" wait_for 30 hostvol disconnect a
	check "nothing is left" nothing_left
	check "both die, and are given up by force" eval 'lio_mend 127.0.0.2 && others && lio_cut 127.0.0.2 && lio_cut 127.0.0.3 && hostvol disconnect --force a'
	check "nothing is left" nothing_left
	lio_mend 127.0.0.2 && lio_mend 127.0.0.3
else
	skip "all paths die with something unwritten, and what is given up by force" "takes minutes: with --long"
fi

echo "# --- what multipathd remembers"
strict() { multipathd_config strict && multipathd reconfigure && wait_for 30 bash -c 'multipathd show config local | grep -q strict'; }
check "it takes only what it knows by name" strict
others_name() { echo "/$w0/" >> /etc/multipath/wwids && multipath -w $w1 && forgotten $w1; }
check "a name that somebody else left there, and not the next volume's" others_name
check "the LUN is another volume now" reuse away
check "that is connected (trap 23)" both n '"wwn":"1f1c2a9e-0000-4000-8000-000000000000"'
check "as a map of its own name (trap 2)" bash -c "[ \"\$(cat /sys/block/dm-0/dm/uuid)\" = mpath-$w1 ]"
check "written" written n d1
check "it ends" hostvol disconnect n
check "its name is forgotten (trap 23)" forgotten $w1
check "the other's is not (trap 23)" remembered $w0
check "the LUN is the first volume again" reuse back
check "that is connected" both a "\"wwn\":\"$serial0\""
check "written" written a d0
check "it ends" hostvol disconnect a
check "its name stays, since it was there before (trap 23)" remembered $w0
check "nothing is left" nothing_left
plan
