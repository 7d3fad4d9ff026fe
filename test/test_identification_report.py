# SPDX-License-Identifier: Apache-2.0
"""The HTML report and the summary on the terminal: complete, self-contained, the same every time."""

from __future__ import annotations

import dataclasses
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import identification_data as data
import identified_robots as robots
import numpy as np
import pytest
import yaml
from chromium import Browser, find_chromium, wait_for

from quad_dynamics.cli.identify_summary import print_summary
from quad_dynamics.cli.terminal import Terminal
from quad_dynamics.identification.report.facts import (
    added_mass,
    consistent_bodies,
    headline_warnings,
    number,
    overall,
    percent,
    with_std,
)
from quad_dynamics.identification.report.html_report import report_text
from quad_dynamics.identification.report.parameter_plots import _ellipsoids
from quad_dynamics.identification.report.parameters_file import parameters_text
from quad_dynamics.identification.report.plots import save_residuals
from quad_dynamics.identification.report.traces import gather_traces
from quad_dynamics.identification.validation.validation import Errors

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
        'consistent',
        'ab' * 32,
        'Simulated beside the log',
        'calf_joint.viscous',
        'from the left',
    ):
        assert words in text, words
    assert page.count('<svg') == 7


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


@pytest.mark.parametrize('mode', ['projection', 'base'])
def test_other_modes(mode: str) -> None:
    whole = robots.result_of('mini_cheetah')
    equations = data.equations_of(whole.equations.samples, whole.solution.columns, data.TYPICAL, mode)
    text = Page(report_text(dataclasses.replace(whole, equations=equations, validation=None))).text
    assert ('moment x' in text) == (mode == 'base')


@pytest.mark.slow
@pytest.mark.skipif(not find_chromium(), reason='no Chromium is installed')
def test_it_fits_on_a_page(page: str, tmp_path: Path) -> None:
    """In a real browser: nothing is wider than the window, every picture is drawn."""
    path = tmp_path / 'report.html'
    path.write_text(page)
    (tmp_path / 'profile').mkdir()
    script = '[...document.querySelectorAll("figure svg")].map(s => s.getBoundingClientRect().height)'
    with Browser(tmp_path / 'profile', (1200, 900)) as browser:
        browser.open(path.as_uri())
        wait_for(lambda: 'parameters.yaml beside this page' in browser.text(), 20.0)
        wide = browser.evaluate('document.documentElement.scrollWidth')
        heights = browser.evaluate(script)
    assert wide <= 1200
    assert len(heights) == 7
    assert min(heights) > 100.0


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
    assert re.search(r'all joints: [\d.]+ % -> [\d.]+ %; no parameters do better than [\d.]+ %', text)
    assert '12 of 12 joints are closer' in text
    assert 'FL_calf.Ixy <needs> a fast hip' in text
    assert 'ols' in text


def test_warnings_come_first() -> None:
    """On the terminal before the first line, in the report before the first figure, and in the file."""
    result = robots.result_of('two_link_arm')
    assert headline_warnings(result) == []
    assert 'Do not use' not in report_text(result)
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
    assert number(0.0) == '0'
    assert number(float('nan')) == '-'
    assert percent(0.1234) == '12.3 %'
    assert percent(float('nan')) == '-'
    assert with_std(0.04321, 0.0012) == '0.0432 ± 0.0012'
    assert with_std(3.9304, 0.12) == '3.93 ± 0.12'
    assert with_std(6.3e-5, 1.2e-8) == '6.300e-05 ± 1.2e-08'
    assert with_std(1.0, float('nan')) == '1.000'


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


def test_overall_error_leaves_out_the_base() -> None:
    ones = np.array([1.0, 1.0, 1.0, 1.0])
    errors = Errors(
        ('base force', 'base moment', 'a', 'b'),
        ('N', 'N m', 'N m', 'N m'),
        np.array([np.nan, np.nan, 1.0, 2.0]),
        np.array([9.0, 9.0, 0.3, 0.8]),
        0.1 * ones,
        0.0 * ones,
        np.ones(4, dtype=np.int64),
    )
    assert overall(errors)[0] == pytest.approx(np.sqrt((0.3**2 + 0.4**2) / 2.0))


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
    assert len(traces.time) <= 400
    assert np.ptp(traces.time) == pytest.approx(4.0, abs=0.1)
    assert len(traces.bin_time) == 120
    np.testing.assert_allclose(traces.after, traces.measured, atol=1e-9)
    r = np.concatenate([part for _, part in equations.residuals(columns.prior)])
    np.testing.assert_allclose(
        np.sqrt(np.mean(traces.bin_before**2, axis=0)), np.sqrt(np.mean(r**2, axis=0)), rtol=0.01
    )
