#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Storage nodes that restart under a file volume's single writer, in a kernel with device mapper: two of three bricks,
# one after the other, and the writer notices nothing; a second writer is refused at any time; a writer that was cut off
# while another had the volume is not let in again. Three boxes: one with the bricks, two nodes. QM_LONG: all three, in more rounds, and the
# node service killed at any moment of them.
# timeout: 1500
if [ -z "${QM_GUEST:-}" ]; then
	export QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-1400} QM_GUEST_MEMORY=${QM_GUEST_MEMORY:-3G}
	exec "$(dirname "$0")/run" "$0" "$@"
fi
. tests/gluster/lib.sh
. tests/lib/tap.sh
build=$PWD/${QM_BUILD:-build}
QM=$build/src/cli/quartermaster CALL=$build/tests/unit/csi/csi-call
id=v1.p.f.vol1 size=$((16 << 20)) # healing goes through all of it, and shares its locks with the writer
declare -A service

# ---- three bricks, in box 1: that a machine has all three is no matter here, and one glusterd starts sooner than three --------
gluster() { in_box 1 timeout 300 gluster --mode=script "$@"; }
strict='cluster.quorum-type auto network.ping-timeout 10 client.strict-locks on performance.write-behind off performance.flush-behind off
	performance.strict-o-direct on network.remote-dio disable performance.read-ahead off performance.readdir-ahead off performance.io-cache off
	performance.quick-read off performance.stat-prefetch off performance.open-behind off cluster.heal-timeout 5'
boxes() {
	local g
	modprobe -a loop fuse bridge veth || return 1
	printf '#!/bin/sh\necho gsyncd\n' > "$LAB/gsyncd" # see join.sh
	chmod +x "$LAB/gsyncd"
	# a brick needs a real file system
	mkdir "$LAB/bricks" && truncate -s 1G "$LAB/disk" && mkfs.ext4 -q "$LAB/disk" && mount -o loop "$LAB/disk" "$LAB/bricks" || return 1
	lab_up 3
	for g in /usr/lib/*/glusterfs/gsyncd; do in_box 1 mount --bind "$LAB/gsyncd" "$g"; done
	in_box 1 glusterd -N > "$LAB/glusterd.log" 2>&1 < /dev/null &
	disown
	wait_for 60 gluster pool list
}
volume() {
	local i bricks=()
	for i in 1 2 3; do bricks+=("$(addr 1):$LAB/bricks/$i"); done
	# shellcheck disable=SC2086 # words
	gluster volume create p replica 3 "${bricks[@]}" force && gluster volume set p $strict && gluster volume start p
}
brick_pid() {
	local p
	for p in $(lab_pids "${LAB_BOXES[1]}"); do
		tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -q "^[^ ]*glusterfsd .*--brick-name $LAB/bricks/$1 " && echo "$p"
	done
}
brick_stop() { local pid; pid=$(brick_pid "$1"); [ "$pid" ] && kill -9 "$pid"; }
bricks_start() { gluster volume start p force; }
# what a brick missed is noted by the others, in an index
healed() { ! find "$LAB"/bricks/?/.glusterfs/indices/xattrop -type f ! -name 'xattrop-*' | grep .; }
same() { [ "$(sha256sum "$LAB"/bricks/?/virtblock/vol1 | cut -d' ' -f1 | sort -u | wc -l)" = 1 ] || sha256sum "$LAB"/bricks/?/virtblock/vol1; }

# ---- two nodes, a and b, in boxes 2 and 3 --------------------------------------------------------
declare -A box=([a]=2 [b]=3)
on() { local node=$1; shift; in_box "${box[$node]}" "$@"; }
start() { # NODE
	local ns=/proc/${LAB_BOXES[${box[$1]}]}/ns
	mkdir -p "$LAB/$1/kubelet" "$LAB/$1/run"
	nsenter --net="$ns/net" --mount="$ns/mnt" -- "$QM" node --endpoint "$LAB/$1/sock" --node-id "$1" --kubelet-dir "$LAB/$1/kubelet" --no-registration \
		--state-dir "$LAB/$1/state" --run-dir "$LAB/$1/run" >> "$LAB/$1/log" 2>&1 &
	service[$1]=$!
	disown
	wait_for 30 on "$1" "$CALL" "$LAB/$1/sock" Identity.Probe
}
call() { on "$1" "$CALL" "$LAB/$1/sock" "Node.$2" "$3"; }
place() { echo "$LAB/$1/kubelet/stage"; }
stage() { # NODE [CAPABILITY]
	call "$1" NodeStageVolume "{\"volume_id\":\"$id\",\"staging_target_path\":\"$(place "$1")\",\"volume_capability\":{${2:-\"mount\":{\"fs_type\":\"ext4\"\}},\"access_mode\":{\"mode\":7}},
		\"volume_context\":{\"driverVolumeType\":\"GLUSTERFS\",\"export\":\"$(addr 1):/p\",\"name\":\"virtblock/vol1\",\"volumeId\":\"vol1\"}}"
}
unstage() { call "$1" NodeUnstageVolume "{\"volume_id\":\"$id\",\"staging_target_path\":\"$(place "$1")\"}"; }
expand() { call "$1" NodeExpandVolume "{\"volume_id\":\"$id\",\"volume_path\":\"$(place "$1")\",\"capacity_range\":{\"required_bytes\":$2}}"; }
health() { call "$1" NodeGetVolumeHealth "{\"volume_id\":\"$id\"}"; }
# it may be told first that a brick does not answer
refused() {
	local out
	for _ in 1 2 3 4 5; do
		out=$(stage b 2>&1) && { echo "it was not"; return 1; }
		grep 'FAILED_PRECONDITION.*another writer' <<< "$out" && return 0
		echo "$out"
		sleep 2
	done
	return 1
}
linears() { find /sys/block -name 'dm-*' | wc -l; }
loops() { losetup -a | grep -c virtblock/vol1; }
is_mapped() { on a findmnt -no SOURCE "$(place a)" | grep -x '/dev/dm-[0-9]*' && [ "$(linears) $(loops)" = "1 1" ] || { on a findmnt; losetup -a; dmsetup table; return 1; }; }
nothing_left() { [ "$(linears) $(loops)" = "0 0" ] || { dmsetup table; losetup -a; return 1; }; }
# the client has the file open, with its lock, on every brick
in_use() {
	local i
	for i in 0 1 2; do
		on a sh -c "cat $LAB/a/state/hostvol/mnt/*/.meta/graphs/active/p-client-$i/private" |
			awk '/remote_fd = / { open = $3 != -1 } /granted-posix-lock/ && open { good = 1 } END { exit !good }' || { echo "not on brick $((i + 1))"; return 1; }
	done
}
evidence() { tail -n 25 "$LAB"/[ab]/log; dmesg | tail -n 20; losetup -a; dmsetup table; tail -n 5 "$LAB/writer"; }

