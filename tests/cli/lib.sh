# SPDX-License-Identifier: Apache-2.0
# For the scripts beside it: an API of their own in a directory of their own, and TAP.
# The first argument of each script is the program to test; without it, the one of ./build.
set -u

QM=${1:-$(readlink -f "$(dirname "$0")/../../${QM_BUILD:-build}/src/cli/quartermaster")}
DIR=$(mktemp -d /tmp/qm-cli-XXXXXX)
export QM_STATE_DIR=$DIR/state QM_RUN_DIR=$DIR/run HOME=$DIR
unset KUBECONFIG
api_pid=
count=0

finish() {
	[ -n "$api_pid" ] && kill "$api_pid" 2>/dev/null && wait "$api_pid" 2>/dev/null
	rm -rf "$DIR"
}
trap finish EXIT

start_api() {
	"$QM" api >"$DIR/api.log" 2>&1 &
	api_pid=$!
	for _ in $(seq 100); do
		[ -S "$QM_RUN_DIR/api.sock" ] && [ -s "$QM_STATE_DIR/admin.kubeconfig" ] && return
		sleep 0.05
	done
	echo "Bail out! the API did not start: $(tail -1 "$DIR/api.log")"
	exit 1
}

stop_api() {
	kill "$api_pid" && wait "$api_pid" 2>/dev/null
	api_pid=
}

# run COMMAND…: remembers its exit code, its output and its complaints
run() {
	code=0
	timeout 30 "$@" >"$DIR/out" 2>"$DIR/err" || code=$?
	out=$(cat "$DIR/out")
	err=$(cat "$DIR/err")
}

# ok TEXT CONDITION…: one line of TAP, with what was seen where it is not as it should be
ok() {
	text=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $text"
	else
		echo "not ok $count - $text"
		printf '# exit code %s\n' "$code"
		printf '%s\n' "$out" "$err" | sed 's/^/# /'
	fi
}

exits() { [ "$code" -eq "$1" ]; }
says() { [ "$out" = "$1" ]; }
complains() { [ "$err" = "$1" ]; }
shows() { case $out in *"$1"*) true ;; *) false ;; esac; }
mentions() { case $err in *"$1"*) true ;; *) false ;; esac; }
all() { # all 'CONDITION' 'CONDITION'…
	for c in "$@"; do
		eval "$c" || return 1
	done
}

done_testing() { echo "1..$count"; }
