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
from typing import TYPE_CHECKING, Any, Final

from .errors import (
    DamagedRecording,
    Error,
    IncompleteRecording,
    MissingExtra,
    NewerFormat,
    NotARecording,
    NotComparable,
)
from .version import __version__

if TYPE_CHECKING:
    from . import fleet as fleet
    from .comparison import Comparison, diff
    from .comparison import diff as compare
    from .fleet import dataset
    from .recording import Recording, example, open
    from .stacks import Frame
    from .table import Table
    from .verdict import Verdict

# What needs pandas is imported when it is asked for: half a second that `python3 -m memtoll --help`, a wrong word on a
# command line and whoever only catches its errors need not wait for.
_LATER: Final = {
    "Comparison": ("comparison", "Comparison"),
    "Frame": ("stacks", "Frame"),
    "Recording": ("recording", "Recording"),
    "Table": ("table", "Table"),
    "Verdict": ("verdict", "Verdict"),
    # Of before: `memtoll compare` runs a command both ways, this sets two recordings side by side.
    "compare": ("comparison", "diff"),
    "dataset": ("fleet", "dataset"),
    "diff": ("comparison", "diff"),
    "example": ("recording", "example"),
    "fleet": ("fleet", ""),  # itself
    "open": ("recording", "open"),
}

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
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    found = importlib.import_module(f".{module}", __name__)  # `from . import` would ask here again
    globals()[name] = found = getattr(found, attribute) if attribute else found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER})
