# SPDX-License-Identifier: Apache-2.0
"""Node: the robot in the browser."""
