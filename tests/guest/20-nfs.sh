#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The NFS driver of hostvol against the kernel's NFS server.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u
. tests/lib/tap.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH

# The exports lie on memory; the server's own state too, as the guest's root is an overlay.
start_server() {
	modprobe -a nfsd nfs nfsv4 && mkdir -p /run/export/vol-a /run/export/vol-b /run/rpcbind &&
		mount -t tmpfs state /var/lib/nfs && mkdir -p /var/lib/nfs/{rpc_pipefs,v4recovery,sm} &&
		touch /var/lib/nfs/{etab,rmtab} && mount -t nfsd nfsd /proc/fs/nfsd &&
		exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 '*:/run/export' &&
		rpc.mountd && rpc.nfsd --no-nfs-version 3 --nfs-version 4.2 2
}
info() { # VOLUME [NAME [OPTIONS [EXPORT]]]
	printf '{"driverVolumeType":"NFS","volumeId":"%s","data":{"export":"%s","name":"%s","options":"%s"}}\n' \
		"$1" "${4:-127.0.0.1:/}" "${2:-}" "${3:-}"
}
mounts() { awk '$3 ~ /^nfs4?$/ { print $2 }' /proc/mounts; }
mount_count() { [ "$(mounts | wc -l)" = "$1" ] || { mounts; return 1; }; }
connect() { local volume=$1; shift; info "$volume" "$@" > "/run/$volume.json" && hostvol connect "/run/$volume.json"; }
path_of() { hostvol path "$1"; }

check "an NFS server" start_server
check "a volume is connected" connect a vol-a
check "it is mounted" mount_count 1
check "with version 4.2" grep -q 'nfs4 .*vers=4.2' /proc/mounts
written() { echo hello > "$(path_of a)/file" && [ "$(cat /run/export/vol-a/file)" = hello ]; }
check "what is written reaches the server" written
from_server() { echo there > /run/export/vol-a/back && wait_for 70 test -e "$(path_of a)/back"; }
check "and what the server has is read" from_server
check "list knows it" bash -c 'hostvol list --json | jq -e ".. | objects | select(.volumeId? == \"a\")" > /dev/null'

check "a second volume of the export" connect b vol-b
check "shares the mount" mount_count 1
separate() { echo b > "$(path_of b)/file" && [ "$(cat /run/export/vol-b/file "$(path_of a)/file" | tr '\n' ' ')" = "b hello " ]; }
check "but not the directory" separate
check "connecting again changes nothing" connect a vol-a
check "nor adds a mount" mount_count 1
check "a second consumer of the first volume" hostvol connect --consumer other /run/a.json

check "one consumer ends" hostvol disconnect --consumer other a
check "the volume is still there" written
check "the first volume ends" hostvol disconnect a
check "the mount stays for the second" mount_count 1
check "the second is still written" bash -c "echo more >> $(path_of b)/file"
check "a file in it is held open" bash -c "exec 7< $(path_of b)/file; ! hostvol disconnect b"
check "the second ends" hostvol disconnect b
check "now the mount is gone" mount_count 0
check "ending again is no error" hostvol disconnect b
check "its path is not known any more" refuses . hostvol path b

check "a missing export is refused" refuses 'no-such|No such|denied|mount' connect c '' '' 127.0.0.1:/no-such
check "a missing directory of an export" refuses . connect c no-such-dir
check "a name that leads out" refuses . connect c ../etc
ln -s /etc /run/export/evil
check "a link that leads out" refuses . connect c evil
nobody() { timeout 60 hostvol --timeout=10 connect /run/c.json; }
info c '' port=9 > /run/c.json
check "a server that refuses" refuses . nobody
check "nothing of these is mounted" mount_count 0
check "nothing is listed" bash -c '[ "$(hostvol list --json | jq "[.. | objects | select(.volumeId?)] | length")" = 0 ]'

# a server that goes away must not take the caller with it
check "connected once more" connect a vol-a soft,timeo=20,retrans=1
check "the server stops" rpc.nfsd 0
ends() { timeout 90 hostvol --timeout=30 disconnect --force a; }
check "disconnecting by force ends in time" ends
check "and leaves no mount" mount_count 0
plan
