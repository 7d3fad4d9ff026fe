# SPDX-License-Identifier: Apache-2.0
"""From equations to the unknowns: the default method, and how sure it is."""
