# SPDX-License-Identifier: Apache-2.0
"""Motions that make parameters visible."""
