# SPDX-License-Identifier: Apache-2.0
"""The node `identification`: live recordings, estimates and results, as real processes of a graph."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cases import load
from control_loop import state_of

pytest.importorskip('rclpy', reason='neither a ROS 2 nor its wheels are installed')

from node_processes import Process, probe
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from identification.experiment import DONE, FAILED, IDLE, RECORDING, SOLVING, Experiment
from identification.settings import IdentificationSettings
from quad_dynamics.control.computed_torque import ComputedTorque
from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.excitation.excitation import choose_motion, design
from quad_dynamics.identification.excitation.excitation_bag import read_trajectory, write_trajectory
from quad_dynamics.identification.excitation.excitation_settings import ExcitationSettings
from quad_dynamics.identification.recordings.gaps import GAP
from quad_dynamics.identification.recordings.live import LiveRecording, Window
from quad_dynamics.identification.recordings.topics import Topics
from quad_dynamics.identification.signals.signal_settings import SignalSettings
from quad_dynamics.ros.graph import graph
from quad_dynamics.ros.qos import LATCHED, STREAM
from quad_dynamics.simulation.command import JointCommand
from quad_dynamics.simulation.simulator import Simulator

LEG = 'mini_cheetah_leg'


@pytest.fixture(scope='module')
def excitation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trajectory of 8 s for one leg."""
    settings = ExcitationSettings(duration=8.0, period=4.0, iterations=12, starts=3, lead=1.0, share=0.5)
    path = tmp_path_factory.mktemp('excitation') / 'bag'
    write_trajectory(design(choose_motion(load(LEG)), settings).trajectory(settings.lead), path)
    return path


# ---------------------------------------------------------------- recordings


def recorded(seconds: float, rate: float = 500.0) -> tuple[LiveRecording, np.ndarray]:
    """Joint states as they come, and slower odometry beside them."""
    recording, rng = LiveRecording('live', Topics()), np.random.default_rng(0)
    values = rng.normal(size=(round(seconds * rate), 3))
    for i, row in enumerate(values):
        stamp = 5_000_000_000 + round(i / rate * 1e9)
        recording.add(stamp, position=row, velocity=row + 1.0)
        if i % 5 == 0:
            recording.add(stamp, base=np.arange(13.0) + i)
    return recording, values


