# SPDX-License-Identifier: Apache-2.0
# What the tests of a deployment share: to be sourced after lib.sh. All of it goes away at the end.
#   q …              kubectl in the deployment's namespace, quartermaster
#   images           built and on all nodes
#   declare_node N   the StorageNode of node N, in the seed's form, with a disk of its own
version=$(sed -n "s/^ *version: '\(.*\)',$/\1/p" meson.build | head -n 1)
image=localhost/quartermaster-glusterfs:$version
work=$(mktemp -d)
others=() # namespaces of other deployments

q() { kubectl -n quartermaster "$@"; }
field() { q get "$1" -o jsonpath="$2"; }
address() { kubectl get node "node$1" -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}'; }

images() {
	local name
	deploy/images/build --output "$work" || return
	for name in operator glusterfs; do
		lab image "localhost/quartermaster-$name:$version" "$work/quartermaster-$name.tar" || return
	done
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
install() { kubectl create -f deploy/quartermaster-glusterfs.yaml && registered && declare_nodes && online; }

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

# of_pods N: the pod of a role on node N
pod() { q get pod -l "quartermaster.storage/role=$1,quartermaster.storage/node=storage-node$2" -o name | head -n 1; }
pids() { lab exec "$1" pgrep -x "$2"; }
# operator_args FROM TO: one of its arguments becomes another, or is added where FROM is empty
operator_args() {
	q get deployment quartermaster-glusterfs -o json | jq --arg from "$1" --arg to "$2" '{spec: {template: {spec: {containers: [{
		name: "operator", command: (.spec.template.spec.containers[0].command |
			if $from == "" then . + [$to] else map(if startswith($from) then $to else . end) end)}]}}}}' > "$work/args" &&
		q patch deployment quartermaster-glusterfs --patch-file "$work/args" &&
		q rollout status deployment/quartermaster-glusterfs --timeout=120s
}

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

# Whatever state it is in. Finalizers go where nobody is left to take them off.
cleanup() {
	local n ns
	declare -F own_cleanup > /dev/null && own_cleanup
	rm -rf "$work"
	[[ ! $own_lab ]] || return
	for ns in quartermaster "${others[@]}"; do
		kubectl -n "$ns" delete deployment,daemonset,pvc --all --timeout=60s
		kubectl -n "$ns" get storagenode,storagestatus,storagepool,pvc -o name |
			xargs -r -n 1 kubectl -n "$ns" patch --type=merge -p '{"metadata":{"finalizers":null}}'
	done
	kubectl get pv -o name | xargs -r -n 1 kubectl patch --type=merge -p '{"metadata":{"finalizers":null}}'
	kubectl delete pv,storageclass --all
	kubectl delete csidriver csi.quartermaster.storage
	kubectl get vs,vsc -A -o json | jq -r '.items[] | "\(.kind) \(.metadata.name) \(.metadata.namespace // "default")"' |
		while read -r kind name ns; do
			kubectl -n "$ns" patch "$kind" "$name" --type=merge -p '{"metadata":{"finalizers":null}}' < /dev/null
		done
	kubectl delete crd -l quartermaster.storage/schema-version --timeout=60s
	((${#others[@]} == 0)) || kubectl delete namespace "${others[@]}" --timeout=120s
	kubectl delete -f deploy/quartermaster-glusterfs.yaml --ignore-not-found --timeout=120s
	for n in 1 2 3; do
		lab exec "$n" bash -c 'grep fuse.glusterfs /proc/self/mountinfo | cut -d " " -f 5 | xargs -r umount -l
			grep -o "/var/lib/quartermaster/nodes/[^ ]*/bricks/[^ ]*" /proc/self/mountinfo | sort -u | xargs -r umount
			rm -rf /var/lib/quartermaster /run/quartermaster /var/lib/directory-*'
	done
} > /dev/null 2>&1
