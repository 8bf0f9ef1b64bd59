#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A deployment from kubectl create to a claim, and what may happen to its pods and objects. Prints TAP.
# timeout: 600
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh

# ---- the seed's usage

manifest_is_current() { diff <(kubectl kustomize deploy/glusterfs) deploy/quartermaster-glusterfs.yaml; }
columns() {
	q get storagestatus | tee "$work/columns"
	grep -Eq '^NAME +TYPE +STATUS +NODES +POOLS +CAPACITY +USED +AGE$' "$work/columns" &&
		grep -Eq "^glusterfs +glusterfs +$1 +$2 " "$work/columns"
}
no_class() { refuses 'not found' kubectl get storageclass glusterfs; }
explained() {
	local path
	kubectl explain storagenode.spec | tee "$work/explained"
	grep -q 'nodeSelector' "$work/explained" && ! grep -q '<no description>' "$work/explained" || return
	kubectl get crd -o json storagenodes.coreos.com storagestatuses.coreos.com storagepools.coreos.com | jq -r '.items[] |
		.spec.names.kind as $kind | .spec.versions[].schema.openAPIV3Schema.properties | {spec, status} |
		[paths(type == "object" and has("type"))][] as $p | select((getpath($p).description // "") == "") |
		select($p[-1] != "properties" and $p[-1] != "items" and $p[-1] != "additionalProperties") | "\($kind).\($p | join("."))"' > "$work/silent"
	[ ! -s "$work/silent" ] || { echo "without a description:"; cat "$work/silent"; return 1; }
}
class_is() { [ "$(kubectl get storageclass glusterfs -o jsonpath="$1")" = "$2" ]; }
labelled() {
	local volume
	volume=$(field pvc/data '{.spec.volumeName}')
	[ "$(kubectl get storageclass/glusterfs "pv/$volume" -l quartermaster.storage/deployment=glusterfs -o name 2> /dev/null | wc -l)" = 2 ] ||
		[ "$(kubectl get storageclass,pv -l quartermaster.storage/deployment=glusterfs -o name | wc -l)" -ge 2 ]
}

check "the file is what kustomize gives" manifest_is_current
check "images are built and imported" images
check "nothing is there" fresh
check "kubectl create -f" kubectl create -f deploy/quartermaster-glusterfs.yaml
check "its kinds are registered" registered
check "OFFLINE while there are no nodes, in the seed's columns" wait_for 60 columns OFFLINE 0/0
check "there is no class yet" no_class
check "kubectl explain has text for every field" explained

# ---- machines

selector_node() {
	q create -f - <<-END
		apiVersion: coreos.com/v1
		kind: StorageNode
		metadata: {name: $1}
		spec: {type: glusterfs, nodeSelector: $2, storageNetwork: {ips: [$3]}, directories: [/var/lib/none]}
	END
}
condition() { field "storagenode/$1" "{.status.conditions[?(@.type==\"$2\")].$3}"; }
says() { condition "$1" "$2" message | grep -Eq -- "$3"; }
is() { [ "$(condition "$1" "$2" "$3")" = "$4" ]; }
gone() { ! q get "$@" 2> /dev/null; }

check "a node whose selector matches no machine" selector_node lost '{kubernetes.io/hostname: nowhere}' 10.9.9.1
check "and one whose selector matches several" selector_node many '{kubernetes.io/os: linux}' 10.9.9.2
check "the first says that there is none" wait_for 60 says lost MachineFound 'hostname=nowhere.*matches no machine'
check "by a condition that kubectl waits for" q wait --for=condition=MachineFound=False storagenode/lost --timeout=30s
check "the second says which there are" wait_for 60 says many MachineFound 'matches 3 machines \(node1, node2, node3\)'
check "they are deleted" q delete storagenode lost many --timeout=60s

check "one StorageNode a machine, in the seed's form" declare_nodes
check "kubectl wait --for=condition=Online" online
check "ONLINE, in the seed's columns" wait_for 90 columns ONLINE 3/3
check "kubectl wait for conditions of nodes" q wait --for=condition=AgentReady --for=condition=MachineFound storagenode --all --timeout=60s
check "the class came with it" class_is '{.provisioner}' csi.quartermaster.storage
check "a claim is bound" claim data
check "what belongs to no namespace is labelled" labelled
check "the pool is whole" wait_for 90 whole

move() { q patch storagenode storage-node1 --type=merge -p "{\"spec\":{\"nodeSelector\":{\"kubernetes.io/hostname\":\"$1\"}}}"; }
stays() { [ "$(field storagenode/storage-node1 '{.status.nodeName}')" = node1 ] && [ "$(q get "$(pod storage 1)" -o jsonpath='{.spec.nodeName}')" = node1 ]; }
check "another selector, once bricks exist" move node2
check "is refused by a condition" wait_for 60 says storage-node1 MachineFound 'bricks are on machine node1, so it stays there instead of node2'
check "the node stays where it is" stays
check "and is content when the old one is back" move node1
check "as its condition says" wait_for 60 is storage-node1 MachineFound status True

# ---- processes and pods

pdb() { [ "$(field pdb/glusterfs-storage '{.spec.maxUnavailable}')" = "$1" ]; }
same_bricks() { [ -n "$bricks" ] && [ "$(pids 1 glusterfsd)" = "$bricks" ]; }
other_agent() { local now; now=$(pod agent 1) && [ -n "$now" ] && [ "$now" != "$agent" ] && q wait --for=condition=Ready "$now" --timeout=5s; }
agent_deleted() { q delete "$agent" --grace-period=5 --timeout=60s; }
other_pid() { local now; now=$(pids 1 "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }
# shellcheck disable=SC2086 # numbers
killed() { lab exec 1 kill -9 $1; }
bricks=$(pids 1 glusterfsd)
agent=$(pod agent 1)
glusterd=$(pids 1 glusterd)
check "an agent's pod is deleted" agent_deleted
check "another takes its place" wait_for 60 other_agent
check "the bricks did not notice" same_bricks
check "glusterd is killed" killed "$glusterd"
check "it comes back" wait_for 60 other_pid glusterd "$glusterd"
check "the bricks did not notice" same_bricks
check "a brick is killed" killed "$bricks"
check "it is started again" wait_for 60 other_pid glusterfsd "$bricks"
check "and the pool is whole" wait_for 90 whole
check "a machine may be drained" wait_for 60 pdb 1

# ---- another image

tag() {
	local n
	for n in 1 2 3; do lab exec "$n" ctr -n k8s.io images tag --force "$image" "$image-next" || return; done
}
has_image() { [ "$(field "deployment/storage-node$1-storage" '{.spec.template.spec.containers[0].image}')" = "$image$2" ]; }
storage_pods_ready() {
	q get pod -l quartermaster.storage/role=storage -o json | jq '[.items[] | select(.metadata.deletionTimestamp == null) |
		.status.conditions // [] | select(any(.type == "Ready" and .status == "True"))] | length'
}
sample() { while :; do storage_pods_ready; done > "$work/samples" 2> /dev/null; }
all_rolled() { has_image 1 -next && has_image 2 -next && has_image 3 -next && [ "$(storage_pods_ready)" = 3 ] && whole; }
never_two_down() { sort "$work/samples" | uniq -c; [ "$(wc -l < "$work/samples")" -gt 10 ] && grep -qx 2 "$work/samples" && ! grep -qx '[01]' "$work/samples"; }
brick_down() { field storagepool/glusterfs-1 '{.status.phase}' | grep -qx Degraded; }
own_cleanup() { [ -z "${sampler:-}" ] || kill "$sampler" 2> /dev/null; }

check "the image gets another name" tag
check "a storage pod is missing" q scale deployment storage-node3-storage --replicas=0
check "so the pool is degraded" wait_for 90 brick_down
check "and no machine may be drained" wait_for 60 pdb 0
check "the operator is told the new image" operator_args --image= "--image=$image-next"
check "the pod that serves nobody takes it" wait_for 120 has_image 3 -next
check "the others do not, while a brick is down" eval 'has_image 1 "" && has_image 2 ""'
sample &
sampler=$!
kill -STOP "$sampler"
check "the missing one is back" q scale deployment storage-node3-storage --replicas=1
check "which is ready" q wait --for=condition=Available deployment/storage-node3-storage --timeout=120s
kill -CONT "$sampler"
check "then the others take it" wait_for 180 all_rolled
kill "$sampler"; wait "$sampler" 2> /dev/null; sampler=
check "one at a time" never_two_down
check "a machine may be drained again" wait_for 60 pdb 1

# ---- several deployments

second() { overlay gold gold && kubectl apply -k "$work/deploy/gold"; }
g() { kubectl -n gold "$@"; }
classes() { kubectl get storageclass -o json | jq -e '[.items[] | {(.metadata.labels["quartermaster.storage/deployment"]): .parameters.namespace}] | add == {glusterfs: "quartermaster", gold: "gold"}'; }
first_still_may() { [ "$(kubectl auth can-i --as=system:serviceaccount:quartermaster:quartermaster-operator list persistentvolumes)" = yes ]; }
own_pool() { [ "$(g get storagepool -o name)" = storagepool.coreos.com/gold-1 ] && [ "$(q get storagepool -o name)" = storagepool.coreos.com/glusterfs-1 ]; }
third() {
	overlay quartermaster silver && (cd "$work/deploy/silver" && kubectl -n quartermaster apply -f secrets.yaml -f operator.yaml) &&
		wait_for 60 q get storagestatus silver
}
unlabelled() { selector_node nobodys '{kubernetes.io/hostname: node2}' 10.9.9.3; }
not_taken() { [ -z "$(field storagenode/nobodys '{.metadata.finalizers}')" ] && [ "$(field storagestatus/glusterfs '{.spec.storageNodes}')" = '["storage-node1","storage-node2","storage-node3"]' ]; }
silver_gone() { q delete deployment quartermaster-silver --timeout=60s && q patch storagestatus silver --type=merge -p '{"metadata":{"finalizers":null}}' && q delete storagestatus silver --timeout=60s; }

others+=(gold)
check "a second deployment, in another namespace" second
check "the first keeps its rights" first_still_may
check "the machine has a second address" second_address
check "it has a node on the same machine" second_node gold
check "it is ONLINE too" wait_for 120 g wait --for=condition=Online storagestatus/gold --timeout=10s
check "with a pool of its own" own_pool
check "each has its class, labelled" wait_for 60 classes
check "a claim of the second is bound" claim golden gold
check "a third deployment, in the first's namespace" third
check "a node without a label" unlabelled
check "could be of either, and says so" wait_for 60 says nobodys Ambiguous 'label the node with quartermaster.storage/deployment=NAME'
check "nobody takes it" not_taken
check "it is deleted" q delete storagenode nobodys --timeout=60s
check "the third goes" silver_gone

# ---- the class

mark() { kubectl annotate storageclass glusterfs storageclass.kubernetes.io/is-default-class=true && kubectl label storageclass glusterfs team=blue; }
class_kept() {
	class_is '{.metadata.labels.team}{.metadata.annotations.storageclass\.kubernetes\.io/is-default-class}' bluetrue &&
		class_is '{.metadata.labels.quartermaster\.storage/deployment}' glusterfs &&
		[ "$(kubectl get storageclass glusterfs -o jsonpath='{.parameters}')" = "$parameters" ]
}
parameters=$(kubectl get storageclass glusterfs -o jsonpath='{.parameters}')
check "the class gets a label and is the default" mark
check "the operator is to retain volumes" operator_args '' --reclaim=retain
check "the class is made again" wait_for 90 class_is '{.reclaimPolicy}' Retain
check "with all that was on it" class_kept

# ---- deletes that wait

event() { q get events -o json | jq -r --arg kind "$1" --arg name "$2" '.items[] | select(.involvedObject.kind == $kind and .involvedObject.name == $name) | "\(.reason) \(.message)"' | tee "$work/events" | grep -Eq "$3"; }
status_says() { field storagestatus/glusterfs "{.status.conditions[?(@.type==\"Removable\")].message}" | grep -q "$1"; }
check "a node with volumes is deleted" q delete storagenode storage-node3 --wait=false
check "its condition says what it waits for" wait_for 60 says storage-node3 Emptied 'claims there: quartermaster/data'
check "and so does an Event" wait_for 60 event StorageNode storage-node3 'DeletionWaits|Held'
check "the deployment is deleted" q delete storagestatus glusterfs --wait=false
check "its condition says what it waits for" wait_for 60 status_says '1 volume lives on it'
check "and so does an Event" wait_for 60 event StorageStatus glusterfs DeletionWaits
check "the pool serves on" wait_for 30 whole

# ---- deletes while nobody looks

scale() { q scale deployment quartermaster-glusterfs --replicas="$1" && wait_for 90 operators "$1"; }
operators() { [ "$(q get pod -l quartermaster.storage/role=operator,quartermaster.storage/deployment=glusterfs -o name | wc -l)" = "$1" ]; }
delete_all() { q delete pvc data --timeout=60s && q delete storagenode --all --wait=false; }
volume=$(field pvc/data '{.spec.volumeName}')
uid=$(field storagestatus/glusterfs '{.metadata.uid}')
volume_gone() { ! kubectl get pv "$volume"; }
nothing_left() { [ -z "$(q get storagenode,storagepool -o name)" ]; }
status_gone() { [ "$(field storagestatus/glusterfs '{.metadata.uid}')" != "$uid" ]; }
workloads_gone() { [ -z "$(q get pod -l 'quartermaster.storage/role in (storage, agent)' -o name)" ]; }
check "the operator is away" scale 0
check "the claim and all nodes are deleted meanwhile" delete_all
check "it comes back" scale 1
check "the volume goes" wait_for 90 volume_gone
check "then the nodes and the pool" wait_for 180 nothing_left
check "and their pods" wait_for 90 workloads_gone
check "and the deployment's status, which had waited" wait_for 90 status_gone
plan
