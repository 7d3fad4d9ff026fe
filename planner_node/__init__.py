# SPDX-License-Identifier: Apache-2.0
"""The node that plans the motion of a robot that walks."""
