# SPDX-License-Identifier: Apache-2.0
"""The node that turns joint states into joint torques."""
