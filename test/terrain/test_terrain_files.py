# SPDX-License-Identifier: Apache-2.0
"""Terrains from files and values: what is accepted, what is refused, and that nothing of them changes."""

from __future__ import annotations

import copy
import math
import pickle
import re
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from quad_dynamics.errors import ArgumentError
from quad_dynamics.kernels.terrain import ground
from quad_dynamics.terrain.terrain import Box, HeightMap, Plane, Terrain
from quad_dynamics.terrain.terrain_shapes import SHAPES


def test_packed_ground_counts_its_shapes() -> None:
    one = HeightMap(np.zeros((3, 3)), 0.1)
    words = Terrain((Plane(), one, Box((1, 1, 1)), one)).pack()
    header = ground.Ground.array(words)
    assert (header['count'], header['maps']) == (4, 2)


def test_what_load_accepts(tmp_path: Path) -> None:
    box = Box((1, 2, 3), mu=0.3)
    path = tmp_path / 'one.yaml'
    path.write_text('terrain:\n- {shape: box, size: [1, 2, 3], mu: 0.3}\n')
    mapping = {'shape': 'box', 'size': np.array([1, 2, 3]), 'mu': np.float64(0.3)}
    for source in (box, [box], (box,), mapping, [mapping], {'terrain': [mapping]}, path, str(path)):
        assert Terrain.load(source) == Terrain((box,))
    assert Terrain.load('one.yaml', folder=tmp_path) == Terrain((box,))
    known = Terrain.load('flat')
    assert known == Terrain((Plane(),))
    assert known.name == 'flat'
    assert Terrain.load(known) is known
    assert Terrain.load(['flat', box]).shapes == (Plane(), box)


def test_names() -> None:
    assert Terrain.names() == ('flat', 'slope', 'stairs', 'boxes', 'rough')
    for name in Terrain.names():
        assert np.array_equal(Terrain.named(name).pack(), Terrain.named(name).pack())
        # a robot is put on level ground, but for the slope
        xy = np.random.default_rng(0).uniform(-0.3, 0.3, (100, 2))
        assert name == 'slope' or not Terrain.named(name).height(xy[:, 0], xy[:, 1]).any()


@pytest.mark.parametrize('name', ['stiars', 'Flat', 'moon', '', 'x' * 5000, 'stairs\0'])
def test_unknown_name(name: str) -> None:
    with pytest.raises(ArgumentError, match='unknown terrain') as error:
        Terrain.load(name)
    assert all(known in str(error.value) for known in Terrain.names())
    assert len(str(error.value)) < 300
    hints = {'stiars': "did you mean 'stairs'", 'Flat': "did you mean 'flat'"}
    assert hints.get(name, '') in str(error.value)


@pytest.mark.parametrize(
    'source', [None, 3, b'flat', [], {}, [[]], [None], {'terrain': 3}, {'terrain': None}]
)
def test_load_of_other_things(source: Any) -> None:
    with pytest.raises(ArgumentError, match='expected'):
        Terrain.load(source)


BAD_FILE = """
terrain:
- {shape: box, size: [1, 0, 1], mu: -0.1, restitution: 1.5, colour: red}
- {shape: bxo, size: [1, 1, 1]}
- {size: [1, 1, 1]}
- {shape: box, positon: [0, 0, 0]}
- {shape: plane, normal: [0, 0, 0], point: [.nan, 0, 0]}
- {shape: plane, normal: [0, 0, 1], roll: 0.1}
- {shape: stairs, rise: 0.1, run: .inf, steps: 0, width: true}
- {shape: height_map, heights: [[0, 0], [0, .nan]], spacing: 0}
- {shape: height_map, heights: [[0, 0, 0]], spacing: 0.1, yaw: left}
- {shape: height_map, heights: missing.npy, spacing: 0.1}
- {shape: height_map, heights: [[0, 0], [0]], spacing: 0.1}
- marsh
- 7
extra: 1
"""


