# SPDX-License-Identifier: Apache-2.0
"""The HTML report and the summary on the terminal: complete, self-contained, the same every time."""

from __future__ import annotations

import dataclasses
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import identification_data as data
import identified_robots as robots
import numpy as np
import pytest
import yaml
from chromium import Browser, find_chromium
from reference_pinocchio import robots_folder
from report_pages import cut_text, empty_panels, panels_of, report_browser, wide_tables
from simple_robots import inertial, joint

from quad_dynamics.array_types import Bools, Floats
from quad_dynamics.cli.identify_summary import print_summary, shortened
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.errors import ModelWarning
from quad_dynamics.identification.baselines.compare import compare
from quad_dynamics.identification.equations.columns import joint_units, make_columns
from quad_dynamics.identification.equations.samples import Samples
from quad_dynamics.identification.number_text import number, percent, with_std
from quad_dynamics.identification.report.armature import unit_of
from quad_dynamics.identification.report.facts import (
    added_mass,
    consistent_bodies,
    doubts,
    headline_warnings,
    merged,
    model_notes,
)
from quad_dynamics.identification.report.html_report import _cards, _replay_table, errors_table, report_text
from quad_dynamics.identification.report.parameter_plots import _ellipsoids
from quad_dynamics.identification.report.parameters_file import parameters_text
from quad_dynamics.identification.report.pictures import _joints_caption
from quad_dynamics.identification.report.plots import draw_residuals, draw_torques, save_residuals
from quad_dynamics.identification.report.traces import Traces, gather_traces
from quad_dynamics.identification.signals.sampling import UNUSED_ROWS
from quad_dynamics.identification.solvers.freedom import make_freedom
from quad_dynamics.identification.solvers.loose_friction import words_of_loose
from quad_dynamics.identification.validation.held_out import HELD_OUT, hold_out
from quad_dynamics.identification.validation.validation import Errors, pooled, torque_errors, validate

