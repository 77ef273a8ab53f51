# SPDX-License-Identifier: GPL-2.0
"""Two recordings side by side: what a change did, and how sure that is.

Rates are sums over the whole recording divided by its duration, or by the work that was done in
it. Their uncertainty comes from how they vary within a recording: consecutive slices are joined to
at most 30 blocks of equal number, so that slow ups and downs count; the variance of a rate is that
of the blocks' residuals against it (a ratio estimator, as blocks may differ in length), and the
bounds of a difference are Welch's t interval, 95 %, with the degrees of freedom after Satterthwaite.
With fewer than two slices in either recording there are no bounds: NaN. What is the same in all
slices, an error of the calibrated prices above all, is not in these bounds; it is in share_low and
share_high of rec.toll.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from .errors import NotComparable
from .frames import TOLLS
from .opening import Progress, understanding
from .recording import Recording
from .recording import open as open_recording
from .table import Table

Figure = Literal["time_s", "count", "bytes"]
By = Literal["total", "toll", "class", "site"]

BLOCKS: Final = 30
FIGURES: Final[tuple[Figure, ...]] = ("time_s", "count", "bytes")
KEYS: Final[dict[By, tuple[str, ...]]] = {
    "total": ("total",),
    "toll": ("toll",),
    "class": ("class", "toll"),
    "site": ("toll", "call", "allocated_at", "touched_at"),
}
# Student's t, two-sided 95 %, by degrees of freedom; between them linear in 1/df.
T_DF: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 60, math.inf)
T_95: Final = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.1788, 2.1314, 2.0860,
    2.0423, 2.0003, 1.9600,
)  # fmt: skip

SITE_BLOCKS: Final = """
SELECT b.block, p.toll, p.call, p.allocated_stack, p.touched_stack, SUM(p.weight_ns) AS weight_ns,
	SUM(p.count) AS count, SUM(p.bytes) AS bytes
FROM temp.memtoll_part p JOIN temp.memtoll_block b ON b.slice = p.slice
WHERE p.owner = 1 GROUP BY b.block, p.toll, p.call, p.allocated_stack, p.touched_stack
"""
SITE_TOTALS: Final = """
SELECT s.toll, s.call, s.allocated_stack, s.touched_stack, COALESCE(a.text, '') AS allocated_at,
	COALESCE(t.text, '') AS touched_at, SUM(s.time_ns) / 1e9 AS time_s, SUM(s.count) AS count, SUM(s.bytes) AS bytes
FROM temp.sites s LEFT JOIN temp.memtoll_stack a ON a.stack_id = s.allocated_stack
LEFT JOIN temp.memtoll_stack t ON t.stack_id = s.touched_stack
GROUP BY s.toll, s.call, s.allocated_stack, s.touched_stack
"""
CLASS_BLOCKS: Final = """
SELECT b.block, f.class, p.toll, SUM(f.faults * p.mean_ns + f.blocked_ns
	+ (f.faults - f.timed_faults) * p.blocked_mean_ns) / 1e9 AS time_s,
	SUM(f.faults) AS count, SUM(f.pages) * 4096 AS bytes
