#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Applications on volumes: the CSI driver on a real cluster, its client in a container of its own, and
# what happens to either under I/O. Prints TAP. QM_LONG=1: the node service is killed 50 times,
# and pods read of each other 200 times.
# timeout: 1200
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh
. tests/cluster/rounds.sh

# Applications let go of their volumes while there is somebody to take them away.
own_cleanup() {
	kubectl -n apps delete deployment,statefulset,pod --all --timeout=60s
	kubectl -n apps delete pvc --all --timeout=60s
}

check "images are built and imported" images
check "a deployment is installed, and ONLINE" install

# ---- what the operator makes

driver() {
	kubectl get csidriver csi.quartermaster.storage -o json | jq -e '.spec | .attachRequired == false and .podInfoOnMount and
		.fsGroupPolicy == "File" and .volumeLifecycleModes == ["Persistent", "Ephemeral"] and .requiresRepublish == false and .storageCapacity == true'
}
owner() { [ "$(kubectl get csidriver csi.quartermaster.storage -o jsonpath='{.metadata.annotations.quartermaster\.storage/owner}')" = quartermaster/glusterfs ]; }
ready() { [ "$(field "daemonset/$1" '{.status.numberReady}')" = 3 ]; }
strategy() { [ "$(field "daemonset/$1" '{.spec.updateStrategy.type}{.spec.updateStrategy.rollingUpdate.maxUnavailable}')" = "$2" ]; }
registered_on() { kubectl get csinode "node$1" -o json | jq -e '.spec.drivers | any(.name == "csi.quartermaster.storage")'; }
everywhere() { local n; for n in 1 2 3; do registered_on $n || return; done; }
check "the CSIDriver" driver
check "says whose it is" owner
client_set() { q get daemonset -l quartermaster.storage/client=glusterfs -o jsonpath='{.items[0].metadata.name}'; }
client_ready() { ready "$(client_set)"; }
check "the client runs on every machine" wait_for 60 client_ready
check "and changes there only when told" strategy "$(client_set)" OnDelete
check "the node service runs on every machine" wait_for 60 ready quartermaster-node
check "and rolls" strategy quartermaster-node RollingUpdate10%
check "kubelet knows the driver" wait_for 60 everywhere

# ---- applications

namespace apps

stateful() {
	k apply -f - <<-END
		apiVersion: apps/v1
		kind: StatefulSet
		metadata: {name: db}
		spec:
		  replicas: 2
		  podManagementPolicy: Parallel
		  selector: {matchLabels: {app: db}}
		  template:
		    metadata: {labels: {app: db}}
		    spec:
		      terminationGracePeriodSeconds: 1
		      affinity:
		        podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}
		        nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]}}]}
		      containers:
		      - name: c
		        image: localhost/lab:1
		        command: [sh, -c, 'echo "\$HOSTNAME" >> /data/lives; while echo x >> /data/rows; do dd if=/data/rows of=/data/copy bs=65536 conv=fsync 2> /dev/null || exit 1; done']
		        volumeMounts: [{name: data, mountPath: /data}]
		  volumeClaimTemplates:
		  - metadata: {name: data}
		    spec: {storageClassName: glusterfs, accessModes: [ReadWriteOnce], resources: {requests: {storage: 32Mi}}}
	END
	wait_for 90 test_ready 2
}
test_ready() { [ "$(k get statefulset db -o jsonpath='{.status.readyReplicas}')" = "$1" ]; }
lives() { [ "$(k exec "$1" -- cat /data/lives | sort | uniq -c | tr -s ' ')" = " $2 $1" ]; }
again() { k delete pod db-0 --timeout=60s && wait_for 90 lives db-0 2; }
check "a StatefulSet writes" stateful
check "each pod has a volume of its own" eval 'lives db-0 1 && lives db-1 1'
check "a pod that comes back finds its own" again

# ---- a machine that loses its power under I/O, and comes back

