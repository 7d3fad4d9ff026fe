# SPDX-License-Identifier: Apache-2.0
"""What was found, as files and words."""
