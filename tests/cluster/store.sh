# SPDX-License-Identifier: Apache-2.0
# What the tests of a deployment share: to be sourced after lib.sh.
#   q …              kubectl in the deployment's namespace, quartermaster
#   images           built and on all nodes; once for a lab, as long as what they are made of stays the same
#   install          the deployment with a StorageNode on each node, ONLINE; one that an earlier script kept will do
#   keep             called last by a script that leaves the deployment as it was installed: the next one finds it.
#                    All of it goes away where a check failed, and at the end of a script that does not call it
#   fresh            removes what an earlier script kept
#   declare_node N   the StorageNode of node N, in the seed's form, with a disk of its own
version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" meson.build | head -n 1)
image=localhost/quartermaster-glusterfs:$version
work=$(mktemp -d)
others=() # namespaces of other deployments
is_kept=

q() { kubectl -n quartermaster "$@"; }
field() { q get "$1" -o jsonpath="$2"; }
address() { kubectl get node "node$1" -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}'; }

archives=$(readlink -m "${QM_LAB:-/var/tmp/quartermaster-lab}")/quartermaster # as deploy/images/build leaves them
# What the images are made of: the programs, and all that deploy/images/build reads
images_made_of() {
	local build=${QM_BUILD:-build}
	{ sha256sum "$build/src/cli/quartermaster" "$build/src/worker/qm-gluster" "$build/src/clients/qm-client" deploy/images/*
		git log -1 --format=%ct; } 2> /dev/null | sha256sum
}
images() {
	local name made_of
	made_of=$(images_made_of)
	[ "$made_of" != "$(cat "$archives/made-of" 2> /dev/null)" ] || return 0
	deploy/images/build --output "$archives" || return
	for name in operator glusterfs; do
		lab image "localhost/quartermaster-$name:$version" "$archives/quartermaster-$name.tar" || return
	done
	echo "$made_of" > "$archives/made-of"
}

declare_node() {
	q create -f - <<-END
		apiVersion: "coreos.com/v1"
		kind: StorageNode
		metadata:
		  name: storage-node$1
		spec:
		  type: glusterfs
		  nodeSelector:
		    'kubernetes.io/hostname': node$1
		  storageNetwork:
		    ips:
		      - $(address "$1")
		  devices:
		    - $(lab disk "$1" 2G)
		  glusterfs:
		    cluster: cluster1
		    zone: $1
	END
}
declare_nodes() { declare_node 1 && declare_node 2 && declare_node 3; }

online() { wait_for 60 q get storagestatus/glusterfs && q wait --for=condition=Online storagestatus/glusterfs --timeout="${1:-240}s"; }
whole() {
	local pool
	pool=$(q get storagepool -o json)
	jq -e '.items | length > 0 and all(.status.phase == "Online" and .status.healPending == 0)' <<< "$pool"
}
registered() {
	wait_for 90 q get storagenodes,storagestatuses,storagepools
}
install() {
	! kept || return 0
	fresh && kubectl create -f deploy/quartermaster-glusterfs.yaml && registered && declare_nodes && online
}

# As it was installed: told nothing else, nobody has a volume, everything serves.
manifest_command() { kubectl create --dry-run=client -o json -f deploy/quartermaster-glusterfs.yaml | jq -ce 'select(.kind == "Deployment") | .spec.template.spec.containers[0].command'; }
as_installed() {
	[ -z "$(kubectl get pv -o name)" ] && q get all,storagenode,storagepool,storagestatus -o json | jq -e --argjson command "$(manifest_command)" '
		(.items | group_by(.kind) | map({(.[0].kind): .}) | add) as $all |
		($all.Deployment[] | select(.metadata.name == "quartermaster-glusterfs").spec.template.spec.containers[0].command) == $command and
		([$all.StorageNode[].metadata.name] == ["storage-node1", "storage-node2", "storage-node3"]) and
		([$all.StoragePool[].metadata.name] == ["glusterfs-1"]) and ($all.StoragePool[0].status | .phase == "Online" and .healPending == 0) and
		([$all.StorageStatus[].spec.status] == ["ONLINE"]) and ($all.DaemonSet | length == 2) and
		([$all.DaemonSet[].status | .numberReady == 3 and .updatedNumberScheduled == 3] | all) and
		([$all.Pod[] | .metadata.deletionTimestamp == null and .status.phase == "Running"] | all)'
}
# A client that runs stays as it is until it is deleted.
clients_as_told() {
	q get daemonset -l quartermaster.storage/role=client -o json | jq -e '.items | length > 0 and all(.status | .updatedNumberScheduled == .desiredNumberScheduled)' ||
		q delete pod -l quartermaster.storage/role=client --timeout=60s
}
mark=quartermaster.storage/kept-by-tests
kept() { [ "$(kubectl get namespace quartermaster -o json 2> /dev/null | jq -r --arg mark $mark '.metadata.annotations[$mark]')" = "$(cat "$archives/made-of")" ] && as_installed; }
keep() {
	local ns
	[ "$tap_failed" = 0 ] || return
	! declare -F own_cleanup || { own_cleanup; unset -f own_cleanup; }
	for ns in "${others[@]}"; do remove_deployment "$ns"; done
	q delete pvc --all --timeout=60s && q delete pod -l '!quartermaster.storage/role' --grace-period=1 --timeout=60s
	operator_as_installed && clients_as_told && wait_for 30 as_installed && kubectl annotate namespace quartermaster --overwrite "$mark=$(cat "$archives/made-of")" && is_kept=1
} > /dev/null 2>&1
fresh() { ! kubectl get namespace quartermaster > /dev/null 2>&1 || remove; }

claim() {
	kubectl apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: quartermaster}
		spec:
		  storageClassName: ${2:-glusterfs}
		  accessModes: [ReadWriteMany]
		  resources: {requests: {storage: 64Mi}}
	END
	q wait "pvc/$1" --for=jsonpath='{.status.phase}'=Bound --timeout=120s
}

# app NAME NODE CLAIM COMMAND: a pod with a volume at /data
app() {
	jq -n --arg name "$1" --arg node "$2" --arg claim "$3" --arg command "$4" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name},
		spec: {restartPolicy: "Never", terminationGracePeriodSeconds: 1, nodeName: $node, containers: [{name: "c", image: "localhost/lab:1",
			command: ["sh", "-c", $command], volumeMounts: [{name: "d", mountPath: "/data"}]}],
		volumes: [{name: "d", persistentVolumeClaim: {claimName: $claim}}]}}' | k apply -f -
}
runs() { k wait "pod/$1" --for=condition=Ready --timeout="${2:-90}s" || { k describe "pod/$1" | tail -n 8; return 1; }; }
# own_claim NAME [CLASS]: in the first namespace of the script, as app
own_claim() {
	k apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1}
		spec: {storageClassName: ${2:-glusterfs}, accessModes: [ReadWriteMany], resources: {requests: {storage: 64Mi}}}
	END
	k wait "pvc/$1" --for=jsonpath='{.status.phase}'=Bound --timeout=60s
}

# of_pods N: the pod of a role on node N
pod() { q get pod -l "quartermaster.storage/role=$1,quartermaster.storage/node=storage-node$2" -o name | head -n 1; }
pids() { lab exec "$1" pgrep -x "$2"; }
# the GlusterFS clients of volumes' mounts on node N
client_pids() { lab exec "$1" pgrep -f '^[^ ]*glusterfs .*--volfile-id=/?glusterfs-1'; }
# operator_args {FROM TO}…: one of its arguments becomes another, or is added where FROM is empty
operator_args() {
	operator_command "$(q get deployment quartermaster-glusterfs -o json | jq -c 'reduce ($ARGS.positional | range(0; length; 2) as $i | {from: .[$i], to: .[$i + 1]}) as $a
		(.spec.template.spec.containers[0].command; if $a.from == "" then . + [$a.to] else map(if startswith($a.from) then $a.to else . end) end)' --args -- "$@")"
}
operator_command() {
	q patch deployment quartermaster-glusterfs -p "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"operator\",\"command\":$1}]}}}}" &&
		q rollout status deployment/quartermaster-glusterfs --timeout=120s
}
operator_as_installed() { operator_command "$(manifest_command)"; }

# overlay NAMESPACE DEPLOYMENT: a copy of deploy/glusterfs for it, as its kustomization.yaml says; on one node
overlay() {
	mkdir -p "$work/deploy" && cp -r deploy/base "$work/deploy/" && cp -r deploy/glusterfs "$work/deploy/$2" &&
		sed -i "s/^namespace: quartermaster$/namespace: $1/" "$work/deploy/$2/kustomization.yaml" &&
		sed -i "s/name: quartermaster$/name: $1/" "$work/deploy/$2/namespace.yaml" &&
		sed -i "s/\.quartermaster$/.$1/" "$work/deploy/$2/bindings.yaml" &&
		sed -Ei "s/(deployment[:=] ?)glusterfs$/\1$2/; s/glusterfs-(ca|tls|client|operator-secrets)/$2-\1/g; s/name: quartermaster-glusterfs$/name: quartermaster-$2/; s/replicate:3/none/; s/replicas: 2/replicas: 1/" \
			"$work/deploy/$2/operator.yaml" "$work/deploy/$2/secrets.yaml"
}
# Node 1 under a second address, so that two glusterds share its port; with a directory for disk
address_2() { address 1 | sed 's/[0-9]*$/101/'; }
second_address() { lab exec 1 ip addr replace "$(address_2)/24" dev eth0; }
second_node() {
	lab exec 1 mkdir -p "/var/lib/directory-$1"
	kubectl create -f - <<-END
		apiVersion: coreos.com/v1
		kind: StorageNode
		metadata: {name: second-node1, namespace: $1}
		spec:
		  type: glusterfs
		  nodeSelector: {kubernetes.io/hostname: node1}
		  storageNetwork: {ips: [$(address_2)]}
		  directories: [/var/lib/directory-$1]
	END
}

cleanup() {
	declare -F own_cleanup > /dev/null && own_cleanup
	rm -rf "$work"
	[[ $own_lab || $is_kept ]] || remove
} > /dev/null 2>&1

# Whatever state it is in. Finalizers go where nobody is left to take them off.
remove_deployment() {
	kubectl -n "$1" delete deployment,daemonset,pvc --all --timeout=60s
	kubectl -n "$1" get storagenode,storagestatus,storagepool,pvc -o name |
		xargs -r -n 1 kubectl -n "$1" patch --type=merge -p '{"metadata":{"finalizers":null}}'
	[ "$1" = quartermaster ] || kubectl delete namespace "$1" --timeout=120s
	kubectl delete storageclass -l "quartermaster.storage/deployment=$1"
	lab exec 1 rm -rf "/var/lib/directory-$1" "/var/lib/quartermaster/nodes/$1."*
}
remove() {
	local n ns
	for ns in "${others[@]}" quartermaster; do remove_deployment "$ns"; done
	kubectl get pv -o name | xargs -r -n 1 kubectl patch --type=merge -p '{"metadata":{"finalizers":null}}'
	kubectl delete pv,storageclass --all
	kubectl delete csidriver csi.quartermaster.storage
	kubectl get vs,vsc -A -o json | jq -r '.items[] | "\(.kind) \(.metadata.name) \(.metadata.namespace // "default")"' |
		while read -r kind name ns; do
			kubectl -n "$ns" patch "$kind" "$name" --type=merge -p '{"metadata":{"finalizers":null}}' < /dev/null
		done
	kubectl delete crd -l quartermaster.storage/schema-version --timeout=60s
	kubectl delete -f deploy/quartermaster-glusterfs.yaml --ignore-not-found --timeout=120s
	for n in 1 2 3; do
		lab exec "$n" bash -c 'grep fuse.glusterfs /proc/self/mountinfo | cut -d " " -f 5 | xargs -r umount -l
			grep -o "/var/lib/quartermaster/nodes/[^ ]*/bricks/[^ ]*" /proc/self/mountinfo | sort -u | xargs -r umount
			rm -rf /var/lib/quartermaster /run/quartermaster /var/lib/directory-*'
	done
} > /dev/null 2>&1
