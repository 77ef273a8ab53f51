# SPDX-License-Identifier: GPL-2.0
"""The version of this package, and the newest recording format it reads."""

from __future__ import annotations

from typing import Final

__version__: Final = "0.1.0"

# PRAGMA user_version of a recording; every format from 1 to this one is read.
FORMAT: Final = 1
# PRAGMA application_id of a recording.
APPLICATION_ID: Final = 0x6D746F6C
