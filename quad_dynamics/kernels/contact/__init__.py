# SPDX-License-Identifier: Apache-2.0
"""Contact with the ground: contact points, constraint rows, contact models, and the impulse solver."""
