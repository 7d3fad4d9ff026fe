# SPDX-License-Identifier: Apache-2.0
"""Logs as real arms write them: encoders with steps, positions that come twice, joints that rest or lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import identification_bags as bags
import identification_data as data
import identified_robots as robots
import numpy as np
import pytest
from identification_bags import Truth, arm_truth, waves
from slow_variants import slow_but

import quad_dynamics as qd
from quad_dynamics.array_types import Floats
from quad_dynamics.cli import main
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.equations.columns import make_columns
from quad_dynamics.identification.equations.noise import fit_noise
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.pipeline import IdentifySettings, identify
from quad_dynamics.identification.recordings.checks import check_forces
from quad_dynamics.identification.recordings.recording import open_source
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.identification.signals.signals import Logs, collect
from quad_dynamics.identification.solvers.cross_validation import is_better
from quad_dynamics.identification.solvers.prior import friction_scales
from quad_dynamics.identification.validation.replay import replay


def npz(path: Path, truth: Truth, **other: Any) -> Path:
    """A table of joints, some of its arrays other than the truth; None leaves one out."""
    names = np.array(truth.model.joint_names)
    arrays = {'time': truth.t, 'position': truth.q, 'velocity': truth.u, 'effort': truth.tau}
    arrays |= {'joint_names': names, **other}
    np.savez(path, **{name: values for name, values in arrays.items() if values is not None})
    return path


def moved(model: Any, joints: Any, seed: int, pose: Any = 0.0, seconds: float = 10.0) -> Truth:
    """A fixed-base arm of which only some joints move, with friction and noise of its torques."""
    t, rng = np.arange(round(200.0 * seconds)) / 200.0, np.random.default_rng(seed)
    q, u, du = np.zeros((3, len(t), model.nj))
    q += np.clip(pose, model.q_min, model.q_max)
    for part, wave in zip((q, u, du), waves(t, len(joints), seed, 1.0), strict=True):
        part[:, joints] += wave
    tau = torques(model, q, u, du) + 0.05 * rng.normal(size=q.shape)
    return Truth(model, t, q, u, du, tau, np.zeros((len(t), 0, 3)))


def torques(model: Any, q: Floats, u: Floats, du: Floats) -> Floats:
    """(n, nj) with friction whose sign is exact."""
    return np.asarray(qd.inverse_dynamics(model, q, u, du) + model.viscous * u + model.coulomb * np.sign(u))


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize('flicker', [0.0, 1e-6], ids=['slow', 'fast'])
def test_a_resting_joint_on_the_border_of_two_steps_of_its_encoder(tmp_path: Path, flicker: float) -> None:
    """It sways by 1 urad, its encoder by 100: velocities are 1/57 of that, and radians all the same."""
    truth, rng = arm_truth(duration=10.0, friction=(0.1, 0.3)), np.random.default_rng(0)
    q, u, du = truth.q.copy(), truth.u.copy(), truth.du.copy()
    w, step = 2.0 * np.pi * 2.0, 1e-4
    q[:, 1] = 0.30005 + 1.1e-6 * np.sin(w * truth.t)
    u[:, 1] = 1.1e-6 * w * np.cos(w * truth.t)
    du[:, 1] = 0.0
    tau = torques(truth.model, q, u, du)
    q[:, 1] = step * np.rint((q[:, 1] + flicker * rng.normal(size=len(q))) / step)
    u[:, 1] += flicker * rng.normal(size=len(q))
    path = npz(tmp_path / 'log.npz', truth, position=q, velocity=u, effort=tau)
    samples, report = collect([open_source(path, truth.model)], truth.model, SignalSettings(cutoff=5.0))
    use = samples.layout.get(samples.all(), 'use')
    assert not use[:, 1].any()
    assert use[:, 0].mean() > 0.9
    assert '100 % of joint2' in '\n'.join(report.text())


@pytest.mark.parametrize(
    'velocity',
    [True, False],
    ids=['velocity', 'no_velocity'],
)
def test_positions_that_come_twice_are_no_impacts(tmp_path: Path, velocity: bool) -> None:
    """6 % of the messages hold the positions of the one before."""
    truth = arm_truth(duration=10.0, rate=1000.0, friction=(0.1, 0.3))
    twice = 1 + np.flatnonzero(np.random.default_rng(0).random(len(truth.t) - 1) < 0.06)
    q = truth.q.copy()
    q[twice] = truth.q[twice - 1]
    path = npz(tmp_path / 'log.npz', truth, position=q, velocity=truth.u if velocity else None)
    samples, report = collect([open_source(path, truth.model)], truth.model)
    assert report.sources[0].impacts == 0
    assert report.sources[0].counts.segments == 1
    assert samples.layout.get(samples.all(), 'use').mean() > 0.9


@pytest.mark.parametrize('velocity', [True, False], ids=['velocity', 'no_velocity'])
def test_a_leg_that_is_hit_is_an_impact(tmp_path: Path, velocity: bool) -> None:
    """At 2 s the velocity of one joint jumps by 2 rad/s; neither forces nor odometry tell."""
    truth = bags.quadruped_truth(duration=4.0)
    q, u, after = truth.q[:, 7:].copy(), truth.u[:, 6:].copy(), np.maximum(truth.t - 2.0, 0.0)
    q[:, 4] += 2.0 * after * np.exp(-after / 0.1)
    u[:, 4] += np.where(after > 0.0, 2.0 * (1.0 - after / 0.1) * np.exp(-after / 0.1), 0.0)
    states = bags.joint_states(truth.stamps, truth.model.joint_names, q, u if velocity else None, truth.tau)
    path = bags.write(tmp_path / 'bag', states + bags.imu(truth))
    samples, report = collect([open_source(path, truth.model)], truth.model)
    time = samples.layout.get(samples.all(), 'time')
    assert 1 <= report.sources[0].impacts <= 2  # the first and the last row of it
    assert np.abs(time - 2.0).min() > 0.5 / report.cutoff
    assert report.sources[0].counts.segments == 2


def test_delays_are_moved_by_what_a_fit_finds_left(tmp_path: Path) -> None:
    truth = arm_truth(duration=5.0)
    path = npz(tmp_path / 'log.npz', truth)

    def logs(**settings: Any) -> Logs:
        return Logs([open_source(path, truth.model)], truth.model, SignalSettings(**settings))

    delays = logs().find_delays(10.0)
    moved = delays.moved(1e-3, 0.0)
    assert moved.torque.value == pytest.approx(delays.torque.value + 1e-3)
    assert moved.force is delays.force
    assert delays.moved(5e-5, 0.0) == delays  # too little to go on
    given = logs(delay=2e-3)
    known = given.find_delays(10.0)
    assert not known.may_move
    assert known.moved(1e-3, 1e-3) == known
    assert given.samples(10.0, known)[1].delay.value == 2e-3


def test_samples_with_another_cutoff_need_no_second_reading(tmp_path: Path) -> None:
    truth = arm_truth(duration=5.0)
    source = open_source(npz(tmp_path / 'log.npz', truth), truth.model)
    logs = Logs([source], truth.model)
    source.chunks = None  # type: ignore[method-assign, assignment]
    delays = logs.find_delays(10.0)
    for cutoff in (6.0, 12.0):
        samples, report = logs.samples(cutoff, delays)
        same, _ = collect(
            [open_source(tmp_path / 'log.npz', truth.model)],
            truth.model,
            SignalSettings(cutoff=cutoff, delay=delays.torque.value),
        )
        assert report.cutoff == cutoff
        np.testing.assert_array_equal(samples.all(), same.all())


def test_how_far_a_recording_is_read_is_told(tmp_path: Path) -> None:
    truth, told = arm_truth(duration=25.0, rate=100.0), []
    path = npz(tmp_path / 'log.npz', truth)
    collect([open_source(path, truth.model)], truth.model, tell=told.append)
    assert [text.split(' s of ')[0] for text in told] == ['10', '20', '24']  # all but the last half second
    assert all(text.endswith(str(path)) for text in told)


@pytest.mark.parametrize('scale', [(-1.0,), (14.0, -11.0)], ids=['one', 'each'])
def test_efforts_of_other_units_or_sign_are_scaled(tmp_path: Path, scale: tuple[float, ...]) -> None:
    truth = arm_truth(duration=10.0, friction=(0.1, 0.3))
    right = npz(tmp_path / 'right.npz', truth)
    raw = npz(tmp_path / 'raw.npz', truth, effort=truth.tau / np.array(scale))
    wanted = collect([open_source(right, truth.model)], truth.model)[0].all()
    samples, report = collect([open_source(raw, truth.model, Topics(effort_scale=scale))], truth.model)
    np.testing.assert_allclose(samples.all(), wanted, atol=1e-9)
    each = '-1' if len(scale) == 1 else 'joint1: 14, joint2: -11'  # in the order of the joints
    assert f'efforts are multiplied by {each}' in report.sources[0].notes
    with pytest.raises(ArgumentError, match='effort_scale has 3 numbers; expected 1, or one for each of 2'):
        collect([open_source(raw, truth.model, Topics(effort_scale=(1.0, 2.0, 3.0)))], truth.model)


def test_efforts_of_the_other_sign_are_refused(tmp_path: Path) -> None:
    """Even where the friction of the model is ten times too large."""
    truth = arm_truth(duration=10.0, friction=(0.1, 0.3))
    path = npz(tmp_path / 'log.npz', truth, effort=-truth.tau)
    model = truth.model.with_friction([5.0, 5.0], [3.0, 3.0])
    with pytest.raises(ArgumentError, match=r'log\.npz: efforts have the opposite sign.*effort_scale=-1'):
        identify([path], model, IdentifySettings(hold_out=False))
    turned = IdentifySettings(hold_out=False, topics=Topics(effort_scale=(-1.0,)))
    assert identify([path], model, turned).solution.part('coulomb') == pytest.approx([0.3, 0.3], rel=0.2)


# ---------------------------------------------------------------- noise and priors


def test_a_joint_of_few_rows_keeps_the_noise_that_was_assumed() -> None:
    """Ten rows that happen to fit say nothing of its noise, that of the other joint is found."""
    model = data.robot('two_link_arm')
    made, x = data.make_samples(model, seed=1, noise=data.Levels(tau=0.05))
    rows, get = made.all(), made.layout.get
    exact, _ = data.make_samples(model, seed=1)
    get(rows, 'tau')[:, 0] = get(exact.all(), 'tau')[:, 0]
    get(rows, 'use')[:, 0] = np.arange(len(rows)) < 10
    samples = Samples(model)
    samples.append(rows)
    noise = fit_noise(data.equations_of(samples, make_columns(model), data.QUIET, floor=0.3), x)
    assert noise.joints[0] == 0.3
    assert noise.joints[1] == pytest.approx(0.05, rel=0.1)  # 2,000 rows: 1.6 %


@pytest.mark.parametrize('error', [3.0, 300.0])
def test_a_few_samples_that_are_all_wrong_do_not_raise_the_noise(error: float) -> None:
    """One in a hundred: something was touched that is not known."""
    model = data.robot('two_link_arm')
    made, x = data.make_samples(model, seed=1, noise=data.Levels(tau=0.05))
    rows = made.all()
    made.layout.get(rows, 'tau')[::100, 1] += error
    samples = Samples(model)
    samples.append(rows)
    noise = fit_noise(data.equations_of(samples, make_columns(model), data.QUIET, floor=0.3), x)
    assert noise.joints == pytest.approx([0.05, 0.05], rel=0.15)


def test_the_rotor_of_a_tiny_flange_is_no_tiny_rotor() -> None:
    """What the last joint of a UR5 turns is a hundredth of what others do; its drive is like theirs."""
    model = data.robot('ur5')
    flange = np.repeat([1.0, 1e-3], [10 * (model.nb - 1), 10])
    for each in (model, model.with_pi(model.pi * flange)):
        columns = make_columns(each)
        rotor = friction_scales(columns)[columns.slices['rotor']]
        assert rotor[-1] > 0.1 * np.median(rotor)
        assert rotor[-1] < rotor.max()


# ---------------------------------------------------------------- cross-validation


def test_one_stretch_that_is_hard_to_predict_does_not_make_a_gain_unsure() -> None:
    """Errors of six stretches of a real log, inertia as it was and free: all fall, by 1.5 to 13 times."""
    old = np.array([1.18, 2.67, 10.41, 64.39, 44.44, 6.05])
    new = np.array([0.24, 1.84, 3.55, 5.30, 3.33, 2.06])
    assert is_better(new, old, 2.0)
    assert not is_better(old, new, 2.0)
    chance = np.array([0.97, 1.04, 0.99, 1.02, 0.95, 1.01])
    assert not is_better(chance * old, old, 2.0)


@pytest.mark.parametrize(
    ('carried', 'message'), [(0.09, 'foot forces carry .* or it fell'), (-0.9, 'pull down')]
)
def test_a_robot_that_its_feet_do_not_carry_is_refused(tmp_path: Path, carried: float, message: str) -> None:
    truth = arm_truth(duration=2.0)
    source = open_source(npz(tmp_path / 'log.npz', truth), truth.model)
    with pytest.raises(ArgumentError, match=message):
        check_forces(source, truth.model, carried)


@pytest.mark.parametrize(
    ('joint', 'seed'), slow_but([('wrist_1_joint', 16)], [('wrist_1_joint', 16), ('wrist_2_joint', 14)])
)
def test_one_moving_wrist_leaves_all_inertia_as_it_was(tmp_path: Path, joint: str, seed: int) -> None:
    """Only friction is wrong. Inertia that explains noise a little better would ruin other motions."""
    model = data.robot('ur5')
    true = data.changed(model, seed, amount=0.0)
    pose = [0.2, -1.0, 1.2, -0.6, 0.4, 0.1]
    log = moved(true, [model.joint_names.index(joint)], seed, pose)
    rng = np.random.default_rng(seed)
    path = npz(
        tmp_path / 'log.npz',
        log,
        position=log.q + 2e-5 * rng.normal(size=log.q.shape),
        velocity=log.u + 1e-3 * rng.normal(size=log.q.shape),
    )
    settings = IdentifySettings(hold_out=False, signals=SignalSettings(delay=0.0))
    found = identify([path], model, settings).solution
    np.testing.assert_array_equal(found.part('pi'), model.pi)
    np.testing.assert_array_equal(found.part('rotor'), model.rotor_inertia)
    motion = data.smooth_motion(model, np.arange(0.0, 10.0, 0.01), rng)
    before, after = (
        np.sqrt(np.mean((torques(each, *motion) - torques(true, *motion)) ** 2, axis=0))
        for each in (model, found.model())
    )
    assert np.all(after <= 1.001 * before)
    moving = model.joint_names.index(joint)
    assert after[moving] < 0.1 * before[moving]


# ---------------------------------------------------------------- simulated beside the log


def test_replay_of_joints_that_friction_stops_between_two_rows() -> None:
    """Viscous friction over inertia is 600 / s, rows are 10 ms apart: the truth stays near the log."""
    model = data.robot('ur5').with_friction(np.full(6, 10.0), np.full(6, 0.3))
    samples, x = data.make_samples(model, seed=1, seconds=4.0, noise=data.TYPICAL)
    q = samples.layout.get(samples.all(), 'q')
    rates = np.linalg.eigvals(np.linalg.inv(qd.mass_matrix(model, q)) * 10.0)
    assert np.abs(rates).max(axis=1).min() * 0.01 > 5.0
    found = replay(data.equations_of(samples, make_columns(model), data.TYPICAL), x, x)
    assert found is not None
    assert found.windows.min() > 10
    # Noise of 0.05 N m against 10 N m s/rad moves a joint by 5 mrad/s, in 10 ms, ten times: 0.2 mrad.
    assert found.position[1].max() < 1e-3


# ---------------------------------------------------------------- joints that are not recorded

_FINGER = """<link name="{0}"><inertial><mass value="0.05"/>
    <inertia ixx="1e-5" ixy="0" ixz="0" iyy="1e-5" iyz="0" izz="1e-5"/></inertial></link>
  <joint name="{0}_joint" type="prismatic"><origin xyz="0 0 -0.25"/><parent link="lower"/><child link="{0}"/>
    <axis xyz="0 1 0"/><limit lower="{1}" upper="0.04" effort="20" velocity="0.2"/></joint>
