#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SCALEIO against a gateway that speaks its REST interface over HTTPS, with a certificate authority of the test's
# own. The kernel driver's ioctl is answered by scini.c.
set -u
. "$(dirname "$0")/room.sh"
room "$@"

peer=$dir/peer
password='pa"ss\word, with: all'
id=e3c2a5f400000001 guid=9E56672F-2F4B-4A42-BFF4-88B6846FBFDA
link=/dev/disk/by-id/emc-vol-14dbbf5617523654-$id

certificates() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test-ca \
		-keyout "$dir/ca.key" -out "$dir/ca.pem" &&
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=gateway \
			-keyout "$dir/server.key" -out "$dir/server.csr" &&
		openssl x509 -req -in "$dir/server.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
			-extfile <(echo subjectAltName=IP:127.0.0.1) -out "$dir/server.crt" &&
		cat "$dir/server.crt" "$dir/server.key" > "$peer/server.pem"
}
check "certificates" certificates
check "the driver's ioctl" cc -D_GNU_SOURCE -shared -fPIC -o "$dir/scini.so" "$here/scini.c"
mknod /dev/scini c 1 3
python3 "$here/peers/scaleio.py" "$peer" "${loops[0]}" &
check "a gateway" wait_for 10 test -e "$peer/port"
port=$(cat "$peer/port")