@pytest.mark.parametrize('seconds', [0.1, 4.0, 25.0])  # in memory alone, at the edge of it, in the file
def test_a_live_recording_gives_back_what_came(seconds: float) -> None:
    recording, values = recorded(seconds)
    chunks = list(recording.chunks())
    assert len(chunks) == int(np.ceil((seconds - 0.002) / 10.0))
    joined = np.concatenate([chunk['position'].values for chunk in chunks])
    assert np.array_equal(joined, values)
    stamps = np.concatenate([chunk['velocity'].stamps for chunk in chunks])
    assert np.array_equal(stamps, 5_000_000_000 + np.arange(len(values)) * 2_000_000)
    assert sum(len(chunk['base'].stamps) for chunk in chunks) == -(-len(values) // 5)
    assert recording.seconds == pytest.approx((len(values) - 1) / 500.0)
    again = list(recording.chunks())  # it is read more than once
    assert np.array_equal(again[-1]['position'].values, chunks[-1]['position'].values)


def test_a_live_recording_knows_what_is_missing() -> None:
    """Two messages lost, half a second without any, one that comes late, and odometry that ends early."""
    recording = LiveRecording('live', Topics())
    row = np.zeros(3)
    for i in [*range(500), *range(502, 700), *range(950, 1500)]:  # at 500 Hz
        stamp = i * 2_000_000
        recording.add(stamp, position=row, velocity=row)
        if i % 2 == 0 and i < 1200:
            recording.add(stamp, base=np.zeros(13))
    with pytest.raises(ArgumentError, match='left out'):
        recording.add(stamp - 1_000_000, position=row, velocity=row)
    values = recording.gaps.values()
    assert values['lost.joint_states'] == 2 + 250
    assert values['gaps.joint_states'] == 1
    assert values['longest_gap.joint_states'] == pytest.approx(0.502)
    assert values['late.joint_states'] == 1
    assert values['lost.odom'] == 1 + 125
    assert values['silent.odom'] == pytest.approx((1499 - 1198) * 0.002)
    assert 'silent.joint_states' not in values
    recording.close()
    [note] = recording.notes
    assert 'joint_states: 252 messages lost, 1 late, 1 gap of up to 0.502 s' in note


def test_copies_of_a_paused_simulation_are_counted_and_left_out() -> None:
    recording, values = recorded(0.1)
    before = recording.counts
    for _ in range(3):
        recording.add(recording.last, position=values[len(values) - 1])
    assert recording.counts == before
    assert recording.gaps.values() == {'repeated.joint_states': 3}
    recording.close()
    assert recording.gaps.sentence() == ''  # nothing is missing
    assert recording.notes == [
        'messages that repeat the previous one, stamp and values, are not used: 3 of joint_states'
    ]


def test_a_whole_recording_has_no_gaps() -> None:
    assert SignalSettings().gap == GAP
    recording, _ = recorded(4.0)
    assert recording.gaps.values() == {}
    recording.close()
    assert recording.notes == []


def test_a_window_of_a_live_recording() -> None:
    recording, values = recorded(12.0)
    [chunk] = Window(recording, 6_000_000_000, 7_000_000_000).chunks()
    assert np.array_equal(chunk['position'].values, values[500:1000])
    assert len(chunk['base'].stamps) == 100


def test_stamps_that_do_not_increase_are_refused() -> None:
    recording, _ = recorded(0.1)
    before = recording.counts
    for stamp in (recording.last, recording.last - 10**9):
        with pytest.raises(ArgumentError, match='expected later ones: it was left out'):
            recording.add(stamp, position=np.zeros(3))
    assert recording.counts == before
    digests = []
    for _ in range(2):
        one, _ = recorded(0.1)
        one.close()
        digests.append(one.sha256)
    assert digests[0] == digests[1]


# ---------------------------------------------------------------- experiments


def experiment(tmp_path: Path, **settings: Any) -> Experiment:
    chosen = {'robot': LEG, 'output': str(tmp_path / 'found'), **settings}
    return Experiment(load(chosen['robot']), IdentificationSettings.from_dict(chosen))


def test_an_experiment_says_when_it_is_not_the_time(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    assert made.state == IDLE
    with pytest.raises(ArgumentError, match='idle; expected ~/stop while recording'):
        made.stop()
    assert made.start() == 'recording'
    assert made.state == RECORDING
    with pytest.raises(ArgumentError, match='already recording'):
        made.start()
    with pytest.raises(ArgumentError, match='no joint_states arrived during the recording'):
        made.stop()
    assert made.state == FAILED
    assert made.start() == 'recording'  # it can be tried again
    made.close()


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        ({'bag': '/no/such/bag'}, '/no/such/bag'),
        ({'output': '/no/such/folder/here'}, 'does not exist'),
        ({'free': ['wings']}, 'wings'),
    ],
)
def test_an_experiment_that_cannot_work_is_refused(
    tmp_path: Path, settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ArgumentError, match=expected):
        experiment(tmp_path, **settings)


def leg_bag(folder: Path, excitation: Path) -> Path:
    """A recording of a leg with more friction than its model says."""
    wanted = read_trajectory(excitation)
    model = load(LEG)
    sim = Simulator(model.with_friction(coulomb=np.full(3, 0.3)))
    sim.reset(sim.standing())
    law = ComputedTorque(model)
    law.set_trajectory(wanted.time, wanted.position, wanted.velocity, wanted.acceleration)
    log = sim.run(lambda s: JointCommand(law.update(state_of(s)).tau), float(wanted.time[-1]), progress=False)
    log.to_bag(folder / 'bag', rate_hz=500.0)
    return folder / 'bag'


