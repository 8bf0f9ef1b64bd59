#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The limit of a claim, the whole way: a store on devices, in a kernel with project quota, two claims
# mounted through GlusterFS. A writer hits its claim's limit within 1 % while its neighbour goes on. Then a whole
# volume, whose limit is on all that holds its brick, what GlusterFS keeps there too: within 5 %; with QM_LONG it grows.
# Arguments name the layouts to try; all without any. Those after the first only fill a claim, with QM_LONG they do all of it.
# timeout: 1800
if [ -z "${QM_GUEST:-}" ]; then
	export QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-1700} QM_GUEST_MEMORY=${QM_GUEST_MEMORY:-3G}
	exec "$(dirname "$0")/run" "$0" "$@"
fi
set -u
. tests/lib/tap.sh
build=$PWD/${QM_BUILD:-build}
PATH=$build/src/cli:$build/hostvol:$PATH
tool=$build/tests/unit/base/quota-tool
MiB=1048576
size=$((64 * MiB))
work=/var/tmp/claim-quota
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/claim-quota

# A node for each number, each with an empty device.
nodes() {
	local i device
	modprobe loop && mkdir -p $work || return 1
	for i in $(seq "$1"); do
		truncate -s 2G "$work/disk$i" && device=$(losetup --find --show "$work/disk$i") || return 1
		cat <<-END
			---
			apiVersion: coreos.com/v1
			kind: StorageNode
			metadata: {name: n$i}
			spec:
			  type: glusterfs
			  storageNetwork: {ips: [10.119.7.$i]}
			  devices: [$device]
			  glusterfs: {zone: $i}
		END
	done > $work/nodes.yaml
}
up() { nodes "$2" && quartermaster up -f $work/nodes.yaml --volume-type "$1" --timeout 600s; }
down() { quartermaster down --delete-data && ! mountpoint -q /mnt/a && losetup --detach-all && rm -rf $work; }
claims() { local c; for c in a b; do sed "s/my-claim/$c/; s/100Mi/$size/" docs/examples/claim.yaml; echo ---; done | quartermaster apply -f -; }
# Mounting says so when nothing holds the limit; what it says otherwise must be true (limits).
mounted() {
	local out
	out=$(quartermaster mount "$1" "/mnt/$1" --timeout 600s 2>&1) || { echo "$out"; return 1; }
	echo "$out"
	! grep -q 'not enforced' <<< "$out" && mountpoint -q "/mnt/$1"
}

# on_bricks COMMAND…: on each node, with $brick and $arbiter, where its brick is mounted
on_bricks() {
	local node brick arbiter
	while read -r node brick arbiter; do
		nsenter --mount="$QM_RUN_DIR/boxes/default-$node.mnt" env brick="$brick" arbiter="$arbiter" "$@" || return 1
	done < <(quartermaster get sp -o json | jq -r '.items[].spec.bricks[] | "\(.node) \(.path) \(.arbiter)"')
}
directory() { quartermaster get pv -o json | jq -r --arg claim "$1" '.items[] | select(.spec.claimRef.name == $claim) | .spec.csi.volumeAttributes.name'; }
# limits CLAIM BYTES BRICKS: each brick of data has the limit now
limits() {
	local dir out
	dir=$(directory "$1")
	# shellcheck disable=SC2016 # for the shell on the brick
	out=$(on_bricks sh -c '"$1" get "$brick" "$2"' sh "$tool" "$dir") || { echo "$out"; return 1; }
	echo "$out"
	[ "$(grep -cw "bytes_limit=$2" <<< "$out")" = "$3" ]
}
# What a brick failed to write while others did is noted in its index, for healing. There it stays, since what lacks
# room cannot be healed; what is on its way is there too, until its writer is done with it.
nothing_to_heal() {
	local out
	# shellcheck disable=SC2016
	out=$(on_bricks sh -c 'ls "$brick/.glusterfs/indices/xattrop"') || { echo "$out"; return 1; }
	! grep -v -e '^xattrop-' -e '^$' <<< "$out"
}

