# SPDX-License-Identifier: Apache-2.0
"""Distance and normal of the ground."""
