#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an application can ask for, on a real cluster: files with a file system of their own, block devices,
# growing while it writes, snapshots, clones, ephemeral volumes; one writer for what bears only one. Prints TAP.
# timeout: 900
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh

own_cleanup() {
	kubectl -n apps delete pod --all --timeout=60s
	kubectl -n apps delete volumesnapshot,pvc --all --timeout=60s
	kubectl delete storageclass files wholes share disk --ignore-not-found
	[ -z "${disk:-}" ] || losetup -d "$disk"
	kubectl delete namespace strict --ignore-not-found --wait=false
	kubectl delete volumesnapshotclass copies --ignore-not-found
	kubectl delete storageclass late --ignore-not-found
	kubectl delete volumeattributesclass keep drop odd --ignore-not-found
	kubectl label node node2 side-
}

check "images are built and imported" images
check "a deployment is installed, and ONLINE" install
namespace apps

# ---- kinds

class() {
	kubectl apply -f - <<-'END'
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: files}
		provisioner: csi.quartermaster.storage
		allowVolumeExpansion: true
		parameters: {deployment: glusterfs, namespace: quartermaster, kind: file, csi.storage.k8s.io/fstype: xfs}
		---
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: wholes}
		provisioner: csi.quartermaster.storage
		parameters: {deployment: glusterfs, namespace: quartermaster, kind: whole}
	END
}
# want NAME CLASS MODE SIZE [JSON]: a claim; JSON goes into its spec. ask: likewise, and it is bound
ask() { want "$@" && k wait "pvc/$1" --for=jsonpath='{.status.phase}'=Bound --timeout=60s; }
want() {
	jq -n --arg name "$1" --arg class "$2" --arg mode "$3" --arg size "$4" --argjson more "${5:-{\}}" '{apiVersion: "v1", kind: "PersistentVolumeClaim",
		metadata: {name: $name}, spec: ({storageClassName: $class, accessModes: [$mode], resources: {requests: {storage: $size}}} + $more)}' | k apply -f -
}
# app NAME NODE CLAIM COMMAND [block]: a pod with a volume at /data, or a device; NODE "": where the scheduler puts it
app() {
	jq -n --arg name "$1" --arg node "$2" --arg claim "$3" --arg command "$4" --arg block "${5:-}" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name},
		spec: {restartPolicy: "Never", terminationGracePeriodSeconds: 1, nodeName: $node, containers: [{name: "c", image: "localhost/lab:1",
			command: ["sh", "-c", $command]} + if $block != "" then {volumeDevices: [{name: "d", devicePath: "/dev/volume"}]}
				else {volumeMounts: [{name: "d", mountPath: "/data"}]} end],
		volumes: [{name: "d", persistentVolumeClaim: {claimName: $claim}}]}}' | k apply -f -
}
runs() { k wait "pod/$1" --for=condition=Ready --timeout="${2:-60}s" || { k describe "pod/$1" | tail -n 8; return 1; }; }
goes() { k delete pod "$@" --timeout=60s; }
said() { k get events -o json | jq -r --arg pod "$1" '.items[] | select(.involvedObject.name == $pod) | .message' | grep -- "$2"; }
check "a class of files, and one of whole volumes" class
check "a claim of it" ask filed files ReadWriteOnce 400Mi
check "a pod on it" eval 'app a node1 filed "echo one > /data/f && sync && sleep 100000" && runs a'
check "has a file system of its own" eval 'k exec a -- grep " /data xfs " /proc/mounts'
check "another machine is refused" eval 'app b node2 filed "sleep 100000" && wait_for 60 said b "in use by another writer"'
check "and not by chance" eval '! k wait pod/b --for=condition=Ready --timeout=5s'
goes b > /dev/null

node_pod() { q get pod -l quartermaster.storage/role=node --field-selector "spec.nodeName=node$1" -o name; }
node_ready() { [ "$(field daemonset/quartermaster-node '{.status.numberReady}')" = 3 ]; }
replace_node() { q delete "$(node_pod 1)" --timeout=60s && wait_for 60 node_ready; }
check "the node service is replaced" replace_node
check "a second pod on that machine gets the same" eval 'app c node1 filed "cat /data/f && sleep 100000" && runs c && [ "$(k logs c)" = one ]'
check "the first writes on" k exec a -- sh -c 'echo two >> /data/f && sync'
check "all of it goes" goes a c
check "then another machine has it" eval 'app b node2 filed "sleep 100000" && runs b && [ "$(k exec b -- cat /data/f)" = "$(printf "one\ntwo")" ]'

