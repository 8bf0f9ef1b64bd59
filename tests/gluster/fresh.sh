#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What one client wrote and closed, another that opens it then reads: two clients of one volume, each with a kernel's
# cache of its own, as hostvol mounts them. Every layout; the volumes' options are ours. Prints TAP. QM_LONG=1: 200 rounds of each.
set -u
[ -n "${QM_HOSTVOL_NS:-}" ] || [ "$(id -u)" != 0 ] || QM_HOSTVOL_NS=1 exec unshare --mount --propagation private "$0" "$@"
here=$(dirname "$(realpath "$0")")
HOSTVOL=$(realpath "${HOSTVOL:-$here/../../build/hostvol/hostvol}")
. "$here/one_node.sh"
. "$here/pool.sh"
. "$here/../lib/tap.sh"
rounds=$([ -n "${QM_LONG:-}" ] && echo 200 || echo 20)
one_node

client_pid() { pgrep -f "^glusterfs .*$dir/client"; }
hv() { QM_STATE_DIR=$dir/client$1 QM_RUN_DIR=$dir/run$1 "$HOSTVOL" --timeout=30 "${@:2}"; }
# info VOLUME [OPTIONS]
info() { printf '{"driverVolumeType":"GLUSTERFS","data":{"export":"%s:/%s","volumeId":"%s","options":"%s"}}' $node "$1" "$1" "${2:-}"; }
# two_clients VOLUME [OPTIONS]: sets one and other, a directory of it by each
two_clients() {
	one=$(info "$@" | hv 1 connect -) && other=$(info "$@" | hv 2 connect -) || return
	mkdir -p "$one/d" && : >"$one/d/file" && : >"$one/bound" && ls "$other/d" || return
	mount --bind "$one/d/file" "$one/bound" && mount --bind "$other/d/file" "$other/bound"
}
let_go() { umount "$one/bound" "$other/bound" && hv 1 disconnect "$1" && hv 2 disconnect "$1"; }
fresh() { python3 "$here/fresh.py" "$1" "$one/d" "$other/d" "${2:-$rounds}"; }

check "the options of a pool" pool_options $id NONE
check "a volume with three copies" pool "${id}r" COPIES replica 3
check "a volume in three parts" pool "${id}p" DISPERSE disperse 3 redundancy 1
for v in $id "${id}r" "${id}p"; do
	case $v in *r) of=" of three copies" ;; *p) of=" in three parts" ;; *) of= ;; esac
	check "two clients of a volume$of" two_clients $v
	check "a file written again with the same length is read, $rounds times" fresh same_length
	check "also where its time was set back" fresh same_time
	check "with other lengths" fresh other_length
	check "longer by a line" fresh append
	check "another file renamed to its name" fresh rename
	check "names that come and go" fresh unlink
	check "a file that is mounted itself" fresh bound
	check "a file that the reader keeps open, by its time and size" fresh kept_open
	check "a mapping, when somebody there has opened it" fresh mapped
	check "both let go of it" let_go $v
done

# whoever wants the kernel's caches says so, and gets them: mount options of a person win
fuse() { tr '\0' '\n' <"/proc/$(client_pid | head -n 1)/cmdline"; }
has() { fuse | grep -qx -- "$1" && [ "$(fuse | grep -c -- "${1%%=*}")" = 1 ]; }
stale() { ! fresh "$@"; }
check "a client that is told to keep its caches" two_clients $id attribute-timeout=600,entry-timeout=600,fopen-keep-cache
check "does" eval 'has --attribute-timeout=600 && has --entry-timeout=600 && has --fopen-keep-cache'
check "so that the checks above can fail" stale same_length 4
check "it is let go" let_go $id
plan
