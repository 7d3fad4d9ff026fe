# SPDX-License-Identifier: Apache-2.0
"""Contact with the ground: points and rows, models, and the solver of their impulses."""
