# SPDX-License-Identifier: GPL-2.0
"""Before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..text import format_time
from .theme import SIZE, sheet, time_ticks, toll_colour

if TYPE_CHECKING:
    from ..comparison import Comparison

# A toll is drawn where it has that part of the larger total on either side, or changed for sure.
SMALL: Final = 0.005


def before_after(
    comparison: Comparison, *, ax: Axes | None = None, theme: str = "light", size: tuple[float, float] = SIZE
) -> Figure:
    """The tolls of a memtoll.Comparison, two bars each: before, pale, and after.

    x: seconds per second of recording, or per unit of work, as the comparison has it. Beside the bars:
    the difference with its 95 % bounds, where there are any. Tolls with less than 0.5 % on both sides
    are left out. theme: 'light' or 'dark'; size: inches of a new figure; ax: draw there instead.
    """
    paper = sheet(ax, theme, size)
    table = pd.DataFrame(comparison.toll)
    known = table[table["before"].notna() & table["after"].notna()]
    most = max(float(known["before"].sum()), float(known["after"].sum())) if len(known) else 0.0
    shown = known[known[["before", "after"]].max(axis=1) >= SMALL * most]
    if most <= 0:
        paper.empty("Nothing was observed in either recording.")
        return paper.done()
    axes = paper.axes
    rows = np.arange(len(shown))[::-1]
    colours = [toll_colour(str(toll)) for toll in shown.index]
    axes.barh(rows + 0.19, shown["before"], 0.34, color=colours, alpha=0.4, zorder=2)
    axes.barh(rows - 0.19, shown["after"], 0.34, color=colours, zorder=2)
    narrow = paper.inches < 6
    far = float(shown[["before", "after"]].to_numpy().max())
    for row, (_, each) in zip(rows, shown.iterrows()):
        axes.annotate(
            _change(each, "\n" if narrow else "  "),
            (max(each["before"], each["after"]), row),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=paper.theme.ink,
        )
    axes.set_xlim(0, far * (2.6 if narrow else 1.9))
    axes.set_ylim(min(-0.6, (len(shown) - 6) / 2), max(len(shown) - 0.4, (len(shown) + 4) / 2))
    axes.set_yticks(rows, [str(toll) for toll in shown.index])
    axes.tick_params(axis="y", length=0)
    time_ticks(axes.xaxis)
    axes.set_xlabel(f"time per {comparison.per} (s)")
    axes.grid(axis="x", color=paper.theme.line, linewidth=0.6)
    paper.title(
        _finding(comparison, shown),
        f"Tolls before and after, time per {comparison.per}; in brackets 95 % bounds of the difference",
    )
    paper.legend(
        [
            Patch(color=paper.theme.faint, alpha=0.4, label="before"),
            Patch(color=paper.theme.faint, label="after"),
        ]
    )
    return paper.done()


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{format_time(abs(value))}"


def _change(row: pd.Series, gap: str) -> str:
    before, after, change = (float(row[name]) for name in ("before", "after", "difference"))
    text = f"{format_time(before)}, then {format_time(after)}: {_signed(change)}"
    if not pd.isna(row["low"]):
        text += f"{gap}({_signed(float(row['low']))} to {_signed(float(row['high']))})"
    return text


def _finding(comparison: Comparison, shown: pd.DataFrame) -> str:
    total = comparison.total.iloc[0]
    before, after = float(total["before"]), float(total["after"])
    text = f"{format_time(before)} before, {format_time(after)} after, per {comparison.per}"
    sure = shown[shown["changed"].fillna(False).astype(bool)]
    pool = sure if len(sure) else shown
    largest = pool["difference"].abs().idxmax()
    change = float(pool["difference"][largest])
    if change == 0:
        return f"{text}: nothing changed"
    how = "less" if change < 0 else "more"
    doubt = (
        "" if len(sure) else ", which may be chance" if not pool["low"].isna().all() else ", how surely is not known"
    )
    return f"{text}: {largest} takes {format_time(abs(change))} {how}{doubt}"
