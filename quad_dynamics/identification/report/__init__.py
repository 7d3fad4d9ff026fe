# SPDX-License-Identifier: Apache-2.0
"""Output of the results as files and text."""
