# SPDX-License-Identifier: Apache-2.0
# A bare control plane, real and without nodes: etcd and kube-apiserver on free loopback ports, all below one
# directory. Source it; `cp_start DIR` starts it, `cp_stop` ends it without a trace (put it in the trap).
#
#   $cp_dir/admin.kubeconfig    a client certificate of system:masters
#   cp_kubectl ARGUMENT…        kubectl with that
#   cp_api_start, cp_api_stop [SIGNAL], cp_etcd_start, cp_etcd_stop [SIGNAL]: one by one, same ports, same data
#   cp_second_start, cp_second_stop: another API server on the same etcd; its kubeconfig is second.kubeconfig
#   cp_identity NAME SUBJECT [ALT-NAMES]: a certificate NAME.crt, NAME.key of the cluster's CA
#   cp_kubeconfig NAME PORT USER-YAML > FILE
#   cp_jwt NAMESPACE ACCOUNT SECONDS: a service account's token that ends in so many seconds (below 0: has ended)
#   cp_compact: forgets etcd's history up to now
#
# cp_begin WHAT: for a whole script of the suite: $work, a directory that ends with the script, our programs' directories in
# it, and a control plane; where there is none to be had, WHAT is skipped and the script ends.
#
# cp_flags: more flags for the API server. QM_CACHE: where tests/tools/build-peers puts the programs.
cp_bin=${QM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster}/bin
cp_flags=()
cp_etcd_pid= cp_api_pid= cp_second_pid=

cp_have() { [ -x "$cp_bin/etcd" ] && [ -x "$cp_bin/kube-apiserver" ] && [ -x "$cp_bin/kubectl" ]; }

cp_free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

cp_kubectl() { "$cp_bin/kubectl" --kubeconfig "$cp_dir/admin.kubeconfig" --cache-dir "$cp_dir/kubectl-cache" "$@"; }

cp_identity() {
	local name=$cp_dir/$1
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
		-subj "$2" -keyout "$name.key" 2> /dev/null |
	openssl x509 -req -days 30 -CA "$cp_dir/ca.crt" -CAkey "$cp_dir/ca.key" \
		-set_serial "0x$(openssl rand -hex 8)" -out "$name.crt" -extfile <(
			echo "subjectAltName=${3:-DNS:$1}"
			echo "extendedKeyUsage=serverAuth,clientAuth") 2> /dev/null
}

cp_kubeconfig() {
	cat <<-END
		apiVersion: v1
		kind: Config
		current-context: $1
		contexts: [{name: $1, context: {cluster: $1, user: $1}}]
		clusters:
		- name: $1
		  cluster: {server: 'https://127.0.0.1:$2', certificate-authority-data: $(base64 -w0 "$cp_dir/ca.crt")}
		users:
		- name: $1
		  user: {$3}
	END
}

cp_admin() { echo "client-certificate-data: $(base64 -w0 "$cp_dir/admin.crt"), client-key-data: $(base64 -w0 "$cp_dir/admin.key")"; }

cp_pki() {
	openssl genrsa -out "$cp_dir/sa.key" 2048 2> /dev/null
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
		-subj /CN=test-ca -keyout "$cp_dir/ca.key" -out "$cp_dir/ca.crt" 2> /dev/null
	cp_identity apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1"
	cp_identity admin /O=system:masters/CN=admin
	cp_kubeconfig admin "$cp_port" "$(cp_admin)" > "$cp_dir/admin.kubeconfig"
	cp_kubeconfig second "$cp_second_port" "$(cp_admin)" > "$cp_dir/second.kubeconfig"
}

# cp_wait SECONDS COMMAND…
cp_wait() {
	local end=$((SECONDS + $1)); shift
	until "$@" > /dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep .1
	done
}

cp_etcd_start() {
	"$cp_bin/etcd" --data-dir "$cp_dir/etcd" --unsafe-no-fsync --log-level error \
		--listen-client-urls "http://127.0.0.1:$cp_etcd_port" --advertise-client-urls "http://127.0.0.1:$cp_etcd_port" \
		--listen-peer-urls "http://127.0.0.1:$cp_peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$cp_peer_port" \
		--initial-cluster "default=http://127.0.0.1:$cp_peer_port" >> "$cp_dir/etcd.log" 2>&1 &
	cp_etcd_pid=$!
	cp_wait 60 curl -sf "http://127.0.0.1:$cp_etcd_port/health"
}

