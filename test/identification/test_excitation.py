# SPDX-License-Identifier: Apache-2.0
"""Designed motions: they rest at their ends, keep all limits, beat naive ones, and can be followed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import ARMS, QUADRUPEDS, load
from control_loop import drive
from reference_pinocchio import PinocchioReference, robots_folder
from scipy.interpolate import CubicSpline
from scipy.optimize import approx_fprime
from slow_variants import slow_but

from quad_dynamics.api.kinematics import difference, frame_pose, frame_velocity
from quad_dynamics.cli import main
from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.control.contact_forces import torques_and_forces
from quad_dynamics.control.guard import Guard
from quad_dynamics.control.modes.joint_targets import read_targets
from quad_dynamics.control.trajectory import JointTrajectory
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation import swing
from quad_dynamics.identification.excitation.descent import descend
from quad_dynamics.identification.excitation.excitation import choose_motion, design
from quad_dynamics.identification.excitation.excitation_bag import (
    Trajectory,
    read_trajectory,
    write_trajectory,
)
from quad_dynamics.identification.excitation.excitation_information import Information, judge
from quad_dynamics.identification.excitation.excitation_limits import Limits
from quad_dynamics.identification.excitation.excitation_motion import HeldBase, Standing
from quad_dynamics.identification.excitation.excitation_result import Excitation, std_ratio
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.identification.excitation.excitation_shapes import Capsules, segment_distance
from quad_dynamics.identification.excitation.fourier import Fourier, chirps, sines
from quad_dynamics.simulation.simulator import Simulator

pytestmark = pytest.mark.filterwarnings('ignore::quad_dynamics.errors.ModelWarning')

FAST = ExcitationSettings(duration=10.0, starts=4, swing=2.0)


def model_of(name: str) -> Any:
    if name in ARMS or name in QUADRUPEDS:
        return load(robots_folder() / (ARMS | QUADRUPEDS)[name])
    return load(name)


@functools.cache
def designed(name: str, leg: str = '', criterion: str = 'd-optimal') -> Excitation:
    model = load(name, floating_base=False) if leg else model_of(name)
    # the search takes longest where a robot stands: there the slow tests have all steps
    steps = 8 if model.floating_base else FAST.iterations
    return design(choose_motion(model, leg), FAST.replace(criterion=criterion, iterations=steps))


# ---------------------------------------------------------------- series


@pytest.mark.parametrize('harmonics', [2, 3, 8])
def test_series_rest_at_the_ends_of_each_period(harmonics: int) -> None:
    fourier = Fourier(3.0, harmonics)
    assert fourier.size == 2 * harmonics + 1 - 3
    ends = fourier.basis(np.array([0.0, 3.0, 6.0]))
    assert np.abs(ends).max() < 1e-9  # rounding of k^2 w^2
    assert np.linalg.matrix_rank(fourier.basis(np.linspace(0.0, 3.0, 100))[0]) == fourier.size


def test_derivatives_of_series() -> None:
    time, step = np.linspace(0.0, 4.0, 57), 1e-5
    fourier = Fourier(4.0, 5)
    after, here, before = (fourier.basis(time + shift) for shift in (step, 0.0, -step))
    for order in (0, 1):  # central differences: error of step^2 times the third derivative
        assert np.allclose((after - before)[order] / (2.0 * step), here[order + 1], atol=1e-6)


@pytest.mark.parametrize('make', [sines, chirps])
def test_naive_motions_rest_at_their_ends(make: Any) -> None:
    time = np.arange(1001) / 100.0
    position, velocity, acceleration = make(time, 3, 5.0, 6)
    assert np.abs([x[[0, -1]] for x in (position, velocity)]).max() < 1e-3  # differences of a step of 10 ms
    assert np.abs(position).max() <= 1.0
    assert np.abs(np.gradient(velocity, 0.01, axis=0) - acceleration).max() < 1e-9
    assert np.linalg.matrix_rank(position) == 3


# ---------------------------------------------------------------- kinematics


@pytest.mark.parametrize('name', ['mini_cheetah', 'go2', 'anymal_c'])
def test_standing_robots_keep_their_feet(name: str) -> None:
    """Against the kinematics of the library: places, velocities and accelerations belong together."""
    model = model_of(name)
    motion, fourier = Standing(model), Fourier(5.0, 3)
    time = np.linspace(0.0, 5.0, 1001)
    z = 0.15 * np.random.default_rng(3).normal(size=(fourier.size, 6))
    s, ds, dds = fourier.basis(time) @ z * motion.scale
    states = motion.states(s, ds, dds)
    assert states.miss.max() < 1e-9
    radius = {point.link: point.radius for point in model.contact_points}
    for foot in model.foot_names:
        motions = frame_velocity(model, states.q, states.u, foot)
        if name == 'mini_cheetah':  # points, at the origins of their frames
            assert np.abs(frame_pose(model, states.q, foot)[1][:, 2]).max() < 1e-9
            assert np.abs(motions[:, :3]).max() < 1e-9
        else:
            assert radius[foot] > 0.01
    velocity = np.array(
        [difference(model, *pair) / 0.005 for pair in zip(states.q, states.q[1:], strict=False)]
    )
    between = 0.5 * (states.u[1:] + states.u[:-1])
    # Round feet that turn about two axes end up a little off, to second order in the angles.
    assert (
        np.abs(velocity - between).max() < (1e-4 if name == 'mini_cheetah' else 2e-3) * np.abs(between).max()
    )
    change = np.gradient(states.u, 0.005, axis=0)
    assert np.abs(change - states.du)[2:-2].max() < 2e-3 * np.abs(states.du).max()


def test_held_base_moves_one_leg() -> None:
    model = load('mini_cheetah', floating_base=False)
    motion = choose_motion(model, 'RR')
    assert isinstance(motion, HeldBase)
    moved = motion.states(np.ones((1, 3)), np.ones((1, 3)), np.ones((1, 3)))
    assert [model.joint_names[i] for i in np.flatnonzero(moved.u[0])] == [
        'RR_hip_joint',
        'RR_thigh_joint',
        'RR_calf_joint',
    ]
    with pytest.raises(ArgumentError, match="has no leg 'XX'; expected one of FL, FR, RL, RR"):
        choose_motion(model, 'XX')
    with pytest.raises(ArgumentError, match='has a floating base; expected a fixed one'):
        choose_motion(load('mini_cheetah'), 'FL')
    with pytest.raises(ArgumentError, match='cannot stand on three feet'):
        Standing(load('two_link_arm'))


# ---------------------------------------------------------------- collisions


def test_distance_of_segments() -> None:
    rng = np.random.default_rng(0)
    a0, a1, b0, b1 = rng.normal(size=(4, 200, 3))
    share = np.linspace(0.0, 1.0, 101)[:, None]
    first, second = a0[:, None] + share * (a1 - a0)[:, None], b0[:, None] + share * (b1 - b0)[:, None]
    all_pairs = np.linalg.norm(first[:, :, None] - second[:, None], axis=-1).min(axis=(1, 2))
    exact = segment_distance(a0, a1, b0, b1)
    # a grid finds no less than the truth, and little more: half a step of both, squared
    assert (all_pairs - exact > -1e-12).all()
    assert (all_pairs - exact).max() < 0.02
    assert np.allclose(segment_distance(a0, a0, b0, b0), np.linalg.norm(a0 - b0, axis=1))
    assert np.allclose(segment_distance(a0, a1, a0 + 2.0, a1 + 2.0), _parallel(a0, a1), atol=1e-9)


def _parallel(a0: Any, a1: Any) -> Any:
    """Distance of segments that were moved by (2, 2, 2): a grid on both is exact at the best pair's ends."""
    share = np.linspace(0.0, 1.0, 2001)[:, None]
    near = a0[:, None] + share * (a1 - a0)[:, None]
    ends = [np.linalg.norm(near - (end + 2.0)[:, None], axis=-1).min(axis=1) for end in (a0, a1)]
    back = [np.linalg.norm(near + 2.0 - end[:, None], axis=-1).min(axis=1) for end in (a0, a1)]
    direction = (a1 - a0) / np.linalg.norm(a1 - a0, axis=1, keepdims=True)
    along = np.einsum('ni,i->n', direction, np.full(3, 2.0))
    line = np.sqrt(12.0 - along**2)
    inside = np.abs(along) <= np.linalg.norm(a1 - a0, axis=1)
    return np.where(inside, line, np.min([*ends, *back], axis=0))


