# SPDX-License-Identifier: Apache-2.0
"""From recordings to samples: one clock, filters, derivatives, delays, contact."""