# info [KEY VALUE]…: the connection, with these fields set ("-": taken out)
info() {
	jq -nc --arg id "$id" --argjson port "$port" --arg pw "$password" --arg ca "$dir/ca.pem" '{driverVolumeType: "SCALEIO",
		data: {scaleIoVolumeId: $id, serverIp: "127.0.0.1", serverPort: $port, serverUsername: "admin", serverPassword: $pw,
		certificatePath: $ca, volumeId: "s"}}' > "$dir/info"
	while [ $# -gt 0 ]; do
		if [ "$2" = - ]; then jq -c "del(.data.$1)" "$dir/info"; else jq -c ".data.$1 = $2" "$dir/info"; fi > "$dir/info.new"
		mv "$dir/info.new" "$dir/info"
		shift 2
	done
}
sio() { SCINI_GUID=${guid_bytes-${guid//-/}} LD_PRELOAD=$dir/scini.so ASAN_OPTIONS=verify_asan_link_order=0 "$HOSTVOL" --timeout="${timeout:-20}" -v "$@" 2> >(tee -a "$dir/said" >&2); }
connect() { info "$@"; sio connect -f "$dir/info"; }
disconnect() { info "$@"; sio disconnect -f "$dir/info"; }
mode() { printf '%s' "$1" > "$peer/mode.new" && mv "$peer/mode.new" "$peer/mode"; : > "$peer/asked"; }
asked() { [ "$(grep -v '/api/login ' "$peer/asked" | sed 's|.*/action/\([a-zA-Z]*\) .*|\1|; s|.*getByName::.*|getByName|' | paste -sd ,)" = "$1" ] || { cat "$peer/asked"; return 1; }; }
logins() { [ "$(grep -c '/api/login ' "$peer/asked")" = "$1" ] || { cat "$peer/asked"; return 1; }; }
unmapped() { [ ! -L "$link" ]; }
restart() { rm -f "$link"; mode '{}'; rm -rf "$QM_STATE_DIR/hostvol/attachments"; }

mode '{}'
check "a volume is connected" gives "$link" connect
check "after one login" logins 1
check "it was mapped, to this host's GUID" grep -q "Volume::$id/action/addMappedSdc {\"guid\":\"$guid\",\"allowMultipleMappings\":\"TRUE\"}" "$peer/asked"
check "it is a device" test -b "$link"
check "its path is found again, without asking" gives "$link" hv path s
check "a second consumer" gives "$link" sio connect --consumer=two -f "$dir/info"
check "ends by its id alone: the first is still there" sio disconnect s --consumer=two
check "disconnecting without a password" refuses 'give serverPassword' sio disconnect s
check "leaves it connected" gives "$link" hv path s
check "with it" gives "$link" disconnect
check "it is unmapped" unmapped
check "in these steps" asked addMappedSdc,removeMappedSdc
check "no record is left" no_records

mode '{}'
check "as others spell it" gives "$link" connect scaleIoVolumeId - 'scaleIO_volume_id' "\"$id\"" 'scaleIO_volname' '"x"' serverIp - serverIP '"127.0.0.1"' hostIP '"192.0.2.1"' serverPort "\"$port\"" config_group '"g"' failed_over false
disconnect > /dev/null
check "in snake case" gives "$link" connect scaleIoVolumeId - scale_io_volume_id "\"$id\"" serverUsername - server_username '"admin"' certificatePath - certificate_path "\"$dir/ca.pem\"" verify_certificate true
check "a password in snake case" gives "$link" disconnect serverPassword - server_password "$(jq -n --arg p "$password" '$p')"
mode '{}'
check "by its name" gives "$link" connect scaleIoVolumeId - scaleIoVolname '"vol/data one"'
check "which is looked up" asked getByName,addMappedSdc
check "encoded twice" grep -q 'getByName::vol%252Fdata%2520one ' "$peer/asked"
check "and is recorded" disconnect
check "so that it is not looked up again" asked getByName,addMappedSdc,removeMappedSdc
check "a name that is not there" refuses 'has no volume nope: Could not find the volume' connect scaleIoVolumeId - scaleIoVolname '"nope"'
check "leaves no record" no_records
mode '{"id":"../../evil"}'
check "an id that is none" refuses 'gives no id' connect scaleIoVolumeId - scaleIoVolname '"vol/data one"'

mode '{}'
check "limits" connect iopsLimit 5000 bandwidthLimit '"10240"'
check "are set" test "$(cat "$peer/limits")" = "{\"bandwidthLimitInKbps\": \"10240\", \"guid\": \"$guid\", \"iopsLimit\": \"5000\"}"
disconnect > /dev/null
mode '{"setMappedSdcLimits":[500,"Invalid IOPS limit",126]}'
check "limits that are refused" refuses 'cannot set the limits of volume s: the ScaleIO gateway says "Invalid IOPS limit" \(HTTP 500, code 126\)' connect iopsLimit 5
check "undo the mapping" asked addMappedSdc,setMappedSdcLimits,removeMappedSdc
check "and leave nothing" unmapped

check "the host's properties have its GUID" test "$(sio properties | jq -r .sdcGuid)" = "$guid"

# the codes, of version 3 and 4
for code in 81 4037; do
	restart
	mode "{\"already\":$code}"
	ln -s "${loops[0]}" "$link"
	check "code $code: mapped already" gives "$link" connect
	disconnect > /dev/null
done
mode '{"addMappedSdc":[500,"already mapped",81]}'
timeout=$short
check "mapped already, but no device comes" refuses 'no device of volume s has come' connect
timeout=20
for code in 84 4039; do
	restart
	connect > /dev/null
	rm "$link"
	mode "{\"absent\":$code}"
	check "code $code: not mapped any more" disconnect
	check "no record after $code" no_records
done
for code in 79 83 84 77 1099; do
	restart
	mode "{\"addMappedSdc\":[500,\"It says no\",$code]}"
	check "code $code: mapping is refused" refuses "cannot map volume s: the ScaleIO gateway says \"It says no\" \(HTTP 500, code $code\)" connect
	check "nothing is undone after $code" asked addMappedSdc
	check "no record of $code" no_records
done
restart
connect > /dev/null
for code in 81 79 1099; do
	mode "{\"removeMappedSdc\":[500,\"It says no\",$code]}"
	check "code $code: unmapping is refused" refuses "cannot unmap volume s: .*It says no.*code $code" disconnect
	check "still connected after $code" gives "$link" hv path s
done
mode '{}'
check "then it goes" disconnect

# tokens
for status in 401 403; do
	mode "{\"denied\":$status}"
	check "a token of another time ($status) is replaced" gives "$link" connect serverToken '"old-token"'
	check "by one login" logins 1
	check "and the request is made once more" asked addMappedSdc,addMappedSdc
	disconnect > /dev/null
done
check "a token without a password" refuses 'give serverPassword' connect serverToken '"old-token"' serverPassword -
check "no password at all" refuses 'give serverPassword' connect serverPassword -
check "a wrong password" refuses 'refuses the login of admin: Unauthorized \(HTTP 401\)' connect serverPassword '"wrong-secret"'
mode '{"login":503}'
check "a login that fails" refuses 'refuses the login of admin.*HTTP 503' connect
mode '{"denied":401,"expire":1}'
check "no third try" refuses 'cannot map volume s.*HTTP 401' connect
mode '{}'
token=$(curl -s --cacert "$dir/ca.pem" -u "admin:$password" "https://127.0.0.1:$port/api/login" | jq -r .)
check "a good token needs no password" gives "$link" connect serverToken "\"$token\"" serverPassword -
disconnect > /dev/null
printf '%s\n' "$password" > "$dir/password"
check "a password in a file" gives "$link" connect serverPassword - passwordFile "\"$dir/password\""
check "lets it be disconnected by its id" gives "$link" sio disconnect s
check "a file that is not there" refuses 'cannot read the passwordFile' connect serverPassword - passwordFile '"/nowhere"'
check "no records of these" no_records

# certificates
check "an authority that nobody knows" refuses 'certificate.*give the gateway' connect certificatePath -
check "nothing was asked" refuses . asked x
mode '{}'
check "nobody is asked behind a wrong certificate" refuses 'cannot be asked' connect certificatePath '"/etc/ssl/certs/ca-certificates.crt"'
check "not even to undo it" asked ""
check "a certificate of another host" refuses 'cannot be asked' connect serverIp '"127.0.0.2"'
check "unless it is not looked at" gives "$link" connect certificatePath - verifyCertificate false
disconnect certificatePath - verifyCertificate false > /dev/null
check "as a string" gives "$link" connect certificatePath - verify_certificate '"false"'
disconnect > /dev/null

# this host
guid_bytes=none
check "a driver without a GUID" refuses 'gives no GUID' connect
unset guid_bytes
rm /dev/scini
check "no driver" refuses 'cannot ask /dev/scini' connect
check "none of them is mapped" unmapped
ln -s "${loops[0]}" "$link"
mode '{}'
check "a backend that maps by itself (sdcGuid)" gives "$link" connect sdc_guid "\"$guid\""
check "disconnecting is its task too" gives "$link" sio disconnect s
check "nobody is asked" asked ""
check "the link stays for it to take" test -L "$link"
rm "$link"
timeout=1 # nobody is asked
check "without a link there is no path" refuses 'no device of volume s has come' connect sdcGuid "\"$guid\"" serverIp - serverUsername - serverPassword -
mknod /dev/scini c 1 3
timeout=20

# the device
mode '{"after":0.6}'
check "a link that comes late is waited for" gives "$link" connect
check "and until it has gone" disconnect
check "it has" unmapped
mode '{"target":"/dev/nowhere"}'
timeout=$short
check "a link to nothing is no path" refuses 'no device of volume s has come' connect
check "it is unmapped" wait_for 5 unmapped
mode '{"target":"/dev/null"}'
timeout=20
check "nor one to what is no disk" refuses 'is not a block device' connect
check "that is unmapped too" wait_for 5 unmapped
mode '{}'
connect > /dev/null
ln -s "${loops[1]}" "/dev/disk/by-id/emc-vol-other-$id"
check "two links with its id" refuses '2 links' hv path s
rm "/dev/disk/by-id/emc-vol-other-$id"
ln -sfn "${loops[1]}" "$link"
check "another disk behind its link is noticed" refuses 'another volume stands there now' hv path s
ln -sfn "${loops[0]}" "$link"
mode '{"stay":1}'
timeout=$short
check "one that does not go" refuses 'has not gone' disconnect
timeout=20
mode '{}'
check "is still connected" gives "$link" hv path s
disconnect > /dev/null

# replies that are none
for raw in '[204, ""]' '[302, ""]' '[500, "<html>no</html>"]' '[500, "{\"errorCode\":\"81\"}"]' '[500, "{\"errorCode\":"]'; do
	restart
	mode "{\"raw\":$raw}"
	check "the reply $raw is a refusal" refuses 'cannot map volume s' connect
	check "without a record" no_records
done
# what the body says does not matter where the status is 200
for raw in '[200, ""]' '[200, "{"]' '[200, "[[[[["]'; do
	restart
	mode "{\"raw\":$raw}"
	ln -s "${loops[0]}" "$link"
	check "the reply $raw is none" gives "$link" connect
done
restart
mode '{"hang":5}'
timeout=$short
check "a gateway that hangs" refuses 'timed out|time|does not answer' connect
timeout=20
restart
check "a port where nobody listens" refuses 'cannot be asked: curl: \(7\)' connect serverPort 9
check "no record of that" no_records

check "no server" refuses 'needs the parameters "serverIp"' connect serverIp -
check "no volume" refuses 'needs the parameter "scaleIoVolumeId"' connect scaleIoVolumeId -
check "a bad id" refuses 'not a hexadecimal' connect scaleIoVolumeId '"../x"'
check "a bad user" refuses 'colon' connect serverUsername '"a:b"'
restart
connect > /dev/null
check "the password is in no record, log, error or argument" nowhere "$password"
check "nor in the list" bash -c "! '$HOSTVOL' list --json | grep -F 'with: all'"
check "nor is a token" bash -c "! grep -r YWRtaW46 '$QM_STATE_DIR' '$dir/said'"
check "nothing of it in a request's path or body" bash -c "! grep -F 'with: all' '$peer/asked'"
# of the process that connects; what curl takes is curl's
peak() {
	disconnect > /dev/null && SCINI_PEAK=$dir/peak connect && echo "# peak $(cat "$dir/peak") KiB" &&
		[ "$(cat "$dir/peak")" -lt 5120 ]
}
if ldd "$HOSTVOL" | grep -q asan; then
	skip "its memory" "AddressSanitizer needs more"
else
	check "it takes less than 5 MiB" peak
fi
plan
