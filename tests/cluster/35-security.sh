#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who may do what in a deployment, and who reaches its pools. Prints TAP.
# timeout: 600
. "$(dirname "$0")/lib.sh"
. tests/cluster/store.sh

# ---- the manifests

kubectl create --dry-run=client -o json -f deploy/quartermaster-glusterfs.yaml | jq -s 'map(if .kind == "List" then .items[] else . end)' > "$work/objects"
manifest() { jq -e "$@" "$work/objects"; }
no_wildcard() { manifest '[.[] | select(.rules) | .rules[] | .verbs + .resources + .apiGroups | .[]] | length > 20 and (index("*") | not)'; }
no_admin() { manifest '[.[] | select(.roleRef) | .roleRef.name] | length > 3 and (index("cluster-admin") | not)'; }
accounts() { manifest '[.[] | select(.kind == "ServiceAccount") | .metadata.name | ltrimstr("quartermaster-")] | sort == ["agent", "client", "node", "operator", "storage"]'; }
levels() { manifest '.[] | select(.kind == "Namespace") | .metadata.labels["pod-security.kubernetes.io/enforce"] == "privileged"'; }
check "no wildcard in any role" no_wildcard
check "nobody is cluster-admin" no_admin
check "one account a role" accounts
check "the namespace states its Pod Security level" levels

# ---- a store

check "images are built and imported" images
check "a deployment is installed, and ONLINE" install
check "a claim is bound" claim data
check "the pool is whole" wait_for 90 whole

read_only() { q get pod -o json | jq -e '.items | length >= 8 and all(.spec.containers[].securityContext.readOnlyRootFilesystem)'; }
may() { [ "$(kubectl auth can-i --as="system:serviceaccount:quartermaster:quartermaster-$1" "${@:2}" 2> /dev/null)" = yes ]; }
may_not() { ! may "$@"; }
foreign='{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "other"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "localhost/lab:1"}]}}}}'
as_operator() { q --as=system:serviceaccount:quartermaster:quartermaster-operator create --dry-run=server -f - <<< "$foreign"; }
no_token() { q get daemonset -o json | jq -e '.items | length >= 2 and all(.spec.template.spec.automountServiceAccountToken == false)'; }
check "root file systems are read-only" read_only
check "the node service is not among the machine's processes, where no protocol is the machine's" eval 'q get daemonset/quartermaster-node -o json | jq -e ".spec.template.spec.hostPID | not"'
check "the operator reads its own Secrets" may operator -n quartermaster get secret/glusterfs-tls
check "no other in its namespace" may_not operator -n quartermaster get secret/other
check "none elsewhere" may_not operator -n kube-system get secrets
check "and lists none" may_not operator -n quartermaster list secrets
check "an agent reads no Secret" may_not agent -n quartermaster get secret/glusterfs-tls
check "a storage pod may do nothing" may_not storage -n quartermaster get storagenodes
check "nor the node service" may_not node -n quartermaster get pods
check "but for Events" may node -n default create events
check "which it does not read" may_not node -n default get events
check "and for what it counts" may node -n quartermaster patch configmap/quartermaster-clients
check "no other of these" may_not node -n quartermaster patch configmap/quartermaster-pools
check "nor a client" may_not client -n quartermaster get secret/glusterfs-client
check "a client has no token" no_token
check "the operator touches no DaemonSet but its own" refuses 'touches no DaemonSet but' as_operator
check "and none elsewhere" may_not operator -n kube-system create daemonsets
check "an agent may not touch pods" may_not agent -n quartermaster delete pods

# ---- what an agent's own token is good for

