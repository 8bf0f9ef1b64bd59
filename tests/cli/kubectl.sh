#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kubectl.sh [PROGRAM] - does a stock kubectl work against the embedded API? Prints TAP.
#
# PROGRAM is quartermaster (default: the one built). kubectl is $QM_KUBECTL, or that of the cache,
# or that on the PATH; where there is none, it is built into the cache.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$(readlink -f "${1:-$here/../../build/src/cli/quartermaster}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster/bin/kubectl

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

find_kubectl() {
	for kubectl in "${QM_KUBECTL:-}" "$cache" "$(command -v kubectl)"; do
		[ -n "$kubectl" ] && [ -x "$kubectl" ] && return
	done
	"$here/../tools/build-peers" kubectl >&2 || skip_all "there is no kubectl and it cannot be built"
	kubectl=$cache
}

find_kubectl
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null; wait 2> /dev/null; rm -rf "$dir"' EXIT
export KUBECONFIG=$dir/state/admin.kubeconfig HOME=$dir KUBECACHEDIR=$dir/cache

start() {
	"$program" api --state-dir "$dir/state" --run-dir "$dir/run" 2>> "$dir/log" &
	server=$!
	for _ in $(seq 100); do
		"$kubectl" get --raw /readyz > /dev/null 2>&1 && return
		sleep 0.1
	done
	echo "Bail out! the server does not start: $(tail -1 "$dir/log")"
	exit 1
}

count=0
failed=0
output=

# ok NAME COMMAND… - succeeds, and its output is kept
ok() {
	local name=$1
	shift
	output=$("$@" 2>&1)
	report $? "$name"
}

# fails NAME COMMAND… - the command must fail
fails() {
	local name=$1
	shift
	output=$("$@" 2>&1)
	[ $? -ne 0 ]
	report $? "$name"
}

# says NAME PATTERN - the last output matches
says() {
	grep -qE -- "$2" <<< "$output"
	report $? "$1"
}

report() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
	else
		failed=$((failed + 1))
		echo "not ok $count - $2"
		sed 's/^/# /' <<< "$output" | head -20
	fi
}

k() {
	timeout 30 "$kubectl" "$@"
}

# field NAME JSONPATH… - one field of a StorageNode
field() {
	k get storagenode "$1" -o "jsonpath={$2}"
}

start

# ---- the server ----
ok "version" k version
says "version of the server" 'Server Version: v1\.34'
ok "api-resources" k api-resources
says "api-resources know StorageNode" '^storagenodes +sn +coreos.com/v1 +true +StorageNode'
ok "auth whoami" k auth whoami
says "auth whoami says who" 'Username +admin'
ok "auth can-i" k auth can-i delete storagenodes
says "an admin can" '^yes'

# ---- apply, get ----
ok "the StorageNode of the documents is accepted as it stands" k apply -f "$here/data/storagenode.yaml"
says "apply created it" 'storagenode.coreos.com/storage-node1 created'
ok "apply again" k apply -f "$here/data/storagenode.yaml"
says "and nothing changed" 'unchanged'
ok "get, a table" k get sn
says "columns" '^NAME +TYPE'
says "the row" '^storage-node1 +glusterfs'
ok "get -o yaml" k get sn storage-node1 -o yaml
says "the zone" 'zone: 1'
version=$(field storage-node1 .metadata.resourceVersion)
sed 's/zone: 1/zone: 2/' "$here/data/storagenode.yaml" > "$dir/zone2.yaml"
ok "apply a change" k apply -f "$dir/zone2.yaml"
says "configured" 'configured'
[ "$(field storage-node1 .spec.glusterfs.zone),$(field storage-node1 .metadata.generation)" = 2,2 ]
report $? "the change is there, and a new generation"
ok "diff of what is there" k diff -f "$dir/zone2.yaml"
ok "get by label, none" k get sn -l no=such
says "none" 'No resources found'
fails "get what is not there" k get sn none
says "NotFound" 'Error from server \(NotFound\): storagenodes.coreos.com "none" not found'
sed 's/  devices:/  devicess:/' "$here/data/storagenode.yaml" > "$dir/typo.yaml"
fails "a misspelt field is refused" k apply -f "$dir/typo.yaml"
says "with a suggestion" 'did you mean .*devices'
sed 's/type: glusterfs/type: gluster/; s/name: storage-node1/name: bad/' "$here/data/storagenode.yaml" > "$dir/bad.yaml"
fails "a wrong value is refused" k apply -f "$dir/bad.yaml"
says "and named" 'spec.type'

