# SPDX-License-Identifier: Apache-2.0
"""How a robot stands in the memory that kernels read: four bodies to a pack, one in each SIMD lane."""
