# SPDX-License-Identifier: Apache-2.0
"""Methods of the literature that `--compare` runs beside the default one."""