@pytest.mark.slow
def test_an_experiment_with_a_bag(tmp_path: Path, excitation: Path) -> None:
    """As ~/start of a node with the parameter `bag` does; the threads are real."""
    made = experiment(tmp_path, bag=str(leg_bag(tmp_path, excitation)), free=['friction'])
    assert 'identifying from' in made.start()
    with pytest.raises(ArgumentError, match='already solving'):
        made.start()
    deadline = time.monotonic() + 120.0
    while made.state == SOLVING and time.monotonic() < deadline:
        time.sleep(0.05)
    assert made.state == DONE, made.progress
    assert Path(made.folder) == (tmp_path / 'found' / '001')
    assert np.allclose(load(next(Path(made.folder).glob('*.urdf'))).coulomb, 0.3, atol=0.02)
    assert yaml.safe_load(made.summary)


# ---------------------------------------------------------------- processes


@pytest.mark.realtime
def test_excite_record_identify(ros_domain: int, tmp_path: Path, excitation: Path) -> None:
    """A leg with another friction than its model says: sim_node, force_node and identification."""
    changed = load(LEG).with_friction(viscous=np.full(3, 0.06), coulomb=np.full(3, 0.35))
    robot = tmp_path / 'leg.urdf'
    robot.write_text(changed.to_urdf())
    (tmp_path / 'leg.yaml').write_text(_description())
    output = tmp_path / 'found'
    with (
        Process('sim_node', robot=robot),
        Process('force_node', robot=LEG, mode='computed_torque'),
        Process('identification', robot=LEG, excitation=excitation, output=output) as node,
        probe() as listener,
    ):
        estimates: list[dict[str, Any]] = []
        listener.node.create_subscription(
            String, 'identification/estimate', lambda m: estimates.append(yaml.safe_load(m.data)), STREAM
        )
        listener.until(lambda: listener.value('identification', 'state') == IDLE, 'it is there')
        listener.until(lambda: 'computed_torque' in listener.value('force_node', 'message'), 'control')
        listener.until(lambda: len(listener.states) > 100, 'the leg')
        answer = listener.trigger('identification/start')
        assert answer.success, answer.message
        assert 'excitation of 9.0 s sent' in answer.message
        assert not listener.trigger('identification/start').success
        _bad_messages_are_counted(listener)
        listener.until(lambda: listener.value('identification', 'state') == 'solving', 'the end')
        assert 'solving' in listener.trigger('identification/start').message
        listener.until(lambda: listener.value('identification', 'state') == DONE, 'a result', 120.0)
        late: list[str] = []
        listener.node.create_subscription(
            String, 'identification/summary', lambda m: late.append(m.data), LATCHED
        )
        listener.until(lambda: late, 'the latched summary')
        code, output_text = node.stop()
    assert code == 0
    assert 'Traceback' not in output_text
    _check_result(output / '001', late[0], estimates)


def _description() -> str:
    """Rotors and motors of the leg, which a URDF does not say."""
    import quad_dynamics

    return (Path(quad_dynamics.__file__).parent / 'robots' / LEG / f'{LEG}.yaml').read_text()


def _bad_messages_are_counted(listener: Any) -> None:
    model = load(LEG)
    publisher = listener.publisher(JointState, 'joint_states', STREAM)
    zeros = [0.0, 0.0, 0.0]
    for wrong in (
        {'name': ['a', 'b', 'c'], 'position': zeros},
        {'name': list(model.joint_names), 'position': [0.0, np.nan, 0.0]},
        {'name': list(model.joint_names), 'position': zeros},  # the stamp is zero
    ):
        message = JointState(velocity=zeros, effort=zeros, **wrong)
        before = int(listener.value('identification', 'faults.bad_joint_states') or 0)

        def is_counted(before: int = before, message: Any = message) -> bool:
            publisher.publish(message)
            return int(listener.value('identification', 'faults.bad_joint_states') or 0) > before

        listener.until(is_counted, f'{wrong} is counted', 10.0)
    listener.node.destroy_publisher(publisher)
    assert listener.value('identification', 'state') == RECORDING


