# SPDX-License-Identifier: Apache-2.0
"""Calls of the public functions with arguments of odd types, shapes, strides, sizes and values.

    python test/odd_calls.py --calls 20000 --seed 0

Models are dropped and made anew, arrays are shared by threads that change them, simulators are stepped while
they run. Each call may succeed or raise an exception of the library, TypeError and the like. What must not
happen is that the process ends, or that an exception shows a mistake inside the library. The last lines say
which outcomes there were; a process that ends early leaves the traceback of faulthandler.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import faulthandler
import gc
import json
import pickle
import random
import sys
import threading
import warnings
from typing import Any

import numpy as np
from public_calls import CALLS, call, good_arguments

import quad_dynamics as qd

ROBOTS = ('go2', 'two_link_arm', 'mini_cheetah_leg')
SIZES = (0, 1, 2, 5, 63, 64, 65, 130)
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 1e200, 2.0**53, 1.0)
# Exceptions that would be a mistake of the library.
MISTAKES = (AssertionError, SystemError, AttributeError, NameError, IndexError, ZeroDivisionError)


class Odd:
    """An object that is called as an array, and is none."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise ValueError('no array')


class Subclass(np.ndarray):
    """An array that is not quite one."""


class Caller:
    """Makes calls, one after the other, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.mistakes: list[str] = []
        self.models = {name: qd.load_model(name) for name in ROBOTS}
        self.kept: list[Any] = []
        self.simulators: dict[str, Any] = {}

    def run(self, calls: int) -> None:
        """Make so many calls."""
        kinds = (
            [self.function] * 12 + [self.simulator] * 4 + [self.threads, self.other, self.other, self.model]
        )
        while sum(self.outcomes.values()) < calls:
            self.attempt(self.random.choice(kinds))

    def attempt(self, action: Any, *arguments: Any) -> None:
        """One call; its outcome is counted."""
        try:
            result = action(*arguments)
            outcome = 'returned'
        except Exception as error:
            result, outcome = None, type(error).__name__
            if isinstance(error, MISTAKES):
                self.mistakes.append(f'{type(error).__name__}: {error}')
        self.outcomes[outcome] += 1
        if self.random.random() < 0.05:
            self.kept = [*self.kept[-20:], result]  # what was returned outlives models and arguments

    # ---------------------------------------------------------------- odd values

    def odd_array(self, x: Any) -> Any:
        """An array, changed in a way that a caller might not expect to matter."""
        x = np.array(x, dtype=float)
        pick = self.random.choice
        changes = (
            lambda: np.stack([x] * pick(SIZES)) if pick(SIZES) else np.empty((0, *x.shape)),
            lambda: np.stack([x] * pick(SIZES[1:])),
            lambda: np.stack([x] * pick(SIZES[1:]))[::-1],
            lambda: np.asfortranarray(np.stack([x] * 3)),
            lambda: np.broadcast_to(x, (pick(SIZES[1:]), *x.shape)),
            lambda: np.repeat(x, 2)[::2],
            lambda: x[::-1],
            lambda: x[: pick((0, 1, -1))],
            lambda: np.append(x, 0.0),
            lambda: x.reshape(1, 1, -1),
            lambda: x.reshape(-1, 1),
            lambda: x.astype(pick((np.float32, np.float16, np.longdouble, np.int64, np.int8, bool, object))),
            lambda: x.astype(pick(('>f8', 'c16', 'S8', 'U8', 'M8[s]'))),
            lambda: x.view(pick((Subclass, np.matrix))),
            lambda: np.ma.masked_array(x, self.rng.random(x.shape) < 0.2),
            lambda: np.frombuffer(b'\0' + x.tobytes(), dtype=np.uint8)[1:].view(np.float64),
            lambda: self.read_only(x),
            lambda: np.full(x.shape, pick(NUMBERS)),
            lambda: self.one_number(x),
            lambda: x * pick((1e3, 1e100, -1.0)),
            x.tolist,
            lambda: tuple(x.tolist()),
            lambda: pick((None, 0, 1.5, 'FL_foot', b'', {}, [], (), Odd(), object(), [[]], [None], 10**400)),
            lambda: np.float64(1.0),
            lambda: np.array(1.0),
            lambda: np.array([[]]),
            lambda: memoryview(x),
            lambda: np.zeros(x.shape, dtype=[('a', float)]),
            lambda: np.stack([x] * 70)[:, ::-1],
        )
        return pick(changes)()

    @staticmethod
    def read_only(x: np.ndarray) -> np.ndarray:
        x.setflags(write=False)
        return x

    def one_number(self, x: np.ndarray) -> np.ndarray:
        if x.size:
            x.flat[self.random.randrange(x.size)] = self.random.choice(NUMBERS)
        return x

    def odd_value(self, key: str, value: Any) -> Any:
        """Another value of an argument."""
        pick = self.random.choice
        if isinstance(value, np.ndarray) and value.dtype != bool:
            return self.odd_array(value)
        if isinstance(value, dict):
            odd = {k: self.odd_array(x) if pick((0, 1)) else x for k, x in value.items()}
            if pick((0, 1, 2)) == 0:
                odd[pick(('', 'nowhere', 3, None, ('FL_foot',)))] = np.zeros(6)
            return pick((odd, odd, odd, list(odd), None, {None: None}))
        if isinstance(value, list):
            return pick(
                (
                    value[:1],
                    value * 7,
                    [*value, *value[:1], None],
                    [(one, self.odd_array(np.zeros(3))) for one in value if isinstance(one, str)],
                    tuple(value),
                    iter(value),
                    'FL_foot',
                    [[]],
                    None,
                    [],
                )
            )
        if isinstance(value, str):
            return pick((value + 'x', '', None, 3, b'go2', value.encode(), [value], object()))
        return pick((value, None, 0, -1, 2**70, 1.5, np.nan, 'yes', [], np.ones(3), np.zeros(3, dtype=int)))

    # ---------------------------------------------------------------- kinds of calls

    def arguments(self, model: Any, name: str) -> dict[str, Any]:
        """Good arguments of a call, of which some become odd; often all states become a batch."""
        arguments = dict(good_arguments(model, self.random.randrange(5))[name])
        if self.random.random() < 0.3:
            n = self.random.choice(SIZES[1:])
            for key in {'q', 'u', 'du', 'tau', 'q0', 'q1'} & set(arguments):
                arguments[key] = np.stack([arguments[key]] * n)
        for key in list(arguments):
            if self.random.random() < 0.35:
                arguments[key] = self.odd_value(key, arguments[key])
        if name.startswith('controller_terms') and self.random.random() < 0.3:
            arguments['out'] = self.odd_out(model)
        return arguments

    def odd_out(self, model: Any) -> Any:
        """Arrays for the results of `controller_terms` that do not fit."""
        good = qd.controller_terms(model, model.neutral, np.zeros(model.nv))
        parts = list(good)
        parts[self.random.randrange(len(parts))] = self.odd_value('out', parts[0])
        shared = [parts[0]] * len(parts)
        return self.random.choice((good, tuple(parts), type(good)(*parts), type(good)(*shared), parts, None))

    def function(self) -> Any:
        """A function of states."""
        model = self.models[self.random.choice(ROBOTS)]
        name = self.random.choice(CALLS)
        return call(qd, model, name, self.arguments(model, name))

    def other(self) -> Any:
        """Functions of other things."""
        model = self.models[self.random.choice(ROBOTS)]
        q, u = model.neutral, np.ones(model.nv)
        M = qd.mass_matrix(model, q)
        odd = self.odd_array
        return self.random.choice(
            (
                lambda: qd.factorize(odd(M)),
                lambda: qd.factorize(M).solve(odd(u)),
                lambda: qd.Terrain.load('stairs').distance(
                    odd(np.zeros((4, 3))), self.random.choice(NUMBERS)
                ),
                lambda: qd.Terrain.load('flat').height(odd(u), odd(u)),
                lambda: qd.accumulate_regressor(model, odd(q), u, u, odd(u)),
                lambda: qd.accumulate_regressor(model, q, u, u, u, weights=odd(u)),
                lambda: qd.integrate(model, q, u, self.random.choice(NUMBERS)),
                lambda: qd.mass_matrix(self.random.choice((None, 'go2', 3, self, model._packed)), q),
                lambda: model.with_pi(odd(model.pi)),
                lambda: model.with_friction(odd(np.zeros(model.nj))),
            )
        )()

    def model(self) -> Any:
        """Drop a model while results of it are kept, and make another one, or a copy."""
        name = self.random.choice(ROBOTS)
        others = (
            lambda: qd.load_model(name),
            lambda: copy.deepcopy(self.models[name]),
            lambda: pickle.loads(pickle.dumps(self.models[name])),
            lambda: self.models[name].with_gravity([0.0, 0.0, -3.0]),
            self.models[name].without_rotors,
        )
        self.models[name] = self.random.choice(others)()
        if name in self.simulators and self.random.random() < 0.5:
            del self.simulators[name]
        if self.random.random() < 0.3:
            gc.collect()

    def simulator(self) -> Any:
        """Something with a simulator."""
        name = self.random.choice(ROBOTS)
        if name not in self.simulators:
            contact = self.random.choice(('auto', 'spring_damper', 'impulse', 'none'))
            self.simulators[name] = qd.Simulator(self.models[name], contact=contact)
        sim, odd = self.simulators[name], self.odd_array
        tau, pick = np.zeros(sim.model.nj), self.random.choice
        if pick(range(20)) == 0:
            sim.reset()
        actions = (
            lambda: sim.step(odd(tau)),
            sim.step,
            lambda: sim.reset(odd(sim.q), odd(sim.u)),
            lambda: sim.set_state(odd(sim.q)),
            lambda: sim.command(tau=odd(tau), q=odd(tau), kp=odd(tau)),
            lambda: sim.apply_force(
                pick((sim.model.body_names[-1], '', None)), odd(np.zeros(6)), pick(NUMBERS)
            ),
            lambda: sim.run(
                None, pick((0.0, 0.01, 0.05, -1.0, np.nan)), pick((1, 7, 0, 2.5)), progress=False
            ),
            lambda: sim.run(lambda s: odd(tau), 0.003, progress=False),
            lambda: sim.restore(self.odd_bytes(sim.snapshot())),
            lambda: sim.on_ground(odd(sim.q)),
            lambda: (sim.energy(), sim.truth(), sim.sensors(), sim.contact_forces),
        )
        return pick(actions)()

    def odd_bytes(self, content: bytes) -> Any:
        changed = bytearray(content)
        for _ in range(self.random.randrange(4)):
            changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return self.random.choice((content, bytes(changed), content[:-8], b'', content * 2, 'text', None))

    def threads(self) -> None:
        """Several calls at once, on one model and the same arrays, which another thread changes meanwhile."""
        model = self.models[self.random.choice(ROBOTS)]
        names = [self.random.choice(CALLS) for _ in range(3)]
        given = [self.arguments(model, name) for name in names]
        shared = np.stack([model.neutral] * 200)
        speeds = np.zeros((200, model.nv))
        sim = qd.Simulator(model, contact='none')
        stop = threading.Event()

        def change() -> None:
            while not stop.is_set():
                for shape in ((-1,), (200, -1), (100, 2, -1)):
                    shared.shape = shape
                shared.flat[8] = np.nan
                shared.flat[8] = 0.0
                with contextlib.suppress(ValueError):  # while others have it
                    speeds.resize((300, model.nv))
                    speeds.resize((200, model.nv))

        def quietly(action: Any) -> None:
            expected = (qd.ArgumentError, qd.SimulationDiverged, TypeError, ValueError, OverflowError)
            with contextlib.suppress(*expected):
                action()

        jobs = [lambda n=n, a=a: call(qd, model, n, a) for n, a in zip(names, given, strict=True)]
        jobs += [lambda: [qd.forward_dynamics(model, shared, speeds, speeds) for _ in range(5)]]
        jobs += [lambda: sim.run(None, 0.1, progress=False), lambda: [sim.step() for _ in range(20)]]
        jobs += [lambda: [sim.reset() for _ in range(5)], lambda: sim.run(None, 0.1, progress=False)]
        threads = [threading.Thread(target=quietly, args=(job,)) for job in jobs]
        changer = threading.Thread(target=change)
        for thread in (*threads, changer):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        changer.join()


def main() -> None:
    """Make the calls, and say what came of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--calls', type=int, default=20_000)
    parser.add_argument('--seed', type=int, default=0)
    arguments = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter('ignore')
    np.seterr(all='ignore')
    caller = Caller(arguments.seed)
    caller.run(arguments.calls)
    json.dump({'outcomes': caller.outcomes, 'mistakes': sorted(set(caller.mistakes))}, sys.stdout, indent=1)


if __name__ == '__main__':
    main()
