#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# QUOBYTE, SCALITY, VZSTORAGE and GPFS: file systems in user space, really mounted by programs that are called as
# the vendors' are.
set -u
. "$(dirname "$0")/room.sh"
room "$@"

peer=$dir/peer
mkdir -p "$peer/tree"/{vol-a,vol-b,cinder/00}
truncate -s 1M "$peer/tree/cinder/00/volume-1" "$peer/tree/cinder/00/volume-2"
ln -s /etc "$peer/tree/evil"
cp "$here/peers/fuse.py" "$peer/"
install_clients() {
	local name
	for name in mount.quobyte mount.sofs pstorage pstorage-mount; do cp "$here/peers/client" "$dir/bin/$name"; done
	echo "$peer" > "$dir/bin/client.dir"
}
plainly() { rm -f "$peer"/*.says "$peer"/*.status; : > "$peer/argv"; }
says() { echo "$2" > "$peer/$1.says"; echo "$3" > "$peer/$1.status"; }
others=$(grep -c ' - fuse' /proc/self/mountinfo) # of this machine, which are here as well
mounts() { [ $(($(grep -c ' - fuse' /proc/self/mountinfo) - others)) = "$1" ] || { grep fuse /proc/self/mountinfo; return 1; }; }
connect() { from "$1" connect -; }
# below LAST COMMAND…: it prints a path below the state directory that ends so, and something is there
below() {
	local last=$1 path; shift
	path=$("$@") || return 1
	case $path in "$QM_STATE_DIR"/hostvol/mnt/*/"$last") [ -e "$path" ] ;; *) echo "printed: $path"; return 1 ;; esac
}

# ---- Quobyte
quobyte() { printf '{"driverVolumeType":"QUOBYTE","data":{"export":"%s","name":"%s","options":"%s","volumeId":"%s"}}' "$1" "$2" "${4:-}" "$3"; }
url=quobyte://192.0.2.40/data
check "Quobyte without its client" refuses 'mount.quobyte is not installed' connect "$(quobyte $url vol-a a)"
check "there is no record" no_records
install_clients
plainly
for type in fuse.quobyte fuse; do
	echo $type > "$peer/quobyte.type"
	check "Quobyte, shown as $type" below vol-a connect "$(quobyte $url vol-a a)"
	check "a second volume of it" below vol-b connect "$(quobyte $url vol-b b)"
	check "shares the mount" mounts 1
	check "the first ends" hv disconnect a
	check "the mount stays" mounts 1
	in_use() { (cd "$(hv path b)" && hv disconnect b); }
	check "in use it is refused" refuses 'is in use' in_use
	check "the second ends" hv disconnect b
	check "now it is unmounted" mounts 0
done
check "with options" below vol-a connect "$(quobyte 192.0.2.40,192.0.2.41/data vol-a a "-o ro,user-xattrs")"
check "they are given on" grep -q '^mount.quobyte 192.0.2.40,192.0.2.41/data .* -o ro,user-xattrs$' "$peer/argv"
hv disconnect a > /dev/null
check "a directory that is not there" refuses 'cannot find nope' connect "$(quobyte $url nope a)"
check "a link that leads out" refuses 'symbolic link' connect "$(quobyte $url evil a)"
check "are unmounted again" mounts 0
for status in 1 32 127; do
	says mount.quobyte 'Could not connect to registry' $status
	check "its client ends with $status" refuses "cannot mount $url: Could not connect to registry \(mount.quobyte, status $status\)" connect "$(quobyte $url vol-a a)"
