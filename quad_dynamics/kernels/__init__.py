# SPDX-License-Identifier: Apache-2.0
"""The compiled algorithms, one module each; `compiler.registry` lists the functions that Python calls."""

# Must be first: it computes the hash of the sources before the other modules are imported.
from quad_dynamics.compiler import disk_cache as disk_cache