def test_everything_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / 'bad.yaml'
    path.write_text(BAD_FILE)
    with pytest.raises(ArgumentError) as error:
        Terrain.load(path)
    text = str(error.value)
    expected = [
        "unknown key 'extra' beside 'terrain:'",
        'terrain[0].size is [1, 0, 1]; expected 3 numbers above 0',
        'terrain[0].mu is -0.1; expected a friction coefficient of at least 0',
        'terrain[0].restitution is 1.5; expected a restitution from 0 to 1',
        "terrain[0]: unknown key 'colour'; known keys are shape, size, position, rpy, mu, restitution",
        "terrain[1]: shape is 'bxo'; expected one of plane, box, stairs, height_map",
        "terrain[2]: the key 'shape' is missing",
        "terrain[3]: unknown key 'positon'; did you mean 'position'?",
        'terrain[3]: size is missing',
        'terrain[4].normal is [0, 0, 0]; expected a nonzero direction',
        'terrain[4].point is [nan, 0, 0]; expected 3 finite numbers',
        'terrain[5].normal is given together with roll or pitch',
        'terrain[6].run is inf; expected a number above 0',
        'terrain[6].steps is 0; expected a whole number from 1 to 1000',
        'terrain[6].width is True; expected a number above 0',
        'finite heights; it is nan at row 1, column 1',
        'terrain[7].spacing is 0; expected a number above 0',
        'at least 2 x 2',
        "terrain[8].yaw is 'left'; expected a finite number",
        'missing.npy: cannot be read: No such file or directory',
        'rows of equal length',
        "terrain[11]: unknown terrain 'marsh'",
        'terrain[12] is 7; expected a shape',
    ]
    assert [sentence for sentence in expected if sentence not in text] == []
    assert f'{path}: {len(expected)} problems' in text


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('terrain: [', 'invalid YAML'),
        ('ground: []', "no top key 'terrain:'"),
        ('', "no top key 'terrain:'"),
        ('terrain:\n- {shape: plane, mu: 1, mu: 2}', "the key 'mu' is already"),
        ('terrain: &a [*a]', 'invalid YAML'),
        (b'\xff\xfe\x00', 'not valid UTF-8'),
        ('terrain: []', 'at least one shape'),
    ],
)
def test_broken_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / 'broken.yaml'
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ArgumentError, match=re.escape(message)) as error:
        Terrain.load(path)
    assert str(path) in str(error.value)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match='No such file'):
        Terrain.load('nowhere.yaml')
    with pytest.raises(ArgumentError, match='is a directory'):
        Terrain.load(tmp_path)


HEIGHTS = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])  # the first row is at the lowest y


@pytest.mark.parametrize('kind', ['npy', 'png8', 'png16', 'rgb', 'opaque', 'palette'])
def test_height_map_files(tmp_path: Path, kind: str) -> None:
    """Whatever the file, the same map; its path starts where the YAML file is."""
    pixels = HEIGHTS[::-1] * 51.0  # 255 is white, and the first row of an image is the far side
    grey = Image.fromarray(pixels.astype(np.uint8))
    name = 'hills.npy' if kind == 'npy' else 'hills.png'
    if kind == 'npy':
        np.save(tmp_path / name, HEIGHTS / 5.0)
    elif kind == 'png16':
        Image.fromarray((pixels * 257.0).astype(np.uint16)).save(tmp_path / name)
    else:
        modes = {'png8': 'L', 'rgb': 'RGB', 'opaque': 'LA', 'palette': 'P'}
        grey.convert(modes[kind]).save(tmp_path / name)
    text = f'{{shape: height_map, heights: {name}, spacing: 0.5, scale: 0.1, offset: 0.2}}'
    (tmp_path / 'map.yaml').write_text(f'terrain: [{text}]')
    found = Terrain.load(tmp_path / 'map.yaml')
    # 0 to 1 in the file, then scaled: a few roundings of numbers below 1
    assert np.allclose(found.shapes[0].grid, 0.2 + 0.1 * HEIGHTS / 5.0, rtol=0.0, atol=1e-15)
    assert math.isclose(found.height(0.5, 0.25), 0.3, rel_tol=1e-14)
    assert math.isclose(found.height(-0.5, -0.25), 0.2, rel_tol=1e-14)


