#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 2600
# The iSCSI driver of hostvol against the kernel's own target. A check that bears a trap's number shows that one of
# the known mistakes of such drivers is not made here.
export QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-${QM_LONG:+2}580}
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/lio.sh
. tests/guest/csi.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH

connect_as() { local json=$1; printf '%s\n' "$json" > /run/as.json; hostvol connect --json /run/as.json; }
setup() {
	lio_start && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 && lio_disk d1 64M 1f1c2a9e-0000-4000-8000-000000000000 &&
		lio_disk d2 64M 2f1c2a9e-0000-4000-8000-000000000000 && lio_target $t1 127.0.0.1:3260 127.0.0.2:3260 '[::1]:3260' &&
		lio_target $t2 127.0.0.1:3261 && lio_lun $t1 0 d0 && lio_lun $t1 1 d1 && lio_lun $t1 300 d2
}
check "an iSCSI target" setup
check "a volume is connected" connect a $t1 0
check "one session" count sessions 1
check "one disk: no foreign LUN comes with it (trap 13)" count disks 1
check "what is written reaches the target" written a d0
udevadm settle
check "its path is udev's link" bash -c 'hostvol path a | grep -q ^/dev/disk/by-id/'
check "connecting again changes nothing" connect a $t1 0
check "a second LUN" connect b $t1 1
check "shares the session (trap 9)" count sessions 1
check "and is the other disk" written b d1
check "LUN 300 (trap 14)" connect c $t1 300
check "is that disk" written c d2
check "a second consumer" hostvol connect --consumer other /run/a.json
check "one ends" hostvol disconnect --consumer other a
check "the other goes on" written a d0

echo "# --- use"
mounted() { mkfs.ext4 -q "$(device a)" && mkdir -p /mnt/a && mount "$(device a)" /mnt/a; }
check "a file system on it" mounted
check "a mounted volume is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
check "and works on" bash -c 'echo x > /mnt/a/file && sync /mnt/a/file'
umount /mnt/a
held() { local dev; dev=$(device a); exec 7<> "$dev"; hostvol disconnect a; local r=$?; exec 7>&-; return $r; }
check "nor is one that is opened for writing (trap 7)" refuses 'opened for writing by' held

echo "# --- extend, plan"
check "the target's disk grows" lio_grow d0 128M
grown() { hostvol extend --json a | jq -e '.size == 134217728 and .paths[0].after == 134217728 and .paths[0].before == 67108864' && [ "$(blockdev --getsize64 "$(device a)")" = 134217728 ]; }
check "the volume grows with it" grown
planned() { hostvol plan --json b | tee /dev/stderr | jq -e '(.usedBy | length) == 0 and (.steps | length) == 2 and (.steps | map(test("log out")) | any | not)'; }
check "plan: the session stays for the others" planned

echo "# --- disconnect"
check "the first volume ends" hostvol disconnect a
check "the session stays for the others (trap 9)" count sessions 1
check "the second is still written" written b d1
check "the second ends" hostvol disconnect b
check "the third ends" hostvol disconnect c
check "nothing is left" nothing_left

echo "# --- identity"
check "a missing LUN is an error, although the scan succeeds (trap 12)" refuses 'no LUN 77' connect x $t1 77
check "nothing is left of it (trap 18)" nothing_left
wwn0=$(cat $lio/core/iblock_0/d0/wwn/vpd_unit_serial | sed 's/.*: //')
check "the expected serial number" connect a $t1 0 "\"wwn\":\"$wwn0\""
check "it ends" hostvol disconnect a
check "another volume than the expected one is refused (trap 1)" refuses 'not 1f1c2a9e.* as expected' connect a $t1 0 '"wwn":"1f1c2a9e-0000-4000-8000-000000000000"'
check "nothing is left of that (trap 18)" nothing_left
check "connected without an expectation" connect a $t1 0
reuse() { lio_unlun $t1 0 && lio_lun $t1 0 d1; }
check "the target gives the LUN to another volume" reuse
check "its path is not given any more (trap 1)" refuses 'another volume stands there now' hostvol path a
check "connecting it again is refused (trap 1)" refuses . connect a $t1 0 "\"wwn\":\"$wwn0\""
check "the new volume at the LUN" connect n $t1 0 '"wwn":"1f1c2a9e-0000-4000-8000-000000000000"'
check "is the new one, with its size" written n d1
check "they end" bash -c 'hostvol disconnect a; hostvol disconnect n'
check "nothing is left" nothing_left
lio_unlun $t1 0 && lio_lun $t1 0 d0

