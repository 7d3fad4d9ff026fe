# SPDX-License-Identifier: Apache-2.0
"""A time step of the simulator, and the scene that it works on."""
