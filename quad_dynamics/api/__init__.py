# SPDX-License-Identifier: Apache-2.0
"""The public functions: they validate their arguments and call the kernels."""
