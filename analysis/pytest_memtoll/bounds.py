# SPDX-License-Identifier: GPL-2.0
"""Bounds of a test, as its mark states them: zero_bytes="10MiB", faults=1000, alloc_count=5000."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# What can be bounded: the tolls of each name. Their counts and bytes are counted, not estimated by samples.
SUBJECTS: Final = {
    "zero": ("zero.kernel", "zero.libc"),
    "zero_kernel": ("zero.kernel",),
    "zero_libc": ("zero.libc",),
    "swap_in": ("swap.in",),
    "cow": ("cow",),
    "file_fault": ("file.fault",),
    "file_read": ("file.read",),
    "alloc": ("alloc",),
    "map": ("map",),
}
FAULTS: Final = ("zero.kernel", "swap.in", "cow", "file.fault", "fault.user", "fault.other")
SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:B|([KMGT])(?:iB)?)?", re.ASCII)
UNITS: Final = {None: 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class BadBound(ValueError):
    """What a mark says that is no bound."""


@dataclass(frozen=True)
class Bound:
    """At most so much of the sum over tolls of measure, which is "bytes" or "count"; name, text: as it was written."""

    name: str
    tolls: tuple[str, ...]
    measure: str
    most: int
    text: str


def parsed(marked: Mapping[str, Any]) -> list[Bound]:
    """The bounds of a mark's keywords. BadBound: one is none."""
    return [_bound(name, value) for name, value in marked.items()]


def _bound(name: str, value: Any) -> Bound:
    if name == "faults":
        return Bound(name, FAULTS, "count", _count(name, value), f"{name}={value!r}")
    subject, _, measure = name.rpartition("_")
    if subject not in SUBJECTS or measure not in ("bytes", "count"):
        known = ", ".join(SUBJECTS)
        raise BadBound(f"{name} is no bound: faults is one, and {known}, each with _bytes or _count after it")
    most = _size(name, value) if measure == "bytes" else _count(name, value)
    return Bound(name, SUBJECTS[subject], measure, most, f"{name}={value!r}")


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadBound(f"{name}={value!r}: a count is a whole number from 0 on")
    return value


def _size(name: str, value: Any) -> int:
    if isinstance(value, str):
        match = SIZE.fullmatch(value.strip())
        if match:
            return int(float(match[1]) * UNITS[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise BadBound(f"{name}={value!r}: a size is a number of bytes, or a text such as '10MiB' or '64K'")
