#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nodes killed while they join a trusted pool that has volumes, on either side of the join: the node is a member in
# the end, without anybody's help. join.sh BUILD_DIR. QM_LONG: more rounds; QM_SEED repeats a run.
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
	storage $i
done
for i in 1 2 3 4; do until_true 20 answers $i; done
ok "four glusterds answer" || { cat "$LAB"/storage*.log; exit 1; }
for i in 2 3; do gluster 1 peer probe "$(addr $i)" > /dev/null; done
three() { [ "$(gluster 1 peer status | grep -c 'Peer in Cluster (Connected)')" = 2 ]; }
until_true 20 three
for v in a b; do
	bricks=()
	for i in 1 2 3; do bricks+=("$(addr $i):$LAB/box$i/state/$v"); done
	gluster 1 volume create $v replica 3 "${bricks[@]}" force > /dev/null && gluster 1 volume start $v > /dev/null
done
is "$(gluster 3 volume list | xargs)" "a b" "three of them have volumes"

# the pid in our own namespace of a box's glusterd
glusterd_of() { lab_pids "${LAB_BOXES[$1]}" | while read -r p; do [ "$(cat "/proc/$p/comm" 2> /dev/null)" = glusterd ] && echo "$p"; done; }
member() { local i; for i in 1 2 3; do gluster $i peer status | grep -A2 -Fx "Hostname: $(addr 4)" | grep -q 'Peer in Cluster (Connected)' || return 1; done; }
# the one that leads orders the join again while the node is no peer
whole() { member || { gluster 1 pool list | grep -q "$(addr 4)" || gluster 1 peer probe "$(addr 4)" > /dev/null 2>&1; return 1; }; [ "$(gluster 4 volume list | xargs)" = "a b" ]; }
alone() { local i; for i in 1 2 3; do ! gluster $i pool list | grep -q "$(addr 4)" || return 1; done; [ "$(gluster 4 pool list | wc -l)" = 2 ]; }
RANDOM=${QM_SEED:=$RANDOM}
echo "# QM_SEED=$QM_SEED"
rounds=$((${QM_LONG:-0} ? 20 : 4)) joined=0
for ((r = 0; r < rounds; r++)); do
	victim=$((r % 4 == 3 ? 1 : 4)) ms=$((RANDOM % 150))
	pid=$(glusterd_of $victim)
	gluster 1 peer probe "$(addr 4)" > "$LAB/probe" 2>&1 &
	probe=$!
	sleep "0.$(printf %03d $ms)"
	kill -9 "$pid"
	wait $probe
	# one that ends again and again is started later and later
	until_true 60 answers $victim
	if until_true 40 whole; then
		joined=$((joined + 1))
	else
		echo "# node $victim was killed after $ms ms:"
		for i in 1 4; do gluster $i peer status; tail -n 5 "$LAB/storage$i.log"; done | sed 's/^/# /'
	fi
	gluster 1 peer detach "$(addr 4)" force > /dev/null 2>&1
	until_true 20 alone || echo "# not alone after its end"
done
is "$joined" "$rounds" "killed $rounds times while it joined, the node is a member each time"
[ "$(gluster 1 volume list | xargs)" = "a b" ]
ok "the volumes are what they were"
[ -e "$LAB/box4/lib/unfinished-join" ] && echo "# half a join was put aside"
plan
