# SPDX-License-Identifier: Apache-2.0
"""Methods of the literature, for comparison with the default one (`--compare`)."""