# ---- a writer: blocks with a checksum, each on disk before the next; ends at the first error -----
cat > "$LAB/writer.py" <<'END'
import os, sys, time, zlib
path, log, stop = sys.argv[1:]
fd, i, worst, last = os.open(path, os.O_RDWR | os.O_CREAT), 0, (0, 0), time.monotonic()
out = open(log, "w", buffering=1)
def block(i):
    body = (b"%020d" % i) * 204
    return body + b"%016d" % zlib.crc32(body)
try:
    while not os.path.exists(stop):
        os.pwrite(fd, block(i), i % 1000 * 4096)
        os.fsync(fd)
        i, worst = i + 1, max(worst, (time.monotonic() - last, i))
        time.sleep(.05)
        last = time.monotonic()
        if i % 10 == 0:
            out.write("%d\n" % i)
    for k in range(max(0, i - 1000), i):
        if os.pread(fd, 4096, k % 1000 * 4096) != block(k):
            raise OSError("block %d is wrong" % k)
    out.write("done: %d blocks, the longest wait %.1f s, for block %d\n" % (i, *worst))
except OSError as e:
    out.write("error at block %d: %s\n" % (i, e))
END
writer() { rm -f "$LAB/stop" "$LAB/writer"; on a python3 "$LAB/writer.py" "$(place a)/data" "$LAB/writer" "$LAB/stop" & disown; }
wrote() { sed -n 's/^\([0-9]*\)$/\1/p' "$LAB/writer" | tail -n 1; }
writes() { local before; before=$(wrote); wait_for 20 eval "[ \"\$(wrote)\" -gt ${before:-0} ]" && ! grep error "$LAB/writer"; }
writer_ends() { touch "$LAB/stop"; wait_for 30 grep -q "${1:-^done}" "$LAB/writer"; }

by_itself() { local out; modprobe loop && out=$("$build/tests/unit/csi/test-csi-linear" 2>&1) && ! grep SKIPPED <<< "$out" || { echo "$out"; return 1; }; }
check "a device above loop devices, by itself" by_itself
check "three machines" boxes
check "a volume of three bricks" volume
check "two nodes" eval 'start a && start b'
[ "$tap_failed" = 0 ] || { plan; exit 1; }
mkdir "$LAB/pool" && in_box 1 glusterfs --volfile-server="$(addr 1)" --volfile-id=p "$LAB/pool"
made() { in_box 1 mountpoint -q "$LAB/pool" && in_box 1 mkdir -p "$LAB/pool/virtblock" && in_box 1 truncate -s $size "$LAB/pool/virtblock/vol1"; }
check "a volume of a pool" wait_for 20 made

