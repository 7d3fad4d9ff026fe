# SPDX-License-Identifier: Apache-2.0
"""quad_dynamics: rigid-body dynamics, simulation, control and identification of quadruped robots.

    import quad_dynamics as qd

    model = qd.load_model('mini_cheetah')
    tau = qd.inverse_dynamics(model, q, u, du)

The names below are what other code may rely on. They are imported when they are first used, so that `import
quad_dynamics` takes no time for what is not needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quad_dynamics.api.centroidal import (
        center_of_mass,
        centroidal_bias,
        centroidal_momentum,
        centroidal_momentum_matrix,
        com_jacobian,
        energy,
    )
    from quad_dynamics.api.contact import (
        ContactPropagators,
        contact_inertia,
        contact_propagators,
        directional_inertia,
        operational_space_inertia,
        unit_response,
    )
    from quad_dynamics.api.controller import ControllerTerms, controller_terms
    from quad_dynamics.api.dynamics import (
        coriolis_matrix,
        forward_dynamics,
        friction_torque,
        gravity,
        hybrid_dynamics,
        inverse_dynamics,
        mass_matrix,
        nonlinear_effects,
        velocity_product_matrices,
    )
    from quad_dynamics.api.factorization import Factorization, factorize
    from quad_dynamics.api.kinematics import (
        difference,
        frame_bias_acceleration,
        frame_jacobian,
        frame_pose,
        frame_velocity,
        integrate,
        random_configuration,
    )
    from quad_dynamics.api.regression import NormalEquations, accumulate_regressor, regressor
    from quad_dynamics.control.walker import Walker
    from quad_dynamics.control.walker_settings import WalkerSettings
    from quad_dynamics.errors import (
        ArgumentError,
        FactorizationWarning,
        ModelError,
        ModelWarning,
        QuadDynamicsError,
        SimulationDiverged,
    )
    from quad_dynamics.identification.pipeline import IdentifySettings, identify
    from quad_dynamics.identification.report.output_folder import write_results
    from quad_dynamics.kernels.warm_up import warm_up
    from quad_dynamics.model.description import ContactPoint
    from quad_dynamics.model.loading import load_model
    from quad_dynamics.model.model import Model
    from quad_dynamics.scenarios.runner import run_scenario
    from quad_dynamics.simulation.command import JointCommand
    from quad_dynamics.simulation.log import Log
    from quad_dynamics.simulation.sensors import Readings, SensorSuite
    from quad_dynamics.simulation.settings import SensorSettings, SimulatorSettings
    from quad_dynamics.simulation.simulator import Simulator
    from quad_dynamics.terrain.terrain import Box, HeightMap, Plane, Stairs, Terrain

__version__ = '0.1.0'

_HOMES = {
    'quad_dynamics.api.centroidal': (
        'center_of_mass',
        'centroidal_bias',
        'centroidal_momentum',
        'centroidal_momentum_matrix',
        'com_jacobian',
        'energy',
    ),
    'quad_dynamics.api.contact': (
        'ContactPropagators',
        'contact_inertia',
        'contact_propagators',
        'directional_inertia',
        'operational_space_inertia',
        'unit_response',
    ),
    'quad_dynamics.api.controller': ('ControllerTerms', 'controller_terms'),
    'quad_dynamics.api.dynamics': (
        'coriolis_matrix',
        'forward_dynamics',
        'friction_torque',
        'gravity',
        'hybrid_dynamics',
        'inverse_dynamics',
        'mass_matrix',
        'nonlinear_effects',
        'velocity_product_matrices',
    ),
    'quad_dynamics.api.factorization': ('Factorization', 'factorize'),
    'quad_dynamics.api.kinematics': (
        'difference',
        'frame_bias_acceleration',
        'frame_jacobian',
        'frame_pose',
        'frame_velocity',
        'integrate',
        'random_configuration',
    ),
    'quad_dynamics.api.regression': ('NormalEquations', 'accumulate_regressor', 'regressor'),
    'quad_dynamics.terrain.terrain': (
        'Box',
        'HeightMap',
        'Plane',
        'Stairs',
        'Terrain',
    ),
    'quad_dynamics.control.walker': ('Walker',),
    'quad_dynamics.control.walker_settings': ('WalkerSettings',),
    'quad_dynamics.model.description': ('ContactPoint',),
    'quad_dynamics.scenarios.runner': ('run_scenario',),
    'quad_dynamics.simulation.command': ('JointCommand',),
    'quad_dynamics.simulation.log': ('Log',),
    'quad_dynamics.simulation.sensors': (
        'Readings',
        'SensorSuite',
    ),
    'quad_dynamics.simulation.settings': (
        'SensorSettings',
        'SimulatorSettings',
    ),
    'quad_dynamics.simulation.simulator': ('Simulator',),
    'quad_dynamics.errors': (
        'ArgumentError',
        'FactorizationWarning',
        'ModelError',
        'ModelWarning',
        'QuadDynamicsError',
        'SimulationDiverged',
    ),
    'quad_dynamics.identification.pipeline': ('IdentifySettings', 'identify'),
    'quad_dynamics.identification.report.output_folder': ('write_results',),
    'quad_dynamics.kernels.warm_up': ('warm_up',),
    'quad_dynamics.model.loading': ('load_model',),
    'quad_dynamics.model.model': ('Model',),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    'ArgumentError',
    'Box',
    'ContactPoint',
    'ContactPropagators',
    'ControllerTerms',
    'Factorization',
    'FactorizationWarning',
    'HeightMap',
    'IdentifySettings',
    'JointCommand',
    'Log',
    'Model',
    'ModelError',
    'ModelWarning',
    'NormalEquations',
    'Plane',
    'QuadDynamicsError',
    'Readings',
    'SensorSettings',
    'SensorSuite',
    'SimulationDiverged',
    'Simulator',
    'SimulatorSettings',
    'Stairs',
    'Terrain',
    'Walker',
    'WalkerSettings',
    'accumulate_regressor',
    'center_of_mass',
    'centroidal_bias',
    'centroidal_momentum',
    'centroidal_momentum_matrix',
    'com_jacobian',
    'contact_inertia',
    'contact_propagators',
    'controller_terms',
    'coriolis_matrix',
    'difference',
    'directional_inertia',
    'energy',
    'factorize',
    'forward_dynamics',
    'frame_bias_acceleration',
    'frame_jacobian',
    'frame_pose',
    'frame_velocity',
    'friction_torque',
    'gravity',
    'hybrid_dynamics',
    'identify',
    'integrate',
    'inverse_dynamics',
    'load_model',
    'mass_matrix',
    'nonlinear_effects',
    'operational_space_inertia',
    'random_configuration',
    'regressor',
    'run_scenario',
    'unit_response',
    'velocity_product_matrices',
    'warm_up',
    'write_results',
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'quad_dynamics' has no attribute '{name}'")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value  # the next access finds it without coming here
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
