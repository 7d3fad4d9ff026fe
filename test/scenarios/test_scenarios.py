# SPDX-License-Identifier: Apache-2.0
"""Scenarios: their files, the loop that runs them, and the numbers that judge a controller."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenario_controllers import Failing, Standing, standing

import quad_dynamics as qd
from quad_dynamics.api.drives import joint_friction
from quad_dynamics.cli import main
from quad_dynamics.errors import ArgumentError
from quad_dynamics.scenarios import controller as controllers
from quad_dynamics.scenarios import measures
from quad_dynamics.scenarios.batch import run_batch
from quad_dynamics.scenarios.columns import COLUMNS, WALL_CLOCK
from quad_dynamics.scenarios.draws import at_random, drawn
from quad_dynamics.scenarios.falls import is_down
from quad_dynamics.scenarios.results import read_results, violations
from quad_dynamics.scenarios.runner import ScenarioRun
from quad_dynamics.scenarios.scenario_file import ScenarioFile
from quad_dynamics.scenarios.scenario_reader import KEYS
from quad_dynamics.scenarios.settings import CONTROL_PERIOD, Faults, Truth
from quad_dynamics.scenarios.true_robot import true_robot

pytestmark = pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')


def scenario(**keys: Any) -> dict[str, Any]:
    """The mapping of a short scenario."""
    return {'scenario': {'robot': 'mini_cheetah', 'duration': 0.4, **keys}}


def run(seed: int = 1, controller: Any = Standing, **keys: Any) -> ScenarioRun:
    return qd.run_scenario(scenario(**keys), seed, controller)


@pytest.fixture(scope='module')
def model() -> qd.Model:
    return qd.load_model('mini_cheetah')


# ---------------------------------------------------------------- files

# What stands below `robot: go2`, in line 3 and those that follow, and what is said about it.
WRONG = {
    '  thruth: {}': (
        3,
        r"scenario: unknown key 'thruth' \(did you mean 'truth'\?\); expected",
    ),
    '  truth:\n    mass_scale: 0': (
        4,
        r'scenario.truth.mass_scale is 0; expected a number above 0',
    ),
    '  truth:\n    payload: {link: trunc}': (
        4,
        r"scenario.truth.payload.link: unknown link 'trunc'",
    ),
    '  truth:\n    payload: {mass: 1, share: 1}': (
        4,
        r'.*mass and share are both given',
    ),
    '  simulator:\n    mu: -1': (
        4,
        r'scenario.simulator.mu is -1; expected a number of at least 0',
    ),
    '  simulator:\n    contact: none': (
        4,
        r"scenario.simulator.contact is 'none'; expected",
    ),
    '  simulator: {dt: 0.003}': (
        3,
        r'scenario.simulator.dt is 0.003; expected an integer fraction',
    ),
    '  simulator: {sensors: typicl}': (
        3,
        r".*sensors is 'typicl'; expected 'typical', 'none'",
    ),
    '  simulator: {sensors: {imu: {nois: 1}}}': (
        3,
        r".*sensors.imu: unknown key 'nois'",
    ),
    '  simulator: {terrain: no.yaml}': (
        3,
        r'scenario.simulator.terrain: .*no.yaml',
    ),
    '  simulator: {seed: 3}': (
        3,
        r'scenario.simulator.seed is given; expected seeds in scenario.seeds',
    ),
    '  base_state: estimate': (
        3,
        r".*'estimate', which is not available yet; expected 'truth'",
    ),
    '  faults: {drop: 2}': (
        3,
        r'scenario.faults.drop is 2; expected a number from 0 to 1',
    ),
    '  faults: {stall: [2, 1]}': (
        3,
        r'scenario.faults.stall is \[2, 1\]; expected \[duration',
    ),
    '  seeds: {cnt: 3}': (
        3,
        r"scenario.seeds: unknown key 'cnt' \(did you mean 'count'\?\)",
    ),
    '  duration: long': (
        3,
        r"scenario.duration is 'long'; expected a number from 0.002",
    ),
    '  events: 3': (
        3,
        r'scenario.events is 3; expected a list',
    ),
    '  events:\n    - {at: 1}': (
        4,
        r"scenario.events\[0\]: the event has no effect; expected 'gait'",
    ),
    '  events:\n    - {gait: trot}\n    - {cmd_vel: [1, 0]}': (
        5,
        r'.*\[1\].cmd_vel is \[1, 0\]; ex',
    ),
    '  events:\n    - {push: {heading: 1}}': (
        4,
        r'.*push: delta_v is missing; expected a number',
    ),
    '  events:\n    - {at: {uniform: [2, 1]}, gait: trot}': (
        4,
        r'.*\[0\].at is .*; expected uniform',
    ),
    '  events:\n    - {at: {uniform: [-1, 1]}, gait: trot}': (
        4,
        r'.*\[0\].at is -1.0; expected',
    ),
    '  events:\n    - {every: 1e-9, gait: trot}': (
        4,
        r'.*every: the event would occur \d+ times',
    ),
    '  robot: go2': (
        3,
        r"the key 'robot' is already in line 2",
    ),
    'expect: {fals: 0}': (
        3,
        r"expect: unknown key 'fals' \(did you mean 'falls'\?\)",
    ),
    'expect:\n  falls: none': (
        4,
        r"expect.falls is 'none'; expected a number",
    ),
}


@pytest.mark.parametrize('text', WRONG, ids=lambda text: ' '.join(text.split())[-40:])
def test_a_wrong_file_is_refused_with_its_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controllers, '_walker', standing)
    file = tmp_path / 'wrong.yaml'
    file.write_text(f'scenario:\n  robot: go2\n{text}\n')
    assert main(['scenario', str(file), '--output', str(tmp_path / 'out')]) == 2
    said = capsys.readouterr().err
    line, pattern = WRONG[text]
    assert f'{file}: ' in said
    assert re.search(f'line {line}: {pattern}', said), said
    assert not (tmp_path / 'out').exists()


def test_a_wrong_robot_is_refused(tmp_path: Path) -> None:
    file = tmp_path / 'wrong.yaml'
    for robot, said in (
        ('mini_chetah', r"is 'mini_chetah' \(did you mean 'mini_cheetah'\?\); expected a file, or one of"),
        ('3', 'is 3; expected a bundled robot or the path of a .urdf file'),
        ('two_link_arm', ": 'two_link_arm' cannot walk; expected a floating base, feet"),
    ):
        file.write_text(f'scenario:\n  robot: {robot}\n')
        with pytest.raises(ArgumentError, match=f'wrong.yaml: line 2: scenario.robot ?{said}'):
            qd.run_scenario(file, 0, Standing)
    file.write_text('scenario:\n  robot: [\n')
    with pytest.raises(ArgumentError, match=r'wrong.yaml: line 3: invalid YAML'):
        ScenarioFile.load(file)
    for text in ('', 'scenarios: {}', 'scenario: 3', '[]'):
        file.write_text(text)
        with pytest.raises(ArgumentError, match=r'expected the (key|scenario)'):
            ScenarioFile.load(file)


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / 'wrong.yaml'
    simulator = 'simulator: {latency: {uniform: [1, 0]}, mu: x}'
    file.write_text(f'scenario:\n  robot: go3\n  {simulator}\n  duration: -1\nexpect: 3\n')
    with pytest.raises(ArgumentError, match='5 problems') as caught:
        ScenarioFile.load(file)
    assert str(caught.value).count('latency') == 1


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / 'ground.yaml').write_text('terrain: [{shape: plane}]\n')
    (tmp_path / 'robot.urdf').write_text('<robot name="r"/>')
    (tmp_path / 's.yaml').write_text('scenario: {robot: robot.urdf, simulator: {terrain: ground.yaml}}\n')
    drawn_one = ScenarioFile.load(tmp_path / 's.yaml').draw(0)
    assert drawn_one.robot == str(tmp_path / 'robot.urdf')
    assert drawn_one.simulator.terrain == str(tmp_path / 'ground.yaml')
    assert drawn_one.name == 's'


def test_the_documentation_names_every_column_and_key() -> None:
    text = (Path(__file__).parents[2] / 'docs' / 'scenarios.md').read_text()
    table = re.findall(r'^\| (`.*?`) \|', text.split('## Columns')[1].split('**Velocity')[0], re.MULTILINE)
    assert re.findall(r'`(\w+)`', ' '.join(table)) == list(COLUMNS)
    keys = re.findall(r'^\| `([\w.]+)` \|', text.split('## The file')[1].split('An event')[0], re.MULTILINE)
    assert {key.split('.')[0] for key in keys} == set(KEYS)


def test_the_file_of_the_documentation_is_good(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / 'docs' / 'scenarios.md').read_text()
    file = tmp_path / 'scenario.yaml'
    file.write_text(text.split('```yaml\n')[1].split('```')[0])
    assert len(ScenarioFile.load(file).seeds) == 10


# ---------------------------------------------------------------- random values and events


def test_draws_depend_on_seed_and_place_alone() -> None:
    value = {'uniform': [[-1.0, 1.0], [5.0, 5.0]]}
    first = drawn(value, 'scenario.a', at_random(7))
    assert first == drawn(value, 'scenario.a', at_random(7))
    assert first != drawn(value, 'scenario.b', at_random(7))
    assert first != drawn(value, 'scenario.a', at_random(8))
    assert -1.0 <= first[0] <= 1.0
    assert first[1] == 5.0
    many = [drawn({'uniform': [2.0, 4.0]}, 'x', at_random(seed)) for seed in range(400)]
    assert min(many) >= 2.0
    assert max(many) <= 4.0
    assert np.mean(many) == pytest.approx(3.0, abs=0.12)  # 4 standard deviations of the mean


def test_random_values_are_drawn_in_all_sections() -> None:
    file = ScenarioFile.load(
        scenario(
            simulator={'mu': {'uniform': [0.4, 0.8]}},
            truth={'payload': {'mass': {'uniform': [0, 1]}, 'position': {'uniform': [[0, 1]] * 3}}},
            faults={'drop': {'uniform': [0, 0.5]}},
        )
    )
    one, two = file.draw(1), file.draw(2)
    assert one.simulator.seed == 1
    assert 0.4 < one.simulator.mu < 0.8
    assert len(set(one.truth.payload.position or ())) == 3
    assert one.simulator.mu != two.simulator.mu
    assert one.faults != two.faults
    assert one.truth != two.truth


def test_repeated_events_are_drawn_anew_and_sorted() -> None:
    events = [
        {'at': 0.5, 'every': 0.5, 'cmd_vel': {'uniform': [[-1, 1], [0, 0], [0, 1]]}},
        {'at': {'uniform': [0.1, 0.2]}, 'gait': 'trot'},
    ]
    found = ScenarioFile.load(scenario(duration=2.0, events=events)).draw(3).events
    assert [event.time for event in found[1:]] == [0.5, 1.0, 1.5]  # none at the end of the run
    assert 0.1 <= found[0].time <= 0.2
    assert len({event.cmd_vel for event in found[1:]}) == 3
    longer = ScenarioFile.load(scenario(duration=9.0, events=events)).draw(3).events
    assert longer[:4] == found


def test_events_reach_the_controller(model: qd.Model) -> None:
    law = Standing(model)
    events = [
        {'at': 0, 'gait': 'trot'},
        {'at': 0.1005, 'cmd_vel': [0.5, -0.1, 0.2]},
        {'at': 0.3, 'gait': 'stand'},
    ]
    found = run(controller=law, events=events)
    assert [name for _, name in law.gaits] == ['trot', 'stand']
    assert law.commands == [(pytest.approx(0.1), (0.5, -0.1, 0.2))]  # the update before was at 0.100 s
    traces = found.traces
    assert np.array_equal(traces.cmd[traces.t > 0.1045], np.tile([0.5, -0.1, 0.2], (148, 1)))
    assert not traces.cmd[traces.t < 0.1035].any()
    assert set(traces.gait[traces.t < 0.3005]) == {'trot'}
    assert set(traces.gait[traces.t > 0.3005]) == {'stand'}


def test_a_gait_that_is_refused_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"scenario.events\[0\]: gait is 'fly'; expected"):
        run(events=[{'at': 0.1, 'gait': 'fly'}])


def test_a_push_changes_momentum_by_mass_times_delta_v() -> None:
    """Without friction of the ground nothing else acts horizontally."""
    kick = {'delta_v': 0.4, 'heading': 2.0, 'duration': 0.1}
    truth = {'payload': {'share': 0.12}, 'mass_scale': 1.1}
    found = run(truth=truth, simulator={'mu': 0.0}, events=[{'at': 0.1, 'push': kick}], duration=0.25)
    sim = found.sim
    momentum = qd.centroidal_momentum(sim.model, sim.q, sim.u)[:3]
    wanted = sim.model.total_mass * 0.4 * np.array([math.cos(2.0), math.sin(2.0)])
    assert momentum[:2] == pytest.approx(wanted, rel=1e-4)
    before = found.traces.t < 0.1005
    assert np.abs(found.traces.u[before, :2]).max() < 1e-3


# ---------------------------------------------------------------- robot, sensors, faults


def test_the_true_robot_differs_as_stated(model: qd.Model) -> None:
    truth = Truth.from_dict(
        {'payload': {'share': 0.12}, 'mass_scale': 1.5, 'friction': 'typical', 'friction_scale': 2.0}
    )
    made = true_robot(model, truth)
    assert made.pi[0] == pytest.approx(1.62 * model.pi[0])
    assert made.pi[1:4] / made.pi[0] == pytest.approx(model.pi[1:4] / model.pi[0])  # it sits at the com
    assert made.pi[10:] == pytest.approx(1.5 * model.pi[10:])
    assert (made.coulomb > 0.0).all()
    assert true_robot(model, Truth()).pi == pytest.approx(model.pi)
    aside = Truth.from_dict({'payload': {'link': 'base', 'mass': 2.0, 'position': [0.1, 0.2, 0.3]}})
    assert true_robot(model, aside).pi[:4] - model.pi[:4] == pytest.approx([2.0, 0.2, 0.4, 0.6])


def test_friction_scale_acts_on_what_the_urdf_has(model: qd.Model) -> None:
    rough = model.with_friction(np.full(model.nj, 0.1), np.full(model.nj, 0.2))
    made = true_robot(rough, Truth.from_dict({'friction_scale': 3.0}))
    for one, three in zip(joint_friction(rough), joint_friction(made), strict=True):
        assert three == pytest.approx(3.0 * one)


def test_the_controller_sees_a_true_base_and_measured_joints(model: qd.Model) -> None:
    law = Standing(model)
    found = run(controller=law, simulator={'sensors': 'typical'}, duration=0.1, seed=5)
    q, u = found.traces.q, found.traces.u
    for k in (1, 20, 49):  # the state at the beginning of period k is that at the end of period k - 1
        state = law.states[k]
        assert np.array_equal(state.q[:7], q[k - 1, :7])
        assert np.array_equal(state.u[:6], u[k - 1, :6])
        off = np.abs(state.q[7:] - q[k - 1, 7:])
        assert 0.0 < off.max() < 2e-3  # 14 bits, and noise of 2e-4 rad
    suite = qd.SensorSuite(found.sim.model, qd.SensorSettings.typical(), 5, 1e-3)
    expected = suite.measure(found.sim.truth(), found.sim.step_count)
    assert np.array_equal(found.sim.sensors().joint_position, expected.joint_position)
    legs = found.sim.leg_sensors()
    names = ('joint_position', 'joint_velocity', 'joint_torque', 'foot_forces')
    for name, values in zip(names, legs, strict=True):
        assert np.array_equal(values, getattr(expected, name))


def test_foot_sensors_can_be_missing(model: qd.Model) -> None:
    law = Standing(model)
    run(controller=law, foot_sensors=False, duration=0.02)
    assert all(state.foot_forces is None for state in law.states)


def test_lost_setpoints_do_not_reach_the_drives() -> None:
    assert not run(faults={'drop': 1.0}, duration=0.05).traces.tau.any()
    some = run(faults={'drop': 0.5}, duration=0.4, simulator={'sensors': 'typical'})
    assert not some.row['fell']
    assert some.traces.tau.any()
    whole = run(duration=0.4, simulator={'sensors': 'typical'})
    assert not np.array_equal(whole.traces.tau, some.traces.tau)


def test_a_stalled_controller_is_not_asked(model: qd.Model) -> None:
    law = Standing(model)
    found = run(controller=law, faults={'stall': [0.04, 0.1]}, duration=0.3)
    begins = found.traces.t - CONTROL_PERIOD
    stalled = np.isnan(found.traces.update_us)
    expected = (begins > 0.0999) & ((begins + 1e-6) % 0.1 < 0.04)
    assert np.array_equal(stalled, expected)
    assert stalled.sum() == 40
    assert len(law.states) == 110
    assert not Faults().stalls(3.0)


def test_failures_of_a_solver_are_counted(model: qd.Model) -> None:
    law = Failing(model)
    assert run(controller=law, duration=0.2).row['solver_failures'] == 10
    assert run(controller=law, duration=0.2).row['solver_failures'] == 10  # of this run alone


def test_what_is_no_controller_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r'controller is dict, which lacks reset, command, gait'):
        run(controller=lambda model: {'update': 1})
    with pytest.raises(ArgumentError, match='seed is -1; expected a whole number'):
        run(seed=-1)


# ---------------------------------------------------------------- falls


@pytest.mark.parametrize('contact', ['impulse', 'spring_damper'])
def test_a_fall_is_seen_and_the_run_ends(contact: str) -> None:
    kick = {'at': 0.1, 'push': {'delta_v': 4.0, 'heading': 1.5, 'duration': 0.1}}
    found = run(events=[kick], duration=5.0, simulator={'contact': contact})
    assert found.row['fell'] == 1
    assert 0.15 < found.row['fall_time'] < 1.5
    assert found.traces.t[-1] == pytest.approx(found.row['fall_time'] + 0.2, abs=0.0021)
    assert found.row['contact'] == contact


def test_a_robot_without_torques_falls_onto_its_trunk() -> None:
    found = run(faults={'drop': 1.0}, duration=3.0)
    assert found.row['fell'] == 1
    assert not is_down(found.traces.q[:1], np.zeros(1), 0.1)[0]


def test_divergence_is_a_fall() -> None:
    kick = {'at': 0.05, 'push': {'delta_v': 1.0, 'duration': 0.1}}
    found = run(events=[kick], simulator={'energy_limit': 0.02}, duration=1.0)
    assert found.row['fell'] == 1
    assert 0.05 < found.row['fall_time'] < 0.15
    assert len(found.traces.cmd) == len(found.traces.t) < 75


def test_tilt_and_height_decide_about_a_fall() -> None:
    def q(tilt: float, z: float) -> list[float]:
        return [0.0, 0.0, z, math.sin(tilt / 2), 0.0, 0.0, math.cos(tilt / 2)]

    states = np.array([q(0.0, 0.3), q(0.99, 0.3), q(1.01, 0.3), q(0.0, 0.11), q(3.1, 0.3)])
    assert is_down(states, np.zeros(5), 0.12).tolist() == [False, False, True, True, True]
    assert is_down(states[:1], np.array([0.2]), 0.12).tolist() == [True]  # above the terrain, not above zero


# ---------------------------------------------------------------- measures, in closed form


def turned(yaw: float, n: int = 1) -> Any:
    q = np.zeros((n, 19))
    q[:, 5], q[:, 6] = math.sin(yaw / 2), math.cos(yaw / 2)
    return q


def test_velocity_is_in_the_heading_frame() -> None:
    u = np.zeros((1, 18))
    u[0, :6] = [0.3, 0.4, 0.9, 0.0, 0.0, 0.7]
    assert measures.heading_velocity(turned(math.pi / 2), u)[0] == pytest.approx([0.4, -0.3, 0.7])
    # rolled by 90 degrees, a turn about the base's y axis is one about the vertical
    q = np.array([[0.0, 0.0, 0.0, math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]])
    u[0, :6] = [0.0, 0.0, 0.0, 0.0, 0.5, 0.0]
    assert measures.heading_velocity(q, u)[0, 2] == pytest.approx(0.5)


def test_euler_angles_are_those_of_urdf() -> None:
    from quad_dynamics.model.inertia import rotation_of_rpy

    rng = np.random.default_rng(0)
    for rpy in rng.uniform([-3.0, -1.5, -3.0], [3.0, 1.5, 3.0], (20, 3)):
        (cr, cp, cy), (sr, sp, sy) = np.cos(rpy / 2), np.sin(rpy / 2)
        quaternion = [sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy]
        quaternion += [cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy]
        q = np.array([[0.0, 0.0, 0.0, *quaternion]])
        assert np.concatenate(measures.euler_angles(q)) == pytest.approx(rpy)
        z = rotation_of_rpy(rpy)[2]
        u = np.concatenate([np.zeros(3), rpy])[None]
        assert measures.heading_velocity(q, u)[0, 2] == pytest.approx(z @ rpy)


def test_an_oscillation_of_the_gait_does_not_count() -> None:
    t = CONTROL_PERIOD * np.arange(1, 2001)
    v = 0.5 + 0.1 * np.sin(2 * np.pi * t / 0.4)
    mean = measures.averaged(v[:, None], np.full(2000, 0.4))
    assert mean[199:, 0] == pytest.approx(0.5, abs=1e-12)
    assert mean[0, 0] == v[0]
    assert measures.averaged(v[:, None], np.full(2000, 1e-9))[:, 0] == pytest.approx(v)


def test_spans_of_constant_command() -> None:
    t = CONTROL_PERIOD * np.arange(1, 2001)  # 4 s
    cmd = np.zeros((2000, 3))
    cmd[1000:, 0] = 0.5
    cmd[1800:, 2] = 0.1  # for 0.4 s: never settled
    spans = measures.command_spans(cmd, t, t > 0.5, settle=1.0)
    assert [np.count_nonzero(spans == i) for i in (0, 1, 2)] == [500, 300, 0]
    assert t[spans == 1][0] == pytest.approx(3.002)
    error = np.where((spans == 0)[:, None], [3e-3, 4e-3], [0.0, -0.01])
    # weighted by duration: 500 rows with 5 mm/s and 300 rows with 10 mm/s
    assert measures.span_error(error, spans) == pytest.approx((500 * 5e-3 + 300 * 0.01) / 800)
    assert math.isnan(measures.span_error(error, np.full(2000, -1)))


def test_errors_of_both_signs_cancel_within_a_span_only() -> None:
    spans = np.repeat([0, 1], 100)
    error = np.concatenate([np.tile([[0.1], [-0.1]], (50, 1)), np.full((50, 1), 0.1), np.full((50, 1), -0.1)])
    assert measures.span_error(error, spans) == pytest.approx(0.0, abs=1e-15)
    assert measures.span_error(np.repeat([[0.1], [-0.1]], 100, axis=0), spans) == pytest.approx(0.1)
    assert measures.rms(error[:, 0]) == pytest.approx(0.1)


def test_stances_are_counted_without_chatter() -> None:
    flags = np.zeros(500, dtype=np.bool_)
    flags[10:110] = flags[200:300] = flags[400:] = True
    flags[50:53] = False  # 6 ms without force
    flags[150:153] = True  # 6 ms of contact
    assert measures.count_stances(flags) == 3
    assert measures.count_stances(np.ones(100, dtype=np.bool_)) == 1
    assert measures.count_stances(np.zeros(100, dtype=np.bool_)) == 0


def test_torque_share_and_cost_of_transport(model: qd.Model) -> None:
    tau, u = np.zeros((500, model.nj)), np.zeros((500, model.nv))
    tau[:, 3] = -0.5 * model.effort_limit[3]
    assert measures.torque_share(model, tau) == pytest.approx(0.5)
    u[:250, 6 + 3], u[250:, 6 + 3] = -2.0, 2.0  # half of the time the motor brakes, which costs nothing
    work = 0.5 * 0.5 * model.effort_limit[3] * 2.0
    cost = measures.cost_of_transport(model, tau, u, 2.0)
    assert cost == pytest.approx(work / (model.total_mass * 9.81 * 2.0))
    assert math.isnan(measures.cost_of_transport(model, tau, u, 0.05))


def test_a_standing_robot_is_measured() -> None:
    row = run(
        duration=1.6, measure_from=0.5, settle=0.5, events=[{'at': 0.0, 'cmd_vel': [0.3, 0.4, -0.2]}]
    ).row
    assert row['v_error_mean'] == pytest.approx(0.5, abs=2e-3)  # it stands
    assert row['v_error_rms'] == pytest.approx(0.5, abs=2e-3)
    assert row['yaw_error_mean'] == pytest.approx(0.2, abs=2e-3)
    assert row['roll_rms'] < 0.01
    assert row['height_error_mean'] < 2e-3
    assert row['distance'] < 0.01
    assert math.isnan(row['cost_of_transport'])
    assert 0.0 < row['torque_share_max'] < 1.0
    assert 0.0 < row['update_us_p50'] <= row['update_us_p99']


def test_nothing_measured_is_no_value() -> None:
    row = run(duration=0.1, measure_from=5.0).row
    empty = ('v_error_mean', 'v_error_rms', 'yaw_error_mean', 'roll_rms', 'pitch_rms', 'height_error_mean')
    empty += ('slip_per_step', 'torque_share_max', 'update_us_p50', 'update_us_p99', 'cost_of_transport')
    assert [name for name in empty if not math.isnan(row[name])] == []


# ---------------------------------------------------------------- results

NOISY = {
    'truth': {'payload': {'share': {'uniform': [0.0, 0.12]}}, 'friction': 'typical'},
    'simulator': {'sensors': 'typical', 'latency': 0.004, 'mu': {'uniform': [0.5, 0.7]}},
    'faults': {'drop': 0.1, 'stall': [0.02, 0.1]},
    'events': [{'at': 0.1, 'push': {'delta_v': 0.2, 'heading': {'uniform': [0, 6.283]}}}],
    'seeds': {'first': 3, 'count': 2},
}


def same(one: Any, two: Any) -> bool:
    """Whether rows are identical but for the wall clock; NaN equals NaN."""
    return all(repr(one[name]) == repr(two[name]) for name in COLUMNS if name not in WALL_CLOCK)


def test_two_runs_are_bit_identical() -> None:
    one, two, other = run(3, **NOISY), run(3, **NOISY), run(4, **NOISY)
    assert same(one.row, two.row)
    for name in ('t', 'q', 'u', 'tau', 'foot_forces', 'cmd', 'gait', 'contact'):
        assert np.array_equal(getattr(one.traces, name), getattr(two.traces, name)), name
    assert not np.array_equal(one.traces.q, other.traces.q)


@pytest.mark.slow
def test_processes_do_not_change_results(tmp_path: Path) -> None:
    file = ScenarioFile.load(scenario(name='noisy', **NOISY))
    options: dict[str, Any] = {'plots': False, 'controller': Standing}
    found = [run_batch([file], tmp_path / str(jobs), jobs=jobs, **options)[0] for jobs in (1, 2)]
    assert [row['seed'] for row in found[1]] == [3, 4]
    assert all(same(one, two) for one, two in zip(*found, strict=True))
    written = [read_results(tmp_path / name / 'results.csv') for name in ('1', '2')]
    assert all(same(one, two) for one, two in zip(*written, strict=True))
    assert all(same(one, two) for one, two in zip(found[0], written[0], strict=True))
    for name in ('seed_3', 'seed_4'):
        with (
            np.load(tmp_path / '1' / 'noisy' / f'{name}.npz') as a,
            np.load(tmp_path / '2' / 'noisy' / f'{name}.npz') as b,
        ):
            assert a.files == b.files
            assert all(np.array_equal(a[key], b[key]) for key in a.files)


def test_expectations_are_upper_bounds_of_runs_without_a_fall() -> None:
    rows = [
        {'seed': 1, 'fell': 0, 'v_error_mean': 0.02, 'distance': math.nan},
        {'seed': 2, 'fell': 0, 'v_error_mean': 0.04, 'distance': math.nan},
        {'seed': 3, 'fell': 1, 'v_error_mean': 9.0, 'distance': 1.0},
    ]
    assert violations(rows, {'falls': 1, 'v_error_mean': 0.0301}) == []
    assert violations(rows, {'falls': 0}) == ['falls is 1 (seed 3); expected at most 0']
    assert violations(rows, {'v_error_mean': 0.029}) == ['v_error_mean is 0.03; expected at most 0.029']
    assert violations(rows, {'distance': 5}) == [
        'distance has no value in a run without a fall; expected at most 5'
    ]


# ---------------------------------------------------------------- the command

FILE = """\
scenario:
  robot: mini_cheetah
  seeds: {first: 5, count: 2}
  duration: 0.3
  settle: 0.1
  events:
    - {at: 0, gait: trot}
    - {at: 0.05, cmd_vel: [0.1, 0, 0]}
