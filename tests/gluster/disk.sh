#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Disks of a running store of three nodes, on real GlusterFS: one is replaced under its own name, as operations.md says;
# the name of another moves while its brick runs; an old one comes back. The pool is whole again without another step,
# nothing that is written is lost, and no disk is erased that holds a brick.
# timeout: 600
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
work=$(mktemp -d /var/tmp/qm-disk.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-disk.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
mnt=$work/mnt
net=10.118.$((20 + $$ % 200))
names=/dev/qm-disk.$$ # names that stay, as those in /dev/disk/by-path do

cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	losetup -n -O NAME,BACK-FILE | awk -v dir="$work/" 'index($2, dir) == 1 { print $1 }' | xargs -r -n 1 losetup -d
	rm -rf "$work" "$QM_RUN_DIR" "$names"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
[ -c /dev/loop-control ] || { echo "1..0 # SKIP no loop devices"; exit 0; }

# ---- disks and nodes -------------------------------------------------------------------------
disk() { truncate -s "${2:-2G}" "$work/$1.img" && losetup --find "$work/$1.img"; }
dev() { losetup -n -O NAME -j "$work/$1.img"; }
# plug NAME DISK: the name leads to that disk from now on
plug() { ln -sfn "$(dev "$2")" "$names/$1"; }
node() {
	cat <<-END
		---
		apiVersion: coreos.com/v1
		kind: StorageNode
		metadata: {name: n$1}
		spec:
		  type: glusterfs
		  storageNetwork: {ips: [$net.$1]}
		  devices: [$names/$1]
		  glusterfs: {cluster: home, zone: $1, wipe: [${WIPE:-}]}
	END
}
apply() { node "$@" | quartermaster apply -f -; }
in_box() { local n=$1; shift; nsenter --mount="$QM_RUN_DIR/boxes/default-$n.mnt" --net="$QM_RUN_DIR/boxes/default-$n.net" -- "$@"; }

# A disk dies: its brick's process and mount are gone, and it is on no bus any more.
unplug() {
	local path
	path=$(brick "$1" path)
	kill -9 "$(brick "$1" pid)"
	for _ in $(seq 100); do
		in_box "$1" umount -l "${path%/.quartermaster-*}" 2> /dev/null
		[ -z "$(dev "$2")" ] || losetup -d "$(dev "$2")"
		[ -n "$(dev "$2")" ] || return 0
		sleep .1
	done
	return 1
}

# It fails under its running brick: nothing can be read or written any more, and who serves it finds out by and by.
die() { truncate -s 0 "$work/$2.img" && losetup -c "$(dev "$2")"; }

# ---- what is so ------------------------------------------------------------------------------
field() { quartermaster get "$1" "$2" -o json | jq -r "$3"; }
brick() { quartermaster get sn "$1" -o json | jq -r --arg id "$(id_of "$1")" '.status.agent.bricks[] | select(.id == $id) | .'"$2"; }
id_of() { quartermaster get sp -o json | jq -r --arg n "$1" '.items[0].spec.bricks[] | select(.node == $n) | .id'; }
device() { quartermaster get sn "$1" -o json | jq -e --arg d "$names/${1#n}" '.status.agent.devices[] | select(.device == $d)' | jq -s '.[0] | '"$2"; }
uuid_on() { blkid -p -s UUID -o value "$1"; }
# same and other: of two things that are known
same() { [ -n "$1" ] && [ "$1" = "$2" ] || { echo "\"$1\", not \"$2\""; return 1; }; }
other() { [ -n "$1" ] && [ -n "$2" ] && [ "$1" != "$2" ] || { echo "\"$1\" and \"$2\""; return 1; }; }
# a disk that can be read and has no signature
unsigned() {
	local disk found
	disk=$(dev "$1")
	[ -b "$disk" ] && found=$(wipefs "$disk") && [ -z "$found" ] || { echo "$1 is \"$disk\": ${found:-it cannot be read}"; return 1; }
}
# the pool is whole: three bricks that are the spec's, all serving, known to be whole, nothing left to heal
whole() {
	quartermaster get sp -o json | jq -e '.items | length == 1 and (.[0] | .status.phase == "Online" and .status.healPending == 0
		and ([.spec.bricks[].id] | sort) == ([.status.bricks[].id] | sort) and ([.status.bricks[] | select(.online and .whole != false)] | length) == 3)' && return
	quartermaster get sp -o yaml
	return 1
}
# what a copy holds, by its names and sums; gluster's own marks aside
copy() {
	local path
	path=$(brick "$1" path)
	in_box "$1" sh -c "cd '$path' && find . -path ./.glusterfs -prune -o -path ./.quartermaster-trash -prune -o -type f -print0 | sort -z | xargs -0r sha256sum"
}
copies_equal() { [ -n "$(copy n1)" ] && [ "$(copy n1)" = "$(copy n2)" ] && [ "$(copy n1)" = "$(copy n3)" ]; }
fill() {
	local i
	for i in $(seq 20); do head -c $((RANDOM * 8)) /dev/urandom > "$mnt/$1$i" || return 1; done
	(cd "$mnt" && sha256sum "$1"*) >> "$work/sums"
}
intact() { (cd "$mnt" && sha256sum -c --quiet "$work/sums"); }
claim() { sed "s/my-claim/one/; s/100Mi/300Mi/" docs/examples/claim.yaml | quartermaster apply -f - && wait_for 20 bound; }
bound() { [ "$(field pvc one .status.phase)" = Bound ]; }