check "a block device" ask raw glusterfs ReadWriteOnce 64Mi '{"volumeMode": "Block"}'
block='head -c 1048576 /dev/urandom > /tmp/r && dd if=/tmp/r of=/dev/volume bs=65536 conv=fsync 2> /dev/null && md5sum < /tmp/r && sleep 100000'
check "is written to" eval 'app w node1 raw "$block" block && runs w && wait_for 30 test -n "$(k logs w)" && sum=$(k logs w)'
check "and read on another machine" eval 'goes w && app r node3 raw "head -c 1048576 /dev/volume | md5sum && sleep 100000" block && runs r && [ "$(k logs r)" = "$sum" ]'

check "a whole volume" ask entire wholes ReadWriteMany 64Mi
entire=$(k get pvc entire -o jsonpath='{.spec.volumeName}')
check "is a Gluster volume beside a pool" eval '[[ "$(q get storagepool "$entire" -o jsonpath="{.spec.parent} {.status.phase}")" == glusterfs-[0-9]*" Online" ]]'
check "which two machines use at once" eval 'app e node1 entire "echo here > /data/f && sleep 100000" && runs e && app g node2 entire "cat /data/f && sleep 100000" && runs g && [ "$(k logs g)" = here ]'
check "and which goes with its claim" eval 'goes e g && k delete pvc entire --timeout=60s && wait_for 60 eval "! q get storagepool $entire"'

# ---- growing

size_of() { k exec "$1" -- df -k /data | awk 'NR == 2 { print $2 }'; }
grown() { [ "$(k get pvc filed -o jsonpath='{.status.capacity.storage}')" = 800Mi ] && [ "$(size_of b)" -gt $((700 * 1024)) ]; }
grow() { k patch pvc "$1" --patch "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"$2\"}}}}"; }
writing() { k exec b -- sh -c 'i=0; while [ -e /data/go ]; do dd if=/dev/zero of=/data/w bs=65536 count=8 conv=fsync 2> /dev/null || { touch /data/failed; exit 1; }; done'; }
k exec b -- touch /data/go
writing &
writer=$!
check "a file grows while it is written to" eval 'grow filed 800Mi && wait_for 90 grown'
k exec b -- rm /data/go
check "and the writer did not notice" wait "$writer"
check "a directory" ask dir glusterfs ReadWriteMany 64Mi
check "grows at once" eval 'grow dir 96Mi && wait_for 30 eval "[ \$(k get pvc dir -o jsonpath={.status.capacity.storage}) = 96Mi ]"'

# ---- snapshots and clones

snapshot_class() {
	wait_for 60 kubectl get crd volumesnapshots.snapshot.storage.k8s.io && kubectl apply -f - <<-'END'
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshotClass
		metadata: {name: copies}
		driver: csi.quartermaster.storage
		deletionPolicy: Delete
	END
}
snapshot() {
	k apply -f - <<-END && k wait "volumesnapshot/$1" --for=jsonpath='{.status.readyToUse}'=true --timeout=60s
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshot
		metadata: {name: $1}
		spec: {volumeSnapshotClassName: copies, source: {persistentVolumeClaimName: $2}}
	END
}
from_snapshot='{"dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "monday"}}'
from_claim='{"dataSource": {"kind": "PersistentVolumeClaim", "name": "dir"}}'
check "a class of snapshots" snapshot_class
check "data in a directory" eval 'app d node1 dir "head -c 300000 /dev/urandom > /data/x && ln -s x /data/y && md5sum < /data/x && sync && sleep 100000" && runs d && wait_for 30 test -n "$(k logs d)" && sum=$(k logs d)'
check "a snapshot of it" snapshot monday dir
check "is not what changes afterwards" k exec d -- sh -c 'echo other > /data/x'
check "a claim of the snapshot" ask restored glusterfs ReadWriteMany 96Mi "$from_snapshot"
check "has the data" eval 'app e node2 restored "md5sum < /data/y && sleep 100000" && runs e && [ "$(k logs e)" = "$sum" ]'
check "a clone" ask cloned glusterfs ReadWriteMany 96Mi "$from_claim"
check "has what is there now" eval 'app f node3 cloned "cat /data/x && sleep 100000" && runs f && [ "$(k logs f)" = other ]'

# ---- storage that others keep: classes that are a ConnectionInfo

