#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `quartermaster storage` as the first process of a namespace, as in a storage pod, with a real glusterd below it.
# storage.sh BUILD_DIR. QM_LONG: more rounds.
cd "$(dirname "$0")/../.." || exit 1
BUILD=$(realpath "${1:-build}")
. tests/gluster/lib.sh

gluster() { shift; in_box 1 gluster --mode=script "$@"; }
lab_up 1
in_box 1 unshare --pid --fork --mount-proc --kill-child "$BUILD/src/cli/quartermaster" storage < /dev/null > "$LAB/storage.log" 2>&1 &
disown $!
until_true 20 gluster 1 pool list > /dev/null 2>&1
ok "glusterd answers" || { cat "$LAB/storage.log" "$LAB"/box1/log/glusterd.log | tail -n 20; exit 1; }
first=$(lab_pids "${LAB_BOXES[1]}" | while read -r p; do grep -qzs '^storage$' "/proc/$p/cmdline" && grep -qs '^NSpid:.*\b1$' "/proc/$p/status" && echo "$p"; done)
inside() { in_box 1 nsenter --pid="/proc/$first/ns/pid" --mount="/proc/$first/ns/mnt" -- "$@"; }

# Children of others that end all the time, while bricks start: none of them may lose its pid file, by which
# glusterd knows that it runs.
inside bash -c 'while :; do (sleep 0.002 &); sleep 0.004; done' < /dev/null > /dev/null 2>&1 &
disown $!
bricks=()
for b in 1 2 3; do bricks+=("$(addr 1):$LAB/box1/state/b$b"); done
gluster 1 volume create v replica 3 "${bricks[@]}" force > "$LAB/create" 2>&1
ok "a volume of three bricks" || cat "$LAB/create"
online() { gluster 1 volume status v | awk '/^Brick/ { name = 1 } name && $(NF - 1) == "Y" { n++; name = 0 } END { print n + 0 }'; }
all_online() { [ "$(online)" = 3 ]; }
rounds=$((${QM_LONG:-0} ? 100 : 5)) seen=0
for ((i = 0; i < rounds; i++)); do
	gluster 1 volume start v > /dev/null && until_true 20 all_online && seen=$((seen + 1))
	gluster 1 volume stop v force > /dev/null
done
is "$seen" "$rounds" "started $rounds times, all bricks are seen each time" || gluster 1 volume status v

# A brick that dies is forgotten at once, so that its number cannot be taken for another process.
gluster 1 volume start v > /dev/null
until_true 20 all_online
pid_file=$(inside find /run/gluster/vols/v -name '*b2.pid')
inside kill -9 "$(inside cat "$pid_file")"
forgotten() { ! inside test -s "$pid_file"; }
until_true 10 forgotten
ok "a dead brick's number is forgotten"
gluster 1 volume start v force > /dev/null && until_true 20 all_online
ok "and it starts again"

# glusterd dies, bricks go on, and the next glusterd knows them.
before=$(inside cat "$pid_file")
inside kill -9 "$(inside cat /run/glusterd.pid 2> /dev/null || inside pgrep -x glusterd)"
until_true 30 gluster 1 pool list > /dev/null 2>&1 && until_true 30 all_online
ok "glusterd comes back and sees all bricks"
is "$(inside cat "$pid_file")" "$before" "which have gone on"
plan