def test_legs_that_cross_are_found() -> None:
    model = load('mini_cheetah')
    rest = np.array(model.standing)
    capsules = Capsules(model, rest, 0.02, 0.0)
    assert capsules.left_out == []
    near, ground = capsules.gaps(rest[None])
    assert (near >= 0.0).all()
    assert (ground >= 0.0).all()
    crossed = rest.copy()
    for leg, turn in (('FL', -0.9), ('FR', 0.9)):
        crossed[7 + model.joint_names.index(f'{leg}_hip_joint')] = turn
    assert capsules.gaps(crossed[None])[0].min() < 0.0
    low = rest.copy()
    low[2] = 0.04
    assert capsules.gaps(low[None])[1].min() < 0.0


# ---------------------------------------------------------------- information


@pytest.mark.parametrize('criterion', ['d-optimal', 'condition'])
def test_derivative_of_what_is_judged(criterion: str) -> None:
    rng = np.random.default_rng(1)
    B = rng.normal(size=(30, 5)) * np.array([1.0, 3.0, 0.2, 10.0, 1.0])
    A = B.T @ B
    G = judge(A, criterion)[1]
    change = rng.normal(size=(5, 5))
    change = (change + change.T) * np.sqrt(np.outer(np.diag(A), np.diag(A)))

    def along(step: Any) -> float:
        return judge(A + float(step[0]) * change, criterion)[0]

    assert np.allclose(approx_fprime(np.zeros(1), along, 1e-7)[0], np.sum(G * change), rtol=1e-4)


