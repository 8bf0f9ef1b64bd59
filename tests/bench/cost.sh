#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What things cost, for a person to read: claims against mkdir, memory and CPU at rest. Figures of
# time are printed, not judged: they say as much about the machine as about the program.
# timeout: 900
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
build=$(realpath "${QM_BUILD:-build}")
work=$(mktemp -d /var/tmp/qm-bench.XXXXXX)
export QM_BUILD=$build QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-bench.$$
PATH=$build/src/cli:$PATH

cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$work" "$QM_RUN_DIR"
}
trap cleanup EXIT
# measure NAME COMMAND…: check, with what it printed
measure() {
	check "$@"
	sed 's/^/# /' "$work/figures"
}
printed() { "$@" > "$work/figures"; }

check "up --demo" quartermaster up --demo
measure "claims" printed bench/claims
sleep 40 # workers end after 30 s
measure "idle" printed bench/footprint 60
echo "# load: $(cut -d ' ' -f 1-3 /proc/loadavg), $(nproc) cores"
plan
