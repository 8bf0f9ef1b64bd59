#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole way, from nothing to a mounted claim and back to nothing, on real GlusterFS: what a
# person does after ./quickstart, with kills at random moments in between.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
export QM_STATE_DIR=${QM_TEST_DIR:-$(mktemp -d /var/tmp/qm-slice.XXXXXX)}/state QM_RUN_DIR
QM_RUN_DIR=/run/qm-slice.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
mnt=$QM_RUN_DIR.mnt
seed=${QM_SEED:-$RANDOM}
echo "# seed $seed (QM_SEED=$seed repeats it)"
RANDOM=$seed

# what this instance has in the kernel's common tables; other tests may run beside this one
loops() { losetup -a | grep -F "$QM_STATE_DIR"; }
links() { ip -o link | grep -F " $instance-"; }

cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$mnt" "${QM_STATE_DIR%/state}" "$QM_RUN_DIR"
}
trap cleanup EXIT

field() { quartermaster get "$1" "$2" -o json | jq -r "$3"; }
is() { [ "$(field "$1" "$2" "$3")" = "$4" ] || { field "$1" "$2" .; return 1; }; }
# the pids of this instance's programs: whose environment names its RUN, and that are no part of this test
processes() {
	local p
	grep -lzxs "QM_RUN_DIR=$QM_RUN_DIR" /proc/[0-9]*/environ 2> /dev/null | while IFS=/ read -r _ _ p _; do
		tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -Eq '^([^ ]*/)?(quartermaster|qm-gluster|gluster[a-z]*) ' && echo "$p"
	done
}
# those whose command line matches
pids_of() { local p; for p in $(processes); do tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -Eq -- "$1" && echo "$p"; done; }
kill_one() { local all; mapfile -t all < <(pids_of "$1"); [ ${#all[@]} -gt 0 ] && kill -9 "${all[RANDOM % ${#all[@]}]}"; }

claim() {
	sed "s/my-claim/$1/; s/100Mi/$2/" docs/examples/claim.yaml | quartermaster apply -f -
}
writable() { echo "$RANDOM" > "$mnt/file" && cat "$mnt/file"; }

check "up --demo, whatever KUBECONFIG names" env KUBECONFIG="$QM_STATE_DIR/none" quartermaster up --demo
check "the demonstration's claim is mounted" mountpoint -q "$QM_RUN_DIR/mnt/demo"
check "the store is ONLINE" is storagestatus glusterfs .spec.status ONLINE
check "ONLINE stands in a column" bash -c 'quartermaster get storagestatus | grep -q ONLINE'
bridge=$(ip -o route get "$(field storagenode node1 .status.address)" | sed 's/.* dev \([^ ]*\).*/\1/')
instance=${bridge%-br}
check "its loop devices are there" loops
check "its interfaces are there" links
check "up again only reports" quartermaster up --demo
check "no process twice" [ "$(pids_of 'quartermaster (api|operator|supervise|node)' | wc -l)" = 4 ]

check "a claim of one's own" claim mine 200Mi
check "it becomes Bound" wait_for 10 is pvc mine .status.phase Bound
check "it is mounted" quartermaster mount mine "$mnt"
check "it is written" writable
check "a claim bigger than any pool" claim huge 1000Gi
check "stays Pending" is pvc huge .status.phase Pending
check "and says why" wait_for 5 bash -c 'quartermaster describe pvc huge | grep -Eiq "pool|capacity|free"'
check "it goes" quartermaster delete pvc huge

for victim in 'quartermaster api' 'quartermaster operator' 'quartermaster supervise' 'quartermaster agent' 'glusterd ' 'glusterfsd .*brick'; do
	check "kill -9 of $victim" kill_one "$victim"
	check "the volume is still readable and writable" writable
	check "a claim goes through all the same" claim "after-$((RANDOM % 100000))" 10Mi
done
bound() { [ -z "$(quartermaster get pvc -o json | jq -r '.items[] | select(.status.phase != "Bound") | .metadata.name')" ]; }
check "every claim is Bound" wait_for 60 bound
healthy() { quartermaster get storagestatus glusterfs -o json | jq -e '.spec.status == "ONLINE" and .status.healPending == 0 and ([.status.conditions[] | select(.type == "Degraded" and .status == "True")] | length == 0)'; }
check "all is healed" wait_for 90 healthy

# A client takes a few seconds to find a brick that was started again; until then a second fault is one
# too many. Its own view is in the mount's .meta.
connected() {
	local f any=
	for f in "$QM_STATE_DIR"/hostvol/mnt/*/.meta/graphs/active/*-client-[0-9]*/private; do
		any=1
		grep -q 'connected = 1' "$f" || { echo "$f:"; cat "$f"; return 1; }
	done
	[ -n "$any" ]
}
check "the client has all its bricks" wait_for 60 connected

# a whole node goes: all its processes, at once
node_gone() {
	local p box all
	box=$(stat -L -c %i "$QM_RUN_DIR/boxes/default-node2.mnt")
	all=$(for p in $(processes); do [ "$(stat -L -c %i "/proc/$p/ns/mnt")" = "$box" ] && echo "$p"; done)
	[ "$(wc -w <<< "$all")" -ge 4 ] || { echo "only these live in the box: $all"; return 1; }
	# shellcheck disable=SC2086 # a word a process
	kill -9 $all
}
check "one node's processes die at once" node_gone
check "the volume is still readable and writable" writable
check "it comes back and heals" wait_for 90 healthy

grown() { # what the claim says, its volume, and the pool's own note of it
	local volume
	volume=$(quartermaster get pvc mine -o json | jq -er 'select(.status.capacity.storage == "300Mi") | .spec.volumeName') &&
		[ "$(quartermaster get pv "$volume" -o json | jq -r .spec.capacity.storage)" = 300Mi ]
}
check "a claim is asked to grow" claim mine 300Mi
check "it is larger" wait_for 20 grown
check "a claim cannot shrink" bash -c "! (sed 's/my-claim/mine/; s/100Mi/200Mi/' docs/examples/claim.yaml | quartermaster apply -f -)"
check "umount" quartermaster umount "$mnt"
check "the data was kept" bash -c "quartermaster mount mine $mnt && test -s $mnt/file && quartermaster umount $mnt"
check "delete a claim" quartermaster delete pvc mine
no_volume() { ! quartermaster get pv -o json | jq -e '.items[] | select(.spec.claimRef.name == "mine")'; }
check "its volume goes" wait_for 20 no_volume

check "down" quartermaster down
check "no process is left" [ -z "$(processes)" ]
check "up again goes on where it was" quartermaster up
check "the store is ONLINE again" is storagestatus glusterfs .spec.status ONLINE
check "down, with the data" quartermaster down --delete-data
check "no process is left" [ -z "$(processes)" ]
check "no loop device is left" [ -z "$(loops)" ]
check "no mount is left" bash -c "! grep -E 'qm-slice|$QM_RUN_DIR' /proc/self/mountinfo"
check "no interface is left" [ -z "$(links)" ]
check "no file is left" [ ! -e "$QM_STATE_DIR" -a ! -e "$QM_RUN_DIR" ]
plan
