#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HUAWEISDSHYPERVISOR against a program that answers as sds_cli does, with every code that has a meaning.
set -u
. "$(dirname "$0")/room.sh"
room "$@"

peer=$dir/peer
id=volume-b2911673
info() { printf '{"driverVolumeType":"HUAWEISDSHYPERVISOR","data":{"volume_id":"%s","access_mode":"rw","qos_specs":null}}' "${1:-$id}"; }
connect() { from "$(info "$@")" connect -; }
says() { printf "ret_code=$2\n" > "$peer/$1.says"; }
plainly() { rm -f "$peer"/*.says "$peer"/*.status; : > "$peer/argv"; }
calls() { [ "$(cut -d ' ' -f 2 "$peer/argv" | grep -v querydev | paste -sd ,)" = "$1" ] || { cat "$peer/argv"; return 1; }; }

check "without the program" refuses 'sds_cli is not installed' connect
check "there is no record" no_records
mkdir -p /usr/local/bin/sds "$dir/elsewhere"
cp "$here/peers/sds_cli" /usr/local/bin/sds/ && echo "$peer" > /usr/local/bin/sds/sds_cli.dir
echo $((0x$(stat -c %t "${loops[0]}"))) $((0x$(stat -c %T "${loops[0]}"))) > "$peer/device"

plainly
check "a volume is connected" gives "/dev/$id-dev" connect
check "with the arguments that it knows" grep -qx -- "-c attach -v $id" "$peer/argv"
check "its path is found again" gives "/dev/$id-dev" hv path "$id"
check "it is disconnected" gives "/dev/$id-dev" hv disconnect "$id"
check "by one attach and one detach" calls attach,detach
check "and is gone" test ! -e "/dev/$id-dev"
check "no record is left" no_records

# attach: 0 (above), 50151401 and 50151405 mean that it is attached; all else is an error
for code in 50151401 50151405; do
	plainly
	says attach $code
	node "$id-dev" "${loops[0]}"
	check "attach says $code: attached before" gives "/dev/$id-dev" connect
	plainly
	check "and detaches" hv disconnect "$id"
done
plainly
says attach 50151401
timeout=$short
check "attached before, but there is no device" refuses 'no device of volume' connect
timeout=20
for code in 1 50151209 50155007 330151401 -1; do
	plainly
	says attach $code
	check "attach says $code: refused" refuses "cannot attach volume $id: the Huawei SDS client answers code $code" connect
	check "nothing is undone that was not done" calls attach
	check "no record of it" no_records
done
printf 'ret_code=50151002\nret_desc="no such volume"\n' > "$peer/attach.says"
check "its words are told" refuses 'code 50151002, no such volume' connect

# detach: 0 (above), 50151209 and 50155007 mean that it is detached
for code in 50151209 50155007; do
	plainly
	connect > /dev/null
	says detach $code
	rm "/dev/$id-dev"
	check "detach says $code: it is detached" hv disconnect "$id"
	check "no record after $code" no_records
done
plainly
connect > /dev/null
says detach 50151209
timeout=$short
check "detached, it says, but the device stays" refuses 'has not gone' hv disconnect "$id"
timeout=20
check "so it is connected" gives "/dev/$id-dev" hv path "$id"
plainly
check "until it is detached" hv disconnect "$id"
for code in 1 50151401 330155007; do
	plainly
	connect > /dev/null
	says detach $code
	check "detach says $code: refused" refuses "cannot detach volume $id: the Huawei SDS client answers code $code" hv disconnect "$id"
	check "still connected after $code" gives "/dev/$id-dev" hv path "$id"
	plainly
	hv disconnect "$id" > /dev/null
done

plainly
printf 'Segmentation fault\n' > "$peer/attach.says"
echo 139 > "$peer/attach.status"
check "no code at all" refuses 'printed no ret_code' connect
check "is undone" calls attach,detach
plainly
says attach '0x0'
check "a code that is no number" refuses 'ret_code that is no number' connect
plainly
says querydev '0\ndev_addr=/etc/passwd'
check "a device that is none" refuses 'no path below /dev' connect
says querydev '0\ndev_addr=/dev/../etc/passwd'
check "a device that leads out" refuses 'no path below /dev' connect
says querydev '0\ndev_addr=/dev/null'
check "a character device" refuses '/dev/null is not a block device' connect
plainly
hv recover > /dev/null
check "nothing stays of these" no_records

check "an id that is an option" refuses 'volumeId' connect -v
check "no id" refuses 'needs the parameter "volumeId"' from '{"driverVolumeType":"HUAWEISDSHYPERVISOR","data":{}}' connect -
mv /usr/local/bin/sds/sds_cli* "$dir/elsewhere/"
elsewhere() { HUAWEISDSHYPERVISORCLI_PATH=$dir/elsewhere/sds_cli connect; }
check "where the variable says" gives "/dev/$id-dev" elsewhere
check "that needs the variable again" refuses 'not installed' hv disconnect "$id"
check "and ends with it" env HUAWEISDSHYPERVISORCLI_PATH="$dir/elsewhere/sds_cli" "$HOSTVOL" disconnect "$id"
relative() { HUAWEISDSHYPERVISORCLI_PATH=sds_cli connect; }
check "a variable that is no path" refuses 'not an absolute path' relative
check "nothing is left" no_records
plan
