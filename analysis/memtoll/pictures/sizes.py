# SPDX-License-Identifier: GPL-2.0
"""What allocation sites cost, against the size of the blocks they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..opening import understanding
from ..text import cut, format_bytes, format_share, format_time
from .theme import SIZE, Sheet, bytes_ticks, log_ticks, sheet, time_ticks, toll_colour, words

if TYPE_CHECKING:
    from ..recording import Recording

NAMED: Final = 5
VECTORS: Final = 1_500


def sizes(rec: Recording, *, ax: Axes | None = None, theme: str = "light", size: tuple[float, float] = SIZE) -> Figure:
    """Allocation sites: x mean size of a block (bytes), y what its memory cost in all (s); both logarithmic.

    The cost of a site is the time of all tolls of the memory it made: the calls, its clearing, its
    faults, its swap-ins. The colour is the toll with most of it, the area of a point the calls. Sites
    of less than 1 us are left out. theme: 'light' or 'dark'; size: inches; ax: draw there instead.
    """
    paper = sheet(ax, theme, size)
    with understanding(rec.path):
        _points(paper, rec)
    return paper.done()


def _points(paper: Sheet, rec: Recording) -> None:
    points = site_costs(rec)
    points = points[(points["time_s"] >= 1e-6) & (points["block_bytes"] > 0)]
    if not len(points):
        paper.empty("No allocation site cost as much as a microsecond.")
        return
    area = 14 + 90 * np.log10(1 + points["calls"]) / max(1.0, float(np.log10(1 + points["calls"]).max()))
    axes = paper.axes
    axes.scatter(
        points["block_bytes"],
        points["time_s"],
        s=area,
        c=[toll_colour(toll) for toll in points["toll"]],
        alpha=0.85,
        linewidths=0.6,
        edgecolors=paper.theme.band,
        zorder=3,
        rasterized=len(points) > VECTORS,
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.margins(x=0.12, y=0.14)
    log_ticks(axes.yaxis)
    bytes_ticks(axes.xaxis)
    time_ticks(axes.yaxis)
    axes.set_xlabel("mean size of a block (bytes)")
    axes.set_ylabel("cost of its memory in all (s)")
    axes.grid(color=paper.theme.line, linewidth=0.6)
    middle = float(np.sqrt(np.prod(axes.get_xlim())))
    for _, row in points.head(NAMED).iterrows():
        right = row["block_bytes"] <= middle
        axes.annotate(
            words(str(row["place"]), paper.columns(8) // 2),
            (row["block_bytes"], row["time_s"]),
            (8 if right else -8, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            fontsize=8,
            color=paper.theme.ink,
            zorder=4,
        )
    most = points.iloc[0]
    part = most["time_s"] / rec.observed_s if rec.observed_s > 0 else 0.0
    paper.title(
        f"{cut(str(most['place']), 100)}: {int(most['calls']):,} blocks of {format_bytes(most['block_bytes'])} cost"
        f" {format_time(most['time_s'])}, {format_share(part)} of the observed time",
        f"Size against cost of {len(points):,} allocation sites; colour: the toll with most of it, area: calls",
    )
    used = points.groupby("toll")["time_s"].sum().sort_values(ascending=False)
    paper.legend(
        Line2D(
            [],
            [],
            marker="o",
            linestyle="",
            color=toll_colour(str(toll)),
            label=f"{toll}  {format_time(float(time_s))}",
        )
        for toll, time_s in used.items()
    )


def site_costs(rec: Recording) -> pd.DataFrame:
    """Allocation sites with what their memory cost: call, place, calls, block_bytes, time_s, toll; dearest first."""
    made = rec.allocations[rec.allocations["call"] != "free"]
    keys = ["call", "allocated_stack"]
    calls = made.astype({"call": object}).groupby(keys)[["calls", "bytes"]].sum()
    sites = rec.sites.astype({"call": object, "toll": object})
    sites = sites[(sites["allocated_stack"] != 0) & sites["call"].isin(calls.index.get_level_values(0))]
    paid = sites.groupby([*keys, "toll"])["time_s"].sum().reset_index().sort_values("time_s", ascending=False)
    cost = paid.groupby(keys).agg(time_s=("time_s", "sum"), toll=("toll", "first"))
    table = calls.join(cost, how="inner").reset_index().sort_values("time_s", ascending=False, kind="stable")
    places = rec.stacks["allocated_place"].astype(object)
    names = [places.get(number) for number in table["allocated_stack"]]
    table["place"] = [
        call if name is None or pd.isna(name) else f"{call} at {name}" for call, name in zip(table["call"], names)
    ]
    table["block_bytes"] = table["bytes"] / table["calls"].clip(lower=1)
    return pd.DataFrame(table[["call", "allocated_stack", "place", "calls", "block_bytes", "time_s", "toll"]])
