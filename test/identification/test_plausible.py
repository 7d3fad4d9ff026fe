# SPDX-License-Identifier: Apache-2.0
"""The default cannot be fooled: plausible robots where friction, drives or motion are unusual."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import identification_worlds as worlds
import numpy as np
import pytest
from identification_data import TYPICAL, Levels, equations_of, make_samples, robot
from identification_worlds import World

from benchmarks.plausibility import run
from quad_dynamics.api.dynamics import inverse_dynamics
from quad_dynamics.api.regression import NormalEquations
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.equations.torque_checks import refuse_other_torques
from quad_dynamics.identification.pipeline import IdentifySettings, identify
from quad_dynamics.identification.report.facts import headline_warnings
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.solve import solve
from quad_dynamics.identification.validation.held_out import hold_out, segment_before
from quad_dynamics.identification.validation.mass_distribution import outside_geometry
from quad_dynamics.identification.validation.motion_band import within_blocks
from quad_dynamics.identification.validation.plausibility import uncarried, unfaithful
from quad_dynamics.identification.validation.validation import pooled
from quad_dynamics.model.loading import load_model

# Logs from which robots of 0.8 and of 3 times the true mass came without a word.
FOOLED = [worlds.draw(seed) for seed in (24, 27)]


@pytest.mark.slow
def test_a_quadruped_on_a_stand_in_one_slow_motion(tmp_path: Path) -> None:
    """Friction is larger than all else, efforts are those of the PD law: no reason to change the mass."""
    world = worlds.on_a_stand(0, 'go2')
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    result = identify([path], truth.model)
    few = identify([path], truth.model, IdentifySettings(free=('friction', 'rotor')))
    mass = result.solution.part('pi')[::10].sum() / truth.model.pi[::10].sum()
    assert mass == pytest.approx(1.0, abs=0.10)  # the limit is 10 %, and a barrier is soft
    assert result.validation is not None
    assert few.validation is not None
    before, after, _ = pooled(result.validation.errors).relative
    assert after < 1.05 * pooled(few.validation.errors).relative[1]
    assert after < 0.5 * before


@pytest.mark.parametrize('robot', ['ur5', 'two_link_arm'])
def test_efforts_in_other_units_are_refused_or_announced(tmp_path: Path, robot: str) -> None:
    world = World(3, robot, unit=1e-3)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    try:
        result = identify([path], truth.model)
    except ArgumentError as error:
        told = str(error)
    else:
        told = '\n'.join(result.warnings)
    assert 'effort' in told


@pytest.mark.parametrize(
    ('factor', 'words'),
    [(1e3, 'times larger than the torques that this motion needs'), (-1.0, 'efforts have the opposite sign')],
    ids=['unit', 'sign'],
)
def test_other_efforts_are_refused_without_foot_forces(factor: float, words: str) -> None:
    """Contact forces are unknown, but the projection that removes them keeps the scale of torques."""
    model = robot('mini_cheetah')
    samples, _ = make_samples(model, 0, 2.0, 100.0, TYPICAL, feet=False)
    columns = make_columns(model)
    friction = np.ones(model.nj)
    good = equations_of(samples, columns, TYPICAL, 'projection')
    refuse_other_torques(good, 'log', friction)
    rows = samples.all()
    samples.layout.get(rows, 'tau')[...] *= factor
    wrong = Samples(model)
    wrong.append(rows)
    with pytest.raises(ArgumentError, match=words):
        refuse_other_torques(equations_of(wrong, columns, TYPICAL, 'projection'), 'log', friction)


SCARA = """<robot name="scara">
<link name="base"/>
{links}
<joint name="turn1" type="revolute"><parent link="base"/><child link="arm1"/>
  <axis xyz="0 0 1"/>{limit}</joint>
<joint name="turn2" type="revolute"><parent link="arm1"/><child link="arm2"/><origin xyz="0.3 0 0"/>
  <axis xyz="0 0 1"/>{limit}</joint>
