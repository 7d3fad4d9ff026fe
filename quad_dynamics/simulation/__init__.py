# SPDX-License-Identifier: Apache-2.0
"""The simulator: settings, time steps, actuators, sensors, and the log of a run."""
