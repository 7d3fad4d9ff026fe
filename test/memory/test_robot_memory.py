# SPDX-License-Identifier: Apache-2.0
"""The memory of a robot: what stands in its records, and what the kernels may not change."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

import quad_dynamics as qd
from quad_dynamics.compiler.record_types import type_of_record
from quad_dynamics.compiler.records import Record
from quad_dynamics.compiler.registry import Kernel
from quad_dynamics.compiler.types import Int
from quad_dynamics.kernels.tree import base_rows, move_pack, position_of_point
from quad_dynamics.memory.layout import Body, Joint, LinkFrame, Pack, Robot
from quad_dynamics.memory.packing import Packed
from quad_dynamics.model.model import Model

WORKSPACE = Body.qd.offset  # rows before this one are constants


@pytest.fixture(scope='module', params=['mini_cheetah', 'two_link_arm'])
def model(request: Any) -> Model:
    """A floating and a fixed base."""
    loaded: Model = qd.load_model(request.param)
    return loaded


def records_of(model: Model) -> tuple[Any, Any, Any]:
    """Root, joints and packs."""
    memory = model._packed.arena
    robot = Robot.array(memory)[0]
    return (
        robot,
        Joint.array(memory, robot['joints'], model.nj),
        Pack.array(memory, robot['packs'], int(robot['n_packs'])),
    )


def body_of_joint(model: Model, j: int) -> tuple[int, int]:
    """Pack and lane of the body of a joint, by following the references."""
    robot, joints, _ = records_of(model)
    place = robot['joints'] + j * Joint.words + joints[j]['body'] - robot['packs']
    return place // Pack.words, place % Pack.words


def test_copies_of_the_arena_go_with_it(model: Model) -> None:
    """At once, not when garbage is collected: nothing refers to itself."""
    packed = Packed(model)
    for _ in range(3):
        with packed.workspace() as address:
            assert address % 32 == 0
    assert len(packed._free) == 1
    copy = weakref.ref(packed._free[0][0])
    gc.disable()
    try:
        del packed
        assert copy() is None
    finally:
        gc.enable()


def test_counts_and_tree(model: Model) -> None:
    robot, joints, _ = records_of(model)
    assert [robot[name] for name in ('nj', 'nq', 'nv', 'nb')] == [model.nj, model.nq, model.nv, model.nb]
    assert robot['floating'] == model.floating_base
    assert robot['gravity'].tolist() == list(model.gravity)
    assert joints['parent'].tolist() == model.parents.tolist()


def test_bodies_stand_below_their_parents(model: Model) -> None:
    _, _, packs = records_of(model)
    for j, parent in enumerate(model.parents):
        k, lane = body_of_joint(model, j)
        assert packs[k]['own_joint'][lane] == packs[k]['joint'][lane] == j
        above = k + packs[k]['parent'] // Pack.words
        expected = (0, lane) if parent < 0 else body_of_joint(model, parent)
        assert (above, lane) == expected


def test_masses_are_those_of_the_model(model: Model) -> None:
    _, _, packs = records_of(model)
    assert packs['mass'].sum() == pytest.approx((model.pi + model.rotor_pi)[::10].sum(), rel=1e-14)


def test_frames_lead_to_bodies(model: Model) -> None:
    robot, _, _ = records_of(model)
    for name, frame in model.frames.items():
        words = LinkFrame.array(model._packed.frame(name))[0]
        joint = frame.body - (model.nb - model.nj)
        assert words['joint'] == max(joint, -1)
        k, lane = body_of_joint(model, joint) if joint >= 0 else (0, 0)
        assert words['place'] == robot['packs'] + k * Pack.words + lane


def test_kernels_do_not_change_constants(model: Model) -> None:
    _, joints, packs = records_of(model)
    rows = packs.view(np.float64).reshape(len(packs), -1)[:, :WORKSPACE]
    before, table = rows.tobytes(), joints.tobytes()
    rng = np.random.default_rng(0)
    q = qd.random_configuration(model, rng)
    u, du = rng.normal(size=(2, model.nv))
    tau = qd.inverse_dynamics(model, q, u, du)
    qd.forward_dynamics(model, q, u, tau)
    qd.coriolis_matrix(model, q, u)
    qd.regressor(model, q, u, du)
    assert (rows.tobytes(), joints.tobytes()) == (before, table)


def joint_for_body(robot: Robot) -> Int:
    position_of_point(robot.joints[0], (0.0, 0.0, 0.0))  # type: ignore[arg-type]
    return 0


def body_for_pack(robot: Robot) -> Int:
    move_pack(robot.joints[0].body, 0.0)  # type: ignore[arg-type]
    return 0


def pack_for_robot(robot: Robot) -> Int:
    return base_rows(robot.packs[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ('function', 'message'),
    [
        (joint_for_body, "position_of_point got Joint as 'body'; expected Body"),
        (body_for_pack, "move_pack got Body as 'pack'; expected Pack"),
        (pack_for_robot, "base_rows got Pack as 'robot'; expected Robot"),
    ],
)
def test_other_records_do_not_compile(
    function: Any, message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('QUAD_DYNAMICS_CACHE_DIR', str(tmp_path))
    kernel = Kernel(function, (type_of_record(Robot),))
    with pytest.raises(TypingError, match=message):
        kernel.load(announce=False)


@pytest.mark.parametrize('record', [Robot, Joint, Pack, Body, LinkFrame])
def test_every_field_says_what_it_is(record: type[Record]) -> None:
    assert all(one.meaning for one in record.fields)