"""
GRIPPER_ARM = robots.TURNED_ARM.replace(
    '</robot>', _FINGER.format('left_finger', '0') + _FINGER.format('right_finger', '0.01') + '</robot>'
)


@pytest.fixture(scope='module')
def gripper_logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Path]]:
    """An arm, and three logs that know nothing of its fingers."""
    model = robots.load(GRIPPER_ARM, floating_base=False)
    assert model.joint_names[2:] == ('left_finger_joint', 'right_finger_joint')
    truth = moved(model.with_friction([0.3, 0.2, 0.0, 0.0], [0.2, 0.3, 0.0, 0.0]), [0, 1], 0)
    place = tmp_path_factory.mktemp('gripper')
    names, q, u, tau = model.joint_names[:2], truth.q[:, :2], truth.u[:, :2], truth.tau[:, :2]
    logs = {'npz': npz(place / 'a.npz', truth, joint_names=names, position=q, velocity=u, effort=tau)}
    logs['bag'] = bags.write(place / 'bag', bags.joint_states(truth.stamps, names, q, u, tau))
    logs['csv'] = place / 'a.csv'
    header = ','.join(['time', *(f'{n}.{f}' for f in ('position', 'velocity', 'effort') for n in names)])
    table = np.column_stack([truth.t, q, u, tau])
    np.savetxt(logs['csv'], table, delimiter=',', header=header, comments='', fmt='%.17g')
    return model, logs


KINDS = pytest.mark.parametrize('kind', ['npz', 'csv', 'bag'])


@pytest.mark.parametrize('kind', ['npz', 'csv', 'bag'])
def test_joints_that_lack_are_named_with_what_to_do(gripper_logs: Any, kind: str) -> None:
    model, logs = gripper_logs
    with pytest.raises(ArgumentError, match=r'lacks .*left_finger_joint.*right_finger_joint.*--still'):
        open_source(logs[kind], model)
    with pytest.raises(ArgumentError, match=r'lacks .*right_finger_joint.*--still') as caught:
        open_source(logs[kind], model, Topics(still=('left_*',)))
    assert 'left_finger' not in str(caught.value)


@KINDS
def test_a_word_that_fits_no_joint_is_refused(gripper_logs: Any, kind: str) -> None:
    model, logs = gripper_logs
    with pytest.raises(ArgumentError, match=r"still is 'thumb\*'; expected a joint of \['shoulder', 'elbow'"):
        open_source(logs[kind], model, Topics(still=('*finger*', 'thumb*')))


@KINDS
def test_still_joints_are_at_rest_as_near_to_zero_as_they_can_be(gripper_logs: Any, kind: str) -> None:
    model, logs = gripper_logs
    source = open_source(logs[kind], model, Topics(still=('*finger*',)))
    samples, report = collect([source], model)
    rows, get = samples.all(), samples.layout.get
    np.testing.assert_allclose(get(rows, 'q')[:, 2:], [[0.0, 0.01]] * len(rows), atol=1e-12)
    np.testing.assert_allclose(get(rows, 'u')[:, 2:], 0.0, atol=1e-12)
    assert get(rows, 'use')[:, :2].mean() > 0.9
    assert not get(rows, 'use')[:, 2:].any()
    fingers = 'left_finger_joint, right_finger_joint'
    assert f'joints that are not recorded are taken to be at rest: {fingers}' in report.sources[0].notes


@pytest.mark.slow
def test_an_arm_without_its_gripper_is_identified(gripper_logs: Any, tmp_path: Path) -> None:
    _, logs = gripper_logs
    urdf, out = tmp_path / 'arm.urdf', tmp_path / 'out'
    urdf.write_text(GRIPPER_ARM)
    command = ['identify', str(logs['npz']), '--robot', str(urdf), '--fixed-base', '--quiet']
    command += ['--no-validation', '--output', str(out)]
    assert main(command) == 1
    assert not out.exists()
    assert main([*command, '--still', '*finger*']) == 0
    for name in ('parameters.yaml', 'report.html'):
        assert 'taken to be at rest: left_finger_joint' in (out / name).read_text()
    found = robots.load(out / 'turned_arm.urdf', floating_base=False)
    np.testing.assert_allclose(found.viscous, [0.3, 0.2, 0.0, 0.0], rtol=0.05)
    np.testing.assert_allclose(found.coulomb, [0.2, 0.3, 0.0, 0.0], rtol=0.05)
