# SPDX-License-Identifier: GPL-2.0
"""The names that questions may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import Error
from ..frames import FAMILIES, TOLLS

MEASURES: Final = ("time_s", "bytes", "share")
# Columns that only table sites has.
SITE_COLUMNS: Final = ("call", "allocated_place", "touched_place", "allocated_at", "touched_at")

FAMILY_OF: Final = dict(
    zip(
        TOLLS,
        (
            *("zeroing",) * 3,
            *("swap",) * 3,
            "cow",
            *("file",) * 2,
            "userfault",
            "other",
            "allocator",
            "mapping",
            *("compute",) * 2,
        ),
        strict=True,
    )
)


class BadQuestion(Error):
    """A column, toll, build or measure that is not there; the message says what is."""


def tolls_of(what: str | None, keys: Sequence[str]) -> tuple[list[str] | None, str]:
    """Tolls that a word means (None: all), and the prefix of the columns that count recordings."""
    if what is None:
        if "toll" in keys or "family" in keys:
            return None, "" if "toll" in keys else "family_"
        raise BadQuestion("of what? name a toll or a family, or group by one of the two")
    if what in TOLLS:
        return [what], ""
    if what in FAMILIES:
        members = [toll for toll, family in FAMILY_OF.items() if family == what]
        return members, "" if "toll" in keys else "family_"
    raise BadQuestion(f"there is no toll or family {what!r}; there are {', '.join([*FAMILIES, *TOLLS])}")
