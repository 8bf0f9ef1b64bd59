# SPDX-License-Identifier: Apache-2.0
# Boxes for tests with a real GlusterFS: each is a network and a mount namespace in which /run and glusterd's
# directories are the box's own, on one bridge inside a namespace of its own (so nothing shows on
# the machine). Sourced by bash; everything is undone by a trap. Prints TAP.
#
#   lab_up N            boxes 1..N, addresses $(addr I)
#   in_box I CMD...     runs CMD there
#   loop_make NAME SIZE makes a sparse file and a loop device on it, sets REPLY to the device
#   ok / is / skip / plan  TAP

set -u
LAB=$(mktemp -d /var/tmp/qm-gluster.XXXXXX)
LAB_HUB= LAB_BOXES=() LAB_LOOPS=()
TAP_N=0 TAP_FAILED=0

addr() { echo "10.213.7.1$1"; }
in_box() { local i=$1; shift; nsenter --net="/proc/${LAB_BOXES[$i]}/ns/net" --mount="/proc/${LAB_BOXES[$i]}/ns/mnt" -- "$@"; }
gluster() { local i=$1; shift; in_box "$i" gluster --mode=script --glusterd-sock=/run/gluster/glusterd.socket "$@"; }

# The processes of a namespace: those that we started, whatever they were called.
lab_pids() {
	local net p
	net=$(readlink "/proc/$1/ns/net") || return 0
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/ns/net" 2>/dev/null)" = "$net" ] && echo "${p#/proc/}"
	done
}

box_up() {
	local i=$1 dir=$LAB/box$1 pid
	mkdir -p "$dir"/{lib,run,log,state}
	unshare --net --mount --propagation private sleep 100000 &
	pid=$!
	disown $pid
	LAB_BOXES[$i]=$pid
	until [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
	nsenter --net="/proc/$LAB_HUB/ns/net" ip link add "p$i" type veth peer name eth0 netns "$pid"
	nsenter --net="/proc/$LAB_HUB/ns/net" ip link set "p$i" master br0 up
	in_box "$i" ip link set lo up
	in_box "$i" ip addr add "$(addr "$i")/24" dev eth0
	in_box "$i" ip link set eth0 up
	mkdir -p /var/lib/glusterd /var/log/glusterfs
	in_box "$i" mount -t tmpfs -o mode=755 tmpfs /run
	in_box "$i" mkdir /run/gluster
	in_box "$i" mount --bind "$dir/lib" /var/lib/glusterd
	in_box "$i" mount --bind "$dir/run" /run/gluster
	in_box "$i" mount --bind "$dir/log" /var/log/glusterfs
}

lab_up() {
	local i
	unshare --net sleep 100000 &
	LAB_HUB=$!
	disown $LAB_HUB
	until [ "$(readlink /proc/$LAB_HUB/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
	nsenter --net="/proc/$LAB_HUB/ns/net" ip link add br0 type bridge
	nsenter --net="/proc/$LAB_HUB/ns/net" ip link set br0 up
	for ((i = 1; i <= $1; i++)); do box_up "$i"; done
}

lab_down() {
	local i p dev pids=()
	trap - EXIT INT TERM
	for i in "${!LAB_BOXES[@]}"; do
		mapfile -t -O "${#pids[@]}" pids < <(lab_pids "${LAB_BOXES[$i]}")
	done
	kill -9 "${pids[@]}" $LAB_HUB 2>/dev/null
	# a box lives, with its mounts, until its last process has gone
	for ((i = 0; i < 100; i++)); do
		for p in "${pids[@]}"; do
			grep -qs '^State:.[^ZX]' "/proc/$p/status" && { sleep 0.1; continue 2; }
		done
		break
	done
	sleep 0.3
	for dev in "${LAB_LOOPS[@]}"; do losetup -d "$dev" 2>/dev/null; done
	rm -rf --one-file-system "$LAB"
}
trap lab_down EXIT
trap 'exit 1' INT TERM

loop_make() {
	truncate -s "$2" "$LAB/$1.img"
	REPLY=$(losetup --find --show "$LAB/$1.img")
	LAB_LOOPS+=("$REPLY")
}

ok() {
	local rc=$?
	TAP_N=$((TAP_N + 1))
	if [ $rc = 0 ]; then echo "ok $TAP_N - $1"; else echo "not ok $TAP_N - $1"; TAP_FAILED=1; fi
	return $rc
}
is() {
	if [ "$1" = "$2" ]; then true; else echo "# got:  $1"; echo "# want: $2"; false; fi
	ok "$3"
}
# skip NAME REASON
skip() { TAP_N=$((TAP_N + 1)); echo "ok $TAP_N - $1 # SKIP $2"; }
# until_true SECONDS CMD...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -ge $end ] && return 1
		sleep 0.5
	done
}
plan() { echo "1..$TAP_N"; exit $TAP_FAILED; }