# By plain requests: kubectl would read a subresource first, which agents have no need of.
agent_config() {
	token=$(q exec "$(pod agent 1)" -- cat /var/run/secrets/kubernetes.io/serviceaccount/token) && [ -n "$token" ] &&
		kubectl config view --raw -o json | jq -r '.clusters[0].cluster["certificate-authority-data"]' | base64 -d > "$work/api.crt" &&
		server=$(kubectl config view --raw -o jsonpath='{.clusters[0].cluster.server}')
}
as_agent() {
	curl -sS --fail-with-body --cacert "$work/api.crt" -X PATCH -H 'Content-Type: application/merge-patch+json' \
		-H @<(echo "Authorization: Bearer $token") -d "$2" "$server/apis/$1"
}
ours=coreos.com/v1/namespaces/quartermaster/storagenodes
report() { as_agent "$ours/storage-node$1/status" "{\"status\":$2}"; }
spec() { as_agent "$ours/storage-node1" '{"spec":{"maintenance":true}}'; }
steal() { as_agent coordination.k8s.io/v1/namespaces/quartermaster/leases/operator-glusterfs '{"spec":{"holderIdentity":"me"}}'; }
check "an agent's token" agent_config
check "writes the report of its own node" report 1 '{"agent":{"version":"tested"}}'
check "not that of another" refuses 'only the StorageNode whose status.nodeName is its own machine' report 2 '{"agent":{"version":"tested"}}'
for f in '"nodeName":"node2"' '"plan":{"epoch":99}' '"phase":"Ready","address":"10.0.0.1"' '"display":{"zone":"9"}'; do
	check "nor $f of its own" refuses 'nothing that the operator writes' report 1 "{$f}"
done
check "nor any spec" refuses 'cannot patch resource' spec
check "nor takes the operator's lease" refuses "never the operator's" steal

# ---- who listens

listeners() { lab exec "$1" ss -Hltnp | grep -E 'quartermaster|qm-'; }
nothing_listens() { local n; for n in 1 2 3; do ! listeners "$n" || return 1; done; }
operator_listens() {
	local p
	for p in $(lab exec "$1" pgrep -x quartermaster); do
		! lab exec "$1" nsenter -t "$p" -n ss -Hltnp | grep -E 'quartermaster|qm-' || return 1
	done
}
none_anywhere() { local n; for n in 1 2 3; do operator_listens "$n" || return; done; }
check "no agent listens" nothing_listens
check "no operator does" none_anywhere

# ---- TLS

speaks_tls() {
	lab exec 2 timeout 20 openssl s_client -connect "$(address 1):24007" < /dev/null > "$work/tls" 2>&1
	grep -q 'CN = storage.glusterfs.quartermaster' "$work/tls" || { cat "$work/tls"; return 1; }
}
# It asks in the handshake, and closes the connection after it: the pods below see that.
wants_certificate() { speaks_tls && grep -q '^Requested Signature Algorithms' "$work/tls"; }
own_authority() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=storage.glusterfs.quartermaster -keyout "$work/tls.key" -out "$work/tls.crt" &&
		field secret/glusterfs-tls '{.data.ca\.crt}' | base64 -d > "$work/ca.crt" &&
		q create secret generic forged --from-file="$work/tls.key" --from-file="$work/tls.crt" --from-file="$work/ca.crt"
}
# mounts NAME SECRET SECURE [ADDRESS POOL]: a pod that mounts the pool; it ends with 0 if that works
mounts() {
	jq -n --arg name "$1" --arg secret "$2" --arg secure "$3" --arg image "$image" --arg from "${4:-$(address 1)}" --arg pool "${5:-glusterfs-1}" '{apiVersion: "v1", kind: "Pod",
		metadata: {name: $name}, spec: {restartPolicy: "Never", containers: [{name: "c", image: $image, command: ["sh", "-c",
			"[ -z \($secure) ] || : > /var/lib/glusterd/secure-access; glusterfs --volfile-server=\($from) --volfile-id=\($pool) --log-level=WARNING /mnt/pool; findmnt -nt fuse.glusterfs /mnt/pool && ls -d /mnt/pool/. || { cat /var/log/glusterfs/*; exit 1; }"],
			securityContext: {privileged: true}, volumeMounts: [{name: "lib", mountPath: "/var/lib/glusterd"},
				{name: "log", mountPath: "/var/log/glusterfs"}, {name: "mnt", mountPath: "/mnt/pool"}]}],
		volumes: [{name: "lib", emptyDir: {}}, {name: "log", emptyDir: {}}, {name: "mnt", emptyDir: {}}]}} |
		if $secret == "" then . else .spec.volumes += [{name: "tls", secret: {secretName: $secret}}] |
			.spec.containers[0].volumeMounts += [{name: "tls", mountPath: "/etc/ssl/glusterfs"}] end' | q create -f -
}
ended() { q wait "pod/$1" --for=jsonpath='{.status.phase}'="$2" --timeout="${3:-120}s" || { q logs "$1"; return 1; }; }
check "glusterd speaks TLS, as the deployment" speaks_tls
check "and wants a certificate" wants_certificate
check "a forged certificate is made" own_authority
check "pods try to mount the pool: with the deployment's certificate" mounts with glusterfs-tls yes
check "without one" mounts without '' yes
check "without TLS" mounts plain '' ''
check "with the right name from another authority" mounts forged forged yes
check "the first succeeds" ended with Succeeded
for p in without plain forged; do check "$p: it does not" ended "$p" Failed; done

