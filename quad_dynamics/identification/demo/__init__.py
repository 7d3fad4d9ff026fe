# SPDX-License-Identifier: Apache-2.0
"""A robot with something hidden in it, and what identification finds: `quad_dynamics demo identify`."""
