# SPDX-License-Identifier: Apache-2.0
"""The node that simulates the robot."""