done
check "no record of these" no_records
plainly
printf '#!/bin/sh\nexit 0\n' > "$dir/bin/mount.quobyte"
check "a client that says yes but mounts nothing" refuses 'was mounted, but is not at' connect "$(quobyte $url vol-a a)"
printf '#!/bin/sh\nmount -t tmpfs quobyte@evil/data "$2"\n' > "$dir/bin/mount.quobyte"
check "one that mounts something else" refuses 'is mounted at' connect "$(quobyte $url vol-a a)"
umount "$QM_STATE_DIR"/hostvol/mnt/*
install_clients
hv recover > /dev/null
check "nothing stays" no_records
for bad in data /data quobyte:///data -o/x 'h/v/../x' 'h/$x'; do
	check "the export \"$bad\" is refused" refuses 'not \[quobyte://\]' connect "$(quobyte "$bad" vol-a a)"
done

# ---- Scality
scality() { printf '{"driverVolumeType":"SCALITY","data":{"export":"cinder","name":"%s","mount_point_base":"%s","volumeId":"%s"}}' "$1" "$2" "${3:-s}"; }
base=$dir/sofs
plainly
check "Scality" gives "$base/cinder/00/volume-1" connect "$(scality volume-1 "$base")"
check "mounts its one file system at the base" grep -q "^mount.sofs /etc/sfused.conf $base$" "$peer/argv"
check "a second volume" gives "$base/cinder/00/volume-2" connect "$(scality volume-2 "$base" s2)"
check "uses it" mounts 1
check "the one that mounted it ends" hv disconnect s
check "it is still mounted" mounts 1
check "the last one ends" hv disconnect s2
check "it is unmounted" mounts 0
check "the directory is the administrator's" test -d "$base"
python3 "$peer/fuse.py" fuse /dev/fuse "$peer/tree" "$base"
check "mounted by somebody before" gives "$base/cinder/00/volume-1" connect "$(scality volume-1 "$base")"
check "it is used" mounts 1
check "its end" hv disconnect s
check "leaves it mounted" mounts 1
check "a volume that is not there" refuses 'cannot find cinder/00/nope' connect "$(scality nope "$base")"
check "leaves it mounted too" mounts 1
umount "$base"
says mount.sofs 'sfused: cannot read /etc/sfused.conf' 2
check "its client fails" refuses 'sfused: cannot read /etc/sfused.conf \(mount.sofs, status 2\)' connect "$(scality volume-1 "$base")"
plainly
check "no base" refuses 'needs the parameter "mountPointBase"' connect '{"driverVolumeType":"SCALITY","data":{"export":"e","name":"n"}}'
check "as others spell it" gives "$base/cinder/00/volume-1" connect "$(scality volume-1 "$base" | sed s/mount_point_base/scality_mount_point_base/)"
hv disconnect s > /dev/null
mount -t tmpfs other "$base"
check "another file system at the base" refuses 'is mounted at' connect "$(scality volume-1 "$base")"
check "is left alone" mountpoint -q "$base"
umount "$base"
check "nothing is left of Scality" no_records

# ---- Virtuozzo Storage
vz() { printf '{"driverVolumeType":"VZSTORAGE","data":{"export":"%s","name":"vol-a","options":"%s","volumeId":"%s"}}' "$1" "${3:-}" "${2:-z}"; }
list=/etc/pstorage/clusters/store/bs_list
secret='s3cret-of-store'
printf %s "$secret" > "$peer/password"
holds() { [ "$(paste -sd , "$list")" = "$1" ] || { cat "$list"; return 1; }; }
check "Virtuozzo Storage" below vol-a connect "$(vz "192.0.2.60:2510,192.0.2.61:/store:$secret")"
check "the servers are listed" holds 192.0.2.60:2510,192.0.2.61
check "the password is in no record and no argument" nowhere "$secret"
check "nor in the list of volumes" bash -c "! '$HOSTVOL' list --json | grep -F '$secret'"
check "a second volume of it, without a password" below vol-a connect "$(vz 192.0.2.60:2510,192.0.2.61:/store z2)"
check "shares the mount" mounts 1
check "the first ends" hv disconnect z
check "the list stays" holds 192.0.2.60:2510,192.0.2.61
check "the second ends" hv disconnect z2
check "the list is gone as it was before" test ! -e "$list"
check "it is unmounted" mounts 0
mkdir -p "${list%/*}"
echo 198.51.100.1 > "$list"
check "without servers the host's own list counts" below vol-a connect "$(vz store)"
hv disconnect z > /dev/null
check "which nobody touches" holds 198.51.100.1
check "with other servers" below vol-a connect "$(vz 192.0.2.62:/store z '-u root -m 0770')"
check "it is replaced" holds 192.0.2.62
check "arguments are given on" grep -q '^pstorage-mount -c store -u root -m 0770 /' "$peer/argv"
check "another mount of the same cluster" below vol-a connect "$(vz 192.0.2.63:/store z2)"
check "replaces it again" holds 192.0.2.63
hv disconnect z > /dev/null
check "it stays while one is left" holds 192.0.2.63
hv disconnect z2 > /dev/null
check "and is as it was in the end" holds 198.51.100.1
says pstorage-mount "Unable to resolve cluster name 'store'" 3
check "a cluster that is not found" refuses "Unable to resolve cluster name 'store' \(pstorage-mount, status 3\)" connect "$(vz 192.0.2.62:/store)"
check "the list is as before" holds 198.51.100.1
plainly
check "a wrong password" refuses 'the password is not taken: .*Authentication failed \(pstorage, status 15\)' connect "$(vz 192.0.2.62:/store:wrong-secret)"
check "again as before" holds 198.51.100.1
check "is nowhere" nowhere wrong-secret
check "a password that is a parameter" below vol-a connect "$(vz store | sed "s/\"name\"/\"password\":\"$secret\",\"name\"/")"
check "is nowhere either" nowhere "$secret"
hv disconnect z > /dev/null
echo 203.0.113.7 > "$dir/theirs"
connect "$(vz 192.0.2.62:/store)" > /dev/null
cp "$dir/theirs" "$list"
hv disconnect z > /dev/null
check "a list that somebody else has written stays" holds 203.0.113.7
for bad in '' ':/store' '-c' 'a b' 'store/x' "192.0.2.1:/../x:$secret"; do
	check "the export \"${bad%:*}\" is refused" refuses 'not \[MDS|needs the parameter' connect "$(vz "$bad")"
done
connect "$(vz "192.0.2.1:/../x:$secret")" > "$dir/said" 2>&1
check "without repeating the password" nowhere "$secret"
check "another cluster in the options" refuses 'named in the export' connect "$(vz store z '-c other')"
check "for reading only" refuses 'cannot be connected for reading only' connect "$(vz store | sed 's/"name"/"access_mode":"ro","name"/')"
check "nothing is left of Virtuozzo Storage" no_records

# ---- GPFS: a file of a file system that this host has mounted
gpfs() { printf '{"driverVolumeType":"GPFS","data":{"device_path":"%s","volumeId":"g"}}' "$1"; }
mkdir "$dir/gpfs"
mount -t tmpfs gpfs0 "$dir/gpfs" && truncate -s 1M "$dir/gpfs/volume-1"
check "GPFS" gives "$dir/gpfs/volume-1" connect "$(gpfs "$dir/gpfs/volume-1")"
check "its path is found again" gives "$dir/gpfs/volume-1" hv path g
umount "$dir/gpfs"
check "a file system that is not mounted any more" refuses 'cannot use' hv path g
truncate -s 1M "$dir/gpfs/volume-1"
check "what lies below it is not the volume" refuses 'another volume stands there now' hv path g
check "it can be disconnected all the same" hv disconnect g
check "a file that is not there" refuses 'cannot use' connect "$(gpfs "$dir/gpfs/none")"
check "nothing is left" no_records
plan
