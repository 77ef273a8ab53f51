# SPDX-License-Identifier: GPL-2.0
"""What titles say: from the recording's own judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..opening import understanding
from ..text import format_bytes

if TYPE_CHECKING:
    from ..recording import Recording

PAGE = 4096


def access_rows(rec: Recording) -> list[dict[str, Any]]:
    """Rows of view access_pattern, most swapped-in pages first; none in a recording without it."""
    return _rows(rec, "access_pattern", "rank")


def limit_bytes(rec: Recording) -> int | None:
    """The memory that the target may keep where a memory cgroup says so, in bytes."""
    rows = memory_rows(rec)
    if not rows or rows[0].get("limit_path") is None or rows[0].get("limit_bytes") is None:
        return None
    with understanding(rec.path):
        return int(rows[0]["limit_bytes"])


def memory_rows(rec: Recording) -> list[dict[str, Any]]:
    """The row of view memory; none in a recording without it."""
    return _rows(rec, "memory", "1")


def _rows(rec: Recording, view: str, order: str) -> list[dict[str, Any]]:
    rec.views.make("finding")
    rows: list[dict[str, Any]] = rec.query(f"SELECT * FROM temp.{view} ORDER BY {order}").to_dict("records")
    return rows


def access_finding(rec: Recording, allocated_stack: int | None = None) -> str:
    """How the memory that swaps most, or else is used most, is gone over; '' where nothing tells."""
    with understanding(rec.path):
        return _access_sentence(rec, allocated_stack)


def _access_sentence(rec: Recording, allocated_stack: int | None) -> str:
    rows = access_rows(rec)
    if allocated_stack is not None:
        rows = [row for row in rows if row["allocated_stack"] == allocated_stack]
    rows = [row for row in rows if row["first_pages"] + row["in_pages"] > 0]
    if not rows:
        return ""
    row = max(rows, key=lambda row: int(row["in_pages"] + row["first_pages"]))
    used = format_bytes(max(row["first_pages"], row["distinct_pages"]) * PAGE)
    limit = limit_bytes(rec)
    fits = f", with room for {format_bytes(limit)}" if limit else ""
    few = "hardly any" if row["in_pages"] else "nothing"
    back = f"each page came back from swap {row['returns']:.1f} times"
    sentences = {
        "cyclic sweep": f"{used} gone over in order, again and again{fits}: {back}",
        "back once": f"{used} had been pushed out, and came back once: nothing went out for it",
        "random": f"{used} gone over in no order{fits}: {back}",
        "one-pass sweep": f"{used} gone over once, in order{fits}: pages go out to make room, hardly any comes back",
        "one pass": f"{used} gone over once, in no order{fits}: pages go out to make room, hardly any comes back",
        "fits": f"{used} touched for the first time; {few} comes back from swap",
    }
    return sentences.get(str(row["pattern"]), "")
