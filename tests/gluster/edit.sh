#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Editing StorageNodes of a running store, on real GlusterFS: devices come and go, addresses change,
# nodes rest and leave, all under a volume that is being written. Nothing may be lost on the way.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
work=$(mktemp -d /var/tmp/qm-edit.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-edit.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
mnt=$work/mnt
net=10.119.$((20 + $$ % 200))
twin=/dev/qm-edit.$$
writer=

cleanup() {
	touch "$work/stop"
	[ -z "$writer" ] || wait "$writer" 2> /dev/null
	quartermaster down --delete-data --force > /dev/null 2>&1
	losetup -n -O NAME,BACK-FILE | awk -v dir="$work/" 'index($2, dir) == 1 { print $1 }' | xargs -r -n 1 losetup -d
	rm -rf "$work" "$QM_RUN_DIR" "$twin"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# ---- disks and nodes -------------------------------------------------------------------------
disk() { truncate -s "${2:-2G}" "$work/$1.img" && attach "$1"; }
attach() { losetup --find "$work/$1.img"; }
dev() { losetup -n -O NAME -j "$work/$1.img"; }

# node NUMBER DEVICE…: its StorageNode as YAML; IP, WIPE and MAINTENANCE change what they say
node() {
	local i=$1; shift
	cat <<-END
		---
		apiVersion: coreos.com/v1
		kind: StorageNode
		metadata: {name: n$i}
		spec:
		  type: glusterfs
		  storageNetwork: {ips: [${IP:-$net.$i}]}
		  devices: [$(IFS=,; echo "$*")]
		  maintenance: ${MAINTENANCE:-false}
		  glusterfs: {cluster: home, zone: $i, wipe: [${WIPE:-}]}
	END
}
apply() { node "$@" | quartermaster apply -f -; }

in_box() { local n=$1; shift; nsenter --mount="$QM_RUN_DIR/boxes/default-$n.mnt" --net="$QM_RUN_DIR/boxes/default-$n.net" -- "$@"; }
gluster() { in_box n2 gluster --mode=script "$@"; }

# ---- what is so ------------------------------------------------------------------------------
field() { quartermaster get "$1" "$2" -o json | jq -r "$3"; }
is() { [ "$(field "$1" "$2" "$3")" = "$4" ] || { field "$1" "$2" .; return 1; }; }
# that NODE's condition TYPE has this status, and a message that matches each PATTERN
says() {
	local n=$1 type=$2 status=$3 text; shift 3
	text=$(quartermaster describe storagenode "$n" | grep "^  $type ")
	grep -Eq "^  $type +$status " <<< "$text" || { echo "$text"; return 1; }
	while [ $# -gt 0 ]; do grep -Eq -- "$1" <<< "$text" || { echo "no \"$1\" in: $text"; return 1; }; shift; done
}
all_well() {
	quartermaster get storagestatus glusterfs -o json | jq -e '.spec.status == "ONLINE" and .status.healPending == 0
		and .status.nodes == .status.nodesReady and ([.status.conditions[] | select(.type == "Degraded" and .status == "True")] | length == 0)' && return
	quartermaster status
	return 1
}
pools_online() { [ "$(quartermaster get sp -o json | jq '[.items[] | select(.status.phase == "Online")] | length')" = "$1" ] || { quartermaster get sp; return 1; }; }
nodes_of() { field sp "$1" '[.spec.bricks[].node] | sort | join(" ")'; }
brick_of() { quartermaster get sn "$1" -o json | jq -r --arg p "$2" '.status.agent.bricks[] | select(.pool == $p) | .'"$3"; }
gone() { ! quartermaster get "$1" "$2" > /dev/null 2>&1; }

# a device that was let go: no signature, nobody has it open, in no box mounted
is_free() {
	[ -z "$(wipefs "$1")" ] || { wipefs "$1"; return 1; }
	python3 -c 'import os, sys; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)' "$1" || return 1
	! grep -l " $1 " /proc/[0-9]*/mounts 2> /dev/null
}
untouched() { [ "$(sha256sum < "$work/$1.img")" = "$2" ]; }
kill_program() { kill -9 "$(awk -v inode="$(stat -c %i "$QM_RUN_DIR/$1.lock")" '$6 ~ ":" inode "$" { print $5; exit }' /proc/locks)"; }

# ---- the volume ------------------------------------------------------------------------------
claim() { sed "s/my-claim/$1/; s/100Mi/$2/" docs/examples/claim.yaml | quartermaster apply -f - && wait_for 20 is pvc "$1" .status.phase Bound; }
fill() {
	local i
	for i in $(seq 40); do head -c $((RANDOM * 8)) /dev/urandom > "$mnt/f$i" || return 1; done
	(cd "$mnt" && sha256sum f*) > "$work/sums"
}
intact() { (cd "$mnt" && sha256sum -c --quiet "$work/sums"); }

# Writes files, the newest 30 of which stay, until told to stop; a sum is noted once its file is whole.
write_on() {
	local i=0 sum
	while [ ! -e "$work/stop" ]; do
		i=$((i + 1))
		head -c 100000 /dev/urandom > "$work/part" && sum=$(sha256sum < "$work/part") &&
			cp "$work/part" "$mnt/w$i.part" && mv "$mnt/w$i.part" "$mnt/w$i" || { echo "w$i failed"; return 1; }
		echo "${sum%-}w$i" >> "$work/written"
		[ $i -le 30 ] || rm "$mnt/w$((i - 30))" || return 1
	done
}
written() {
	touch "$work/stop"
	wait "$writer" || { cat "$work/writer"; return 1; }
	tail -n 30 "$work/written" > "$work/last"
	(cd "$mnt" && sha256sum -c --quiet "$work/last")
}
# until the pool's spec is what the volume is: the fewest and the most bricks that it had on the way
watch_bricks() {
	local count end=$((SECONDS + $2)) min=99 max=0
	until moved "$1"; do
		count=$(gluster volume info "$1" | grep -c '^Brick[0-9]')
		[ "$count" -ge "$min" ] || min=$count
		[ "$count" -le "$max" ] || max=$count
		[ $SECONDS -lt $end ] || { quartermaster get sp "$1" -o yaml; return 1; }
	done
	echo "from $min to $max bricks"
	[ "$min" = 3 ] && [ "$max" = 4 ]
}
moved() { field sp "$1" '([.spec.bricks[].id] | sort) == ([.status.bricks[].id] | sort) and .status.phase == "Online"' | grep -q true; }

# ---- devices -----------------------------------------------------------------------------------
for d in a1 a2 a3 b1 b2 b3 c1 c2 c3 d1 d2 d3; do disk $d || exit 1; done
{ node 1 "$(dev a1)"; node 2 "$(dev b1)"; node 3 "$(dev c1)"; } > "$work/nodes.yaml"
check "up with three nodes of a person's own" quartermaster up -f "$work/nodes.yaml"
check "the store is ONLINE" is storagestatus glusterfs .spec.status ONLINE
check "its class is there" is sc glusterfs .provisioner csi.quartermaster.storage
check "a claim is Bound" claim one 300Mi
check "it is mounted" quartermaster mount one "$mnt"
check "it is written" fill

{ node 1 "$(dev a1)" "$(dev a2)"; node 2 "$(dev b1)" "$(dev b2)"; node 3 "$(dev c1)" "$(dev c2)"; } > "$work/nodes.yaml"
check "a device more on each node" quartermaster apply -f "$work/nodes.yaml"
check "makes a second pool" wait_for 60 pools_online 2
check "which takes the next claim" claim two 300Mi
check "since it has more room" is pvc two '.metadata.annotations["quartermaster.storage/pool"]' glusterfs-2
check "all is well" wait_for 60 all_well

check "a device is removed from the spec" apply 1 "$(dev a2)"
check "it is held, and the node says what to do" wait_for 20 says n1 Emptied False Held 'add a device \(' 'claims there: default/one'
check "its brick stays" [ "$(gluster volume info glusterfs-1 | grep -c '^Brick[0-9]')" = 3 ]
check "and so does the data" intact
write_on > "$work/writer" 2>&1 &
writer=$!
check "another device is added to the same node" apply 1 "$(dev a2)" "$(dev a3)"
check "which is to have the brick" wait_for 20 is sp glusterfs-1 '[.spec.bricks[] | select(.node == "n1") | .device] | first' "$(dev a3)"
check "the volume grows to four copies before it has three again" watch_bricks glusterfs-1 90
check "the old device is free" wait_for 30 is_free "$(dev a1)"
check "the node says so" wait_for 20 says n1 Emptied True
check "the writer saw nothing of it" written
check "the data is intact" intact
check "all is well" wait_for 60 all_well

# ---- addresses, maintenance --------------------------------------------------------------------
IP=$net.222 check "another address for a node" apply 2 "$(dev b1)" "$(dev b2)"
check "is refused, with the reason" wait_for 20 says n2 AddressAccepted False "keeps its address $net.2," "instead of $net.222"
check "the old one is in force" is sn n2 .status.address "$net.2"
check "the volume goes on" intact
MAINTENANCE=true check "the old address again, and maintenance" apply 2 "$(dev b1)" "$(dev b2)"
check "the node is in maintenance" wait_for 20 is sn n2 .status.phase Maintenance
check "its address is accepted" wait_for 20 says n2 AddressAccepted True
check "one of its bricks dies" kill -9 "$(brick_of n2 glusterfs-1 pid)"
{ node 1 "$(dev a1)" "$(dev a2)" "$(dev a3)"; MAINTENANCE=true node 2 "$(dev b1)" "$(dev b2)" "$(dev b3)"
	node 3 "$(dev c1)" "$(dev c2)" "$(dev c3)"; node 4 "$(dev d1)"; } > "$work/nodes.yaml"
check "devices for another pool, the freed one among them" quartermaster apply -f "$work/nodes.yaml"
check "the pool is made" wait_for 60 is sp glusterfs-3 .status.phase Online
check "but not on that node" [ "$(nodes_of glusterfs-3)" = "n1 n3 n4" ]
check "the dead brick has not been repaired" [ "$(brick_of n2 glusterfs-1 online)" = false ]
check "its pool is Degraded" is sp glusterfs-1 .status.phase Degraded
check "the end of maintenance" apply 2 "$(dev b1)" "$(dev b2)" "$(dev b3)"
check "brings it back, and all is healed" wait_for 90 all_well
check "the data is intact" intact

# ---- a node leaves ------------------------------------------------------------------------------
check "a pool with volumes is deleted by a person" quartermaster delete sp glusterfs-2 --wait=false
check "the operator is killed" kill_program operator
check "a node is deleted meanwhile" quartermaster delete sn n3 --wait=false
check "it is held, and says by which claims" wait_for 40 says n3 Emptied False Held default/one default/two 'add a device'
check "delete says so, too" refuses 'default/one' quartermaster delete sn n3 --timeout 2s
check "the pool goes on serving" is sp glusterfs-2 .status.phase Online
# a commit that fails on one node: glusterd cannot write this file there
check "a step will fail half-way" in_box n2 sh -c 'rm -f /tmp/glusterfs-1.tcp-fuse.vol; mkdir /tmp/glusterfs-1.tcp-fuse.vol'
check "another node takes its place" apply 4 "$(dev d1)" "$(dev d2)" "$(dev d3)"
half_way() { field sp glusterfs-1 .status.message | grep -q 'failed on' || [ "$(gluster volume info glusterfs-1 | grep -c '^Brick[0-9]')" = 4 ]; }
check "it has failed" wait_for 60 half_way
check "and would not again" in_box n2 rmdir /tmp/glusterfs-1.tcp-fuse.vol
check "the node is emptied and goes" wait_for 120 gone sn n3
not_peer() { ! gluster pool list | grep -qw "$net.3"; }
check "it is no peer any more" wait_for 30 not_peer
check "its box is gone" [ ! -e "$QM_RUN_DIR/boxes/default-n3.mnt" -a ! -e "$QM_STATE_DIR/boxes/default-n3" ]
for d in c1 c2 c3; do check "its device is free" is_free "$(dev $d)"; done
check "the data is intact" intact
check "each pool has three bricks" [ "$(quartermaster get sp -o json | jq -c '[.items[].spec.bricks | length] | unique')" = '[3]' ]

# ---- devices that are not ours to take ------------------------------------------------------------
disk ext 1100M && disk small 512M || exit 1
mkfs.ext4 -q "$(dev ext)"
ln -s "$(dev ext)" "$twin"
sum=$(sha256sum < "$work/ext.img")
check "a node with devices that cannot be used" apply 3 "$(dev c1)" "$(dev ext)" "$twin" "$(dev small)" /dev/no-such-device
check "each is refused with its reason" wait_for 60 says n3 DevicesAccepted False "$(dev ext) carries data .ext4." "$twin is the same device" "$(dev small) has 512Mi" "no-such-device is not there"
WIPE=$(dev ext) check "with wipe" apply 3 "$(dev c1)" "$(dev ext)"
check "it is accepted" wait_for 30 says n3 DevicesAccepted True
check "it is untouched all the same: no pool needs it yet" untouched ext "$sum"

# ---- names that move --------------------------------------------------------------------------------
uuid=$(quartermaster get sn n1 -o json | jq -r --arg d "$(dev a3)" '.status.agent.devices[] | select(.device == $d) | .uuid')
check "down" quartermaster down
old=$(dev a3)
disks=(a1 a2 a3 b1 b2 b3 c1 d1 d2 d3 ext)
for d in "${disks[@]}"; do losetup -d "$(dev "$d")"; done
for ((i = ${#disks[@]} - 1; i >= 0; i--)); do attach "${disks[i]}"; done
check "a device has another name" [ "$(dev a3)" != "$old" ]
check "up again" quartermaster up
check "ONLINE means that a volume can be mounted" quartermaster mount one "$mnt"
check "the data is intact" intact
found() { quartermaster get sn n1 -o json | jq -e --arg u "$uuid" --arg d "$(dev a3)" '.status.agent.devices[] | select(.uuid == $u)
	| .state == "Ready" and .message == "its disk is \($d) now" and .sizeBytes == 2147483648'; }
check "the disk is known by its file system" wait_for 30 found
check "no pool is missing a brick" wait_for 60 pools_online 3

# ---- the end -----------------------------------------------------------------------------------------
volume=$(field pvc one .spec.volumeName)
on_brick() { in_box n1 find "$(brick_of n1 glusterfs-1 path)/subvol" "$(brick_of n1 glusterfs-1 path)/.quartermaster-trash" -name "*$volume*" | grep -q .; }
check "its directory is on the brick" on_brick
check "umount" quartermaster umount "$mnt"
check "both claims are deleted" quartermaster delete pvc one two
purged() { ! on_brick; }
check "the directory goes from the brick" wait_for 30 purged
check "all nodes are deleted, and go" quartermaster delete sn n1 n2 n3 n4 --timeout 90s
check "no pool is left" [ "$(quartermaster get sp -o json | jq '.items | length')" = 0 ]
check "the store is OFFLINE" wait_for 20 is storagestatus glusterfs .spec.status OFFLINE
for d in a2 a3 b1 b2 d1; do check "device $d is free" is_free "$(dev $d)"; done
check "no box is left" [ -z "$(ls "$QM_RUN_DIR/boxes" "$QM_STATE_DIR/boxes" | grep n[1-4])" ]
check "down, with the data" quartermaster down --delete-data
plan
