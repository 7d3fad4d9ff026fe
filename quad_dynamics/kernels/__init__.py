# SPDX-License-Identifier: Apache-2.0
"""The compiled algorithms, one module each; `registry` lists what Python calls."""
