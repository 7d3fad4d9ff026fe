# SPDX-License-Identifier: Apache-2.0
"""Speed, measured against the tools that people use today."""
