# SPDX-License-Identifier: Apache-2.0
"""Solvers: the default method, and its confidence intervals."""
