#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 700
# Local mode on a machine that has no client software: an NFS share and a LUN are mounted through client containers, which
# crun makes from OCI archives. What keeps them is killed meanwhile. Then the same with the machine's own software.
if [ -z "${QM_GUEST:-}" ]; then
	cd "$(dirname "$0")/../.." || exit 1
	. tests/lib/client_image.sh
	command -v crun > /dev/null || { echo "1..0 # SKIP needs crun"; exit 0; }
	# made here, where it takes a second; the guest sees this machine's files
	QM_IMAGES=$(mktemp -d /tmp/qm-clients.XXXXXX)
	export QM_IMAGES QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-580}
	trap 'rm -rf "$QM_IMAGES"' EXIT
	client_image "$QM_IMAGES/nfs.tar" /usr/sbin/mount.nfs && client_image "$QM_IMAGES/iscsi.tar" /usr/sbin/{iscsiadm,iscsid,multipath} || exit 1
	tests/guest/run "$0" "$@"
	exit
fi
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/lio.sh
PATH=$PWD/${QM_BUILD:-build}/src/cli:$PWD/${QM_BUILD:-build}/src/clients:$PATH
CALL=$PWD/${QM_BUILD:-build}/tests/unit/csi/csi-call
state=/var/lib/quartermaster run=/run/quartermaster

nfs_server() {
	modprobe -a nfsd nfs nfsv4 && mkdir -p /run/export/vol-a /run/rpcbind && mount -t tmpfs state /var/lib/nfs &&
		mkdir -p /var/lib/nfs/{rpc_pipefs,v4recovery,sm} && touch /var/lib/nfs/{etab,rmtab} && mount -t nfsd nfsd /proc/fs/nfsd &&
		exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 '*:/run/export' &&
		rpc.mountd && rpc.nfsd --no-nfs-version 3 --nfs-version 4.2 2
}
target() { lio_prepare && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 && lio_target $t1 127.0.0.1:3260 && lio_lun $t1 0 d0; }
# cgroups as most machines have them
machine() { mount -t cgroup2 cgroup /sys/fs/cgroup; }
hidden="/usr/sbin/mount.nfs /usr/sbin/iscsiadm /usr/sbin/iscsid"
hide() { local f; cp /usr/sbin/iscsid /run/own-iscsid && for f in $hidden; do mount --bind /dev/null $f || return 1; done; ! iscsiadm -V; }
show() { local f; for f in $hidden; do umount $f || return 1; done; }

call() { "$CALL" $run/node.sock "Node.$1" "$2"; }
# arguments of a volume: nfs or lun
args() {
	local cap='{"mount":{},"access_mode":{"mode":5}}' context='{"driverVolumeType":"NFS","export":"127.0.0.1:/","name":"vol-a"}'
	[ "$1" = nfs ] || { cap='{"block":{},"access_mode":{"mode":5}}'; context="{\"driverVolumeType\":\"ISCSI\",\"targetIqn\":\"$t1\",\"targetPortal\":\"127.0.0.1:3260\",\"targetLun\":\"0\"}"; }
	printf '"volume_id":"%s","staging_target_path":"/run/k/stage-%s","target_path":"/run/k/%s","volume_capability":%s,"volume_context":%s' "$1" "$1" "$1" "$cap" "$context"
}
only() { jq -cn "{$1} | with_entries(select(.key | IN($2)))"; }
stage() { mkdir -p "/run/k/stage-$1" && call NodeStageVolume "$(only "$(args "$1")" '"volume_id","staging_target_path","volume_capability","volume_context"')"; }
publish() { call NodePublishVolume "{$(args "$1")}"; }
unpublish() { call NodeUnpublishVolume "$(only "$(args "$1")" '"volume_id","target_path"')"; }
unstage() { call NodeUnstageVolume "$(only "$(args "$1")" '"volume_id","staging_target_path"')"; }
bring() { stage "$1" && publish "$1"; }
take() { unpublish "$1" && unstage "$1"; }
share_written() { echo "$1" > /run/k/nfs/file && [ "$(cat /run/export/vol-a/file)" = "$1" ]; }
lun_written() { dd if=/dev/urandom of=/run/data bs=1M count=2 status=none && dd if=/run/data of=/run/k/lun bs=1M oflag=direct conv=notrunc status=none && cmp -n 2097152 /run/data /run/d0.img; }