pv_of() { kubectl get pv "$(k get pvc "$1" -o jsonpath='{.spec.volumeName}')" -o json; }
# foreign_class NAME PARAMETERS
foreign_class() {
	jq -n --arg name "$1" --argjson parameters "$2" '{apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: {name: $name},
		provisioner: "csi.quartermaster.storage", allowVolumeExpansion: true, parameters: $parameters}' | kubectl apply -f -
}
capacity() { [ "$(k get pvc "$1" -o jsonpath='{.status.capacity.storage}')" = "$2" ]; }
larger() { truncate -s 640M "$(losetup -nO BACK-FILE "$disk")" && losetup -c "$disk" && grow lun 640Mi; }
all_grown() { capacity shared 96Mi && capacity lun 640Mi && [ "$(size_of l)" -gt $((500 * 1024)) ]; }
no_foreign() { kubectl get pv -o json | jq -e '[.items[] | select(.metadata.annotations["quartermaster.storage/connection"])] == []'; }
share=$(pv_of dir | jq -c '.spec.csi.volumeAttributes | {driverVolumeType, export, name, options}')
disk=$(lab disk 2 320M)
check "a class of a share of GlusterFS" foreign_class share "$share"
check "a claim of it" ask shared share ReadWriteMany 64Mi
check "its volume is what the class says" eval 'pv_of shared | jq -e --argjson share "$share" ".spec.csi.volumeAttributes | {driverVolumeType, export, name, options} == \$share"'
check "a pod writes there" eval 'app sh node2 shared "echo foreign > /data/foreign && sleep 100000" && runs sh'
check "the share has it" eval '[ "$(k exec d -- cat /data/foreign)" = foreign ]'
check "a class of a disk" foreign_class disk "{\"driverVolumeType\": \"LOCAL\", \"devicePath\": \"$disk\", \"fencing\": \"none\", \"csi.storage.k8s.io/fstype\": \"xfs\"}"
check "a claim of it" ask lun disk ReadWriteOnce 320Mi
check "a pod writes to it" eval 'app l node2 lun "echo foreign > /data/f && sync && sleep 100000" && runs l && k exec l -- grep " /data xfs " /proc/mounts'
check "a second claim of the disk waits, and is told" eval 'want second disk ReadWriteOnce 320Mi && wait_for 30 said second "has a claim already"'
check "both are asked for more, where the disk has grown" eval 'grow shared 96Mi && larger && wait_for 60 all_grown'
check "pods and claims go" eval 'goes sh l && k delete pvc shared second lun --timeout=60s'
check "and their volumes" wait_for 30 no_foreign
check "the share has the data still" eval '[ "$(k exec d -- cat /data/foreign)" = foreign ]'
check "so has the disk, for the next claim" eval 'ask lun disk ReadWriteOnce 64Mi && app l node3 lun "cat /data/f && sleep 100000" && runs l && [ "$(k logs l)" = foreign ]'
check "which goes" eval 'goes l && k delete pvc lun --timeout=60s && losetup -d "$disk"'

# ---- ephemeral

ephemeral() {
	k apply -f - <<-'END' && runs eph
		apiVersion: v1
		kind: Pod
		metadata: {name: eph}
		spec:
		  terminationGracePeriodSeconds: 1
		  containers: [{name: c, image: localhost/lab:1, command: [sh, -c, 'echo x > /data/x && sleep 100000'], volumeMounts: [{name: s, mountPath: /data}]}]
		  volumes:
		  - name: s
		    ephemeral: {volumeClaimTemplate: {spec: {storageClassName: glusterfs, accessModes: [ReadWriteOnce], resources: {requests: {storage: 32Mi}}}}}
	END
}
check "a generic ephemeral volume" ephemeral
check "goes with its pod" eval 'goes eph && wait_for 60 eval "! k get pvc eph-s"'

# ---- inline volumes, and users who are not root