echo "# --- another volume behind the record, while the host was down"
# What a power cut takes: sessions, disks, the volatile directory. Records stay.
power_cut() { iscsiadm -m session -u > /dev/null; rm -rf "${1:-/run/quartermaster/hostvol}"; wait_for 10 count sessions 0 && count disks 0; }
sum() { sync && sha256sum < "/run/$1.img"; }
untouched() { [ "$(sum "$1")" = "$stranger" ] || { echo "$1 was written"; return 1; }; }
both='1f1c2a9e.*and was .*0f1c2a9e.*hostvol forget '
recorded() { hostvol list --json a | jq -e --arg s "$1" 'all(.[]; .detail.identity | gsub("-"; "") | test($s)) and length > 0'; }
check "a volume without wwn" connect a $t1 0
check "the host is down" power_cut
check "meanwhile the LUN is another volume" reuse
stranger=$(sum d1)
check "another consumer is refused" eval 'info a $t1 0 && refuses "$both" hostvol connect --consumer other /run/a.json'
check "so is who had it, with both identities (trap 1)" refuses "$both" connect a $t1 0
check "again, with a wwn that is the stranger's" refuses "$both" connect a $t1 0 '"wwn":"1f1c2a9e-0000-4000-8000-000000000000"'
check "nothing of it is on this host" eval 'count sessions 0 && count disks 0'
check "the record says what it was" recorded 0f1c2a9e
check "the stranger's volume is as it was" untouched d1
interrupted() {
	local i
	for i in 1 2 3 4 5; do
		hostvol connect /run/a.json > /run/out 2>&1 & sleep "0.$i"; kill -9 $! 2> /dev/null; wait $! 2> /dev/null
		refuses "$both" hostvol connect /run/a.json && recorded 0f1c2a9e > /dev/null || return 1
	done
}
check "a reconnect that is killed forgets nothing" interrupted
check "the stranger's volume is as it was" untouched d1
check "a person says that it is meant" hostvol forget a
check "nothing is left" nothing_left
check "now it is connected" connect a $t1 0
check "of one that works nothing is forgotten" refuses 'is what was connected' hostvol forget a
check "it ends" hostvol disconnect a
lio_unlun $t1 0 && lio_lun $t1 0 d0
stage() { csi_stage n v "{\"driverVolumeType\":\"ISCSI\",\"targetIqn\":\"$t1\",\"targetPortal\":\"127.0.0.1:3260\",\"targetLun\":\"0\",\"fencing\":\"none\"}"; }
check "the node service" csi_start n
check "the volume is staged: formatted and mounted" eval 'dd if=/dev/zero of="/run/d0.img" bs=1M count=64 conv=notrunc status=none && stage && echo kept > /run/n/kubelet/v/file'
down() { umount /run/n/kubelet/v && kill "$service" && wait "$service"; power_cut /run/n/run; }
check "the machine is down" down
check "meanwhile the LUN is a volume that looks empty" eval 'dd if=/dev/zero of=/run/d1.img bs=1M count=64 conv=notrunc status=none && reuse'
stranger=$(sum d1)
check "the node service is back" csi_start n
check "the volume is not staged" refuses "$both" stage
check "nothing was formatted" untouched d1
check "the LUN is what it was" eval 'lio_unlun $t1 0 && lio_lun $t1 0 d0'
check "and is staged with what is in it" eval 'stage && grep -q kept /run/n/kubelet/v/file'
check "it ends" csi_unstage n v
kill "$service"
check "nothing is left" nothing_left

echo "# --- portals"
check "an IPv6 portal (trap 15)" connect_as '{"driverVolumeType":"iscsi","volumeId":"six","data":{"target_iqn":"'$t1'","target_portal":"[::1]:3260","target_lun":1}}'
check "is written" written six d1
check "it ends" hostvol disconnect six
check "a portal by name (trap 15)" connect_as '{"driverVolumeType":"iscsi","volumeId":"name","data":{"target_iqn":"'$t1'","target_portal":"localhost:3260","target_lun":1}}'
check "it ends" hostvol disconnect name
others_record() { iscsiadm -m node -o new -T $t1 -p 127.0.0.1:3260 && iscsiadm -m node -T $t1 -p 127.0.0.1:3260 -o update -n node.startup -v automatic; }
check "an administrator's record" others_record
check "connected beside it" connect a $t1 0
check "it ends" hostvol disconnect a
check "the administrator's record is as it was (trap 16)" bash -c "iscsiadm -m node -T $t1 -p 127.0.0.1:3260 | grep -q 'node.startup = automatic'"
iscsiadm -m node -T $t1 -o delete
dead() { connect_as '{"driverVolumeType":"iscsi","volumeId":"dead","data":{"target_iqn":"'$t1'","target_portal":"127.0.0.1:3999","target_lun":1}}'; }
check "a portal where nobody listens" refuses 'cannot log in' dead
check "nothing is left" nothing_left

echo "# --- CHAP"
check "the target wants to know who logs in" lio_chap $t1 alice in-secret-one bob out-secret-two
check "nobody is refused" refuses 'refuses this initiator' connect a $t1 0
check "a wrong secret is refused, and not said (trap 21)" bash -c "! grep -q in-secret <<< \"\$($(declare -f refuses connect info); refuses 'refuses this initiator' connect a $t1 0 '\"authMethod\":\"CHAP\",\"authUsername\":\"alice\",\"authPassword\":\"in-secret-bad\"' 2>&1)\""
check "mutual CHAP" connect a $t1 0 '"authMethod":"CHAP","authUsername":"alice","authPassword":"in-secret-one","authUsernameIn":"bob","authPasswordIn":"out-secret-two"'
check "is written" written a d0
check "the record has no secret (trap 21)" bash -c '! grep -rq secret- /var/lib/quartermaster/hostvol'
check "the initiator's record is for root alone (trap 21)" bash -c '[ -z "$(find /etc/iscsi/nodes -type f -perm /077)" ]'
check "it ends" hostvol disconnect a
check "a target that cannot prove itself" refuses . connect a $t1 0 '"authUsername":"alice","authPassword":"in-secret-one","authUsernameIn":"bob","authPasswordIn":"out-secret-bad"'
check "nothing is left, no secret either (trap 21)" nothing_left
echo 0 > $lio/iscsi/$t1/tpgt_1/attrib/authentication

plan
