# SPDX-License-Identifier: Apache-2.0
"""Identification of robot parameters from recordings and a URDF (docs/identification.md)."""
