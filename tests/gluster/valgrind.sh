#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A full cycle (up, claim, mount, delete, down) with every process of ours under valgrind: no leak and
# no bad access of ours. tests/valgrind.supp lists what belongs to libraries, with the reason.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
build=${QM_BUILD:-build}
work=$(mktemp -d /var/tmp/qm-valgrind.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-valgrind.$$ QM_SELF QM_WRAP
QM_SELF=$(readlink -f "$build/src/cli/quartermaster")
QM_WRAP="valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --num-callers=25 --suppressions=$PWD/tests/valgrind.supp --log-file=$work/vg.%p.log"
qm() { $QM_WRAP "$QM_SELF" "$@"; }

cleanup() {
	"$QM_SELF" down --delete-data --force > /dev/null 2>&1
	rm -rf "$work" "$QM_RUN_DIR" "$QM_RUN_DIR.mnt"
}
trap cleanup EXIT
command -v valgrind > /dev/null || { skip "valgrind cycle" "valgrind is not installed"; plan; exit; }

bound() { [ "$("$QM_SELF" get pvc my-claim -o json | jq -r .status.phase)" = Bound ]; }
gone() { [ "$("$QM_SELF" get pv -o json | jq '.items | length')" = 1 ]; }
clean() { ! cat "$work"/vg.*.log | grep . ; }

check "up --demo" qm up --demo --timeout 300
check "claim" qm apply -f docs/examples/claim.yaml
check "Bound" wait_for 60 bound
check "mount" qm mount my-claim "$QM_RUN_DIR.mnt"
check "write" cp README.md "$QM_RUN_DIR.mnt/"
check "status" qm status
check "umount" qm umount "$QM_RUN_DIR.mnt"
check "delete" qm delete pvc my-claim
check "its volume goes" wait_for 60 gone
check "down" qm down
check "valgrind has nothing to say" clean
plan