# ---- renewal

short_certificate() {
	field secret/glusterfs-ca '{.data.ca\.crt}' | base64 -d > "$work/ca.crt"
	field secret/glusterfs-ca '{.data.ca\.key}' | base64 -d > "$work/ca.key"
	openssl req -x509 -newkey rsa:2048 -nodes -days 5 -subj /CN=storage.glusterfs.quartermaster -config <(printf '[req]\ndistinguished_name=name\n[name]\n') \
		-CA "$work/ca.crt" -CAkey "$work/ca.key" -addext basicConstraints=CA:FALSE -keyout "$work/short.key" -out "$work/short.crt" &&
		q patch secret glusterfs-tls --type=merge -p "{\"data\":{\"tls.crt\":\"$(base64 -w 0 "$work/short.crt")\",\"tls.key\":\"$(base64 -w 0 "$work/short.key")\"}}"
}
renewed() { field secret/glusterfs-tls '{.data.tls\.crt}' | base64 -d | openssl x509 -checkend $((300 * 86400)) -noout; }
served() { lab exec 3 timeout 20 openssl s_client -connect "$(address "$1"):24007" < /dev/null 2> /dev/null | openssl x509 -noout -serial; }
rolled() { local n; for n in 1 2 3; do [ -n "$(served $n)" ] && [ "$(served $n)" != "$serial" ] || return; done; whole; }
watch_online() { while :; do field storagestatus/glusterfs '{.spec.status}{"\n"}'; done > "$work/statuses" 2> /dev/null; }
stayed_online() { [ -s "$work/statuses" ] && ! grep -vx ONLINE "$work/statuses"; }
own_cleanup() { [ -z "${watcher:-}" ] || kill "$watcher" 2> /dev/null; }
has_serial() { serial=$(served 1) && [ -n "$serial" ]; }
check "a certificate is in use" wait_for 30 has_serial
watch_online &
watcher=$!
check "a certificate of a few days" short_certificate
check "the operator starts anew" q rollout restart deployment/quartermaster-glusterfs
check "and renews it" wait_for 60 renewed
check "storage pods take it, and the pool is whole" wait_for 240 rolled
kill "$watcher"; wait "$watcher" 2> /dev/null; watcher=
check "it was ONLINE all the time" stayed_online

# ---- without TLS, by choice

plain() {
	overlay plain plain && sed -i 's/- --deployment=plain/&\n        - --tls=off/' "$work/deploy/plain/operator.yaml" &&
		kubectl apply -k "$work/deploy/plain"
}
plain_online() { kubectl -n plain wait --for=condition=Online storagestatus/plain --timeout=10s; }
refused() { field storagestatus/glusterfs '{.status.conditions[?(@.type=="Degraded")].message}' | grep -q -- '--tls=off: the storage pods run with TLS on'; }
others+=(plain)
check "a deployment with --tls=off" plain
check "on a second address" second_address
check "has a node" second_node plain
check "is ONLINE" wait_for 120 plain_online
check "a pod without a certificate mounts its pool" mounts open '' '' "$(address_2)" plain-1
check "and sees it" ended open Succeeded
check "with pools, TLS is not changed" operator_args '' --tls=off
check "the deployment says so" wait_for 90 refused
check "and serves on" online
check "with all copies" wait_for 120 whole # the last pod to roll with the new certificate may still be healing
q delete secret forged > /dev/null
keep
plan
