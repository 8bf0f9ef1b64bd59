#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API client against a real API server: who we are and how that changes, the ways there, and a server that
# fails in every way that a watch has to survive.
# timeout: 900
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/cluster/apiserver.sh
build=$(realpath "${QM_BUILD:-build}")
driver=$build/tests/cluster/client-driver
work=$(mktemp -d /var/tmp/qm-client.XXXXXX)
# an own directory for all that it would otherwise find
export QM_STATE_DIR=$work/state QM_RUN_DIR=$work/run
unset KUBECONFIG HTTPS_PROXY https_proxy NO_PROXY no_proxy
pids=()

cleanup() {
	local pid
	for pid in "${pids[@]}"; do cp_end "$pid"; done
	cp_stop
	rm -rf "$work"
}
trap cleanup EXIT

if ! cp_have; then
	skip "the API client against a real API server" "etcd and kube-apiserver are missing; run tests/tools/build-peers"
	plan
	exit
fi

# ---- helpers ----------------------------------------------------------------------------------------

# value NAME VALUE [KUBECONFIG]: makes or changes a ConfigMap
value() {
	local config=${3:-$cp_dir/admin.kubeconfig}
	"$cp_bin/kubectl" --kubeconfig "$config" create configmap "$1" --from-literal=value="$2" --dry-run=client -o yaml |
		"$cp_bin/kubectl" --kubeconfig "$config" apply -f - > /dev/null 2>&1
}
# get ARGUMENT…: what the client says of the ConfigMap "one"
get() { echo one | "$driver" "$@" ask 2>> "$work/driver.log"; }
gets() { [ "$(get "$@")" = "one 1" ] || { tail -n 3 "$work/driver.log"; get "$@"; false; }; }
# says PATTERN ARGUMENT…: it is an error with these words, and with no secret
says() {
	local pattern=$1 out; shift
	out=$(get "$@" 2>&1)
	grep -Eq "^error .*$pattern" <<< "$out" && ! grep -q secret <<< "$out" || { echo "said: $out"; false; }
}
config() { cp_kubeconfig "$1" "${3:-$cp_port}" "$2" > "$work/$1"; }
# relay ARGUMENT…: sets relay_port, relay_pid
relay() {
	rm -f "$work/relay.out"
	python3 tests/cluster/relay.py "$@" > "$work/relay.out" &
	relay_pid=$!
	pids+=("$relay_pid")
	wait_for 10 test -s "$work/relay.out"
	relay_port=$(head -n 1 "$work/relay.out")
}
carried() { grep -c '^connect' "$work/relay.out"; }
# follow ARGUMENT…: a control loop that writes to $work/seen
follow() {
	: > "$work/seen"
	"$driver" "$@" follow > "$work/seen" 2>> "$work/driver.log" &
	follower=$!
	pids+=("$follower")
	wait_for 30 seen one
}
# seen NAME [VALUE]: the last that it saw of NAME
seen() { local last; last=$(grep "^$1 " "$work/seen" | tail -n 1); [ -n "$last" ] && { [ $# = 1 ] || [ "$last" = "$1 $2" ]; }; }
unfollow() { cp_end "$follower" TERM; }

echo "# starting etcd and kube-apiserver"
check "a control plane of its own" cp_start "$work/plane"
check "… with an object" value one 1
# (the roles that Kubernetes ships are put together by its controller manager)
cp_kubectl create clusterrole reader --verb=get --resource=configmaps > /dev/null
cp_kubectl create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:default > /dev/null

# ---- who we are -------------------------------------------------------------------------------------

check "a client certificate in the kubeconfig" gets --kubeconfig "$cp_dir/admin.kubeconfig"
cp_identity nobody /CN=nobody
cp "$cp_dir/nobody.crt" "$work/user.crt"; cp "$cp_dir/nobody.key" "$work/user.key"
config files "client-certificate: user.crt, client-key: user.key"
check "one in files, which may do nothing" says 'forbidden' --kubeconfig "$work/files"
exchanged() { # two questions to one client; between them the files change
	coproc asker { "$driver" --kubeconfig "$1" ask 2>> "$work/driver.log"; }
	local first second pid=$asker_PID
	echo one >&"${asker[1]}"; read -r first <&"${asker[0]}"
	"${@:2}"
	echo one >&"${asker[1]}"; read -r second <&"${asker[0]}"
	exec {asker[1]}>&-
	wait "$pid"
	[[ $first == error* && $second == "one 1" ]] || { echo "first: $first; then: $second"; false; }
}
other_files() {
	cp "$cp_dir/admin.crt" "$work/user.crt"; cp "$cp_dir/admin.key" "$work/user.key"
	sleep 1.1 # files are looked at once a second
}
check "… until they hold another one" exchanged "$work/files" other_files

cp_jwt default default -600 > "$work/token"
config token "tokenFile: token"
check "an expired token is refused" says 'Unauthorized' --kubeconfig "$work/token"
new_token() { cp_kubectl create token default > "$work/token"; }
check "… until its file holds a new one" exchanged "$work/token" new_token

plugin() { # plugin STATUS-JSON…: each run gives the next, the last one stays
	rm -f "$work/runs"
	printf '%s\n' "$@" > "$work/credentials"
	cat > "$work/plugin" <<-END
		#!/bin/sh
		echo run >> $work/runs
		n=\$(wc -l < $work/runs); all=\$(wc -l < $work/credentials)
		[ \$n -le \$all ] || n=\$all
		printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":%s}\n' "\$(sed -n "\${n}p" $work/credentials)"
	END
	chmod +x "$work/plugin"
}
ran() { [ "$(wc -l < "$work/runs")" = "$1" ] || { echo "ran $(wc -l < "$work/runs") times"; false; }; }
config exec "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}"
good="{\"token\":\"$(cp_kubectl create token default)\"}"
plugin "$good"
check "a plugin's token" gets --kubeconfig "$work/exec"
plugin "{\"token\":\"$(cp_jwt default default -600)\"}" "$good"
: > "$work/driver.log"
check "a plugin is run again after a 401" gets --kubeconfig "$work/exec"
check "… once" ran 2
pem() { awk '{ printf "%s\\n", $0 }' "$1"; }
plugin "{\"clientCertificateData\":\"$(pem "$cp_dir/nobody.crt")\",\"clientKeyData\":\"$(pem "$cp_dir/nobody.key")\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}" \
	"{\"clientCertificateData\":\"$(pem "$cp_dir/admin.crt")\",\"clientKeyData\":\"$(pem "$cp_dir/admin.key")\",\"expirationTimestamp\":\"2099-01-01T00:00:00Z\"}"
check "a plugin's certificate, and another when that has expired" exchanged "$work/exec" true
check "… two runs" ran 2
printf '#!/bin/sh\necho secret >&2; echo secret; exit 1\n' > "$work/plugin"
check "a plugin that fails is named, not quoted" says 'plugin.*status 1' --kubeconfig "$work/exec"

# ---- where it is ------------------------------------------------------------------------------------

{ config two "$(cp_admin)"; config one "token: nonsense"; }
merged() { KUBECONFIG=$work/one:$work/none:$work/two get "$@"; }
check "two files merged: the first one's context" bash -c "grep -q Unauthorized <<< '$(merged)'"
check "… and the other, by name" test "$(merged --context two)" = "one 1"
check "the CLI's --context" env KUBECONFIG="$work/one:$work/two" "$build/src/cli/quartermaster" get configmap one --context two
check "… and without it" refuses Unauthorized env KUBECONFIG="$work/one:$work/two" "$build/src/cli/quartermaster" get configmap one

account=$work/root/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$account"
cp_kubectl create token default > "$account/token"
cp "$cp_dir/ca.crt" "$account/"; echo -n default > "$account/namespace"
check "as a pod" env KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT="$cp_port" \
	bash -c "[ \"\$(echo one | '$driver' --root '$work/root' ask)\" = 'one 1' ]"

sed "s/, certificate-authority-data: [^}]*/, tls-server-name: kubernetes.default.svc&/" "$cp_dir/admin.kubeconfig" > "$work/named"
check "tls-server-name" gets --kubeconfig "$work/named"
sed -i "s/kubernetes.default.svc/elsewhere/" "$work/named"
check "… is what counts" says 'not trusted' --kubeconfig "$work/named"
sed "s/certificate-authority-data: [^}]*/insecure-skip-tls-verify: true/" "$cp_dir/admin.kubeconfig" > "$work/insecure"
check "insecure-skip-tls-verify" gets --kubeconfig "$work/insecure"

relay --proxy user:pass
proxied() { sed "s|, certificate-authority-data|, proxy-url: 'http://$1127.0.0.1:$relay_port'&|" "$cp_dir/admin.kubeconfig" > "$work/proxied"; }
proxied user:pass@
check "by a proxy" gets --kubeconfig "$work/proxied"
check "… which carried it on" test "$(carried)" = 1
proxied user:secret@
check "… that wants another password" says '407' --kubeconfig "$work/proxied"

openssl s_server -accept 0 -cert "$cp_dir/apiserver.crt" -key "$cp_dir/apiserver.key" -alpn http/1.1 -www > "$work/s_server" 2>&1 &
pids+=($!)
wait_for 10 grep -q ACCEPT "$work/s_server"
config old "token: x" "$(sed -n 's/^ACCEPT.*:\([0-9]*\)$/\1/p' "$work/s_server")"
check "a server without HTTP/2 gives one clear error" says 'HTTP/2' --kubeconfig "$work/old"

# ---- what fails ---------------------------------------------------------------------------------------

relay --to "$cp_port"
config relayed "$(cp_admin)" "$relay_port"
follow --kubeconfig "$work/relayed" --ping 1000
check "a watch" wait_for 10 seen one 1
kill -USR1 "$relay_pid"
check "a watch cut in half: what changes meanwhile" value one 2
check "… is seen all the same" wait_for 30 seen one 2
before=$(carried)
kill -USR1 "$relay_pid"
check "a watch with nothing to tell that is cut in half is noticed" wait_for 30 bash -c "[ \$(grep -c ^connect '$work/relay.out') -gt $before ]"
unfollow

follow --kubeconfig "$cp_dir/admin.kubeconfig"
value two 1; value gone 1
check "what is made is seen" wait_for 10 seen gone 1
check "a second API server" cp_second_start
cp_api_stop KILL
check "while ours is dead: a change" value one 3 "$cp_dir/second.kubeconfig"
value new 1 "$cp_dir/second.kubeconfig"
"$cp_bin/kubectl" --kubeconfig "$cp_dir/second.kubeconfig" delete configmap gone > /dev/null
check "ours is back" cp_api_start
check "… and the change is seen" wait_for 30 seen one 3
check "… what was made" wait_for 30 seen new 1
check "… what was deleted" wait_for 30 seen gone -
check "what did not change was not missed either" seen two 1
value one 4
check "and changes are seen as before" wait_for 10 seen one 4
cp_second_stop

cp_etcd_stop KILL
check "without etcd nothing can be written" refuses . cp_kubectl --request-timeout=2s create configmap never
sleep 5 # for a while
check "etcd is back" cp_etcd_start
check "… and can be written" cp_wait 60 value one 5
check "… and that is seen" wait_for 30 seen one 5
check "the loop has lived through all of it" kill -0 "$follower"

# the API server forgets as well while it is away: what the watch goes on from is not there any more
cp_api_stop TERM
cp_etcd_stop TERM; cp_etcd_start
cp_flags=(--feature-gates=ListFromCacheSnapshot=false --goaway-chance=0.02)
cp_api_start
for i in 1 2 3; do value filler "$i"; done
cp_compact
check "after a compaction" value one 6
check "… a change is seen" wait_for 30 seen one 6
unfollow

"$driver" --kubeconfig "$cp_dir/admin.kubeconfig" fill 620 2>> "$work/driver.log"
expires() { # the second page is asked for after its snapshot is gone
	local line last
	coproc lister { "$driver" --kubeconfig "$cp_dir/admin.kubeconfig" pages 2>> "$work/driver.log"; }
	local pid=$lister_PID
	read -r line <&"${lister[0]}"
	"$@"
	echo >&"${lister[1]}"
	read -r last <&"${lister[0]}"
	wait "$pid"
	echo "$line, then $last"
	[ "$last" = "$expected" ]
}
expected=$(($(cp_kubectl get configmaps --no-headers | wc -l))) expected="$expected items"
check "pages" expires true
expected=expired
forget() { value one 7; cp_compact; }
check "pages that expire are said to" expires forget

relay --to "$cp_port"
config relayed "$(cp_admin)" "$relay_port"
check "a server that sends clients elsewhere (GOAWAY)" bash -c "'$driver' --kubeconfig '$work/relayed' hammer 1000 2> /dev/null | tee /dev/stderr | grep -q '1000 ok, 0 failed'"
check "… did so" test "$(carried)" -gt 3
plan
