# SPDX-License-Identifier: Apache-2.0
"""Identification of a simulated robot with hidden parameters: `quad_dynamics demo identify`."""
