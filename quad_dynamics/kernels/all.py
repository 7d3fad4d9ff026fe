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
    normal_equations,
    regressor,
    rnea,
    simulate,
    terrain,
    whitened_equations,
)
from quad_dynamics.kernels.whole_body import feet, priorities, reduction  # noqa: F401
