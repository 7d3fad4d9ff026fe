# SPDX-License-Identifier: Apache-2.0
"""From samples to linear equations of the unknowns, and their sums."""
