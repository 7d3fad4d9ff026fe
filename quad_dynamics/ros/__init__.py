# SPDX-License-Identifier: Apache-2.0
"""Code shared by all nodes. The only part of the library that imports ROS.

It works with a ROS 2 installation (Humble or newer), or with the ROS wheels from PyPI.
"""
