# SPDX-License-Identifier: Apache-2.0
"""Recordings: bags and tables, as they were measured."""