expect: {falls: 0, v_error_mean: BOUND}
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command line with a controller that stands in place of Walker."""
    monkeypatch.setattr(controllers, '_walker', standing)

    def call(bound: float, *options: str, text: str = FILE) -> int:
        file = tmp_path / 'short.yaml'
        file.write_text(text.replace('BOUND', str(bound)))
        return main(['scenario', str(file), '--output', str(tmp_path / 'out'), *options])

    return call


@pytest.mark.slow
def test_the_command_writes_everything(
    command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(0.2, '--bag') == 0
    said = capsys.readouterr().out
    assert 'short: mini_cheetah, impulse contact, 0.3 s' in said
    assert 'all as expected' in said
    out = tmp_path / 'out'
    head, *rows = (out / 'results.csv').read_text().splitlines()
    assert head == (
        'scenario,robot,contact,seed,fell,fall_time,v_error_mean,v_error_rms,yaw_error_mean,roll_rms,pitch_rms,'
        'height_error_mean,slip_per_step,torque_share_max,update_us_p50,update_us_p99,solver_failures,distance,'
        'cost_of_transport'
    )
    assert [row.split(',')[:6] for row in rows] == [
        ['short', 'mini_cheetah', 'impulse', '5', '0', ''],
        ['short', 'mini_cheetah', 'impulse', '6', '0', ''],
    ]
    with np.load(out / 'short' / 'seed_5.npz') as traces:
        shapes = {name: traces[name].shape for name in traces.files}
        assert traces['t'] == pytest.approx(CONTROL_PERIOD * np.arange(1, 151))
        assert set(traces['gait']) == {'trot'}
        assert traces['contact'].all()
    assert shapes == {
        't': (150,),
        'q': (150, 19),
        'u': (150, 18),
        'tau': (150, 12),
        'foot_forces': (150, 4, 3),
        'cmd': (150, 3),
        'gait': (150,),
        'contact': (150, 4),
    }
    pictures = ('overview.png', 'seed_5.png', 'seed_6.png')
    assert all((out / 'short' / name).read_bytes().startswith(b'\x89PNG') for name in pictures)
    assert (out / 'short' / 'seed_6_bag' / 'metadata.yaml').exists()
    assert command(0.2, '--bag', '--seed', '6') == 2  # a bag is not overwritten


def test_the_command_says_what_is_not_as_expected(
    command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(0.01, '--seed', '9', '--quiet', '--no-plots') == 1
    captured = capsys.readouterr()
    assert captured.out == ''
    assert f'error: {tmp_path / "short.yaml"}: v_error_mean is 0.1' in captured.err
    assert 'expected at most 0.01' in captured.err
    assert [row['seed'] for row in read_results(tmp_path / 'out' / 'results.csv')] == [9]


def test_wrong_usage_is_refused(command: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['scenario', 'x.yaml']) == 2
    assert '--output' in capsys.readouterr().err
    assert main(['scenario', str(tmp_path / 'no.yaml'), '--output', str(tmp_path)]) == 2
    assert 'no.yaml: cannot be read' in capsys.readouterr().err
    assert command(0.2, '--jobs', '0') == 2
    assert command(0.2, '--seed', '-1') == 2
    assert command(0.2, text=FILE.replace('gait: trot', 'gait: fly')) == 2
    assert "short.yaml: line 7: scenario.events[0]: gait is 'fly'" in capsys.readouterr().err
    same_name = tmp_path / 'out' / 'short.yaml'
    same_name.write_text(FILE.replace('BOUND', '1'))
    files = [str(tmp_path / 'short.yaml'), str(same_name)]
    assert main(['scenario', *files, '--output', str(tmp_path / 'out')]) == 2
    assert "several scenarios are named 'short'" in capsys.readouterr().err
