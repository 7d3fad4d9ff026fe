# SPDX-License-Identifier: Apache-2.0
"""Readers of recordings: bags and tables, without any processing."""