# user_app NAME NODE VOLUME COMMAND: user 1000 of group 1000 with a volume (JSON) at /data; allowed where pods are restricted
user_app() {
	jq -n --arg name "$1" --arg node "$2" --argjson volume "$3" --arg command "$4" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name},
		spec: {restartPolicy: "Never", terminationGracePeriodSeconds: 1, nodeName: $node,
			securityContext: {runAsUser: 1000, runAsGroup: 2000, fsGroup: 1000, runAsNonRoot: true, seccompProfile: {type: "RuntimeDefault"}},
			containers: [{name: "c", image: "localhost/lab:1", command: ["sh", "-c", $command], volumeMounts: [{name: "d", mountPath: "/data"}],
				securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: ["ALL"]}}}],
			volumes: [{name: "d"} + $volume]}}'
}
inline() { echo "{\"csi\": {\"driver\": \"csi.quartermaster.storage\", \"volumeAttributes\": {$1}}}"; }
of_claim() { echo "{\"persistentVolumeClaim\": {\"claimName\": \"$1\"}}"; }
writes='id -G && echo mine > /data/mine && cat /data/mine && sleep 100000'
wrote() { user_app "$1" "$2" "$3" "$writes" | k apply -f - && { runs "$1" && wait_for 30 eval "k logs $1 | grep mine" || { k logs "$1"; return 1; }; }; }
inline_files() { lab exec 1 sh -c 'ls /var/lib/quartermaster/hostvol/mnt/*/ephemeral/node1/'; }
no_inline_files() { inline_files && [ -z "$(inline_files)" ]; }
strict() {
	kubectl create namespace strict && kubectl label namespace strict pod-security.kubernetes.io/enforce=restricted &&
		user_app i node1 "$(inline '"size": "48Mi"')" true | kubectl -n strict apply --dry-run=server -f -
}
check "a user in a directory" wrote ud node1 "$(of_claim dir)"
check "a user in a file" wrote uf node2 "$(of_claim filed)"
check "a volume of the pod's own" wrote ui node1 "$(inline '"size": "48Mi"')"
check "is a file of the pool" eval '[ "$(inline_files | wc -l)" = 1 ]'
check "its size holds" eval 'k exec ui -- sh -c "dd if=/dev/zero of=/data/f bs=65536 count=1000" 2>&1 | grep "No space left"'
check "the node service is replaced under it" eval 'replace_node && k exec ui -- grep mine /data/mine'
check "a pod that names a host is refused" eval 'user_app evil node1 "$(inline "\"size\": \"48Mi\", \"export\": \"evil:/x\"")" true | k apply -f - && wait_for 60 said evil "no attribute .export."'
check "the pod that was refused goes" goes evil
check "the volume goes with its pod" eval 'goes ui && wait_for 30 no_inline_files'
check "where pods are restricted it is allowed" strict
check "the pools are told to the machines" eval 'q get configmap quartermaster-pools -o jsonpath="{.data.glusterfs-1}" | jq -e ".export and .ephemeral"'
kubectl delete namespace strict --wait=false > /dev/null 2>&1
goes ud uf > /dev/null

# ---- a machine that is cut off (it takes minutes until the bricks, and then kubelet, give it up)

