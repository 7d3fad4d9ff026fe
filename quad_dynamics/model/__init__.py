# SPDX-License-Identifier: Apache-2.0
"""URDF to Model: reading, checking, merging, inertial parameters, robot description, writing back."""

from quad_dynamics.model.legs import Leg
from quad_dynamics.model.loading import bundled_robots, load_model
from quad_dynamics.model.model import Frame, Model

__all__ = ['Frame', 'Leg', 'Model', 'bundled_robots', 'load_model']
