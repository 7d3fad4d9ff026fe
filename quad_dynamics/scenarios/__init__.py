# SPDX-License-Identifier: Apache-2.0
"""Scenarios: a robot walks in simulation under given conditions, and its performance is measured."""
