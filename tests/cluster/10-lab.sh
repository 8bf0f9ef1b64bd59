#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cluster itself: what the other tests here rely on. Prints TAP.
# timeout: 420
. "$(dirname "$0")/lib.sh"
other=/var/tmp/quartermaster-lab-other.$$
cleanup() { QM_LAB=$other lab down; }

# ---- nodes, pods, services

nodes_ready() { [ "$(kubectl get nodes --no-headers | grep -c ' Ready ')" = "$1" ]; }
field() { k get "$1" -o jsonpath="$2"; }
version() { kubectl version -o json | jq -e '.serverVersion.minor == "34"'; }

# Each pod serves the name of its node.
start_pods() {
	k apply -f - <<-'END'
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: web}
		spec:
		  selector: {matchLabels: {app: web}}
		  template:
		    metadata: {labels: {app: web}}
		    spec:
		      terminationGracePeriodSeconds: 0
		      containers:
		      - name: web
		        image: localhost/lab:1
		        command: [sh, -c, 'mkdir /www && echo $NODE | tee /www/index.html && exec httpd -f -p 8080 -h /www']
		        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
		---
		apiVersion: v1
		kind: Service
		metadata: {name: web}
		spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
	END
	wait_for 60 test "$(field ds/web '{.status.desiredNumberScheduled}')" = 3
	k rollout status ds/web --timeout=120s
}

pod_on() { field pod "{.items[?(@.spec.nodeName==\"node$1\")].metadata.name}"; }

