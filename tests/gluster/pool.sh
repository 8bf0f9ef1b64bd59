# SPDX-License-Identifier: Apache-2.0
# For those who have sourced one_node.sh: volumes with the options that the agent gives to pools, read from where they stand.
pool_sources=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../src/systems/glusterfs

# pool_options VOLUME LAYOUT: COPIES, DISPERSE or NONE of them
pool_options() {
	# shellcheck disable=SC2046 # names and values
	gluster volume set "$1" $(sed -n "s/^\t{ \"\([a-z.-]*\)\", \"\([a-z0-9-]*\)\", \(0\|$2\),.*/\1 \2/p" "$pool_sources/options.c")
}
# pool NAME LAYOUT WORDS…: three bricks of this node
pool() {
	gluster volume create "$1" "${@:3}" $node:"$dir/brick/$1"{1,2,3} force && pool_options "$1" "$2" && gluster volume start "$1"
}