<joint name="lift" type="prismatic"><parent link="arm2"/><child link="rod"/><origin xyz="0.25 0 0"/>
  <axis xyz="0 0 1"/>{limit}</joint>
<joint name="turn3" type="revolute"><parent link="rod"/><child link="flange"/>
  <axis xyz="0 0 1"/>{limit}</joint>
</robot>"""
LINK = """<link name="{}"><inertial><origin xyz="{} 0 0"/><mass value="{}"/>
  <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


@pytest.mark.parametrize('factor', [1.0, 1e3], ids=['good', 'unit'])
def test_joints_that_gravity_does_not_load(factor: float) -> None:
    """Their efforts are friction, those of the lift are gravity: each joint is compared by itself."""
    links = [
        LINK.format(*link) for link in (('arm1', 0.15, 4), ('arm2', 0.12, 3), ('rod', 0, 3), ('flange', 0, 1))
    ]
    limit = '<limit lower="-2" upper="2" effort="60" velocity="5"/>'
    model = load_model(SCARA.format(links=''.join(links), limit=limit))
    columns = make_columns(model)
    t = np.arange(0.0, 20.0, 0.02)
    rates = np.array([0.3, 0.5, 0.4, 0.7])
    q, u = 0.2 * np.sin(rates * t[:, None]), 0.2 * rates * np.cos(rates * t[:, None])
    du = -(rates**2) * q
    friction = np.array([4.0, 3.0, 8.0, 0.8])
    tau = inverse_dynamics(model, q, u, du) + friction * np.sign(u)
    each = {'q': q, 'u': u, 'du': du, 'tau': factor * tau, 'sign': np.sign(u), 'use': np.ones_like(q)}
    nothing = {'segment': 0.0 * t, 'force': np.zeros((len(t), 0)), 'stance': np.zeros((len(t), 0))}
    slopes = {'dtau': np.zeros_like(q), 'dforce': np.zeros((len(t), 0))}
    samples = Samples(model)
    samples.append(samples.layout.join(time=t, **each, **nothing, **slopes))
    equations = equations_of(samples, columns, TYPICAL, 'fixed')
    if factor == 1.0:
        refuse_other_torques(equations, 'log', friction)
    else:
        with pytest.raises(ArgumentError, match='times larger than the torques that this motion needs'):
            refuse_other_torques(equations, 'log', friction)


def test_slow_motion_is_announced_unless_it_is_validated_on_another(tmp_path: Path) -> None:
    world = World(3, 'two_link_arm', motion='slow', seconds=20.0)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    other = worlds.make_log(worlds.other_motion(world), truth, tmp_path / 'other.npz')
    alone, validated = identify([path], truth.model), identify([path], truth.model, validate_on=[other])
    assert any('joints or more move slowly' in text for text in alone.warnings)
    assert not any('slowly' in text for text in validated.warnings)


def test_a_mass_that_only_torques_tell_is_announced(tmp_path: Path) -> None:
    """Wrong torque constants make a robot heavier; on a fixed base nothing shows that it is not."""
    world = World(3, 'two_link_arm', unit=1.0 / 1.25)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    result = identify([path], truth.model)
    mass = result.solution.part('pi')[::10].sum() / truth.model.pi[::10].sum()
    told = [text for text in result.warnings if 'torque constants' in text]
    assert abs(mass - 1.0) > 0.05
    assert 'the mass of the moving links changes by' in told[0]


