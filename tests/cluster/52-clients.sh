#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The client images of a cluster: an upgrade under I/O, a bad image, a client that dies. Prints TAP.
# timeout: 600
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh

own_cleanup() {
	kubectl -n apps delete pod --all --timeout=60s
	kubectl -n apps delete pvc --all --timeout=60s
}

next=localhost/quartermaster-next:1
check "images are built and imported" images
check "the client's once more, under another name" lab image $next "$archives/quartermaster-glusterfs.tar"
check "a deployment is installed, and ONLINE" install

# ---- clients and their machines

clients_of() { q get daemonset -l quartermaster.storage/role=client -o jsonpath='{range .items[*]}{.spec.template.spec.containers[0].image}{"\n"}{end}'; }
client_is() { [ "$(clients_of | sort | paste -sd ' ')" = "$(printf '%s\n' "$@" | sort | paste -sd ' ')" ]; }
ready_of() { q get pod -l quartermaster.storage/role=client -o json | jq -e --arg i "$1" '[.items[] | select(.spec.containers[0].image == $i and (.status.containerStatuses[0].ready // false))] | length == 3'; }
pods_of() { q get pod -l quartermaster.storage/role=client -o json | jq -r --arg i "$1" '.items[] | select(.spec.containers[0].image == $i) | .spec.nodeName' | sort | paste -sd ' '; }
gone_from() { ! pods_of "$1" | grep "$2"; }
condition() { field storagestatus/glusterfs '{.status.conditions[?(@.type=="ClientsUpdated")].'"$1"'}'; }
says() { condition status | grep -x "$1" && condition message | grep -e "$2"; }
event() { q get events -o json | jq -r '.items[] | select(.involvedObject.kind == "StorageStatus") | .reason + " " + .message' | grep -e "$1"; }
check "a client on every machine" wait_for 90 ready_of "$image"
check "one DaemonSet" client_is "$image"
check "that is said" wait_for 60 says True "^3 of 3 machines have the client $image$"

# ---- applications

namespace apps
# It ends at the first error, and is not started again.
loop='i=0; while :; do i=$((i + 1)); dd if=/dev/zero of=/data/block bs=65536 count=4 conv=fsync 2> /dev/null && echo $i >> /data/log && tail -n 1 /data/log > /tmp/seen || exit 1; done'
seen() { k exec writer -- cat /tmp/seen; }
moved() { local now; now=$(seen) && [ -n "$now" ] && [ "$now" -gt "$1" ]; }
moves() { local at; at=$(seen) || at=0; wait_for 30 moved "${at:-0}" && [ "$(k get pod writer -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}')" = Running0 ]; }
# users_on N IMAGE: how many mounts that client on node N serves
users_on() {
	local pod
	pod=$(q get pod -l quartermaster.storage/role=client --field-selector "spec.nodeName=node$1" -o json | jq -r --arg i "$2" '.items[] | select(.spec.containers[0].image == $i) | .metadata.name') &&
		q exec "$pod" -c client -- sh -c '/qm/qm-client --info "$(echo /run/quartermaster/clients/glusterfs/*)"' | jq '.daemons | length'
}
uses() { [ "$(users_on "$1" "$2")" = "$3" ]; }
check "a pod writes on and on" eval 'own_claim written && app writer node1 written "$loop" && runs writer && moves'
check "by the client that there is" uses 1 "$image" 1
check "and a pod beside it has a volume" eval 'own_claim idle && app idler node1 idle "sleep 100000" && runs idler'

# ---- an upgrade under I/O

