# SPDX-License-Identifier: Apache-2.0
"""Random edits of good URDFs end in a Model or in our own error: nothing else is raised, nothing hangs."""

from __future__ import annotations

import copy
import random
import time
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from slow_variants import slow_but

from quad_dynamics.errors import ModelError, ModelWarning
from quad_dynamics.model.loading import load_model
from quad_dynamics.model.model import Model
from quad_dynamics.model.xml_tree import parse_xml

SEEDS = range(12)
EDITS_PER_SEED = 250
SLOWEST = 2.0  # of CPU time [s] for one load that takes milliseconds; more is a hang in the making

ROBOTS = ('two_link_arm', 'mini_cheetah_leg', 'branched', 'mini_cheetah')
BRANCHED = """<robot name="branched">
  <link name="root"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="a"><inertial><origin xyz="1 0 0" rpy="0 1 0"/><mass value="1"/>
    <inertia ixx="1" ixy="0.1" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><origin xyz="0 0 1"/><geometry><mesh filename="package://b/a.stl" scale="1 1 1"/></geometry>
      <material name="red"><color rgba="1 0 0 1"/></material></visual>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <link name="b"><inertial><mass value="1e-6"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="left_foot"/><link name="right_foot"/>
  <joint name="ja" type="revolute"><parent link="root"/><child link="a"/><origin xyz="0 1 0" rpy="1 2 3"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3" velocity="4"/>
    <dynamics damping="1" friction="2"/></joint>
  <joint name="jb" type="prismatic"><parent link="root"/><child link="b"/><origin xyz="0 -1 0"/>
    <limit lower="-1" upper="2" effort="3" velocity="4"/><mimic joint="ja" multiplier="2" offset="1"/></joint>
  <joint name="fa" type="fixed"><parent link="a"/><child link="left_foot"/><origin xyz="0 0 -1"/></joint>
  <joint name="fb" type="fixed"><parent link="b"/><child link="right_foot"/><origin xyz="0 0 -1"/></joint>
</robot>"""
VALUES = (
    '', ' ', '0', '-0', '1', '-1', 'nan', 'inf', '-inf', '1e308', '-1e308', '1e-320', '1e-160', '1e9',
    '1 2 3', '0 0 0', '1 2', 'x', '1,2', '0x10', '1_0', '٣', 'root', 'a', 'b', 'fixed', 'floating',
    'revolute', '../../x', 'file:///x', '\x7f', '𝟏', '&', '1e9 1e9 1e9', '1e7 0 -0.2', '1e-320 0 0',
    '9' * 400,
)  # fmt: skip


def text_of(robot: str) -> str:
    return BRANCHED if robot == 'branched' else quiet_load(robot).urdf.text


def quiet_load(source: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # numpy's RuntimeWarning above all
        warnings.simplefilter('ignore', ModelWarning)
        return load_model(source)


def edit_tree(rng: random.Random, text: str) -> str:
    """Delete, double, move, rename or alter elements and attributes."""
    root = parse_xml(text).root
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        elements = [e for e in root.iter() if isinstance(e.tag, str)]
        parents = [(p, c) for p in elements for c in p if isinstance(c.tag, str)]
        kind = rng.randrange(7)
        parent, child = rng.choice(parents) if parents else (root, root)
        if kind == 0 and parents:
            parent.remove(child)
        elif kind == 1 and parents:
            parent.append(copy.deepcopy(child))
        elif kind == 2 and parents:
            rng.choice(elements).append(copy.deepcopy(child))
        elif kind == 3:
            rng.choice(elements).tag = rng.choice(elements).tag
        else:
            holder = rng.choice([e for e in elements if e.attrib] or [root])
            key = rng.choice([*holder.attrib, 'name'])
            if kind == 4:
                holder.attrib.pop(key, None)
            else:
                other = rng.choice([e for e in elements if e.attrib] or [root])
                holder.set(key, rng.choice((*VALUES, *other.attrib.values())))
    return ElementTree.tostring(root, encoding='unicode')


def edit_text(rng: random.Random, text: str) -> str:
    """Delete, double, insert or alter characters."""
    for _ in range(rng.choice((1, 1, 2, 20))):
        i, n = rng.randrange(len(text) + 1), rng.choice((1, 1, 3, 30, 300))
        piece = rng.choice(
            ('', text[i : i + n], text[i : i + n][::-1], rng.choice('<>"\'&=/ \n\0é\ud800-e9.'), *VALUES)
        )
        text = text[:i] + piece + text[i + n * rng.randrange(2) :]
    return text


@pytest.mark.parametrize('seed', slow_but([0], SEEDS), ids=lambda seed: f'seed{seed}')
def test_edited_urdf(seed: int) -> None:
    rng = random.Random(seed)
    texts = {robot: text_of(robot) for robot in ROBOTS}
    models = 0
    for _ in range(EDITS_PER_SEED):
        edit = rng.choice((edit_tree, edit_tree, edit_text))
        text = edit(rng, texts[rng.choice(ROBOTS)])
        if '<' not in text:
            text += '<'
        start = time.process_time()
        try:
            model = quiet_load(text)
        except ModelError as error:
            assert error.problems
            assert all(error.problems)
        else:
            models += 1
            check_model(model)
        assert time.process_time() - start < SLOWEST, text
    assert 10 <= models <= EDITS_PER_SEED - 10, 'edits must neither all be harmless nor all be fatal'


def check_model(model: Model) -> None:
    """What got through must be usable."""
    for array in (
        model.pi,
        model.joint_R,
        model.joint_p,
        model.joint_axis,
        model.viscous,
        model.coulomb,
        model.neutral,
    ):
        assert np.isfinite(array).all()
    assert (model.q_min <= model.q_max).all()
    assert (model.parents < np.arange(model.nj)).all()
    np.testing.assert_allclose(np.linalg.norm(model.joint_axis, axis=1), 1.0, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        standing = model.standing
    assert standing is None or np.isfinite(standing).all()
    again = quiet_load(model.to_urdf())
    assert (again.pi == model.pi).all()


@pytest.mark.parametrize('seed', range(3), ids=lambda seed: f'seed{seed}')
def test_edited_bytes(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp('bytes') / 'robot.urdf'
    outcomes = set()
    for _ in range(150):
        raw = bytearray(text_of('branched').encode())
        for _ in range(rng.choice((1, 3, 10))):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        if rng.random() < 0.1:
            raw = bytearray(rng.choice((b'\xff\xfe', b'\xfe\xff', b'\xef\xbb\xbf', b'\0'))) + raw
        path.write_bytes(bytes(raw))
        try:
            quiet_load(str(path))
            outcomes.add('model')
        except ModelError:
            outcomes.add('error')
    assert outcomes == {'model', 'error'}
