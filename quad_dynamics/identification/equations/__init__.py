# SPDX-License-Identifier: Apache-2.0
"""From samples to linear equations in the unknowns, and their normal equations."""
