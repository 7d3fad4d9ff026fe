# SPDX-License-Identifier: Apache-2.0
"""How good a solution is on data that it was not fitted to."""
