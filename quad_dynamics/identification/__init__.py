# SPDX-License-Identifier: Apache-2.0
"""From recordings of a robot and its URDF to the parameters that explain them (docs/identification.md)."""