def test_results_that_get_worse_are_announced(tmp_path: Path) -> None:
    world = World(3, 'two_link_arm')
    truth = worlds.make_robot(world)
    result = identify([worlds.make_log(world, truth, tmp_path / 'log.npz')], truth.model)
    good = result.validation
    assert good is not None
    assert good.replay is not None
    assert not headline_warnings(result)
    errors, position = good.errors, good.replay.position
    bad = replace(result, validation=replace(good, errors=replace(errors, after=1.03 * errors.before)))
    assert headline_warnings(bad)[0].startswith('torques of held-out blocks are predicted worse')
    wild = replace(errors, floor=0.4 * errors.measured, after=0.5 * errors.before)
    (text,) = headline_warnings(replace(result, validation=replace(good, errors=wild)))
    assert text.startswith('even the best fit to ')
    (text,) = unfaithful(
        replace(good.replay, position=np.array([position[0], 1.3 * position[0]])),
        result.solution.columns.model,
    )
    assert text.startswith('simulated for 100 ms')


@pytest.mark.slow
@pytest.mark.parametrize('world', FOOLED, ids=str)
def test_nothing_implausible_is_written_without_a_word(tmp_path: Path, world: World) -> None:
    row = run(world, tmp_path)
    assert row.announced or not (row.too_heavy or row.worse_held or row.worse_elsewhere)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [31, 41])
def test_no_false_alarm_where_nothing_is_wrong(tmp_path: Path, seed: int) -> None:
    """Torques hardly show the whole mass; it went to its limit, and a good result was warned of."""
    row = run(worlds.draw(seed), tmp_path, others=False)
    assert not row.announced
    assert row.mass == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
def test_viscous_friction_of_a_small_motion_is_not_taken_to_a_fast_one(tmp_path: Path) -> None:
    """What friction does after reversals rises with the speed; it was four times as bad as the URDF."""
    world = worlds.draw(72)
    assert (world.motion, world.friction) == ('small', 'harmonic')
    truth = worlds.make_robot(world)
    log = worlds.make_log(world, truth, tmp_path / 'log.npz')
    other = worlds.make_log(worlds.other_motion(world), truth, tmp_path / 'other.npz')
    result = identify([log], truth.model, validate_on=[other])
    assert any(words.startswith('viscous friction of joint') for words in result.solution.choices)
    assert result.validation is not None
    before, after, *_ = pooled(result.validation.errors).relative
    assert after < before
    asked = identify([log], truth.model, IdentifySettings(free=('friction',), hold_out=False))
    assert asked.solution.free[asked.solution.columns.slices['viscous']].all()


@pytest.mark.slow
def test_intervals_hold_the_truth_where_friction_is_another(tmp_path: Path) -> None:
    """Arms whose drives have Stribeck and load-dependent friction."""
    rows = [
        run(replace(World(seed, robot, friction=kind), level=0.2), tmp_path, others=False)
        for seed, (robot, kind) in enumerate(
            [
                ('ur5', 'harmonic'),
                ('kinova', 'stribeck'),
                ('two_link_arm', 'harmonic'),
            ]
        )
    ]
    for kind in ('base', 'friction'):
        hit, of = np.sum([row.covered[kind] for row in rows if kind in row.covered], axis=0)
        assert hit >= 0.85 * of, kind


@pytest.mark.parametrize('n', [0, -3], ids=['none', 'fewer_than_forces'])
def test_a_log_without_rows_that_count_is_refused(n: int) -> None:
    """Without foot forces, the number of rows is less by the forces that are unknown: it may be negative."""
    columns = make_columns(worlds.believed('go2', True))
    nothing = NormalEquations(np.eye(columns.size), np.zeros(columns.size), 1.0, n)
    with pytest.raises(ArgumentError, match='no row of any sample'):
        solve([nothing] * 3, None, columns, make_freedom(columns))


@pytest.mark.parametrize('factor', [1.0, 1.25, 0.75])
def test_feet_that_carry_another_weight_are_announced(factor: float) -> None:
    """Friction alone is free: the mass stays that of the model, whatever the feet carry."""
    model = robot('mini_cheetah')
    samples, _ = make_samples(model.with_pi(factor * model.pi), 0, 1.0, 100.0)
    columns = make_columns(model)
    equations = equations_of(samples, columns, Levels())
    solution = solve(equations.accumulate(3), equations, columns, make_freedom(columns, ['friction']))
    told = uncarried(equations, solution)
    assert bool(told) == (factor != 1.0)
    for text in told:
        assert float(text.split()[3]) == pytest.approx(factor * model.total_mass, rel=0.03)


