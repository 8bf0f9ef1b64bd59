#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The user stories of "Containerized Volume Clients for Kubernetes", each by its own words. VCS is the volume client
# software. What they promise is tested in depth elsewhere: 50-csi.sh (under I/O), 52-clients.sh (upgrades), and in
# tests/guest/22-clients.sh for NFS and iSCSI. Prints TAP.
# timeout: 600
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh

export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-stories.$$ # of the tire-kicker's own machine
own_cleanup() {
	lab exec 3 umount /usr/sbin/glusterfs
	lab exec 2 sh -c 'umount /usr/lib/ssl; rm -rf /run/ssl /var/lib/glusterd'
	[ ! -d "$QM_STATE_DIR" ] || QM_BIN=$work/bin ./quickstart down
	kubectl -n stories delete pod --all --grace-period=1 --timeout=60s
	kubectl -n stories delete volumesnapshot,pvc --all --timeout=60s
	kubectl delete storageclass production
	kubectl delete volumesnapshotclass glusterfs
	rm -rf "$QM_RUN_DIR"
}
story() { check "Story $1" "${@:2}"; }
on_all() { local n; for n in 1 2 3; do "$@" $n || return; done; }

# Node 3 is a platform on which nobody installed a client. The image that the examples name is there, as if pulled.
pulled() { lab exec "$1" ctr -n k8s.io images tag --force localhost/lab:1 docker.io/library/debian:12; }
no_client() { refuses . lab exec 3 glusterfs --version; }
check "images are built and imported" images
check "a machine without client software" eval 'lab exec 3 mount --bind /dev/null /usr/sbin/glusterfs && no_client'
check "one file is submitted, and a StorageNode for each machine" install
check "the image of an application is there" on_all pulled
namespace stories

# runs NAME NODE [CLAIM]: the example of the documentation, on that machine
example() { sed "s/my-app/$1/; s/my-claim/${3:-my-claim}/; s/^spec:/spec:\n  terminationGracePeriodSeconds: 1\n  nodeName: node$2/" docs/examples/pod.yaml; }
ready() { k wait "pod/$1" --for=condition=Ready --timeout=90s || { k describe "pod/$1" | tail -n 8; return 1; }; }
runs() { example "$@" | k apply -f - && ready "$1"; }
starts() { [ "$(k exec "$1" -- wc -l < /dev/null /data/started)" = "$2 /data/started" ]; }

bound() { k wait "pvc/$1" --for=jsonpath='{.status.phase}'=Bound --timeout=60s; }
no_setup() { k apply -f docs/examples/claim.yaml && bound my-claim; }
custom() {
	kubectl get storageclass glusterfs -o json | jq 'del(.metadata.uid, .metadata.resourceVersion, .metadata.ownerReferences, .metadata.labels) |
		.metadata.name = "production" | .reclaimPolicy = "Delete" | .parameters += {kind: "file", "csi.storage.k8s.io/fstype": "xfs"}' | kubectl apply -f - &&
		sed 's/my-claim/own/; s/: glusterfs/: production/; s/ReadWriteMany/ReadWriteOnce/; s/100Mi/320Mi/' docs/examples/claim.yaml | k apply -f - &&
		runs own 2 own && k exec own -- grep ' /data xfs ' /proc/mounts
}
story "0: As a Framework maintainer, I want to provide a no-setup storage experience for non-production environments." no_setup
story "0: As a Framework maintainer, I want to allow custom configuration for production environments." custom