def bad_images(folder: Path) -> dict[str, tuple[str, str]]:
    """Name of a file, and what is said about it."""
    pixels = np.full((4, 4), 100, np.uint8)
    alpha = np.full((4, 4), 255, np.uint8)
    alpha[1, 2] = 0
    Image.merge('LA', (Image.fromarray(pixels), Image.fromarray(alpha))).save(folder / 'alpha.png')
    hole = pixels.astype(np.uint16)
    hole[3, 1] = 7
    Image.fromarray(hole).save(folder / 'marked.png', transparency=7)
    Image.merge('RGB', [Image.fromarray(x) for x in (pixels, alpha, pixels)]).save(folder / 'colour.png')
    Image.fromarray(pixels[:1]).save(folder / 'thin.png')
    Image.fromarray(pixels).save(folder / 'other.png', format='GIF')
    (folder / 'broken.png').write_bytes((folder / 'thin.png').read_bytes()[:40])
    np.save(folder / 'holes.npy', [[0.0, np.inf], [0.0, 0.0]])
    np.save(folder / 'cube.npy', np.zeros((3, 3, 3)))
    np.save(folder / 'words.npy', np.array([['a', 'b'], ['c', 'd']]))
    np.save(folder / 'objects.npy', np.array([[None, {}]] * 2), allow_pickle=True)
    (folder / 'empty.npy').write_bytes(b'')
    with (folder / 'archive.npy').open('wb') as file:
        np.savez(file, a=np.zeros((2, 2)))
    (folder / 'map.tif').write_bytes(b'II*')
    return {
        'alpha.png': ('an opaque image', '1 pixels are transparent, the first at row 1, column 2'),
        'marked.png': ('an opaque image', 'the first at row 3, column 1'),
        'colour.png': ('a grayscale image', 'has colours'),
        'thin.png': ('at least 2 x 2', 'it has 1 x 4'),
        'other.png': ('a PNG image', 'cannot identify'),
        'broken.png': ('a PNG image', ''),
        'holes.npy': ('finite heights', 'inf at row 0, column 1'),
        'cube.npy': ('a 2-dimensional array', '(3, 3, 3)'),
        'words.npy': ('array of numbers', '<U1'),
        'objects.npy': ('a .npy file with numbers', ''),
        'empty.npy': ('a .npy file with numbers', ''),
        'archive.npy': ('a .npy file with one array', ''),
        'map.tif': ('a .npy or .png file', ''),
    }


def test_bad_height_map_files(tmp_path: Path) -> None:
    for name, parts in bad_images(tmp_path).items():
        with pytest.raises(ArgumentError) as error:
            HeightMap(tmp_path / name, 0.1)
        assert all(part in str(error.value) for part in (*parts, name)), f'{name}: {error.value}'


def test_png_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new('L', (3, 3)).save(tmp_path / 'map.png')
    monkeypatch.setitem(sys.modules, 'PIL', None)
    with pytest.raises(ArgumentError, match='pip install pillow'):
        HeightMap(tmp_path / 'map.png', 0.1)


@pytest.mark.parametrize(
    'heights',
    [3.0, [1.0, 2.0], np.ma.masked_equal(HEIGHTS, 3.0), [['a', 'b'], ['c', 'd']], HEIGHTS + 1j, None],
)
def test_bad_heights(heights: Any) -> None:
    with pytest.raises(ArgumentError, match='heights is'):
        HeightMap(heights, 0.1)


# ---------------------------------------------------------------- the object


