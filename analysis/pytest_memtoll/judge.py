# SPDX-License-Identifier: GPL-2.0
"""What a recording of a test says of its bounds: within, over, or undecided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .bounds import FAULTS, Bound

if TYPE_CHECKING:
    import memtoll

SITES: Final = 3
# Losses by the kind of event that they are measured against (view losses): whose counts they make incomplete. Kinds
# that are not here, and losses without one, are of everything.
CONCERNS: Final = {
    "walk": (),
    "sample": (),
    "site": (),
    "drop": (),
    "fill": (),
    "answer": (),
    "block": (),
    "swap": ("swap.in",),
    "read": ("file.read",),
    "map": ("map",),
    "mapping": ("map",),
    "call": ("alloc", "zero.libc"),
    "fault": FAULTS,
}
# Without a kind, and of stacks, names, single calls and blocks, times, and lists of runs: no counts.
NO_COUNTS: Final = (
    "unwind_", "python", "outliers", "runs_unstored", "frees_unmatched", "blocks_full", "giveback_full", "returns_full",
    "window_shut", "costs_full", "page_cache", "mappings_left_out", "maps_postponed", "ring_outlier",
)  # fmt: skip


def judge(path: Path, bounds: Sequence[Bound], start_ns: int) -> tuple[str, str]:
    """What is over its bound, with the sites, and why that cannot be said of what is not; '' where it is not so.

    start_ns: when the test began, by CLOCK_MONOTONIC.
    """
    import memtoll

    with memtoll.open(path) as rec:
        over = [text for bound in bounds if (text := _over(rec, bound, start_ns))]
        # What was lost would only be more of what is over.
        doubts = [text for bound in bounds for text in _doubts(rec, bound)]
        return "\n".join(over), "; ".join(dict.fromkeys(doubts))


def _value(rec: memtoll.Recording, bound: Bound, start_ns: int) -> int:
    """Of the slices since the test began: what the plugin did before is in those before."""
    table = rec.timeline
    rows = table[(table["end_ns"] > start_ns) & table["toll"].isin(bound.tolls)]
    return int(rows[bound.measure].sum())


def _over(rec: memtoll.Recording, bound: Bound, start_ns: int) -> str:
    value = _value(rec, bound, start_ns)
    if value <= bound.most:
        return ""
    subject = bound.name.removesuffix(f"_{bound.measure}").replace("_", ".")
    said = f"{subject}: {shown(value, bound.measure)}, at most {shown(bound.most, bound.measure)} ({bound.text})"
    sums: dict[str, list[int]] = {}
    table = rec.sites[rec.sites["toll"].isin(bound.tolls) & (rec.sites[bound.measure] > 0)]
    for site in table.to_dict("records"):
        found = sums.setdefault(_place(rec, site), [0, 0])
        found[0] += int(site["bytes"])
        found[1] += int(site["count"])
    by = 0 if bound.measure == "bytes" else 1
    largest = sorted(sums.items(), key=lambda each: -each[1][by])[:SITES]
    return "\n".join([said, *(f"  {shown(size, 'bytes')}, {count:,} x {text}" for text, (size, count) in largest)])


def _place(rec: memtoll.Recording, site: dict[str, Any]) -> str:
    """A site in words: its toll, the allocator's call, function, file and line."""
    from memtoll.visible import visible

    where = "an unknown place"
    for owner in ("allocated", "touched"):
        place = site[f"{owner}_place"]
        if isinstance(place, str) and place:
            where = place
            # The verdict's words have a file without its directory.
            for frame in rec.stack(site[f"{owner}_stack"]):
                if frame.said == place and frame.file:
                    where = f"{frame.function} ({frame.file}:{frame.line})"
                    break
            break
    call = f" by {site['call']}" if isinstance(site["call"], str) and site["call"] else ""
    return visible(f"{site['toll']}{call} at {where}")


def _doubts(rec: memtoll.Recording, bound: Bound) -> list[str]:
    from memtoll.visible import visible

    found = []
    if not rec.complete:
        found.append("the recording was not finished")
    for toll in bound.tolls:
        reason = rec.toll["not_captured"].get(toll)
        if isinstance(reason, str):
            found.append(f"{toll} was not captured: {reason}")
    lost = rec.losses[rec.losses["count"] > 0]
    for name, row in zip(lost.index, lost.to_dict("records")):
        concerns = CONCERNS.get(row["measure"])
        if set(bound.tolls).intersection(concerns or ()) or (concerns is None and not str(name).startswith(NO_COUNTS)):
            found.append(f"{int(row['count']):,} {name} were lost ({row['meaning']}; {row['remedy']})")
    if set(bound.tolls) & {"alloc", "zero.libc"} and bool(rec.allocations["estimated"].any()):
        found.append("calls of the allocator are estimates")
    if set(bound.tolls) & set(FAULTS):
        differ = [name for name in rec.checks.index[~rec.checks["ok"]] if str(name).endswith("_faults")]
        found += [f"{name} do not agree with the kernel's count" for name in differ]
    return [visible(text) for text in found]


def shown(value: int, measure: str) -> str:
    if measure == "count":
        return f"{value:,}"
    from memtoll.text import format_bytes

    return f"{value:,} bytes ({format_bytes(value)})" if value >= 1024 else f"{value} bytes"
