# SPDX-License-Identifier: Apache-2.0
"""Validation of a solution on data that were not used for the fit."""
