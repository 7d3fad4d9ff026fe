# SPDX-License-Identifier: Apache-2.0
"""Whole-body control of a legged robot as a small quadratic program with three unknowns per leg.

`records` declares the problem in memory; its docstring has the mathematics. The kernel in `reduction` fills
it, in the steps `legs`, `base` and `tasks`. The kernel in `priorities` makes the level below the tasks.
`feet` computes positions and velocities of the feet.
"""
