# SPDX-License-Identifier: Apache-2.0
"""Types of kernel arguments, as mypy sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MIXED_UP = """
from quad_dynamics.compiler.arrays import data
from quad_dynamics.compiler.types import Address, Number, Object
from quad_dynamics.kernels.simulation.scene import Contact, ContactPoint, Stop
from quad_dynamics.memory.layout import Pack


def first(x: Address) -> Number:
    return x[0]


def friction(contact: Contact) -> Number:
    return contact.mu


def good(q: Object, contact: Contact) -> Number:
    q = data(q)
    return first(q) + friction(contact)


def an_object_for_its_numbers(q: Object) -> Number:
    return first(q)


def one_record_for_another(stop: Stop) -> Number:
    return friction(stop)


def a_vector_for_a_number(contact: Contact) -> Number:
    return contact.normal


def a_result_in_a_constant(pack: Pack, point: ContactPoint) -> None:
    pack.mass = pack.qd
    point.radius = 1.0
"""


@pytest.mark.slow
def test_mypy_refuses_what_is_mixed_up(tmp_path: Path) -> None:
    file = tmp_path / 'mixed_up.py'
    file.write_text(MIXED_UP)
    root = Path(__file__).resolve().parents[2]
    found = subprocess.run(
        [sys.executable, '-m', 'mypy', '--follow-imports=silent', '--allow-redefinition', str(file)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    assert [line.split(': ')[2].split(';')[0] for line in found[:-1]] == [
        'Argument 1 to "first" has incompatible type "Object"',
        'Argument 1 to "friction" has incompatible type "Stop"',
        'Incompatible return value type (got "tuple[float, ...]", expected "float")  [return-value]',
        *(
            'Incompatible types in assignment (expression has type "float", variable has type "Never")  '
            '[assignment]',
        )
        * 2,
    ]
