# SPDX-License-Identifier: Apache-2.0
"""Whole-body control of a legged robot: a small problem in three unknowns for each leg.

`records` declares the problem in memory and has its mathematics in its docstring. `reduction` is the kernel
that fills it, step by step: `legs`, `base`, `tasks`. `priorities` is the kernel of the level below the tasks.
`feet` has positions and velocities of the feet.
"""
