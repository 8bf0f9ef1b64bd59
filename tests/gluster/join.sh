#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A node that was killed while it joined a trusted pool that has volumes: with the half that it has stored, glusterd never
# starts again by itself. join.sh BUILD_DIR. QM_LONG: real kills, at random times; QM_SEED repeats them.
cd "$(dirname "$0")/../.." || exit 1
BUILD=$(realpath "${1:-${QM_BUILD:-build}}")
. tests/gluster/lib.sh

gluster() { local i=$1; shift; in_box "$i" gluster --mode=script "$@"; }
answers() { gluster "$1" pool list > /dev/null 2>&1; }
storage() {
	in_box "$1" unshare --pid --fork --mount-proc --kill-child "$BUILD/src/cli/quartermaster" storage < /dev/null >> "$LAB/storage$1.log" 2>&1 &
	disown $!
}
# glusterd configures geo-replication at each start, for seconds; here nothing replicates anywhere
printf '#!/bin/sh\necho gsyncd\n' > "$LAB/gsyncd"
chmod +x "$LAB/gsyncd"
lab_up 4
for i in 1 2 3 4; do
	for g in /usr/lib/*/glusterfs/gsyncd; do in_box $i mount --bind "$LAB/gsyncd" "$g"; done
done
for i in 1 2 3; do storage $i; done
for i in 1 2 3; do until_true 20 answers $i; done
ok "three glusterds answer" || { cat "$LAB"/storage*.log; exit 1; }
for i in 2 3; do gluster 1 peer probe "$(addr $i)" > /dev/null; done
three() { [ "$(gluster 1 peer status | grep -c 'Peer in Cluster (Connected)')" = 2 ]; }
until_true 20 three
for v in a b; do
	bricks=()
	for i in 1 2 3; do bricks+=("$(addr $i):$LAB/box$i/state/$v"); done
	gluster 1 volume create $v replica 3 "${bricks[@]}" force > /dev/null && gluster 1 volume start $v > /dev/null
done
is "$(gluster 3 volume list | xargs)" "a b" "they have two volumes"

# What a kill leaves: one volume, the peer that asked, not yet a friend; glusterd gives up with that.
uuid=$(sed -n 's/^UUID=//p' "$LAB/box1/lib/glusterd.info")
half() {
	rm -rf "$LAB"/box4/lib/{peers,vols,unfinished-join}
	mkdir -p "$LAB"/box4/lib/{peers,vols}
	cp -r "$LAB/box1/lib/vols/a" "$LAB/box4/lib/vols/"
	printf 'uuid=%s\nstate=%s\nhostname1=%s\n' "$uuid" "${1:-4}" "$(addr 1)" > "$LAB/box4/lib/peers/$uuid"
}
half
in_box 4 timeout 20 glusterd -N -p /run/other.pid -l /var/log/glusterfs/alone.log > /dev/null 2>&1
is $? 1 "with half a join glusterd does not start" # 124: it did
half
storage 4
until_true 30 answers 4
ok "for us it does" || cat "$LAB/storage4.log"
[ -d "$LAB/box4/lib/unfinished-join/vols/a" ] && [ -e "$LAB/box4/lib/unfinished-join/peers/$uuid" ]
ok "what it had is put aside"
is "$(gluster 4 volume list 2>&1 | xargs)" "No volumes present in cluster" "and forgotten"
member() { local i; for i in 1 2 3; do gluster $i peer status | grep -A2 -Fx "Hostname: $(addr 4)" | grep -q 'Peer in Cluster (Connected)' || return 1; done; }
# the one that leads orders the join again while the node is no peer
whole() { member || { gluster 1 pool list | grep -q "$(addr 4)" || gluster 1 peer probe "$(addr 4)" > /dev/null 2>&1; return 1; }; [ "$(gluster 4 volume list | xargs)" = "a b" ]; }
until_true 40 whole
ok "it joins anew" || { gluster 1 peer status; gluster 4 peer status; }

# the pid in our own namespace of a box's glusterd
glusterd_of() { lab_pids "${LAB_BOXES[$1]}" | while read -r p; do [ "$(cat "/proc/$p/comm" 2> /dev/null)" = glusterd ] && echo "$p"; done; }
settled() { [ "$(gluster 4 peer status | grep -c 'Peer in Cluster (Connected)')" = 3 ]; }
until_true 20 settled
kill -9 "$(glusterd_of 4)"
until_true 30 answers 4
is "$(gluster 4 volume list | xargs)" "a b" "a member that is killed keeps what it has"
kill -9 "$(glusterd_of 2)"
until_true 30 answers 2
is "$(gluster 2 volume list | xargs)" "a b" "and so does one with bricks"
[ ! -e "$LAB/box2/lib/unfinished-join" ]
ok "of which nothing is put aside"

if [ "${QM_LONG:-0}" = 0 ]; then
	skip "killed while it joins, the node is a member each time" "takes minutes: with --long, 20 times"
	plan
fi
alone() { local i; for i in 1 2 3; do ! gluster $i pool list | grep -q "$(addr 4)" || return 1; done; [ "$(gluster 4 pool list | wc -l)" = 2 ]; }
RANDOM=${QM_SEED:=$RANDOM}
echo "# QM_SEED=$QM_SEED"
rounds=20 joined=0
for ((r = 0; r < rounds; r++)); do
	gluster 1 peer detach "$(addr 4)" force > /dev/null 2>&1
	until_true 20 alone || echo "# not alone after its end"
	ms=$((RANDOM % 150))
	pid=$(glusterd_of 4)
	gluster 1 peer probe "$(addr 4)" > "$LAB/probe" 2>&1 &
	probe=$!
	sleep "0.$(printf %03d $ms)"
	kill -9 "$pid"
	wait $probe
	# one that ends again and again is started later and later
	until_true 60 answers 4
	if until_true 40 whole; then
		joined=$((joined + 1))
	else
		echo "# killed after $ms ms:"
		{
			for i in 1 4; do gluster $i peer status; tail -n 5 "$LAB/storage$i.log"; done
			grep -h ' E ' "$LAB/box4/log/glusterd.log" | tail -n 8
			find "$LAB"/box4/lib/{peers,vols} -type f -size -1 -o -type d
			grep . "$LAB"/box4/lib/peers/*
		} 2>&1 | sed 's/^/# /'
	fi
done
is "$joined" "$rounds" "killed $rounds times while it joined, the node is a member each time"
plan
