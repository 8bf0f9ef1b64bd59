#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The other layouts on real GlusterFS, with directories as bricks: arbiter, disperse and none. In each a
# claim is written, a brick moves to another node, and the claim is reclaimed in one of three ways.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
work=$(mktemp -d /var/tmp/qm-layouts.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-layouts.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
mnt=$work/mnt
net=10.119.$((20 + $$ % 200))

cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$work" "$QM_RUN_DIR"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

node() {
	cat <<-END
		---
		apiVersion: coreos.com/v1
		kind: StorageNode
		metadata: {name: n$1}
		spec:
		  type: glusterfs
		  storageNetwork: {ips: [$net.$1]}
		  directories: [$work/dir$1]
	END
}
apply() { node "$1" | quartermaster apply -f -; }

field() { quartermaster get "$1" "$2" -o json | jq -r "$3"; }
is() { [ "$(field "$1" "$2" "$3")" = "$4" ] || { field "$1" "$2" .; return 1; }; }
gone() { ! quartermaster get "$1" "$2" > /dev/null 2>&1; }
claim() { sed "s/my-claim/data/" docs/examples/claim.yaml | quartermaster apply -f - && wait_for 20 is pvc data .status.phase Bound; }
fill() {
	local i
	for i in $(seq 30); do head -c $((RANDOM * 4)) /dev/urandom > "$mnt/f$i" || return 1; done
	(cd "$mnt" && sha256sum f*) > "$work/sums"
}
intact() { (cd "$mnt" && sha256sum -c --quiet "$work/sums"); }
healed() { field sp glusterfs-1 '.status.phase == "Online" and .status.healPending == 0' | grep -q true || { quartermaster get sp; return 1; }; }
# the new brick was not whole before, and a crawl says that it is
whole() { field sp glusterfs-1 '.status.bricks | length > 0 and all(.whole and .pid > 0)' | grep -q true || { field sp glusterfs-1 .status; return 1; }; }
# what the bricks hold of the volume: the names of its directory
on_bricks() { find "$work"/dir*/.quartermaster-*/brick/subvol "$work"/dir*/.quartermaster-*/brick/.quartermaster-trash -name "*$volume*" 2> /dev/null; }

# A node that is no member of the trusted pool yet may lead its cluster, and knows of no volume: it must not say that
# the volume has no bricks, or the one that leaves is emptied before its copy is elsewhere.
agents() { pkill "-$1" -f "agent --node default/n[123] --kubeconfig $QM_STATE_DIR"; }
clueless() { field sp glusterfs-1 .status.message | grep 'does not know it'; }
newcomer_leads() {
	agents STOP
	check "$1: while no other agent answers, a node comes" apply 4
	check "$1: and another is to leave" quartermaster delete sn "n$2" --wait=false
	check "$1: the one that came leads, and knows of no volume" wait_for 50 clueless # for a moment, every 30 s
	check "$1: which keeps its bricks" is sp glusterfs-1 '.status.bricks | length' 3
	check "$1: and the node that leaves its own" is sn "n$2" '.status.plan.release | length' 0
	agents CONT
}

# layout TYPE NODES RECLAIM LEAVING: up, a claim, node LEAVING makes way for another one
layout() {
	local type=$1 nodes=$2 reclaim=$3 leaving=$4 i
	mkdir -p "$work"/dir{1..4}
	for i in $(seq "$nodes"); do node "$i"; done > "$work/nodes.yaml"
	check "$type: up" quartermaster up -f "$work/nodes.yaml" --volume-type "$type" --reclaim "$reclaim"
	check "$type: ONLINE" is storagestatus glusterfs .spec.status ONLINE
	check "$type: a claim is Bound" claim
	volume=$(field pvc data .spec.volumeName)
	check "$type: it is mounted" quartermaster mount data "$mnt"
	check "$type: it is written" fill
	if [ "$reclaim" = delete ]; then
		newcomer_leads "$type" "$leaving"
	else
		check "$type: another node" apply 4
	fi
	check "$type: takes the place of one that leaves" quartermaster delete sn "n$leaving" --timeout 300s
	check "$type: all is healed" wait_for 60 healed
	[ "$type" = none ] || check "$type: all bricks are known to be whole" wait_for 90 whole
	check "$type: the data is intact" intact
	check "$type: nothing is left on the node that left" [ -z "$(ls -A "$work/dir$leaving")" ]
	check "$type: umount" quartermaster umount "$mnt"
	check "$type: it can be mounted again" quartermaster mount data "$mnt"
	check "$type: and read" intact
	check "$type: umount" quartermaster umount "$mnt"
	check "$type: the claim is deleted" quartermaster delete pvc data
	"reclaim_$reclaim" "$type"
	check "$type: down" quartermaster down --delete-data
	rm -rf "$work"/dir?
}
reclaim_delete() {
	purged() { [ -z "$(on_bricks)" ] || { on_bricks; return 1; }; }
	check "$1, Delete: the volume goes" wait_for 20 gone pv "$volume"
	check "$1, Delete: and its data, in the background" wait_for 30 purged
}
reclaim_retain() {
	check "$1, Retain: the volume stays" wait_for 20 is pv "$volume" .status.phase Released
	check "$1, Retain: and its data" [ -n "$(on_bricks | grep "/$volume\$")" ]
}
reclaim_archive() {
	check "$1, archive: the volume goes" wait_for 20 gone pv "$volume"
	archive=$(on_bricks | grep "/archived-[^/]*$volume\$" | head -n 1)
	check "$1, archive: its directory stays under another name" [ -d "$archive" ]
	check "$1, archive: with the data" bash -c "cd '${archive:-/nowhere}' && sha256sum -c --quiet '$work/sums'"
	check "$1, archive: a pool that has it is not destroyed" quartermaster delete sp glusterfs-1 --wait=false
	kept() { field storagestatus glusterfs .status.message | grep -q "$volume"; }
	check "$1, archive: and the status says why" wait_for 20 kept
}

layout arbiter 3 retain 3
layout disperse:2:1 3 delete 1
layout none 1 archive 1
plan