rows() { k exec "$1" -- wc -l /data/rows | cut -d ' ' -f 1; }
more_rows() { [ "$(rows "$1")" -gt "$2" ]; }
lives_of() { k exec "$1" -- wc -l /data/lives | cut -d ' ' -f 1; }
power_cut() { rows_before=$(rows "$lost") && lives_before=$(lives_of "$lost") && kubectl cordon node1 && lab stop 1 && k delete pod "$lost" --force --grace-period=0; }
elsewhere() { [ "$(k get pod "$lost" -o jsonpath='{.spec.nodeName}')" != node1 ] && lives "$lost" $((lives_before + 1)) && more_rows "$lost" "$rows_before"; }
# it stops at the first error, and would be started again
unharmed() { local n; n=$(rows "$1") && wait_for 60 more_rows "$1" "$n" && [ "$(k get pod "$1" -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}')" = Running0 ]; }
left() {
	lab exec 1 sh -c 'grep -e " /var/lib/[^ ]* .* fuse.glusterfs " -e csi.quartermaster /proc/self/mountinfo
		ls -d /var/lib/kubelet/pods/'"$lost_uid"' /var/lib/kubelet/plugins/kubernetes.io/csi/csi.quartermaster.storage/* /var/lib/quartermaster/hostvol/attachments/* /var/lib/quartermaster/hostvol/mnt/* 2> /dev/null'
}
nothing_left() { local found; found=$(left); [ -z "$found" ] || { echo "$found"; return 1; }; }
# Node 1 is also the one that its client would ask first for the volume.
asked_first() { [ -n "$lost" ] && kubectl get pv "$(k get pvc "data-$lost" -o jsonpath='{.spec.volumeName}')" -o jsonpath='{.spec.csi.volumeAttributes.export}' | grep "^$(address 1):/"; }
lost=$(k get pod -l app=db --field-selector spec.nodeName=node1 -o jsonpath='{.items[0].metadata.name}')
lost_uid=$(k get pod "$lost" -o jsonpath='{.metadata.uid}')
check "one of the pods is on the machine that has the volume's first copy" asked_first
check "a pod has something of ours on its machine" eval '[ -n "$(left)" ]'
check "the machine of a pod that writes loses its power, and the pod is given up" power_cut
check "it goes on elsewhere, with what it wrote" wait_for 90 elsewhere
check "the other one has seen no error" unharmed "db-$((1 - ${lost#db-}))"
check "the machine comes back" lab node 1
check "and takes pods again" kubectl uncordon node1
check "what the lost pod had there goes" wait_for 90 nothing_left
check "all copies are whole" wait_for 120 whole
check "the driver is there again" wait_for 60 everywhere

shared() {
	own_claim shared && k apply -f - <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: web}
		spec:
		  replicas: 3
		  selector: {matchLabels: {app: web}}
		  template:
		    metadata: {labels: {app: web}}
		    spec:
		      terminationGracePeriodSeconds: 1
		      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}
		      containers:
		      - name: c
		        image: localhost/lab:1
		        command: [sh, -c, 'head -c 1048576 /dev/urandom > "/data/\$HOSTNAME" && sync && sleep 100000']
		        volumeMounts: [{name: data, mountPath: /data}]
		      volumes: [{name: data, persistentVolumeClaim: {claimName: shared}}]
	END
	k rollout status deployment/web --timeout=90s
}
nodes_of() { k get pod -l "$1" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l; }
sums() {
	local p
	rm -f "$work"/sums-*
	for p in $(k get pod -l app=web -o name); do k exec "$p" -- sh -c 'cd /data && ls -l | grep -c 1048576 && md5sum *' > "$work/sums-${p##*/}" || return; done
	grep -qx 3 "$(ls "$work"/sums-* | head -n 1)" && [ "$(md5sum "$work"/sums-* | cut -d ' ' -f 1 | sort | uniq -c | tr -s ' ' | cut -d ' ' -f 2)" = 3 ]
}
check "three pods share a volume" shared
check "on three machines" eval '[ "$(nodes_of app=web)" = 3 ]'
check "and read the same of each other" wait_for 30 sums
count=$([[ ${QM_LONG:-} ]] && echo 200 || echo 30)
mapfile -t web < <(k get pod -l app=web -o name | cut -d / -f 2)
check "what one wrote and closed, the next that opens it reads: $count rounds" rounds "$count" "${web[0]}" "${web[1]}"

