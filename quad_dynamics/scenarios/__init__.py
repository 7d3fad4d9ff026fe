# SPDX-License-Identifier: Apache-2.0
"""Scenarios: a robot walks in simulation under stated conditions, and numbers say how well."""
