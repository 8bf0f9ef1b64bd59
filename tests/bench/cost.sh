#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What things cost, for a person to read: claims against mkdir, memory and CPU at rest, calls of the CSI node
# service, claims on a cluster, the operator's memory with many volumes. Figures of time are printed, not judged: they
# say as much about the machine as about the program. QM_LONG=1: full counts, and claims on a real pool of a cluster.
# timeout: 2400
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
check "down" quartermaster down --delete-data --force
tests/tools/build-peers >&2
if [[ ${QM_LONG:-} ]]; then calls=500 claims=500 volumes=5000 rounds=3; else calls=100 claims=50 volumes=500 rounds=1; fi
measure "$calls calls of the CSI node service" printed bench/csi "$calls"
measure "$claims claims on a cluster, $volumes volumes" printed bench/provision "$claims" "$volumes" "$rounds"
if [[ ${QM_LONG:-} ]]; then measure "$claims claims on a pool of a cluster" printed bench/provision --pool "$claims" "$rounds"; fi
echo "# load: $(cut -d ' ' -f 1-3 /proc/loadavg), $(nproc) cores"
plan
