# SPDX-License-Identifier: Apache-2.0
"""Turns functions of Python into machine code that Python calls at the cost of a built-in function."""
