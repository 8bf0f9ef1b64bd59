#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The images that deploy/images/build makes, in pods of the real cluster. Prints TAP.
# timeout: 420
. "$(dirname "$0")/lib.sh"
version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" meson.build | head -n 1)
out=$(mktemp -d)
cleanup() { rm -rf "$out"; }

archive() { echo "$out/quartermaster-$1.tar"; }
reference() { echo "localhost/quartermaster-$1:$version"; }
smaller() { [ "$(stat -c %s "$(archive "$1")")" -lt $(($2 * 1048576)) ]; }
same_again() {
	sha256sum "$out"/*.tar > "$out/sums" && deploy/images/build --output "$out" && sha256sum -c "$out/sums"
}

# Every package that is inside has its licence there.
licences() {
	local tar layer papers
	tar=$(archive "$1")
	for layer in $(tar -xOf "$tar" ./manifest.json | jq -r '.[0].Layers[]'); do
		tar -xOf "$tar" "./$layer" | tar -tz
	done > "$out/list"
	papers=$(sed -n 's,^./var/lib/dpkg/status.d/\(..*\),./usr/share/doc/\1/copyright,p' "$out/list")
	[ -n "$papers" ] && ! grep -vxFf "$out/list" <<< "$papers" && grep -qx ./usr/share/doc/quartermaster/copyright "$out/list"
}

# run NAME IMAGE COMMAND…: in a pod with a read-only root and no rights; prints what it said
run() {
	local name=$1 image
	image=$(reference "$2")
	shift 2
	jq -n --arg name "$name" --arg image "$image" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name}, spec: {
		restartPolicy: "Never", containers: [{name: "c", image: $image, command: $ARGS.positional, securityContext: {
			readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 65532,
			capabilities: {drop: ["ALL"]}}}]}}' --args -- "$@" | k apply -f -
	k wait "pod/$name" --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s
	k logs "$name"
}
says() { local wanted=$1; shift; run "$@" > "$out/said" 2>&1; cat "$out/said"; grep -q "$wanted" "$out/said"; }

check "both are built" deploy/images/build --output "$out"
check "the operator's is below 40 MiB" smaller operator 40
check "that of GlusterFS is below 150 MiB" smaller glusterfs 150
check "the same comes out again" same_again
for image in operator glusterfs; do
	check "$image: licences of all packages" licences "$image"
	check "$image: imported on all nodes" lab image "$(reference "$image")" "$(archive "$image")"
done

namespace images
for image in operator glusterfs; do
	check "$image: quartermaster runs" says "quartermaster $version" "$image-version" "$image" quartermaster version
done
check "operator: qm-gluster runs" says "qm-gluster $version" worker operator qm-gluster --version
check "operator: qm-client runs" says '^Usage: qm-client' client operator qm-client --help
check "operator: mkfs.ext4 runs" says '^mke2fs' mkfs-ext4 operator mkfs.ext4 -V
check "operator: mkfs.xfs runs" says '^mkfs.xfs version' mkfs-xfs operator mkfs.xfs -V
check "glusterfs: glusterd runs" says '^glusterfs [0-9]' glusterd glusterfs glusterd --version
check "glusterfs: gluster runs" says '^glusterfs [0-9]' gluster glusterfs gluster --version
check "glusterfs: mkfs.xfs runs" says '^mkfs.xfs version' mkfs glusterfs mkfs.xfs -V

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
address() { kubectl get node "node$1" -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}'; }
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
