#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 5400
# libhostvol on other architectures: big endian (s390x) and POWER (ppc64el), each built here and run on its own kernel. One of
# the two, by QM_SEED; QM_LONG=1 runs both, and every fault instead of one in eight.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
all=(s390x ppc64el)
chosen=("${all[${QM_SEED:-0} % 2]}")
[ -z "${QM_LONG:-}" ] || chosen=("${all[@]}")
echo "# ${chosen[*]}"
exec tests/tools/cross "${chosen[@]}"
