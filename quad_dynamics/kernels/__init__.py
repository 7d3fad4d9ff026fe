# SPDX-License-Identifier: Apache-2.0
"""The compiled algorithms, one module each; `registry` lists what Python calls."""

# First of all: it takes the hash of the sources that the other modules are then imported from.
from quad_dynamics.compiler import disk_cache as disk_cache
