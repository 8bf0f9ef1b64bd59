#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The agents of four storage nodes on a real GlusterFS, against the embedded API; this script plays
# the operator. agent.sh [BUILD_DIR]
# timeout: 600
cd "$(dirname "$0")/../.." || exit 1
BUILD=$(realpath "${1:-${QM_BUILD:-build}}")
. tests/gluster/lib.sh
driver=$BUILD/tests/unit/agent/agent-driver
NODES=4
LINK=/dev/shm/${LAB##*/}.link
declare -A DEV AGENT BRICKS

export KUBECONFIG=$LAB/api/admin.kubeconfig
get() { "$driver" get "$1" default "$2" | jq -r "${3:-.}"; }
patch() { "$driver" patch "$1" default "$2" "$3" "$4"; }
gluster() { local i=$1; shift; in_box "$i" gluster --mode=script "$@"; }
has() { [ "$(get "$1" "$2" "$3")" = "$4" ]; }

api_up() {
	"$driver" api "$LAB/api" "$LAB/api" 2>> "$LAB/api.log" &
	API=$!
	disown $API
	until_true 10 test -s "$KUBECONFIG"
}
# exec: the pid kept is the agent's own, which is to be killed later
# One that was killed may take a while to be gone, and there is only one at a time.
agent_is_gone() { ! grep -qs '^State:.[^ZX]' "/proc/${AGENT[$1]:-none}/status"; }
agent_up() {
	until_true 20 agent_is_gone "$1"
	(
		export QM_RUN_DIR=$LAB/box$1/qm
		exec nsenter --net="/proc/${LAB_BOXES[$1]}/ns/net" --mount="/proc/${LAB_BOXES[$1]}/ns/mnt" -- \
			"$driver" agent --node "default/n$1" --kubeconfig "$KUBECONFIG" --state-dir "$LAB/box$1/state"
	) >> "$LAB/agent$1.log" 2>&1 &
	AGENT[$1]=$!
	disown "${AGENT[$1]}"
}
node_up() {
	jq -n --arg n "n$1" --arg ip "$(addr "$1")" --arg z "$1" --argjson devices "$2" --argjson dirs "${3:-[]}" '{
		apiVersion: "coreos.com/v1", kind: "StorageNode", metadata: {name: $n, namespace: "default"},
		spec: {type: "glusterfs", storageNetwork: {ips: [$ip]}, devices: $devices, directories: $dirs,
		       glusterfs: {cluster: "c1", zone: ($z | tonumber)}}}' > "$LAB/node.json"
	"$driver" create "$LAB/node.json" && patch storagenode "n$1" status "$(jq -n --arg n "box$1" '{status: {nodeName: $n}}')" || return
	agent_up "$1"
}
# brick NODE ID SOURCE POOL: adds to the node's plan; a source is a device or a directory
# Node 2 is of an earlier version: the brick of its device lies at the root of the file system.
brick_path() {
	[[ $3 == /dev/* ]] || { echo "$3/.quartermaster-$2/brick"; return; }
	[ "$1" = 2 ] && echo "$LAB/box$1/bricks/$2/brick" || echo "$LAB/box$1/bricks/$2/.quartermaster-$2/brick"
}
brick() {
	BRICKS[$1]="${BRICKS[$1]:-}${BRICKS[$1]:+,}$(jq -nc --arg id "$2" --arg s "$3" --arg pool "$4" \
		--arg path "$(brick_path "$@")" '{id: $id, path: $path, pool: $pool, wipe: false} +
		if $s | startswith("/dev/") then {device: $s} else {directory: $s} end')"
}
# orders NODE [RELEASE]
orders() {
	patch storagenode "n$1" status "$(jq -nc --arg ip "$(addr "$1")" --argjson bricks "[${BRICKS[$1]:-}]" \
		--argjson release "${2:-[]}" --argjson peers "$(for i in $(seq $NODES); do addr "$i"; done | jq -R . | jq -sc .)" '
		{status: {plan: {epoch: 1, cluster: "c1", address: $ip, maintenance: false, peers: $peers, detach: [],
		bricks: $bricks, release: $release}}}')"
}
ready() { has storagenode "n$1" "[.status.agent.bricks[] | select(.id == \"$2\") | .mounted] | first" true; }
# pool_bricks NODE:ID:SOURCE[:arbiter]...: PREPARED=false until their nodes have them ready, as the operator does
pool_bricks() {
	local b n id s a
	for b in "$@"; do
		IFS=: read -r n id s a <<< "$b"
		jq -nc --arg n "n$n" --arg ip "$(addr "$n")" --arg id "$id" --arg s "$s" --arg path "$(brick_path "$n" "$id" "$s")" \
			--argjson arbiter "$([ -n "$a" ] && echo true || echo false)" --argjson prepared "${PREPARED:-true}" '{
			id: $id, node: $n, address: $ip, path: $path, arbiter: $arbiter, prepared: $prepared} + if $s | startswith("/dev/") then {device: $s} else {directory: $s} end'
	done | jq -sc .
}
pool_up() {
	local name=$1 type=$2
	shift 2
	jq -n --arg n "$name" --arg t "$type" --argjson bricks "$(pool_bricks "$@")" '{
		apiVersion: "coreos.com/v1", kind: "StoragePool", metadata: {name: $n, namespace: "default",
		labels: {"quartermaster.storage/cluster": "c1"}},
		spec: {type: "glusterfs", deployment: "d", cluster: "c1", volumeType: $t, epoch: 1, bricks: $bricks}}' > "$LAB/pool.json"
	"$driver" create "$LAB/pool.json"
}
pool_set() {
	local name=$1
	shift
	patch storagepool "$name" "" "{\"spec\": {\"bricks\": $(pool_bricks "$@")}}"
}
online() { has storagepool "$1" .status.phase Online; }
volume_pids() { in_box "$1" sh -c "cat /run/gluster/vols/$2/*.pid"; }
brick_back() { local pid; pid=$(volume_pids "$1" "$2" 2> /dev/null) && [ -n "$pid" ] && [ "$pid" != "$3" ] && [ -d "/proc/$pid" ]; }
mounted_at() { [ -n "$(find "$LAB/mnt" -maxdepth 1 -name 'f*' -print -quit)" ]; }
sums() { in_box 1 sh -c "cd $LAB/mnt && sha256sum f* | sha256sum"; }
shutdown_agents() { for i in "${!AGENT[@]}"; do kill -9 "${AGENT[$i]}" 2> /dev/null; done; kill -9 "$API" 2> /dev/null; }
trap 'shutdown_agents; rm -f "$LINK"*; lab_down' EXIT

lab_up $NODES
api_up
ok "the API answers" || exit 1
for i in $(seq $NODES); do
	loop_make "d$i" 1100M
	DEV[$i]=$REPLY
	mkdir -p "$LAB/box$i/dir"
	ln -s "$REPLY" "$LINK$i"
	node_up "$i" "[\"$REPLY\", \"$LINK$i\"]" "[\"$LAB/box$i/dir\"]" || { echo "Bail out! no node"; exit 1; }
done
running() { has storagenode "n$1" .status.agent.glusterd.running true; }
until_true 60 running 4 && until_true 30 running 1
ok "agents start glusterd and report"
is "$(get storagenode n1 '.status.agent.devices[0] | .state + " " + .majorMinor')" \
	"Available $(stat -c '%Hr:%Lr' "${DEV[1]}")" "the device is reported as available"
is "$(get storagenode n1 '.status.agent.devices[1] | .state + " " + .reason')" "Refused Duplicate" \
	"the same device under another name is refused"

three=("1:b-000000000001:${DEV[1]}" "2:b-000000000002:${DEV[2]}" "3:b-000000000003:${DEV[3]}")
PREPARED=false pool_up p-1 replicate:3 "${three[@]}" "4:b-000000000004:${DEV[4]}"
for i in 1 2 3 4; do brick "$i" "b-00000000000$i" "${DEV[$i]}" p-1; orders "$i"; done
prepared() { ready 1 b-000000000001 && ready 2 b-000000000002 && ready 3 b-000000000003 && ready 4 b-000000000004; }
until_true 60 prepared
ok "bricks are formatted, mounted and marked" || get storagenode n1
is "$(in_box 1 blkid -p -o value -s UUID "${DEV[1]}")" "$(get storagenode n1 '.status.agent.devices[0].uuid')" \
	"the recorded UUID is that of the file system"
# Two machines are started again, and their agents are not there yet. Node 2's brick is known not to be mounted; node 3's
# is not, and gluster is told to use it: it can make none where the brick's own directory is not.
for i in 2 3; do
	kill -STOP "${AGENT[$i]}"
	in_box "$i" umount "$LAB/box$i/bricks/b-00000000000$i"
done
patch storagenode n2 status "$(get storagenode n2 '{status: {agent: {bricks: [.status.agent.bricks[] | .mounted = false]}}}')"
pool_set p-1 "${three[@]}"
listed() { in_box "$1" ls -A "$LAB/box$1/bricks/b-00000000000$1" || echo "it cannot be listed"; }
says() { [[ $(get storagepool p-1 .status.message) == *"$1"* ]]; }
until_true 60 says "n2 to mount its brick"
ok "a brick that is not mounted is awaited" || get storagepool p-1 .status
is "$(listed 2)" "" "and nothing is made in its place"
kill -9 "${AGENT[2]}"
agent_up 2
until_true 60 says "No such file or directory"
ok "gluster cannot make one that is not there" || get storagepool p-1 .status
is "$(listed 3)" "" "nor has it made anything in its place"
kill -9 "${AGENT[3]}"
agent_up 3
until_true 60 online p-1
ok "a pool of three copies comes online" || { get storagepool p-1; tail -n 5 "$LAB"/agent*.log; }
is "$(gluster 1 volume info p-1 | sed -n 's/^cluster.quorum-type: //p;s/^client.strict-locks: //p' | xargs)" "on auto" \
	"its options are set"
mkdir "$LAB/mnt"
in_box 1 mount -t glusterfs "$(addr 1):/p-1" "$LAB/mnt"
in_box 1 sh -c "cd $LAB/mnt && for i in 1 2 3 4 5 6 7 8 9; do head -c 1000000 /dev/urandom > f\$i; done"
before=$(sums)

pid=$(volume_pids 2 p-1)
kill -9 "$pid"
until_true 40 brick_back 2 p-1 "$pid"
ok "a killed brick is started again"
kill -9 "${AGENT[3]}" "$(in_box 3 cat /run/glusterd.pid)"
agent_up 3
alive() { p=$(in_box 3 cat /run/glusterd.pid) && grep -q glusterd "/proc/$p/cmdline"; }
until_true 20 alive
ok "agent and glusterd, both killed, are back"
is "$(get storagenode n3 '[.status.agent.devices[] | select(.brick) | .state] | join(" ")')" Ready "its brick was found again"
is "$(sums)" "$before" "the data is whole"
until_true 60 online p-1
ok "the pool is healthy again" || get storagepool p-1 .status

pool_set p-1 "${three[@]:0:2}" "4:b-000000000004:${DEV[4]}"
moved() { has storagepool p-1 '[.status.bricks[].id] | sort | join(" ")' "b-000000000001 b-000000000002 b-000000000004" && online p-1; }
until_true 90 moved
ok "a brick is replaced: added, healed, the old one removed" || { get storagepool p-1 .status; tail -n 5 "$LAB"/agent*.log; }
is "$(sums)" "$before" "the data is whole"
is "$(in_box 4 sh -c "cd $(brick_path 4 b-000000000004 "${DEV[4]}") && sha256sum f* | sha256sum")" "$before" "the new brick has all of it"
BRICKS[3]=
orders 3 '["b-000000000003"]'
released() { [ "$(blkid -p "${DEV[3]}" -o value -s TYPE)" = "" ] && has storagenode n3 '.status.agent.bricks | length' 0; }
until_true 30 released
ok "the released device is free again"
is "$(get storagenode n3 '.status.agent.devices[0].state')" Available "and offered again"
in_box 1 umount "$LAB/mnt"

for i in 1 2 3; do
	brick "$i" "b-00000000001$i" "$LAB/box$i/dir" p-2
	orders "$i"
done
dirs=("1:b-000000000011:$LAB/box1/dir" "2:b-000000000012:$LAB/box2/dir" "3:b-000000000013:$LAB/box3/dir")
PREPARED=false pool_up p-2 disperse:2:1 "${dirs[@]}"
prepared2() { ready 1 b-000000000011 && ready 2 b-000000000012 && ready 3 b-000000000013; }
until_true 60 prepared2
pool_set p-2 "${dirs[@]}"
until_true 60 online p-2
ok "a dispersed pool on directories comes online" || { get storagepool p-2; get storagenode n1 .status.agent; }
is "$(get storagepool p-2 '.status.capacityBytes > .status.freeBytes')" true "its capacity is reported"
moving=("${dirs[@]:0:2}" "4:b-000000000014:$LAB/box4/dir")
PREPARED=false pool_set p-2 "${moving[@]}"
brick 4 b-000000000014 "$LAB/box4/dir" p-2
orders 4
until_true 20 ready 4 b-000000000014
pool_set p-2 "${moving[@]}"
moved2() { has storagepool p-2 '[.status.bricks[].id] | sort | join(" ")' "b-000000000011 b-000000000012 b-000000000014" && online p-2; }
until_true 60 moved2
ok "a dispersed pool's brick is replaced" || get storagepool p-2 .status
BRICKS[3]=
orders 3 '["b-000000000013"]'
tree_gone() { [ ! -e "$LAB/box3/dir/.quartermaster-b-000000000013" ]; }
until_true 20 tree_gone
ok "the tree of the old brick is removed"
is "$(test -d "$LAB/box3/dir" && echo there)" there "its directory stays"

patch storagepool p-2 "" '{"metadata": {"finalizers": ["quartermaster.storage/pool"]}}'
"$driver" delete storagepool default p-2
sleep 2
gluster 1 volume info p-2 > /dev/null
ok "a deleted pool's volume stays while it may hold somebody's data"
patch storagepool p-2 "" '{"metadata": {"annotations": {"quartermaster.storage/empty": "true"}}}'
gone() { has storagepool p-2 .status.phase Deleted && ! gluster 1 volume info p-2 > /dev/null 2>&1; }
until_true 30 gone
ok "once it is known to be empty it is stopped and deleted" || get storagepool p-2

# names come again: a volume is its pool's by the uid that it is marked with, and by its id
is "$(gluster 1 volume info p-1 | sed -n 's/^user.quartermaster-pool: //p')" "$(get storagepool p-1 .metadata.uid)" \
	"a volume is marked with the uid of its pool"
gluster 1 volume create p-4 "$(addr 1):$LAB/box1/stranger" force > /dev/null &&
	gluster 1 volume set p-4 user.quartermaster-pool another > /dev/null && gluster 1 volume start p-4 > /dev/null
ok "a volume of another pool has the name of a new one"
BRICKS[1]=
brick 1 b-000000000001 "${DEV[1]}" p-1
brick 1 b-000000000041 "$LAB/box1/dir" p-4
orders 1 '["b-000000000011"]'
PREPARED=false pool_up p-4 none "1:b-000000000041:$LAB/box1/dir"
until_true 60 ready 1 b-000000000041
pool_set p-4 "1:b-000000000041:$LAB/box1/dir"
blocked() { [[ $(get storagepool p-4 .status.message) == *"stays untouched"* ]]; }
until_true 30 blocked
ok "it is not taken for the pool's" || get storagepool p-4 .status
is "$(get storagepool p-4 '.status.volumeId // "none"')" none "nor is its id reported"
patch storagepool p-4 "" '{"metadata": {"finalizers": ["quartermaster.storage/pool"], "annotations": {"quartermaster.storage/empty": "true"}}}'
"$driver" delete storagepool default p-4
gone4() { has storagepool p-4 .status.phase Deleted; }
until_true 30 gone4
is "$(gluster 1 volume info p-4 | sed -n 's/^Status: //p')" Started "it does not go with the pool" || get storagepool p-4
gluster 1 volume stop p-4 force > /dev/null && gluster 1 volume delete p-4 > /dev/null
patch storagepool p-4 "" '{"metadata": {"finalizers": []}}'
BRICKS[1]=
brick 1 b-000000000001 "${DEV[1]}" p-1
orders 1 '["b-000000000011", "b-000000000041"]'
tree4_gone() { [ ! -e "$LAB/box1/dir/.quartermaster-b-000000000041" ]; }
until_true 30 tree4_gone

for i in 1 2 3; do
	BRICKS[$i]=
	brick "$i" "b-00000000000$i" "${DEV[$i]}" p-1
	brick "$i" "b-00000000002$i" "$LAB/box$i/dir" p-3
	[ "$i" = 3 ] && BRICKS[3]= && brick 3 b-000000000023 "$LAB/box3/dir" p-3
	orders "$i" "[\"b-00000000001$i\"]"
done
arbitrated=("1:b-000000000021:$LAB/box1/dir:arbiter" "2:b-000000000022:$LAB/box2/dir" "3:b-000000000023:$LAB/box3/dir")
PREPARED=false pool_up p-3 arbiter "${arbitrated[@]}"
prepared3() { ready 1 b-000000000021 && ready 2 b-000000000022 && ready 3 b-000000000023; }
until_true 60 prepared3
pool_set p-3 "${arbitrated[@]}"
until_true 60 online p-3
ok "a pool with an arbiter comes online" || get storagepool p-3 .status
is "$(gluster 1 volume info p-3 | sed -n 's/^Brick3: \(.*\) (arbiter)$/\1/p')" \
	"$(addr 1):$(brick_path 1 b-000000000021 "$LAB/box1/dir")" "its arbiter is the brick that was named"

# node 3 dies for good; the rest lets it go once its brick is gone
patch storagepool p-3 "" '{"metadata": {"finalizers": ["quartermaster.storage/pool"], "annotations": {"quartermaster.storage/empty": "true"}}}'
"$driver" delete storagepool default p-3
gone3() { has storagepool p-3 .status.phase Deleted; }
until_true 40 gone3
kill -9 "${AGENT[3]}" "$(in_box 3 cat /run/glusterd.pid)"
for i in 1 2 4; do
	patch storagenode "n$i" status "$(jq -nc --arg a "$(addr 3)" --argjson peers "$(for k in 1 2 4; do addr $k; done | jq -R . | jq -sc .)" \
		'{status: {plan: {peers: $peers, detach: [$a]}}}')"
done
detached() { [ "$(gluster 1 pool list | grep -c "$(addr 3)")" = 0 ]; }
until_true 60 detached
ok "a node that is down and empty leaves the trusted pool" || gluster 1 pool list
plan
