# SPDX-License-Identifier: Apache-2.0
# Test Anything Protocol for shell tests: `check NAME COMMAND…` runs a command and prints ok or
# not ok with what it said; `plan` at the end prints the count. Source it. A function `evidence`, where there is one
# (evidence.sh), adds what else may be known when the first check fails.
tap_count=0
tap_failed=0
tap_out=$(mktemp)

check() {
	local name=$1; shift
	tap_count=$((tap_count + 1))
	if "$@" > "$tap_out" 2>&1 < /dev/null; then
		echo "ok $tap_count - $name"
	else
		echo "not ok $tap_count - $name"
		sed 's/^/# /' "$tap_out" | tail -n "${TAP_LINES:-40}"
		[ $tap_failed -gt 0 ] || ! declare -F evidence > /dev/null || evidence 2>&1 < /dev/null | sed 's/^/# /'
		tap_failed=$((tap_failed + 1))
	fi
}

# skip NAME REASON: what is missing, in words
skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

plan() {
	echo "1..$tap_count"
	rm -f "$tap_out"
	[ "$tap_failed" = 0 ]
}

# wait_for SECONDS COMMAND…: until it succeeds. The seconds are what is enough on a quiet machine; a busy one
# gets three times as long.
wait_for() {
	local end=$((SECONDS + $1 * ${QM_PATIENCE:-3})); shift
	until "$@" > /dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "still failing: $*"; "$@"; return 1; }
		sleep .1
	done
}

# refuses PATTERN COMMAND…: it must fail, and say something that matches
refuses() {
	local pattern=$1 out; shift
	if out=$("$@" 2>&1); then
		echo "succeeded, but should have failed: $*"
		return 1
	fi
	grep -Eq -- "$pattern" <<< "$out" || { echo "said: $out"; return 1; }
}
