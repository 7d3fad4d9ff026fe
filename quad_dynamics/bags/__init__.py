# SPDX-License-Identifier: Apache-2.0
"""Bags: written so that they survive anything, read, and repaired. Needs no ROS."""
