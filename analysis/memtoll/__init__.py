# SPDX-License-Identifier: GPL-2.0
"""Recordings of memtoll as DataFrames.

    rec = memtoll.open("server.memtoll")
    print(rec)                     # the verdict and the tolls
    rec.toll, rec.sites            # DataFrames; units are in the column names
    rec.stack(rec.sites.iloc[0].allocated_stack)

Nothing here needs root, and no recording is ever changed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .comparison import Comparison, diff
from .errors import (
    DamagedRecording,
    Error,
    IncompleteRecording,
    MissingExtra,
    NewerFormat,
    NotARecording,
    NotComparable,
)
from .recording import Recording, example, open
from .stacks import Frame
from .table import Table
from .verdict import Verdict
from .version import __version__

if TYPE_CHECKING:
    from .fleet import dataset

compare = diff
"""Of before: `memtoll compare` runs a command both ways, this sets two recordings side by side."""

__all__ = [
    "Comparison",
    "DamagedRecording",
    "Error",
    "Frame",
    "IncompleteRecording",
    "MissingExtra",
    "NewerFormat",
    "NotARecording",
    "NotComparable",
    "Recording",
    "Table",
    "Verdict",
    "__version__",
    "compare",
    "dataset",
    "diff",
    "example",
    "open",
]


def __getattr__(name: str) -> Any:
    """The fleet is imported when it is asked for: it is a fifth of the import, for those with many recordings."""
    if name in ("dataset", "fleet"):
        fleet = importlib.import_module(".fleet", __name__)  # `from . import` would ask here again
        return fleet if name == "fleet" else fleet.dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
