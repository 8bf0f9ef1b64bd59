#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HGST against a program that answers as vgc-cluster does, with this host in its domain by address and by name.
set -u
. "$(dirname "$0")/room.sh"
room "$@"

peer=$dir/peer
info() { printf '{"driverVolumeType":"HGST","data":{"name":"%s","noremovehost":"%s","volumeId":"h"}}' "${1:-space01}" "${2:-nobody}"; }
connect() { from "$(info "$@")" connect -; }
plainly() { rm -f "$peer"/*.says "$peer"/*.status; : > "$peer/argv"; printf '198.51.100.9\n192.0.2.5\n' > "$peer/domain"; }
calls() { [ "$(sed -n 's/.*-A \(.*\) --action \(.*\)/\2 \1/p' "$peer/argv" | paste -sd ,)" = "$1" ] || { cat "$peer/argv"; return 1; }; }
gone() { [ ! -e /dev/space01 ]; }

ip link add here0 type veth peer name here1 && ip addr add 192.0.2.5/24 dev here0 && ip addr add fd00:2::5/64 dev here0 nodad
ip link set here0 up && ip link set here1 up
plainly
echo $((0x$(stat -c %t "${loops[0]}"))) $((0x$(stat -c %T "${loops[0]}"))) > "$peer/device"
check "without the program" refuses 'vgc-cluster is not installed' connect
check "there is no record" no_records
cp "$here/peers/vgc-cluster" "$dir/bin/" && echo "$peer" > "$dir/bin/vgc-cluster.dir"

check "a space is connected" gives /dev/space01 connect
check "this host is added, under the address that it has" calls "ADD 192.0.2.5"
check "the host before it is not" grep -qx 192.0.2.5 "$peer/apphosts.space01"
check "its path is found again" gives /dev/space01 hv path h
check "a second consumer" gives /dev/space01 from "$(info)" connect - --consumer=two
check "the first ends" hv disconnect h
check "the device stays" test -b /dev/space01
check "the second ends" hv disconnect h --consumer=two
check "this host is removed once" calls "ADD 192.0.2.5,DELETE 192.0.2.5"
check "the device is gone" gone
check "no record is left" no_records

plainly
printf 'storage9\nstorage1\n' > "$peer/domain"
echo '192.0.2.5 storage1' >> /etc/hosts
check "by a name that leads to its address" gives /dev/space01 connect
check "as the cluster calls it" calls "ADD storage1"
: > "$peer/domain"
printf 'storage1\n' > "$peer/domain"
check "disconnect knows the name" hv disconnect h
check "and uses it" calls "ADD storage1,DELETE storage1"
plainly
printf 'fd00:2::5\n' > "$peer/domain"
check "by an IPv6 address" gives /dev/space01 connect
hv disconnect h > /dev/null
plainly
uname -n > "$peer/domain"
check "by its own name" gives /dev/space01 connect
hv disconnect h > /dev/null

plainly
check "connected with a host that is not removed" gives /dev/space01 connect space01 192.0.2.5
check "disconnecting it" hv disconnect h
check "leaves it there" test -b /dev/space01
check "nothing was removed" calls "ADD 192.0.2.5"
check "as others spell it" gives /dev/space01 from '{"driverVolumeType":"hgst","data":{"names":"space01","no_remove_host":"x","volume_id":"h"}}' connect -
hv disconnect h > /dev/null
check "now it is gone" gone

plainly
printf '198.51.100.9\n127.0.0.1\nlocalhost\n' > "$peer/domain"
check "a domain without this host" refuses 'this host is not in the HGST domain' connect
check "nothing is asked for" calls ""
check "no record of it" no_records
: > "$peer/domain"
check "an empty domain" refuses 'not in the HGST domain' connect
plainly
seq -f 'node-%g.example.invalid' 1 40 > "$peer/domain"
echo 192.0.2.5 >> "$peer/domain"
cp /etc/nsswitch.conf "$dir/nss" && echo 'hosts: files' > /etc/nsswitch.conf
check "a long domain" gives /dev/space01 connect
hv disconnect h > /dev/null
echo 'Cannot contact the cluster manager' > "$peer/list.says"
check "a cluster that does not run" refuses 'is the cluster running\? vgc-cluster says: Cannot contact' connect
for status in 1 2 127 255; do
	plainly
	echo "Space is locked" > "$peer/ADD.says"
	echo $status > "$peer/ADD.status"
	check "adding ends with status $status" refuses "cannot add host 192.0.2.5 to space space01: Space is locked \(vgc-cluster, status $status\)" connect
	check "nothing is undone after $status" calls "ADD 192.0.2.5"
done
check "no record of these" no_records
plainly
connect > /dev/null
echo "Space is busy" > "$peer/DELETE.says"
echo 3 > "$peer/DELETE.status"
check "removing ends with status 3" refuses 'cannot remove host 192.0.2.5 from space space01: Space is busy \(vgc-cluster, status 3\)' hv disconnect h
check "it is still connected" gives /dev/space01 hv path h
rm "$peer"/DELETE.*
exclusive() { python3 -c 'import os, subprocess, sys; f = os.open("/dev/space01", os.O_RDONLY | os.O_EXCL); sys.exit(subprocess.call(sys.argv[1:]))' "$@"; }
check "in use it is not taken away" refuses 'is in use' exclusive "$HOSTVOL" disconnect h
check "then it is" hv disconnect h
for name in ../etc/passwd -n 'a b' . a/b; do
	check "the name \"$name\" is refused" refuses 'letters, digits' connect "$name"
done
check "nothing is left" no_records
plan
