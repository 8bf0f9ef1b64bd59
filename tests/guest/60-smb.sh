#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The SMB driver of hostvol against Samba.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u
. tests/lib/tap.sh
. tests/guest/samba.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
password='p,w"d \with: all'

# info VOLUME NAME [KEY VALUE]…
info() {
	jq -nc --arg id "$1" --arg name "$2" --arg pw "$password" '{driverVolumeType: "SMB", volumeId: $id,
		data: {export: "//127.0.0.1/data", name: $name, username: "root", password: $pw}}' > "/run/$1.json"
	local volume=$1
	shift 2
	while [ $# -gt 0 ]; do
		jq -c --arg v "$2" "if \$v == \"-\" then del(.data.$1) else .data.$1 = \$v end" "/run/$volume.json" > /run/new.json
		mv /run/new.json "/run/$volume.json"
		shift 2
	done
}
connect() { info "$@"; hostvol connect "/run/$1.json"; }
mount_count() { [ "$(grep -c ' cifs ' /proc/mounts)" = "$1" ] || { grep cifs /proc/mounts; return 1; }; }
path_of() { hostvol path "$1"; }

check "a Samba server" samba_start
check "it samba_listens" wait_for 30 samba_listens
check "a volume is connected" connect a vol-a
check "it is mounted" mount_count 1
written() { echo hello > "$(path_of a)/file" && [ "$(cat /run/share/vol-a/file)" = hello ]; }
check "what is written reaches the server" written
check "a second volume of the share" connect b vol-b
check "shares the mount" mount_count 1
check "with backslashes, it is the same share" connect c vol-a export '\\127.0.0.1\data'
check "still one mount" mount_count 1
check "the password is in no record" bash -c '! grep -rF "with: all" /var/lib/quartermaster/hostvol /run/quartermaster/hostvol'
check "nor in the list" bash -c '! hostvol list --json | grep -F "with: all"'
for volume in c a; do check "$volume ends" hostvol disconnect $volume; done
check "the mount stays for the last" mount_count 1
check "in use it is refused" bash -c "cd $(path_of b) && ! hostvol disconnect b"
check "the last ends" hostvol disconnect b
check "now the mount is gone" mount_count 0

check "with options, the password among them" connect a vol-a options "-o vers=3.1.1,noperm,username=root" username -
check "they are in force" grep -q 'cifs .*vers=3.1.1.*noperm' /proc/mounts
check "for reading only, it is another mount" connect b vol-b accessMode ro
check "of its own" mount_count 2
check "which cannot be written" refuses 'Read-only' bash -c "echo x > $(path_of b)/x"
check "both end" bash -c 'hostvol disconnect a && hostvol disconnect b'
check "a guest" connect a vol-a export //127.0.0.1/open username - password -
check "reads" test "$(cat "$(path_of a)/file")" = hello
check "and ends" hostvol disconnect a

check "a wrong password" refuses 'Permission denied|error\(13\)' connect a vol-a password wrong-secret
check "is not repeated" bash -c '! hostvol connect /run/a.json 2>&1 | grep -F wrong-secret'
check "a share that is not there" refuses 'cannot mount //127.0.0.1/nope' connect a vol-a export //127.0.0.1/nope
check "a directory that is not there" refuses 'cannot find nope' connect a nope
check "a name that leads out" refuses 'not allowed' connect a ../etc
nobody() { timeout 120 hostvol --timeout=10 connect /run/a.json; }
info a vol-a options port=9
check "a server that refuses" refuses 'cannot mount' nobody
check "nothing of these is mounted" mount_count 0
check "nothing is listed" test "$(hostvol list --json)" = '[]'
plan
