# SPDX-License-Identifier: Apache-2.0
# What the tests of the bindings share: the library beside HOSTVOL (the program), a directory, and a
# loop device where one can be had. Source it.
set -u
here=$(dirname "$(realpath "$0")")
top=$(realpath "$here/../..")
HOSTVOL=$(realpath "${HOSTVOL:-$top/build/hostvol/hostvol}")
library=$(dirname "$HOSTVOL")
dir=$(mktemp -d)
loop=
cleanup() {
	[ -z "$loop" ] || losetup -d "$loop"
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
if [ "$(id -u)" = 0 ] && [ -e /dev/loop-control ]; then
	truncate -s 16M "$dir/disk"
	loop=$(losetup --find --show "$dir/disk")
fi
mkdir "$dir/work"
export HOSTVOL_TEST_DIR=$dir/work HOSTVOL_TEST_LOOP=$loop
