#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Project quota on a brick, with a kernel that has it: limits hold to 1 %, hurt nobody else, and
# cover what was there before.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u
. tests/lib/tap.sh
tool=${QM_BUILD:-build}/tests/unit/base/quota-tool
brick=/mnt/brick
MiB=1048576

make_brick() {
	modprobe -a loop xfs && truncate -s 1G /run/brick.img && mkfs.xfs -q /run/brick.img && mkdir -p $brick &&
		mount -o loop,prjquota /run/brick.img $brick
}
says() { local pattern=$1 out; shift; out=$("$@"); echo "$out"; grep -q -- "$pattern" <<< "$out"; }
limit() { mkdir -p "$brick/$1" && "$tool" set $brick "$@"; }
value() { "$tool" get $brick "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
# Writes up to so many MiB; the status says whether it all went in.
write() { dd if=/dev/zero of="$brick/$1" bs=256K count=$(($2 * 4)) conv=fsync status=none; }
size() { stat -c %s "$brick/$1"; }
project() { lsattr -pd "$1" | awk '{ print $1 }'; }
# The writer must fail, and within 1 % of the limit.
hits_limit() {
	local used
	! write "$1/file" $(($2 * 2)) || { echo "nothing stopped the writer"; return 1; }
	used=$(value "$1" bytes_used)
	echo "used $used of $(($2 * MiB)), the file has $(size "$1/file")"
	((used >= $2 * MiB * 99 / 100 && used <= $2 * MiB * 101 / 100 && $(size "$1/file") >= $2 * MiB * 98 / 100))
}

check "a file system with project quota" make_brick
check "the quota is known to be in force" says '^enforced' "$tool" support $brick
check "on other file systems it is not" says '^not-enforced NotXfs' "$tool" support /run

check "one volume of 100 MiB" limit v1 $((100 * MiB)) 0
check "another beside it" limit v2 $((100 * MiB)) 0
check "the limit is told" test "$(value v1 bytes_limit)" = $((100 * MiB))
# the neighbour writes while the first one runs against its limit
write v2/file 90 & neighbour=$!
check "a writer hits its limit within 1 %" hits_limit v1 100
check "its neighbour goes on" wait $neighbour
check "the neighbour has all it wrote" test "$(size v2/file)" = $((90 * MiB))
check "directly on the brick all goes on" write unlimited 5
check "a bigger limit lets the writer go on" limit v1 $((150 * MiB)) 0
check "up to the bigger limit" hits_limit v1 150

inherits() {
	rm -f $brick/v1/file && mkdir -p $brick/v1/new/deep && touch $brick/v1/new/deep/file &&
		[ "$(project $brick/v1/new/deep)" = "$(value v1 project)" ] &&
		[ "$(project $brick/v1/new/deep/file)" = "$(value v1 project)" ]
}
check "what is made in a volume belongs to its project" inherits
check "two volumes are two projects" test "$(value v1 project)" != "$(value v2 project)"

old_tree() {
	local i
	for i in 1 2 3 4; do mkdir -p "$brick/old/a/b$i/c" && write "old/a/b$i/c/file" 10 || return 1; done
	write outside 1 && ln -s ../outside $brick/old/a/link && ln -s .. $brick/old/up
}
covered() { (($(value old bytes_used) >= 40 * MiB)) && ((10#$(project $brick/old/a/b3/c/file) == $(value old project))); }
check "a tree that already holds 40 MiB" old_tree
check "is limited" limit old $((60 * MiB)) 0
check "its files count, however deep" covered
check "so only the rest can be written" refuses 'No space left' write old/a/b1/more 30
check "no link out of it was followed" test "$(project $brick/outside)" = 0
check "nor is a volume reached through a link" refuses 'Cannot open' "$tool" set $brick old/up/v2 $MiB 0
check "nor one outside" refuses 'Cannot open' "$tool" set $brick ../run $MiB 0

ten_files() { local i; for i in 1 2 3 4 5 6 7 8 9; do touch "$brick/few/$i" || return 1; done; }
check "a limit of files alone, as an arbiter has it" limit few 0 10
check "is no limit below it" ten_files
check "and one above" refuses 'No space left|quota' touch $brick/few/10
check "its bytes have none" write few/1 20

check "the same limit again" limit v1 $((150 * MiB)) 0
check "a volume that is gone" rm -rf $brick/few
check "leaves no limit behind" says '^1$' "$tool" sweep $brick
check "and only that one" says '^0$' "$tool" sweep $brick
check "after another mount the limits hold" bash -c "umount $brick && mount -o loop,prjquota /run/brick.img $brick"
check "as they did" hits_limit v1 150
mount_plain() { umount $brick && mount -o loop /run/brick.img $brick; }
check "a mount without quota" mount_plain
check "is not taken for one with it" says '^not-enforced NoQuotaOption' "$tool" support $brick
plan