registered_on() { kubectl get csinode "node$1" -o json | jq -e '.spec.drivers | any(.name == "csi.quartermaster.storage")'; }
# the lab's own directory, in which its certificates are, may be named as it likes
no_flag() {
	local line files
	line=$(lab exec "$1" pgrep -a kubelet) && files=$(lab exec "$1" grep -r . /etc/kubernetes) && [ -n "$line" ] && [ -n "$files" ] || return
	! sed "s,${QM_LAB:-/var/tmp/quartermaster-lab},,g" <<< "$line"$'\n'"$files" | grep -i -e quartermaster -e gluster
}
# Nothing has been written to a machine since it started but below the directories that the documentation names, and
# what the lab writes itself.
no_trace() {
	local found
	found=$(lab exec "$1" find /etc /var/lib -newer /run/lab/boot_id -type f ! -path '/etc/kubernetes/*' ! -path '/etc/containerd/*' ! -path '/etc/cni/*' \
		! -path /etc/hosts ! -path /etc/resolv.conf ! -path /etc/hostname ! -path /etc/machine-id ! -path '/var/lib/containerd/*' ! -path '/var/lib/cni/*' \
		! -path '/var/lib/kubelet/*' ! -path '/var/lib/quartermaster/*' ! -path '/var/lib/data/*' 2> /dev/null) # data: 10-lab.sh
	[ -z "$found" ] || { echo "$found"; return 1; }
}
story "1: As a Kubernetes Administrator I do not want to install volume drivers." wait_for 60 on_all registered_on
story "2: As a Framework Maintainer I want to reduce kube configuration required to use kubernetes storage." on_all no_flag
story "2: As a Framework Maintainer I want to reduce/eliminate platform configuration required to use storage." on_all no_trace

client_pod() { q get pod -l quartermaster.storage/client=glusterfs --field-selector "spec.nodeName=node$1" -o json; }
default_client() { client_pod "$1" | jq -e --arg image "$image" '.items | length == 1 and all(.spec.containers[0].image == $image and .status.containerStatuses[0].ready)'; }
story "3: As a Framework Maintainer I want to provide VCS support for volume types that works out-of-the-box." wait_for 60 on_all default_client

# The same manifest, on a platform with client software and then on one without
zero() { runs app 1 && starts app 1; }
moved() { k delete pod app --timeout=60s && runs app 3 && starts app 2; }
raw() { sed 's/my-claim/raw/; s/ReadWriteMany/ReadWriteOnce/; s/^spec:/spec:\n  volumeMode: Block/' docs/examples/claim.yaml | k apply -f - && bound raw; }
raw_pod() {
	example raw "$1" raw | sed 's/volumeMounts/volumeDevices/; s/mountPath/devicePath/; s|/data$|/dev/disk|; s|date.*infinity|dd if=/dev/zero of=/dev/disk bs=4096 count=9 conv=fsync \&\& sleep infinity|' |
		k apply -f - && ready raw && k exec raw -- dd if=/dev/disk of=/dev/null bs=4096 count=9
}
every_kind() { # a directory, a file with a file system of its own, a block device
	raw && k delete pod own --timeout=60s && runs own 3 own && starts own 2 && raw_pod 3 && k delete pod raw --timeout=60s && raw_pod 1 && starts app 2
}
story "4: As a Framework Maintainer I want a workable zero-configuration out-of-the-box experience." zero
story "4: As a Framework Maintainer I want applications to be portable across Platforms." moved
story "4: As a Framework Maintainer I want supported volumes to work regardless of Platform." every_kind
check "their pods go" k delete pod app own raw --timeout=60s

# ---- whose software it is

