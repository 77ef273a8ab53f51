# SPDX-License-Identifier: GPL-2.0
"""JSON for pages that show profiles: names are shown to people there, so that they steer nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..visible import visible
from .samples import UNKNOWN, Line, Place


def shown(place: Place, line: Line) -> str:
    """What a function of a place is called: its name or, where it has none, its module and the offset there."""
    name = line[0]
    if not name or name == UNKNOWN:
        name = f"{place.module.rpartition('/')[2]}+0x{place.offset:x}" if place.module else UNKNOWN
    return visible(name)


def write_json(whole: dict[str, Any], path: Path) -> None:
    """ASCII, without what is no JSON; a value that is infinite is a ValueError."""
    text = json.dumps(whole, allow_nan=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="ascii", newline="\n")