info() { qm-client --info "$run/clients/$1"; }
said() { info "$1" | jq -e "$2"; }
client() { pgrep -f "^/qm/qm-client .*/clients/$1\$"; }
ours() { pgrep -f "^([^ ]*/)?quartermaster $1( .*)?\$"; }
answers() { wait_for 60 "$CALL" $run/node.sock Identity.Probe; }
nfs_mounts() { awk '$3 ~ /^nfs4?$/' /proc/mounts | wc -l; }

check "an NFS server" nfs_server
check "an iSCSI target" target
check "a machine" machine
check "without client software" hide
check "up with two images" timeout 200 quartermaster up --nfs_mount_container="$QM_IMAGES/nfs.tar" --iscsi-mount-container="$QM_IMAGES/iscsi.tar"
[ "$tap_failed" = 0 ] || { tail -n 20 $state/log/*.log | sed 's/^/# /'; plan; exit 1; }
check "both clients run" said nfs '.users == 0'
check "the iSCSI client has its daemon, since the machine has none" said iscsi '.daemons[0].program == "iscsid"'
check "made with crun" [ -e $run/containers/state/qm-iscsi/status ]
check "each in a cgroup of its own" bash -c 'ls -d /sys/fs/cgroup/quartermaster-qm-nfs /sys/fs/cgroup/quartermaster-qm-iscsi'
check "the node service answers" answers

check "a share comes" bring nfs
check "it is mounted once here" [ "$(nfs_mounts)" -ge 1 ]
check "and written" share_written one
check "a LUN comes" bring lun
check "with one session" count sessions 1
check "and is written" lun_written
check "the client counts it" said iscsi '.users == 1'

before="$(client nfs) $(client iscsi)"
again() { local now; now=$(ours "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }
# one after the other: supervisor and operator start each other, so who kills both at once has ended them
for victim in node supervise operator; do
	old=$(ours $victim)
	check "kill -9 of $victim" kill -9 "$old"
	check "the share is written" share_written "$victim"
	check "the LUN is written" lun_written
	check "it comes back" wait_for 60 again $victim "$old"
done
check "the node service is back" answers
check "the clients are the same" [ "$(client nfs) $(client iscsi)" = "$before" ]
check "down is refused: somebody uses it" refuses 'could not be unmounted|users yet|in use' bash -c 'exec 7> /run/k/nfs/held; quartermaster down'
check "what it has taken away already comes back" bring lun
check "the share is written" share_written again
check "kill -9 of the iSCSI client" kill -9 "$(client iscsi)"
check "it comes back, with its daemon" wait_for 60 said iscsi '.users == 1'
check "the LUN is written" lun_written

check "the share goes" take nfs
check "and its mount" [ "$(nfs_mounts)" = 0 ]
check "the LUN goes" take lun
check "and its session" count sessions 0
check "and its record" [ -z "$(find /etc/iscsi/nodes -type f)" ]
check "nobody uses the client" said iscsi '.users == 0'

echo "# --- beside the machine's own daemon"
check "the client's daemon ends" quartermaster down
check "the machine's begins" /run/own-iscsid
check "up with what was chosen" timeout 200 quartermaster up
check "no second daemon runs" said iscsi '.daemons == []'
check "the node service answers" answers
check "a LUN comes all the same" bring lun
check "and is written" lun_written
check "the LUN goes" take lun

echo "# --- the machine's own software"
check "it is there again" show
check "host for both" timeout 200 quartermaster up --nfs-mount-container=host --iscsi_mount_container=host
check "no container is left" [ -z "$(client nfs)$(client iscsi)" ]
check "the share comes" bring nfs
check "and is written" share_written host
check "the LUN comes" bring lun
check "and is written" lun_written
check "down takes both away" quartermaster down --delete-data
left() { [ "$(nfs_mounts)" = 0 ] || grep nfs /proc/mounts; ls -d $run /sys/fs/cgroup/quartermaster*; grep " $state/" /proc/self/mountinfo; pgrep -f qm-client; }
check "nothing is left" [ -z "$(left 2> /dev/null)" ]
check "no session either" count sessions 0
plan
