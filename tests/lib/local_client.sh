# SPDX-License-Identifier: Apache-2.0
# For scripts of client containers in local mode, which source it first of all, with $protocol set: an instance of
# their own, gone at the end; tap.sh and client_image.sh.
#   needs FILE PACKAGES   skips the script without root, crun or runc, or that file
#   up …                  quartermaster up with $up_flags and these
#   said FILTER           what jq says of the client's --info
#   client                its pid
#   pid_of PROGRAM        of a part of the instance
#   kills COMMAND…        kills these one after the other, and runs the command, if there is one, meanwhile
#   left [COMMAND…]       prints whatever there is of the instance, and what the command does
set -u -o pipefail
# in a mount namespace of its own: those of others that are made meanwhile would copy our mounts, and keep them
[ -n "${QM_CLIENT_NS:-}" ] || QM_CLIENT_NS=1 exec unshare --mount --propagation private "$0" "$@"
# and crun can be used there: where a machine mixes cgroups of version 1 and 2 the second is hidden
[ ! -e /sys/fs/cgroup/unified ] || mount -t tmpfs tmpfs /sys/fs/cgroup/unified
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/client_image.sh
build=${QM_BUILD:-build}
work=$(mktemp -d /var/tmp/qm-client.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-client.$$
PATH=$PWD/$build/src/cli:$PWD/$build/src/clients:$PATH
socket=$QM_RUN_DIR/clients/$protocol
up_flags=()
local_client_cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$work" "$QM_RUN_DIR"
}
trap local_client_cleanup EXIT
trap 'exit 1' INT TERM

needs() {
	[ "$(id -u)" = 0 ] && { command -v crun || command -v runc; } > /dev/null && [ -e "$1" ] && return
	echo "1..0 # SKIP needs root, crun or runc, and $2"
	exit 0
}
up() { timeout 120 quartermaster up "${up_flags[@]}" "$@"; }
said() { qm-client --info "$socket" | jq -e "$1"; }
client() { pgrep -f "^/qm/qm-client .*$socket\$"; }
pid_of() { pgrep -f "^([^ ]*/)?quartermaster $1( .*)?\$" | while read -r p; do if grep -qzx "QM_RUN_DIR=$QM_RUN_DIR" "/proc/$p/environ"; then echo "$p"; fi; done; }
is_another() { local now; now=$(pid_of "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }
# not at once: supervisor and operator start each other, so who kills both has ended them
kills() {
	local victim old
	for victim in supervise operator node api; do
		old=$(pid_of "$victim")
		check "kill -9 of $victim" kill -9 "$old"
		[ $# = 0 ] || check "the data is there" "$@"
		check "it comes back" wait_for 30 is_another "$victim" "$old"
	done
}
left() {
	grep " $work/\| $QM_RUN_DIR" /proc/self/mountinfo
	ls -d "$QM_RUN_DIR" "$QM_STATE_DIR"
	pgrep -f "$QM_RUN_DIR"
	"$@"
}
