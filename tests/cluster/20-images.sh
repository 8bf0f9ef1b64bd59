#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The images that deploy/images/build makes, in pods of the real cluster. Prints TAP.
# timeout: 420
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh
cleanup() {
	local n
	rm -rf "$work"
	kubectl -n images delete daemonset storage --cascade=foreground --timeout=60s > /dev/null 2>&1 # before what it writes to
	for n in 1 2 3; do lab exec "$n" rm -rf /var/lib/images-test; done
}

archive() { echo "$archives/quartermaster-$1.tar"; }
reference() { echo "localhost/quartermaster-$1:$version"; }
smaller() { [ "$(stat -c %s "$(archive "$1")")" -lt $(($2 * 1048576)) ]; }
same_again() {
	local name
	deploy/images/build --output "$work" || return
	for name in operator glusterfs; do cmp "$work/quartermaster-$name.tar" "$(archive "$name")" || return; done
}

# Every package that is inside has its licence there.
licences() {
	local tar layer papers
	tar=$(archive "$1")
	for layer in $(tar -xOf "$tar" ./manifest.json | jq -r '.[0].Layers[]'); do
		tar -xOf "$tar" "./$layer" | tar -tz
	done > "$work/list"
	papers=$(sed -n 's,^./var/lib/dpkg/status.d/\(..*\),./usr/share/doc/\1/copyright,p' "$work/list")
	[ -n "$papers" ] && ! grep -vxFf "$work/list" <<< "$papers" && grep -qx ./usr/share/doc/quartermaster/copyright "$work/list"
}

# start NAME IMAGE COMMAND…: in a pod with a read-only root and no rights
start() {
	local name=$1 image
	image=$(reference "$2")
	shift 2
	jq -n --arg name "$name" --arg image "$image" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name}, spec: {
		restartPolicy: "Never", containers: [{name: "c", image: $image, command: $ARGS.positional, securityContext: {
			readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 65532,
			capabilities: {drop: ["ALL"]}}}]}}' --args -- "$@"
}
says() {
	k wait "pod/$1" --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s
	k logs "$1" | tee "$work/said"
	grep -q "$2" "$work/said"
}

check "both are built, and imported on all nodes" images
check "the operator's is below 40 MiB" smaller operator 40
check "that of GlusterFS is below 150 MiB" smaller glusterfs 150
check "the same comes out again" same_again
for name in operator glusterfs; do check "$name: licences of all packages" licences "$name"; done

check "no other store is there" fresh
namespace images
programs() {
	{ for name in operator glusterfs; do start "$name" "$name" quartermaster version; done
		start worker operator qm-gluster --version
		start client operator qm-client --help
		start mkfs-ext4 operator mkfs.ext4 -V
		start mkfs-xfs operator mkfs.xfs -V
		start nfs operator mount.nfs -V
		start glusterd glusterfs glusterd --version
		start gluster glusterfs gluster --version
		start mkfs glusterfs mkfs.xfs -V; } | k apply -f -
}
check "pods run their programs" programs
for name in operator glusterfs; do check "$name: quartermaster runs" says "$name" "quartermaster $version"; done
check "operator: qm-gluster runs" says worker "qm-gluster $version"
check "operator: qm-client runs" says client '^Usage: qm-client'
check "operator: mkfs.ext4 runs" says mkfs-ext4 '^mke2fs'
check "operator: mkfs.xfs runs" says mkfs-xfs '^mkfs.xfs version'
# mount.cifs asks to be root, which these pods are not
check "operator: mount.nfs runs" says nfs 'nfs-utils'
check "glusterfs: glusterd runs" says glusterd '^glusterfs [0-9]'
check "glusterfs: gluster runs" says gluster '^glusterfs [0-9]'
check "glusterfs: mkfs.xfs runs" says mkfs '^mkfs.xfs version'

# ---- a store of it: glusterd in a pod on each node, as storage pods run it

storage_pods() {
	k apply -f - <<-END
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: storage}
		spec:
		  selector: {matchLabels: {app: storage}}
		  template:
		    metadata: {labels: {app: storage}}
		    spec:
		      hostNetwork: true
		      terminationGracePeriodSeconds: 0
		      containers:
		      - name: glusterd
		        image: $(reference glusterfs)
		        command: [glusterd, -N]
		        securityContext: {privileged: true, readOnlyRootFilesystem: true}
		        volumeMounts:
		        - {name: glusterd, mountPath: /var/lib/glusterd}
		        - {name: bricks, mountPath: /var/lib/quartermaster}
		        - {name: run, mountPath: /run}
		        - {name: run, mountPath: /tmp} # it reads volume files by way of a temporary file
		        - {name: log, mountPath: /var/log/glusterfs}
		        - {name: dev, mountPath: /dev}
		      volumes:
		      - {name: glusterd, hostPath: {path: /var/lib/images-test/glusterd, type: DirectoryOrCreate}}
		      - {name: bricks, hostPath: {path: /var/lib/images-test/bricks, type: DirectoryOrCreate}}
		      - {name: run, emptyDir: {}}
		      - {name: log, emptyDir: {}}
		      - {name: dev, hostPath: {path: /dev}}
	END
	wait_for 60 test "$(k get ds/storage -o jsonpath='{.status.desiredNumberScheduled}')" = 3
	k rollout status ds/storage --timeout=120s
}

pod_on() { k get pod -l app=storage -o jsonpath="{.items[?(@.spec.nodeName==\"node$1\")].metadata.name}"; }
gluster() { k exec "$(pod_on 1)" -- gluster --mode=script "$@"; }
connected() { [ "$(gluster pool list | grep -c Connected)" = 3 ]; }
pool() {
	local n bricks=()
	for n in 1 2 3; do bricks+=("$(address $n):/var/lib/quartermaster/b"); done
	wait_for 60 gluster pool list
	gluster peer probe "$(address 2)" && gluster peer probe "$(address 3)" && wait_for 60 connected &&
		gluster volume create p replica 3 "${bricks[@]}" force && gluster volume start p
}

heal_info() { gluster volume heal p info | grep -c 'Number of entries: 0' | grep -qx 3; }

check "glusterd runs in a pod on each node, its root read-only" storage_pods
check "they form a store" pool
check "self-heal answers" wait_for 60 heal_info
plan