echo "# --- bricks restart, one after the other"
check "staged" stage a
check "with a device above the loop device" is_mapped
check "a second writer is refused" refused
writer
check "written" writes
rounds=${QM_LONG:+3}
for round in $(seq "${rounds:-1}"); do
	for i in 1 2 ${QM_LONG:+3}; do
		check "$round: brick $i is killed" brick_stop $i
		check "$round: the writer goes on" writes
		check "$round: a second is refused" refused
		check "$round: the brick is back" bricks_start
		check "$round: and in use again" wait_for 20 in_use
		check "$round: a second is refused" refused
		check "$round: it heals while the writer goes on" eval 'wait_for 60 healed && writes'
	done
done
check "one loop device below" is_mapped
in_box 1 truncate -s $((size * 2)) "$LAB/pool/virtblock/vol1"
check "it grows" expand a $((size * 2))
check "somebody is killed who had suspended it" eval 'dmsetup suspend --nolockfs "$(dmsetup ls | cut -f 1)" && writes'
if [ -n "${QM_LONG:-}" ]; then
	killed() { # the service, at some moment after the brick's return
		brick_stop 1 && writes && bricks_start && sleep "$((RANDOM % 3)).$((RANDOM % 10))" && kill -9 "${service[a]}" && sleep 1 && start a &&
			wait_for 20 in_use && wait_for 60 healed && writes
	}
	for round in $(seq 10); do check "killed: $round" killed; done
fi
check "the writer saw no error" writer_ends
echo "# $(tail -n 1 "$LAB/writer")"
check "its health" eval 'health a | jq -e ".volume_health.health_statuses | length == 0"'
check "unstaged" unstage a
check "nothing is left" wait_for 10 nothing_left
check "the copies are the same" eval 'wait_for 30 healed && wait_for 10 same'
check "its file system is clean" e2fsck -fn "$LAB/bricks/1/virtblock/vol1"

echo "# --- as a device"
check "staged" stage a '"block":{}'
check "a device" eval 'on a test -b "$(place a)/device" && [ "$(linears) $(loops)" = "1 1" ]'
check "stays, without users, when its service is killed" eval 'kill -9 ${service[a]} && sleep 1 && start a && sleep 3 && [ "$(linears)" = 1 ] && stage a "\"block\":{}"'
check "a brick restarts" eval 'brick_stop 2 && bricks_start && wait_for 20 in_use'
check "it is written" on a dd if=/dev/urandom of="$(place a)/device" bs=1M seek=20 count=4 oflag=direct conv=notrunc
check "unstaged" unstage a
check "nothing is left" wait_for 10 nothing_left
check "the copies are the same" eval 'wait_for 60 healed && wait_for 10 same'

echo "# --- a writer is cut off, and another has the volume meanwhile"
cut() { nsenter --net="/proc/$LAB_HUB/ns/net" ip link set p2 down && in_box 1 ss -K dst "$(addr 2)"; }
check "staged" stage a
writer
check "written" writes
below=$(losetup -a | sed -n "s|^/dev/loop\([0-9]*\):.*$LAB/a/.*|\1|p")
check "it is cut off, and the bricks drop it" cut
check "another takes the volume" wait_for 20 stage b
check "and writes" on b sh -c "echo other > $(place b)/other && sync $(place b)/other"
check "the old one comes back" nsenter --net="/proc/$LAB_HUB/ns/net" ip link set p2 up
check "its writer gets errors" wait_for 40 grep error "$LAB/writer"
# By one of two, and no other: our look at the lock, or GlusterFS's client before it. With client.strict-locks that does not open a
# descriptor again whose lock was lost (its remote_fd stays -1), and answers every call on it by itself: EBADFD.
check "it is not let in again" wait_for 30 grep -E 'not written to a copy whose brick is back: .*(lost its lock|File descriptor in bad state)' "$LAB/a/log"
check "the other goes on" on b sh -c "echo more > $(place b)/more && sync $(place b)/more"
check "and ends" unstage b
tries() { dmesg | grep -c 'capacity change from 0 to'; } # loop devices that were made
check "nor when nobody has it" eval 'n=$(tries); wait_for 70 eval "[ \$(tries) -gt $n ]"; sleep 2; dmsetup table | grep "linear 7:$below "'
check "its health says so" eval 'health a | grep CopyMissed'
check "no write of it succeeds" eval '! on a sh -c "echo late > $(place a)/late && sync $(place a)/late"'
check "its end" wait_for 60 unstage a # it may be looked at just then
check "nothing is left" wait_for 20 nothing_left
check "the file system is clean" eval 'wait_for 60 healed && wait_for 10 same && e2fsck -fn "$LAB/bricks/1/virtblock/vol1"'
check "what the other wrote is there" eval 'wait_for 20 stage b && [ "$(on b cat "$(place b)/more")" = more ] && unstage b'
plan
