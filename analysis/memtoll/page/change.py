# SPDX-License-Identifier: GPL-2.0
"""What changed between two recordings, as a section that the page is switched to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from .. import pictures
from ..table import note
from ..text import format_time
from . import markup
from .drawing import draw
from .elements import Cell, chip, section, table, word
from .words import shown

if TYPE_CHECKING:
    from ..comparison import Comparison

SITES: Final = 50
HEADS: Final = ("before", "after", "difference", "between (95 %)", "changed")


def switch() -> str:
    """The buttons that show the one or the other; without a script both are there."""
    buttons = "".join(
        f'<button type="button" data-view="{view}" aria-pressed="{pressed}">{words}</button>'
        for view, pressed, words in (("after", "true", "The recording"), ("change", "false", "What changed"))
    )
    return f'<p id="change-switch" class="switch" hidden>{buttons}</p>'


def change(both: Comparison) -> str:
    """Tolls and sites before and after; largest differences first."""
    drawing = draw("change", lambda size: pictures.before_after(both, theme="page", size=size))
    unit = "per second of recording" if both.per == "second" else "per unit of work"
    sides = "".join(
        f"<p><b>{when}</b> <bdi>{shown(side.command)}</bdi>, {shown(format_time(side.duration_s))}"
        f" (<bdi>{shown(side.path)}</bdi>)</p>"
        for when, side in (("Before", both.before), ("After", both.after))
    )
    doubts = "".join(f'<p class="warning" role="note">{shown(text)}</p>' for text in both.caveats)
    if note(both.toll.attrs):
        doubts += f'<p class="confidence">{shown(note(both.toll.attrs))}</p>'
    tolls = [
        [Cell(str(toll), str(toll), html=chip(str(toll))), *_cells(row)]
        for toll, row in both.toll.iterrows()
        if not (row["before"] == 0 and row["after"] == 0)
    ]
    sites = [
        [
            Cell(str(toll), str(toll), html=chip(str(toll))),
            word(_end(str(allocated)), "name"),
            word(_end(str(touched)), "name"),
            *_cells(row),
        ]
        for (toll, _, allocated, touched), row in both.sites.head(SITES).iterrows()
    ]
    many = len(both.sites)
    return section(
        "change",
        "What changed",
        sides,
        doubts,
        markup.figure("picture-change", drawing) if drawing.finding else "",
        table("change-tolls", f"Time {unit}; changed: the bounds leave 0 out.", ("toll", *HEADS), tolls),
        table(
            "change-sites",
            f"Sites that differ most, {min(many, SITES):,} of {many:,}.",
            ("toll", "allocated at", "touched at", *HEADS),
            sites,
        )
        if sites
        else "",
    )


def _end(chain: str) -> str:
    """The last four functions of a chain, the leaf first."""
    return " < ".join(reversed(chain.split(";")[-4:]))


def _cells(row: pd.Series) -> list[Cell]:
    if pd.isna(row["difference"]):
        return [Cell("not captured by both", -1), *[Cell("-", -1, kind="number")] * (len(HEADS) - 1)]
    between = "" if pd.isna(row["low"]) else f"{_signed(row['low'])} to {_signed(row['high'])}"
    changed = "" if pd.isna(row["changed"]) else "yes" if row["changed"] else "no"
    return [
        *(Cell(format_time(float(row[name])), float(row[name]), kind="number") for name in ("before", "after")),
        Cell(_signed(float(row["difference"])), float(row["difference"]), kind="number"),
        Cell(between, kind="number"),
        Cell(changed, changed),
    ]


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{format_time(abs(value))}"
