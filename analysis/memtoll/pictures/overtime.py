# SPDX-License-Identifier: GPL-2.0
"""Toll over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..opening import understanding
from ..text import format_share
from .theme import OTHER_COLOUR, SIZE, Sheet, sheet, toll_colour

if TYPE_CHECKING:
    from ..recording import Recording

# More slices than that are drawn as means over several.
STEPS: Final = 600
# A toll with less of the observed time than that goes into "others".
SMALL: Final = 0.005
# and the others are drawn where together they have that.
SHOWN: Final = 0.0005


def timeline(
    rec: Recording, *, ax: Axes | None = None, theme: str = "light", size: tuple[float, float] = SIZE
) -> Figure:
    """Tolls over time as a stacked area: observed seconds per second of wall time.

    x: seconds since the recording's start, y: 1 is one processor's worth. Tolls with less than
    0.5 % of the time are drawn together. Of more than 600 slices, neighbours are drawn as their mean.
    theme: 'light' or 'dark'; size: inches of a new figure; ax: draw there instead.
    """
    paper = sheet(ax, theme, size)
    with understanding(rec.path):
        _stack(paper, rec)
    return paper.done()


def _stack(paper: Sheet, rec: Recording) -> None:
    frame = rec.timeline
    total = float(frame["time_s"].sum())
    # Infinite times leave none: their area would be missing from the picture.
    if not np.isfinite(frame["time_s"].to_numpy()).all():
        raise ValueError("a time that is no number")
    if total <= 0:
        paper.empty("Nothing was observed: the target used no processor time.")
        return
    wide = frame.pivot(index="slice", columns="toll", values="time_s").fillna(0.0)
    spans = frame.groupby("slice")[["start_s", "end_s"]].first().loc[wide.index]
    firsts = np.arange(0, len(wide), max(1, -(-len(wide) // STEPS)))
    starts = spans["start_s"].to_numpy()[firsts]
    ends = np.append(starts[1:], spans["end_s"].to_numpy()[-1])
    lengths = np.maximum(ends - starts, 1e-9)
    rates = {str(toll): np.add.reduceat(wide[toll].to_numpy(), firsts) / lengths for toll in wide.columns}
    parts = {toll: float(wide[toll].sum()) / total for toll in wide.columns}
    shown = sorted(
        (toll for toll, part in parts.items() if part >= SMALL), key=lambda toll: (toll == "compute", -parts[toll])
    )
    rest = [toll for toll in rates if toll not in shown and parts[toll] > 0]
    layers = [(f"{toll}  {format_share(parts[toll])}", toll_colour(toll), rates[toll]) for toll in shown]
    if sum(parts[toll] for toll in rest) >= SHOWN:
        together = sum((rates[toll] for toll in rest), np.zeros(len(firsts)))
        layers.append((f"others  {format_share(sum(parts[toll] for toll in rest))}", OTHER_COLOUR, together))
    edges = np.append(starts, ends[-1])
    below = np.zeros(len(firsts))
    for label, colour, rate in layers:
        paper.axes.stairs(
            below + rate,
            edges,
            baseline=below,
            fill=True,
            color=colour,
            label=label,
            linewidth=0.4,
            hatch="////" if label.startswith("others") else None,
            edgecolor=paper.theme.ground,
        )
        below = below + rate
    paper.axes.set_xlim(edges[0], edges[-1])
    paper.axes.set_ylim(0, max(float(below.max()) * 1.06, 1e-9))
    paper.axes.set_xlabel("time since the start (s)")
    paper.axes.set_ylabel("observed time per second (s/s)")
    paper.axes.grid(axis="y", color=paper.theme.line, linewidth=0.6)
    paper.title(
        rec.verdict.sentence.split(": ")[0].rstrip("."),
        "Where the time went, slice by slice; 1 s/s is one processor's worth, asleep in faults included",
    )
    paper.legend()
