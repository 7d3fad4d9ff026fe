# SPDX-License-Identifier: Apache-2.0
"""Settings of the simulator: defaults, checks, YAML, copies with changes."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quad_dynamics.errors import ArgumentError
from quad_dynamics.parameters.parameter import Parameter
from quad_dynamics.simulation.settings import ImuSettings, SensorSettings, SimulatorSettings

DOCS = Path(__file__).parents[2] / 'docs'
PARAMETERS = SimulatorSettings.parameters()
NUMBERS = {name: p for name, p in PARAMETERS.items() if p.kind in {'number', 'integer'}}

DEFAULTS = {
    'contact': 'auto',
    'terrain': 'flat',
    'dt': 1e-3,
    'gravity': None,
    'mu': 0.5,
    'restitution': 0.0,
    'friction': 'cone',
    'max_sweeps': 100,
    'tolerance': 1e-6,
    'correction': 0.8,
    'stiffness': 5e5,
    'damping': 5e3,
    'substeps': None,
    'integrator': 'semi_implicit',
    'momentum_correction': True,
    'forward_dynamics': 'aba',
    'joint_friction': 'stick',
    'joint_limits': True,
    'motor_limits': True,
    'latency': 0.0,
    'sensors': SensorSettings(),
    'seed': 0,
    'energy_limit': 1e4,
}

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    'negative': ({'dt': -0.001}, r'dt is -0\.001; expected a number above 0 \[s\]'),
    'zero': ({'dt': 0}, r'dt is 0; expected a number above 0 \[s\]'),
    'nan': ({'dt': math.nan}, r'dt is nan; expected a number above 0 \[s\]'),
    'infinite': ({'dt': math.inf}, r'dt is inf; expected a finite number above 0 \[s\]'),
    'bool': ({'dt': True}, 'dt is True; expected a number'),
    'text': ({'dt': '0.001'}, "dt is '0.001'; expected a number"),
    'none': ({'dt': None}, 'dt is None; expected a number'),
    'huge_int': ({'dt': 10**400}, r'dt is 1000+\.\.\.; expected a number'),
    'bool_array': ({'mu': np.bool_(True)}, 'mu is True; expected a number of at least 0'),
    'friction': ({'mu': -0.1}, r'mu is -0\.1; expected a number of at least 0$'),
    'restitution': ({'restitution': 1.5}, r'restitution is 1\.5; expected a number from 0 to 1$'),
    'float_count': ({'max_sweeps': 10.0}, r'max_sweeps is 10\.0; expected a whole number from 1 to 1000000'),
    'bool_count': ({'substeps': True}, 'substeps is True; expected a whole number .* or None'),
    'seed': ({'seed': -1}, 'seed is -1; expected a whole number from 0 to 9223372036854775807'),
    'flag': ({'joint_limits': 1}, 'joint_limits is 1; expected true or false'),
    'choice': (
        {'contact': 'impuls'},
        r"contact is 'impuls' \(did you mean 'impulse'\?\); expected one of 'auto', 'impulse', ",
    ),
    'choice_type': ({'friction': 3}, "friction is 3; expected one of 'cone', 'pyramid'"),
    'short': ({'gravity': (0, -9.81)}, r'gravity is \(0, -9\.81\); expected 3 numbers \[m/s\^2\] or None'),
    'nan_inside': ({'gravity': np.array([0, math.nan, 0])}, r'gravity is \[0\.0, nan, 0\.0\]; expected'),
    'terrain': ({'terrain': 5}, 'terrain is 5; expected the name of a terrain'),
    'no_terrain': ({'terrain': None}, 'terrain is None; expected the name of a terrain'),
    'empty_terrain': ({'terrain': ''}, "terrain is ''; expected the name of a terrain"),
    'sensors': ({'sensors': 3}, 'sensors is 3; expected a mapping'),
    'inside': ({'sensors': {'imu': {'link': 3}}}, r'sensors\.imu\.link is 3; expected text or None'),
    'inside_unknown': (
        {'sensors': {'imu': {'posiion': 3}}},
        r"sensors\.imu: unknown key 'posiion' \(did you mean 'position'\?\)",
    ),
    'rk4': (
        {'integrator': 'rk4', 'contact': 'impulse'},
        r"integrator is 'rk4' with contact 'impulse'; expected contact='none', .* integrator='semi_implicit'",
    ),
}


def test_defaults() -> None:
    settings = SimulatorSettings()
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert [field.name for field in dataclasses.fields(settings)] == list(DEFAULTS)


def test_perfect_sensors_are_the_default() -> None:
    errors = {name: p for name, p in SensorSettings.parameters().items() if p.kind == 'number'}
    assert len(errors) == 23
    assert all(p.default == 0.0 for p in errors.values())


def test_typical_sensors_have_every_error() -> None:
    typical = SensorSettings.typical().to_dict()
    del typical['odometry']  # errors of an estimator, not of a sensor: see `typical`
    values = {f'{group}.{key}': value for group, keys in typical.items() for key, value in keys.items()}
    assert [name for name, value in values.items() if isinstance(value, float) and value <= 0.0] == []


@pytest.mark.parametrize('name', WRONG)
def test_wrong_value_is_named(name: str) -> None:
    values, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        SimulatorSettings(**values)


@pytest.mark.parametrize('name', NUMBERS)
def test_bounds(name: str) -> None:
    """The bound itself is good or not as declared, and the next number beyond it never is."""
    declared = NUMBERS[name]

    def good(value: float) -> bool:
        return declared.accept(value)[1] == ''

    def beyond(value: float, way: float) -> float:
        return (
            value + int(math.copysign(1, way)) if declared.kind == 'integer' else math.nextafter(value, way)
        )

    assert declared.low > -math.inf or declared.above > -math.inf
    if declared.low > -math.inf:
        assert good(declared.low)
        assert not good(beyond(declared.low, -math.inf))
    if declared.above > -math.inf:
        assert not good(declared.above)
        assert good(beyond(declared.above, math.inf))
    if declared.high < math.inf:
        assert good(declared.high)
        assert not good(beyond(declared.high, math.inf))


@pytest.mark.parametrize('name', PARAMETERS)
def test_declaration_is_complete(name: str) -> None:
    declared: Parameter = PARAMETERS[name]
    assert declared.accept(declared.default) == (declared.default, '')
    assert declared.meaning
    assert declared.unit or declared.kind in {'choice', 'flag', 'integer', 'other', 'text'}


def test_all_problems_at_once() -> None:
    with pytest.raises(ArgumentError, match=r'^3 problems:\n') as caught:
        SimulatorSettings(dt=0, mu=-1, sensors={'imu': {'orientation_noise': -1}})
    assert re.findall(r'- (\S+) is', str(caught.value)) == ['dt', 'mu', 'sensors.imu.orientation_noise']


def test_values_take_their_plain_form() -> None:
    settings = SimulatorSettings(
        contact='spring-damper', dt=np.float32(0.5), gravity=np.array([0, 0, -1]), seed=np.int64(7), mu=1
    )
    assert settings.contact == 'spring_damper' == SimulatorSettings(contact='spring').contact
    assert settings.gravity == (0.0, 0.0, -1.0)
    assert [type(x) for x in (settings.dt, settings.seed, settings.mu)] == [float, int, float]


def test_frozen() -> None:
    settings = SimulatorSettings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.dt = 1.0  # type: ignore[misc]


def test_terrain_mapping_is_a_copy() -> None:
    terrain = {'terrain': [{'shape': 'plane'}]}
    settings = SimulatorSettings(terrain=terrain)
    shapes = SimulatorSettings(terrain=terrain['terrain'])
    terrain['terrain'].clear()
    assert settings.terrain == {'terrain': [{'shape': 'plane'}]}
    assert shapes.terrain == [{'shape': 'plane'}]


def test_replace() -> None:
    settings = SimulatorSettings(sensors={'imu': {'link': 'trunk'}})
    changed = settings.replace(dt=0.01, sensors={'imu': {'orientation_noise': 0.1}})
    assert (changed.dt, changed.sensors.imu) == (0.01, ImuSettings(link='trunk', orientation_noise=0.1))
    assert settings.dt == 1e-3
    with pytest.raises(
        ArgumentError, match=r"unknown setting 'dtt' \(did you mean 'dt'\?\); expected one of"
    ):
        settings.replace(dtt=1)
    with pytest.raises(ArgumentError, match='rk4'):
        settings.replace(integrator='rk4', contact='impulse')
    assert settings.replace(integrator='rk4', contact='none').contact == 'none'


ROUND_TRIPS = {
    'defaults': SimulatorSettings(),
    'typical': SimulatorSettings(sensors=SensorSettings.typical(), seed=2**63 - 1),
    'others': SimulatorSettings(
        contact='none',
        terrain=[{'shape': 'plane', 'mu': 0.3}],
        dt=1 / 3000,
        gravity=(0.1, 1e-300, -1.62),
        substeps=7,
        integrator='rk4',
        joint_limits=False,
        energy_limit=math.inf,
        tolerance=1e-12,
    ),
}


@pytest.mark.parametrize('name', ROUND_TRIPS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    settings, file = ROUND_TRIPS[name], tmp_path / 'sim.yaml'
    file.write_text(settings.to_yaml())
    assert SimulatorSettings.from_yaml(file) == settings
    assert SimulatorSettings.from_dict(settings.to_dict()) == settings


def test_terrain_that_yaml_cannot_hold() -> None:
    class Ground:
        def parts(self) -> None: ...

    with pytest.raises(
        ArgumentError, match='which cannot be written as YAML; expected a name, a path or a mapping'
    ):
        SimulatorSettings(terrain=Ground()).to_yaml()


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        ('stairs', 'stairs'),
        ('ground/hills.yaml', '{folder}/ground/hills.yaml'),
        ('hills.yml', '{folder}/hills.yml'),
        ('/far/hills.yaml', '/far/hills.yaml'),
        (
            '[flat, {shape: heights, heights: map.npy}]',
            "['flat', {'shape': 'heights', 'heights': '{folder}/map.npy'}]",
        ),
        ('{shape: heights, heights: map.png}', "{'shape': 'heights', 'heights': '{folder}/map.png'}"),
        ('{terrain: [{heights: [[0, 1], [2, 3]]}]}', "{'terrain': [{'heights': [[0, 1], [2, 3]]}]}"),
    ],
)
def test_paths_are_relative_to_the_file(given: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / 'sim.yaml'
    file.write_text(f'simulator: {{terrain: {given}}}')
    assert str(SimulatorSettings.from_yaml(str(file)).terrain) == expected.replace('{folder}', str(tmp_path))


def test_numbers_without_a_point(tmp_path: Path) -> None:
    """PyYAML takes 1e-3 for a text."""
    file = tmp_path / 'sim.yaml'
    file.write_text('simulator: {dt: 1e-3, stiffness: 1E+6, gravity: [0, 0, -1e1]}')
    settings = SimulatorSettings.from_yaml(file)
    assert (settings.dt, settings.stiffness, settings.gravity) == (1e-3, 1e6, (0.0, 0.0, -10.0))


def test_file_reports_everything(tmp_path: Path) -> None:
    file = tmp_path / 'sim.yaml'
    file.write_text("""
