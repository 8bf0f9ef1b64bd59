#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A deployment at work while what it depends on fails: in each case no event is lost, nothing is made
# twice, and nobody has to help. A witness makes and deletes claims all the time; after each fault
# every claim must be bound to one volume of its own, with one directory in a pool. Prints TAP.
# QM_SEED: which moments the kills come at.
# timeout: 900
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh
RANDOM=$((${QM_SEED:=$(date +%s)} % 32768))
echo "# QM_SEED=$QM_SEED"
pki=${KUBECONFIG%/*}
server=$(jq -r '.clusters[0].cluster.server' "$KUBECONFIG")
wire=${server#https://}
wire=${wire%.*}
w=w-$$- # names of its claims begin so
witness=
outside=

own_cleanup() {
	local n
	lab etcd-start 2> /dev/null
	[[ ! $witness ]] || kill "$witness"
	[[ ! $outside ]] || kill "$outside"
	[[ ! $own_lab ]] || return
	# claims first, it takes the operator to let go of them; what the operator outside held, nobody does any more
	kubectl -n faults delete pvc --all --timeout=60s
	for n in $(kubectl -n faults get storagenodes,storagestatus -o name); do
		kubectl -n faults patch "$n" --type=merge -p '{"metadata": {"finalizers": null}}'
	done
	kubectl delete clusterrolebinding faults-outside
}

api() { curl -sf --max-time 10 --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" "$@"; }

# ---- the deployment

# serving POOLS: the deployment as it should be, with nothing twice
serving() {
	q get storagestatus glusterfs -o json | jq -e --argjson pools "$1" \
		'.spec.status == "ONLINE" and .status.nodesReady >= 3 and .status.pools == $pools' &&
		q get storagepools -o json | jq -e --argjson pools "$1" '(.items | length) == $pools and
			([.items[].status | .phase == "Online" and .healPending == 0] | all)' &&
		q get deployments -o json | jq -e '[.items[].metadata.name | select(startswith("storage-node"))] ==
			[range(1; 4) | "storage-node\(.)-agent", "storage-node\(.)-storage"]'
}

# ---- the witness

claim_json() {
	printf '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"%s"},"spec":{"storageClassName":"%s",
		"accessModes":["ReadWriteMany"],"resources":{"requests":{"storage":"%s"}}}}' "$1" "${2:-glusterfs}" "${3:-1Mi}"
}
claims=$server/api/v1/namespaces/faults/persistentvolumeclaims
make_claim() { claim_json "$@" | api -o /dev/null -H 'Content-Type: application/json' --data-binary @- "$claims"; }

# Claims one after the other, and every third of them is deleted again a little later. What is
# not answered is asked again: a claim that was made after all is made only once.
testify() {
	local n=$1
	trap 'exit 0' TERM
	while :; do
		n=$((n + 1))
		until make_claim "$w$n" || api -o /dev/null "$claims/$w$n"; do sleep .2; done
		((n % 3)) || until api -o /dev/null -X DELETE "$claims/$w$((n - 2))"; do
			api -o /dev/null "$server/readyz" && ! api -o /dev/null "$claims/$w$((n - 2))" && break
			sleep .2
		done
		echo "$n" > "$work/made"
		sleep .2
	done
}
begin() {
	testify "$(cat "$work/made" 2> /dev/null || echo 0)" > /dev/null 2>&1 &
	witness=$!
}
end() {
	kill "$witness"
	wait "$witness" 2> /dev/null
	witness=
}
made() { cat "$work/made" 2> /dev/null || echo 0; }
# Claims that are made from now on are bound, while more are made. (Those of 3n + 1 are deleted again.)
goes_on() {
	local wanted=$(($(made) + ${1:-3}))
	((wanted % 3 != 1)) || wanted=$((wanted + 1))
	wait_for 60 is_bound "$w$wanted"
}
is_bound() { [ "$(kubectl -n faults get pvc "$1" -o jsonpath='{.status.phase}')" = Bound ]; }

# Claims, volumes and directories are the same set, on every node.
directories() { lab exec "$1" find "/var/lib/quartermaster/nodes/quartermaster.storage-node$1" -type d -regex '.*/subvol/../../pvc-[^/]*' -printf '%f\n' | sort; }
one_each() {
	local n
	kubectl -n faults get pvc -o json > "$work/claims" && kubectl get pv -l quartermaster.storage/deployment=glusterfs -o json > "$work/volumes" || return
	jq -e '[.items[] | select(.metadata.name | startswith("w-")) | .status.phase] | length > 0 and all(. == "Bound")' "$work/claims" || return
	jq -r '.items[] | select(.metadata.name | startswith("w-")) | "pvc-" + .metadata.uid + " " + .spec.volumeName' "$work/claims" | sort > "$work/wanted"
	jq -r '.items[] | .metadata.name + " " + .metadata.name + (if .status.phase == "Bound" then "" else " " + .status.phase end)' "$work/volumes" | sort > "$work/there"
	diff "$work/wanted" "$work/there" || return
	for n in 1 2 3; do diff <(cut -d ' ' -f 1 "$work/wanted") <(directories "$n") || return; done
	[ "$(jq -r '.items[].spec.claimRef.uid' "$work/volumes" | sort | uniq -d)" = '' ]
}
settled() { end; wait_for 90 one_each && wait_for 90 serving "$1" || evidence; }
# What a failure is to be found from, since the lab is gone when somebody reads of it: the most telling last.
evidence() {
	local n
	for n in 1 2 3; do
		lab exec "$n" tail -n 3 "/var/lib/quartermaster/nodes/quartermaster.storage-node$n/log/glusterd.log" | cut -c -300
		q logs "deployment/storage-node$n-agent" --tail=4
	done
	for n in $(operators); do q logs "$n" --tail=4; done
	q get leases,storagenodes
	q get storagenodes -o json | jq -c '.items[] | [.metadata.name, .status.phase, (.status.agent.bricks[] | [.pool, .online, .pending])]'
	q get storagepools -o json | jq -c '.items[] | [.metadata.name, .status.phase, .status.message, .status.healPending, .status.bricks, [.spec.bricks[].prepared]]'
	return 1
}

# ---- operators

leader() { q get lease operator-glusterfs -o jsonpath='{.spec.holderIdentity}' | cut -d _ -f 1; }
node_of() { q get pod "$1" -o jsonpath='{.spec.nodeName}' | tr -d -c 0-9; }
operators() { q get pod -l quartermaster.storage/role=operator -o jsonpath='{.items[*].metadata.name}'; }
# signal_pod POD SIGNAL: its operator's process
pid_in() { lab exec "$1" bash -c 'for p in $(grep -lzx operator /proc/[0-9]*/cmdline); do
	! grep -qszx "HOSTNAME=$0" "${p%/*}/environ" || echo "${p//[^0-9]/}"; done' "$2"; }
signal_pod() { local n; n=$(node_of "$1") && lab exec "$n" bash -c 'date +%s.%N && kill "$@"' - "-$2" "$(pid_in "$n" "$1")" > "$work/when"; }
another_leads() { local now; now=$(leader); [ -n "$now" ] && [ "$now" != "$1" ]; }
# Killed, and gone for good: a pod in its place starts at once, where a container would wait ever longer.
kill_leader() {
	local pod
	pod=$(leader)
	signal_pod "$pod" KILL && q delete pod "$pod" --force --grace-period=0
}
seconds_to_take_over() {
	local taken
	taken=$(q get lease operator-glusterfs -o jsonpath='{.spec.acquireTime}')
	echo "$(date -d "$taken" +%s.%N) $(cat "$work/when")" | awk '{printf "%.1f", $1 - $2}'
}

check "images are built and imported" images
namespace faults
check "three nodes, one pool" eval 'install && wait_for 120 serving 1'
begin
check "claims are made and bound" goes_on 5
check "one volume and one directory each" settled 1

# ---- the API server, etcd

api_killed() { lab apiserver-stop && lab apiserver-start && goes_on; }
etcd_hangs() { lab etcd-stop && sleep 30; lab etcd-start && goes_on; }
begin
check "the API server is killed and comes back" api_killed
check "no claim is lost, none is bound twice" settled 1
begin
check "etcd hangs for 30 s" etcd_hangs
check "no claim is lost, none is bound twice" settled 1

# ---- operators that die, or that think they lead

# While a second pool is being made: each life of the operator begins where the last one ended.
second_devices() {
	local n
	for n in 1 2 3; do
		q patch storagenode "storage-node$n" --type=json -p "[{\"op\": \"add\", \"path\": \"/spec/devices/-\", \"value\": \"$(lab disk "$n" 2G)\"}]" || return
	done
}
killed_mid_plan() {
	local i was
	second_devices || return
	for i in 1 2; do
		was=$(leader)
		sleep "$((RANDOM % 3)).$((RANDOM % 10))"
		kill_leader && wait_for 60 another_leads "$was" || return
		echo "$(seconds_to_take_over)" >> "$work/took"
	done
	wait_for 120 serving 2 || evidence
}
begin
check "the leading operator is killed twice while it makes a second pool" killed_mid_plan
echo "# seconds from kill -9 to the next one's lease: $(xargs < "$work/took")"
check "no claim is lost, none is bound twice, two pools" settled 2

# One that was stopped in its tracks believes that it leads when it goes on.
two_at_once() {
	local was
	was=$(leader)
	signal_pod "$was" STOP && wait_for 60 another_leads "$was" && goes_on &&
		signal_pod "$was" CONT && goes_on && another_leads "$was"
}
begin
check "two operators: one hangs, the other takes over, the first goes on" two_at_once
check "no effect twice" settled 2

# ---- a kubelet

node_is() { [ "$(kubectl get node "node$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
kubelet_stops() { lab kubelet-stop 2 && wait_for 90 node_is 2 Unknown && goes_on; }
kubelet_returns() { lab kubelet-start 2 && wait_for 60 node_is 2 True; }
bricks_of_2() { q get storagenode storage-node2 -o json | jq -e '[.status.agent.bricks[].online] | length == 2 and all'; }
begin
check "a node's kubelet is stopped: claims go on" kubelet_stops
check "its bricks serve on" bricks_of_2
check "it returns" kubelet_returns
check "no claim is lost, none is bound twice" settled 2

# ---- a watch cut in half

# What the API server sends over the connections that are open now never arrives, and nobody is told.
sever() {
	local pod n pid ports
	for pod in $(operators); do
		n=$(node_of "$pod") && pid=$(pid_in "$n" "$pod") || return
		ports=$(lab exec "$n" nsenter -t "$pid" -n ss -Htn state established dport = :443 | awk '{sub(/.*:/, "", $3); print $3}' | sort -u | paste -sd ,)
		[ -n "$ports" ] || return
		lab exec "$n" nsenter -t "$pid" -n nft "add table inet cut; add chain inet cut in { type filter hook input priority 0; };
			add rule inet cut in tcp dport { $ports } drop" || return
	done
}
mend() {
	local pod n
	for pod in $(operators); do
		n=$(node_of "$pod") && lab exec "$n" nsenter -t "$(pid_in "$n" "$pod")" -n nft delete table inet cut
	done
}
severed() { sever && goes_on 2; }
begin
check "watches cut in half: operators notice by themselves" severed
mend > /dev/null 2>&1
check "no claim is lost, none is bound twice" settled 2

# ---- a token that is no longer good

# An operator outside the cluster whose token is refused from now on, until its file has another.
token() {
	kubectl -n faults create secret generic "$1" > /dev/null 2>&1
	kubectl -n faults create token outside --bound-object-kind Secret --bound-object-name "$1" > "$work/token.new" && mv "$work/token.new" "$work/token"
}
start_outside() {
	kubectl -n faults create serviceaccount outside
	kubectl create clusterrolebinding faults-outside --clusterrole=cluster-admin --serviceaccount=faults:outside
	token token1 || return
	jq --arg file "$work/token" '.users[0].user = {tokenFile: $file}' "$KUBECONFIG" > "$work/kubeconfig"
	QM_STATE_DIR=$work QM_RUN_DIR=$work build/src/cli/quartermaster operator --kubeconfig "$work/kubeconfig" --platform=kubernetes --tls=off \
		--worker "$PWD/build/src/worker/qm-gluster" --namespace=faults --deployment=outside --type=glusterfs --image=none > "$work/outside.log" 2>&1 &
	outside=$!
	wait_for 60 kubectl -n faults get storagestatus outside
}
add_outside() { echo "{apiVersion: coreos.com/v1, kind: StorageNode, metadata: {name: $1, namespace: faults}, spec: {type: glusterfs, nodeSelector: {no: where}}}" | kubectl create -f -; }
judged() { kubectl -n faults get storagenode "$1" -o json | jq -e '.status.conditions[] | select(.type == "MachineFound" and .status == "False")'; }
refused() { grep -Eiq 'unauthorized|401' "$work/outside.log"; }
expires() { kubectl -n faults delete secret token1 && wait_for 60 refused && add_outside late && ! judged late; }
rotates() { token token2 && wait_for 60 judged late && kill -0 "$outside"; }
check "an operator with a token in a file" start_outside
check "acts" add_outside early
check "acts" wait_for 60 judged early
check "its token expires: it is refused" expires
check "the file has a new one: it acts on what it missed" rotates
kill "$outside" && wait "$outside" 2> /dev/null
outside=

# ---- objects that make no sense

absurd() {
	local device
	device=$(q get storagenode storage-node1 -o jsonpath='{.spec.devices[0]}')
	sed "s,WIRE,$wire,g; s,DEVICE,$device,g; s,NAME,$(printf 'a%.0s' {1..253})," tests/cluster/absurd.yaml
}
# told KIND NAMESPACE NAME: by a condition, or by an Event of ours
told() {
	kubectl -n "$2" get "$1" "$3" -o json | jq -e '[.status.conditions[]? | select((.type == "Quarantined" or .type == "Ambiguous") and .status == "True" or
		(.type | IN("MachineFound", "AddressAccepted", "DevicesAccepted", "AgentReady")) and .status == "False") | .message | length > 0] | any' ||
		kubectl -n "${2:-default}" get events -o json | jq -e --arg name "$3" '[.items[] | select(.involvedObject.name == $name and
			.source.component == "quartermaster" and .type == "Warning")] | length > 0'
}
aside() { absurd | kubectl create -f -; }
working() {
	q get storagestatus glusterfs -o json | jq -e '.spec.status == "ONLINE"' &&
		q get storagenodes -o json | jq -e '[.items[] | select(.metadata.name | startswith("storage-node")) | .status.phase] == ["Ready", "Ready", "Ready"]' &&
		q get storagepools glusterfs-1 glusterfs-2 -o json | jq -e '[.items[] | .status.phase == "Online" and (.spec.bricks | length) == 3 and .metadata.deletionTimestamp == null] == [true, true]'
}
put_away() { absurd | kubectl delete -f - --timeout=120s; }
begin
check "the API accepts absurd objects" aside
while read -r kind ns name; do
	check "$kind ${name:0:40}: is told why" wait_for 60 told "$kind" "$ns" "$name"
done < <(absurd | kubectl create --dry-run=client -o json -f - | jq -rs '.[] | if .kind == "List" then .items[] else . end |
	select(.kind | IN("StorageClass", "StorageStatus") | not) | [.kind, .metadata.namespace // "default", .metadata.name] | join(" ")')
check "claims go on" goes_on
check "the others are as they were" wait_for 60 working
check "the absurd ones can be deleted" put_away
check "no claim is lost, none is bound twice" settled 2
# The last of the suite: what it leaves goes with the lab, or when another script asks for a deployment.
[ "$tap_failed" != 0 ] || is_kept=1
plan
