#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 2600
# The NVMe-oF driver of hostvol against the kernel's own subsystems over TCP. A check that bears a trap's number shows
# that one of the known mistakes of such drivers is not made here.
export QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-${QM_LONG:+2}580}
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/nvmet.sh
. tests/guest/csi.sh
. tests/guest/interrupt.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
s1=nqn.2026-01.net.example:s1
s2=nqn.2026-01.net.example:s2
u1=3f1c2a9e-0000-4000-8000-000000000001
u2=3f1c2a9e-0000-4000-8000-000000000002
u3=3f1c2a9e-0000-4000-8000-000000000003

info() { # VOLUME NQN WHICH [PORTALS]
	printf '{"driverVolumeType":"NVMEOF","data":{"volumeId":"%s","targetNqn":"%s",%s,"targetPortal":%s}}\n' "$1" "$2" "$3" \
		"${4:-\"127.0.0.1:4420\"}" > "/run/$1.json"
}
connect() { info "$@" && hostvol connect "/run/$1.json"; }
controllers() { ls /sys/class/nvme 2> /dev/null | wc -l; }
count() { [ "$($1)" = "$2" ] || { echo "$($1) $1, not $2"; ls /sys/class/nvme; return 1; }; }
device() { readlink -f "$(hostvol path "$1")"; }
nothing_left() { count controllers 0 && [ "$(hostvol list --json)" = "[]" ] && [ -z "$(ls /run/quartermaster/hostvol/nvme)" ]; }
written() { dd if=/dev/urandom of=/run/data bs=1M count=4 status=none && dd if=/run/data of="$(device "$1")" bs=1M oflag=direct status=none && cmp -n 4194304 /run/data "/run/$2.img"; }

setup() {
	nvmet_start && nvmet_subsystem $s1 && nvmet_subsystem $s2 && nvmet_namespace $s1 1 n1 64M $u1 && nvmet_namespace $s1 2 n2 64M $u2 &&
		nvmet_namespace $s2 1 n3 64M $u3 && nvmet_port 1 127.0.0.1 $s1 $s2 && nvmet_port 2 127.0.0.2 $s1 && nvmet_port 3 ::1 $s1
}
check "NVMe subsystems" setup
check "a namespace by its UUID" connect a $s1 "\"volUuid\":\"$u1\""
check "one controller" count controllers 1
check "what is written reaches the subsystem" written a n1
udevadm settle
check "its path is udev's link" bash -c 'hostvol path a | grep -q ^/dev/disk/by-id/'
check "a second namespace of the subsystem, by its number" connect b $s1 '"ns_id":2'
check "shares the controller" count controllers 1
check "and is the other disk" written b n2
check "connecting again changes nothing" connect a $s1 "\"volUuid\":\"$u1\""

echo "# --- one writer"
# the kernel's subsystems have reservations since 6.13; those of this one only show that who has none is refused
stage() { csi_stage n v "{\"driverVolumeType\":\"NVMEOF\",\"targetNqn\":\"$s2\",\"nsId\":\"1\",\"targetPortal\":\"127.0.0.1:4420\",\"fencing\":\"$1\"}"; }
check "the node service" csi_start n
check "a namespace without reservations is refused" refuses 'has no persistent reservations: set fencing: none' stage reservation
check "unless fencing is none" eval 'stage none && csi_unstage n v && kill $service'
check "nothing is left of it" count controllers 1

echo "# --- use, extend, plan"
mounted() { mkfs.ext4 -q "$(device a)" && mkdir -p /mnt/a && mount "$(device a)" /mnt/a; }
check "a file system on it" mounted
check "although the other uses the subsystem too, a mounted one is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
check "hostvol disconnects the other" hostvol disconnect b
check "the controller stays for the first (trap 9)" count controllers 1
check "a mounted one is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
used() { hostvol plan --json a | jq -e '.usedBy == ["mounted at /mnt/a"] and (.steps | map(test("^disconnect from")) | any)'; }
check "plan says who uses it" used
umount /mnt/a
held() { local dev; dev=$(device a); exec 7<> "$dev"; hostvol disconnect a; local r=$?; exec 7>&-; return $r; }
check "nor is one that is opened for writing (trap 7)" refuses 'opened for writing by' held
check "the subsystem's namespace grows" nvmet_grow $s1 1 n1 128M
grown() { hostvol extend --json a | jq -e '.size == 134217728' && [ "$(blockdev --getsize64 "$(device a)")" = 134217728 ]; }
check "the volume grows with it (trap 20)" grown
check "it ends" hostvol disconnect a
check "nothing is left" nothing_left