# ---- what happens under I/O

# It ends at the first error, and is not started again.
loop='i=0; while :; do i=$((i + 1)); dd if=/dev/zero of=/data/block bs=65536 count=4 conv=fsync 2> /dev/null && echo $i >> /data/log && tail -n 1 /data/log > /tmp/seen || exit 1; done'
writes() { own_claim written && app writer node1 written "$loop" && runs writer && moves; }
seen() { k exec writer -- cat /tmp/seen; }
moved() { local now; now=$(seen) && [ -n "$now" ] && [ "$now" -gt "$1" ]; }
moves() { local at; at=$(seen) || at=0; wait_for 30 moved "${at:-0}" && [ "$(k get pod writer -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}')" = Running0 ]; }
node_pod() { q get pod -l quartermaster.storage/role=node --field-selector "spec.nodeName=node$1" -o name; }
client_pod() { q get pod -l quartermaster.storage/client=glusterfs --field-selector "spec.nodeName=node$1" -o name; }
service_pid() { lab exec "$1" pgrep -f '^quartermaster node '; }
another_service() { local now; now=$(service_pid 1) && [ "$now" != "$1" ] && ready quartermaster-node; }
killed() { local old; old=$(service_pid 1) && lab exec 1 kill -9 "$old" && wait_for 60 another_service "$old"; }
deleted() { local old; old=$(service_pid 1) && q delete "$(node_pod 1)" --grace-period=0 --force && wait_for 60 another_service "$old"; }
often() {
	local i
	for ((i = 0; i < $1; i++)); do
		deleted && moves || return
	done
}
clients() { q get pod -l quartermaster.storage/client=glusterfs -o json | jq -Sc '[.items[] | [.metadata.uid, .status.containerStatuses[0].restartCount, .status.containerStatuses[0].containerID]]' > "$work/clients-$1" && lab exec 1 pgrep -x glusterfs >> "$work/clients-$1"; }
untouched() { clients now && diff "$work/clients-before" "$work/clients-now"; }
roll() { q rollout restart daemonset/quartermaster-node && q rollout status daemonset/quartermaster-node --timeout=120s; }
operators_killed() { q delete pod -l quartermaster.storage/role=operator --grace-period=0 --force && q rollout status deployment/quartermaster-glusterfs --timeout=90s; }
kubelet() { lab kubelet-stop 1 && moves_there && lab kubelet-start 1 && wait_for 60 kubectl wait node/node1 --for=condition=Ready --timeout=5s; }
# kubectl exec needs the kubelet: another machine reads the log
moves_there() { local at; at=$(tail_elsewhere) && wait_for 30 moved_there "$at"; }
tail_elsewhere() { k exec reader -- tail -n 1 /data/log; }
moved_there() { [ "$(tail_elsewhere)" -gt "$1" ]; }
check "a pod writes on and on" writes
check "another machine reads it" eval 'app reader node2 written "sleep 100000" && runs reader'
clients before
check "the node service is killed" killed
check "the writer did not notice" moves
check "it is deleted, $([[ ${QM_LONG:-} ]] && echo 50 || echo 3) times" often "$([[ ${QM_LONG:-} ]] && echo 50 || echo 3)"
check "its DaemonSet rolls" roll
check "the writer did not notice" moves
check "the operators are killed" operators_killed
check "the writer did not notice" moves
check "the kubelet is killed, and comes back" kubelet
check "the writer did not notice" moves
check "the client was not touched by any of it" untouched
check "a second pod on that machine gets the volume" eval 'app second node1 written "tail -n 1 /data/log && sleep 100000" && runs second'
check "and lets go of it" k delete pod second --timeout=60s
check "the first has it still" moves