# From one place, all three pods answer behind the service's address.
sees_all() {
	local seen='' end=$((SECONDS + 60)) address
	address=$(field service/web '{.spec.clusterIP}')
	while ((SECONDS < end)); do
		seen=$(printf '%s\n' "$seen" "$("$@" wget -qO- "http://$address/" 2>&1)" | sort -u)
		[ "$(grep -c '^node[123]$' <<< "$seen")" = 3 ] && return
	done
	echo "seen: $seen"
	return 1
}
from_pod() { sees_all k exec "$(pod_on "$1")" --; }
from_node() { sees_all lab exec "$1"; }
logged() { [ "$(k logs "$(pod_on "$1")")" = "node$1" ]; }

# What a pod mounts appears on its node: agents hand bricks to storage pods this way.
mount_shows() {
	k apply -f - <<-'END'
		apiVersion: v1
		kind: Pod
		metadata: {name: mounter}
		spec:
		  nodeName: node1
		  terminationGracePeriodSeconds: 0
		  containers:
		  - name: mounter
		    image: localhost/lab:1
		    command: [sh, -c, 'mkdir -p /shared/m && mount -t tmpfs lab /shared/m && touch /shared/m/here && exec sleep 10000']
		    securityContext: {privileged: true}
		    volumeMounts: [{name: shared, mountPath: /shared, mountPropagation: Bidirectional}]
		  volumes: [{name: shared, hostPath: {path: /var/lib/shared, type: DirectoryOrCreate}}]
	END
	wait_for 60 lab exec 1 test -e /var/lib/shared/m/here
}

namespace lab-itself
check "three nodes are ready" nodes_ready 3
check "it is Kubernetes 1.34" version
check "a pod on each node runs, of an image that was imported" start_pods
check "kubectl logs" logged 2
check "a service is reached from a pod, on all nodes" from_pod 1
check "and from another node's" from_pod 3
check "and from a node" from_node 2
check "a mount made in a pod appears on the node" mount_shows

# ---- who may do what

as_node1() { kubectl --kubeconfig "${KUBECONFIG%/*}/node1.kubeconfig" "$@"; }
policies() { kubectl get validatingadmissionpolicies; }
check "a node sees no other" refuses 'only its own Node' as_node1 get node node2
check "and may not label itself as it likes" refuses 'not allowed to modify labels' \
	as_node1 label node node1 node-restriction.kubernetes.io/mine=yes
check "admission policies are served" policies

# ---- failures

ids() { lab exec "$1" cat /proc/sys/kernel/random/boot_id /etc/machine-id; }
answers() { kubectl get --raw /readyz --request-timeout=5s; }
api_down() { lab apiserver-stop && refuses 'refused' answers; }
api_up() { lab apiserver-start && answers && k get service web; }
etcd_down() { lab etcd-stop && refuses '.' kubectl get nodes --request-timeout=3s; }
etcd_up() { lab etcd-start && wait_for 60 kubectl get nodes --request-timeout=5s; }
kubelet_gone() { lab kubelet-stop 2 && wait_for 120 nodes_ready 2; }
kubelet_back() { lab kubelet-start 2 && wait_for 60 nodes_ready 3; }
web_runs_on() { lab exec "$1" pidof -x busybox httpd || lab exec "$1" grep -lzx httpd /proc/[0-9]*/cmdline; }
restarted() { [ "$(field "pod/$1" '{.status.containerStatuses[0].restartCount}')" -gt "$2" ] && logged 3; }

check "the API server is killed" api_down
check "and comes back with what it knew" api_up
check "etcd hangs, and so do requests" etcd_down
check "etcd goes on" etcd_up
check "a kubelet is killed: the node is not ready" kubelet_gone
check "its pods run on" web_runs_on 2
check "and the node is ready again" kubelet_back

disk=$(lab disk 3 1G)
use_disk() { lab exec 3 sh -c "mkfs.xfs -q $disk && mkdir -p /var/lib/data && mount $disk /var/lib/data && touch /var/lib/data/kept && sync"; }
find_disk() { lab exec 3 sh -c "! mountpoint -q /var/lib/data && mount $disk /var/lib/data && test -e /var/lib/data/kept"; }
before=$(ids 3)
pod=$(pod_on 3)
other_boot() { [ "$(ids 3 | head -n 1)" != "$(head -n 1 <<< "$before")" ]; }
same_machine() { [ "$(ids 3 | tail -n 1)" = "$(tail -n 1 <<< "$before")" ]; }
node_gone() { lab stop 3 && refuses 'not running' lab exec 3 true; }

check "a node has a disk" use_disk
check "its power is cut" node_gone
check "it comes back" lab node 3
check "booted anew" other_boot
check "as the same machine" same_machine
check "with its disk" find_disk
check "and its pod runs again" wait_for 120 restarted "$pod" 0
check "which the service reaches" from_pod 3

# ---- a second lab: whatever happens to it, nothing stays

sysctls() { sysctl -e vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys fs.inotify; }
traces() {
	local number
	number=$(($(cksum <<< "$other" | cut -d ' ' -f 1) % 256))
	ls -d "$other" 2> /dev/null
	ip -o link | grep -w "qmlab$number"
	find /sys/fs/cgroup -maxdepth 2 -name "qmlab$number"
	losetup -l | grep -F "$other"
	grep -F "$other" /proc/self/mountinfo
	grep -lFsf <(echo "$other") /proc/[0-9]*/cmdline
	diff <(echo "$sysctls") <(sysctls)
}
nothing() { local left; left=$(traces); [ -z "$left" ] || { echo "$left"; return 1; }; }
sysctls=$(sysctls)

# Killed as soon as its first node exists
kill_up() {
	local pid
	QM_LAB=$other "$cluster/lab" up 1 &
	pid=$!
	disown "$pid"
	wait_for 120 test -e "$other/box1/etc" && kill -9 "$pid"
}
side_by_side() { QM_LAB=$other lab up 1 && QM_LAB=$other lab disk 1 64M && nodes_ready 3; }

check "a second lab, killed while it starts" kill_up
check "goes down" env QM_LAB="$other" "$cluster/lab" down
check "and leaves nothing" nothing
check "a second lab runs beside the first" side_by_side
check "goes down" env QM_LAB="$other" "$cluster/lab" down
check "and leaves nothing" nothing
check "the first did not notice" nodes_ready 3
plan
