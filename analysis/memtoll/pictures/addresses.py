# SPDX-License-Identifier: GPL-2.0
"""Address by time: every sweep of faults as a line, the holes of the address space left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..opening import understanding
from ..text import format_bytes
from .findings import access_finding, limit_bytes
from .theme import Sheet, sheet, toll_colour, words

if TYPE_CHECKING:
    from ..recording import Recording

Numbers = npt.NDArray[Any]

PAGE: Final = 4096
# Stretches of memory drawn at most, and the part of the pages they need not show.
STRETCHES: Final = 10
LEFT_OUT: Final = 0.005
# Height of a hole, and least height of a stretch, as parts of all memory drawn.
HOLE: Final = 0.02
LEAST: Final = 0.02
# Of more runs than that, those are drawn that differ on a grid this fine: finer than any paper.
DRAWN: Final = 100_000
GRID: Final = (4000, 4000)
# Of more lines than that, a vector format gets an image.
VECTORS: Final = 1_500
JOINED: Final = 500


@dataclass(frozen=True)
class Stretch:
    """Memory without large holes: pages first to last (exclusive), and where it is drawn."""

    first: int
    last: int
    base: float
    height: float
    owner: str

    def place(self, pages: Numbers) -> Numbers:
        """Height in the picture of page numbers inside of it."""
        return np.asarray(self.base + (pages - self.first) * (self.height / (self.last - self.first)))


def address_map(
    rec: Recording,
    *,
    pid: int | None = None,
    allocated_stack: int | None = None,
    tolls: Sequence[str] | None = None,
    ax: Axes | None = None,
    theme: str = "light",
    size: tuple[float, float] = (9.0, 5.4),
) -> Figure:
    """Faults and swap-ins of a process, or of one allocation site: address by time.

    Each run of rec.faults is a line from its first to its last fault; a sweep over memory is a
    diagonal, and a program that sweeps again and again over more than fits shows several.
    x: seconds since the recording's start. y: addresses, true to scale within each stretch of
    memory; holes between stretches are cut to a small gap, stretches with few faults left out (the
    subtitle says how many).

    pid: default the process with most faulted pages. allocated_stack: only blocks made there, as in
    rec.sites. tolls: default all. theme: 'light' or 'dark'; size: inches; ax: draw there instead.
    """
    paper = sheet(ax, theme, size)
    wanted = None if tolls is None else list(tolls)
    with understanding(rec.path):
        _runs(paper, rec, pid, allocated_stack, wanted)
    return paper.done()


@dataclass(frozen=True)
class Chosen:
    """The runs that a map shows, with their pages (last: exclusive), and where they lie."""

    pid: int
    runs: pd.DataFrame
    first: Numbers
    last: Numbers
    stretches: list[Stretch]
    outside: int

    @property
    def everything(self) -> int:
        """Pages, those of stretches that are left out as well."""
        return int((self.last - self.first).sum())

    def by_toll(self) -> dict[str, int]:
        """Pages of each toll, most first."""
        pages = pd.Series(self.last - self.first).groupby(self.runs["toll"].astype(object).to_numpy()).sum()
        return {str(toll): int(number) for toll, number in pages.sort_values(ascending=False, kind="stable").items()}


def choose(
    rec: Recording,
    pid: int | None = None,
    allocated_stack: int | None = None,
    tolls: Sequence[str] | None = None,
) -> Chosen | None:
    """Runs of one process, by default of that with most faulted pages; None where there are none."""
    runs = rec.faults
    keep = np.ones(len(runs), dtype=bool)
    if tolls is not None:
        keep &= runs["toll"].isin(list(tolls)).to_numpy()
    if allocated_stack is not None:
        keep &= runs["allocated_stack"].to_numpy() == allocated_stack
    if pid is None and keep.any():
        sums = pd.Series(runs["pages"].to_numpy()[keep]).groupby(runs["pid"].to_numpy()[keep]).sum()
        pid = int(sums.idxmax())
    if pid is not None:
        keep &= runs["pid"].to_numpy() == pid
    if pid is None or not keep.any():
        return None
    chosen = runs if keep.all() else runs.loc[keep]
    first = (chosen["address"].to_numpy() // PAGE).astype("int64")
    last = first + np.maximum(chosen["pages"].to_numpy(), 1)
    return Chosen(pid, chosen, first, last, *_stretches(first, last, _owners(rec, chosen)))


def of_toll(rec: Recording, toll: str, pages: int) -> str:
    """'480 MiB', and of how much where the toll table has more: other processes, runs that were not stored."""
    whole = rec.toll["bytes"].get(toll)
    shown = format_bytes(pages * PAGE)
    if whole is None or pd.isna(whole) or format_bytes(float(whole)) == shown:
        return shown
    return f"{shown} of {format_bytes(float(whole))}" if whole > pages * PAGE else shown


def _runs(
    paper: Sheet, rec: Recording, pid: int | None, allocated_stack: int | None, tolls: Sequence[str] | None
) -> None:
    chosen = choose(rec, pid, allocated_stack, tolls)
    if chosen is None:
        paper.empty("No faults to draw: the recording has no runs of this kind.")
        return
    _draw(paper, rec, chosen)
    _frame(paper, rec, chosen.stretches)
    paper.title(*said(rec, chosen, allocated_stack))


def said(rec: Recording, chosen: Chosen, allocated_stack: int | None = None) -> tuple[str, str]:
    """What the map says, and what it shows."""
    comm = _name(rec, chosen.pid)
    stretches = chosen.stretches
    what = f"Address by time of the faults of {comm}"
    if allocated_stack is not None:
        what = f"Address by time of the faults in blocks of one call site, {comm}"
    if len(stretches) == 1:
        size_here = format_bytes((stretches[0].last - stretches[0].first) * PAGE)
        what += f": {size_here} of addresses, most of it {stretches[0].owner}"
    if chosen.outside:
        what += f"; {chosen.outside:,} pages elsewhere left out"
    lost = rec.losses["count"].get("runs_unstored", 0)
    if lost:
        what += f"; {lost:,} runs were not stored"
    runs = chosen.runs
    return _again(runs, stretches) or access_finding(rec, allocated_stack) or _counts(runs), what


def _name(rec: Recording, pid: int | None) -> str:
    comm = rec.processes["comm"].get(pid)
    return f"process {pid}" if comm is None or pd.isna(comm) else f"{comm} ({pid})"


def _owners(rec: Recording, runs: pd.DataFrame) -> pd.Series:
    """Of each run: 'malloc at file.c:20 (f)', or its area."""
    places = rec.stacks["allocated_place"]
    ids = runs["allocated_stack"].to_numpy()
    codes, unique = pd.factorize(ids)
    texts = np.array([str(places.get(number, "") or "") if number else "" for number in unique], dtype=object)
    call = runs["call"].astype(object).to_numpy()
    area = runs["area"].astype(object).to_numpy()
    text = texts[codes]
    made = np.where(text == "", call, call + " at " + text)
    return pd.Series(np.where(call != "", made, area), index=runs.index).replace("", "unknown")


def _stretches(first: Numbers, last: Numbers, owners: pd.Series) -> tuple[list[Stretch], int]:
    """The stretches worth drawing, lowest first, and how many faulted pages lie outside of them."""
    order = np.argsort(first, kind="stable")
    reach = np.maximum.accumulate(last[order])
    touched = int(np.diff(np.concatenate([[0], _union(first[order], reach)])).sum())
    hole = max(32, touched // 50)
    breaks = np.flatnonzero(first[order][1:] > reach[:-1] + hole) + 1
    starts = np.concatenate([[0], breaks])
    ends = np.concatenate([breaks, [len(order)]])
    pages = np.add.reduceat((last - first)[order], starts)
    ranked = np.argsort(-pages, kind="stable")
    covered = np.cumsum(pages[ranked]) / pages.sum()
    wanted = min(int(np.searchsorted(covered, 1 - LEFT_OUT)) + 1, STRETCHES, len(ranked))
    chosen = sorted(ranked[:wanted])
    lengths = {number: int(reach[ends[number] - 1] - first[order][starts[number]]) for number in chosen}
    total = sum(lengths.values())
    made: list[Stretch] = []
    base = 0.0
    for number in chosen:
        rows = order[starts[number] : ends[number]]
        weights = pd.Series((last - first)[rows]).groupby(owners.to_numpy()[rows]).sum()
        height = max(float(lengths[number]), LEAST * total)
        made.append(
            Stretch(
                int(first[order][starts[number]]), int(reach[ends[number] - 1]), base, height, str(weights.idxmax())
            )
        )
        base += height + HOLE * total
    return made, int(pages.sum() - pages[chosen].sum())


def _union(first: Numbers, reach: Numbers) -> Numbers:
    """Running number of different pages of intervals sorted by their first page."""
    before = np.concatenate([[first[0] if len(first) else 0], reach[:-1]])
    return np.asarray(np.cumsum(np.maximum(0, reach - np.maximum(first, before))))


def _draw(paper: Sheet, rec: Recording, chosen: Chosen) -> None:
    """The lines, toll by toll, rare ones over frequent ones."""
    first, last, stretches = chosen.first, chosen.last, chosen.stretches
    low, high = np.full(len(first), np.nan), np.full(len(first), np.nan)
    for stretch in stretches:
        inside = (first >= stretch.first) & (first < stretch.last)
        low[inside] = stretch.place(first[inside])
        high[inside] = stretch.place(last[inside])
    begin, end = chosen.runs["start_s"].to_numpy(), chosen.runs["end_s"].to_numpy()
    tolls = chosen.runs["toll"].astype(object).to_numpy()
    weights = chosen.by_toll()
    span = max(float(end.max() - begin.min()), 1e-9)
    top = stretches[-1].base + stretches[-1].height
    handles = []
    for toll, number in weights.items():
        mine = (tolls == toll) & ~np.isnan(low)
        if not mine.any():
            continue
        colour = toll_colour(toll)
        at = np.flatnonzero(mine)
        if len(at) > DRAWN:
            at = at[_different(begin[at], end[at], low[at], high[at], float(begin.min()), span, top)]
        # Many runs as one line with gaps: a line of its own for each takes 20 us of Python.
        lines = np.full((len(at), 3, 2), np.nan)
        lines[:, 0, 0], lines[:, 0, 1], lines[:, 1, 0], lines[:, 1, 1] = begin[at], low[at], end[at], high[at]
        joined = [lines[some : some + JOINED].reshape(-1, 2) for some in range(0, len(at), JOINED)]
        # Rare ones thinner, so that what lies below them is still seen.
        width = 1.7 if 3 * number >= max(weights.values()) else 0.8
        drawn = LineCollection(joined, colors=colour, linewidths=width, capstyle="round", zorder=3)
        drawn.set_rasterized(len(at) > VECTORS)
        paper.axes.add_collection(drawn, autolim=False)
        label = f"{toll}  {of_toll(rec, toll, number)}"
        handles.append(Line2D([], [], color=colour, linewidth=4, label=label))
    paper.axes.set_xlim(max(0.0, float(begin.min()) - 0.01 * span), float(end.max()) + 0.01 * span)
    paper.axes.set_ylim(-HOLE / 2 * top, top * (1 + HOLE / 2))
    paper.legend(handles)


def _different(
    begin: Numbers, end: Numbers, low: Numbers, high: Numbers, origin: float, span: float, top: float
) -> Numbers:
    """One of all runs that begin and end in the same cells of the grid."""
    columns, rows = GRID
    x0 = ((begin - origin) / span * columns).astype(np.int64)
    x1 = ((end - origin) / span * columns).astype(np.int64)
    y0, y1 = (low / top * rows).astype(np.int64), (high / top * rows).astype(np.int64)
    key = ((x0 * 4096 + np.minimum(x1 - x0, 4095)) * 4096 + y0) * 4096 + np.minimum(y1 - y0, 4095)
    return np.asarray(np.unique(key, return_index=True)[1])


def _frame(paper: Sheet, rec: Recording, stretches: list[Stretch]) -> None:
    """Bands, addresses, and what each stretch is; the limit as a bar where it is less than what is gone over."""
    axes = paper.axes
    top = stretches[-1].base + stretches[-1].height
    ticks: list[float] = []
    labels: list[str] = []
    for stretch in stretches:
        axes.axhspan(stretch.base, stretch.base + stretch.height, color=paper.theme.band, zorder=0, linewidth=0)
        if not ticks or stretch.base - ticks[-1] > 0.045 * top:
            ticks.append(stretch.base)
            labels.append(f"{stretch.first * PAGE:#x}")
        step = _round_step(stretch.last - stretch.first, stretch.height / top)
        inside = range(step, stretch.last - stretch.first, step) if step else range(0)
        for pages in inside:
            y = float(stretch.place(np.array(stretch.first + pages)))
            if y - ticks[-1] > 0.045 * top and stretch.base + stretch.height - y > 0.03 * top:
                ticks.append(y)
                labels.append(f"+ {format_bytes(pages * PAGE).replace('.0 ', ' ')}")
        if stretch.height > 0.055 * top and len(stretches) > 1:
            text = f"{format_bytes((stretch.last - stretch.first) * PAGE)}: {stretch.owner}"
            axes.annotate(
                words(text, round(paper.columns(8.5) * 0.6)),
                (1, stretch.base + stretch.height),
                (-4, -3),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=8.5,
                color=paper.theme.ink,
                zorder=5,
                bbox={"facecolor": paper.theme.band, "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
            )
    axes.set_yticks(ticks, labels, fontfamily="monospace", fontsize=8)
    axes.set_xlabel("time since the start (s)")
    axes.set_ylabel("address, holes left out")
    axes.grid(axis="x", color=paper.theme.line, linewidth=0.6)
    limit = limit_bytes(rec)
    tallest = max(stretches, key=lambda stretch: stretch.height)
    if limit and 0.02 * top < limit / PAGE < tallest.last - tallest.first:
        _limit_bar(paper, tallest, limit)


def _limit_bar(paper: Sheet, stretch: Stretch, limit: int) -> None:
    """A bar in the right margin, as high as the memory that may be kept."""
    axes = paper.axes
    height = float(stretch.place(np.array(stretch.first + limit / PAGE))) - stretch.base
    across = axes.get_yaxis_transform()
    style = {"color": paper.theme.ink, "linewidth": 1.2, "transform": across, "clip_on": False, "zorder": 5}
    axes.plot([1.015, 1.015], [stretch.base, stretch.base + height], **style)
    for y in (stretch.base, stretch.base + height):
        axes.plot([1.008, 1.022], [y, y], **style)
    axes.annotate(
        f"{format_bytes(limit).replace('.0 ', ' ')} may stay in memory",
        (1.015, stretch.base),
        (4, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        rotation=90,
        ha="left",
        va="bottom",
        fontsize=8.5,
        color=paper.theme.ink,
        annotation_clip=False,
    )


def _round_step(pages: int, part: float) -> int:
    """Pages between two inner ticks: a power of two, at most one tick for each tenth of the picture."""
    if part < 0.15 or pages < 64:
        return 0
    wanted = pages / max(1.0, part * 7)
    step = 1
    while step < wanted:
        step *= 2
    return step


def _again(runs: pd.DataFrame, stretches: list[Stretch]) -> str:
    """A title where most pages were given back and touched for the first time once more."""
    tolls = runs["toll"].astype(object).to_numpy()
    pages = runs["pages"].to_numpy()
    touched, back = int(pages[tolls == "zero.kernel"].sum()), int(pages[tolls == "swap.in"].sum())
    room = sum(stretch.last - stretch.first for stretch in stretches)
    if touched < 2 * room or back > touched / 20:
        return ""
    return (
        f"The same {format_bytes(room * PAGE)} of addresses are touched for the first time {touched / room:.1f} times:"
        f" given back and cleared again, {format_bytes(touched * PAGE)} in all"
    )


def _counts(runs: pd.DataFrame) -> str:
    """A title where the recording says nothing of access patterns."""
    pages = runs.groupby("toll", observed=True)["pages"].sum().sort_values(ascending=False)
    parts = [f"{count:,} pages of {toll}" for toll, count in pages.items() if count > 0]
    return "Faults map " + ", ".join(parts[:3])
