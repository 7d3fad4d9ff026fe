# SPDX-License-Identifier: Apache-2.0
"""The parameters file: all results and their sources, as YAML for programs.

It contains no time, and no path of this machine except the given ones: the same input gives the same bytes.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from quad_dynamics import __version__
from quad_dynamics.identification.report.armature import Armature, armatures
from quad_dynamics.identification.report.facts import (
    added_mass,
    consistent_bodies,
    headline_warnings,
)
from quad_dynamics.identification.solvers.solution import Solution
from quad_dynamics.identification.validation.validation import Pooled, Validation, pooled

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import Result

FORMAT = 1


def parameters_text(result: Result) -> str:
    """The parameters file of a result."""
    solution = result.solution
    before, after = solution.moving_masses
    good, bodies = consistent_bodies(solution)
    noise = result.noise
    data: dict[str, Any] = {
        'format': FORMAT,
        'quad_dynamics': __version__,
        'robot': solution.columns.model.name,
        'warnings': headline_warnings(result),
        'recordings': [{'name': name, 'sha256': sha256} for name, sha256 in result.sources],
        'settings': settings_data(result.settings),
        'signals': result.signals.to_dict(),
        'model': {
            'mode': result.equations.mode,
            'method': solution.method,
            'prior_weight': solution.prior_weight,
            'condition': solution.condition,
            'choices': list(solution.choices),
            'stribeck_velocity': solution.columns.stribeck_velocity,
        },
        'noise': {'base': noise.base, 'joints': noise.joints, 'force': noise.force},
        'moving_mass': {'before': before, 'after': after, 'unit': 'kg'},
        'added_to_base': _added(solution),
        'consistent_bodies': {'good': good, 'all': bodies},
        'unknowns': [_unknown(solution, i) for i in range(solution.columns.size)],
        'armatures': [_armature(each) for each in armatures(solution)],
        'combinations': [
            {
                'text': c.text,
                'unit': c.unit,
                'prior': c.prior,
                'value': c.value,
                'identified': c.identified,
                'std': c.std,
            }
            for c in solution.combinations
        ],
        'not_identified': list(result.missing),
        'validation': None if result.validation is None else _validation(result.validation, result),
    }
    head = (
        '# Written by quad_dynamics identify. std: standard deviation, by noise and by what the model may\n'
        '# have wrong; interval: 95 %; identified: much surer than before the data. Inertia is about the\n'
        "# origin of the link's frame. armature: gear^2 * rotor_inertia, at the joint; what others call so.\n"
    )
    return head + yaml.safe_dump(
        plain(data), sort_keys=False, default_flow_style=None, width=160, allow_unicode=True
    )


def settings_data(settings: Any) -> dict[str, Any]:
    """Settings as plain data, groups as mappings."""
    return {
        item.name: settings_data(value) if dataclasses.is_dataclass(value) else value
        for item in dataclasses.fields(settings)
        for value in (getattr(settings, item.name),)
    }


def _added(solution: Solution) -> dict[str, Any] | None:
    added = added_mass(solution)
    if added is None:
        return None
    return {'mass': added.mass, 'std': added.std, 'position': list(added.position), 'units': 'kg, m'}


def _unknown(solution: Solution, i: int) -> dict[str, Any]:
    entry = {
        'name': solution.columns.names[i],
        'unit': solution.columns.units[i],
        'prior': solution.columns.prior[i],
        'value': solution.x[i],
        'free': bool(solution.free[i]),
    }
    if not solution.free[i]:
        return entry
    return {
        **entry,
        'identified': bool(solution.identified[i]),
        'std': solution.std[i],
        'interval': [solution.low[i], solution.high[i]],
    }


def _armature(each: Armature) -> dict[str, Any]:
    return {
        'joint': each.joint,
        'unit': each.unit,
        'prior': each.before,
        'armature': each.after,
        'free': each.free,
        **(
            {'identified': each.identified, 'std': each.std, 'interval': list(each.interval)}
            if each.free
            else {}
        ),
        'gear': each.gear,
        'gear_assumed': each.gear_assumed,
        'rotor_inertia': each.rotor_inertia,
    }


def _pooled_data(whole: Pooled) -> dict[str, Any]:
    """One value for all joints, as plain data."""
    return {
        'row': whole.name,
        'unit': whole.unit,
        'before': whole.rms[0],
        'after': whole.rms[1],
        'floor': whole.rms[2],
        'relative_before': whole.relative[0],
        'relative_after': whole.relative[1],
        'relative_floor': whole.relative[2],
        'left_out': whole.left_out,
        'relative_before_all_rows': whole.every[0],
        'relative_after_all_rows': whole.every[1],
    }


def _validation(validation: Validation, result: Result) -> dict[str, Any]:
    """Results of the validation, as plain data."""
    signals = result.validation_signals
    errors, again = validation.errors, validation.replay
    before, after = errors.relative(errors.before), errors.relative(errors.after)
    whole = pooled(errors)
    data: dict[str, Any] = {
        'on': validation.on,
        'recordings': [] if signals is None else [source.to_dict() for source in signals.sources],
        'notes': list(validation.notes),
        'rms_errors': [
            {
                'row': name,
                'unit': errors.units[i],
                'measured': errors.measured[i],
                'before': errors.before[i],
                'after': errors.after[i],
                'floor': errors.floor[i],
                'relative_before': before[i],
                'relative_after': after[i],
                'samples': int(errors.samples[i]),
                'left_out': errors.left_out[i],
                'relative_before_all_rows': errors.relative_every[0, i],
                'relative_after_all_rows': errors.relative_every[1, i],
            }
            for i, name in enumerate(errors.names)
        ],
        'pooled': _pooled_data(whole),
        'motion_band': validation.band
        and {'cutoff': validation.band.cutoff, **_pooled_data(pooled(validation.band.errors))},
        'legs': [
            {'name': s.name, 'unit': s.unit, 'mean': s.mean, 'spread': s.spread, 'expected': s.expected}
            for s in validation.spreads
        ],
        'simulated': None,
    }
    if again is not None:
        data['simulated'] = {
            'window': again.window,
            'joints': [
                {
                    'joint': name,
                    'windows': int(again.windows[i]),
                    'position_before': again.position[0, i],
                    'position_after': again.position[1, i],
                    'velocity_before': again.velocity[0, i],
                    'velocity_after': again.velocity[1, i],
                    'closer': bool(again.closer[i]),
                }
                for i, name in enumerate(again.joints)
            ],
        }
    return data


def plain(value: Any) -> Any:
    """Data for YAML: no numpy, no tuples, null for NaN."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    return value
