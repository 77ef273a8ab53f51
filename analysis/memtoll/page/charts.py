# SPDX-License-Identifier: GPL-2.0
"""What the page's script draws the timeline and the map from: figures, in whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..pictures.addresses import PAGE, Chosen, choose, of_toll, said
from ..pictures.findings import limit_bytes
from ..pictures.overtime import OTHERS, layers
from ..pictures.theme import toll_colour
from ..text import cut, format_bytes
from ..visible import visible
from .words import LETTERS

if TYPE_CHECKING:
    from ..recording import Recording

# Lines of the map at most: of more those are kept that differ on a grid, then the longest.
LINES: Final = 20_000
GRID: Final = 2_000
MICRO: Final = 1_000_000


def timeline_data(rec: Recording) -> dict[str, Any] | None:
    """Time by slice and toll, in the order they are stacked; None where nothing was observed."""
    stacked = layers(rec)
    if stacked is None:
        return None
    edges, parts = stacked
    return {
        "edges": [round(edge * MICRO) for edge in edges],
        "layers": [
            {
                "label": part.label,
                "colour": "var(--line)" if part.label.startswith(OTHERS) else part.colour,
                "share": round(part.share * MICRO),
                "times": [round(time * 1e9) for time in part.times],
            }
            for part in parts
        ],
    }


def map_data(rec: Recording) -> tuple[dict[str, Any], tuple[str, str]] | None:
    """Runs of faults as lines, and what the map says; None where there are none.

    lines: columns; begin and end in us, page is counted from its stretch's first. everything: how many runs there are.
    """
    chosen = choose(rec)
    if chosen is None:
        return None
    weights = chosen.by_toll()
    tolls = list(weights)
    lines = _lines(chosen, tolls)
    places = [cut(visible(stretch.owner), LETTERS) for stretch in chosen.stretches]
    return {
        "tolls": [
            {"label": f"{toll}  {of_toll(rec, toll, number)}", "toll": toll, "colour": toll_colour(toll)}
            for toll, number in weights.items()
        ],
        "stretches": [
            {
                "first": f"{stretch.first * PAGE:#x}",
                "pages": stretch.last - stretch.first,
                "base": round(stretch.base),
                "height": round(stretch.height),
                "owner": place,
            }
            for stretch, place in zip(chosen.stretches, places, strict=True)
        ],
        "lines": lines,
        "everything": len(chosen.runs),
        "limit": _limit(rec),
    }, said(rec, chosen)


def _limit(rec: Recording) -> dict[str, Any] | None:
    limit = limit_bytes(rec)
    return {"pages": limit // PAGE, "label": f"{format_bytes(limit)} may stay in memory"} if limit else None


def _lines(chosen: Chosen, tolls: list[str]) -> dict[str, list[int]]:
    number = {toll: at for at, toll in enumerate(tolls)}
    runs = chosen.runs
    toll = np.array([number[str(name)] for name in runs["toll"].astype(object)], dtype=np.int64)
    begin = np.round(runs["start_s"].to_numpy() * MICRO).astype(np.int64)
    end = np.round(runs["end_s"].to_numpy() * MICRO).astype(np.int64)
    where = np.full(len(runs), -1, dtype=np.int64)
    page = np.zeros(len(runs), dtype=np.int64)
    for at, stretch in enumerate(chosen.stretches):
        inside = (chosen.first >= stretch.first) & (chosen.first < stretch.last)
        where[inside] = at
        page[inside] = chosen.first[inside] - stretch.first
    pages = chosen.last - chosen.first
    kept = np.flatnonzero(where >= 0)
    if len(kept) > LINES:
        kept = _different(kept, begin, where, page, chosen)
    if len(kept) > LINES:
        kept = np.sort(kept[np.argsort(-pages[kept], kind="stable")[:LINES]])
    columns = {
        "toll": toll,
        "stretch": where,
        "begin": begin,
        "end": end,
        "page": page,
        "pages": pages,
        "faults": runs["faults"].to_numpy(),
    }
    return {name: [int(value) for value in column[kept]] for name, column in columns.items()}


def _different(kept: Any, begin: Any, where: Any, page: Any, chosen: Chosen) -> Any:
    """Of all runs that begin in the same cell of a grid the longest one."""
    kept = kept[np.argsort(-(chosen.last - chosen.first)[kept], kind="stable")]
    span = max(int(begin[kept].max() - begin[kept].min()), 1)
    rows = np.array([max(stretch.last - stretch.first, 1) for stretch in chosen.stretches])
    across = (begin[kept] - begin[kept].min()) * GRID // span
    up = page[kept] * GRID // rows[where[kept]]
    keys = (where[kept] * (GRID + 1) + up) * (GRID + 1) + across
    return kept[np.sort(np.unique(keys, return_index=True)[1])]
