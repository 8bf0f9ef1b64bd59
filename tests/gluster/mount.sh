#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quartermaster mount and umount of a volume on real GlusterFS: a client that dies, kill -9 at any
# moment. The API is the embedded one; claim and volume are written by hand. Prints TAP.
set -u
here=$(dirname "$(realpath "$0")")
. "$here/../lib/tap.sh"
. "$here/one_node.sh"
QM=$(realpath "${QUARTERMASTER:-$here/../../build/src/cli/quartermaster}")
HOSTVOL=$(realpath "${HOSTVOL:-$here/../../build/hostvol/hostvol}")
one_node
mkdir -p "$dir/state" "$dir/run"
RANDOM=${QM_SEED:-1}

k() { HOME=$dir kubectl --kubeconfig "$dir/state/admin.kubeconfig" "$@"; }
qm() { timeout 60 "$QM" "$@"; }
once() { [ "$(grep -c " $1 " /proc/self/mountinfo)" = 1 ]; }
nothing_left() { [ "$(mounts) $(clients) $(ls "$dir/state/hostvol/attachments" | wc -l) $(grep -c " $dir/mnt " /proc/self/mountinfo)" = "0 0 0 0" ]; }

make_directory() {
	local root
	root=$(printf '{"driverVolumeType":"GLUSTERFS","export":"%s:/%s","volumeId":"root"}' $node $id | "$HOSTVOL" connect -) &&
		mkdir -p "$root/subvol/aa/bb/pv" && "$HOSTVOL" disconnect root
}
objects() {
	k apply -f - <<-END && k patch pvc data --subresource=status --type=merge -p '{"status":{"phase":"Bound"}}'
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: pv}
		spec:
		  capacity: {storage: 1Gi}
		  accessModes: [ReadWriteMany]
		  csi:
		    driver: csi.quartermaster.storage
		    volumeHandle: v1.p.d.pv
		    volumeAttributes:
		      driverVolumeType: GLUSTERFS
		      export: $node:/$id
		      name: subvol/aa/bb/pv
		      options: backup-volfile-servers=$node
		      volumeId: pv
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: data, namespace: default}
		spec:
		  accessModes: [ReadWriteMany]
		  resources: {requests: {storage: 1Gi}}
		  volumeName: pv
	END
}

"$QM" api >"$dir/api.log" 2>&1 &
others=$!
check "the API" wait_for 20 k get namespaces
check "a directory of the volume" make_directory
check "a claim and a volume" objects
check "mount" qm mount data "$dir/mnt"
check "it can be written" bash -c "echo hello >'$dir/mnt/file'"
check "and read" grep -q hello "$dir/mnt/file"

kill -9 $(client_pid)
check "the client dies" wait_for 5 bash -c "! ls '$dir/mnt'"
check "mount again replaces what is dead" qm mount data "$dir/mnt"
check "it can be read again" grep -q hello "$dir/mnt/file"
check "and stands there once" once "$dir/mnt"
kill -9 $(client_pid)
check "umount of what is dead" qm umount "$dir/mnt"
check "nothing is left" wait_for 5 nothing_left

# what the class says of mounts stands in the volume: options for the client, and flags of the mount
check "a volume with mount options" k patch pv pv --type=merge -p '{"spec":{"mountOptions":["entry-timeout=7,noexec"]}}'
check "is mounted" qm mount data "$dir/mnt"
check "its client has them" eval 'tr "\0" "\n" <"/proc/$(client_pid)/cmdline" | grep -qx -- --entry-timeout=7'
check "and the mount" eval 'grep " $dir/mnt " /proc/self/mountinfo | grep -qw noexec'
check "it ends" qm umount "$dir/mnt"
check "without them" k patch pv pv --type=merge -p '{"spec":{"mountOptions":[]}}'

# kill -9 at any moment of mount and umount; the next call takes it up
killed=0
for i in $(seq "$([ -n "${QM_LONG:-}" ] && echo 40 || echo 8)"); do
	for verb in "mount data" umount; do
		"$QM" $verb "$dir/mnt" >/dev/null 2>&1 &
		p=$!
		sleep "0.$(printf %03d $((RANDOM % 90)))"
		kill -9 $p 2>/dev/null && killed=$((killed + 1))
		wait $p 2>/dev/null
		# shellcheck disable=SC2086
		qm $verb "$dir/mnt" >"$dir/out" 2>&1 || break 2
		if [ "$verb" = umount ]; then nothing_left || break 2; else once "$dir/mnt" && grep -q hello "$dir/mnt/file" || break 2; fi
	done
	i=done
done
check "killed $killed times, taken up each time" test "$i" = done
[ "$i" = done ] || sed 's/^/# /' "$dir/out"
check "nothing is left" wait_for 5 nothing_left
plan