cut_off() { lab exec 1 nft "add table inet cut; add chain inet cut in { type filter hook input priority -300; policy drop; };
	add chain inet cut out { type filter hook output priority -300; policy drop; }; add rule inet cut in iif lo accept; add rule inet cut out oif lo accept"; }
loop='echo $$ > /data/pid; while dd if=/dev/zero of=/data/block bs=65536 count=4 conv=fsync 2> /dev/null; do date +%s > /data/last && sync; done; touch /tmp/ended.'$$'; sleep 100000; true' # true: so that the shell stays
old_ended() { lab exec 1 sh -c 'for p in $(pgrep -f "touch /tmp/[e]nded.'$$'"); do [ -e /proc/$p/root/tmp/ended.'$$' ] && exit 0; done; exit 1'; }
file_of() { # a pod on node3 has the pool mounted: the volume's file is in it
	local name
	name=$(kubectl get pv "$(k get pvc fenced -o jsonpath='{.spec.volumeName}')" -o jsonpath='{.spec.csi.volumeAttributes.name}') &&
		lab exec 3 sh -c "ls /var/lib/quartermaster/hostvol/mnt/*/$name"
}
clean() { lab exec 3 xfs_repair -n -f "$(file_of)"; }
if [[ ${QM_LONG:-} ]]; then
	check "a file that is written to" eval 'ask fenced files ReadWriteOnce 400Mi && app old node1 fenced "$loop" && runs old'
	check "its machine is cut off" cut_off
	check "the pod is given up" k delete pod old --force --grace-period=0
	check "another machine gets the file" eval 'app new node2 fenced "cat /data/last && echo new > /data/new && sync && sleep 100000" && runs new 420'
	check "the old writer has errors" wait_for 60 old_ended
	last=$(k exec new -- cat /data/last)
	check "the machine is back" eval 'lab exec 1 nft delete table inet cut && kubectl wait node/node1 --for=condition=Ready --timeout=120s'
	check "the new one writes on" k exec new -- sh -c 'echo more >> /data/new && sync && cat /data/block > /dev/null'
	check "and the old one has written nothing more" eval '[ "$(k exec new -- cat /data/last)" = "$last" ]'
	check "it ends" goes new
	check "the file system is clean" eval 'app look node3 dir "sleep 100000" && runs look && clean'
	k delete pvc fenced --wait=false > /dev/null
else
	skip "a machine that is cut off, whose volume another gets" "takes minutes: with --long"
fi

# ---- nodes, room, and what becomes of the data

late_class() {
	kubectl label node node2 side=east && kubectl apply -f - <<-'END'
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: late}
		provisioner: csi.quartermaster.storage
		volumeBindingMode: WaitForFirstConsumer
		allowedTopologies: [{matchLabelExpressions: [{key: side, values: [east]}]}]
		parameters: {deployment: glusterfs, namespace: quartermaster}
	END
}
attributes_class() { # NAME KEY VALUE
	jq -n --arg name "$1" --arg key "$2" --arg value "$3" '{apiVersion: "storage.k8s.io/v1", kind: "VolumeAttributesClass", metadata: {name: $name},
		driverName: "csi.quartermaster.storage", parameters: {($key): $value}}' | kubectl apply -f -
}
change() { k patch pvc east --patch "{\"spec\":{\"volumeAttributesClassName\":\"$1\"}}"; }
in_force() { k wait pvc/east --for=jsonpath='{.status.currentVolumeAttributesClassName}'="$1" --timeout=30s && pv_of east | jq -e --arg class "$1" '.spec.volumeAttributesClassName == $class'; }
check "growing beyond all room is refused" eval 'grow dir 100Gi && wait_for 30 eval "[ \$(k get pvc dir -o jsonpath={.status.allocatedResourceStatuses.storage}) = ControllerResizeInfeasible ]"'
check "and less can be asked for then" eval 'grow dir 128Mi && wait_for 60 eval "[ \$(k get pvc dir -o jsonpath={.status.capacity.storage}) = 128Mi ]"'
check "a class for some nodes" late_class
check "its claim gets a volume with a pod" eval 'want east late ReadWriteOnce 32Mi && app east "" east "echo x > /data/x && sleep 100000" && runs east'
check "which runs where the class allows" eval '[ "$(k get pod east -o jsonpath="{.spec.nodeName}")" = node2 ]'
check "and the volume says so" eval 'pv_of east | jq -e ".spec.nodeAffinity.required.nodeSelectorTerms == [{matchExpressions: [{key: \"side\", operator: \"In\", values: [\"east\"]}]}]"'
check "each class says what is left" eval 'q get csistoragecapacities -o json | jq -e "[.items[] | select(.nodeTopology == {} and .maximumVolumeSize) | .storageClassName] | contains([\"files\", \"glusterfs\", \"late\"])"'
check "a pod whose claim fits nowhere is not placed" eval 'want huge late ReadWriteOnce 100Gi && app huge "" huge "sleep 100000" && wait_for 60 said huge "enough free storage"'
check "and its claim is given to no node" eval 'k get pvc huge -o json | jq -e ".metadata.annotations[\"volume.kubernetes.io/selected-node\"] == null"'
check "classes of attributes" eval 'attributes_class keep reclaim archive && attributes_class drop reclaim delete && attributes_class odd iops 3000'
check "a claim is to be archived" eval 'change keep && in_force keep && pv_of east | jq -e ".metadata.annotations[\"quartermaster.storage/reclaim\"] == \"archive\""'
check "what cannot be changed is refused" eval 'change odd && k wait pvc/east --for=jsonpath="{.status.modifyVolumeStatus.status}"=Infeasible --timeout=30s && wait_for 30 said east iops'
check "and is not in force" eval 'k get pvc east -o json | jq -e ".status.currentVolumeAttributesClassName == \"keep\""'
check "or is to be deleted after all" eval 'change drop && in_force drop && pv_of east | jq -e ".metadata.annotations[\"quartermaster.storage/reclaim\"] == null"'

# ---- and nothing is left

no_volumes() { [ -z "$(kubectl get pv,volumesnapshotcontents -o name)" ]; }
no_devices() { local n; for n in 1 2 3; do ! lab exec $n losetup -a | grep -E 'virtblock|rawblock|ephemeral' || return; done; }
check "the pods go" k delete pod --all --timeout=90s
check "no device is left" wait_for 30 no_devices
check "the claims and snapshots go" k delete volumesnapshot,pvc --all --timeout=90s
check "and the volumes with them" wait_for 90 no_volumes
keep
plan
