# SPDX-License-Identifier: Apache-2.0
"""What all nodes share. The only part of the library that imports ROS.

It works with a ROS 2 installation (Humble or newer), and with the ROS wheels of PyPI where there is none.
"""