@pytest.mark.parametrize(('name', 'leg'), [('mini_cheetah_leg', ''), ('ur5', ''), ('mini_cheetah', 'FL')])
def test_number_of_base_parameters(name: str, leg: str) -> None:
    """Against the rank of Pinocchio's regressor at random states, with friction and offsets of each joint."""
    model = load(name, floating_base=False) if leg else model_of(name)
    motion = choose_motion(model, leg)
    found = Information(motion, 0)
    text = model.to_urdf()
    reference = PinocchioReference(text, False, model.joint_names)
    rng = np.random.default_rng(5)
    rows = []
    own = motion.joints
    for _ in range(60):
        q, u, du = motion.rest.copy(), np.zeros(model.nv), np.zeros(model.nv)
        q[own] += rng.normal(size=len(own))
        u[own], du[own] = rng.normal(size=(2, len(own)))
        rows.append(reference.regressor(q, u, du, model.body_names)[own])
    stacked = np.concatenate(rows)
    stacked = stacked[:, np.linalg.norm(stacked, axis=0) > 1e-9]
    stacked /= np.linalg.norm(stacked, axis=0)
    inertial = np.linalg.matrix_rank(stacked, tol=1e-6)
    assert len(found.base) == inertial + 3 * len(own)


def test_descent_stays_inside() -> None:
    """Rosenbrock's valley with its minimum (1, 1) on the far side of x < 0.5: the best is at the wall."""

    def value(x: Any) -> float:
        if x[0] >= 0.5:
            return np.inf
        return float(100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2 - 1e-4 * np.log(0.5 - x[0]))

    def gradient(x: Any) -> Any:
        assert x[0] < 0.5
        a = x[1] - x[0] ** 2
        return np.array([-400.0 * a * x[0] - 2.0 * (1.0 - x[0]) + 1e-4 / (0.5 - x[0]), 200.0 * a])

    found = descend(value, gradient, np.array([-1.0, 1.0]), 300, 0.5)
    assert np.allclose(found, [0.5, 0.25], atol=1e-3)


# ---------------------------------------------------------------- designs


@pytest.mark.parametrize('name', ['mini_cheetah_leg', 'two_link_arm', 'ur5'])
def test_designed_motion_says_more_than_naive(name: str) -> None:
    found = designed(name)
    assert found.beats_naive
    for other in found.naive:
        assert found.best.quality.log_det > other.quality.log_det
        assert std_ratio(found.best.quality, other.quality) < 1.0


@pytest.mark.parametrize('name', ['mini_cheetah_leg', 'ur5'])
def test_designed_condition_is_smaller(name: str) -> None:
    found = designed(name, criterion='condition')
    assert all(found.best.quality.condition < other.quality.condition for other in found.naive)
    assert found.best.quality.condition < designed(name).best.quality.condition


@pytest.mark.slow
@pytest.mark.parametrize('name', ['ur5', 'panda'])
def test_default_design_beats_naive_motion(name: str) -> None:
    assert design(choose_motion(model_of(name)), ExcitationSettings()).beats_naive


