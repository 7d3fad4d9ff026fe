# SPDX-License-Identifier: Apache-2.0
"""The memory layout of a robot for the kernels: packs of four bodies, one in each SIMD lane."""
