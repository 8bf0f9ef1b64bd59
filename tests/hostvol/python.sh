#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package on the built library, with LOCAL. Prints TAP. HOSTVOL names the program, beside
# which the library is.
. "$(dirname "$0")/bindings.sh"
HOSTVOL_LIBRARY=$library/libhostvol.so.0 PYTHONPATH=$top/bindings/python \
	python3 -B "$here/python_test.py"