def test_limits_are_kept_by_pinocchio() -> None:
    found = designed('ur5')
    model = found.model
    reference = PinocchioReference(robots_folder() / ARMS['ur5'], False, model.joint_names)
    assert (found.position > model.q_min).all()
    assert (found.position < model.q_max).all()
    assert (np.abs(found.velocity) <= FAST.share * model.velocity_limit).all()
    states = (found.position, found.velocity, found.acceleration)
    torque = np.array([reference.inverse_dynamics(*state) for state in zip(*states, strict=True)])
    torque += model.viscous * found.velocity + model.coulomb * np.sign(found.velocity)
    assert (np.abs(torque) <= FAST.share * model.effort_limit * (1.0 + 1e-9)).all()
    # it begins and ends at rest
    assert np.abs(found.velocity[[0, -1]]).max() < 1e-9
    assert np.abs(found.acceleration[[0, -1]]).max() < 1e-9
    assert np.array_equal(np.round(found.position[0], 9), np.round(found.position[-1], 9))


def test_same_seed_same_motion() -> None:
    motion = choose_motion(load('mini_cheetah_leg'))
    one, two = (design(motion, FAST.replace(iterations=4)) for _ in range(2))
    other = design(motion, FAST.replace(iterations=4, seed=1))
    assert one.position.tobytes() == two.position.tobytes()
    assert one.position.tobytes() != other.position.tobytes()


def test_a_plane_is_not_touched() -> None:
    motion = choose_motion(load('mini_cheetah_leg'))
    height = float(frame_pose(motion.model, motion.rest, 'FL_foot')[1][2]) - 0.05
    found = design(motion, FAST.replace(iterations=4), ground=height)
    assert frame_pose(found.model, found.position, 'FL_foot')[1][:, 2].min() > height
    limits = Limits(motion, FAST, height)
    assert limits.worst(found.best.states)[1] <= 0.0


# ---------------------------------------------------------------- swings


@pytest.mark.slow
def test_swings_belong_together() -> None:
    """Positions, velocities and accelerations, feet on the ground, and what a follower makes of them."""
    found = designed('mini_cheetah')
    model, states = found.model, found.best.states
    assert found.lifted == ('FL', 'FR', 'RL', 'RR')
    assert found.notes == ()
    rest = np.array(model.standing)
    assert np.abs(states.q[[0, -1]] - rest).max() < 1e-9
    assert np.abs([states.u[-1], states.du[-1]]).max() < 1e-9
    velocity = np.array([difference(model, *pair) for pair in zip(states.q, states.q[1:], strict=False)])
    between = 0.5 * (states.u[1:] + states.u[:-1])
    assert np.abs(100.0 * velocity - between).max() < 5e-3 * np.abs(between).max()
    changes = np.diff(states.u, axis=0) * 100.0 - 0.5 * (states.du[1:] + states.du[:-1])
    assert np.abs(changes).max() < 0.05 * np.abs(states.du).max()
    assert (states.down.sum(axis=1) >= 3).all()
    places = [frame_pose(model, rest, foot)[1] for foot in model.foot_names]
    for i, foot in enumerate(model.foot_names):
        down = states.down[:, i]
        assert (~down).sum() == round(100 * (FAST.swing + 2 * 0.8))
        pressed = np.abs(frame_pose(model, states.q, foot)[1][down] - places[i])
        assert pressed.max() < 0.031 * motion_length(model)
        assert np.median(pressed) < 1e-9
    follower = JointTrajectory(
        found.time, found.position, found.velocity, found.acceleration, rest[7:], 0 * rest[7:]
    )
    times = np.arange(len(states.q)) / 100.0
    missed = np.abs([follower.sample(t)[0] for t in times] - states.q[:, 7:])
    assert missed.max() < 1e-4


def motion_length(model: Any) -> float:
    return Standing(model).length


