# SPDX-License-Identifier: Apache-2.0
"""sim_node: the world behind it, and the node as a real process."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError
from quad_dynamics.simulation import gaits
from quad_dynamics.simulation.settings import SensorSettings
from sim_node.repeats import Repeats
from sim_node.settings import SimNodeSettings
from sim_node.world import World

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')


@pytest.fixture(scope='module')
def model() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', qd.ModelWarning)
        return qd.load_model('mini_cheetah')


def make_world(model: Any, **settings: Any) -> World:
    return World(model, SimNodeSettings(**settings))


def test_world_begins_lying_still(model: Any) -> None:
    world = make_world(model)
    start = world.sim.q
    for _ in range(1000):
        assert world.step() == ''
    assert np.abs(world.sim.u).max() < 1e-3  # it has settled
    assert np.abs(world.sim.q - start)[:3].max() < 0.01  # and has not jumped
    assert world.sim.q[2] < 0.5 * world.sim.standing()[2]


def test_world_time_goes_on_over_resets(model: Any) -> None:
    world = make_world(model)
    for _ in range(10):
        world.step()
    assert world.now_ns == 10_000_000
    world.reset()
    assert world.now_ns == 12_000_000  # one control period later: no command for the old state fits
    world.step()
    assert world.now_ns == 13_000_000


def test_world_changes_contact_in_the_middle_of_everything(model: Any) -> None:
    world = make_world(model, initial_pose='standing')
    hold = gaits.hold(model)
    world.command(np.asarray(hold.tau), np.asarray(hold.q), None)
    for _ in range(500):
        world.step()
    q, now = world.sim.q, world.now_ns
    assert world.change(world.settings.replace(contact='spring_damper', mu=0.8))
    assert world.now_ns == now
    np.testing.assert_array_equal(world.sim.q, q)
    for _ in range(1000):
        assert world.step() == ''
    assert world.sim.settings.contact == 'spring_damper'
    # It still stands: springs give by less than a millimetre.
    np.testing.assert_allclose(world.sim.q[:3], q[:3], atol=2e-3)


def test_world_keeps_its_command_when_settings_change(model: Any) -> None:
    world = make_world(model, initial_pose='standing')
    tau = np.linspace(-1.0, 1.0, model.nj)
    world.command(tau, None, None)
    world.change(world.settings.replace(mu=0.9))
    np.testing.assert_array_equal(world.sim.current_command['tau'], tau)
    assert world.sim.current_command['q'] is None


@pytest.mark.parametrize(
    ('settings', 'names'),
    [
        ({'kp': (1.0, 2.0)}, 'kp has 2 numbers'),
        ({'control_period': 0.0015}, 'control_period is 0.0015 s'),
        ({'terrain': 'flt'}, 'flt'),
    ],
)
def test_world_refuses_settings_by_name(model: Any, settings: dict[str, Any], names: str) -> None:
    with pytest.raises(ArgumentError, match=names):
        make_world(model, **settings)


def test_world_refuses_rates_that_do_not_fit(model: Any) -> None:
    with pytest.raises(ArgumentError, match=r'joint_states_rate is 300 Hz; expected 1 / dt = 1000 Hz'):
        make_world(model).every(300.0, 'joint_states_rate')


@pytest.mark.parametrize('gains', [{'kp': (0.0,)}, {'kd': (0.0,)}, {'kp': (0.0,), 'kd': (0.0,)}])
def test_world_takes_drives_without_gains(model: Any, gains: dict[str, Any]) -> None:
    world = make_world(model, **gains)
    zero = np.zeros(model.nj)
    for command in [(zero, zero, zero), (zero, zero, None), (zero, None, zero), (None, zero, None)]:
        world.command(*command)
        assert world.step() == ''
    world.damp()
    assert world.step() == ''
    assert world.change(world.settings.replace(mu=0.7))


def test_a_slow_clock_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r'real_time_factor is 0\.01; expected 0'):
        SimNodeSettings(real_time_factor=0.01)


def test_world_lifts_a_pose_out_of_the_ground(model: Any) -> None:
    world = make_world(model)
    world.place(np.array([1.0, 2.0, -5.0]), np.array([0.0, 0.0, 0.0, 1.0]))
    assert world.sim.q[:2].tolist() == [1.0, 2.0]
    assert world.sim.distances(world.sim.q)[0].min() == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ArgumentError, match='initialpose has position'):
        world.place(np.array([np.nan, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0]))
    with pytest.raises(ArgumentError, match='unit length'):
        world.place(np.zeros(3), np.zeros(4))


def test_world_stops_a_robot_that_diverges(model: Any) -> None:
    world = make_world(model, energy_limit=1e-9)
    world.sim.set_state(u=np.full(model.nv, 0.1))
    problem = world.step()
    assert 'energy' in problem
    assert not np.any(world.sim.u)
    assert world.is_damped


@pytest.mark.parametrize('noisy', [False, True])
def test_world_reads_the_same_until_the_next_step(model: Any, noisy: bool) -> None:
    """A state that is published again, because time is paused, is bit-identical."""
    sensors = SensorSettings.typical() if noisy else SensorSettings()
    world = make_world(model, initial_pose='standing', sensors=sensors)
    for _ in range(3):
        world.step()
    first = world.readings()[0]
    world.torques.clear()  # they have been sent
    world.forces.clear()
    again = world.readings()[0]
    for name, value in vars(first).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
    world.step()
    assert not np.array_equal(world.readings()[0].foot_forces, first.foot_forces)


def test_world_knows_foot_forces_from_the_first_step_on(model: Any) -> None:
    world = make_world(model)
    assert not world.knows_forces
    world.step()
    assert world.knows_forces
    world.place(np.array([0.0, 0.0, 0.5]), np.array([0.0, 0.0, 0.0, 1.0]))
    assert not world.knows_forces
    world.step()
    world.reset()
    assert not world.knows_forces


def test_world_computes_the_first_foot_forces_of_lock_step(model: Any) -> None:
    world = make_world(model, lock_step=True)
    assert world.knows_forces
    before = world.sim.snapshot()
    forces = world.readings()[0].foot_forces
    assert world.sim.snapshot() == before
    assert forces[:, 2].min() > 1.0  # feet of the lying robot rest on the ground
    world.step()
    np.testing.assert_array_equal(world.readings()[0].foot_forces, forces)


class _Topic:
    """A publisher as `Repeats` sees it."""

    subscribers = 0

    def get_subscription_count(self) -> int:
        return self.subscribers


def test_a_state_is_repeated_less_and_less_until_a_subscriber_appears() -> None:
    now, topic = 0.0, _Topic()
    repeats = Repeats([topic], lambda: now)
    due, alive = [], 0
    while now < 20.0:
        if now > 10.0:
            topic.subscribers = 1
        if repeats.is_due():
            due.append(now)
        elif repeats.is_alive_due():
            alive += 1
        assert 0.0 < repeats.wait() <= 0.02  # never 0: the node would wait busily
        now += 0.001
    assert due[0] == 0.0
    assert len(due) < 70  # 1000 at even intervals
    assert sum(10.0 < time < 10.2 for time in due) >= 4
    assert np.diff(due).max() < 0.5  # the viewer shows no older foot forces
    assert len(due) + alive > 900  # for a controller


def test_1000_exceptions_in_a_step_leave_the_node_alive_and_damped(
    ros_domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rclpy

    from sim_node.node import SimNode

    rclpy.init(args=[])
    node = SimNode()
    turns = 0

    def stop() -> bool:
        nonlocal turns
        turns += 1
        return turns > 1000

    def fail() -> str:
        raise RuntimeError('injected')

    try:
        monkeypatch.setattr(node.world, 'step', fail)
        node.spin(stop)  # type: ignore[arg-type]
        assert node.world.is_damped
        assert node._diagnostics.counts['exception'] == 1000
        monkeypatch.undo()
        turns = 900
        before = node.world.now_ns
        node.spin(stop)  # type: ignore[arg-type]
        assert node.world.now_ns > before
    finally:
        node.close()
        rclpy.try_shutdown()


# ---------------------------------------------------------------- as a process


def heard(ear: Any, kind: Any, topic: str) -> list[bytes]:
    """The messages of a topic from now on."""
    from quad_dynamics.ros.qos import STREAM

    messages: list[bytes] = []

    def take(raw: bytes) -> None:
        messages.append(raw)

    ear.node.create_subscription(kind, topic, take, STREAM, raw=True)
    return messages


@pytest.mark.realtime
def test_services_topics_and_parameters_of_a_running_node(ros_domain: int) -> None:
    from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
    from node_processes import Process, probe
    from std_srvs.srv import SetBool

    with Process('sim_node', initial_pose='standing') as process, probe() as ear:
        ear.until(lambda: ear.odom is not None and ear.states, 'joint_states and odom')
        # Nobody commands it: it is damped, and sinks.
        ear.until(lambda: ear.value('sim_node', 'damped') == 'True', 'damping')
        ear.until(lambda: ear.height < 0.2, 'the robot sinks')

        assert ear.pause(True).success
        ear.listen(0.2)
        paused = ear.states[-1][1]
        ear.listen(0.3)
        assert ear.states[-1][1] == paused
        answer = ear.trigger('sim_node/step')
        assert answer.success
        ear.until(lambda: ear.states[-1][1] == paused + 2_000_000, 'one control period more')

        answer = ear.trigger('sim_node/reset')
        assert answer.success, answer.message
        ear.until(lambda: ear.height > 0.25, 'the robot stands again')
        assert ear.states[-1][1] >= paused

        place = ear.publisher(PoseWithCovarianceStamped, 'initialpose')
        message = PoseWithCovarianceStamped()
        message.pose.pose.position.x, message.pose.pose.position.z = 3.0, 0.4
        message.pose.pose.orientation.w = 1.0
        place.publish(message)
        ear.until(lambda: abs(ear.odom.pose.pose.position.x - 3.0) < 1e-9, 'the robot is put elsewhere')
        assert ear.height == pytest.approx(0.4)

        assert ear.trigger('sim_node/step').success
        assert ear.call(SetBool, 'sim_node/pause', SetBool.Request(data=False)).success
        assert not ear.trigger('sim_node/step').success  # it runs

        push = ear.publisher(WrenchStamped, 'push')
        message = WrenchStamped()
        message.wrench.force.y = 60.0
        push.publish(message)
        ear.until(lambda: ear.odom.twist.twist.linear.y > 0.05, 'the push is felt')

        assert ear.set('sim_node', 'mu', 0.9).successful
        assert ear.set('sim_node', 'contact', 'spring_damper').successful
        ear.until(lambda: ear.value('sim_node', 'contact') == 'spring_damper', 'the other contact model')
        refused = ear.set('sim_node', 'mu', -1.0)
        assert not refused.successful
        assert 'mu' in refused.reason
        assert not ear.set('sim_node', 'dt', 0.002).successful
        assert not ear.set('sim_node', 'kp', [1.0, 2.0]).successful

        assert ear.set('sim_node', 'real_time_factor', 0.1).successful
        ear.listen(0.3)
        first, begin = ear.states[-1], time.monotonic()
        ear.listen(1.0)
        factor = (ear.states[-1][1] - first[1]) * 1e-9 / (time.monotonic() - begin)
        assert 0.08 < factor < 0.12
        code, output = process.stop()
    assert code == 0, output


@pytest.mark.realtime
def test_a_node_that_waits_for_commands_is_quiet_about_feet(model: Any, ros_domain: int) -> None:
    """A recorder that starts with the graph would have hundreds of them while kernels are compiled."""
    from geometry_msgs.msg import WrenchStamped
    from node_processes import Process, probe, stamp_of
    from sensor_msgs.msg import JointState

    from quad_dynamics.ros.messages import joint_state

    with Process('sim_node', wait_for_commands=True, initial_pose='standing'), probe() as ear:
        forces = heard(ear, WrenchStamped, 'foot_forces/FL_foot')
        ear.until(lambda: ear.states, 'the first state')
        ear.listen(0.5)
        ear.states.clear()
        ear.listen(2.0)
        assert 3 <= len(ear.states) <= 8
        assert {stamp for _, stamp in ear.states} == {0}
        assert not forces
        names = model.joint_names
        ear.publisher(JointState, 'joint_torques').publish(joint_state(names, ['effort']).bytes(0))
        ear.until(lambda: len(forces) > 10, 'foot forces')
        assert stamp_of(forces[0]) > 0


@pytest.mark.realtime
def test_a_paused_graph_is_quiet(ros_domain: int) -> None:
    """joint_states are repeated 50 times a second, however fast a controller answers; the rest seldom."""
    from nav_msgs.msg import Odometry
    from node_processes import Process, probe

    with Process('sim_node', wait_for_commands=True), Process('force_node'), probe() as ear:
        ear.until(lambda: len(ear.states) > 500, 'it runs')
        assert ear.pause(True).success
        ear.listen(1.0)
        ear.states.clear()
        odom = heard(ear, Odometry, 'odom')
        ear.listen(1.0)
        assert 20 < len(ear.states) <= 60
        assert 1 <= len(odom) <= 10
        assert len(set(odom)) == 1
        assert ear.value('force_node', 'faults.stale') in ('', '0')


@pytest.mark.realtime
def test_lock_step_goes_on_after_a_step_that_diverged(
    ros_domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rclpy
    from sensor_msgs.msg import JointState

    from quad_dynamics.ros.messages import joint_state
    from quad_dynamics.ros.qos import COMMAND, STREAM
    from sim_node.node import SimNode

    rclpy.init(args=['--ros-args', '-p', 'lock_step:=true'])
    node = SimNode()
    publisher = node.node.create_publisher(JointState, 'joint_torques', COMMAND)
    template = joint_state(node.world.model.joint_names, ['effort'])
    answered: list[int] = []

    def answer(raw: bytes) -> None:
        stamp = int.from_bytes(raw[4:8], 'little') * 10**9 + int.from_bytes(raw[8:12], 'little')
        answered.append(stamp)
        if len(answered) == 20:  # the next step does not count
            monkeypatch.setattr(node.world, 'step', lambda: (monkeypatch.undo(), 'diverged')[1])
        publisher.publish(template.bytes(stamp))

    node.node.create_subscription(JointState, 'joint_states', answer, STREAM, raw=True)
    begin = time.monotonic()
    try:
        node.spin(lambda: len(answered) >= 200 or time.monotonic() - begin > 30.0)  # type: ignore[arg-type]
    finally:
        node.close()
        rclpy.try_shutdown()
    assert len(answered) >= 200
    assert time.monotonic() - begin < 15.0  # at one period a second it would be minutes


@pytest.mark.realtime
@pytest.mark.parametrize(
    ('parameters', 'names'),
    [
        ({'mu': -1.0}, 'mu is -1.0; expected a number of at least 0'),
        ({'contact': 'implse'}, "contact is 'implse' (did you mean 'impulse'?)"),
        ({'robot': 'nobody'}, 'parameter robot: nobody'),
        ({'conact': 'none'}, "unknown parameter 'conact' (did you mean 'contact'?)"),
        ({'joint_states_rate': 300.0}, 'joint_states_rate is 300 Hz'),
    ],
)
def test_wrong_parameters_refuse_to_start(ros_domain: int, parameters: dict[str, Any], names: str) -> None:
    from node_processes import Process

    process = Process('sim_node', **parameters)
    output, _ = process.process.communicate(timeout=60.0)
    assert process.process.returncode == 2
    assert names in output
    assert 'Traceback' not in output


def test_missing_meshes_are_logged_and_in_the_diagnostics(
    ros_domain: int, tmp_path: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    import plain_quadruped as plain
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray

    from sim_node.node import SimNode

    mesh = plain.solid('<mesh filename="package://nowhere/calf.stl"/>')
    ball = plain.solid('<sphere radius="0.02"/>')
    foot = f'<link name="@_foot">{plain.inertial(0.05, 2e-5)}{ball}</link>'
    foot += plain.joint('@_foot_joint', '@_calf', '@_foot', '0 0 -0.2', '', 'fixed')
    path = tmp_path / 'dog.urdf'
    path.write_text(plain.quadruped(mesh, foot))
    rclpy.init(args=['--ros-args', '-p', f'robot:={path}'])
    node = SimNode()
    listener = rclpy.create_node('listener')
    heard: list[Any] = []
    listener.create_subscription(DiagnosticArray, '/diagnostics', heard.append, 10)
    turns = iter(range(100_000))
    deadline = time.monotonic() + 20.0
    try:
        while not heard and time.monotonic() < deadline:
            end = next(turns) + 300
            node.spin(lambda end=end: next(turns) > end)  # type: ignore[misc]
            rclpy.spin_once(listener, timeout_sec=0.1)
        [status] = [status for status in heard[-1].status if 'sim_node' in status.name]
        assert status.level == b'\x01'
        assert 'contact points are questionable' in status.message
        values = {item.key: item.value for item in status.values}
        assert "calf.stl' of link 'FL_calf' was not found" in values['contact_doubts']
    finally:
        listener.destroy_node()
        node.close()
        rclpy.try_shutdown()
    assert 'collision meshes were not found' in capfd.readouterr().err