echo "# --- paths"
check "two portals" connect a $s1 "\"vol_uuid\":\"$u1\"" '[["127.0.0.1",4420,"tcp"],["127.0.0.2",4420,"tcp"]]'
check "two controllers" count controllers 2
check "one disk (trap 4)" bash -c '[ "$(hostvol list --json | jq -r ".[0].detail.device")" = "$(readlink -f "$(hostvol path a)")" ]'
check "written" written a n1
check "one path goes" rm $nvmet/ports/1/subsystems/$s1
check "written by the other" written a n1
ln -s $nvmet/subsystems/$s1 $nvmet/ports/1/subsystems/
check "it ends" hostvol disconnect a
check "nothing is left" nothing_left
check "an IPv6 portal" connect six $s1 "\"uuid\":\"$u2\"" '"[::1]:4420"'
check "is written" written six n2
check "it ends" hostvol disconnect six

echo "# --- asymmetric access (ANA)"
both='[["127.0.0.1",4421,"tcp"],["127.0.0.1",4422,"tcp"]]'
# The path by the controller of a service: its directory, which is the disk's that the kernel hides.
path_by() { local n; for n in /sys/class/nvme/nvme*; do ! grep -q "trsvcid=$1," "$n/address" || echo "$n"/nvme*c*n"$2"; done; }
access_is() { [ "$(cat "$(path_by "$1" 1)/ana_state")" = "$2" ]; }
access() { nvmet_access $(($1 - 4417)) "$2" && wait_for 10 access_is "$1" "$2"; } # SERVICE STATE
written_by() { awk '{ print $5 }' "$(path_by "$1" 1)/stat"; } # how many writes went there
only_by() { local before other; before=$(written_by "$1") other=$(written_by "$2"); written a n1 && [ "$(written_by "$1")" -gt "$before" ] && [ "$(written_by "$2")" = "$other" ]; }
check "two more ports" eval "nvmet_service=4421 nvmet_port 4 127.0.0.1 $s1 && nvmet_service=4422 nvmet_port 5 127.0.0.1 $s1"
check "the first gives no access" nvmet_access 4 inaccessible
check "by it alone the volume is not connected" refuses 'no path to the namespace .*inaccessible' connect a $s1 "\"volUuid\":\"$u1\"" '"127.0.0.1:4421"'
check "nothing is left" nothing_left
check "by both it is" connect a $s1 "\"volUuid\":\"$u1\"" "$both"
check "two controllers" count controllers 2
check "the first still gives no access" wait_for 10 access_is 4421 inaccessible
check "writes go by the second alone" only_by 4422 4421
# A writer that goes on while access moves from one to the other.
writer() { until [ -e /run/enough ]; do dd if=/run/long of="$1" bs=64K oflag=direct status=none || return 1; done; }
dd if=/dev/urandom of=/run/long bs=1M count=8 status=none
writer "$(device a)" & pid=$!
check "access moves to the first port" access 4421 optimized
check "and goes from the second" access 4422 inaccessible
before=$(written_by 4421)
goes_on() { [ "$(written_by 4421)" -gt "$before" ]; }
check "the writer goes on by the first" wait_for 10 goes_on
touch /run/enough
check "it did not notice" wait $pid
check "all of it arrived" cmp -n 8388608 /run/long /run/n1.img
check "writes go by the first alone" only_by 4421 4422
check "the path is given" hostvol path a
check "it counts as connected" connect a $s1 "\"volUuid\":\"$u1\"" "$both"
check "no port gives access" access 4421 inaccessible
check "no path is given then" refuses 'no path to /dev/nvme.* can be used now' hostvol path a
check "one gives less than the best" access 4422 non-optimized
check "that is enough" hostvol path a
check "it is written" only_by 4422 4421
check "it ends" hostvol disconnect a
check "nothing is left" nothing_left

