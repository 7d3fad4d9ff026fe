# SPDX-License-Identifier: Apache-2.0
"""From equations to the unknowns: the default method, the others, and how sure they are."""
