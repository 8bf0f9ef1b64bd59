#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 700
# Protocols through client containers that 22-clients.sh leaves out: NFSv3 and its locks, SMB with a password, a LUN on two
# portals with the machine's multipathd. The machine itself has no client software.
cd "$(dirname "$0")/../.." || exit 1
. tests/guest/client.sh
[ -n "${QM_GUEST:-}" ] || client_images "$0" nfs:/usr/sbin/mount.nfs,/etc/netconfig,/etc/protocols smb:/usr/sbin/mount.cifs iscsi:/usr/sbin/iscsiadm,/usr/sbin/iscsid,/usr/sbin/multipath,/lib/multipath
. tests/guest/lio.sh
. tests/guest/samba.sh
password='p,w"d \with: all'

# version 3 alone: so that it is found by itself
nfs_server() { nfs_state && rpcbind -w && rpc.mountd && rpc.nfsd --nfs-version 3 --no-nfs-version 4 2 && grep -q '+3 -4' /proc/fs/nfsd/versions; }
target() {
	lio_prepare && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 && lio_target $t1 127.0.0.1:3260 127.0.0.2:3260 && lio_lun $t1 0 d0 && multipathd_start
}
context[nfs]='{"driverVolumeType":"NFS","export":"127.0.0.1:/run/export","name":"vol-a"}'
context[local]='{"driverVolumeType":"NFS","export":"127.0.0.1:/run/export","name":"vol-a","options":"vers=3,nolock"}'
context[smb]='{"driverVolumeType":"SMB","export":"//127.0.0.1/data","name":"vol-a","username":"root"}'
secrets[smb]=$(jq -cn --arg p "$password" '{password: $p}')
context[lun]="{\"driverVolumeType\":\"ISCSI\",\"targetIqn\":\"$t1\",\"targetPortal\":\"127.0.0.1:3260,127.0.0.2:3260\",\"targetLun\":\"0\"}"
kind[lun]=block

check "an NFS server of version 3" nfs_server
check "Samba" eval 'samba_start && wait_for 30 samba_listens'
check "an iSCSI target, and multipathd" target
check "a machine" machine
check "without client software" eval 'hide /usr/sbin/{mount.nfs,mount.cifs,iscsiadm,iscsid,multipath} && ! multipath -h'
check "up with three images" timeout 200 quartermaster up --nfs-mount-container="$QM_IMAGES/nfs.tar" --smb-mount-container="$QM_IMAGES/smb.tar" --iscsi-mount-container="$QM_IMAGES/iscsi.tar"
give_up
check "the node service answers" answers

echo "# --- NFSv3"
check "without statd its locks have nobody: refused, with the way out" refuses 'statd.*nolock' stage nfs
check "with nolock it comes" bring local
check "as version 3" grep -q ' nfs .*vers=3.*local_lock=all' /proc/mounts
check "and is written" share_written local one
check "it goes" take local
check "the machine's statd runs" rpc.statd
check "the share comes" bring nfs
check "as version 3, which nobody had to say" grep -q ' nfs .*vers=3.*local_lock=none' /proc/mounts
check "and is written" share_written nfs two
# a lock of the client is one of the server's, on the file itself; flock is a lock of the other kind there
# shellcheck disable=SC2046 # words
server_lock() { grep "POSIX .*$(printf '%02x:%02x:%d' $(stat -c '%Hd %Ld %i' /run/export/vol-a/lock)) " /proc/locks; }
locked() { exec 7> /run/k/nfs/lock && flock -x 7 && server_lock; local r=$?; exec 7>&-; return $r; }
check "a lock is held at the server" locked
check "and let go" wait_for 10 eval '! server_lock'
check "it goes" take nfs
check "and its mount" [ "$(nfs_mounts)" = 0 ]

echo "# --- SMB"
kept() { grep -rlF -e "$password" -e "$(jq -Rn --arg p "$password" '$p' | sed 's/^"//; s/"$//')" $state $run /var/log 2> /dev/null; }
wrong() { local -A secrets=([smb]='{"password": "wrong-one"}'); stage smb; }
check "a share comes" bring smb
check "as SMB" grep -q ' /run/k/smb cifs ' /proc/mounts
check "and is written" share_written smb three /run/share/vol-a
check "its password is nowhere" [ -z "$(kept)" ]
check "it goes" take smb
check "another password is refused, and not repeated" eval 'refuses "Permission denied|error\(13\)" wrong && ! wrong 2>&1 | grep wrong-one'

echo "# --- a LUN on two portals"
slaves() { ls /sys/block/dm-0/slaves | wc -l; }
is_map() { [ "$(stat -Lc %t:%T /run/k/lun)" = "$(stat -Lc %t:%T /dev/dm-0)" ]; }
portal=$lio/iscsi/$t1/tpgt_1/np/127.0.0.2:3260
paths_run() { ! cat /sys/block/sd*/device/state | grep -v running; }
check "it comes" bring lun
check "with two sessions" count sessions 2
check "one map of two paths" [ "$(slaves)" = 2 ]
check "is what is shown" is_map
check "it is written" lun_written
check "the client counts its sessions" said iscsi '.users == 2'
check "kill -9 of the client" kill -9 "$(client iscsi)"
check "it is written" lun_written
check "the client comes back" wait_for 60 said iscsi '.users == 2'
check "a portal goes" rmdir "$portal"
check "it is written" timeout 60 bash -c "$(declare -f lun_written); lun_written"
check "the portal is back, and the client's daemon logs in again" eval 'mkdir "$portal" && wait_for 90 paths_run'
check "it goes" take lun
check "with its sessions" count sessions 0
check "its map" count maps 0
check "and its name, which multipath remembers" eval '! grep "^/360014050f1c2a9e" /etc/multipath/wwids'

check "down" quartermaster down --delete-data
left() { grep -E ' (nfs4?|cifs) ' /proc/mounts; ls -d $run /sys/fs/cgroup/quartermaster*; grep " $state/" /proc/self/mountinfo; pgrep -f qm-client; }
check "nothing is left" [ -z "$(left 2> /dev/null)" ]
plan