# ---- the client

sockets=/run/quartermaster/clients/glusterfs/$(client_set | sed 's/.*-//')
away() { lab exec 3 mv "$sockets/client.sock" "$sockets/away"; }
back() { lab exec 3 mv "$sockets/away" "$sockets/client.sock"; }
told() { k get events -o json | jq -r '.items[] | select(.involvedObject.name == "late") | .message' | grep 'the glusterfs client on this node does not run (yet); see: kubectl get pods'; }
no_mounts() { ! lab exec "$1" grep ' /var/lib/[^ ]* .* fuse.glusterfs ' /proc/self/mountinfo; } # elsewhere they are this machine's
web_gone() { k delete deployment web --timeout=60s && k delete statefulset db --timeout=60s && wait_for 60 no_mounts 3; }
check "with the last pod the mount goes" web_gone
check "a machine's client does not answer" away
check "a pod that needs it" app late node3 written 'sleep 100000'
check "is told so" wait_for 60 told
check "it answers again" back
check "and the pod runs" runs late 120

uid() { q get pod -l quartermaster.storage/client=glusterfs --field-selector spec.nodeName=node1 -o jsonpath='{.items[0].metadata.uid}'; }
going() { [ -n "$(field "$client" '{.metadata.deletionTimestamp}')" ] && [ "$(uid)" = "$old" ]; }
replaced() { local now; now=$(uid) && [ -n "$now" ] && [ "$now" != "$old" ] && client_ready; }
client=$(client_pod 1)
old=$(uid)
check "a client is deleted while it is used" q delete "$client" --wait=false
check "the writer did not notice" moves
check "since the client stays" going
check "the writer goes" k delete pod writer --timeout=60s
check "then the client does, and another comes" wait_for 90 replaced
check "which serves the next pod" eval 'app next node1 written "tail -n 1 /data/log && sleep 100000" && runs next'

# ---- and nothing is left

nothing() {
	local n
	for n in 1 2 3; do
		no_mounts $n && [ -z "$(lab exec $n ls /var/lib/quartermaster/hostvol/attachments /var/lib/quartermaster/hostvol/mnt | grep -v :)" ] &&
			! client_pids $n || return
	done
}
check "all pods go" k delete pod --all --timeout=60s
check "no mount, record or client process is left" wait_for 60 nothing

# ---- whose it is, and another client

second() { overlay gold gold && kubectl apply -k "$work/deploy/gold" && wait_for 90 kubectl -n gold get storagestatus gold; }
not_theirs() { owner && [ -z "$(kubectl -n gold get daemonset -o name)" ]; }
beside() { [ "$(q get daemonset -l quartermaster.storage/client=glusterfs -o json | jq -r '[.items[].spec.template.spec.containers[0].image] | sort | join(" ")')" = "$image $1" ]; }
pods_keep() { [ "$(q get pod -l quartermaster.storage/client=glusterfs -o json | jq --arg i "$image" '[.items[] | select(.spec.containers[0].image == $i and .status.containerStatuses[0].ready)] | length')" = 3 ]; }
no_client() { [ -z "$(q get daemonset,pod -l quartermaster.storage/client=glusterfs -o name)" ]; }
no_directory() { ! field daemonset/quartermaster-node '{.spec.template.spec.volumes[*].name}' | grep client-glusterfs; }
others+=(gold)
check "a second deployment, in another namespace" second
check "leaves what is there once to the first" not_theirs
check "another image, in the seed's spelling" operator_args '' "--glusterfs_mount_container=$image-next"
check "is another client beside the first" wait_for 60 beside "$image-next"
check "those that run stay as they are" pods_keep
check "the host's own client, by choice" operator_args --glusterfs_mount_container= --glusterfs-mount-container=host
check "then there is no container" wait_for 90 no_client
check "and the node service looks for none" no_directory
keep
plan