# cp_api PORT LOG
cp_api() {
	exec "$cp_bin/kube-apiserver" --etcd-servers "http://127.0.0.1:$cp_etcd_port" --secure-port "$1" --bind-address 127.0.0.1 \
		--advertise-address 127.0.0.1 --endpoint-reconciler-type=none --cert-dir "$cp_dir" \
		--tls-cert-file "$cp_dir/apiserver.crt" --tls-private-key-file "$cp_dir/apiserver.key" --client-ca-file "$cp_dir/ca.crt" \
		--service-account-issuer https://kubernetes.default.svc --service-account-key-file "$cp_dir/sa.key" \
		--service-account-signing-key-file "$cp_dir/sa.key" --authorization-mode RBAC --allow-privileged \
		--service-cluster-ip-range 10.96.0.0/16 --profiling=false "${cp_flags[@]}" >> "$2" 2>&1
}

cp_api_start() {
	cp_api "$cp_port" "$cp_dir/apiserver.log" &
	cp_api_pid=$!
	cp_wait 120 cp_kubectl get --raw /readyz
}

cp_second_start() {
	cp_api "$cp_second_port" "$cp_dir/second.log" &
	cp_second_pid=$!
	cp_wait 120 "$cp_bin/kubectl" --kubeconfig "$cp_dir/second.kubeconfig" get --raw /readyz
}

# cp_end PID [SIGNAL]
cp_end() {
	[ -n "$1" ] || return 0
	kill -s "${2:-KILL}" "$1" 2> /dev/null || true
	wait "$1" 2> /dev/null || true
}
cp_etcd_stop() { cp_end "$cp_etcd_pid" "$@"; cp_etcd_pid=; }
cp_api_stop() { cp_end "$cp_api_pid" "$@"; cp_api_pid=; }
cp_second_stop() { cp_end "$cp_second_pid" "$@"; cp_second_pid=; }

cp_start() {
	cp_dir=$1
	mkdir -p "$cp_dir"
	cp_port=$(cp_free_port) cp_second_port=$(cp_free_port) cp_etcd_port=$(cp_free_port) cp_peer_port=$(cp_free_port)
	cp_pki
	cp_etcd_start && cp_api_start && cp_wait 60 cp_kubectl get namespace default &&
		{ cp_kubectl get serviceaccount default > /dev/null 2>&1 || cp_kubectl create serviceaccount default > /dev/null; }
}

cp_stop() {
	cp_second_stop
	cp_api_stop
	cp_etcd_stop
	[ -z "${cp_dir:-}" ] || rm -rf "$cp_dir"
}

cp_base64url() { base64 -w0 | tr '+/' '-_' | tr -d '='; }

cp_jwt() {
	local now uid head claims
	now=$(date +%s)
	uid=$(cp_kubectl -n "$1" get serviceaccount "$2" -o 'jsonpath={.metadata.uid}') || return
	head=$(printf '{"alg":"RS256","typ":"JWT"}' | cp_base64url)
	claims=$(printf '{"iss":"https://kubernetes.default.svc","aud":["https://kubernetes.default.svc"],"sub":"system:serviceaccount:%s:%s","iat":%d,"nbf":%d,"exp":%d,"jti":"%s","kubernetes.io":{"namespace":"%s","serviceaccount":{"name":"%s","uid":"%s"}}}' \
		"$1" "$2" $((now - 3600)) $((now - 3600)) $((now + $3)) "$(cat /proc/sys/kernel/random/uuid)" "$1" "$2" "$uid" | cp_base64url)
	printf '%s.%s.%s\n' "$head" "$claims" "$(printf '%s.%s' "$head" "$claims" | openssl dgst -sha256 -sign "$cp_dir/sa.key" | cp_base64url)"
}

cp_compact() {
	local revision
	revision=$(curl -sf "http://127.0.0.1:$cp_etcd_port/v3/kv/range" -d '{"key":"AA=="}' | sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p')
	curl -sf "http://127.0.0.1:$cp_etcd_port/v3/kv/compaction" -d "{\"revision\":\"$revision\",\"physical\":true}" > /dev/null
}

cp_begin() {
	work=$(mktemp -d /var/tmp/qm-cp.XXXXXX)
	export QM_STATE_DIR=$work/state QM_RUN_DIR=$work/run
	trap 'cp_stop; rm -rf "$work"' EXIT
	if ! cp_have; then
		skip "$1" 'etcd and kube-apiserver are missing; run tests/tools/build-peers'
		plan
		exit
	fi
	cp_start "$work/cp" && return
	echo "Bail out! the API server does not start: $(tail -n 3 "$work/cp/apiserver.log")"
	exit 1
}
