# SPDX-License-Identifier: Apache-2.0
"""Crash-safe writing, reading and repair of bags. Needs no ROS."""
