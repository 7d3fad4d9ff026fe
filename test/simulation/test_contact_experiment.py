# SPDX-License-Identifier: Apache-2.0
"""What docs/contact.md and docs/simulation.md say: the experiment with both contact models, settings."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simple_robots as robots

ROOT = Path(__file__).parents[2]
DOCS = ROOT / 'docs'
STRIDES = 3  # of the ten in the document; the trot repeats itself


@functools.cache
def experiment(name: str = 'contact_models') -> Any:
    """A script that makes the figures of the document."""
    if name != 'contact_models':
        experiment()  # which the others import
    spec = importlib.util.spec_from_file_location(name, DOCS / 'figures' / f'{name}.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@functools.cache
def measured(name: str, dt: float = 1e-3, mu: float = 0.5) -> Any:
    """A short run of the experiment."""
    script = experiment()
    return script.measure(robots.quadruped('mini_cheetah'), dt, strides=STRIDES, mu=mu, **script.MODELS[name])


IMPULSE, SPRING, COARSE = 'impulse', 'spring-damper', 'spring-damper, one sub-step'


# ---------------------------------------------------------------- what it teaches, in the order of the list


def test_impulse_contact_is_smoother() -> None:
    rigid, soft = measured(IMPULSE), measured(SPRING)
    assert rigid.ripple < soft.ripple / 3.0
    assert rigid.shaking < soft.shaking
    assert rigid.slip < 0.05  # micrometres [mm]
    assert 0.3 < soft.slip < 2.0  # a millimetre
    assert soft.sag > rigid.sag + 1.0  # springs let the robot sink


def test_elastic_slip_does_not_depend_on_friction() -> None:
    """Twice the friction leaves it as it is; real slip, with impulses, becomes less."""
    soft = measured(SPRING, mu=0.4).slip, measured(SPRING, mu=0.8).slip
    assert abs(soft[0] - soft[1]) < 0.05 * soft[0]
    assert measured(IMPULSE, mu=0.8).slip < 0.5 * measured(IMPULSE, mu=0.3).slip


@pytest.mark.parametrize('dt', [0.5e-3, 2e-3])
def test_one_substep_of_a_millisecond_shakes(dt: float) -> None:
    """Violent slip is a matter of the step: with sub-steps, or a step of 0.5 ms, it is not there."""
    coarse, good = measured(COARSE), measured(SPRING)
    assert coarse.slip > 10.0 * good.slip
    assert coarse.turn > 5.0 * good.turn
    assert measured(COARSE, 0.5e-3).slip < 1.5 * good.slip
    assert measured(COARSE, 0.5e-3).turn < 1.5 * good.turn
    assert measured(SPRING, dt).slip < 1.1 * good.slip
    assert good.turn < 2.0 * measured(IMPULSE).turn


def test_forces_are_smoother_with_springs() -> None:
    """Peaks of springs are the same at every time step; those of impulses are not."""
    assert measured(SPRING).change < measured(IMPULSE).change
    fine, coarse = measured(SPRING, 0.5e-3).peak, measured(SPRING, 2e-3).peak
    assert abs(fine - coarse) < 0.05 * fine
    assert measured(IMPULSE, 0.5e-3).peak > 1.5 * measured(IMPULSE, 2e-3).peak


def test_motors_work_less_on_rigid_ground() -> None:
    assert measured(IMPULSE).work < measured(SPRING).work < 1.5 * measured(IMPULSE).work


def test_everybody_trots_on_the_spot() -> None:
    """The comparison means nothing if a robot falls or walks away."""
    for name in (IMPULSE, SPRING):
        q = measured(name).log.q
        assert np.ptp(q[:, :2], axis=0).max() < 0.02  # [m]
        assert np.abs(q[:, 3:6]).max() < 0.02  # half the tilt [rad]
        assert measured(name).landings >= 1.0


@pytest.mark.parametrize('dt', [0.5e-3, 2e-3])
def test_impulse_contact_hardly_depends_on_the_time_step(dt: float) -> None:
    assert measured(IMPULSE, dt).slip < 0.05
    assert measured(IMPULSE, dt).ripple < measured(SPRING, dt).ripple / 3.0


# ---------------------------------------------------------------- the same with the walking controller


@functools.cache
def walked(name: str) -> Any:
    """A short run of the walking controller, which begins to measure sooner than that of the document."""
    script = experiment('walking_contact')
    model = robots.quadruped('mini_cheetah')
    return script.measure(model, script.MODELS[name], strides=STRIDES, start=2.0)


@pytest.mark.slow
def test_walking_controller_walks_alike_on_both() -> None:
    rigid, soft = walked(IMPULSE), walked(SPRING)
    assert max(rigid.ripple, soft.ripple) < 4.0  # [mm]
    assert max(rigid.tilt, soft.tilt) < 2.0  # [degrees]
    assert abs(rigid.work - soft.work) < 0.2 * rigid.work
    assert rigid.deepest < 0.1  # feet do not sink into rigid ground [mm]
    # on springs the base is lower by what the feet sink; the rest is the height that is still settling [mm]
    assert abs((rigid.height - soft.height) - soft.depth) < 1.0


def test_walking_controller_has_softer_landings_on_springs() -> None:
    rigid, soft = walked(IMPULSE), walked(SPRING)
    assert soft.peak < rigid.peak
    assert soft.change < rigid.change
    assert rigid.slip < 0.1 * soft.slip


@pytest.mark.parametrize('column', [1, 2])
def test_table_of_walking_is_that_of_the_script(column: int) -> None:
    script, name = experiment('walking_contact'), (IMPULSE, SPRING)[column - 1]
    rows = {cells[0]: cells[column] for cells in table_of('table of walking')}
    assert list(rows) == list(script.ROWS)
    for label in ('height', 'depth', 'change', 'work'):
        row = next(key for key, (field, _) in script.ROWS.items() if field == label)
        written, found = float(rows[row]), getattr(walked(name), label)
        # a hundredth is the last digit of the table
        assert 0.5 * found - 0.01 < written < 2.0 * found + 0.01, row


# ---------------------------------------------------------------- the pages


def table_of(name: str) -> list[list[str]]:
    """Cells of a table of the page, without its head."""
    text = (DOCS / 'contact.md').read_text()
    found = re.search(f'<!-- {name} -->(.*?)<!-- end of {name} -->', text, re.DOTALL)
    assert found, name
    lines = [line for line in found[1].splitlines() if line.startswith('|')]
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines[2:]]


@pytest.mark.parametrize('column', [1, 2])
def test_table_of_models_is_that_of_the_script(column: int) -> None:
    """A figure of the page is what the script finds; half as much or twice is a page that is out of date."""
    script, name = experiment(), (IMPULSE, SPRING)[column - 1]
    rows = {cells[0]: cells[column] for cells in table_of('table of models')}
    assert list(rows) == list(script.ROWS)
    for label in ('ripple', 'slip', 'turn', 'work'):
        row = next(key for key, (field, _) in script.ROWS.items() if field == label)
        written, found = float(rows[row]), getattr(measured(name), label)
        # slip of impulse contact is a few micrometres, of which rounding decides
        slack = 0.02 if label == 'slip' else 0.0
        assert 0.5 * found - slack < written < 2.0 * found + slack, row


def test_tables_are_complete() -> None:
    script = experiment()
    assert len(table_of('table of time steps')) == 3 * len(script.STEPS)
    assert len(table_of('table of frictions')) == 2 * len(script.FRICTIONS)


def test_settings_table_is_up_to_date(qd: Any) -> None:
    rows = [row for row in qd.SimulatorSettings.table().splitlines() if not row.startswith('| `sensors.')]
    assert '\n'.join(rows) in (DOCS / 'simulation.md').read_text()


def test_page_shows_the_example() -> None:
    shown = re.findall(r'```python\n(.*?)```', (DOCS / 'simulation.md').read_text(), re.DOTALL)
    assert shown[0] == (ROOT / 'examples' / 'simulate_standing.py').read_text().split('"""\n\n', 1)[1]