echo "# --- identity"
check "a missing namespace is an error (trap 4, 12)" refuses 'no namespace with UUID' connect x $s1 "\"volUuid\":\"$u3\""
check "nothing is left of it (trap 18)" nothing_left
check "a portal where nobody listens" refuses 'cannot connect' connect x $s1 "\"volUuid\":\"$u1\"" '"127.0.0.1:4999"'
check "a namespace by number" connect n $s2 '"nsId":1'
check "the subsystem gives the number to another volume" bash -c ". tests/guest/nvmet.sh; nvmet_unnamespace $s2 1 && nvmet_namespace $s2 1 n4 64M 4f1c2a9e-0000-4000-8000-000000000004"
check "its path is not given any more (trap 1)" refuses . hostvol path n
check "it ends" hostvol disconnect n
nvmet_unnamespace $s2 1 && nvmet_namespace $s2 1 n3 64M $u3
check "nothing is left" nothing_left
delete_all() { local n; for n in /sys/class/nvme/nvme*/delete_controller; do echo 1 > "$n"; done; wait_for 10 count controllers 0; }
# What a power cut takes: controllers, the volatile directory. Records stay.
power_cut() { delete_all && rm -rf /run/quartermaster/hostvol; }
sum() { sync && sha256sum < /run/n4.img; }
both='uuid.4f1c2a9e.*and was uuid.3f1c2a9e.*hostvol forget n'
recorded() { hostvol list --json n | jq -e --arg s "$1" 'all(.[]; .detail.identity | test($s)) and length > 0'; }
check "a namespace by number" connect n $s2 '"nsId":1'
check "the host is down" power_cut
check "meanwhile the number is another volume" eval 'dd if=/dev/urandom of=/run/n4.img bs=1M count=64 status=none && nvmet_unnamespace $s2 1 && nvmet_namespace $s2 1 n4 64M 4f1c2a9e-0000-4000-8000-000000000004'
stranger=$(sum)
check "another consumer is refused" refuses "$both" hostvol connect --consumer other /run/n.json
check "so is who had it, with both identities (trap 1)" refuses "$both" connect n $s2 '"nsId":1'
check "nothing of it is on this host" count controllers 0
check "the record says what it was" recorded uuid.3f1c2a9e
check "the stranger's volume is as it was" eval '[ "$(sum)" = "$stranger" ]'
check "a person says that it is meant" hostvol forget n
check "now it is connected" connect n $s2 '"nsId":1'
check "and recorded" recorded uuid.4f1c2a9e
check "it ends" hostvol disconnect n
nvmet_unnamespace $s2 1 && nvmet_namespace $s2 1 n3 64M $u3
check "nothing is left" nothing_left

echo "# --- others' controllers"
theirs() { # [HOST-NQN [HOST-ID]]
	exec 3<> /dev/nvme-fabrics && printf 'transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=%s,hostnqn=%s,hostid=%s' $s1 "${1:-$(cat /etc/nvme/hostnqn)}" "${2:-$(cat /etc/nvme/hostid)}" >&3 && exec 3>&-
}
check "an administrator's controller" theirs
check "is used" connect a $s1 "\"volUuid\":\"$u1\""
check "it ends" hostvol disconnect a
check "and stays (trap 9)" count controllers 1
check "gone" delete_all

