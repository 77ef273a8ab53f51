# SPDX-License-Identifier: GPL-2.0
"""Tables, sections, lists of figures: what the page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from ..pictures.theme import toll_colour
from ..text import cut, format_bytes, format_share, format_time
from .words import LETTERS, shown

# Rows of a table at most; its caption says how many there are.
ROWS: Final = 300
# A figure that is nothing: left out where there is little room.
NOTHING: Final = ("-", "0", "0 ns", "0 B", "0.0 %", "0.0-0.0 %")


@dataclass(frozen=True)
class Cell:
    """text: as read; key: as sorted, None: not sortable; html: instead of text, escaped by its maker."""

    text: str
    key: float | str | None = None
    html: str = ""
    kind: str = ""


def count(value: Any, unknown: str = "unknown") -> Cell:
    """A whole number."""
    if value is None or pd.isna(value):
        return Cell(unknown, -1, kind="number")
    return Cell(f"{int(value):,}", int(value), kind="number")


def time(value: Any) -> Cell:
    """Seconds."""
    if value is None or pd.isna(value):
        return Cell("-", -1, kind="number")
    return Cell(format_time(float(value)), float(value), kind="number")


def size(value: Any, unknown: str = "-") -> Cell:
    """Bytes."""
    if value is None or pd.isna(value):
        return Cell(unknown, -1, kind="number")
    return Cell(format_bytes(float(value)), float(value), kind="number")


def word(value: Any, kind: str = "") -> Cell:
    """A name."""
    text = "" if value is None or pd.isna(value) else str(value)
    return Cell(cut(text, LETTERS), text[:LETTERS].lower(), kind=kind)


def table(name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], sortable: bool = True) -> str:
    """A table that becomes one card for each row where it is narrow; its columns sort by their buttons."""
    many = f" The first {ROWS:,} of {len(rows):,}." if len(rows) > ROWS else ""
    rows = rows[:ROWS]
    numeric = [bool(rows) and rows[0][at].kind == "number" for at in range(len(heads))]
    head = "".join(
        f'<th scope="col"{" class=number" if number else ""}>'
        + (f'<button type="button">{shown(text)}</button>' if sortable and len(rows) > 1 else shown(text))
        + "</th>"
        for text, number in zip(heads, numeric)
    )
    body = "".join(f"<tr>{''.join(_cell(cell, heads[at], at) for at, cell in enumerate(row))}</tr>" for row in rows)
    return (
        f'<table id="{name}" class="cards"><caption>{shown(caption + many)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(cell: Cell, head: str, at: int) -> str:
    key = "" if cell.key is None else f' data-key="{shown(cell.key)}"'
    kinds = f"{cell.kind} nothing".strip() if cell.text in NOTHING else cell.kind
    kind = f' class="{kinds}"' if kinds else ""
    inside = cell.html or f"<bdi>{shown(cell.text)}</bdi>"
    if at == 0:
        return f'<th scope="row" data-head="{shown(head)}"{key}{kind}>{inside}</th>'
    return f'<td data-head="{shown(head)}"{key}{kind}>{inside}</td>'


def section(name: str, title: str, *parts: str) -> str:
    """A section with its heading; '' where it has nothing to show."""
    inside = "\n".join(part for part in parts if part)
    if not inside:
        return ""
    heading = f'<h2 id="{name}-title">{shown(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}\n{inside}\n</section>'


def facts(rows: Iterable[tuple[str, str, str]]) -> str:
    """Name, figure and remark, as a description list."""
    items = []
    for name, value, remark in rows:
        more = f" <span><bdi>{shown(remark)}</bdi></span>" if remark else ""
        items.append(f"<div><dt>{shown(name)}</dt><dd><strong><bdi>{shown(value)}</bdi></strong>{more}</dd></div>")
    return f'<dl class="facts">{"".join(items)}</dl>' if items else ""


def part(some: Any, whole: Any) -> Cell:
    """One number as a part of another."""
    return Cell(format_share(some / whole), some / whole, kind="number") if whole else Cell("-", -1, kind="number")


def chip(toll: str) -> str:
    """The name of a toll beside its colour."""
    return f'<span class="toll"><i style="background:{toll_colour(toll)}"></i>{shown(toll)}</span>'
