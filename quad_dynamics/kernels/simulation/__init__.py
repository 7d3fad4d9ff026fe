# SPDX-License-Identifier: Apache-2.0
"""One time step of the simulator, and the scene it operates on."""
