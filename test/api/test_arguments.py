# SPDX-License-Identifier: Apache-2.0
"""Validation: what is accepted, what is refused and how, and that nobody's arrays are touched."""

from __future__ import annotations

import array
import copy
from typing import Any

import numpy as np
import pytest
from cases import Case, model_of
from public_calls import ARRAYS, CALLS, STATES, call, good_arguments, parts

GO2 = Case('go2', True)
CONTACT = ('contact_inertia', 'directional_inertia', 'unit_response')
FRAME = ('frame_pose', 'frame_velocity', 'frame_jacobian', 'frame_bias_acceleration')


def pairs(wanted: tuple[str, ...]) -> list[Any]:
    """(call, argument) for all arguments of a kind."""
    signatures = {name: list(arguments) for name, arguments in good_arguments(model_of(GO2)).items()}
    assert list(signatures) == CALLS
    return [(name, key) for name in CALLS for key in signatures[name] if key in wanted]


def with_entry(array: np.ndarray, value: float) -> np.ndarray:
    """The last entry replaced."""
    changed = array.copy()
    changed[-1] = value
    return changed


class Subclass(np.ndarray):
    """An array by another name."""


def unaligned(values: np.ndarray) -> np.ndarray:
    """A copy at an odd address."""
    room = np.zeros(8 * len(values) + 1, dtype=np.uint8)[1:]
    room[:] = np.frombuffer(values.tobytes(), dtype=np.uint8)
    return room.view(np.float64)


over_arrays = pytest.mark.parametrize(('name', 'key'), pairs(ARRAYS))


@over_arrays
@pytest.mark.parametrize(
    'spoil',
    [
        lambda a: a[:-1],
        lambda a: np.append(a, 0.0),
        lambda a: a[None, None],
        lambda a: np.float64(0.5),
        lambda a: a[:0],
        lambda a: a[:, None],
        lambda a: np.concatenate([a, a]),
        lambda a: np.array([a, a]).T,
    ],
    ids=['short', 'long', 'three_axes', 'scalar', 'empty', 'column', 'twice', 'transposed_batch'],
)
def test_wrong_shape(qd: Any, name: str, key: str, spoil: Any) -> None:
    arguments = good_arguments(model_of(GO2))[name]
    arguments[key] = spoil(arguments[key])
    with pytest.raises(qd.ArgumentError, match=rf'\b{key}\b'):
        call(qd, model_of(GO2), name, arguments)


@over_arrays
@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf], ids=str)
def test_not_finite(qd: Any, name: str, key: str, value: float) -> None:
    arguments = good_arguments(model_of(GO2))[name]
    arguments[key] = with_entry(arguments[key], value)
    with pytest.raises(qd.ArgumentError, match=rf'\b{key}\b'):
        call(qd, model_of(GO2), name, arguments)


@over_arrays
@pytest.mark.parametrize(
    'value',
    [
        'text',
        None,
        {'a': 1},
        object(),
        lambda a: a + 1j,
        lambda a: ['x'] * len(a),
        lambda a: [[1.0], [1.0, 2.0]],
    ],
    ids=['text', 'none', 'dict', 'object', 'complex', 'strings', 'ragged'],
)
def test_wrong_type(qd: Any, name: str, key: str, value: Any) -> None:
    arguments = good_arguments(model_of(GO2))[name]
    arguments[key] = value(arguments[key]) if callable(value) else value
    with pytest.raises((qd.ArgumentError, TypeError), match=rf'\b{key}\b'):
        call(qd, model_of(GO2), name, arguments)


@over_arrays
def test_other_layouts_and_types_are_taken(qd: Any, name: str, key: str) -> None:
    """Lists, tuples, integers, float32, strided, reversed and read-only arrays mean what they say."""
    model = model_of(GO2)
    arguments = good_arguments(model)[name]
    whole = np.round(arguments[key] * 4.0) if key not in {'q', 'q0', 'q1'} else np.zeros(model.nq)
    if key in {'q', 'q0', 'q1'}:
        whole[6] = 1.0
    if key == 'direction':
        whole = np.array([0.0, 0.0, 1.0])
    expected = parts(call(qd, model, name, arguments | {key: whole}))
    strided = np.zeros(3 * len(whole))[::3]
    strided[:] = whole
    read_only = whole.copy()
    read_only.setflags(write=False)
    layouts = [whole.tolist(), tuple(whole), whole.astype(int), whole.astype(np.float32), strided, read_only]
    layouts += [whole[::-1].copy()[::-1], np.asfortranarray(np.array([whole, whole]))[0], whole.astype('>f8')]
    layouts += [unaligned(whole), whole.astype(np.longdouble), whole.view(Subclass), array.array('d', whole)]
    layouts += [memoryview(whole), np.array([whole, whole]).T[:, 1]]
    for layout in layouts:
        found = parts(call(qd, model, name, arguments | {key: layout}))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize('name', CALLS)