@pytest.mark.parametrize('added', [0.0, 1.0], ids=['inside', 'outside'])
def test_inertia_that_does_not_fit_into_the_geometry_is_announced(added: float) -> None:
    """Some simulators give a link without inertia one of 1 kg m^2: more than a trunk of 40 cm can have."""
    model = robot('mini_cheetah')
    pi = model.pi.copy()
    pi[[0, 4, 6, 9]] += 1.0, added + 0.01, added + 0.01, added + 0.01
    samples, _ = make_samples(model.with_pi(pi), 0, 4.0, 100.0, TYPICAL)
    columns = make_columns(model)
    equations = equations_of(samples, columns, TYPICAL)
    solution = solve(equations.accumulate(3), equations, columns, make_freedom(columns, trust=0.3))
    np.testing.assert_allclose(solution.x[[4, 6, 9]], pi[[4, 6, 9]], rtol=0.1, atol=0.01)
    told = outside_geometry(solution)
    assert bool(told) == (added > 0.0)
    for text in told:
        assert text.startswith('the identified inertia needs mass outside of the geometry')
        assert f'{model.body_names[0]} (' in text


def test_the_band_of_the_motion_has_no_training_data() -> None:
    """Times begin at zero in each recording: a long one comes before a short one."""
    model = robot('two_link_arm')
    samples = Samples(model)
    for k, duration in enumerate((84.0, 16.0)):
        t = np.arange(0.0, duration, 0.02)
        each = dict.fromkeys(('q', 'u', 'du', 'tau', 'sign', 'use', 'dtau'), np.zeros((len(t), 2)))
        nothing = dict.fromkeys(('force', 'stance', 'dforce'), np.zeros((len(t), 0)))
        samples.append(samples.layout.join(time=t, segment=np.full(len(t), float(k)), **each, **nothing))
    _, held, _ = hold_out(samples, model)
    chosen = within_blocks(samples, held, model)
    get = samples.layout.get
    rows, blocks = chosen.all(), held.all()
    found = set(zip(get(rows, 'segment'), get(rows, 'time'), strict=True))
    expected = set(zip(segment_before(get(blocks, 'segment')), get(blocks, 'time'), strict=True))
    assert found == expected
    assert {segment for segment, _ in found} == {0.0, 1.0}


@pytest.mark.parametrize('validated', [False, True], ids=['held_out', 'validated'])
def test_errors_in_the_band_of_the_motion(tmp_path: Path, validated: bool) -> None:
    """Torques with noise that no model predicts: less of it is left in the band of the motion."""
    world = World(3, 'two_link_arm', seconds=20.0)
    truth = worlds.make_robot(world)
    path = worlds.make_log(world, truth, tmp_path / 'log.npz')
    other = worlds.make_log(worlds.other_motion(world), truth, tmp_path / 'other.npz')
    settings = IdentifySettings(signals=SignalSettings(cutoff=60.0))
    result = identify([path], truth.model, settings, [other] if validated else [])
    assert result.validation is not None
    band, errors = result.validation.band, result.validation.errors
    assert band is not None
    assert band.cutoff < 30.0
    assert pooled(band.errors).rms[1] < 0.7 * pooled(errors).rms[1]
    share = band.errors.total * 60.0 / (band.cutoff * errors.total)  # samples per cutoff: the same time
    assert share == pytest.approx(1.0, abs=0.25)
    narrow = replace(settings, signals=SignalSettings(cutoff=band.cutoff))
    again = identify([path], truth.model, narrow, [other] if validated else []).validation
    assert again is not None
    assert again.band is None