FROM main.fault f JOIN temp.fault_price p ON p.class = f.class JOIN temp.memtoll_block b ON b.slice = f.slice
GROUP BY b.block, f.class, p.toll
"""


@dataclass(frozen=True)
class Side:
    """What a comparison keeps of a recording."""

    path: str
    command: str
    duration_s: float
    observed_s: float
    work: float | None
    lost: dict[str, dict[str, Any]]
    complete: bool
    block_s: Any
    """Seconds of each block, a float array."""
    blocks: dict[By, pd.DataFrame]
    """Figures by key and block; blocks without any left out."""

    @property
    def divisor(self) -> float:
        """Seconds, or units of work."""
        return self.duration_s if self.work is None else self.work


@dataclass(frozen=True)
class Comparison:
    """Two recordings side by side; made by memtoll.diff.

    toll, classes, sites and total are Tables, largest absolute difference first (toll: in the
    report's order), with the columns

    before, after   float64: seconds, per second of recording or per unit of work (per)
    difference      float64: after - before
    low, high       float64: 95 % bounds of difference; NaN with fewer than two slices
    ratio           float64: after / before; inf where nothing was before, NaN where nothing is
    changed         boolean: 0 lies outside of the bounds; NA without bounds

    Index: toll; class and toll; toll, call, allocated_at and touched_at (chains of functions: ids
    of stacks differ between runs); total. table() has the same of counts and bytes.
    """

    before: Side
    after: Side
    caveats: list[str] = field(default_factory=list)
    """Reasons that force=True overrode."""

    @property
    def per(self) -> str:
        """What the figures are divided by: "second" or "unit of work"."""
        return "second" if self.before.work is None else "unit of work"

    @cached_property
    def toll(self) -> Table:
        """Seconds by toll, in the report's order; NaN where a run did not capture it."""
        return self.table("toll")

    @cached_property
    def classes(self) -> Table:
        """Seconds by class of fault."""
        return self.table("class")

    @cached_property
    def sites(self) -> Table:
        """Seconds by toll and chains of functions."""
        return self.table("site")

    @cached_property
    def total(self) -> Table:
        """Seconds of all captured tolls together, compute included; one row."""
        return self.table("total")

    def table(self, by: By, figure: Figure = "time_s") -> Table:
        """One figure by total, toll, class or site: columns as above, in s, events or bytes."""
        keys = list(KEYS[by])
        sides = [_rates(side, by, figure) for side in (self.before, self.after)]
        joined = sides[0].join(sides[1], how="outer", lsuffix="_before", rsuffix="_after")
        if by == "toll":
            joined = joined.reindex(pd.Index([toll for toll in TOLLS if toll in joined.index], name="toll"))
        else:
            joined = joined.fillna({"rate_before": 0.0, "rate_after": 0.0})
        table = _differences(joined, *(_freedom(side) for side in (self.before, self.after)))
        if by != "toll":
            order = (-table["difference"].abs()).argsort(kind="stable")
            table = table.iloc[order]
        table.index.names = keys
        result = Table(table)
        result.attrs["per"] = self.per
        result.attrs["complete"] = self.before.complete and self.after.complete
        result.attrs["losses"] = {
            f"{name} {when}": dict(loss)
            for when, side in (("before", self.before), ("after", self.after))
            for name, loss in side.lost.items()
        }
        return result

    def as_json(self, sites: int | None = None) -> dict[str, Any]:
        """Everything as plain objects; None for what is not known. sites: only so many."""
        return {
            "format": 1,
            "per": self.per,
            "before": _side_json(self.before),
            "after": _side_json(self.after),
            "caveats": self.caveats,
            "total": _records(self.total)[0] if len(self.total) else None,
            "toll": _records(self.toll),
            "classes": _records(self.classes),
            "sites": _records(self.sites if sites is None else self.sites.head(sites)),
        }

    def __str__(self) -> str:
        from .text import comparison

        return comparison(self)

    def _repr_html_(self) -> str:
        from html import escape

        head = f"{self.before.path} and {self.after.path}, seconds per {self.per}"
        return f"<p>{escape(head)}</p>{self.toll._repr_html_() or ''}"


def diff(
    before: Recording | str | os.PathLike[str],
    after: Recording | str | os.PathLike[str],
    *,
    work_before: float | None = None,
    work_after: float | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two recordings, open ones or files.

    work_before, work_after: units of work done in each, requests or rounds or rows: figures are
    then per unit; without them per second of recording, which says little of two runs of a job of
    fixed size: their durations differ, not their rates. force: also what does not measure the
    same; the reasons are then in caveats.

    NotComparable: incomplete, of different machines, min_size_bytes, probes or captured tolls, or
    nothing in it. ValueError: work of one side only, or not above 0. And what memtoll.open raises.
    """
    if (work_before is None) != (work_after is None):
        raise ValueError("work must be given for both recordings or for neither")
    for work in (work_before, work_after):
        if work is not None and not (math.isfinite(work) and work > 0):
            raise ValueError(f"work must be a number above 0, not {work}")
    with ExitStack() as stack:
        first, second = (
            side
            if isinstance(side, Recording)
            else stack.enter_context(open_recording(side, incomplete=True, progress=progress))
            for side in (before, after)
        )
        reasons = _check(first, second, force)
        with understanding(first.path):
            before_side = _side(first, work_before)
        with understanding(second.path):
            after_side = _side(second, work_after)
    return Comparison(before_side, after_side, reasons)


def _check(before: Recording, after: Recording, force: bool) -> list[str]:
    """Reasons against a comparison that force overrides; NotComparable where it does not."""
    for rec in (before, after):
        if not rec.duration_s > 0:
            raise NotComparable(f"{rec.path} cannot be compared: no time was recorded in it")
    reasons = list(_reasons(before, after))
    if reasons and not force:
        raise NotComparable(
            f"{before.path} and {after.path} cannot be compared: {'; '.join(reasons)}"
            " (force=True, --force: do it all the same)"
        )
    return reasons


def _reasons(before: Recording, after: Recording) -> Iterator[str]:
    for rec in (before, after):
        if not rec.complete:
            yield f"{rec.path.name} is incomplete"
    for key, what in (("host", "machines"), ("machine", "architectures"), ("min_size_bytes", "--min-size")):
        values = [rec.meta.get(key) for rec in (before, after)]
        if values[0] != values[1]:
            yield f"different {what} ({values[0] or 'unknown'} and {values[1] or 'unknown'})"
    probes = [rec.meta.get("probes") for rec in (before, after)]
    if probes[0] != probes[1]:
        yield f"different probes ({probes[0] or 'unknown'} and {probes[1] or 'unknown'})"
    missing = [set(rec.toll.index[rec.toll["not_captured"].notna()]) for rec in (before, after)]
    only = sorted(missing[0] ^ missing[1])
    if only:
        yield f"captured by one of them only: {', '.join(only)}"


def _side(rec: Recording, work: float | None) -> Side:
    timeline = rec.timeline
    views = rec.views
    ((slices,),) = views.rows("SELECT COUNT(*) FROM main.slice")
    views.run(
        "memtoll_block",
        f"CREATE TEMP TABLE memtoll_block AS SELECT slice, (end_ns - start_ns) / 1e9 AS seconds,"
        f" NTILE({max(1, min(BLOCKS, slices))}) OVER (ORDER BY slice) AS block FROM main.slice",
    )
    seconds = rec.query("SELECT block, SUM(seconds) AS s FROM temp.memtoll_block GROUP BY block ORDER BY block")
    block_of = rec.query("SELECT slice, block FROM temp.memtoll_block").set_index("slice")["block"]
    by_toll = pd.DataFrame(timeline[["toll", *FIGURES]].assign(block=timeline["slice"].map(block_of)))
    by_toll["toll"] = by_toll["toll"].astype("object")
    blocks: dict[By, pd.DataFrame] = {
        "toll": by_toll.groupby(["toll", "block"], as_index=False)[list(FIGURES)].sum(),
        "class": pd.DataFrame(rec.query(CLASS_BLOCKS)),
        "site": _site_blocks(rec),
    }
    total = blocks["toll"].groupby("block", as_index=False)[list(FIGURES)].sum()
    blocks["total"] = total.assign(total="observed")
    return Side(
        path=str(rec.path),
        command=str(rec.target["command"]),
        duration_s=rec.duration_s,
        observed_s=rec.observed_s,
        work=work,
        lost=dict(timeline.attrs["losses"]),
        complete=rec.complete,
        block_s=seconds["s"].to_numpy(dtype="float64"),
        blocks=blocks,
    )


def _site_blocks(rec: Recording) -> pd.DataFrame:
    """Sites by block: the totals of rec.sites, divided by what memtoll_part weighs each block."""
    rec.stacks  # noqa: B018 - makes the texts
    keys = ["toll", "call", "allocated_stack", "touched_stack"]
    parts = pd.DataFrame(rec.query(SITE_BLOCKS))
    totals = pd.DataFrame(rec.query(SITE_TOTALS))
    joined = parts.merge(totals, on=keys, suffixes=("_part", ""))
    for figure, weight in (("time_s", "weight_ns"), ("count", "count_part"), ("bytes", "bytes_part")):
        whole = joined.groupby(keys)[weight].transform("sum").astype("float64")
        even = 1.0 / joined.groupby(keys)[weight].transform("size")
        share = np.where(whole > 0, joined[weight] / whole.where(whole > 0, 1.0), even)
        joined[figure] = joined[figure].astype("float64") * share
    return joined.groupby([*KEYS["site"], "block"], as_index=False)[list(FIGURES)].sum()


def _freedom(side: Side) -> int:
    return len(side.block_s) - 1


def _rates(side: Side, by: By, figure: Figure) -> pd.DataFrame:
    """rate and its variance by key."""
    blocks = side.blocks[by]
    keys = list(KEYS[by])
    all_s = float(side.block_s.sum())
    x = blocks[figure].astype("float64")
    d = pd.Series(side.block_s[blocks["block"].to_numpy(dtype="int64") - 1], index=blocks.index)
    sums = (
        pd.DataFrame({"x": x, "xx": x * x, "xd": x * d}).groupby([blocks[key] for key in keys]).sum().astype("float64")
    )
    rate = sums["x"] / all_s
    count = len(side.block_s)
    squares = (sums["xx"] - 2 * rate * sums["xd"] + rate * rate * float((side.block_s**2).sum())).clip(lower=0.0)
    # What is left of equal numbers by rounding is no variance.
    squares = squares.where(squares > 1e-12 * sums["xx"], 0.0)
    variance = squares * count / (count - 1) / all_s**2 if count > 1 else squares * math.nan
    scale = all_s / side.divisor
    return pd.DataFrame({"rate": rate * scale, "variance": variance * scale**2})


def _differences(joined: pd.DataFrame, df_before: int, df_after: int) -> pd.DataFrame:
    before, after = joined["rate_before"], joined["rate_after"]
    table = pd.DataFrame({"before": before, "after": after, "difference": after - before})
    known = df_before > 0 and df_after > 0
    # A key that one side lacks: 0 in all its blocks. NaN rates (not captured) stay NaN.
    one, two = joined["variance_before"].fillna(0.0), joined["variance_after"].fillna(0.0)
    both = one + two
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.asarray(both**2 / (one**2 / max(df_before, 1) + two**2 / max(df_after, 1)), dtype="float64")
        ratio = np.asarray(after, dtype="float64") / np.asarray(before, dtype="float64")
    half = _t95(np.where(np.isfinite(freedom), freedom, np.inf)) * np.sqrt(np.asarray(both, dtype="float64"))
    if not known:
        half = np.full(len(table), math.nan)
    table["low"] = table["difference"] - half
    table["high"] = table["difference"] + half
    table["ratio"] = ratio
    changed = pd.array((table["low"] > 0) | (table["high"] < 0), dtype="boolean")
    changed[np.asarray(table["low"].isna())] = pd.NA
    table["changed"] = changed
    return table


def _t95(df: Any) -> Any:
    """Student's t of a two-sided 95 % interval, within 0.001."""
    inverse = [1.0 / value for value in T_DF]
    return np.interp(1.0 / np.maximum(df, 1.0), inverse[::-1], T_95[::-1])


def _records(table: Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pd.DataFrame(table).reset_index().to_dict("records")
    return [{str(key): _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return bool(value) if isinstance(value, np.bool_) else value


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "path": side.path,
        "command": side.command,
        "duration_s": side.duration_s,
        "observed_s": side.observed_s,
        "work": side.work,
        "slices_joined": len(side.block_s),
        "losses": side.lost,
    }
