# SPDX-License-Identifier: Apache-2.0
"""Parameters that are declared once: default, unit, meaning and bounds."""
