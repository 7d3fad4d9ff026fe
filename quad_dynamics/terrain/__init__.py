# SPDX-License-Identifier: Apache-2.0
"""The terrain: shapes, readers, and meshes for viewers."""
