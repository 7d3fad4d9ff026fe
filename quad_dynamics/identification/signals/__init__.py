# SPDX-License-Identifier: Apache-2.0
"""From recordings to samples: resampling to one clock, filters, derivatives, delays, contact."""