# write FILE BYTES: appends; a million bytes at a time, so that the limit falls within one of them
write() { head -c "$2" /dev/zero | dd of="/mnt/$1" bs=1000000 iflag=fullblock oflag=append conv=notrunc status=none; }
used() { stat -c %s "/mnt/$1"/* | awk '{ sum += $1 } END { printf "%d\n", sum }'; }
within() { # BYTES: of the size, to 1 %
	echo "$1 of $size bytes"
	(($1 >= size / 100 * 99 && $1 <= size / 100 * 101))
}
fills() {
	refuses 'No space left on device|Disk quota exceeded' write a/rest $((size * 2)) && within "$(used a)"
}
grows() { local before; before=$(stat -c %s /mnt/b/file) && write b/file "$1" && [ "$(stat -c %s /mnt/b/file)" = $((before + $1)) ]; }

# whole BYTES: a claim of a whole volume, or its growth
whole() {
	quartermaster apply -f - <<- END
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: whole}
		provisioner: csi.quartermaster.storage
		allowVolumeExpansion: true
		parameters: {deployment: glusterfs, namespace: default, kind: whole}
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: w}
		spec:
		  storageClassName: whole
		  accessModes: [ReadWriteMany]
		  resources: {requests: {storage: "$1"}}
	END
}
about() { echo "$1, and $2 were asked for"; (($1 >= $2 / 100 * 95 && $1 <= $2 / 100 * 101)); }
whole_shows() { about "$(df -B1 --output=size /mnt/w | tail -n 1)" "$1"; }
whole_fills() { refuses 'No space left on device|Disk quota exceeded' write w/rest $(($1 * 2)) && about "$(used w)" "$1"; }

of_its_own() {
	check "whole: a claim" whole $size
	check "whole: is mounted" mounted w
	check "whole: and shows its size" wait_for 20 whole_shows $size
	check "whole: a writer hits its limit" whole_fills $size
	[ -n "${QM_LONG:-}" ] || { skip "whole: it grows, and the writer goes on to there" "takes longer: with --long"; return 0; }
	check "whole: it grows" whole $((size * 3 / 2))
	check "whole: which is seen" wait_for 20 whole_shows $((size * 3 / 2))
	check "whole: and the writer goes on to there" whole_fills $((size * 3 / 2))
}

only_fills() {
	check "$1: a writer hits the limit within 1 %" fills
	check "$1: no copy lacks what others have" wait_for 20 nothing_to_heal
	skip "$1: a neighbour, and what may be written again" "takes longer, seen here with $first: with --long"
	check "$1: down" down
}

# layout TYPE NODES LIMIT BRICKS: bytes that each brick of data may take of a claim, and how many these are
layout() {
	local neighbour
	check "$1: up, with a device a node" up "$1" "$2"
	[ $tap_failed = 0 ] || return # nothing else could be right, and all of it would wait
	check "$1: two claims" claims
	check "$1: the one is mounted, its limit in force" mounted a
	check "$1: it is, on every brick" limits a "$3" "$4"
	[ "$1" = "$first" ] || [ -n "${QM_LONG:-}" ] || { only_fills "$1"; return; }
	check "$1: the other one too" mounted b
	check "$1: on every brick" limits b "$3" "$4"
	check "$1: a file" write a/first $((8 * MiB))
	write b/file $((8 * MiB)) & neighbour=$!
	check "$1: a writer hits the limit within 1 %" fills
	echo "# $(used a) of $size bytes"
	check "$1: its neighbour wrote all the while" wait $neighbour
	check "$1: and goes on" grows $((4 * MiB))
	check "$1: not so the writer" refuses 'No space left on device|Disk quota exceeded' write a/rest $MiB
	check "$1: no copy lacks what others have" wait_for 20 nothing_to_heal
	check "$1: a file is deleted" rm /mnt/a/first
	check "$1: so the writer goes on" write a/second $((6 * MiB))
	check "$1: up to the limit again" fills
	[ "$1" != replicate:3 ] || of_its_own
	check "$1: down" down
}

[ $# -gt 0 ] || set -- replicate:3 disperse:2:1 arbiter none
first=$1
for type in "$@"; do
	case $type in
	replicate:3) layout "$type" 3 $size 3 ;;
	disperse:2:1) layout "$type" 3 $((size / 2)) 3 ;;
	arbiter) layout "$type" 3 $size 2 ;;
	none) layout "$type" 1 $size 1 ;;
	*) check "$type: no layout of this test" false ;;
	esac
done
plan
