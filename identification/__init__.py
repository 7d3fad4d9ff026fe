# SPDX-License-Identifier: Apache-2.0
"""Identification: a bag and a URDF in, a physically consistent URDF with friction and error bars out.

bag -> signals -> samples -> normal equations -> solution -> report; nothing here needs ROS but `node`.
"""
