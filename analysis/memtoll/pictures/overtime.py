# SPDX-License-Identifier: GPL-2.0
"""Toll over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..opening import understanding
from ..text import format_share
from .theme import OTHER_COLOUR, SIZE, Sheet, sheet, toll_colour

if TYPE_CHECKING:
    from ..recording import Recording

Numbers = npt.NDArray[Any]

# More slices than that are drawn as means over several.
STEPS: Final = 600
# A toll with less of the observed time than that goes into "others".
SMALL: Final = 0.005
OTHERS: Final = "others"
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


@dataclass(frozen=True)
class Layer:
    """One toll of the timeline, or several together: times in s by slice, share of all of them."""

    label: str
    colour: str
    share: float
    times: Numbers


def layers(rec: Recording) -> tuple[Numbers, list[Layer]] | None:
    """The edges of the slices, and what is stacked over them, lowest first; None where nothing was observed."""
    frame = rec.timeline
    total = float(frame["time_s"].sum())
    # Infinite times leave none: their area would be missing from the picture.
    if not np.isfinite(frame["time_s"].to_numpy()).all():
        raise ValueError("a time that is no number")
    if total <= 0:
        return None
    wide = frame.pivot(index="slice", columns="toll", values="time_s").fillna(0.0)
    spans = frame.groupby("slice")[["start_s", "end_s"]].first().loc[wide.index]
    firsts = np.arange(0, len(wide), max(1, -(-len(wide) // STEPS)))
    edges = np.append(spans["start_s"].to_numpy()[firsts], spans["end_s"].to_numpy()[-1])
    times = {str(toll): np.add.reduceat(wide[toll].to_numpy(), firsts) for toll in wide.columns}
    parts = {toll: float(wide[toll].sum()) / total for toll in wide.columns}
    shown = sorted(
        (toll for toll, part in parts.items() if part >= SMALL), key=lambda toll: (toll == "compute", -parts[toll])
    )
    rest = [toll for toll in times if toll not in shown and parts[toll] > 0]
    # What is said of a toll is what the toll table says.
    said_of = {str(toll): float(share) for toll, share in rec.toll["share"].fillna(0.0).items()}
    stacked = [
        Layer(f"{toll}  {format_share(said_of[toll])}", toll_colour(toll), said_of[toll], times[toll]) for toll in shown
    ]
    if sum(parts[toll] for toll in rest) >= SHOWN:
        together = sum((times[toll] for toll in rest), np.zeros(len(firsts)))
        share = sum(said_of[toll] for toll in rest)
        stacked.append(Layer(f"{OTHERS}  {format_share(share)}", OTHER_COLOUR, share, together))
    return edges, stacked


def _stack(paper: Sheet, rec: Recording) -> None:
    stacked = layers(rec)
    if stacked is None:
        paper.empty("Nothing was observed: the target used no processor time.")
        return
    edges, parts = stacked
    lengths = np.maximum(np.diff(edges), 1e-9)
    below = np.zeros(len(lengths))
    for part in parts:
        rate = part.times / lengths
        paper.axes.stairs(
            below + rate,
            edges,
            baseline=below,
            fill=True,
            color=part.colour,
            label=part.label,
            linewidth=0.4,
            hatch="////" if part.label.startswith(OTHERS) else None,
            edgecolor=paper.theme.ground,
        )
        below = below + rate
    paper.axes.set_xlim(edges[0], edges[-1])
    paper.axes.set_ylim(0, max(float(below.max()) * 1.06, 1e-9))
    paper.axes.set_xlabel("time since the start (s)")
    paper.axes.set_ylabel("observed time per second (s/s)")
    paper.axes.grid(axis="y", color=paper.theme.line, linewidth=0.6)
    paper.title(*said(rec))
    paper.legend()


def said(rec: Recording) -> tuple[str, str]:
    """What the timeline says, and what it shows."""
    return (
        rec.verdict.sentence.split(": ")[0].rstrip("."),
        "Where the time went, slice by slice; 1 s/s is one processor's worth, asleep in faults included",
    )