# ---- watch ----
k get sn storage-node1 -w --output-watch-events > "$dir/watch" 2>&1 &
watcher=$!
sleep 1
ok "label" k label sn storage-node1 rack=r1
ok "annotate" k annotate sn storage-node1 note=here
for _ in $(seq 50); do
	[ "$(grep -c MODIFIED "$dir/watch")" -ge 2 ] && break
	sleep 0.1
done
kill $watcher
wait $watcher 2> /dev/null
output=$(cat "$dir/watch")
says "get -w shows both changes" 'MODIFIED +storage-node1'
ok "get by label" k get sn -l 'rack in (r1,r2),!other' -o name
says "found by label" 'storagenode.coreos.com/storage-node1'

# ---- patches ----
ok "patch, merge" k patch sn storage-node1 --type merge -p '{"spec":{"glusterfs":{"zone":3}}}'
ok "patch, JSON" k patch sn storage-node1 --type json -p '[{"op":"add","path":"/spec/devices/-","value":"/dev/vde"}]'
[ "$(field storage-node1 .spec.glusterfs.zone)$(field storage-node1 '.spec.devices[3]')" = 3/dev/vde ]
report $? "both patches are there"
fails "a JSON patch whose test fails" k patch sn storage-node1 --type json -p '[{"op":"test","path":"/spec/type","value":"torus"}]'
fails "a strategic patch of a custom kind" k patch sn storage-node1 -p '{"spec":{}}'
says "is not supported" 'not supported|UnsupportedMediaType'
ok "create configmap" k create configmap settings --from-literal=a=1 --from-literal=b=2
ok "patch, strategic" k patch configmap settings -p '{"data":{"a":null,"c":"3"}}'
ok "get configmap" k get cm settings -o 'jsonpath={.data}'
says "merged" '^\{"b":"2","c":"3"\}$'
ok "patch of the status" k patch sn storage-node1 --subresource status --type merge -p '{"spec":{"glusterfs":{"zone":9}},"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
[ "$(field storage-node1 .status.phase)$(field storage-node1 .spec.glusterfs.zone)" = Ready3 ]
report $? "only the status changed"

# ---- wait ----
ok "wait --for=condition" k wait --for=condition=Ready sn/storage-node1 --timeout 5s
ok "wait --for=jsonpath" k wait --for='jsonpath={.status.phase}=Ready' sn/storage-node1 --timeout 5s
fails "wait for what does not come" k wait --for=condition=Other sn/storage-node1 --timeout 1s

# ---- edit ----
cat > "$dir/editor" <<- 'SED'
	#!/bin/sh
	exec sed -i "s/zone: 3/zone: 4/; s/b: \"2\"/b: \"20\"/" "$1"
SED
chmod +x "$dir/editor"
export KUBE_EDITOR=$dir/editor
ok "edit a custom kind" k edit sn storage-node1
[ "$(field storage-node1 .spec.glusterfs.zone)" = 4 ]
report $? "edited"
ok "edit a built-in kind" k edit cm settings
ok "get what was edited" k get cm settings -o 'jsonpath={.data.b}'
says "edited" '^20$'