SLIDER = f"""<robot name="slider"><link name="root"/>
  <link name="cart">{inertial(3.0, [0.02] * 3)}</link><link name="arm">{inertial(1.0, [0.01] * 3)}</link>
  {joint('slide', 'root', 'cart', '1 0 0', kind='prismatic')}{joint('swing', 'cart', 'arm', '0 1 0')}
</robot>"""
VOID = {'meta', 'link', 'br', 'img', 'input', 'hr'}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Stands for the table of all methods."""

    head: tuple[str, ...] = ('method', 'error')
    rows: tuple[tuple[str, ...], ...] = (('ols', '3.2 %'), ('consistent', '1.2 %'))
    on: str = 'other recordings'

    def timed(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return self.head, list(self.rows)


class Page(HTMLParser):
    """Collects what a page refers to, and whether its tags are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text = ''
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._look(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(attrs)

    def _look(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == 'id':
                self.ids.append(value or '')
            if name in ('href', 'src', 'xlink:href'):
                self.references.append(value or '')

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope='module')
def page() -> str:
    result = dataclasses.replace(robots.result_of('mini_cheetah'), comparison=Comparison())
    return report_text(result, 25.0, ['effort was not recorded'])


def test_it_is_one_file(page: str) -> None:
    """Nothing is fetched: no scripts, no fonts, no pictures from elsewhere."""
    read = Page(page)
    assert read.open == []
    assert all(reference.startswith('#') for reference in read.references)
    inside = [reference[1:] for reference in read.references]
    assert set(inside) <= set(read.ids)
    assert 'http' not in re.sub(r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>', '', page)
    assert '<script' not in page
    assert len(page) < 2_000_000


def test_it_has_everything(page: str) -> None:
    text = Page(page).text
    for words in (
        'Identification of mini_cheetah',
        'walk_1',
        'effort was not recorded',
        'RR_calf_joint',
        'base moment',
        'FL_calf.Ixy <needs> a fast hip',  # escaped, and so read back
        'cutoff 25 Hz',
        'viscous and Coulomb friction: the folds do not ask for more',
        'a.m + 2.00 b.m',
        'Combinations that the data determine: 1 of 2 independent ones',
        'consistent',
        'ab' * 32,
        'Simulated beside the log',
        'calf_joint.viscous',
        'from the left',
    ):
        assert words in text, words
    assert page.count('<svg') == 7
    assert 'c.m - 1.00 b.m' not in text  # the data do not determine it


def test_without_validation_and_with_nothing_free() -> None:
    whole = robots.result_of('two_link_arm')
    nothing = np.zeros_like(whole.solution.free)
    unknown = np.full(len(nothing), np.nan)
    solution = dataclasses.replace(
        whole.solution,
        free=nothing,
        identified=nothing,
        std=unknown,
        low=unknown,
        high=unknown,
        combinations=(),
    )
    text = Page(report_text(dataclasses.replace(whole, validation=None, missing=(), solution=solution))).text
    assert 'Everything that was free is determined' in text
    assert 'Simulated beside the log' not in text


@pytest.mark.slow
@pytest.mark.parametrize('mode', ['projection', 'base'])
def test_other_modes(mode: str) -> None:
    whole = robots.result_of('mini_cheetah')
    equations = data.equations_of(whole.equations.samples, whole.solution.columns, data.TYPICAL, mode)
    text = Page(report_text(dataclasses.replace(whole, equations=equations, validation=None))).text
    assert ('moment x' in text) == (mode == 'base')
    assert ('Forces on the base, measured and predicted' in text) == (mode == 'base')


def test_the_base_alone_is_not_pooled() -> None:
    """There are no joints: no line repeats the base force, and no caption speaks of joints."""
    errors = Errors(
        ('base force', 'base moment'), ('N', 'N m'), *np.ones((4, 2)), np.array([4, 4]), 4, np.ones((3, 2))
    )
    table = errors_table(errors)
    assert [row[0] for row in table.rows] == ['base force', 'base moment']
    assert 'joints' not in table.caption


@pytest.mark.usefixtures('no_pictures')
def test_texts_fit_the_robot() -> None:
    """A fixed base has neither feet nor a base that moves, and rotors are named only if they are shown."""
    arm, legged = (
        Page(report_text(robots.result_of(name))).text for name in ('two_link_arm', 'mini_cheetah')
    )
    for words in ('foot forces', 'the base moved'):
        assert words not in arm
        assert words in legged
    assert 'Mass of the moving links' in arm
    assert 'Mass of the moving links' not in legged


@pytest.mark.parametrize(
    ('kinds', 'expected'),
    [
        (('viscous', 'coulomb'), 'Friction. Bars'),
        (('rotor',), 'Armatures. Bars'),
        (('coulomb', 'offset', 'rotor'), 'Friction, offsets and armatures. Bars'),
    ],
)
def test_caption_names_what_is_shown(kinds: tuple[str, ...], expected: str) -> None:
    solution = robots.result_of('two_link_arm').solution
    free = np.zeros_like(solution.free)
    for kind in kinds:
        free[solution.columns.slices[kind]] = True
    for identified in (free, np.zeros_like(free)):
        text = _joints_caption(dataclasses.replace(solution, free=free, identified=identified))
        assert text.startswith(expected)
        assert ('empty circle' in text) != identified.any()


@pytest.mark.usefixtures('no_pictures')
def test_joints_that_were_not_simulated_are_not_worse() -> None:
    result = robots.result_of('two_link_arm')
    assert result.validation is not None
    assert result.validation.replay is not None
    again = dataclasses.replace(
        result.validation.replay,
        windows=np.array([3, 0]),
        position=np.array([[0.2, np.nan], [0.1, np.nan]]),
        velocity=np.array([[2e4, np.nan], [1e4, np.nan]]),
    )
    table = _replay_table(dataclasses.replace(result.validation, replay=again))
    assert table is not None
    assert [row[5] for row in table.rows] == ['closer', 'not simulated']
    assert doubts(dataclasses.replace(result.validation, replay=again)) == []
    assert list(table.marks) == ['', '']
    assert table.rows[0][3] == '20000'


def test_what_ends_farther_from_the_log_is_named() -> None:
    """Position, velocity or both; changes of less than 2 % are none."""
    validation = robots.result_of('two_link_arm').validation
    assert validation is not None
    assert validation.replay is not None
    for position, velocity, expected in (
        (0.21, 0.9, ['position farther', 'as before']),
        (0.19, 1.1, ['velocity farther', 'as before']),
        (0.21, 1.1, ['position and velocity farther', 'as before']),
    ):
        again = dataclasses.replace(
            validation.replay,
            windows=np.array([3, 3]),
            position=np.array([[0.2, 0.1], [position, 0.101]]),
            velocity=np.array([[1.0, 1.0], [velocity, 1.0]]),
        )
        table = _replay_table(dataclasses.replace(validation, replay=again))
        assert table is not None
        assert [row[5] for row in table.rows] == expected
        assert list(table.marks) == ['worse', '']
        (doubt,) = doubts(dataclasses.replace(validation, replay=again))
        assert doubt.endswith(f'joint1 ({expected[0].removesuffix(" farther")})')


@pytest.mark.usefixtures('no_pictures')
def test_a_missing_simulation_is_explained() -> None:
    result = robots.result_of('two_link_arm')
    assert result.validation is not None
    validation = dataclasses.replace(result.validation, replay=None)
    without = dataclasses.replace(result, validation=validation)
    for text in (summary_of(without), Page(report_text(without)).text):
        assert 'there is no segment of 100 ms in walk_2' in text


@pytest.mark.usefixtures('no_pictures')
def test_the_error_of_the_base_force_is_at_the_top() -> None:
    """Where it is measured; figures say that they show joints only."""
    for name, shown in (('mini_cheetah', True), ('two_link_arm', False)):
        result = robots.result_of(name)
        assert ('Error of the base force' in [card.name for card in _cards(result)]) == shown
    result = robots.result_of('mini_cheetah')
    assert result.validation is not None
    (card,) = (card for card in _cards(result) if card.name == 'Error of the base force')
    errors = result.validation.errors
    before_and_after = errors.before[0], errors.after[0]
    assert card.value == ' -> '.join(percent(x / errors.measured[0]) for x in before_and_after)
    unmeasured = dataclasses.replace(errors, measured=np.r_[np.nan, np.nan, errors.measured[2:]])
    validation = dataclasses.replace(result.validation, errors=unmeasured)
    cards = _cards(dataclasses.replace(result, validation=validation))
    assert 'Error of the base force' not in [card.name for card in cards]


def test_captions_say_what_is_not_shown(page: str) -> None:
    for figure in ('torques', 'residuals', 'histograms', 'spectrum'):
        caption = page[page.index(f'data-name="{figure}"') :].partition('</figcaption>')[0]
        assert 'Joints only; the table has the errors of the base.' in caption


def test_captions_of_tables_do_not_scroll(page: str) -> None:
    """In a narrow window tables scroll sideways, and text within them would be cut."""
    assert '<caption' not in page
    for part in page.split('<div class="scroll">')[1:]:
        assert part.startswith('<table>')
    assert page.index('class="caption">Root mean squares') < page.index('<div class="scroll">')


def test_few_samples_are_told() -> None:
    """Their number, and no floor."""
    whole = robots.result_of('two_link_arm')
    samples = Samples(whole.solution.columns.model)
    samples.append(whole.equations.samples.all()[:7])
    equations = data.equations_of(samples, whole.solution.columns, data.TYPICAL)
    validation = validate(equations, whole.solution, 'walk_2')
    text = summary_of(dataclasses.replace(whole, validation=validation))
    assert 'too few samples for a floor' in text
    assert 'errors are judged on only 7 samples' in text
    assert 'errors are judged on only' not in summary_of(whole)
    saved = yaml.safe_load(parameters_text(dataclasses.replace(whole, validation=validation)))
    assert saved['validation']['pooled']['relative_floor'] is None


def test_units_of_prismatic_joints() -> None:
    model = robots.load(SLIDER, floating_base=False)
    assert joint_units(model, 'rad', 'm') == 'm or rad'
    solution = robots.solved(model, model)
    assert unit_of(solution, 'viscous') == 'N s/m or N m s/rad'
    assert unit_of(solution, 'rotor') == 'kg or kg m^2'
    assert joint_units(data.robot('two_link_arm'), 'rad', 'm') == 'rad'


def small_result(held_out: bool, gaps: bool, resting: bool) -> Any:
    """A result of an arm, validated as a short recording without `--validate` is, with what it may have."""
    whole = robots.result_of('two_link_arm')
    samples = Samples(whole.solution.columns.model)
    for rows in whole.equations.samples.chunks():
        mine, get = rows.copy(), samples.layout.get
        if gaps:  # three segments, of which one is short
            time = get(mine, 'time')
            get(mine, 'segment')[...] = np.searchsorted([1.5, 3.0], time)
            mine = mine[~((time > 1.0) & (time < 2.0)) & ~((time > 2.2) & (time < 4.0))]
        if resting:
            get(mine, 'use')[:, 1] = 0.0
        samples.append(mine)
    equations = data.equations_of(samples, whole.solution.columns, data.TYPICAL)
    validation = None
    if held_out:
        _, held, notes = hold_out(samples, whole.solution.columns.model)
        checked = data.equations_of(held, whole.solution.columns, data.TYPICAL)
        validation = validate(checked, whole.solution, HELD_OUT, notes)
    return dataclasses.replace(whole, equations=equations, validation=validation)


@pytest.fixture(scope='module')
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not find_chromium():
        pytest.skip('no Chromium is installed')
    with report_browser(tmp_path_factory.mktemp('browser') / 'profile') as opened:
        yield opened


@pytest.mark.slow
def test_every_panel_is_filled(page: str, browser: Browser, tmp_path: Path) -> None:
    """In a real browser: nothing is wider than the window, and every panel of every figure shows data."""
    (tmp_path / 'report.html').write_text(page)
    panels = panels_of(tmp_path / 'report.html', browser)
    counts = Counter(panel.figure for panel in panels)
    assert counts == {
        'torques': 12,
        'residuals': 12,
        'histograms': 12,
        'joints': 2,
        'bodies': 3,
        'inertial': 10,
        'spectrum': 1,
    }
    assert [panel for panel in panels if not panel.filled] == []
    assert min(panel.height for panel in panels) > 40.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ('held_out', 'gaps', 'resting'), [(True, False, False), (True, True, False), (False, True, True)]
)
def test_every_panel_is_filled_without_another_recording(
    held_out: bool, gaps: bool, resting: bool, browser: Browser, tmp_path: Path
) -> None:
    """Held-out blocks, gaps, and a joint of which no row counts."""
    text = report_text(small_result(held_out, gaps, resting), 25.0)
    (tmp_path / 'report.html').write_text(text)
    assert empty_panels(tmp_path / 'report.html', browser) == []
    read = Page(text).text
    assert ('no row counts' in read) == resting
    assert ('over all training data' in read) == held_out
    assert ('over all of the training data themselves' in read) != held_out
    assert 'whole recording' not in read


@pytest.mark.slow
@pytest.mark.parametrize('width', [1200, 800])
@pytest.mark.parametrize('name', ['ur5', 'mini_cheetah'])
def test_nothing_is_cut(name: str, width: int, browser: Browser, tmp_path: Path) -> None:
    """Labels are inside of their figures, and long remarks are wrapped."""
    remark = 'instruments: smoothed motion (cutoff 17.7 Hz); then simulated motion (4 simulations) ' * 2
    compared = Comparison(('method', 'all joints [N m]', 'remark'), (('iv', '0.1', remark),))
    text = report_text(dataclasses.replace(robots.result_of(name), comparison=compared), 25.0)
    (tmp_path / 'report.html').write_text(text)
    assert cut_text(tmp_path / 'report.html', browser, width) == []
    assert wide_tables(tmp_path / 'report.html', browser, width) == []


@pytest.mark.slow
def test_an_empty_panel_is_found(browser: Browser, tmp_path: Path) -> None:
    """What was wrong once: lines of one point each."""
    result = robots.result_of('two_link_arm')
    traces = gather_traces(result.equations, result.solution.columns.prior, result.solution.x)
    one = slice(0, 1)
    alone = dataclasses.replace(
        traces,
        time=np.repeat(traces.time[one], 500),
        breaks=np.empty(0),
        measured=np.repeat(traces.measured[one], 500, axis=0),
        before=np.repeat(traces.before[one], 500, axis=0),
        after=np.repeat(traces.after[one], 500, axis=0),
    )
    page = report_text(result)
    page = page.replace(page[page.index('<svg') : page.index('</svg>') + 6], draw_torques(alone), 1)
    (tmp_path / 'report.html').write_text(page)
    found = empty_panels(tmp_path / 'report.html', browser)
    assert [line.partition(':')[0] for line in found] == ['torques', 'torques']


# ---------------------------------------------------------------- traces


def traces_of(result: Any, held_out: bool = False) -> Traces:
    return gather_traces(result.equations, result.solution.columns.prior, result.solution.x, held_out)


def test_lines_end_where_segments_do() -> None:
    """NaN between segments, and no line over the time that is left out."""
    result = small_result(False, True, False)
    traces = traces_of(result)
    assert len(traces.breaks) == np.isnan(traces.measured[:, 0]).sum() > 0
    steps = np.diff(traces.time[np.isfinite(traces.time)])
    assert steps.max() == pytest.approx(traces.survey.period)
    assert traces.bin_empty.any()
    assert not np.isfinite(traces.bin_after[traces.bin_empty]).any()
    # bins hold every sample once, in its own time
    rows = result.equations.samples.all()
    time = result.equations.samples.layout.get(rows, 'time')
    filled = np.histogram(time, traces.bin_edges)[0] > 0
    np.testing.assert_array_equal(filled, ~traces.bin_empty)


def test_residuals_in_bins_are_those_of_the_equations() -> None:
    result = small_result(False, True, False)
    traces = traces_of(result)
    parts = list(result.equations.residuals(result.solution.x))
    rows, r = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    time = result.equations.samples.layout.get(rows, 'time')
    use = result.equations.use(rows) > 0.0
    b = int(np.flatnonzero(~traces.bin_empty)[3])
    here = (time >= traces.bin_edges[b]) & (time < traces.bin_edges[b + 1])
    for k in range(2):
        expected = np.sqrt(np.mean(r[here & use[:, k], k] ** 2))
        assert traces.bin_after[b, k] == pytest.approx(expected)


@pytest.mark.parametrize('gaps', [False, True])
def test_what_the_table_judges_is_marked(gaps: bool) -> None:
    """Its samples and no others; margins are held out as well, but neither fitted nor judged."""
    result = small_result(True, gaps, False)
    samples = result.equations.samples
    plain = traces_of(result)
    assert not len(plain.judged)
    assert not len(plain.margins)
    traces = traces_of(result, held_out=True)

    def inside(time: Floats, spans: Floats) -> Bools:
        return np.asarray(((time[:, None] >= spans[:, 0]) & (time[:, None] <= spans[:, 1])).any(axis=1))

    train, held, _ = hold_out(samples, result.solution.columns.model)
    fitted, judged, every = (samples.layout.get(part.all(), 'time') for part in (train, held, samples))
    others = np.setdiff1d(every, judged)
    assert inside(judged, traces.judged).all()
    assert not inside(others, traces.judged).any()
    margins = np.setdiff1d(others, fitted)
    assert len(margins)
    assert inside(margins, traces.margins).all()
    assert not inside(np.setdiff1d(every, margins), traces.margins).any()


def test_marks_do_not_depend_on_chunks() -> None:
    """A held-out block of more samples than a chunk is one span."""
    model = data.robot('two_link_arm')
    samples, _ = data.make_samples(model, 1, 100.0)
    columns = robots.solved(model, model).columns
    equations = data.equations_of(samples, columns, data.TYPICAL)
    traces = gather_traces(equations, columns.prior, columns.prior, held_out=True)
    _, held, _ = hold_out(samples, model)
    assert traces.judged.shape == (4, 2)
    assert traces.margins.shape == (8, 2)
    assert np.diff(traces.judged).sum() == pytest.approx(len(held) * traces.survey.period)


def test_rows_that_do_not_count_are_marked() -> None:
    """In the detailed torques, and bins of the residuals in which none counts."""
    result = small_result(False, True, True)
    traces = traces_of(result)
    between = np.isnan(traces.time)
    assert traces.used[:, 0].mean() > 0.9
    assert (traces.used[:, 1] == between).all()
    assert not traces.bin_unused[:, 0].any()
    np.testing.assert_array_equal(traces.bin_unused[:, 1], ~traces.bin_empty)
    figure = draw_torques(traces)
    assert 'does not count' in figure
    assert 'does not count' not in draw_torques(dataclasses.replace(traces, used=np.ones_like(traces.used)))
    assert 'no row counts' in draw_residuals(traces)


def test_rows_that_do_not_count_are_not_in_the_spectrum() -> None:
    """A saturated motor for a third of the time would hide all other residuals."""
    whole = robots.result_of('two_link_arm')
    good = traces_of(whole).spectrum
    samples = Samples(whole.solution.columns.model)
    for rows in whole.equations.samples.chunks():
        mine, get = rows.copy(), samples.layout.get
        saturated = get(mine, 'time') % 1.5 < 0.5
        get(mine, 'tau')[saturated, 0] += 100.0
        get(mine, 'use')[saturated, 0] = 0.0
        samples.append(mine)
    equations = data.equations_of(samples, whole.solution.columns, data.TYPICAL)
    traces = traces_of(dataclasses.replace(whole, equations=equations))
    for i in (1, 2):
        assert traces.spectrum[i].sum() == pytest.approx(good[i].sum(), rel=0.5)


def test_spectrum_needs_segments_long_enough() -> None:
    """Held-out blocks are too short; the report then shows the spectrum of everything."""
    result = small_result(True, False, False)
    checked = result.validation
    short = gather_traces(checked.equations, checked.before, checked.after)
    assert not len(short.frequency)
    whole = traces_of(result)
    assert whole.frequency[-1] == pytest.approx(0.5 / whole.survey.period)
    # Parseval: the power of torques is their variance, as far as windows and their means let it be
    values = result.equations.samples.layout.get(result.equations.samples.all(), 'tau')
    power = whole.spectrum[0].sum() * whole.frequency[0]
    assert power == pytest.approx(values.var(axis=0).mean(), rel=0.5)


# ---------------------------------------------------------------- summary


def summary_of(result: Any) -> str:
    stream = io.StringIO()
    print_summary(Terminal(stream), result)
    return stream.getvalue()


def test_summary() -> None:
    text = summary_of(dataclasses.replace(robots.result_of('mini_cheetah'), comparison=Comparison()))
    assert re.search(r'mass 8\.912 -> 9\.\d+ kg; 13 of 13 bodies are physically consistent', text)
    assert re.search(r'the base has 0\.\d+ ± 0\.\d+ kg more than the model says', text)
    assert re.search(r'FL_hip_joint +0\.0100 -> 0\.0\d+ ± 0\.\d+ +0\.200 -> ', text)
    assert re.search(r'all joints: [\d.]+ -> [\d.]+ N m \([\d.]+ % -> [\d.]+ %\); the floor is [\d.]+', text)
    assert '12 of 12 joints are closer' in text
    assert 'of them, and 1 of 2 independent combinations (condition 42.0)' in text
    assert 'FL_calf.Ixy <needs> a fast hip' in text
    assert 'ols' in text


@pytest.mark.usefixtures('no_pictures')
def test_joints_that_are_held_are_named() -> None:
    """All of them in the files, the first few on the terminal, where their values are no estimates."""
    result = robots.result_of('mini_cheetah')
    solution = result.solution
    viscous, joints = solution.columns.slices['viscous'], solution.columns.model.joint_names
    free, x = solution.free.copy(), solution.x.copy()
    held = range(viscous.start, viscous.start + 8)
    free[held], x[held] = False, solution.columns.prior[held]
    choices = tuple(words_of_loose(solution.columns, held))
    result = dataclasses.replace(
        result, solution=dataclasses.replace(solution, free=free, x=x, choices=choices)
    )
    text, named = summary_of(result), f'viscous friction of {", ".join(joints[:8])}: held, '
    assert re.search(r'FL_hip_joint +0\.0100 \(held\) +0\.200 -> ', text)
    assert f'viscous friction of {", ".join(joints[:4])} and 4 more: held, ' in text
    assert named in Page(report_text(result)).text
    assert yaml.safe_load(parameters_text(result))['model']['choices'][0].startswith(named)


def test_short_lists_of_names_are_unchanged() -> None:
    names = ['j1', 'j10', 'j2', 'j3', 'j4']
    for line in ('offset of j1, j10, j2, j3: held, for', 'j1 (2 rad), j10 (1 rad), j2 (3 rad), j3, j4', ''):
        assert shortened(line, names) == line
    assert (
        shortened('offset of j10, j1, j2, j3, j4: held', names)
        == 'offset of j10, j1, j2, j3 and 1 more: held'
    )
    assert shortened('nothing', []) == 'nothing'


@pytest.mark.usefixtures('no_pictures')
def test_warnings_come_first() -> None:
    """On the terminal before the first line, in the report before the first figure, and in the file."""
    result = robots.result_of('two_link_arm')
    assert headline_warnings(result) == []
    warned = dataclasses.replace(result, warnings=('total mass is 629 kg',))
    assert summary_of(warned).startswith('warning: total mass is 629 kg\n')
    text = Page(report_text(warned)).text
    assert text.index('total mass is 629 kg') < text.index('Torque error')
    assert yaml.safe_load(parameters_text(warned))['warnings'] == ['total mass is 629 kg']


def test_worse_than_the_model_as_it_was_comes_first() -> None:
    result = robots.result_of('two_link_arm')
    assert result.validation is not None
    errors = dataclasses.replace(result.validation.errors, before=0.1 * result.validation.errors.after)
    worse = dataclasses.replace(result, validation=dataclasses.replace(result.validation, errors=errors))
    assert re.match(r'warning: torques of walk_2 are predicted worse than by the model', summary_of(worse))


def test_residual_picture(tmp_path: Path) -> None:
    result = robots.result_of('two_link_arm')
    prior = result.solution.columns.prior
    traces = gather_traces(result.equations, prior, prior)
    for kind, begin in (('png', b'\x89PNG'), ('svg', b'<?xml'), ('pdf', b'%PDF')):
        save_residuals(traces, tmp_path / f'r.{kind}')
        assert (tmp_path / f'r.{kind}').read_bytes().startswith(begin)


# ---------------------------------------------------------------- numbers


def test_numbers() -> None:
    assert number(1.6, 3) == '1.60'
    assert number(206.0, 3) == '206'
    assert number(1863.0, 3) == '1863'
    assert number(2.5e7, 3) == '2.50e+07'
    assert number(0.0) == '0'
    assert number(float('nan')) == '-'
    assert percent(0.1234) == '12.3 %'
    assert percent(0.00142) == '0.14 %'
    assert percent(0.0) == '0 %'
    assert percent(1e-6) == '< 0.01 %'
    assert percent(1.234) == '123 %'
    assert percent(float('nan')) == '-'
    assert with_std(0.04321, 0.0012) == '0.0432 ± 0.0012'
    assert with_std(3.9304, 0.12) == '3.93 ± 0.12'
    assert with_std(6.3e-5, 1.2e-8) == '6.300e-05 ± 1.2e-08'
    assert with_std(1.0, float('nan')) == '1.000'


def test_lines_that_say_the_same_are_one() -> None:
    lines = ["body 'a': too light", 'viscous friction: free', "body 'b': too light", "body 'c': too thin"]
    assert merged(lines) == [
        "bodies 'a', 'b': too light",
        'viscous friction: free',
        "body 'c': too thin",
    ]


@pytest.mark.usefixtures('no_pictures')
def test_model_warnings_are_told_once(tmp_path: Path) -> None:
    """In the summary and in the report, and by nothing else: Python's warnings stay silent."""
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(robots.TURNED_ARM.replace('<mass value="0.1"/>', '<mass value="0.1" colour="red"/>'))
    model = robots.load(urdf, floating_base=False)
    assert model_notes(model) == list(model.warnings)
    assert model.warnings
    whole = robots.result_of('two_link_arm')
    columns = dataclasses.replace(
        whole.solution.columns, model=dataclasses.replace(whole.solution.columns.model)
    )
    object.__setattr__(columns.model, 'warnings', model.warnings)
    result = dataclasses.replace(whole, solution=dataclasses.replace(whole.solution, columns=columns))
    for text in (summary_of(result), Page(report_text(result)).text):
        assert all(text.count(warning) == 1 for warning in model.warnings)


def test_feet_without_a_radius_are_named(tmp_path: Path) -> None:
    """Contact forces act one radius below the centre of a foot: 17 mm change the mass of a Solo by 2 %."""
    robot = robots_folder() / 'solo_description/robots/solo12.urdf'
    text = re.sub(r'<(visual|collision)>.*?</\1>', '', robot.read_text(), flags=re.S)
    (tmp_path / 'bare.urdf').write_text(text)
    bare = robots.load(tmp_path / 'bare.urdf', floating_base=True)
    (note,) = (note for note in model_notes(bare) if 'radius is 0' in note)
    assert all(foot in note for foot in bare.foot_names)
    given = data.robot('mini_cheetah')  # its description says that feet are points
    assert not any('radius' in note for note in model_notes(given))


def test_missing_meshes_are_told_once() -> None:
    """When the robot is loaded, and not again when contact points are made without them."""
    text = (robots_folder() / 'go2_description/urdf/go2.urdf').read_text()
    model = robots.load(re.sub(r'package://[\w-]+/', 'package://nowhere/', text), floating_base=True)
    with warnings.catch_warnings():
        warnings.simplefilter('error', ModelWarning)
        samples, _ = data.make_samples(model, 1, 1.0)
        data.equations_of(samples, make_columns(model), data.TYPICAL)
        assert sum('meshes' in note for note in model_notes(model)) == 1


def test_added_mass_is_where_it_was_put() -> None:
    model = data.robot('mini_cheetah')
    pi = model.pi.copy()
    place = np.array([0.05, -0.03, 0.08])
    outer = 0.5 * (place @ place * np.eye(3) - np.outer(place, place))
    pi[:4] += [0.5, *(0.5 * place)]
    pi[4:10] += outer[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    added = added_mass(robots.solved(model, model.with_pi(pi)))
    assert added is not None
    assert added.mass == pytest.approx(0.5)
    assert added.position == pytest.approx(tuple(place))
    assert added_mass(robots.solved(model, model)) is None


def test_consistent_bodies_are_counted() -> None:
    """A body whose largest moment exceeds the sum of the others is none."""
    model = data.robot('two_link_arm')
    solution = robots.solved(model, model)
    assert consistent_bodies(solution) == (2, 2)
    x = solution.x.copy()
    x[4:10] = [1.0, 0.0, 1.0, 0.0, 0.0, 2.5]
    x[1:4] = 0.0
    assert consistent_bodies(dataclasses.replace(solution, x=x)) == (1, 2)


def test_all_joints_are_one_pooled_figure() -> None:
    """RMS error of all rows over RMS measured of all rows; not a mean of ratios, and without the base."""
    errors = Errors(
        ('base force', 'base moment', 'a', 'b', 'c'),
        ('N', 'N m', 'N m', 'N m', 'N m'),
        measured=np.array([np.nan, np.nan, 1.0, 2.0, np.nan]),
        before=np.array([9.0, 9.0, 0.3, 0.8, np.nan]),
        after=np.array([9.0, 9.0, 0.1, 0.2, np.nan]),
        floor=np.array([9.0, 9.0, 0.0, 0.0, np.nan]),
        samples=np.array([4, 4, 3, 1, 0]),
        total=4,
        every=np.array(
            [[np.nan, np.nan, 1.0, 2.0, 1.0], [9.0, 9.0, 0.3, 0.8, 1.0], [9.0, 9.0, 0.1, 0.2, 1.0]]
        ),
    )
    whole = pooled(errors)
    assert whole.name == 'all joints'
    assert whole.rms[0] == pytest.approx(np.sqrt((3 * 0.3**2 + 0.8**2) / 4))
    assert whole.relative[0] == pytest.approx(np.sqrt((3 * 0.3**2 + 0.8**2) / (3 * 1.0**2 + 2.0**2)))
    assert whole.left_out == pytest.approx((1 / 4 + 3 / 4 + 1) / 3)
    assert whole.every[1] == pytest.approx(np.sqrt((0.1**2 + 0.2**2 + 1.0) / (1.0 + 4.0 + 1.0)))


def test_rows_that_do_not_count_are_shown() -> None:
    """Their share, and errors with them: here they are wrong on purpose."""
    whole = robots.result_of('two_link_arm')
    samples = Samples(whole.solution.columns.model)
    for rows in whole.equations.samples.chunks():
        mine, get = rows.copy(), samples.layout.get
        get(mine, 'use')[...] = 1.0
        get(mine, 'use')[::4, 0] = 0.0
        get(mine, 'tau')[::4, 0] += 100.0
        samples.append(mine)
    equations = data.equations_of(samples, whole.solution.columns, data.TYPICAL)
    errors = torque_errors(equations, whole.solution.columns.prior, whole.solution.x)
    assert errors.left_out == pytest.approx([0.25, 0.0], abs=0.01)
    assert errors.after[0] < 1.0
    assert errors.every[2, 0] == pytest.approx(50.0, rel=0.05)
    assert errors.every[2, 1] == pytest.approx(errors.after[1])
    validation = validate(equations, whole.solution, 'walk_2')
    text = summary_of(dataclasses.replace(whole, validation=validation))
    assert re.search(
        r'12\.\d % of the rows are left out; over all rows: .*\n  left out: rows near rest or', text
    )
    assert UNUSED_ROWS in text
    assert UNUSED_ROWS in errors_table(errors).caption


@pytest.mark.usefixtures('no_pictures')
def test_one_figure_everywhere() -> None:
    """Console, report, parameters file and comparison say the same of the same errors."""
    result = robots.result_of('two_link_arm')
    assert result.validation is not None
    columns = result.solution.columns
    compared = compare(
        result.equations, result.validation.equations, columns, make_freedom(columns), methods=[]
    )
    before = pooled(result.validation.errors).relative[0]
    assert compared.rows[0][compared.head.index('all joints [%]')] == f'{100 * before:.2f}'
    assert f'N m ({percent(before)} -> ' in summary_of(result)
    assert f'{percent(before)} -> ' in Page(report_text(result)).text
    saved = yaml.safe_load(parameters_text(result))['validation']['pooled']
    assert saved['relative_before'] == pytest.approx(before)


def test_ellipsoids_are_those_of_the_bodies() -> None:
    """A box of even density: the ellipsoid of the same inertia has half axes of sqrt(5/12) of its edges."""
    edges, mass = np.array([0.2, 0.4, 0.6]), 3.0
    moments = mass / 12.0 * (edges @ edges - edges**2)
    pi = np.array([mass, 0, 0, 0, moments[0], 0, moments[1], 0, 0, moments[2]])
    (centre, shape), *_ = _ellipsoids(pi, [(np.eye(3), np.array([1.0, 2.0, 3.0]))])
    np.testing.assert_allclose(centre, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.sqrt(np.diag(shape)), np.sqrt(5.0 / 12.0) * edges)


def test_traces_are_bounded() -> None:
    """What is drawn does not grow with the recording, and its numbers are those of the samples."""
    model = data.robot('two_link_arm')
    samples, x = data.make_samples(data.changed(model, 1), 1, 200.0)
    columns = robots.solved(model, model).columns
    equations = data.equations_of(samples, columns, data.TYPICAL)
    traces = gather_traces(equations, columns.prior, x)
    assert len(traces.time) <= 800
    assert np.ptp(traces.time) == pytest.approx(4.0, abs=0.1)
    assert len(traces.bin_empty) == 120
    np.testing.assert_allclose(traces.after, traces.measured, atol=1e-9)
    r = np.concatenate([part for _, part in equations.residuals(columns.prior)])
    np.testing.assert_allclose(
        np.sqrt(np.mean(traces.bin_before**2, axis=0)), np.sqrt(np.mean(r**2, axis=0)), rtol=0.01
    )
