# SPDX-License-Identifier: Apache-2.0
"""Base parameters: independent combinations of unknowns, by a rank-revealing QR factorisation.

The unknowns of dependent columns of the regressor are added to those of independent ones: with Y = Q [R1 R2]
for the independent columns 1 and the dependent columns 2, Y z = Q R1 (z1 + R1^-1 R2 z2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.array_types import Bools, Floats, Ints
from quad_dynamics.identification.solvers.freedom import Freedom
from quad_dynamics.identification.solvers.prior import friction_scales, prior_precision
from quad_dynamics.identification.solvers.solution import Combination

# Singular values of scaled columns below this fraction of the largest are treated as zero. They are roots of
# the eigenvalues of Y^T Y, whose rounding error is about 1e-15 of the largest: 3e-8 here.
RANK = 1e-6
_NOTHING = 1e-10  # relative to the effect of the most influential unknown
_LARGE = 0.2  # relative to the largest; as small as the condition number allows
# Terms of a combination are not printed if they are smaller than this fraction of its first one.
_SHOWN = 1e-3


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations b = B z of free unknowns that are independent in the equations.

    Attributes:
        freedom: the free unknowns.
        first: (rank,) index of the leading z of each combination.
        B: (rank, nz) the combinations; 1 at the leading z.
        R: (rank, rank) upper triangular, Y z = Q R b.
        condition: condition number of the equations, columns scaled to length 1; inf if nothing is
            determined.
        shown: (rank, nz) terms that are printed.
    """

    freedom: Freedom
    first: Ints
    B: Floats
    R: Floats
    condition: float
    shown: npt.NDArray[np.bool_]

    @property
    def rank(self) -> int:
        """Number of combinations."""
        return len(self.first)

    def least_change(self) -> tuple[Floats, Floats, Floats]:
        """Map from changes of the combinations to the unknowns, and the prior of both.

        Returns:
            (nz, rank) G: z = G d changes the combinations by d, and everything else as little as possible.
            (rank, rank) information of the weak prior about d: the bodies of the model are 100 % wrong.
            (nz, nz) covariance of this prior of z.
        """
        precision = prior_precision(self.freedom, friction_scales(self.freedom.columns))
        before = _scaled_inverse(precision)
        carried = before @ self.B.T
        weak = _scaled_inverse(self.B @ carried)
        return carried @ weak, weak, before

    def texts(self) -> list[str]:
        """Each combination as text, such as 'FL_calf.Ixx + 1.00 FL_thigh.Iyy'."""
        return [self._text(i) for i in range(self.rank)]

    def _text(self, row: int) -> str:
        names, lead = self.freedom.names, self.first[row]
        text = str(names[lead])
        for k in np.flatnonzero(self.shown[row]):
            if k != lead:
                value = self.B[row, k]
                text += f' {"+" if value > 0.0 else "-"} {abs(value):.3g} {names[k]}'
        return text

    def combinations(self, x: Floats, std: Floats, identified: Bools) -> tuple[Combination, ...]:
        """The combinations with their values.

        Args:
            x: (size,) all unknowns.
            std: (rank,) standard deviations of the combinations.
            identified: (rank,) which of them the data determine.
        """
        lead = self.freedom.lead
        values, priors = self.B @ x[lead], self.B @ self.freedom.x0[lead]
        units = [self.freedom.columns.units[lead[i]] for i in self.first]
        return tuple(
            Combination(
                text, float(values[i]), float(priors[i]), float(std[i]), units[i], bool(identified[i])
            )
            for i, text in enumerate(self.texts())
        )


def find_base_parameters(normal: NormalEquations, freedom: Freedom) -> BaseParameters:
    """Find the combinations that are independent in the equations.

    Args:
        normal: normal equations.
        freedom: the free unknowns.
    """
    H = freedom.T.T @ normal.YtY @ freedom.T
    length = np.sqrt(np.maximum(np.diag(H), 0.0))
    # Effect of a typical change of each unknown; columns that contain only rounding errors have no effect.
    typical = length / np.sqrt(np.diag(prior_precision(freedom, friction_scales(freedom.columns))))
    used = np.flatnonzero(typical > _NOTHING * max(float(typical.max(initial=0.0)), 1e-300))
    length = length[used]
    scaled = H[np.ix_(used, used)] / np.outer(length, length)
    values, V = np.linalg.eigh(0.5 * (scaled + scaled.T))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * V.T  # root^T root = scaled
    if not len(used):
        nothing = np.zeros((0, freedom.nz))
        return BaseParameters(
            freedom, np.zeros(0, np.int64), nothing, np.zeros((0, 0)), np.inf, nothing.astype(bool)
        )
    chosen = _independent(root, _readable(freedom, used))
    rest = np.setdiff1d(np.arange(len(used)), chosen)
    Q, R = np.linalg.qr(root[:, chosen])
    scaled_B = np.zeros((len(chosen), len(used)))
    scaled_B[:, chosen] = np.eye(len(chosen))
    scaled_B[:, rest] = np.linalg.solve(R, Q.T @ root[:, rest])
    B, shown = np.zeros((len(chosen), freedom.nz)), np.zeros((len(chosen), freedom.nz), dtype=bool)
    B[:, used] = scaled_B * length / length[chosen][:, None]
    shown[:, used] = np.abs(scaled_B) > _SHOWN
    return BaseParameters(
        freedom, used[chosen], B, R * length[chosen], float(np.linalg.cond(root[:, chosen])), shown
    )


def _readable(freedom: Freedom, used: Ints) -> Ints:
    """Order in which columns are selected: masses last, because they are merged into their neighbours."""
    leads = freedom.lead[used]
    is_mass = (leads < freedom.columns.slices['pi'].stop) & (leads % 10 == 0)
    return np.asarray(np.argsort(is_mass, kind='stable'), dtype=np.int64)


def _independent(root: Floats, order: Ints) -> Ints:
    """Columns that span all others, in ascending order.

    Of the columns with a large part outside the span of those already selected, the first one in the order is
    selected, not the one with the largest part: rounding errors must not decide.
    """
    left = root.copy()
    chosen: list[int] = []
    while True:
        size = np.linalg.norm(left, axis=0)
        largest = float(size.max(initial=0.0))
        if largest <= RANK or len(chosen) == root.shape[1]:
            return np.array(sorted(chosen), dtype=np.int64)
        k = int(order[np.flatnonzero(size[order] > _LARGE * largest)[0]])
        chosen.append(k)
        # Twice, because rounding errors remain after the first pass.
        direction = left[:, k] / size[k]
        for _ in range(2):
            left -= np.outer(direction, direction @ left)
        left[:, k] = 0.0


def _scaled_inverse(matrix: Floats) -> Floats:
    """Inverse of a positive definite matrix whose rows have very different units."""
    d = 1.0 / np.sqrt(np.diag(matrix))
    return np.asarray(np.linalg.inv(matrix * np.outer(d, d)) * np.outer(d, d))
