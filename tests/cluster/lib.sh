# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the scripts of this suite, which share one lab: ./test starts it before the first and ends it
# after the last. A script that finds none starts one and ends it. Sourced by bash, from anywhere.
#
#   lab COMMAND…       see tests/cluster/lab
#   namespace NAME     makes a namespace, which goes away at the end
#   k …                kubectl in the first of them
set -u
cluster=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cd "$cluster/../.." || exit 1
. tests/lib/tap.sh
namespaces=()
own_lab=

lab() { "$cluster/lab" "$@"; }

leave() {
	trap - EXIT INT TERM
	declare -F cleanup > /dev/null && cleanup
	((${#namespaces[@]} == 0)) || [[ $own_lab ]] ||
		kubectl delete namespace "${namespaces[@]}" --timeout=120s > /dev/null 2>&1
	[[ ! $own_lab ]] || lab down
}
trap leave EXIT
trap 'exit 1' INT TERM

if ! lab exec 0 true 2> /dev/null; then
	own_lab=1
	tests/tools/build-peers >&2
	if ! lab down || ! lab up 3; then
		echo "Bail out! the lab does not start"
		exit 1
	fi
fi
eval "$(lab env)"

namespace() {
	namespaces+=("$1")
	kubectl create namespace "$1" > /dev/null
	kubectl label namespace "$1" pod-security.kubernetes.io/enforce=privileged > /dev/null
}
k() { kubectl -n "${namespaces[0]}" "$@"; }
