# SPDX-License-Identifier: Apache-2.0
"""YAML in which 1e-3 is a number."""

from __future__ import annotations

import re
from typing import Any

import yaml


class NumberLoader(yaml.SafeLoader):
    """SafeLoader that reads 1e-3 as a number, as YAML 1.2 and ROS do; YAML 1.1 asks for a decimal point."""


NumberLoader.add_implicit_resolver(
    'tag:yaml.org,2002:float', re.compile(r'^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$'), list('-+0123456789')
)


def load_yaml(text: str) -> Any:
    """The data of a YAML text.

    Raises:
        yaml.YAMLError: it is no YAML, or not what its tags promise, or nested too deeply.
    """
    try:
        return yaml.load(text, NumberLoader)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise yaml.YAMLError(str(error)) from error
    except RecursionError as error:
        raise yaml.YAMLError('nested too deeply') from error