def _check_result(folder: Path, summary: str, estimates: list[dict[str, Any]]) -> None:
    assert (folder / 'parameters.yaml').read_text() == summary
    found = load(next(folder.glob('*.urdf')))
    # the simulator's own integration and a record without noise: a few percent of the change
    assert np.allclose(found.coulomb, 0.35, atol=0.03)
    assert np.allclose(found.viscous, 0.06, atol=0.02)
    assert len(estimates) >= 2
    last = estimates[-1]['parameters']
    for joint in found.joint_names:
        one = last[f'{joint}.coulomb']
        assert one['unit'] == 'N m'
        assert abs(one['value'] - 0.35) < 0.1  # the model says 0.2


@pytest.mark.realtime
def test_a_bag_is_identified_at_once(ros_domain: int, tmp_path: Path, excitation: Path) -> None:
    """What `ros2 launch quad_dynamics identification.launch.py bag:=...` starts, without a simulation."""
    bag = leg_bag(tmp_path, excitation)
    [spec] = graph({'robot': str(LEG), 'bag': str(bag), 'output': str(tmp_path / 'out')})
    with Process('identification', **spec.parameters) as node, probe() as listener:
        listener.until(lambda: listener.value('identification', 'state') == DONE, 'a result', 120.0)
        summaries: list[str] = []
        listener.node.create_subscription(
            String, 'identification/summary', lambda m: summaries.append(m.data), LATCHED
        )
        listener.until(lambda: summaries, 'the summary')
        _, text = node.stop()
    assert yaml.safe_load(summaries[0]) == yaml.safe_load((tmp_path / 'out/001/parameters.yaml').read_text())
    assert re.search(rf'done: .*; results are in {tmp_path / "out" / "001"}', text)
    assert np.allclose(load(next((tmp_path / 'out/001').glob('*.urdf'))).coulomb, 0.3, atol=0.02)


@pytest.mark.realtime
def test_a_played_excitation_is_followed(ros_domain: int, excitation: Path) -> None:
    """By `quad_dynamics play`, as on a robot that has no node `identification`."""
    wanted = read_trajectory(excitation)
    with (
        Process('sim_node', robot=LEG),
        Process('force_node', robot=LEG, mode='computed_torque'),
        probe() as listener,
    ):
        seen: list[Any] = []
        listener.node.create_subscription(JointState, 'joint_states', seen.append, STREAM)
        listener.until(lambda: 'computed_torque' in listener.value('force_node', 'message'), 'control')
        listener.until(lambda: len(seen) > 100, 'the leg')
        listener.listen(0.5)
        with Process('quad_dynamics', 'play', str(excitation)) as player:
            begin = len(seen)
            listener.listen(float(wanted.time[-1]) + 3.0)
            code, text = player.stop()
        assert code == 0, text
        assert int(listener.value('force_node', 'faults.bad_input') or 0) == 0
    positions = np.array([message.position for message in seen[begin:]])
    # as far as it was to go, to a few hundredths of a radian
    assert np.allclose(positions.max(axis=0), wanted.position.max(axis=0), atol=0.05)
    assert np.allclose(positions.min(axis=0), wanted.position.min(axis=0), atol=0.05)
    assert np.allclose(positions[-1], wanted.position[-1], atol=0.05)


@pytest.mark.realtime
@pytest.mark.parametrize(
    ('parameter', 'expected'),
    [
        ('robot:=nobody', 'parameter robot: nobody'),
        ('bag:=/no/such/bag', '/no/such/bag'),
        ('excitation:=/no/such/bag', '/no/such/bag cannot be read'),
        ('estimate_period:=0.0', 'estimate_period is 0.0; expected'),
        ('free:=[wings]', 'wings'),
        ('tie_leg:=true', "unknown parameter 'tie_leg' (did you mean 'tie_legs'?)"),
    ],
)
def test_wrong_parameters_refuse_to_start(
    ros_domain: int, capsys: pytest.CaptureFixture[str], parameter: str, expected: str
) -> None:
    from identification.node import IdentificationNode
    from quad_dynamics.ros.process import run_node

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = run_node(IdentificationNode, ['identification', '--ros-args', '-p', parameter])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert code == 2
    assert expected in capsys.readouterr().err
