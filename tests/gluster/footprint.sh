#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Memory: each process stays below 8 MiB while nothing happens, while many claims are there, after
# they have come and gone, and after TLS; and it does not grow. Times are measured by ./test bench.
# timeout: 900
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
build=$(realpath "${QM_BUILD:-build}")
work=$(mktemp -d /var/tmp/qm-footprint.XXXXXX)
export QM_BUILD=$build QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-footprint.$$
PATH=$build/src/cli:$PATH
limit=8192
claims=${QM_LONG:+1000}
claims=${claims:-200}

cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$work" "$QM_RUN_DIR"
}
trap cleanup EXIT

small() { bench/footprint --check $limit 1; }
bench() { "$build/bench/bench-claims" --single 0 --count "$claims" --senders 8 "$@"; }
# the sum of our processes, in KiB, when they have given back what they do not need
settled() { sleep 12; bench/footprint 0 | awk '/^quartermaster/ { sum += $(NF - 1) } END { print sum }'; }
tls() {
	local port i
	port=$(cat "$QM_STATE_DIR/port")
	for i in 1 2 3 4 5; do openssl s_client -connect "127.0.0.1:$port" -alpn h2 < /dev/null || return; done
}
no_growth() { local last; last=$(settled); echo "$first KiB after the first rounds, $last KiB after the last"; [ "$last" -lt $((first + 1024)) ]; }

check "up --demo" quartermaster up --demo
check "idle, each process is below $limit KiB" wait_for 20 small
check "$claims claims are Bound" bench --keep
check "with them, too" wait_for 20 small
check "they go" bash -c 'quartermaster get pvc -o json | jq -r ".items[].metadata.name" | grep ^bench- | xargs quartermaster delete pvc'
# how much the allocator keeps varies by a MiB or two from one round to the next: the larger of two is what counts
check "once more" bench
first=$(settled)
check "and once more" bench
second=$(settled)
((second < first)) || first=$second
check "after them, too" wait_for 20 small
check "again" bench
check "and again" bench
check "memory does not grow" wait_for 60 no_growth
check "TLS connections" tls
check "after them, too" wait_for 20 small
plan
