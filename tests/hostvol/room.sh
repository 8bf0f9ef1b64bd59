# SPDX-License-Identifier: Apache-2.0
# A room of its own for a test of a vendor's driver: namespaces in which /dev, /etc and /usr/local/bin
# can be filled as that vendor's software would, and of which nothing is left. Source it, then call
# `room "$@"` first of all. Prints TAP. HOSTVOL names the program.
here=$(dirname "$(realpath "$0")")
HOSTVOL=$(realpath "${HOSTVOL:-$here/../../build/hostvol/hostvol}")

room() {
	if [ "$(id -u)" != 0 ] || [ ! -e /dev/loop-control ] || [ ! -e /dev/fuse ]; then
		echo "1..0 # SKIP needs root, loop devices and FUSE"
		exit 0
	fi
	[ -n "${HOSTVOL_ROOM:-}" ] || HOSTVOL_ROOM=1 exec unshare --mount --net --pid --fork \
		--kill-child --mount-proc --propagation private "$(realpath "$0")" "$@"
	dir=$(mktemp -d /var/tmp/hostvol-test.XXXXXX)
	loops=()
	trap leave EXIT
	trap 'exit 1' INT TERM
	mount -t tmpfs room "$dir" && mkdir "$dir"/{bin,dev,etc,work,peer} || exit 1
	truncate -s 4M "$dir/disk1" "$dir/disk2"
	loops+=("$(losetup --find --show "$dir/disk1")") || exit 1
	loops+=("$(losetup --find --show "$dir/disk2")") || exit 1
	mount -t overlay etc -o "lowerdir=/etc,upperdir=$dir/etc,workdir=$dir/work" /etc || exit 1
	furnish_dev
	mount -t tmpfs tools /usr/local/bin || exit 1
	ip link set lo up
	export QM_STATE_DIR=$dir/state QM_RUN_DIR=$dir/run PATH=$dir/bin:$PATH
	. "$here/../lib/tap.sh"
}

# /dev on memory, with the few nodes that programs count on
furnish_dev() {
	local node
	for node in null zero full random urandom tty fuse loop-control "${loops[@]##*/}"; do
		mknod "$dir/dev/$node" "$(stat -c '%F' "/dev/$node" | cut -c 1)" \
			$((0x$(stat -c %t "/dev/$node"))) $((0x$(stat -c %T "/dev/$node"))) || exit 1
	done
	mkdir -p "$dir"/dev/{shm,disk/by-id}
	ln -s /proc/self/fd "$dir/dev/fd"
	ln -s /proc/self/fd/0 "$dir/dev/stdin"
	mount --bind "$dir/dev" /dev || exit 1
}

leave() {
	local loop status=$?
	for loop in "${loops[@]}"; do losetup -d "$loop"; done
	umount /etc
	umount -l "$dir" && rmdir "$dir"
	return $status
}

# node NAME LOOP: a block device /dev/NAME, as a vendor's driver would make it
node() { mknod "/dev/$1" b $((0x$(stat -c %t "$2"))) $((0x$(stat -c %T "$2"))); }

short=3 # seconds: enough for all steps but the one that does not end
hv() { "$HOSTVOL" --timeout="${timeout:-20}" "$@"; }
from() { printf '%s' "$1" | hv "${@:2}"; }
# gives PATH COMMAND…: it succeeds, and prints just that
gives() {
	local wanted=$1 out; shift
	out=$("$@" 2>"$dir/err") || { cat "$dir/err"; return 1; }
	[ "$out" = "$wanted" ] || { echo "printed: $out"; return 1; }
}
no_records() { [ -z "$(ls "$QM_STATE_DIR/hostvol/attachments" 2>/dev/null)" ] || { hv list; return 1; }; }
# nowhere SECRET: in no file below the room, and not on a line of the peers' logs of arguments
nowhere() { ! grep -rlF -- "$1" "$QM_STATE_DIR" "$QM_RUN_DIR" "$dir/said" "$dir/peer/argv" 2>/dev/null; }