def test_second_example_of_the_page_runs(qd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = re.findall(r'```python\n(.*?)```', (DOCS / 'simulation.md').read_text(), re.DOTALL)[1]
    sim = qd.Simulator(robots.quadruped('mini_cheetah'))
    exec(shown, {'sim': sim, 'qd': qd})
    assert sim.time == pytest.approx(2.0)  # after the snapshot was restored
    assert (tmp_path / 'run.npz').is_file()
    assert (tmp_path / 'run').is_dir()


def test_constants_of_the_pages(qd: Any) -> None:
    """Numbers that stand in the text and in the code."""
    from quad_dynamics.api import drives
    from quad_dynamics.kernels.contact import impulse_contact, spring_contact
    from quad_dynamics.simulation import simulator

    text = (DOCS / 'contact.md').read_text()
    settings = qd.SimulatorSettings()
    start = simulator.DEEPEST_START
    assert f'{1e3 * start["impulse"]:g} mm (impulse) or {1e3 * start["spring_damper"]:g} mm' in text
    assert f'deeper than {1e3 * impulse_contact.SLOP:g} mm' in text
    assert f'at {impulse_contact.PUSH_SPEED:g} m/s at most' in text
    assert f'(default {settings.correction:g})' in text
    assert f'more than {spring_contact.QUIET:g} of a velocity (at most {spring_contact.MAX_SUBSTEPS})' in text
    assert (settings.tolerance, settings.max_sweeps) == (1e-6, 100)
    assert (settings.stiffness, settings.damping) == (5e5, 5e3)
    assert 'kp = 10 m g l' in (DOCS / 'simulation.md').read_text()
    assert (drives.STIFF, 2.0 * drives.DAMPED) == (10.0, 0.6)


def test_modules_named_in_the_pages_exist() -> None:
    for page in ('contact.md', 'simulation.md'):
        for path in re.findall(r'`([\w/]+\.py)`', (DOCS / page).read_text()):
            assert (ROOT / path).exists() or (ROOT / 'quad_dynamics' / path).exists(), f'{page} names {path}'