def test_fortran_batch_is_taken(qd: Any, name: str) -> None:
    model = model_of(GO2)
    single = good_arguments(model)[name]
    plain = {k: np.array([v, v, v]) if k in STATES else v for k, v in single.items()}
    fortran = {k: np.asfortranarray(v) if k in STATES else v for k, v in plain.items()}
    sliced = {k: np.repeat(v, 2, axis=0)[::2] if k in STATES else v for k, v in plain.items()}
    expected = parts(call(qd, model, name, plain))
    for arguments in (fortran, sliced):
        found = parts(call(qd, model, name, arguments))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize('name', CALLS)
def test_arguments_are_not_modified(qd: Any, name: str) -> None:
    model = model_of(GO2)
    arguments = good_arguments(model)[name]
    before = copy.deepcopy(arguments)
    pi = model.pi.copy()
    call(qd, model, name, arguments)
    assert np.array_equal(model.pi, pi)
    assert repr(arguments) == repr(before)
    for key, value in arguments.items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, before[key])


@pytest.mark.parametrize('name', CALLS)
def test_results_are_fresh_and_repeatable(qd: Any, name: str) -> None:
    """A result belongs to the caller: later calls do not write to it, and it is no view of an argument."""
    model = model_of(GO2)
    first_arguments, other_arguments = good_arguments(model)[name], good_arguments(model, seed=5)[name]
    first = parts(call(qd, model, name, first_arguments))
    kept = [part.copy() for part in first]
    call(qd, model, name, other_arguments)
    again = parts(call(qd, model, name, first_arguments))
    for a, b, c in zip(first, kept, again, strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)  # bit for bit
        assert not np.shares_memory(a, c) or a.ndim == 0
        if a.ndim:
            assert a.flags.writeable
            assert not any(
                np.shares_memory(a, v) for v in first_arguments.values() if isinstance(v, np.ndarray)
            )


@pytest.mark.parametrize('name', FRAME)
@pytest.mark.parametrize('frame', ['no_such_link', '', 3, None], ids=repr)
def test_unknown_frame(qd: Any, name: str, frame: Any) -> None:
    arguments = good_arguments(model_of(GO2))[name] | {'frame': frame}
    with pytest.raises((qd.ArgumentError, TypeError), match='frame'):
        call(qd, model_of(GO2), name, arguments)


def test_unknown_frame_is_named(qd: Any) -> None:
    model = model_of(GO2)
    with pytest.raises(qd.ArgumentError, match='FL_fooot'):
        qd.frame_pose(model, model.neutral, 'FL_fooot')


@pytest.mark.parametrize(
    'f_ext',
    [
        {'no_such_link': np.zeros(6)},
        {'FL_foot': np.zeros(3)},
        {'FL_foot': np.full(6, np.nan)},
        {'FL_foot': None},
        'FL_foot',
    ],
    ids=['link', 'shape', 'nan', 'none', 'text'],
)
@pytest.mark.parametrize(
    'name', ['inverse_dynamics:all', 'forward_dynamics:aba', 'forward_dynamics:cholesky', 'hybrid_dynamics']
)
def test_bad_external_force(qd: Any, name: str, f_ext: Any) -> None:
    arguments = good_arguments(model_of(GO2))[name] | {'f_ext': f_ext}
    with pytest.raises((qd.ArgumentError, TypeError), match='f_ext'):
        call(qd, model_of(GO2), name, arguments)


def test_unknown_link_of_external_force_is_named(qd: Any) -> None:
    arguments = good_arguments(model_of(GO2))['inverse_dynamics:all'] | {'f_ext': {'FL_fooot': np.zeros(6)}}
    with pytest.raises(qd.ArgumentError, match='FL_fooot'):
        call(qd, model_of(GO2), 'inverse_dynamics:all', arguments)


