#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A full cycle (up, claim, mount, delete, down) with every process of ours under valgrind: no leak and
# no bad access of ours, and each process lives until valgrind has counted. A worker ends by idleness
# on the way, a second one with the operator. tests/valgrind/library.supp lists what belongs to
# libraries, with the reason.
# timeout: 1200
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
build=$(realpath "${QM_BUILD:-build}")
work=$(mktemp -d /var/tmp/qm-valgrind.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-valgrind.$$ QM_SELF=$build/src/cli/quartermaster
mnt=$QM_RUN_DIR.mnt

# Debian's valgrind does not know some of our system calls: a helper outside makes them (calls.h)
export QM_VALGRIND_SOCKET=$work/calls.sock
wrap="env LD_PRELOAD=$build/tests/valgrind/valgrind-calls.so valgrind --leak-check=full
	--show-leak-kinds=definite,possible --errors-for-leak-kinds=definite,possible --num-callers=30 --sim-hints=lax-ioctls
	--child-silent-after-fork=yes --suppressions=$PWD/tests/valgrind/library.supp --log-file=$work/vg.%p.log"
wrap=$(tr -s '\n\t' ' ' <<< "$wrap")
export QM_WRAP=${wrap% }
# shellcheck disable=SC2086 # a word an argument
qm() { $QM_WRAP "$QM_SELF" "$@"; }
plainly() { env -u QM_WRAP "$QM_SELF" "$@"; }

cleanup() {
	[ -n "${QM_KEEP:-}" ] && return # to look at what is left
	plainly down --delete-data --force > /dev/null 2>&1
	[ -n "${helper:-}" ] && kill "$helper"
	rm -rf "$work" "$QM_RUN_DIR" "$mnt"
}
trap cleanup EXIT
if [ -z "${QM_LONG:-}" ]; then
	skip "the cycle under valgrind" "takes several minutes: ./test --long gluster, or QM_LONG=1 $0"
	plan
	exit
fi
command -v valgrind > /dev/null || { skip "valgrind cycle" "valgrind is not installed"; plan; exit; }
if ! ninja -C "$build" tests/valgrind/valgrind-calls.so tests/valgrind/valgrind-serve > "$work/build.log" 2>&1; then
	[ "$(uname -m)" = x86_64 ] || { skip "valgrind cycle" "its helper is written for x86_64"; plan; exit; }
	check "the helper is built" cat "$work/build.log" -- /nonexistent
	plan
	exit 1
fi
"$build/tests/valgrind/valgrind-serve" "$QM_VALGRIND_SOCKET" > /dev/null 2>&1 &
helper=$!

# the pids of our programs of this instance, and whether each runs under valgrind
ours() {
	local p
	grep -lzxs "QM_RUN_DIR=$QM_RUN_DIR" /proc/[0-9]*/environ 2> /dev/null | while IFS=/ read -r _ _ p _; do
		tr '\0' ' ' 2> /dev/null < "/proc/$p/cmdline" | grep -Eq 'quartermaster (api|operator|supervise|agent)|qm-gluster --pool' && echo "$p"
	done
}
all_under_valgrind() {
	local p count=0
	for p in $(ours); do
		count=$((count + 1))
		grep -q valgrind "/proc/$p/maps" || { tr '\0' ' ' < "/proc/$p/cmdline"; return 1; }
	done
	echo "only $count processes" && [ "$count" -ge 7 ] # supervise, api, operator, three agents, a worker
}
gone() { [ "$(plainly get pv -o json | jq '.items | length')" = 1 ]; }
ended() { [ -z "$(ours)" ]; }
no_worker() { ! ours | xargs -I{} cat /proc/{}/cmdline 2> /dev/null | grep -aq qm-gluster; }
# one that was killed has not been counted, and says so by the missing end of its log
clean() {
	local log bad=0
	for log in "$work"/vg.*.log; do
		grep -q 'ERROR SUMMARY: 0 errors' "$log" && continue
		bad=1
		cat "$log"
	done
	[ $bad = 0 ]
}

check "up --demo" qm up --demo --timeout 300
check "claim" qm apply -f docs/examples/claim.yaml
check "Bound" qm wait pvc my-claim --for=phase=Bound --timeout=60s
check "all our processes run under valgrind" all_under_valgrind
check "mount" qm mount my-claim "$mnt"
check "write" cp README.md "$mnt/"
check "status" qm status
check "get" qm get pv -o yaml
check "describe" qm describe pvc my-claim
check "plan" qm plan
check "explain" qm explain storagenode.spec
check "support-bundle" qm support-bundle -o "$work/bundle.tar.gz"
check "umount" qm umount "$mnt"
check "an idle worker ends" wait_for 120 no_worker
check "delete" qm delete pvc my-claim
check "its volume goes" wait_for 60 gone
check "down" qm down
check "all have ended" wait_for 30 ended
TAP_LINES=400
check "valgrind has nothing to say of $(find "$work" -name 'vg.*.log' | wc -l) processes" clean
plan
