# SPDX-License-Identifier: Apache-2.0
"""Regressors of the inertial parameters, and their normal equations."""