# ---- describe, events, explain ----
uid=$(field storage-node1 .metadata.uid)
ok "create an Event" k create -f - <<- EVENT
	{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1", "namespace": "default"},
	 "involvedObject": {"apiVersion": "coreos.com/v1", "kind": "StorageNode", "name": "storage-node1",
	  "namespace": "default", "uid": "$uid"},
	 "reason": "Tested", "message": "The event is shown", "type": "Normal", "count": 1,
	 "source": {"component": "test"},
	 "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
EVENT
ok "describe" k describe sn storage-node1
says "with its event" 'Tested .*The event is shown'
ok "events" k events --for storagenode/storage-node1
ok "explain" k explain storagenode.spec.glusterfs.zone
says "its help" 'failure zone'
ok "explain --recursive" k explain storagenode --recursive
says "the whole tree" 'storageNetwork'
ok "explain a built-in kind" k explain pvc.spec.resources

# ---- server-side apply ----
sed 's/storage-node1/applied/' "$here/data/storagenode.yaml" > "$dir/applied.yaml"
ok "apply --server-side" k apply --server-side -f "$dir/applied.yaml"
says "applied" 'serverside-applied'
ok "a field by another manager" k patch sn applied --type merge --field-manager other -p '{"spec":{"glusterfs":{"zone":7}}}'
fails "apply against it" k apply --server-side -f "$dir/applied.yaml"
says "the conflict names the manager" 'conflict with "other" using coreos.com/v1: .spec.glusterfs.zone'
ok "apply --force-conflicts" k apply --server-side --force-conflicts -f "$dir/applied.yaml"
[ "$(field applied .spec.glusterfs.zone)" = 1 ]
report $? "taken over"
sed -i '/- \/dev\/vdd/d; /nodeSelector/d; /hostname/d' "$dir/applied.yaml"
ok "apply without a field" k apply --server-side -f "$dir/applied.yaml"
[ -z "$(field applied .spec.nodeSelector)" ]
report $? "what is no longer applied is gone"
ok "from client-side to server-side apply" k apply --server-side --force-conflicts -f "$dir/zone2.yaml"

# ---- dry run, replace, scale of lists ----
ok "create --dry-run=server" k create configmap dry --from-literal=a=1 --dry-run=server
fails "stored nothing" k get cm dry
k get cm settings -o json | sed 's/"20"/"21"/' > "$dir/settings.json"
ok "replace" k replace -f "$dir/settings.json"
fails "replace with what is old" k replace -f "$dir/settings.json"
says "Conflict" 'the object has been modified'
for i in $(seq 12); do
	printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"many-%02d","labels":{"many":"yes"}}}\n' "$i"
done > "$dir/many.json"
ok "create a dozen" k create -f "$dir/many.json"
ok "get in pages" k get cm -l many --chunk-size 5 -o name
[ "$(grep -c many- <<< "$output")" = 12 ]
report $? "all of them"
k get cm -l many -o yaml > "$dir/list.yaml"
ok "apply a List" k apply -f "$dir/list.yaml"
ok "get --sort-by" k get cm -l many --sort-by=.metadata.name
ok "delete by label" k delete cm -l many
says "deleted" 'configmap "many-12" deleted'

# ---- claims ----
ok "create a claim" k apply -f - <<- CLAIM
	apiVersion: v1
	kind: PersistentVolumeClaim
	metadata: {name: claim}
	spec:
	  accessModes: [ReadWriteMany]
	  resources: {requests: {storage: 1Gi}}
	  storageClassName: store
CLAIM
ok "get pvc" k get pvc
says "Pending" '^claim +Pending'
ok "describe pvc" k describe pvc claim
says "used by none" 'Used By: +<none>'

# ---- delete ----
ok "a finalizer" k patch sn applied --type merge -p '{"metadata":{"finalizers":["quartermaster.storage/node"]}}'
ok "delete --wait=false" k delete sn applied --wait=false
[ -n "$(field applied .metadata.deletionTimestamp)" ]
report $? "marked, and still there"
(sleep 1; k patch sn applied --type merge -p '{"metadata":{"finalizers":null}}' > /dev/null) &
ok "wait --for=delete" k wait --for=delete sn/applied --timeout 10s
ok "delete" k delete sn storage-node1
fails "gone" k get sn storage-node1
ok "create a namespace" k create namespace team
ok "with something in it" k create configmap inside -n team
ok "delete the namespace" k delete namespace team --timeout 20s
fails "its content is gone" k get cm inside -n team
fails "no namespace, no objects" k create configmap x -n team
says "NotFound" 'namespaces "team" not found'
fails "the default namespace stays" k delete namespace default

# ---- tokens ----
fails "a wrong token" k get sn --token=0000000000000000000000000000000000000000000000000000000000000000
says "Unauthorized" 'Unauthorized|must be logged in'
ok "the operator's own kubeconfig" k --kubeconfig "$dir/state/operator.kubeconfig" get sn
fails "no Secrets of other namespaces" k --kubeconfig "$dir/state/operator.kubeconfig" get secrets -n kube-system
says "Forbidden" 'User "operator" cannot list resource "secrets" in API group "" in the namespace "kube-system"'

# ---- a restart ----
ok "before the restart" k get cm settings -o 'jsonpath={.metadata.uid}'
before=$output
kill -9 "$server"
wait "$server" 2> /dev/null
start
ok "after kill -9 and a restart" k get cm settings -o 'jsonpath={.metadata.uid}'
[ "$output" = "$before" ]
report $? "the same object"
kill "$server"
wait "$server"
report $? "SIGTERM ends it cleanly"
server=

echo "1..$count"
[ $failed -eq 0 ]