simulator:
  contact: sprong
  mu: -1
  mu: 0.5
  restituton: 0.1
  gravity: [1, 2, true]
  sensors:
    imu: {position: [0.1, 0, x], acceleration_noise: -1e-2}
    lidar: {range: 3}
    encoders: 5
""")
    with pytest.raises(ArgumentError) as caught:
        SimulatorSettings.from_yaml(file)
    first, *problems = str(caught.value).split('\n  - ')
    assert first == f'{file}: 8 problems:'
    expected = [
        r"line 5: the key 'mu' is already in line 4",
        r"simulator\.contact is 'sprong' \(did you mean 'spring_damper'\?\)",
        r"simulator: unknown key 'restituton' \(did you mean 'restitution'\?\); expected one of contact, ",
        r'simulator\.gravity is \[1, 2, True\]; expected 3 numbers',
        r"simulator\.sensors\.imu\.position is \[0\.1, 0, 'x'\]; expected 3 numbers \[m\]",
        r'simulator\.sensors\.imu\.acceleration_noise is -0\.01; expected a number of at least 0 \[m/s\^2\]',
        r"simulator\.sensors: unknown key 'lidar'; expected one of imu, encoders",
        r'simulator\.sensors\.encoders is 5; expected a mapping',
    ]
    assert len(problems) == len(expected)
    for problem, pattern in zip(problems, expected, strict=True):
        assert re.match(pattern, problem), problem


BROKEN = {
    'empty': ('', "the key 'simulator' is missing; expected the settings below it"),
    'other_key': ('simulater: {}', "the key 'simulator' is missing; found 'simulater'"),
    'list': ('[1, 2]', "the key 'simulator' is missing"),
    'no_mapping': ('simulator: 3', 'simulator is 3; expected a mapping'),
    'syntax': ('simulator: {dt: ]', 'invalid YAML: '),
    'two_documents': ('simulator: {}\n---\nsimulator: {}', 'invalid YAML: '),
    'alias': ('simulator: &a {sensors: *a}', 'invalid YAML: aliases'),
    'object': ('simulator: !!python/object/apply:os.getcwd []', 'invalid YAML: '),
    'deep': ('simulator: ' + '[' * 5000, 'invalid YAML: '),
    'across': (
        'simulator: {integrator: rk4, contact: impulse}',
        r"simulator\.integrator is 'rk4' with contact 'impulse'",
    ),
    'key_type': ('simulator: {3: 4}', 'simulator: unknown key 3; expected one of'),
    'list_key': ('simulator: {[1]: 4}', 'invalid YAML: '),
}


@pytest.mark.parametrize('name', BROKEN)
def test_broken_file(name: str, tmp_path: Path) -> None:
    text, message = BROKEN[name]
    file = tmp_path / 'sim.yaml'
    file.write_text(text)
    with pytest.raises(ArgumentError, match=f'^{re.escape(str(file))}: {message}'):
        SimulatorSettings.from_yaml(file)


def test_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r'nothing\.yaml: cannot be read: No such file'):
        SimulatorSettings.from_yaml(tmp_path / 'nothing.yaml')
    with pytest.raises(ArgumentError, match='is a directory; expected a YAML file'):
        SimulatorSettings.from_yaml(tmp_path)
    (tmp_path / 'binary.yaml').write_bytes(b'simulator: \xff')
    with pytest.raises(ArgumentError, match='byte 11 is not valid UTF-8'):
        SimulatorSettings.from_yaml(tmp_path / 'binary.yaml')


def test_empty_section_is_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / 'sim.yaml'
    file.write_text('other: 1\nsimulator:\n  # nothing\n')
    assert SimulatorSettings.from_yaml(file) == SimulatorSettings()
    file.write_text('simulator: {sensors: {imu: null}}')
    assert SimulatorSettings.from_yaml(file) == SimulatorSettings()


def test_docs_show_the_declarations_and_a_file_that_loads(tmp_path: Path) -> None:
    page = (DOCS / 'sensors.md').read_text()
    assert SensorSettings.table() in page
    [example] = re.findall(r'```yaml\n(.*?)```', page, re.DOTALL)
    file = tmp_path / 'sim.yaml'
    file.write_text(example)
    settings = SimulatorSettings.from_yaml(file)
    assert settings.sensors.imu.position != (0.0, 0.0, 0.0)
    assert settings.sensors.foot_force.resolution > 0.0
    assert settings.seed != 0
