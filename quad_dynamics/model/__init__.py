# SPDX-License-Identifier: Apache-2.0
"""From URDF to Model and back: reading, validation, merging of links, robot description, writing."""

from quad_dynamics.model.legs import Leg
from quad_dynamics.model.loading import bundled_robots, load_model
from quad_dynamics.model.model import Frame, Model

__all__ = ['Frame', 'Leg', 'Model', 'bundled_robots', 'load_model']