# A storage vendor's image: GlusterFS as Debian builds it, a file by which it is known, and nothing of ours
vendor() {
	local tar=$archives/quartermaster-glusterfs.tar layer link
	layer=$(tar -xOf "$tar" ./manifest.json | jq -r '.[0].Layers[0]') && tar -xOf "$tar" "./$layer" | gunzip > "$work/debian.tar" || return
	mkdir -p "$work/vendor/etc" "$work/vendor/usr/lib/ssl" && echo enhanced > "$work/vendor/etc/vendor"
	for link in pem key ca; do touch "$work/vendor/usr/lib/ssl/.wh.glusterfs.$link"; done # not there, in a layer's words
	tar -C "$work/vendor" -cf "$work/vendor.tar" . && ! tar -tf "$work/debian.tar" | grep -E 'bin/(quartermaster|qm-)' &&
		lab image vendor.example/client:1 "$work/debian.tar" "$work/vendor.tar"
}
# each_client N COMMAND…: holds for each process that serves a mount on machine N, and there is one
each_client() { local p all; all=$(client_pids "$1") && [ -n "$all" ] && for p in $all; do "${@:2}" "$1" "$p" || return; done; }
is_vendors() { [ "$(lab exec "$1" cat "/proc/$2/root/etc/vendor")" = enhanced ]; }
is_not_vendors() { ! lab exec "$1" test -e "/proc/$2/root/etc/vendor"; }
nothing_of_ours() { ! lab exec "$1" find "/proc/$2/root/usr" "/proc/$2/root/etc" "/proc/$2/root/bin/" -iname '*quartermaster*' -o -name 'qm-*' | grep .; }
loop='i=0; while :; do i=$((i + 1)); dd if=/dev/zero of=/data/block bs=4096 count=4 conv=fsync 2> /dev/null \&\& echo $i > /data/count || exit 1; done'
keeper() { example keeper 1 | sed "s#date.*infinity#$loop#; s/^spec:/spec:\n  restartPolicy: Never/" | k apply -f - && ready keeper && moves; }
count() { k exec keeper -- cat /data/count; }
beyond() { local now; now=$(count) && [ "${now:-0}" -gt "$1" ]; }
moves() { local at; at=$(count 2> /dev/null); wait_for 30 beyond "${at:-0}"; }
# told: it is ready everywhere, and the node services know it as the first to ask
custom_client() {
	operator_args '' --glusterfs-mount-container=vendor.example/client:1 && wait_for 120 told &&
		q rollout status daemonset/quartermaster-node --timeout=120s && runs app 3 && each_client 3 is_vendors
}
told() {
	local id
	id=$(q get daemonset -l quartermaster.storage/client=glusterfs -o json | jq -er '.items[] |
		select(.spec.template.spec.containers[0].image == "vendor.example/client:1" and .status.numberReady == 3).metadata.labels["quartermaster.storage/client-id"]') &&
		field daemonset/quartermaster-node '{.spec.template.spec.containers[0].command}' | grep -F -e "--client=glusterfs=$id"
}
check "a vendor has an image of its own" vendor
check "an application writes all the time, on another machine" keeper
before=$(client_pids 1)
story "5: As a Storage Framework Maintainer I want to provide enhanced or custom supported VCS." custom_client
story "6: As a Storage Framework Maintainer I want to provide out-of-tree VCS." each_client 3 nothing_of_ours

upgrade_waits() { [ "$(client_pids 1)" = "$before" ] && each_client 1 is_not_vendors && moves; }
uid() { client_pod 1 | jq -r '.items[] | select(.metadata.deletionTimestamp) | .metadata.uid'; }
stays() {
	renew_later 1 && wait_for 30 eval '[ -n "$(uid)" ]' && moves && [ "$(client_pids 1)" = "$before" ] && [ -n "$(uid)" ]
}
renew_later() { q delete pod -l quartermaster.storage/client=glusterfs --field-selector "spec.nodeName=node$1" --wait=false; }
upgraded() { k delete pod keeper --timeout=60s && wait_for 60 eval '[ -z "$(uid)" ]' && runs next 1 && each_client 1 is_vendors; }
story "6: As a Storage Administrator I want a deliberate upgrade path for VCS." upgrade_waits
story "6: As a Storage Framework Maintainer my storage system requires the VCS to continue running while the storage is being used. (TSR/Daemon requried for client)" stays
check "the upgrade ends with its last user" upgraded

in_client_pod() {
	local uids
	uids=$(client_pod "$1" | jq -r '.items[].metadata.uid') && [ -n "$uids" ] && lab exec "$1" grep -F "$(sed 's/^/pod/' <<< "$uids")" "/proc/$2/cgroup" &&
		[ "$(lab exec "$1" stat -Lc %d:%i "/proc/$2/root/")" != "$(lab exec "$1" stat -c %d:%i /)" ]
}
containerized() { each_client 1 in_client_pod && each_client 3 in_client_pod && no_client; }
story "6: As a Platform Matinaer I want the VCS containerized" containerized

# Machine 2 has client software of its own, which the platform gave the certificates of the pools
platform() {
	local name
	lab exec 2 sh -c 'cp -a /usr/lib/ssl /run/ssl && mount --bind /run/ssl /usr/lib/ssl && mkdir -p /var/lib/glusterd && touch /var/lib/glusterd/secure-access' || return
	for name in pem:tls.crt key:tls.key ca:ca.crt; do
		field secret/glusterfs-client "{.data.$(sed 's/.*://; s/\./\\./' <<< $name)}" | base64 -d | lab exec 2 tee "/usr/lib/ssl/glusterfs.${name%:*}" > /dev/null || return
	done
}
unmanaged() { [ -z "$(q get daemonset,pod -l quartermaster.storage/client=glusterfs -o name)" ]; }
told_host() { field daemonset/quartermaster-node '{.spec.template.spec.containers[0].command}' | grep -F -e --client=glusterfs=host && q rollout status daemonset/quartermaster-node --timeout=10s; }
is_machines() { [ "$(lab exec "$1" readlink "/proc/$2/ns/mnt")" = "$(lab exec "$1" readlink /proc/1/ns/mnt)" ] && ! lab exec "$1" grep kubepods "/proc/$2/cgroup"; }
by_host() {
	k delete pod app next --timeout=60s && platform && operator_args --glusterfs-mount-container= --glusterfs-mount-container=host &&
		wait_for 60 unmanaged && wait_for 90 told_host && runs app 2 && each_client 2 is_machines
}
node_pod() { q get pod -l quartermaster.storage/role=node --field-selector "spec.nodeName=node$1" -o name; }
outlives() {
	local before
	before=$(client_pids 2) && q delete "$(node_pod 2)" --timeout=60s && q rollout status daemonset/quartermaster-node --timeout=60s &&
		k exec app -- sh -c 'echo more >> /data/more && cat /data/more' && [ "$(client_pids 2)" = "$before" ]
}
told_missing() { k get events -o json | jq -r '.items[] | select(.involvedObject.name == "none") | .message' | grep 'this machine has no program glusterfs; install it there (Debian: glusterfs-client), or have it in a container: --glusterfs-mount-container=IMAGE'; }
story "6: As a Platform Maintainer I do not want the VCS containerized or managed by the Framework. The platform will manage the VCS." by_host
check "that software outlives the node service's pod" outlives
check "a machine that has none is told so" eval 'example none 3 | k apply -f - && wait_for 60 told_missing'

# ---- examples, letter by letter

as_installed_again() { k delete pod app none --timeout=60s && operator_as_installed && clients_as_told && wait_for 90 on_all default_client && q rollout status daemonset/quartermaster-node --timeout=90s; }
examples() { k apply -f docs/examples/claim.yaml -f docs/examples/pod.yaml -f docs/examples/snapshot.yaml && ready my-app && bound restored; }
restored() { runs other 3 restored && k exec other -- test -s /data/started; }
# A store of its own, although $KUBECONFIG names the cluster
here() { env -u KUBECONFIG "$work/bin/quartermaster" "$@"; }
own_machine() {
	QM_BIN=$work/bin ./quickstart && here apply -f docs/examples/claim.yaml && here mount my-claim "$QM_RUN_DIR/here" &&
		echo kicked > "$QM_RUN_DIR/here/tire" && grep -q " $QM_RUN_DIR/here fuse.glusterfs " /proc/mounts && QM_BIN=$work/bin ./quickstart down
}
check "all is as it was" as_installed_again
story "6: As a tire-kicker I want to run network storage examples with no additional configuration." examples
story "6: As a tire-kicker I want to run network storage examples with no manual VCS configuration" restored
check "nor on a machine without Kubernetes" own_machine
keep
plan