@pytest.mark.slow
def test_swings_keep_limits_by_the_forces_of_the_controller() -> None:
    """Forces and torques by the laws of control, which know nothing of designs."""
    found = designed('mini_cheetah')
    model, states = found.model, found.best.states
    weight = model.total_mass * 9.81
    up = np.flatnonzero(~states.down.all(axis=1))
    lowest = np.array([frame_pose(model, states.q, foot)[1][:, 2] for foot in model.foot_names]).T
    for k in up[::4]:
        q, u, du = states.q[k], states.u[k], states.du[k]
        feet = np.flatnonzero(states.down[k])
        torque, forces = torques_and_forces(model, q, u, du, feet.tolist(), 5.0)
        forces = forces[feet]
        assert (np.linalg.norm(forces[:, :2], axis=1) <= FAST.mu * forces[:, 2] + 1e-9).all()
        assert (forces[:, 2] > 0.1 * weight / 3.0 - 1e-9).all()
        torque += model.viscous * u[6:]
        torque += model.coulomb * np.clip(u[6:] / 0.05, -1.0, 1.0)
        assert (np.abs(torque) <= FAST.share * model.effort_limit).all()
        assert (np.abs(u[6:]) <= FAST.share * model.velocity_limit).all()
        assert ((q[7:] > model.q_min) & (q[7:] < model.q_max)).all()
        assert lowest[k, ~states.down[k]].min() > -0.031 * motion_length(model)
    swinging = ~states.down & (lowest > 0.04 * motion_length(model))
    assert swinging.sum() > 400 * FAST.swing  # four legs, 100 samples each second


@pytest.mark.slow
def test_swings_say_more_about_friction() -> None:
    found = designed('mini_cheetah')
    names = found.best.quality.names
    viscous = [i for i, name in enumerate(names) if name.endswith('.viscous')]
    assert len(viscous) == 12
    ratio = found.best.quality.std[viscous] / found.sway.quality.std[viscous]
    assert (ratio < 0.7).all()
    # the sway alone, as long as all of it, would have 0.55
    assert np.exp(np.log(ratio).mean()) < 0.25
    assert found.best.quality.log_det > found.sway.quality.log_det + 100.0
    sway = len(found.sway.states.q)
    fast = np.abs(found.best.states.u[sway:, 6:]).max(axis=0)
    assert (fast > 2.0).all()


def quick_swings(monkeypatch: pytest.MonkeyPatch, settings: ExcitationSettings) -> swing.Swings:
    monkeypatch.setattr(swing, 'LEG_ITERATIONS', 1)
    monkeypatch.setattr(swing, '_STARTS', 2)
    motion = Standing(load('mini_cheetah'))
    capsules = Limits(motion, settings).capsules
    return swing.swing_legs(motion, settings, 100.0, capsules, lambda: None)


@pytest.mark.slow
def test_legs_that_cannot_be_lifted_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    full = quick_swings(monkeypatch, ExcitationSettings(duration=29.0, rate=100.0, swing=1.0))
    assert full.parts == []
    assert full.notes[0] == 'FL stays on the ground: the trajectory would have more than 3000 points'
    monkeypatch.setattr(swing, '_MARGIN', 1.0)
    small = ExcitationSettings(duration=2.0, period=2.0, harmonics=2, starts=1, iterations=1)
    found = design(Standing(load('mini_cheetah')), small)
    assert found.lifted == ()
    assert found.best is found.sway
    assert found.time[-1] == 2.0
    assert len(found.notes) == 4
    assert found.notes[3].startswith('RR stays on the ground: there is no place far enough inside')


