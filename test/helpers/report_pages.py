# SPDX-License-Identifier: Apache-2.0
"""A report in a real browser: which panels of its figures hold drawn data."""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from chromium import Browser, wait_for
from PIL import Image

from quad_dynamics.array_types import Bytes

# Every figure with the title, text and background rectangle of each of its panels, in pixels of the page.
_PANELS = """[...document.querySelectorAll('figure')].flatMap(figure =>
    [...figure.querySelectorAll('svg g[id^="axes_"]')].map(axes => {
        const r = axes.querySelector('g[id^="patch_"] path').getBoundingClientRect();
        const text = [...axes.querySelectorAll('text')].map(e => e.textContent);
        return {figure: figure.dataset.name, text: text,
                box: [r.left + window.scrollX, r.top + window.scrollY, r.width, r.height]};
    }))"""
_CUT = """[...document.querySelectorAll('figure svg')].flatMap(svg => {
    const a = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(e => {
        const b = e.getBoundingClientRect();
        return b.left < a.left - 1 || b.right > a.right + 1 || b.top < a.top - 1 || b.bottom > a.bottom + 1;
    }).map(e => svg.parentElement.dataset.name + ': ' + e.textContent.trim());
})"""
_WIDE = """[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)
    .map(e => e.innerText.slice(0, 40))"""
_COLOURED = 60  # difference of the largest and the smallest of red, green and blue of a pixel that is data
_LEAST = 12  # pixels that make a line, a bar or a marker; one point without a marker has none
_WIDTH = 1200  # of the window [pixels]
EXPLAINED = 'no row counts'  # what a panel may say instead of showing data


@dataclass(frozen=True)
class Panel:
    """One panel of a figure.

    Attributes:
        figure: name of the figure.
        title: text of the panel: its title, and labels of ticks.
        coloured: pixels with the colours of data.
        width: of the panel [pixels].
        height: likewise.
    """

    figure: str
    title: str
    coloured: int
    width: float
    height: float

    @property
    def filled(self) -> bool:
        """Whether it shows data, or says why it does not."""
        return self.coloured >= _LEAST or EXPLAINED in self.title


@contextlib.contextmanager
def report_browser(profile: Path) -> Iterator[Browser]:
    """A browser to look at reports with; its profile goes into a new folder."""
    profile.mkdir()
    with Browser(profile, (_WIDTH, 900)) as browser:
        yield browser


def panels_of(report: Path, browser: Browser) -> list[Panel]:
    """All panels of the figures of a report, as a browser draws them; nothing may be wider than its window.

    Args:
        report: path of report.html.
        browser: from `report_browser`.
    """
    _open(report, browser, _WIDTH)
    assert browser.evaluate('document.documentElement.scrollWidth') <= _WIDTH
    panels = browser.evaluate(_PANELS)
    image = _whole_page(browser)
    return [
        Panel(each['figure'], ' | '.join(each['text']), _coloured(image, each['box']), *each['box'][2:])
        for each in panels
    ]


def empty_panels(report: Path, browser: Browser) -> list[str]:
    """Panels of a report that neither show data nor say why; a report without figures is an error."""
    panels = panels_of(report, browser)
    assert panels, f'{report} has no figures'
    return [f'{panel.figure}: {panel.title}' for panel in panels if not panel.filled]


def cut_text(report: Path, browser: Browser, width: int = _WIDTH) -> list[str]:
    """Text of figures that is not inside of its figure, in a window of some width [pixels]."""
    _open(report, browser, width)
    found: list[str] = browser.evaluate(_CUT)
    return found


def wide_tables(report: Path, browser: Browser, width: int = _WIDTH) -> list[str]:
    """First words of tables that are wider than the page, in a window of some width [pixels]."""
    _open(report, browser, width)
    found: list[str] = browser.evaluate(_WIDE)
    return found


def _open(report: Path, browser: Browser, width: int) -> None:
    browser.resize(width, 900)
    browser.open(report.absolute().as_uri())
    wait_for(lambda: browser.evaluate('document.querySelector("footer") !== null'), 20.0)


def _whole_page(browser: Browser) -> Bytes:
    height = browser.evaluate('document.documentElement.scrollHeight')
    clip = {'x': 0, 'y': 0, 'width': _WIDTH, 'height': height, 'scale': 1}
    answer = browser.command('Page.captureScreenshot', format='png', captureBeyondViewport=True, clip=clip)
    image = Image.open(io.BytesIO(base64.b64decode(answer['data'])))
    return np.asarray(image.convert('RGB'))


def _coloured(image: Bytes, box: list[float]) -> int:
    x, y, width, height = (round(value) for value in box)
    part = image[y : y + height, x : x + width].astype(int)
    return int(np.sum(np.ptp(part, axis=2) > _COLOURED))