echo "# --- who this host is"
other=66666666-7777-8888-9999-aaaaaaaaaaaa
says() { local pattern=$1 out; shift; out=$("$@" 2>&1) && grep -Eq -- "$pattern" <<< "$out" || { echo "said: $out"; return 1; }; }
silent() { local out; out=$("$@" 2>&1 > /dev/null) && [ -z "$out" ] || { echo "said: $out"; return 1; }; }
connect_as() { connect a $s2 "\"volUuid\":\"$u3\",$1"; }
verbose_connect() { info a $s2 "\"volUuid\":\"$u3\"" && hostvol -v connect /run/a.json; }
check "a controller with this host's identifier and another name" theirs "nqn.2014-08.org.nvmexpress:uuid:$other"
check "is warned of (trap 5)" says "damage each other's data" connect a $s2 "\"volUuid\":\"$u3\""
check "it ends" hostvol disconnect a
check "gone" delete_all
check "a controller with this host's name and another identifier" theirs "$(cat /etc/nvme/hostnqn)" $other
check "is warned of (trap 5)" says "damage each other's data" connect a $s2 "\"volUuid\":\"$u3\""
check "it ends" hostvol disconnect a
check "a name alone brings the identifier in it" connect_as "\"hostNqn\":\"nqn.2014-08.org.nvmexpress:uuid:${other/6/5}\""
check "not the file's (trap 5)" bash -c "cat /sys/class/nvme/nvme*/hostid | grep -qx ${other/6/5}"
check "it ends" hostvol disconnect a
check "gone" delete_all
check "one name, one identifier: nothing is said" silent connect a $s2 "\"volUuid\":\"$u3\""
check "it ends" hostvol disconnect a
mv /etc/nvme/hostid /etc/nvme/hostid.right && echo $other > /etc/nvme/hostid
check "an identifier that is not the name's is spoken of (trap 5)" says 'if this host was cloned' verbose_connect
check "it ends" hostvol disconnect a
mv /etc/nvme/hostid.right /etc/nvme/hostid
check "nothing is left" nothing_left

echo "# --- how long a subsystem may be away"
gives_up_after() { [ "$(cat /sys/class/nvme/nvme*/ctrl_loss_tmo)" = "$1" ]; }
check "ten minutes (trap 22)" connect a $s2 "\"volUuid\":\"$u3\""
check "are set" gives_up_after 600
check "it ends" hostvol disconnect a
check "for ever" connect_as '"ctrl_loss_tmo":-1'
check "is set" gives_up_after off
check "it ends" hostvol disconnect a
check "less than a minute is warned of (trap 22)" says 'not written yet is lost' connect_as '"ctrlLossTmo":"30"'
check "and set" gives_up_after 30
check "it ends" hostvol disconnect a
check "seconds are a number" refuses 'no number' connect_as '"ctrlLossTmo":"soon"'
nvmet_access 4 optimized
check "a volume by one port" connect a $s1 "\"volUuid\":\"$u1\"" '"127.0.0.1:4421"'
device=$(device a)
check "the port goes" rm $nvmet/ports/4/subsystems/$s1
away() { [ "$(cat /sys/class/nvme/nvme*/state)" = connecting ]; }
check "its controller tries to come back" wait_for 10 away
dd if=/run/long of="$device" bs=1M count=2 oflag=direct status=none & pid=$!
check "no path is given meanwhile" refuses 'no path to /dev/nvme.* can be used now' hostvol path a
check "the port comes back" ln -s $nvmet/subsystems/$s1 $nvmet/ports/4/subsystems/
check "what was written meanwhile is not lost (trap 22)" wait $pid
check "it arrived" cmp -n 2097152 /run/long /run/n1.img
check "the path is given" hostvol path a
check "it ends" hostvol disconnect a
check "nothing is left" nothing_left

echo "# --- interruptions"
info a $s1 "\"volUuid\":\"$u1\""
info c $s2 "\"volUuid\":\"$u3\""
reuse() { :; }
is_right() { [ "$(cat "/sys/class/block/$(basename "$(readlink -f "$1")")/uuid")" = $u1 ]; }
check "killed at any time, the next call ends in order" interrupt_all a is_right nothing_left reuse
stampede_info() { local unit=($2); info "$1" "${unit[0]}" "\"volUuid\":\"${unit[1]}\""; }
is_stamped() { local unit=($2); [ "$(cat "/sys/class/block/$(basename "$(readlink -f "$1")")/uuid")" = "${unit[1]}" ]; }
check "16 processes on two subsystems" stampede 16 is_stamped "$s1 $u1" "$s1 $u2" "$s2 $u3"
check "nothing is left" nothing_left
plan