@pytest.mark.parametrize('name', CONTACT)
def test_unknown_link_of_a_point(qd: Any, name: str) -> None:
    arguments = good_arguments(model_of(GO2))[name]
    if name == 'contact_inertia':
        arguments['points'] = [('FL_fooot', np.zeros(3))]
    else:
        arguments['link'] = 'FL_fooot'
    with pytest.raises(qd.ArgumentError, match='FL_fooot'):
        call(qd, model_of(GO2), name, arguments)


def test_direction_must_not_be_zero(qd: Any) -> None:
    arguments = good_arguments(model_of(GO2))['directional_inertia'] | {'direction': np.zeros(3)}
    with pytest.raises(qd.ArgumentError, match='direction'):
        call(qd, model_of(GO2), 'directional_inertia', arguments)


def test_unknown_method(qd: Any) -> None:
    arguments = good_arguments(model_of(GO2))['forward_dynamics:aba'] | {'method': 'lu'}
    with pytest.raises(qd.ArgumentError, match=r"method.*'?lu'?"):
        call(qd, model_of(GO2), 'forward_dynamics:aba', arguments)


@pytest.mark.parametrize(
    'prescribed', [np.zeros(5, dtype=bool), np.zeros(18), 'x', None], ids=['shape', 'floats', 'text', 'none']
)
def test_bad_mask(qd: Any, prescribed: Any) -> None:
    arguments = good_arguments(model_of(GO2))['hybrid_dynamics'] | {'prescribed': prescribed}
    with pytest.raises((qd.ArgumentError, TypeError), match='prescribed'):
        call(qd, model_of(GO2), 'hybrid_dynamics', arguments)


@pytest.mark.parametrize('dt', [np.nan, np.inf, 'x', None, np.zeros(2)], ids=str)
def test_bad_step(qd: Any, dt: Any) -> None:
    arguments = good_arguments(model_of(GO2))['integrate'] | {'dt': dt}
    with pytest.raises((qd.ArgumentError, TypeError), match=r'\bdt\b'):
        call(qd, model_of(GO2), 'integrate', arguments)


@pytest.mark.parametrize('name', [n for n in CALLS if n not in {'friction_torque'}])
@pytest.mark.parametrize('length', [0.0, 0.9, 1.1])
def test_quaternion_of_wrong_length(qd: Any, name: str, length: float) -> None:
    arguments = good_arguments(model_of(GO2))[name]
    key = 'q' if 'q' in arguments else 'q0'
    arguments[key] = arguments[key].copy()
    arguments[key][3:7] *= length
    with pytest.raises(qd.ArgumentError, match=rf'(?i)\b{key}\b.*quaternion'):
        call(qd, model_of(GO2), name, arguments)


@pytest.mark.parametrize('name', CALLS)
def test_model_must_be_a_model(qd: Any, name: str) -> None:
    arguments = good_arguments(model_of(GO2))[name]
    with pytest.raises((qd.ArgumentError, TypeError), match=r'(?i)model'):
        call(qd, 'go2', name, arguments)


@pytest.mark.parametrize('key', ['q', 'u', 'du', 'tau', 'weights'])
@pytest.mark.parametrize('value', [np.nan, None, -1.0], ids=str)
def test_accumulated_samples(qd: Any, key: str, value: float | None) -> None:
    """The sums of the regressor are validated as well; a weight must not be negative."""
    model = model_of(GO2)
    arguments = good_arguments(model)['regressor'] | {'tau': np.ones(model.nv), 'weights': np.ones(model.nv)}
    if (key == 'weights' and value is None) or (key != 'weights' and value == -1.0):
        qd.accumulate_regressor(model, **arguments)
        return
    arguments[key] = value if value is None else with_entry(arguments[key], value)
    with pytest.raises(qd.ArgumentError, match=rf'\b{key}\b'):
        qd.accumulate_regressor(model, **arguments)


def test_one_argument_of_a_batch(qd: Any) -> None:
    """Single states and batches do not mix, not even batches of one."""
    model = model_of(GO2)
    arguments = good_arguments(model)['inverse_dynamics']
    with pytest.raises(qd.ArgumentError, match=r'\bu\b'):
        qd.inverse_dynamics(model, **(arguments | {'u': arguments['u'][None]}))
    with pytest.raises(qd.ArgumentError, match=r'\b(q|u)\b'):
        qd.inverse_dynamics(model, **(arguments | {'q': arguments['q'][None]}))
