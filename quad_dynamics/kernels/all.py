# SPDX-License-Identifier: Apache-2.0
"""Imports every module that has kernels, so that `KERNELS` is complete."""

from quad_dynamics.kernels import (  # noqa: F401
    aba,
    centroidal,
    cholesky,
    contact_inertia,
    controller_terms,
    coriolis,
    crba,
    frames,
    hybrid,
    joint_friction,
    manifold,
    rnea,
)
from quad_dynamics.kernels.regression import normal_equations, regressor, whitened_equations  # noqa: F401
from quad_dynamics.kernels.simulation import command, simulate  # noqa: F401
from quad_dynamics.kernels.terrain import ground  # noqa: F401
from quad_dynamics.kernels.whole_body import feet, priorities, reduction  # noqa: F401