daemon() { lab exec 1 pgrep -fx '.*glusterfs .*hostvol/mnt/.*'; }
same_daemon() { daemon | grep -x "$before"; }
before=$(daemon)
check "another image" operator_args '' "--glusterfs-mount-container=$next"
check "its client comes to every machine" wait_for 120 ready_of $next
check "the writer did not notice" moves
check "the old one goes where nobody uses it" wait_for 90 gone_from "$image" 'node[23]'
check "and stays where it is used" eval '[ "$(pods_of "$image")" = node1 ]'
check "that is said, and how many volumes it has" wait_for 60 says False "3 of 3 machines have the client $next; node1: the client of $image stays while its mounts are used (2 volumes)"
check "one goes" k delete pod idler --timeout=60s
check "that is said" wait_for 60 says False "node1: the client of $image stays while its mounts are used (1 volume)"
check "by quartermaster status, too" eval '"${QM_BUILD:-build}/src/cli/quartermaster" status -n quartermaster | grep "(1 volume)"'
check "a new pod beside the writer" eval 'own_claim beside && app second node1 beside "sleep 100000" && runs second'
check "uses the new client" uses 1 $next 1
check "the writer has its mount still" eval 'moves && same_daemon'
check "the writer goes" k delete pod writer --timeout=60s
check "and so does the last old client" wait_for 60 gone_from "$image" node
check "that is said" wait_for 60 says True "^3 of 3 machines have the client $next$"
check "and nothing is counted any more" wait_for 60 eval '[ -z "$(field configmap/quartermaster-clients "{.data}")" ]'

# ---- a bad image

check "an image without GlusterFS, and little patience" eval 'operator_args --glusterfs-mount-container= --glusterfs-mount-container=localhost/lab:1 && operator_args "" --client-patience=30'
check "is found out" wait_for 60 event 'ClientFails .*localhost/lab:1.*node[123]: .*the image has no program glusterfs'
check "a new pod runs all the same" eval 'own_claim meanwhile && app third node3 meanwhile "sleep 100000" && runs third'
check "by the client that works" uses 3 $next 1
check "the image is taken back" wait_for 120 event 'ClientRolledBack the client localhost/lab:1 was taken back, machines use localhost/quartermaster-next:1: .*the image has no program glusterfs'
check "that is said" wait_for 60 says False 'localhost/lab:1 was taken back'
check "its pods go" wait_for 60 gone_from localhost/lab:1 node
check "those that work are all there" ready_of $next
check "with another choice it is forgotten" operator_args --glusterfs-mount-container= "--glusterfs-mount-container=$next"
check "at once" wait_for 60 client_is $next
check "and all is well" wait_for 60 says True '^3 of 3 machines'

# ---- a client that dies

lost() { k get events -o json | jq -r '.items[] | select(.involvedObject.kind == "Pod" and .reason == "VolumeClientDied") | .involvedObject.name + " " + .message' | grep -e "$1"; }
fails() { ! k exec "$1" -- ls /data; }
killed() { local pid; pid=$(lab exec "$1" pgrep -fx '.*glusterfs .*hostvol/mnt/.*') && lab exec "$1" kill -9 $pid; }
again() { k delete pod third --timeout=60s && app third node3 meanwhile 'touch /data/again && sleep 100000' && runs third; }
check "the daemon of a pod's mount is killed" killed 3
check "the pod gets errors" wait_for 30 fails third
check "and is told by an Event" wait_for 60 lost '^third the client of volume .* died'
check "no other pod is" eval '! lost "^second "'
check "started again, it works" again

# ---- a class with a client of its own

class() {
	kubectl apply -f - <<-END
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: special}
		provisioner: csi.quartermaster.storage
		parameters: {deployment: glusterfs, namespace: quartermaster, clientImage: '$image'}
	END
}
class_gone() { k delete pod fourth --timeout=60s && k delete pvc own --timeout=60s && kubectl delete storageclass special; }
check "a class that names an image" class
check "a pod with a volume of it" eval 'own_claim own special && app fourth node2 own "sleep 100000" && runs fourth 180'
check "has it from that client" uses 2 "$image" 1
check "and not from that of all" uses 2 $next 0
check "which is as it was" says True "^3 of 3 machines have the client $next$"
check "without class and volume" class_gone
check "that client goes" wait_for 60 client_is $next

# ---- who may do what

operator_may_not() { refuses 'touches no DaemonSet but' kubectl --as=system:serviceaccount:quartermaster:quartermaster-operator -n quartermaster "$@"; }
foreign() { q create -f - <<< '{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "other"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"none": "such"}, "containers": [{"name": "c", "image": "localhost/lab:1"}]}}}}'; }
check "another DaemonSet" foreign
check "is not the operator's to change" operator_may_not patch daemonset/other --type=merge -p '{"metadata":{"labels":{"x":"y"}}}'
check "nor to delete" operator_may_not delete daemonset/other
plan
