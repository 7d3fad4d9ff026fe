# SPDX-License-Identifier: Apache-2.0
"""What touches what: the terrain, and the points of a robot that can touch it."""