@pytest.mark.slow
def test_same_seed_same_swings(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, other = (
        quick_swings(monkeypatch, FAST.replace(swing=1.0, seed=seed)).parts for seed in (0, 0, 1)
    )
    for a, b in zip(one, two, strict=True):
        assert a.q.tobytes() == b.q.tobytes()
    assert other[2].q.tobytes() != one[2].q.tobytes()


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(ArgumentError, match='at least one period of 5 s'):
        ExcitationSettings(duration=3.0)
    with pytest.raises(ArgumentError, match='expected at most 3000, which is what force_node takes'):
        ExcitationSettings(duration=500.0)
    with pytest.raises(ArgumentError, match=r'swing is 0.5 s; expected 0, or at least 1 s'):
        ExcitationSettings(swing=0.5)
    with pytest.raises(ArgumentError, match='expected at most a tenth of the rate'):
        ExcitationSettings(harmonics=30, period=5.0)


# ---------------------------------------------------------------- following


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bag_is_what_force_node_takes(tmp_path: Path, storage: str) -> None:
    found = designed('mini_cheetah', leg='FL')
    wanted = found.trajectory(2.0)
    write_trajectory(wanted, tmp_path / 'bag', storage)
    read = read_trajectory(tmp_path / 'bag')
    assert read.joint_names == ('FL_hip_joint', 'FL_thigh_joint', 'FL_calf_joint')
    for name in ('position', 'velocity', 'acceleration'):
        assert np.array_equal(getattr(read, name), getattr(wanted, name))
    assert np.allclose(read.time, wanted.time, atol=1e-9)
    model = found.model
    targets = read_targets(_as_message(read), model, 7.0, model.standing)
    assert targets.start == 7.0
    assert targets.times[0] == 2.0
    with pytest.raises(ArgumentError, match='already exists'):
        write_trajectory(wanted, tmp_path / 'bag', storage)
    with pytest.raises(ArgumentError, match='cannot be read'):
        read_trajectory(tmp_path / 'nothing')


def _as_message(trajectory: Trajectory) -> Any:
    """What rclpy would give."""
    from types import SimpleNamespace as Message

    points = [
        Message(
            positions=trajectory.position[i],
            velocities=trajectory.velocity[i],
            accelerations=trajectory.acceleration[i],
            time_from_start=Message(sec=int(t), nanosec=round((t % 1.0) * 1e9)),
        )
        for i, t in enumerate(trajectory.time)
    ]
    header = Message(stamp=Message(sec=0, nanosec=0))
    return Message(header=header, joint_names=list(trajectory.joint_names), points=points)


@pytest.mark.parametrize('name', slow_but(['mini_cheetah_leg'], ['mini_cheetah', 'mini_cheetah_leg']))
def test_the_controller_follows(name: str) -> None:
    """In simulation, 2 ms late: nothing saturates, and who stands keeps the feet where they are."""
    found = designed(name)
    model, wanted = found.model, found.trajectory(1.0)
    sim = Simulator(model, mu=0.6, latency=2e-3) if model.floating_base else Simulator(model, latency=2e-3)
    sim.reset(sim.standing())
    law = ComputedTorque(model)
    law.set_trajectory(wanted.time, wanted.position, wanted.velocity, wanted.acceleration)
    log = drive(sim, law, float(wanted.time[-1]), guard=Guard(model))
    moving = log['time'] > 1.0
    planned = np.stack(
        [CubicSpline(wanted.time, column)(log['time']) for column in wanted.position.T], axis=1
    )
    error = np.abs(log['q'][moving, -model.nj :] - planned[moving])
    assert error.max() < 0.06  # of motions of a radian
    assert (np.abs(log['tau']) < 0.9 * model.effort_limit).all()
    if model.floating_base:
        rows = np.clip(np.round((log['time'][moving] - 1.0) * 100.0).astype(int), 0, None)
        down = found.best.states.down[np.minimum(rows, len(found.best.states.q) - 1)]
        force = log['foot_forces'][moving, :, 2]
        assert (force[down] > 0.0).all()
        assert (force[~down] == 0.0).mean() > 0.8
        at_rest = ~down.all(axis=1)  # then the base stands still, and upright
        assert np.abs(log['q'][moving][at_rest, 3:5]).max() < 0.05
        for i, foot in enumerate(model.foot_names):
            place = frame_pose(model, log['q'][moving], foot)[1][down[:, i]]
            assert np.linalg.norm(place - place[0], axis=1).max() < 0.01


# ---------------------------------------------------------------- command line


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = ['--iterations', '4', '--starts', '2', '--duration', '5', '--harmonics', '3']
    bag, plot = str(tmp_path / 'bag'), str(tmp_path / 'motion.png')
    arguments = ['excite', '--robot', 'mini_cheetah_leg', *fast, '--output', bag, '--plot', plot]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    for text in ('designed', 'sines', 'chirps', 'condition', 'log det', '26 base parameters', bag):
        assert text in out
    assert read_trajectory(bag).time[0] == 2.0
    assert Path(plot).stat().st_size > 10_000
    assert main(arguments) == 1
    assert 'already exists; expected a new path' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['--leg', 'XX'], "has no leg 'XX'"),
        (['--criterion', 'best'], "criterion is 'best'"),
        (['--robot', 'nobody'], 'nobody'),
        (['--fixed-base', '--whole'], 'expected one of the two'),
        (['--robot', str(robots_folder() / ARMS['panda']), '--whole'], 'cannot stand on three feet'),
        (['--duration', '1'], 'at least one period'),
        (['--output', '/no/such/folder/bag'], 'does not exist'),
    ],
)
def test_wrong_usage_is_told(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert main(['excite', *arguments]) == 1
    assert expected in capsys.readouterr().err
