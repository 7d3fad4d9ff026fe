# SPDX-License-Identifier: Apache-2.0
"""The simulator: forward dynamics with contact, drives and sensors, in time steps."""

from __future__ import annotations

import contextlib
import difflib
import functools
import math
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from quad_dynamics.api.centroidal import energy as _energy
from quad_dynamics.api.dynamics import mass_matrix
from quad_dynamics.api.kinematics import frame_pose
from quad_dynamics.api.validation import States, vector
from quad_dynamics.array_types import Floats
from quad_dynamics.errors import ArgumentError, SimulationDiverged
from quad_dynamics.kernels.simulation.command import take_command as _take_command
from quad_dynamics.kernels.simulation.scene import MAX_FORCES
from quad_dynamics.kernels.simulation.simulate import BAD_TORQUE, LOG_FULL, NOT_FINITE, TOO_ENERGETIC
from quad_dynamics.kernels.simulation.simulate import simulate as _simulate
from quad_dynamics.memory.layout import LinkFrame
from quad_dynamics.model.model import Model
from quad_dynamics.simulation.command import JointCommand, joint_numbers
from quad_dynamics.simulation.log import Log, row_width
from quad_dynamics.simulation.scene import Scene
from quad_dynamics.simulation.sensors import Readings, SensorSuite, true_readings
from quad_dynamics.simulation.settings import SimulatorSettings
from quad_dynamics.simulation.snapshot import check_state, fingerprint, pack_snapshot, unpack_snapshot
from quad_dynamics.terrain.terrain import Terrain

Controller = Callable[['Simulator'], Any]

# Maximum initial penetration [m]: impulse contact displaces the robot out of it; springs would throw it.
DEEPEST_START = {'impulse': 0.02, 'spring_damper': 0.005, 'none': math.inf}
_MOST_STEPS = 10**12  # in one run: years of computing
_LONGEST_FORCE = 1e12  # [s]
# Steps between two updates of the progress bar.
_CHUNK = 1000
_LARGEST_INT = 2**53  # integers up to this number are exact as floats
# Calls with at least this many steps release the GIL; shorter ones finish before another thread would get it.
_MANY_STEPS = 32