mkdir "$names"
for d in a b c a2 b2; do disk $d || exit 1; done
plug 1 a; plug 2 b; plug 3 c
for n in 1 2 3; do node $n; done > "$work/nodes.yaml"
check "three nodes, each with a disk by a name that stays" quartermaster up -f "$work/nodes.yaml"
check "a claim" claim
check "is mounted" quartermaster mount one "$mnt"
check "and written" fill before
check "the pool is whole" wait_for 60 whole

# ---- a name moves under a running brick ---------------------------------------------------------
id=$(id_of n2)
serving=$(brick n2 pid)
check "the name of a disk leads to another, empty one while its brick runs" plug 2 b2
WIPE=$names/2 check "which may even be erased" apply 2
is_elsewhere() { device n2 '.state == "Ready" and (.message | startswith("its disk is"))' | grep -q true; }
check "the brick is found by its file system" wait_for 60 is_elsewhere
check "it is the same brick" same "$(id_of n2)" "$id"
check "and its process has gone on" same "$(brick n2 pid)" "$serving"
check "the other disk is untouched" unsigned b2
check "the pool is whole" wait_for 60 whole
check "it has its name again" plug 2 b
WIPE='' check "and is not to be erased" apply 2
check "the pool is whole" wait_for 60 whole

# ---- a disk is replaced under its own name --------------------------------------------------------
id=$(id_of n1)
uuid=$(uuid_on "$(dev a)")
check "a disk dies" unplug n1 a
is_missing() { device n1 '.state == "Missing"' | grep -q true; }
check "which its node says" wait_for 60 is_missing
check "the volume goes on" fill during
check "its brick is not given up for that" same "$(id_of n1)" "$id"
check "a new disk has its name" plug 1 a2
check "the pool is whole again, without another step" wait_for 120 whole
replaced() { other "$(id_of n1)" "$id" && device n1 '.state == "Ready"' | grep -q true; }
check "with a new brick there" wait_for 30 replaced
check "whose device is the name of the spec" [ "$(quartermaster get sp -o json | jq -r '.items[0].spec.bricks[] | select(.node == "n1") | .device')" = "$names/1" ]
check "on the new disk" [ "$(device n1 .uuid)" = "\"$(uuid_on "$(dev a2)")\"" ]
check "every copy is the same" wait_for 60 copies_equal
check "the data is intact" intact

# ---- the old one comes back ------------------------------------------------------------------------
disk a
check "the old disk comes back under another name" same "$(uuid_on "$(dev a)")" "$uuid"
reported() { quartermaster get sn n1 -o json | jq -e --arg u "$uuid" '.status.agent.devices[] | select(.uuid == $u) | .state == "Refused" and .reason == "OldDisk"'; }
WIPE=$names/1 check "whatever had this name may be erased" apply 1
check "it is reported" wait_for 60 reported
check "the name leads to it" plug 1 a
look_again() { WIPE='' apply 1 && WIPE=$names/1 apply 1; }
check "and its node looks again" look_again
is_on_a2() { device n1 '.state == "Ready" and .message == "its disk is '"$(dev a2)"' now"' | grep -q true; }
check "the new one is used all the same" wait_for 60 is_on_a2
check "the old one is neither used nor erased" same "$(uuid_on "$(dev a)")" "$uuid"
check "the pool is whole" wait_for 60 whole
check "the names are right again" plug 1 a2
WIPE='' check "for its node, too" apply 1

# ---- the same by way of the spec ---------------------------------------------------------------------
check "the pool is whole" wait_for 60 whole
id=$(id_of n3)
nothing() { node 3 | sed 's/devices: .*/devices: []/' | quartermaster apply -f -; }
writing_until() { local i; for i in $(seq 60); do fill "dying$i-" || return 1; "$@" > /dev/null && return; sleep 1; done; return 1; }
two_online() { quartermaster get sp -o json | jq -e '[.items[0].status.bricks[] | select(.online)] | length == 2'; }
two_whole() { quartermaster get sp -o json | jq -e '[.items[0].status.bricks[] | select(.online and .whole)] | length == 2'; }
marked() { quartermaster get sp -o json | jq -e '[.items[0].status.bricks[] | select(.whole)] | length == 3'; }
check "all copies are known to be whole" wait_for 120 marked
check "another disk dies under its brick, and the volume goes on meanwhile" die n3 c
check "until that is known" writing_until two_online
check "the other two are known to be whole all the same" wait_for 30 two_whole
check "its device is removed from the spec" nothing
held() { quartermaster describe storagenode n3 | grep -E '^  Emptied +False ' | grep -q Held; }
check "its brick is held: nothing else can take it" wait_for 60 held
disk c2
check "a new disk has its name" plug 3 c2
check "and is added to the spec" apply 3
check "the pool is whole again" wait_for 120 whole
check "with a new brick there" other "$(id_of n3)" "$id"
check "every copy is the same" wait_for 60 copies_equal
check "the data is intact" intact
check "umount" quartermaster umount "$mnt"
check "down, with the data" quartermaster down --delete-data
plan
