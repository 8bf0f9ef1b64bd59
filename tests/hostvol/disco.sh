#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# DISCO against a storage client that speaks its protocol and brings a real block device.
set -u
. "$(dirname "$0")/room.sh"
room "$@"

python3 "$here/peers/disco.py" "$dir/peer" $((0x$(stat -c %t "${loops[0]}"))) $((0x$(stat -c %T "${loops[0]}"))) &
check "a DISCO client" wait_for 10 test -e "$dir/peer/port"
port=$(cat "$dir/peer/port")
info() { printf '{"driverVolumeType":"DISCO","data":{"discoId":%s,"serverIp":"127.0.0.1","serverPort":%s,"volumeId":"d"}}' "$1" "${2:-$port}"; }
mode() { echo "$1" > "$dir/peer/mode"; : > "$dir/peer/asked"; }
asked() { [ "$(cut -d ' ' -f 2,3 "$dir/peer/asked" | paste -sd ,)" = "$1" ] || { cat "$dir/peer/asked"; return 1; }; }
gone() { [ ! -e "/dev/$1" ]; }

mode ok
check "a volume is connected" gives /dev/dms7 from "$(info 7)" connect -
check "it was asked for once" asked "1 7"
check "with the length and the instance that the protocol wants" grep -qx '24 1 7 DEFAULT-INSTID' "$dir/peer/asked"
check "its path is found again" gives /dev/dms7 hv path d
check "it is a block device" test -b /dev/dms7
check "connecting again asks nobody" gives /dev/dms7 from "$(info 7)" connect -
check "nor did it" asked "1 7"
check "a second consumer" gives /dev/dms7 from "$(info 7)" connect - --consumer=other
check "the first ends, the device stays" gives /dev/dms7 hv disconnect d
check "for the second" test -b /dev/dms7
check "the second ends" gives /dev/dms7 hv disconnect d --consumer=other
check "and the device is gone" gone dms7
check "it was asked to go once" asked "1 7,2 7"
check "no record is left" no_records

check "as others spell it" gives /dev/dms7 from '{"driver_volume_type":"disco","data":{"disco_id":"7","conf":{"server_ip":"127.0.0.1","server_port":"'"$port"'"},"volume_id":"d"}}' connect -
check "ends too" hv disconnect d
mode late
check "a device that comes late is waited for" gives /dev/dms8 from "$(info 8)" connect -
check "and is whole" test -b /dev/dms8
# with the device open as a mount or another device has it
exclusive() { python3 -c 'import os, subprocess, sys; f = os.open("/dev/dms8", os.O_RDONLY | os.O_EXCL); sys.exit(subprocess.call(sys.argv[1:]))' "$@"; }
check "in use it is not taken away" refuses 'is in use' exclusive "$HOSTVOL" disconnect d
check "and stays connected" gives /dev/dms8 hv path d
check "by force it is" exclusive "$HOSTVOL" disconnect --force d
check "so the device is gone" gone dms8

mode refuse
check "a code other than 0" refuses 'will not attach volume 9: it answers code 22' from "$(info 9)" connect -
check "nothing had to be undone" asked "1 9"
check "no record of that" no_records
mode short
check "half an answer" refuses 'Connection reset' from "$(info 9)" connect -
check "is undone, as it may have been done" asked "1 9,2 9"
mode silent
timeout=$short
check "no answer in time" refuses 'timed out' from "$(info 9)" connect -
rm -f "$dir/peer/mode"
recovered() { hv recover --json | grep -q '"undone"' && no_records; }
check "is taken up by recover" recovered
timeout=$short
mode never
check "a device that never comes" refuses 'no device of volume d has come to this host within [0-9]+ ms' from "$(info 9)" connect -
check "is asked to go again" asked "1 9,2 9"
check "and leaves no record" no_records
timeout=20
mode file
check "what is no device is not returned" refuses '/dev/dms9 is not a block device' from "$(info 9)" connect -
check "and is asked to go" gone dms9
mode ok
check "a server that is not there" refuses 'Connection refused' from "$(info 9 9)" connect -
check "leaves no record either" no_records

node dms5 "${loops[1]}"
check "a device that is here already is taken" gives /dev/dms5 from "$(info 5)" connect -
check "without asking" asked ""
rm /dev/dms5
check "that it is gone is noticed" refuses 'is gone: connect it again' hv path d
node dms5 "${loops[0]}"
check "and another device under its name" refuses 'another volume stands there now' hv path d
mode stay
timeout=$short
check "one that does not go" refuses 'the device of volume d has not gone from this host' hv disconnect d
check "stays recorded" refuses . no_records
mode ok
timeout=20
check "until it does" hv disconnect d

truncate -s 0 "$dir/peer/port"
rm "$dir/peer/port"
python3 "$here/peers/disco.py" "$dir/peer" $((0x$(stat -c %t "${loops[0]}"))) $((0x$(stat -c %T "${loops[0]}"))) 6 &
check "a client on IPv6" wait_for 10 test -e "$dir/peer/port"
six() { from "$(info 6 "$(cat "$dir/peer/port")" | sed 's/127.0.0.1/::1/')" connect -; }
check "is asked as well" gives /dev/dms6 six
check "and takes it away" hv disconnect d
check "a name is refused" refuses 'not an IP address' from "$(info 6 | sed 's/127.0.0.1/localhost/')" connect -
check "a port too high" refuses 'not a port' from "$(info 6 65536)" connect -
check "a number too large" refuses 'not a whole number' from "$(info '"18446744073709551616"')" connect -
check "nothing is left" no_records
plan
