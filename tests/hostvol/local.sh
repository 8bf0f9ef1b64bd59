#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# LOCAL on real loop devices. Needs root. Prints TAP. HOSTVOL names the program.
set -u
HOSTVOL=$(realpath "${HOSTVOL:-$(dirname "$0")/../../build/hostvol/hostvol}")
if [ "$(id -u)" != 0 ] || [ ! -e /dev/loop-control ]; then
	echo "1..0 # SKIP needs root and loop devices"
	exit 0
fi
dir=$(mktemp -d)
loop=
cleanup() {
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
export QM_STATE_DIR=$dir/state QM_RUN_DIR=$dir/run
. "$(dirname "$0")/../lib/tap.sh"

hv() { "$HOSTVOL" "$@"; }
info() { printf '{"driverVolumeType":"LOCAL","data":{"devicePath":"%s","volumeId":"disk"}}' "$1"; }

truncate -s 16M "$dir/one" "$dir/two"
loop=$(losetup --find --show "$dir/one")
check "a loop device is connected" test "$(info "$loop" | hv connect -)" = "$loop"
check "its path is found again" test "$(hv path disk)" = "$loop"
ln -s "$loop" "$dir/link"
info "$dir/link" | hv connect - 2>"$dir/err"
check "the same volume id at another path is refused" grep -q "connected already from another place" "$dir/err"

# another disk under the same name
losetup -d "$loop" && losetup "$loop" "$dir/two"
hv path disk 2>"$dir/err"
check "another disk under the same name is noticed" grep -q "another volume stands there now" "$dir/err"
info "$loop" | hv connect - 2>"$dir/err"
check "connecting it again is refused" grep -q "$dir/two, and was .*$dir/one .*hostvol forget disk" "$dir/err"
check "a person says that it is meant" hv forget disk
check "then it is connected" test "$(info "$loop" | hv connect -)" = "$loop"
check "and is remembered" test "$(hv path disk)" = "$loop"

# a partition, by its disk: another one's of the same number is not it
part() { until [ -b "${loop}p1" ]; do sleep 0.1; done; info "${loop}p1" | sed 's/"disk"/"part"/' | hv connect -; }
check "a partition is connected" eval 'addpart "$loop" 1 2048 8192 && part'
delpart "$loop" 1; losetup -d "$loop" && losetup "$loop" "$dir/one" && addpart "$loop" 1 2048 8192
part 2>"$dir/err"
check "that of another disk is refused" grep -q "partition 1 of .*$dir/one, and was .*$dir/two " "$dir/err"
check "forgotten" hv forget part
delpart "$loop" 1
losetup -d "$loop" && losetup "$loop" "$dir/two"

losetup -d "$loop"
gone=$loop
loop=
hv path disk 2>"$dir/err"
check "a device without a medium is noticed" grep -Eq "without a medium|cannot use" "$dir/err"
check "it can be disconnected all the same" test "$(hv disconnect disk)" = "$gone"

loop=$(losetup --find --show "$dir/one")
check "a link to a device is followed" test "$(info "$dir/link" | sed "s|$dir/link|$dir/now|" | (ln -s "$loop" "$dir/now" && hv connect -))" = "$dir/now"
check "disconnect" hv disconnect disk
info "$dir/one" | sed 's/"disk"/"file"/' | hv connect - >/dev/null
check "a file is connected" test "$(hv path file)" = "$dir/one"
check "disconnect the file" hv disconnect file
check "no record is left" test -z "$(ls "$dir/state/hostvol/attachments")"

plan
