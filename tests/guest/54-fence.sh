#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 1600
# One writer for a LUN: two node services reach the same disk of the kernel's target, each through a target of its
# own, so that they are two initiator ports to its persistent reservations. The second is refused while the first
# lives, and puts it out when it is cut off.
export QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-${QM_LONG:+1}580}
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/lio.sh
. tests/guest/csi.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
lapse=15 lun=0

# the kernel asks targets to keep registrations over a power cut, which this one does in files
setup() {
	mkdir -p /var/target/pr /etc/target/pr && lio_start && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 && lio_target $t1 127.0.0.1:3260 &&
		lio_target $t2 127.0.0.1:3261 && lio_lun $t1 0 d0 && lio_lun $t2 0 d0
}
start() { csi_start "$1" --takeover-after $lapse; }
cut_off() { kill -9 "$1" && wait "$1" 2> /dev/null; true; }
portal() { [ "$1" = a ] && echo "$t1 127.0.0.1:3260${second:-}" || echo "$t2 127.0.0.1:3261"; }
stage() { # NODE [MODE [FENCING]]
	local at
	read -r -a at < <(portal "$1")
	csi_stage "$1" lun "{\"driverVolumeType\":\"ISCSI\",\"targetIqn\":\"${at[0]}\",\"targetPortal\":\"${at[1]}\",\"targetLun\":\"$lun\",\"fencing\":\"${3:-reservation}\"}" "${2:-7}"
}
unstage() { csi_unstage "$1" lun; }
pr=$lio/core/iblock_0/d0/pr
holds() { grep -q 'Write Exclusive Access, Registrants Only' $pr/res_pr_type || { cat $pr/*; return 1; }; }
registered() { [ "$(grep -c 'Node:.* Key:' $pr/res_pr_registered_i_pts)" = "$1" ] || { cat $pr/*; return 1; }; }

evidence() { tail -n 30 /run/[ab]/log; dmesg | tail -n 20; }

check "a disk behind two targets" setup
check "two nodes" eval 'start a && a=$service && start b && b=$service'
[ "$tap_failed" = 0 ] || { plan; exit 1; }
check "the first stages it for a single writer" stage a
check "and holds a reservation, for those who have registered" eval 'holds && registered 1'
check "written" eval 'echo one > /run/a/kubelet/lun/file && sync /run/a/kubelet/lun/file'
check "staging again changes nothing" eval 'stage a && registered 1'

echo "# --- a second writer"
check "the second is refused, and told who has it" refuses 'another node writes to it .reservation key 0x514d' stage b
check "it has registered nothing" registered 1
by_hand() {
	printf '{"driverVolumeType":"ISCSI","data":{"volumeId":"x","targetIqn":"%s","targetLun":"0","targetPortal":"127.0.0.1:3261"}}' $t2 > /run/x.json
	hostvol connect /run/x.json && ! dd if=/dev/zero of="$(device x)" bs=4096 count=1 seek=9999 oflag=direct status=none
	local r=$?
	hostvol disconnect x && return $r
}
check "the target itself refuses what it writes" by_hand
refused_on() { local end=$((SECONDS + lapse + lapse / 2)); while ((SECONDS < end)); do refuses 'another node writes' stage b || return 1; sleep 2; done; }
check "for as long as the first lives" refused_on
check "the first has it still" eval 'registered 1 && echo two > /run/a/kubelet/lun/two && sync /run/a/kubelet/lun/two'

echo "# --- the first is cut off"
writer() { while dd if=/dev/zero of=/run/a/kubelet/lun/data bs=64k count=16 conv=fsync status=none; do sleep .2; done; echo ended > /run/writer; }
writer 2> /run/writer.log &
cut_off $a
check "the second puts it out" wait_for 40 stage b
check "and holds it" eval 'holds && registered 1'
check "the old writer gets errors" wait_for 60 test -s /run/writer
check "what was written before is there" eval '[ "$(cat /run/b/kubelet/lun/file)" = one ] && [ "$(cat /run/b/kubelet/lun/two)" = two ]'
check "the second writes" eval 'echo three > /run/b/kubelet/lun/three && sync /run/b/kubelet/lun/three'
check "the first comes back" eval 'start a && a=$service'
check "and is told that it has lost the volume" refuses 'another node has put this one out' stage a
check "the second ends" unstage b
late() { dd if=/dev/zero of="$(findmnt -no SOURCE /run/a/kubelet/lun)" bs=4096 count=1 seek=16000 oflag=direct; }
check "what it leaves keeps the old writer out" eval 'holds && refuses "error|exchange" late'
check "the old writer's mount ends" unstage a
check "its file system is clean" e2fsck -fn /run/d0.img
check "the first takes it at once" stage a
check "all is there" eval '[ "$(cat /run/a/kubelet/lun/three)" = three ]'
check "it ends" unstage a

echo "# --- a file system that lives on, though its staging path shows it no more: written out still, or in another namespace"
leak() { unshare -m --propagation private sleep 1000 & leaked=$!; wait_for 10 grep -q " $1 " /proc/$leaked/mountinfo; }
unleak() { kill $leaked; wait $leaked 2> /dev/null; true; }
check "the first has it, and a namespace of somebody else's" eval 'stage a && leak /run/a/kubelet/lun'
check "it does not end" refuses 'still in use' unstage a
check "nor does the reservation" eval 'holds && registered 1 && refuses "another node writes to it" stage b'
check "when the other is done it ends" eval 'unleak && unstage a'
check "the first again, and cut off" eval 'stage a && leak /run/a/kubelet/lun && cut_off $a && umount /run/a/kubelet/lun'
check "the second puts it out, and ends" eval 'wait_for 60 stage b && unstage b && holds'
check "the first does not come back in while its old file system lives" eval 'start a && a=$service && refuses "still in use here" stage a && registered 1'
check "when that is gone it does" eval 'unleak && stage a && unstage a'

echo "# --- without a takeover nothing is left"
lun=1 pr=$lio/core/iblock_0/d1/pr
check "another disk" eval 'lio_disk d1 64M 1f1c2a9e-0000-4000-8000-000000000000 && lio_lun $t1 1 d1 && lio_lun $t2 1 d1'
check "one after the other" eval 'stage a && registered 1 && unstage a && registered 0 && stage b && registered 1 && unstage b && registered 0'
check "readers take no reservation" eval 'stage a 3 && stage b 3 && registered 0'
read_only() { [ "$(blockdev --getro "$(findmnt -no SOURCE "/run/$1/kubelet/lun")")" = 1 ]; }
check "but their disks are read-only" eval 'read_only a && read_only b'
check "they end" eval 'unstage a && unstage b'
check "nor does who is content with none" eval 'stage a 7 none && registered 0 && unstage a'
check "a node that dies and comes back has its own at once" eval 'stage a && cut_off $a && umount /run/a/kubelet/lun && start a && a=$service && stage a && registered 1 && unstage a && registered 0'

echo "# --- several paths"
check "a second portal" eval 'mkdir $lio/iscsi/$t1/tpgt_1/np/127.0.0.2:3260 && multipathd_start'
second=,127.0.0.2:3260
check "each path is registered" eval 'stage a && count maps 1 && registered 2 && holds'
check "written through both" eval 'dd if=/dev/zero of=/run/a/kubelet/lun/data bs=64k count=256 oflag=direct status=none'
check "it ends, on all paths" eval 'unstage a && registered 0'

echo "# --- a path dies"
written_late() { dd if=/dev/urandom of=/run/late bs=64k count=64 status=none && cp /run/late /run/a/kubelet/lun/late; } # no sync
is_there() { e2fsck -fn "/run/d$lun.img" && debugfs -R 'cat late' "/run/d$lun.img" | cmp - /run/late; }
nothing_of() { count maps 0 && count sessions 0 && count disks 0 && [ "$(hostvol --state-dir "/run/$1/state/hostvol" list --json)" = "[]" ] && [ -z "$(find /etc/iscsi/nodes -type f)" ]; }
check "staged, and written, but not on the disk yet, when a portal dies" eval 'stage a && registered 2 && written_late && lio_cut 127.0.0.2'
check "it is unstaged all the same" unstage a
check "what was written is on the disk" is_there
check "nothing is registered, on the dead path either" registered 0
check "nothing is left" nothing_of a
check "nor comes when the portal is back" eval 'lio_mend 127.0.0.2 && sleep 3 && nothing_of a && registered 0'
if [ -n "${QM_LONG:-}" ]; then
	check "idle when it dies" eval 'stage a && sync && lio_cut 127.0.0.2'
	check "it is unstaged at once" eval 'unstage a && registered 0 && nothing_of a'
	lio_mend 127.0.0.2
	check "dead for long" eval 'stage a && registered 2 && sync && lio_cut 127.0.0.2 && wait_for 60 lio_dead 1'
	check "the reservation is renewed by the path that lives" refused_on
	check "it is unstaged" eval 'unstage a && registered 0 && nothing_of a'
	check "while it stays away the volume has one path" eval 'stage a && registered 1 && unstage a && registered 0 && nothing_of a'
	lun=0 pr=$lio/core/iblock_0/d0/pr
	lio_mend 127.0.0.2
	check "a disk from which somebody was put out" eval 'stage a && registered 2 && written_late && lio_cut 127.0.0.2'
	check "it is unstaged" eval 'unstage a && nothing_of a && is_there'
	check "what is left keeps others out, by the path that lives" eval 'holds && registered 1'
	check "and nobody waits for it" eval 'stage b && registered 1 && unstage b'
	lio_mend 127.0.0.2
else
	skip "a path that dies idle, or long before, or under somebody who was put out" "takes minutes: with --long"
fi
kill $a $b
plan
