# SPDX-License-Identifier: GPL-2.0
"""Flame graphs: which stacks a toll's time belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from ..errors import Error
from ..opening import understanding
from ..text import cut, format_share, format_time
from .theme import LETTER, SIZE, Sheet, ink_on, sheet, time_ticks, toll_colour, words

if TYPE_CHECKING:
    from ..recording import Recording

OWNERS: Final = ("allocated_at", "touched_at")
UNKNOWN: Final = "[unknown]"
# Cells narrower than that part of the width are not drawn.
NARROW: Final = 0.0005
# Cells wider than that have an edge.
EDGED: Final = 0.004
# What a frame's colour keeps of its toll's.
TINT: Final = 0.3
CELL_POINTS: Final = 8.0


@dataclass
class Cell:
    """A function below its caller: time in it by toll, in s."""

    name: str
    tolls: dict[str, float] = field(default_factory=dict)
    below: dict[str, Cell] = field(default_factory=dict)
    depth: int = 0

    @property
    def time_s(self) -> float:
        return sum(self.tolls.values())

    @property
    def toll(self) -> str:
        """The toll with most of the time."""
        return max(self.tolls, key=lambda toll: self.tolls[toll])

    def add(self, toll: str, time_s: float) -> None:
        self.tolls[toll] = self.tolls.get(toll, 0.0) + time_s


def flame(
    rec: Recording,
    toll: str | Sequence[str] | None = None,
    *,
    owner: str = "allocated_at",
    ax: Axes | None = None,
    theme: str = "light",
    size: tuple[float, float] = SIZE,
) -> Figure:
    """A flame graph of a toll, of several, or (None) of all but compute, by one owner.

    Each row is a call, its caller below it; the width is time (s), in all the calls above it too. The
    topmost cell of each stack is the toll. owner: 'allocated_at' or 'touched_at'; what has no such
    stack counts under [unknown]. Error: no such owner or toll.
    """
    paper = sheet(ax, theme, size)
    if owner not in OWNERS:
        raise Error(f"no owner {owner!r}: there are {', '.join(OWNERS)}")
    known = list(rec.toll.index)
    wanted = (
        [each for each in known if each != "compute"]
        if toll is None
        else [toll]
        if isinstance(toll, str)
        else list(toll)
    )
    for each in wanted:
        if each not in known:
            raise Error(f"no toll {each!r}: there are {', '.join(known)}")
    name = ", ".join(wanted) if toll is not None else "all tolls but compute"
    with understanding(rec.path):
        _graph(paper, rec, wanted, owner, name)
    return paper.done()


def _graph(paper: Sheet, rec: Recording, wanted: Sequence[str], owner: str, name: str) -> None:
    root = tree(rec.sites, wanted, owner)
    if root.time_s <= 0:
        paper.empty(f"No time to show: {name} cost nothing that has a site.")
        return
    paper.title(
        _finding(rec, root, wanted, owner),
        f"Flame graph of {name}: width is time, callers below, {owner.replace('_', ' ')}",
    )
    paper.legend(
        [
            Patch(color=toll_colour(each), label=f"{each}  {format_time(root.tolls[each])}")
            for each in wanted
            if root.tolls.get(each, 0) > 0.001 * root.time_s
        ]
    )
    paper.done()  # the words in the cells are cut to the room that is left
    _draw(paper, root)


def tree(sites: pd.DataFrame, tolls: Sequence[str], owner: str) -> Cell:
    """Sites as a tree of calls from the root, the tolls as its leaves."""
    root = Cell("all")
    chosen = sites[sites["toll"].isin(list(tolls))]
    for toll, stack, time_s in zip(chosen["toll"], chosen[owner], chosen["time_s"]):
        cell = root
        cell.add(toll, time_s)
        for name in [*(UNKNOWN if pd.isna(stack) else stack).split(";"), f"\0{toll}"]:
            cell = cell.below.setdefault(name, Cell(name, depth=cell.depth + 1))
            cell.add(toll, time_s)
    return root


def _finding(rec: Recording, root: Cell, tolls: Sequence[str], owner: str) -> str:
    """The site with most of the time."""
    places = f"{owner.split('_')[0]}_place"
    chosen = rec.sites[rec.sites["toll"].isin(list(tolls))]
    sums = chosen.groupby(places, observed=True)["time_s"].sum().sort_values(ascending=False)
    if not len(sums) or sums.iloc[0] <= 0:
        return f"{format_time(root.time_s)}, of no known place"
    of = format_share(float(sums.iloc[0]) / root.time_s)
    return f"{of} of the {format_time(root.time_s)} belong to {cut(str(sums.index[0]), 100)}"


def _draw(paper: Sheet, root: Cell) -> None:
    axes, theme = paper.axes, paper.theme
    whole = root.time_s
    cells: list[tuple[Cell, float]] = []
    waiting = [(root, 0.0)]
    while waiting:
        cell, left = waiting.pop()
        if cell.time_s < NARROW * whole:
            continue
        cells.append((cell, left))
        for below in sorted(cell.below.values(), key=lambda each: -each.time_s):
            waiting.append((below, left))
            left += below.time_s
    rows = max(cell.depth for cell, _ in cells) + 1
    axes.set_xlim(0, whole)
    axes.set_ylim(0, max(rows, 6))
    axes.set_xlabel("time (s)")
    axes.set_yticks([])
    time_ticks(axes.xaxis)
    axes.spines["left"].set_visible(False)
    for leaves in (False, True):
        patches = [
            Rectangle((left, cell.depth), cell.time_s, 1)
            for cell, left in cells
            if cell.name.startswith("\0") is leaves
        ]
        colours = [toll_colour(cell.toll) for cell, _ in cells if cell.name.startswith("\0") is leaves]
        drawn = PatchCollection(patches, facecolors=colours, alpha=None if leaves else TINT, linewidths=0, zorder=2)
        axes.add_collection(drawn, autolim=False)
    edges = PatchCollection(
        [Rectangle((left, cell.depth), cell.time_s, 1) for cell, left in cells if cell.time_s > EDGED * whole],
        facecolors="none",
        edgecolors=theme.ground if theme.ground != "none" else theme.line,
        linewidths=0.6,
        zorder=3,
    )
    axes.add_collection(edges, autolim=False)
    paper.figure.draw_without_rendering()  # the axes get their room
    points = axes.get_window_extent().width * 72 / paper.figure.dpi
    height = axes.get_window_extent().height * 72 / paper.figure.dpi / max(rows, 6)
    if height < 6:
        return
    for cell, left in cells:
        letters = int((cell.time_s / whole * points - 4) / (CELL_POINTS * LETTER))
        if letters < 4:
            continue
        leaf = cell.name.startswith("\0")
        axes.annotate(
            words(cell.name.lstrip("\0"), letters),
            (left, cell.depth + 0.5),
            (3, -0.5),
            textcoords="offset points",
            va="center",
            fontsize=CELL_POINTS,
            color=ink_on(toll_colour(cell.toll)) if leaf else theme.ink,
            annotation_clip=True,
            zorder=4,
        )
