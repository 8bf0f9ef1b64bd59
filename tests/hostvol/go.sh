#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Go package and its example on the built library, with LOCAL. Prints TAP. HOSTVOL names the
# program, beside which the library is. What the example mounts is in a namespace of this script's.
if ! command -v go > /dev/null && [ -x /usr/local/go/bin/go ]; then
	PATH=$PATH:/usr/local/go/bin
fi
if ! command -v go > /dev/null; then
	echo "1..0 # SKIP there is no Go toolchain (go) on the PATH"
	exit 0
fi
if [ "$(id -u)" = 0 ] && [ -z "${HOSTVOL_TEST_NAMESPACE:-}" ]; then
	HOSTVOL_TEST_NAMESPACE=1 exec unshare --mount --propagation private "$0"
fi
. "$(dirname "$0")/bindings.sh"
. "$here/../lib/tap.sh"
export CGO_ENABLED=1 CGO_CFLAGS="-O1 -Wall -Werror -I$top/include" CGO_LDFLAGS=-L$library LD_LIBRARY_PATH=$library
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=readonly
cd "$top/bindings/go" || exit 1

formatted() { [ -z "$(gofmt -l .)" ] || { gofmt -d .; false; }; }
# each test of the package as one of ours
package_tests() {
	local name result
	"$dir/package" -test.v -test.timeout 300s > "$dir/out" 2>&1
	status=$?
	while read -r result name; do
		case $result in
		SKIP) skip "$name" "$(grep -A 1 -- "--- SKIP: $name " "$dir/out" | tail -n 1 | sed 's/.*: //')" ;;
		*) check "$name" in_result "$name" "$result" ;;
		esac
	done < <(sed -n 's/^--- \(PASS\|FAIL\|SKIP\): \([^ ]*\) .*/\1 \2/p' "$dir/out")
	check "the tests ended well" whole $status
}
in_result() { [ "$2" = PASS ] || { sed -n "/^=== RUN *$1\$/,/^--- FAIL: $1 /p" "$dir/out"; false; }; }
whole() { [ "$1" = 0 ] || { tail -n 30 "$dir/out"; false; }; }

check "the package compiles without warnings" go vet .
check "so does the example" go vet ./example/...
check "gofmt has nothing to say" formatted
check "it needs nothing but the standard library" test -z "$(go list -m all | grep -v '^quartermaster.storage/hostvol$')"
check "the tests build" go test -c -o "$dir/package" .
package_tests
check "the example builds" go build -o "$dir/csinode" ./example/csinode

node() { "$dir/csinode" "$@"; }
export CSINODE_STATE_DIR=$dir/state CSINODE_RUN_DIR=$dir/run
stage=$dir/stage target=$dir/pods/1/mount
check "the example explains itself" refuses usage node
if [ "$(id -u)" != 0 ]; then
	skip "the example's volumes" "needs root, to mount"
	plan
	exit
fi

mkdir "$dir/data"
echo here > "$dir/data/file"
directory=(driverVolumeType=LOCAL "devicePath=$dir/data")
check "a directory is staged" node stage v1 "$stage" "${directory[@]}"
check "staging again changes nothing" node stage v1 "$stage" "${directory[@]}"
check "it is published" node publish v1 "$stage" "$target" "${directory[@]}"
check "publishing again changes nothing" node publish v1 "$stage" "$target" "${directory[@]}"
check "the pod reads it" grep -q here "$target/file"
check "and writes it" touch "$target/new"
check "one that is published stays staged for the others" node publish v1 "$stage" "$target-2" readOnly=true "${directory[@]}"
check "which may only read" refuses "Read-only" touch "$target-2/not"
check "unpublish" node unpublish "$target"
check "the other pod still reads" grep -q here "$target-2/file"
check "unpublish the other" node unpublish "$target-2"
check "unpublishing again changes nothing" node unpublish "$target"
check "unstage" node unstage v1 "$stage"
check "unstaging again changes nothing" node unstage v1 "$stage"
check "what was unstaged is not published" refuses "v1 is not connected" node publish v1 "$stage" "$target" "${directory[@]}"
check "nothing is left mounted" test -z "$(grep "$dir" /proc/self/mountinfo)"
check "no record is left" test -z "$(ls "$dir/state/attachments")"

if [ -z "$loop" ]; then
	skip "the example's device" "needs loop devices"
	plan
	exit
fi
mkfs.ext4 -q "$loop"
device=(driverVolumeType=LOCAL "devicePath=$loop" fsType=ext4)
check "a device with a file system is staged" node stage v2 "$stage" "${device[@]}"
check "and published" node publish v2 "$stage" "$target" "${device[@]}"
check "it is that file system" test -d "$target/lost+found"
check "its size" test "$(node expand v2)" = $((16 << 20))
check "unpublish it" node unpublish "$target"
check "unstage it" node unstage v2 "$stage"
raw=(driverVolumeType=LOCAL "devicePath=$loop")
check "a device without one is staged" node stage v3 "$stage" "${raw[@]}"
check "and published as a device" node publish v3 "$stage" "$target" "${raw[@]}"
check "it is that device" test -b "$target" -a "$(stat -c %t:%T "$target")" = "$(stat -c %t:%T "$loop")"
check "unpublish the device" node unpublish "$target"
check "unstage the device" node unstage v3 "$stage"
check "again nothing is left mounted" test -z "$(grep "$dir" /proc/self/mountinfo)"
plan
