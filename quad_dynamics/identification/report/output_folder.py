# SPDX-License-Identifier: Apache-2.0
"""The folder of results, which is written completely or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quad_dynamics.errors import ArgumentError
from quad_dynamics.identification.report.armature import srdf_text
from quad_dynamics.identification.report.facts import short_names
from quad_dynamics.identification.report.html_report import report_text
from quad_dynamics.identification.report.parameters_file import parameters_text
from quad_dynamics.identification.report.rotor_output import description_text
from quad_dynamics.identification.report.urdf_output import robot_file_name, write_urdf

if TYPE_CHECKING:
    from quad_dynamics.identification.pipeline import Result


def check_output(folder: str | os.PathLike[str]) -> Path:
    """Check that results can be written, before long computations.

    Raises:
        ArgumentError: the folder is not empty, is a file, or cannot be created.
    """
    path = Path(folder)
    if path.is_dir():
        if any(path.iterdir()):
            raise ArgumentError(f'{path} is not empty; expected a new or an empty folder')
    elif os.path.lexists(path):
        raise ArgumentError(f'{path} is not a folder; expected a new or an empty folder')
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f'{path} is in a folder that does not exist')
    if not os.access(path if path.is_dir() else path.absolute().parent, os.W_OK):
        raise ArgumentError(f'{path} cannot be written: no permission')
    return path


def write_results(result: Result, folder: str | os.PathLike[str], warnings: Sequence[str] = ()) -> list[Path]:
    """Write the URDF, its description, the parameters file and the report.

    They are written to a temporary folder first, and moved when they are complete; a failure leaves nothing.

    Args:
        result: of an identification.
        folder: new or empty.
        warnings: to be shown in the report before the results.

    Returns:
        The files.

    Raises:
        ArgumentError: see `check_output`; or the robot cannot be written as a URDF.
    """
    path = check_output(folder)
    made = Path(tempfile.mkdtemp(prefix=f'.{path.name}.', dir=path.absolute().parent))
    try:
        _write(result, made, list(warnings))
        made.chmod(0o777 & ~_umask())  # temporary folders are accessible to their owner only
        made.rename(path.resolve())  # onto an empty folder, otherwise this fails
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return sorted(item for item in path.rglob('*') if item.is_file())


def _write(result: Result, folder: Path, warnings: list[str]) -> None:
    urdf, missing = write_urdf(result.solution, folder)
    beside = {'.yaml': description_text(result.solution), '.srdf': srdf_text(result.solution)}
    for ending, content in beside.items():
        if content:
            name = f'{robot_file_name(result.solution.columns.model.name)}{ending}'
            urdf.with_name(name).write_text(content, encoding='utf-8')
    (folder / 'parameters.yaml').write_text(parameters_text(result), encoding='utf-8')
    told = [*warnings, *_recording_notes(result), *missing]
    text = report_text(result, result.signals.cutoff, told)
    (folder / 'report.html').write_text(text, encoding='utf-8')


def _recording_notes(result: Result) -> list[str]:
    """Notes about the recordings, each once; with the name if only a validation recording has it."""
    notes = dict.fromkeys(note for source in result.signals.sources for note in source.notes)
    others = () if result.validation_signals is None else result.validation_signals.sources
    more = [
        f'validation recording {short_names(source.name)}: {note}'
        for source in others
        for note in source.notes
        if note not in notes
    ]
    return [*notes, *more]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
