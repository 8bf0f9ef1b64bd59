#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 5400
# libhostvol on other architectures: big endian (s390x) and POWER with pages of 64 KiB (ppc64el), each built here and run on its
# own kernel. Both in every run, since what fails on one of them works on the other; QM_LONG=1 causes every fault instead of one in eight.
set -u
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
exec tests/tools/cross s390x ppc64el
