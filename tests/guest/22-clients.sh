#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 700
# Local mode on a machine that has no client software: an NFS share and a LUN are mounted through client containers, which
# crun makes from OCI archives. What keeps them is killed meanwhile. Then the same with the machine's own software.
cd "$(dirname "$0")/../.." || exit 1
. tests/guest/client.sh
[ -n "${QM_GUEST:-}" ] || client_images "$0" nfs:/usr/sbin/mount.nfs iscsi:/usr/sbin/iscsiadm,/usr/sbin/iscsid,/usr/sbin/multipath
. tests/guest/lio.sh

nfs_server() { nfs_state && rpc.mountd && rpc.nfsd --no-nfs-version 3 --nfs-version 4.2 2; }
target() { lio_prepare && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 && lio_target $t1 127.0.0.1:3260 && lio_lun $t1 0 d0; }
hidden="/usr/sbin/mount.nfs /usr/sbin/iscsiadm /usr/sbin/iscsid"
# shellcheck disable=SC2086 # words
hide_all() { cp /usr/sbin/iscsid /run/own-iscsid && hide $hidden && ! iscsiadm -V; }
show() { local f; for f in $hidden; do umount $f || return 1; done; }
context[nfs]='{"driverVolumeType":"NFS","export":"127.0.0.1:/","name":"vol-a"}'
context[lun]="{\"driverVolumeType\":\"ISCSI\",\"targetIqn\":\"$t1\",\"targetPortal\":\"127.0.0.1:3260\",\"targetLun\":\"0\"}"
kind[lun]=block

ours() { pgrep -f "^([^ ]*/)?quartermaster $1( .*)?\$"; }

check "an NFS server" nfs_server
check "an iSCSI target" target
check "a machine" machine
check "without client software" hide_all
check "up with two images" timeout 200 quartermaster up --nfs_mount_container="$QM_IMAGES/nfs.tar" --iscsi-mount-container="$QM_IMAGES/iscsi.tar"
give_up
check "both clients run" said nfs '.users == 0'
check "the iSCSI client has its daemon, since the machine has none" said iscsi '.daemons[0].program == "iscsid"'
check "made with crun" [ -e $run/containers/state/qm-iscsi/status ]
check "each in a cgroup of its own" bash -c 'ls -d /sys/fs/cgroup/quartermaster-qm-nfs /sys/fs/cgroup/quartermaster-qm-iscsi'
check "the node service answers" answers

check "a share comes" bring nfs
check "it is mounted once here" [ "$(nfs_mounts)" -ge 1 ]
check "and written" share_written nfs one
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
	check "the share is written" share_written nfs "$victim"
	check "the LUN is written" lun_written
	check "it comes back" wait_for 60 again $victim "$old"
done
check "the node service is back" answers
check "the clients are the same" [ "$(client nfs) $(client iscsi)" = "$before" ]
check "down is refused: somebody uses it" refuses 'could not be unmounted|users yet|in use' bash -c 'exec 7> /run/k/nfs/held; quartermaster down'
check "what it has taken away already comes back" bring lun
check "the share is written" share_written nfs again
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
check "and is written" share_written nfs host
check "the LUN comes" bring lun
check "and is written" lun_written
check "down takes both away" quartermaster down --delete-data
left() { [ "$(nfs_mounts)" = 0 ] || grep nfs /proc/mounts; ls -d $run /sys/fs/cgroup/quartermaster*; grep " $state/" /proc/self/mountinfo; pgrep -f qm-client; }
check "nothing is left" [ -z "$(left 2> /dev/null)" ]
check "no session either" count sessions 0
plan
