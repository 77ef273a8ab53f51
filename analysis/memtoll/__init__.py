# SPDX-License-Identifier: GPL-2.0
"""Recordings of memtoll as DataFrames.

    rec = memtoll.open("server.memtoll")
    print(rec)                     # the verdict and the tolls
    rec.toll, rec.sites            # DataFrames; units are in the column names
    rec.stack(rec.sites.iloc[0].allocated_stack)

Nothing here needs root, and no recording is ever changed.
"""

from __future__ import annotations

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
from .fleet import dataset
from .recording import Recording, example, open
from .stacks import Frame
from .table import Table
from .verdict import Verdict
from .version import __version__

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