class Simulator:
    """A robot on a terrain, advanced in time steps.

    Settings are passed as one object, as keywords, or both (keywords override the object):

        sim = Simulator(model, contact='impulse', terrain='flat', dt=1e-3)
        sim.reset()
        sim.step(tau)

    Simulators are independent of each other: each may run in its own thread, and `run` without a controller
    releases the GIL. A simulator belongs to one thread at a time. While it runs, methods that change it wait
    if they are called from other threads, and values read from other threads may be from within a step.

    Attributes:
        model: the robot, with the gravity of the settings.
        settings: settings of the simulation.
        terrain: the ground.
        contact_points: points where the robot can touch the ground.
    """

    def __init__(self, model: Model, settings: SimulatorSettings | None = None, **changes: Any) -> None:
        """Prepare a simulation in the state of `reset` without arguments.

        Args:
            model: robot.
            settings: settings of the simulation; None: defaults.
            changes: fields of `SimulatorSettings`.

        Raises:
            ArgumentError: the settings are invalid.
        """
        if not isinstance(model, Model):
            raise ArgumentError(
                f'model is {type(model).__name__}; expected a Model, as returned by load_model'
            )
        if settings is None:
            settings = SimulatorSettings()
        elif not isinstance(settings, SimulatorSettings):
            raise ArgumentError(f'settings is {type(settings).__name__}; expected SimulatorSettings')
        settings = settings.replace(**changes) if changes else settings
        if settings.contact == 'auto':
            settings = settings.replace(contact='impulse' if model.floating_base else 'none')
        self.settings = settings
        self.terrain = Terrain.load(self.settings.terrain)
        self.model = model if self.settings.gravity is None else model.with_gravity(self.settings.gravity)
        self.contact_points = model.contact_points if self.settings.contact != 'none' else ()
        self._scene = Scene(self.model, self.settings, self.terrain, self.contact_points)
        self._check_integrator()
        self._fingerprint = fingerprint(self.model, self.settings, self._scene)
        _simulate.load()
        _take_command.load()
        self._run, self._address, self._words = _simulate.run, self._scene.packed.address, self._scene.words
        self._dt = self.settings.dt
        self._running = threading.Lock()  # held during `run`
        self._stepping = threading.Lock()  # held while the kernel runs without the GIL
        q = self.standing()
        self._start(q, np.zeros(model.nv), self.settings.seed, self.distances(q)[0])
        self._is_ready = True

    def __repr__(self) -> str:
        return f"<Simulator of '{self.model.name}': contact {self.settings.contact}, t = {self.time:g} s>"

    def __setattr__(self, name: str, value: object) -> None:
        """Reject assignments that would have no effect: settings are read once, at construction."""
        is_ours = type(self) is Simulator or name in _known_names()  # a subclass may have more
        if is_ours and not name.startswith('_') and getattr(self, '_is_ready', False):
            raise AttributeError(f"'{name}' of a simulator cannot be set; {_what_to_do(name)}")
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError('a Simulator cannot be copied; create a new one and restore a snapshot of this one')

    # ---------------------------------------------------------------- state

    def reset(
        self, q: npt.ArrayLike | None = None, u: npt.ArrayLike | None = None, seed: int | None = None
    ) -> None:
        """Restart at time zero, without command, external forces or solver memory.

        Args:
            q: (nq,) configuration; None: the standing pose on the ground.
            u: (nv,) velocity; None: at rest.
            seed: seed of the noise from now on; None: that of the settings.

        Raises:
            ArgumentError: an invalid argument, or a start too deep in the ground (`DEEPEST_START`).
        """
        if seed is not None:
            self.settings.replace(seed=seed)  # validates it
        q = self.standing() if q is None else self._checked('q', q)
        u = np.zeros(self.model.nv) if u is None else self._checked('u', u)
        self._start(q, u, self.settings.seed if seed is None else seed, self._check_depth(q))

    def _start(self, q: Floats, u: Floats, seed: int, distances: Floats) -> None:
        """Start at time zero with a valid state and the distances of its contact points to the ground."""
        suite = SensorSuite(self.model, self.settings.sensors, seed, self._dt)
        with self._stepping:
            self._suite = suite
            self._scene.state[:] = 0.0
            self._scene.counters['converged'] = self._scene.counters['substeps'] = 1.0
            self._scene.q[:], self._scene.u[:] = q, u
            self._scene.point_memory['distance'] = distances

    def set_state(self, q: npt.ArrayLike | None = None, u: npt.ArrayLike | None = None) -> None:
        """Set the state; time, commands and external forces continue.

        Args:
            q: (nq,) configuration; None: unchanged.
            u: (nv,) velocity; None: unchanged.

        Raises:
            ArgumentError: as for `reset`.
        """
        q = self.q if q is None else self._checked('q', q)
        u = self.u if u is None else self._checked('u', u)
        distances = self._check_depth(q)
        with self._stepping:
            self._scene.q[:], self._scene.u[:] = q, u
            self._scene.point_memory[:] = 0.0
            self._scene.joint_memory[:] = 0.0
            self._scene.foot_forces[:] = 0.0
            self._scene.point_memory['distance'] = distances
            for name in ('skips', 'refined'):  # what the contact solver learned before
                self._scene.counters[name] = 0

    def standing(self) -> Floats:
        """(nq,) the standing (or neutral) pose of the model, placed on the ground and aligned with it."""
        return self.on_ground(self.model.standing if self.model.standing is not None else self.model.neutral)

    def on_ground(self, q: npt.ArrayLike) -> Floats:
        """(nq,) a configuration with a level base above z = 0, aligned with the ground and placed on it.

        Args:
            q: (nq,) configuration; returned unchanged for a fixed base.

        Raises:
            ArgumentError: a wrong shape, or a value that is not finite.
        """
        q = self._checked('q', q)
        if not self.model.floating_base or not self.contact_points:
            return q
        self._tilt(q)
        for _ in range(50):
            distance, normal = self.distances(q)
            i = int(np.argmin(distance))
            # done; or there is no ground below, only a wall
            if abs(distance[i]) < 1e-12 or normal[i, 2] < 0.1:
                break
            q[2] -= distance[i] / normal[i, 2]
        return q

    @property
    def q(self) -> Floats:
        """(nq,) configuration, a copy."""
        return self._scene.q.copy()

    @property
    def u(self) -> Floats:
        """(nv,) velocity, a copy."""
        return self._scene.u.copy()

    @property
    def time(self) -> float:
        """Simulated time since the reset [s]."""
        return self._dt * self.step_count

    @property
    def step_count(self) -> int:
        """Time steps since the reset."""
        return int(self._scene.counters['step'])

    # ---------------------------------------------------------------- results of the last step

    @property
    def tau(self) -> Floats:
        """(nj,) motor torques in the last step, without friction [N m or N]."""
        return self._scene.tau.copy()

    @property
    def acceleration(self) -> Floats:
        """(nv,) mean acceleration over the last step, including impacts."""
        return self._scene.acceleration.copy()

    @property
    def foot_forces(self) -> Floats:
        """(feet, 3) forces of the ground on the feet in the last step, in world axes [N]."""
        return self._scene.foot_forces.copy()

    @property
    def contact_forces(self) -> Floats:
        """(points, 3) forces of the ground on all contact points in the last step, in world axes [N]."""
        return np.asarray(self._scene.point_memory['impulse'] / self._dt)

    @property
    def contact_distances(self) -> Floats:
        """(points,) distance of the contact points to the ground before the last step [m].

        After a run that diverged, they may be lower bounds.
        """
        return np.array(self._scene.point_memory['distance'])

    @property
    def contact_normals(self) -> Floats:
        """(points, 3) normals of the ground at the contact points before the last step, in world axes."""
        return np.array(self._scene.point_memory['normal'])

    @property
    def sweeps(self) -> int:
        """Sweeps over the contacts in the last step, at most `max_sweeps`.

        Sub-steps, and the search for sticking joints, solve the contacts several times in one step: it is the
        maximum of these solutions.
        """
        return int(self._scene.counters['sweeps'])

    @property
    def residual(self) -> float:
        """Residual of the contact problem in the last step: that of its natural map [m/s].

        It is the largest over all contacts, joint limits and sticking joints; zero at a solution and nowhere
        else (docs/contact.md).
        """
        return float(self._scene.counters['residual'])

    @property
    def iterations(self) -> int:
        """Newton iterations of the contact solver in the last step, over all solutions."""
        return int(self._scene.counters['iterations'])

    @property
    def ldlt_steps(self) -> int:
        """Time steps since the reset in which LLT failed and LDLT was used; see `forward_dynamics`."""
        return int(self._scene.counters['ldlt_steps'])

    @property
    def converged(self) -> bool:
        """Whether the last step met the tolerance and found the sticking joints."""
        return bool(self._scene.counters['converged'])

    @property
    def substeps(self) -> int:
        """Number of sub-steps in the last step."""
        return int(self._scene.counters['substeps'])

    def energy(self) -> tuple[float, float]:
        """Current kinetic and potential energy of the robot [J]."""
        return _energy(self.model, self._scene.q, self._scene.u)  # type: ignore[return-value]

    # ---------------------------------------------------------------- sensors

    def truth(self) -> Readings:
        """The current readings of perfect sensors."""
        scene = self._scene
        return true_readings(
            self.model,
            self.settings.sensors,
            self.time,
            self.q,
            self.u,
            self.acceleration,
            self.model.gravity,
            scene.tau.copy(),
            self.foot_forces,
        )

    def sensors(self) -> Readings:
        """The current readings of the sensors; reading twice in one step returns the same values."""
        return self.measure(self.truth())

    def leg_sensors(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The current readings of joints and feet only, as `sensors` returns them, in a fraction of the time.

        Returns:
            (nj,) positions, velocities and torques of the joints, and (feet, 3) forces on the feet.
        """
        model, scene = self.model, self._scene
        q, u = scene.q[model.nq - model.nj :], scene.u[model.nv - model.nj :]
        return self._suite.measure_legs(q, u, scene.tau, scene.foot_forces, self.step_count)

    def measure(self, truth: Readings) -> Readings:
        """The readings of the sensors in this step for given true values."""
        return self._suite.measure(truth, self.step_count)

    # ---------------------------------------------------------------- inputs

    def command(
        self,
        tau: npt.ArrayLike | None = None,
        q: npt.ArrayLike | None = None,
        qd: npt.ArrayLike | None = None,
        kp: npt.ArrayLike = 0.0,
        kd: npt.ArrayLike = 0.0,
    ) -> None:
        """Command the joint drives from now on: tau + kp (q - q_j) + kd (qd - qd_j), see `JointCommand`.

        Raises:
            ArgumentError: a wrong shape, a value that is not finite, a negative gain, a target without gain.
        """
        nj = self.model.nj
        p, d = _of_all_joints(kp, nj), _of_all_joints(kd, nj)
        free = self._run is _simulate.run  # no other thread is running the kernel
        if free and not _take_command.run(self._address, self._words, tau, q, qd, p, d):
            return
        drives = JointCommand(tau, q, qd, kp, kd).drives(nj)
        with self._stepping:
            self._scene.command[:] = drives
            self._scene.counters['has_gains'] = int(np.any(drives['kp']) or np.any(drives['kd']))

    @property
    def current_command(self) -> dict[str, Any]:
        """The current arguments of `command`, each (nj,) or None."""
        command = self._scene.command
        values: dict[str, Any] = {name: np.array(command[name]) for name in ('tau', 'kp', 'kd')}
        values['q'] = np.array(command['q']) if np.any(values['kp']) else None
        values['qd'] = np.array(command['qd']) if np.any(values['kd']) else None
        return values

    def apply_force(self, link: str, wrench: npt.ArrayLike, duration: float) -> None:
        """Apply a wrench to a link from now on.

        Args:
            link: name of the link.
            wrench: (6,) [force; moment] at the link's origin, in world axes, constant [N, N m].
            duration: of the wrench [s]; in the last time step its mean over the step is applied.

        Raises:
            ArgumentError: an unknown link, a wrong shape or value, or too many forces at once.
        """
        numbers = vector('wrench', wrench, 6)
        frame = LinkFrame.array(self._scene.packed.frame(link, 'link'))[0]
        if not _is_number(duration) or not 0.0 < duration <= _LONGEST_FORCE:
            raise ArgumentError(
                f'duration is {_short(duration)}; expected a number above 0, at most {_LONGEST_FORCE:g} [s]'
            )
        with self._stepping:
            free = np.flatnonzero(self._scene.forces['time_left'] <= 0.0)
            if not len(free):
                raise ArgumentError(f'there are already {MAX_FORCES} external forces; expected fewer at once')
            entry = self._scene.forces[free[0]]
            entry['lane'], entry['position'] = frame['place'], frame['position']
            entry['force'], entry['moment'] = numbers[:3], numbers[3:]
            entry['time_left'] = duration

    # ---------------------------------------------------------------- time

    def step(self, tau: npt.ArrayLike | None = None) -> None:
        """Advance by one time step.

        Args:
            tau: (nj,) joint torques from now on [N m or N]; None keeps the current command (none after a
                reset).

        Raises:
            ArgumentError: a wrong shape, or a value that is not finite; the state is unchanged.
            SimulationDiverged: the step diverged; the state is the one before it.
        """
        status = self._run(self._address, self._words, 1, tau)
        if status:
            if status == BAD_TORQUE:
                tau = joint_numbers('tau', tau, self.model.nj, single=False)  # type: ignore[arg-type]
                status = self._run(self._address, self._words, 1, tau)
            if status == LOG_FULL:
                with self._stepping:
                    self._scene.grow_log()
                status = self._run(self._address, self._words, 1, tau)
            self._check(status)

    def run(
        self,
        controller: Controller | JointCommand | None,
        duration: float,
        log_every: int = 1,
        progress: bool | None = None,
    ) -> Log:
        """Advance by a duration, and return the log.

        Args:
            controller: called before every step with the simulator; it returns joint torques (nj,), a
                `JointCommand`, or None to leave the command unchanged. A `JointCommand` or None instead of a
                function applies during the whole run, without calls of Python. Steps that the controller
                takes itself are in addition to the duration, and are logged as well.
            duration: rounded to whole time steps [s].
            log_every: steps between two rows of the log.
            progress: whether to show a progress bar; None shows one on a terminal if it takes longer than a
                second.

        Raises:
            ArgumentError: an invalid argument, or an invalid return value of the controller.
            SimulationDiverged: as for `step`; its attribute `log` has the log up to then.
        """
        steps = self._count_steps(duration)
        log_every = _whole('log_every', log_every)
        with self._logging():
            if isinstance(controller, JointCommand):
                self.command(*controller.arguments)
            elif controller is not None and not callable(controller):
                raise ArgumentError(
                    f'controller is {type(controller).__name__}; expected a function, a JointCommand or None'
                )
            rows = _room(steps // log_every + 2, row_width(self.model))  # one per logged step, and a spare
            self._scene.log_to(rows, log_every)
            try:
                with contextlib.closing(_chunks(steps, progress)) as chunks:
                    for count in chunks:
                        self._advance(controller if callable(controller) else None, count)
            except SimulationDiverged as error:
                error.log = self._take_log()
                raise
            return self._take_log()

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        """Context of the log, which belongs to one run at a time.

        Raises:
            ArgumentError: a run is already active.
        """
        if not self._running.acquire(blocking=False):
            raise ArgumentError('run was called by the controller of a run; expected a call of step, or none')
        try:
            yield
        finally:
            self._scene.log_to(None)
            self._running.release()

    # ---------------------------------------------------------------- snapshots

    def snapshot(self) -> bytes:
        """The complete state; after `restore`, the simulation continues bit-identically."""
        return pack_snapshot(self._fingerprint, self._suite.seed, self._scene.state)

    def restore(self, snapshot: bytes) -> None:
        """Restore a snapshot of a simulator with the same robot and settings.

        Raises:
            ArgumentError: it is not a snapshot, belongs to another robot or other settings, or was edited;
                the state is unchanged.
        """
        seed, state = unpack_snapshot(snapshot, self._fingerprint, len(self._scene.state))
        check_state(self._scene, self.model, state)
        suite = self._suite
        if seed != suite.seed:
            self.settings.replace(seed=seed)  # validates it
            suite = SensorSuite(self.model, self.settings.sensors, seed, self._dt)
        with self._stepping:
            self._suite = suite
            self._scene.state[:] = state

    # ---------------------------------------------------------------- internals

    def _check_integrator(self) -> None:
        rough = self.settings.integrator == 'rk4' and self.settings.joint_friction == 'stick'
        if rough and np.any(self._scene.coulomb > 0.0):
            raise ArgumentError(
                "integrator is 'rk4', which does not support stiction; expected "
                "joint_friction='explicit' or 'none', or integrator='semi_implicit'"
            )

    def _checked(self, name: str, value: npt.ArrayLike) -> Floats:
        """A validated configuration or velocity; the quaternion of a configuration is normalised."""
        states = States(self.model, q=value) if name == 'q' else States(self.model, u=value)
        states.check()
        checked = states[name].copy()
        if checked.ndim != 1:
            raise ArgumentError(f'{name} has shape {checked.shape}; expected a single state')
        if name == 'q' and self.model.floating_base:
            checked[3:7] /= np.linalg.norm(checked[3:7])
        return checked

    def distances(self, q: Floats) -> tuple[Floats, Floats]:
        """Distances (points,) of the contact points to the ground [m], and its normals (points, 3), at q."""
        distance, normal = np.empty(len(self.contact_points)), np.empty((len(self.contact_points), 3))
        for i, point in enumerate(self.contact_points):
            R_WF, p_WF = frame_pose(self.model, q, point.link)
            p = p_WF + R_WF @ np.array(point.position)
            distance[i], normal[i] = self.terrain.distance(p, point.radius)
        return distance, normal

    def _check_depth(self, q: Floats) -> Floats:
        if not self.contact_points:
            return np.zeros(0)
        distance, _ = self.distances(q)
        i, deepest = int(np.argmin(distance)), DEEPEST_START[self.settings.contact]
        if distance[i] < -deepest:
            raise ArgumentError(
                f"q puts contact point '{self.contact_points[i].name}' {-distance[i]:.3g} m into the ground; "
                f'expected at most {deepest:g} m with {self.settings.contact} contact'
            )
        return distance

    def _tilt(self, q: Floats) -> None:
        """Rotate the base, which is level in q, to the plane that best fits the ground below the feet."""
        feet = np.array([frame_pose(self.model, q, foot)[1] for foot in self.model.foot_names]).reshape(-1, 3)
        heights = np.asarray(self.terrain.height(feet[:, 0], feet[:, 1]))
        if len(feet) < 3 or not np.all(np.isfinite(heights)):
            return
        # z = a x + b y + c, and the shortest rotation from upright to its normal n: (z x n, 1 + n z)
        a, b, c = np.linalg.lstsq(np.column_stack([feet[:, :2], np.ones(len(feet))]), heights, rcond=None)[0]
        n = np.array([-a, -b, 1.0]) / math.sqrt(a * a + b * b + 1.0)
        turn = np.array([-n[1], n[0], 0.0, 1.0 + n[2]])
        q[3:7] = turn / np.linalg.norm(turn)
        q[:3] = np.array([q[0], q[1], a * q[0] + b * q[1] + c]) + n * q[2]

    def _count_steps(self, duration: float) -> int:
        if not _is_number(duration) or not 0.0 <= duration < math.inf:
            raise ArgumentError(f'duration is {duration!r}; expected a number of at least 0 [s]')
        if duration > _MOST_STEPS * self._dt:
            raise ArgumentError(
                f'duration is {_short(duration)} s; expected at most {_MOST_STEPS * self._dt:g} s '
                f'({_MOST_STEPS:.0e} time steps)'
            )
        return round(float(duration) / self._dt)

    def _advance(self, controller: Controller | None, steps: int) -> None:
        if controller is None:
            run = self._run if steps < _MANY_STEPS else self._run_unlocked
            self._check(run(self._address, self._words, steps, None))
            return
        for _ in range(steps):
            wanted = controller(self)
            try:
                if isinstance(wanted, JointCommand):
                    self.command(*wanted.arguments)
                    wanted = None
                self.step(wanted)
            except ArgumentError as error:
                raise ArgumentError(f'the controller returned an invalid command: {error}') from error

    def _run_unlocked(self, *arguments: Any) -> int:
        """Call the kernel without the GIL; steps from other threads wait."""
        with self._stepping:
            self._run = self._run_afterwards
            try:
                return _simulate.run_unlocked(*arguments)
            finally:
                self._run = _simulate.run

    def _run_afterwards(self, *arguments: Any) -> int:
        """Call the kernel when it is free."""
        with self._stepping:
            return _simulate.run(*arguments)

    def _check(self, status: int) -> None:
        if not status:
            return
        q, u = self.q, self.u
        what = {NOT_FINITE: 'a number that is not finite', TOO_ENERGETIC: 'an energy above energy_limit'}.get(
            status, 'a rotation of more than 1 rad in one time step'
        )
        hints = [f'a smaller dt than {self._dt:g} s']
        if self._is_indefinite():
            hints.append(
                'physically consistent inertial parameters (the mass matrix is not positive definite)'
            )
        if self.settings.contact == 'spring_damper':
            hints.append(
                'softer contact' if self.settings.substeps is None else 'softer contact, or substeps=None'
            )
        if np.any(self._scene.command['kp']) or np.any(self._scene.command['kd']):
            hints.append('smaller gains')
        raise SimulationDiverged(
            f'the step after t = {self.time:g} s leads to {what}; try {", or ".join(hints)}', self.time, q, u
        )

    def _is_indefinite(self) -> bool:
        """Whether the mass matrix is not positive definite."""
        try:
            np.linalg.cholesky(mass_matrix(self.model, self.q))
        except np.linalg.LinAlgError:
            return True
        return False

    def _take_log(self) -> Log:
        return Log.from_rows(self._scene.log_rows, self.model, self.settings)


def _of_all_joints(gain: Any, nj: int) -> Any:
    """(nj,) gains for one number; anything else as it is."""
    kind = type(gain)
    if kind is float or (kind is int and abs(gain) < _LARGEST_INT):
        return _repeated(float(gain), nj)
    return gain


@functools.lru_cache(maxsize=64)
def _repeated(number: float, count: int) -> Floats:
    return np.full(count, number)


def _chunks(steps: int, progress: bool | None) -> Generator[int, None, None]:
    """Numbers of steps between two updates of the progress bar, see `Simulator.run`."""
    counts = [min(_CHUNK, steps - done) for done in range(0, steps, _CHUNK)]
    if progress is False or (progress is None and len(counts) < 2):
        yield from counts
        return
    from tqdm import tqdm

    hidden, delay = (None, 1) if progress is None else (False, 0)
    with tqdm(total=steps, unit='step', disable=hidden, delay=delay, leave=False) as bar:
        for count in counts:
            yield count
            bar.update(count)


def _room(rows: int, words: int) -> Floats:
    """Memory for a log.

    Raises:
        ArgumentError: there is not enough memory.
    """
    try:
        return np.empty((rows, words))
    except (MemoryError, ValueError) as error:
        size = rows * words * 8 / 2**30
        raise ArgumentError(
            f'duration requires {rows} rows of the log ({size:.3g} GiB); expected fewer: a larger log_every'
        ) from error


@functools.cache
def _known_names() -> tuple[str, ...]:
    """Names of settings and of attributes of a simulator."""
    own = [name for name in dir(Simulator) if not name.startswith('_')]
    return (*SimulatorSettings.parameters(), *own, 'model', 'settings', 'terrain', 'contact_points')


def _what_to_do(name: str) -> str:
    """Advice on an alternative to setting an attribute."""
    if name in SimulatorSettings.parameters():
        return f'create a new one: Simulator(sim.model, sim.settings.replace({name}=...))'
    if name in ('q', 'u'):
        return f'use sim.set_state({name}=...)'
    near = [] if name in _known_names() else difflib.get_close_matches(name, _known_names(), n=1)
    return f"did you mean '{near[0]}'?" if near else 'use its methods to change it'


def _short(value: object) -> str:
    """A number, shortened for messages."""
    text = f'{value:g}' if isinstance(value, float) else repr(value)
    return text if len(text) <= 30 else f'{text[:27]}...'


def _is_number(value: object) -> bool:
    """Whether it is a real number; booleans are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _whole(name: str, value: int) -> int:
    """An integer of at least 1.

    Raises:
        ArgumentError: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**62:
        raise ArgumentError(f'{name} is {value!r}; expected a whole number of at least 1')
    return int(value)
