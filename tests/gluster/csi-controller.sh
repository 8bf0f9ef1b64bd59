#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The CSI controller on a real pool, beyond what csi-sanity asks: crowds of calls, the operator killed while it works,
# data through snapshots and clones, what belongs to claims, who may call. Needs root.
# timeout: 900
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
dir=${QM_TEST_DIR:-$(mktemp -d /var/tmp/qm-csi.XXXXXX)}
export QM_STATE_DIR=$dir/state QM_RUN_DIR=/run/qm-csi.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
call=$PWD/$build/tests/unit/csi/csi-call
sock=$QM_RUN_DIR/csi.sock
node=$QM_RUN_DIR/node.sock

cleanup() {
	local m
	for m in "$dir"/mnt/*; do umount -l "$m" 2> /dev/null; done
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf --one-file-system "$dir" "$QM_RUN_DIR"
}
trap cleanup EXIT

mount_cap='{"mount":{},"access_mode":{"mode":1}}'
# create NAME [MEMBERS]: a directory of 10 MiB; prints its id
create() { "$call" "$sock" Controller.CreateVolume "{\"name\":\"$1\",\"capacity_range\":{\"required_bytes\":10485760},\"volume_capabilities\":[${cap:-$mount_cap}]${2:+,$2}}" | jq -er .volume.volume_id; }
create_block() { cap='{"block":{},"access_mode":{"mode":1}}' create "$@"; }
delete() { "$call" "$sock" Controller.DeleteVolume "{\"volume_id\":\"$1\"}"; }
snapshot() { "$call" "$sock" Controller.CreateSnapshot "{\"name\":\"$1\",\"source_volume_id\":\"$2\"}"; }
ready() { snapshot "$1" "$2" | jq -e .snapshot.ready_to_use; }
# again COMMAND…: as an orchestrator does, until it is not told to come again
again() {
	local end=$((SECONDS + 90)) out
	until out=$("$@" 2>&1); do
		[[ $out == *ABORTED* || $out == *UNAVAILABLE* || $out == *DEADLINE* ]] && [ $SECONDS -lt $end ] || { echo "$out"; return 1; }
		sleep .1
	done
	echo "$out"
}
records() { quartermaster get pv -o json | jq -r '.items[].metadata.name | select(startswith("csi-"))'; }
count() { [ "$(records | wc -l)" = "$1" ] || { records; return 1; }; }
operator_pid() { pgrep -f "^[^ ]*quartermaster operator .*$QM_STATE_DIR/" | head -n 1; }
kill_once() { local p; p=$(operator_pid) && kill -9 "$p"; }
kill_operator() { wait_for 10 kill_once; } # it may just be starting again

# publish ID NAME: mounted on $dir/mnt/NAME by the node service
publish() {
	local id=$1 target=$dir/mnt/$2 context
	mkdir -p "$dir/stage-$2" "$dir/mnt"
	context=$("$call" "$sock" Controller.ControllerGetVolume "{\"volume_id\":\"$id\"}" | jq -c .volume.volume_context) || return 1
	"$call" "$node" Node.NodeStageVolume "{\"volume_id\":\"$id\",\"staging_target_path\":\"$dir/stage-$2\",\"volume_capability\":$mount_cap,\"volume_context\":$context}" &&
		"$call" "$node" Node.NodePublishVolume "{\"volume_id\":\"$id\",\"staging_target_path\":\"$dir/stage-$2\",\"target_path\":\"$target\",\"volume_capability\":$mount_cap,\"volume_context\":$context}"
}
unpublish() {
	"$call" "$node" Node.NodeUnpublishVolume "{\"volume_id\":\"$1\",\"target_path\":\"$dir/mnt/$2\"}" &&
		"$call" "$node" Node.NodeUnstageVolume "{\"volume_id\":\"$1\",\"staging_target_path\":\"$dir/stage-$2\"}"
}

check "up --demo" quartermaster up --demo
check "the controller answers" wait_for 10 "$call" "$sock" Identity.Probe
check "only root may call" refuses 'PERMISSION_DENIED|UNAVAILABLE' setpriv --reuid=65534 --clear-groups "$call" "$sock" Identity.Probe
check "nor open the socket" [ "$(stat -c %a "$sock")" = 600 ]

# ---- crowds
crowd() { # crowd NUMBER NAMES: that many calls at a time for so many names; prints the ids
	local i
	for ((i = 0; i < $1; i++)); do again create "crowd $((i % $2))" & done
	wait
}
crowd 60 6 > "$dir/ids" 2>&1
check "60 calls for 6 names: 6 ids, and nothing else was said" [ "$(sort -u "$dir/ids" | grep -c '^v1\.')" = 6 -a "$(sort -u "$dir/ids" | wc -l)" = 6 ]
check "there are 6 volumes" count 6
one=$(head -n 1 "$dir/ids")
check "nobody takes them for a claim's" bash -c 'quartermaster get pv -o json | jq -e "[.items[] | select(.metadata.name | startswith(\"csi-\")) | .status.phase == \"Released\" and .spec.persistentVolumeReclaimPolicy == \"Retain\"] | all"'
for id in $(sort -u "$dir/ids"); do for _ in 1 2 3; do again delete "$id" & done; done > "$dir/gone" 2>&1
wait
check "each is deleted three times at once" count 0
check "a deleted one is not found" refuses NOT_FOUND "$call" "$sock" Controller.ControllerGetVolume "{\"volume_id\":\"$one\"}"

# ---- what belongs to a claim
claimed=$(quartermaster get pv -o json | jq -r '[.items[] | select(.spec.claimRef.name == "demo")][0].spec.csi.volumeHandle')
check "the volume of a claim is not deleted" refuses 'FAILED_PRECONDITION.*claim default/demo' delete "$claimed"
check "nor grown" refuses FAILED_PRECONDITION "$call" "$sock" Controller.ControllerExpandVolume "{\"volume_id\":\"$claimed\",\"capacity_range\":{\"required_bytes\":1073741824}}"

# ---- sizes
check "a volume of some text" create 'Ein/../Name ☃'
id=$(create 'Ein/../Name ☃')
check "it grows" [ "$("$call" "$sock" Controller.ControllerExpandVolume "{\"volume_id\":\"$id\",\"capacity_range\":{\"required_bytes\":31457280}}" | jq .capacity_bytes)" = 31457280 ]
check "and its record says so to the agents" [ "$(quartermaster get pv "${id##*.}" -o json | jq -r .spec.capacity.storage)" = 30Mi ]
check "what no pool has is refused" refuses RESOURCE_EXHAUSTED "$call" "$sock" Controller.CreateVolume "{\"name\":\"huge\",\"capacity_range\":{\"required_bytes\":109951162777600},\"volume_capabilities\":[$mount_cap]}"
check "and leaves nothing" count 1
check "it is removed" delete "$id"

# ---- data
src=$(create source)
check "a volume is published" publish "$src" source
check "and written" bash -c "mkdir -p '$dir/mnt/source/a/b' && head -c 3000000 /dev/urandom > '$dir/mnt/source/a/b/file' && ln -s file '$dir/mnt/source/a/b/link' && sync -f '$dir/mnt/source'"
sum() { (cd "$dir/mnt/$1" && find . -type f -exec sha256sum {} + | sort && find . -type l -printf '%p %l\n'); }
check "a snapshot becomes ready" wait_for 30 ready snap "$src"
snap=$(snapshot snap "$src" | jq -r .snapshot.snapshot_id)
sum source > "$dir/before"
check "the source changes after it" bash -c "rm -r '$dir/mnt/source/a' && echo new > '$dir/mnt/source/new'"
check "a volume of the snapshot" again create restored "\"volume_content_source\":{\"snapshot\":{\"snapshot_id\":\"$snap\"}}"
restored=$(create restored "\"volume_content_source\":{\"snapshot\":{\"snapshot_id\":\"$snap\"}}")
check "is published" publish "$restored" restored
check "and has what the source had then" bash -c "$(declare -f sum); dir='$dir'; sum restored | diff '$dir/before' -"
check "a clone" again create clone "\"volume_content_source\":{\"volume\":{\"volume_id\":\"$src\"}}"
clone=$(create clone "\"volume_content_source\":{\"volume\":{\"volume_id\":\"$src\"}}")
check "is published" publish "$clone" clone
check "and has what the source has now" grep -qx new "$dir/mnt/clone/new"
check "one name, another source" refuses ALREADY_EXISTS create clone
check "a source of another kind" refuses INVALID_ARGUMENT create_block other "\"volume_content_source\":{\"volume\":{\"volume_id\":\"$src\"}}"
for v in source restored clone; do
	case $v in source) id=$src ;; restored) id=$restored ;; clone) id=$clone ;; esac
	check "$v is unpublished" unpublish "$id" $v
	check "$v is deleted" delete "$id"
done
check "the snapshot outlives its source" [ "$("$call" "$sock" Controller.ListSnapshots "{\"snapshot_id\":\"$snap\"}" | jq '.entries | length')" = 1 ]
check "and is deleted" "$call" "$sock" Controller.DeleteSnapshot "{\"snapshot_id\":\"$snap\"}"

# ---- the operator dies at any moment: repeating the calls leads to the same
rounds=$([ "${QM_LONG:-}" ] && echo 50 || echo 6)
killed=0
for ((round = 0; round < rounds; round++)); do
	: > "$dir/ids"
	for i in 1 2 3 4; do (again create "killed $round $i" >> "$dir/ids" 2>&1) & done
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
	kill_operator && killed=$((killed + 1))
	wait
	for id in $(grep '^v1\.' "$dir/ids"); do (again delete "$id" >> "$dir/gone" 2>&1) & done
	sleep "0.0$((RANDOM % 10))"
	kill_operator && killed=$((killed + 1))
	wait
	[ "$(grep -c '^v1\.' "$dir/ids")" = 4 ] || break
done
check "in $rounds rounds every volume was made" [ $round = "$rounds" ]
# the supervisor waits longer after each death, so not every kill finds one
check "the operator was killed in between" [ $killed -ge $rounds ]
check "and at the end no record is left" wait_for 15 count 0
check "down" quartermaster down --delete-data --force
plan