def test_nothing_can_be_changed() -> None:
    source = HEIGHTS.copy()
    part = HeightMap(source, 0.1, mu=0.4)
    whole = Terrain([part])
    source[:] = 9.0
    assert np.array_equal(part.grid, HEIGHTS)
    for target, name in ((part, 'spacing'), (whole, 'shapes'), (Plane(), 'mu'), (Box((1, 1, 1)), 'size')):
        with pytest.raises(FrozenInstanceError):
            setattr(target, name, 1.0)
    for copied in (part, pickle.loads(pickle.dumps(part)), copy.deepcopy(part), replace(part, mu=0.4)):
        assert copied == part
        assert hash(copied) == hash(part)
        with pytest.raises(ValueError, match='read-only'):
            copied.grid[0, 0] = 1.0
    assert replace(part, yaw=0.1) != part
    whole.pack()[:] = 0.0  # it is the caller's own
    whole.distance([0.0, 0.0, 0.0])[0][...] = 7.0
    assert whole.distance([0.0, 0.0, 9.0])[0] > 0.0


def test_friction_of_shapes_that_have_none() -> None:
    parts = [Plane(), Box((1, 1, 1), (5, 0, 0), mu=0.9), Box((1, 1, 1), (9, 0, 0), restitution=0.4)]
    p = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.5], [9.0, 0.0, 0.5]])
    out = np.empty((3, 6))
    ground.ground_distances.run(3, 0.0, p, Terrain(parts).pack(0.6, 0.2), out)
    assert out[:, 4:].tolist() == [[0.6, 0.2], [0.9, 0.2], [0.6, 0.4]]


@pytest.mark.parametrize(
    ('mu', 'e'), [(-0.1, 0.0), (math.nan, 0.0), (0.5, 1.1), (0.5, -0.1), (None, 0.0), ('a', 0)]
)
def test_pack_refuses(mu: Any, e: Any) -> None:
    with pytest.raises(ArgumentError, match=r'mu|restitution'):
        Terrain.named('flat').pack(mu, e)


@pytest.mark.parametrize('shapes', [(), [None], 'flat', [Plane, Plane()], 3])
def test_terrain_refuses(shapes: Any) -> None:
    with pytest.raises(ArgumentError, match='expected at least one'):
        Terrain(shapes)


def test_distance_of_any_shape_of_array() -> None:
    flat = Terrain.named('flat')
    d, n = flat.distance(np.full((2, 3, 3), 4.0)[:, ::-1], radius=1)
    assert np.array_equal(d, np.full((2, 3), 3.0))
    assert n.shape == (2, 3, 3)
    assert flat.distance([0, 0, 2])[0] == 2.0
    assert flat.distance(np.empty((0, 3)))[0].shape == (0,)
    bad = [([[1, 2]], 0.0, 'shape'), ([0, math.nan, 0], 0.0, 'nan'), ([0, 0, 0], -1.0, 'radius')]
    for points, radius, message in bad:
        with pytest.raises(ArgumentError, match=message):
            flat.distance(points, radius)


# ---------------------------------------------------------------- documentation


PAGE = Path(__file__).parents[2] / 'docs' / 'terrain.md'


def test_the_example_of_the_page_loads(tmp_path: Path) -> None:
    (example,) = re.findall(r'```yaml\n(.*?)```', PAGE.read_text(), re.DOTALL)
    np.save(tmp_path / 'hills.npy', np.zeros((3, 3)))
    (tmp_path / 'course.yaml').write_text(example)
    found = Terrain.load(tmp_path / 'course.yaml')
    assert {type(shape) for shape in found.shapes} == set(SHAPES.values())


def test_the_page_has_every_key_and_name() -> None:
    text = PAGE.read_text()
    for name, cls in SHAPES.items():
        section = text.split(f'### `{name}`')[1].split('###')[0].split('\n## ')[0]
        keys = set(cls.checks) - {'mu', 'restitution'}
        assert set(re.findall(r'^\| `(\w+)`', section, re.MULTILINE)) == keys, name
    named = text.split('## Names')[1].split('\n## ')[0]
    assert tuple(re.findall(r'^\| `(\w+)`', named, re.MULTILINE)) == Terrain.names()
