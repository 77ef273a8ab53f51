# SPDX-License-Identifier: GPL-2.0
"""How long one fault or one call of the allocator takes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..opening import understanding
from ..text import format_time
from .theme import OTHER_COLOUR, SIZE, Sheet, log_ticks, sheet, time_ticks, toll_colour

if TYPE_CHECKING:
    from ..recording import Recording

Numbers = npt.NDArray[Any]

# Bins of equal width on the logarithmic axis, for each power of ten.
BINS: Final = 12
# Rows of the legend; the rest is drawn as one.
SHOWN: Final = 7
# Of one toll by turns: what is of the same toll has the same colour.
STYLES: Final = ("-", "--", ":", "-.")

# Sums as they were stored: by slice, owner and class. The probe's own part of the time is taken out
# as in view fault_price, whose mean stands in where none of them was timed.
FAULTS: Final = """
SELECT f.class, SUM(f.faults) AS count, SUM(f.timed_faults) AS timed,
	CASE WHEN SUM(f.timed_faults) > 0
	THEN 1.0 * (SUM(f.timed_cpu_ns) + SUM(f.blocked_ns)) / SUM(f.timed_faults) - c.fault_timed_inside_ns
	ELSE p.mean_ns + p.blocked_mean_ns END AS mean_ns
FROM main.fault f JOIN temp.calibrated c JOIN temp.fault_price p ON p.class = f.class
GROUP BY f.slice, f.pid, f.class, f.allocated_stack, f.touched_stack
"""
# Calls: all that happened inside, the probe's own part taken out, faults and mapping calls included.
CALLS: Final = """
SELECT c.call, SUM(c.calls) AS count, SUM(c.timed_calls) AS timed,
	CASE WHEN SUM(c.timed_calls) > 0
	THEN 1.0 * SUM(c.cpu_ns) / SUM(c.timed_calls) - COALESCE(p.inside_ns, 0)
	ELSE k.malloc_ns END AS mean_ns
FROM main.call c JOIN temp.calibrated k LEFT JOIN temp.probe_price p ON p.probe = c.call
GROUP BY c.slice, c.pid, c.call, c.stack_id
"""


# Single calls by the kernel's buckets, each at the middle of its bounds; below 32 ns all are one bucket.
BUCKETS: Final = """
SELECT call, SUM(calls) AS count, SUM(calls) AS timed,
	CASE WHEN low_ns = 0 THEN 0.5 * high_ns WHEN high_ns IS NULL THEN low_ns
		ELSE (low_ns + high_ns) / 2.0 END AS mean_ns
FROM latency GROUP BY call, low_ns
"""


def fault_latency(
    rec: Recording, *, ax: Axes | None = None, theme: str = "light", size: tuple[float, float] = SIZE
) -> Figure:
    """How long a fault takes, by class: x seconds (logarithmic), y faults.

    A recording has no single faults but sums, so each fault counts at the mean of those timed with
    it: of the same slice, class and code. Time asleep is in it, the probes' own is not. Faults that
    none was timed with count at their class's mean; the subtitle says how many.
    theme: 'light' or 'dark'; size: inches of a new figure; ax: draw there instead.
    """
    paper = sheet(ax, theme, size)
    rec.views.make("fault_price")
    rows = rec.query(FAULTS)
    colours = {str(name): toll_colour(str(toll)) for name, toll in rec.classes["toll"].items()}
    with understanding(rec.path):
        _histogram(paper, rows, "class", "faults", colours)
    return paper.done()


def malloc_latency(
    rec: Recording, *, ax: Axes | None = None, theme: str = "light", size: tuple[float, float] = SIZE
) -> Figure:
    """How long a call of the allocator takes, by function: x seconds (logarithmic), y calls.

    Every single call is in it, as the kernel counted them: wall time between the probes, less their
    own, in buckets of a quarter of a power of two. Recordings of earlier versions have no single calls
    but sums: there each call counts at the mean processor time of those of the same slice, function and
    call site. theme: 'light' or 'dark'; size: inches; ax: draw there instead.
    """
    paper = sheet(ax, theme, size)
    rec.views.make("fault_price")
    single = bool(rec.query("SELECT 1 FROM latency LIMIT 1").size)
    rows = rec.query(BUCKETS if single else CALLS)
    with understanding(rec.path):
        colours = {name: toll_colour("alloc") for name in rows["call"].unique()}
        _histogram(paper, rows, "call", "calls", colours, single)
    return paper.done()


def _histogram(paper: Sheet, rows: Any, by: str, what: str, colours: dict[str, str], single: bool = False) -> None:
    """Steps, one over the other, each group's mean in the legend. single: rows are calls by length, not groups."""
    rows = rows[rows["count"] > 0]
    if not len(rows):
        paper.empty(f"No {what} were timed.")
        return
    times = np.maximum(rows["mean_ns"].to_numpy(dtype=float), 1.0) / 1e9
    weights = rows["count"].to_numpy(dtype=float)
    low, high = np.floor(np.log10(times.min()) * BINS) / BINS, np.ceil(np.log10(times.max()) * BINS + 1e-9) / BINS
    edges = 10 ** np.arange(low, max(high, low + 1) + 0.5 / BINS, 1 / BINS)
    groups = rows[by].to_numpy(dtype=object)
    sums = {name: float(weights[groups == name].sum()) for name in dict.fromkeys(groups)}
    means = {name: float((times * weights)[groups == name].sum() / sums[name]) for name in sums}
    ranked = sorted(sums, key=lambda name: -sums[name] * means[name])
    rest = ranked[SHOWN:] if len(ranked) > SHOWN + 1 else []
    named = [([name], name, colours.get(name, OTHER_COLOUR)) for name in ranked if name not in rest]
    named.sort(key=lambda each: -sums[each[1]])
    if rest:
        named.append((rest, f"{len(rest)} others", OTHER_COLOUR))
    top = 0.0
    drawn: Counter[str] = Counter()
    for names, label, colour in named:
        mine = np.isin(groups, names)
        counts, _ = np.histogram(times[mine], edges, weights=weights[mine])
        number = float(weights[mine].sum())
        label += f": {number:,.0f}, {format_time(float((times * weights)[mine].sum()) / number)} each"
        paper.axes.stairs(counts, edges, fill=True, color=colour, alpha=0.35, linewidth=0)
        style = STYLES[drawn[colour] % len(STYLES)]
        drawn[colour] += 1
        paper.axes.stairs(counts, edges, color=colour, label=label, linewidth=1.6, linestyle=style)
        top = max(top, float(counts.max()))
    axes = paper.axes
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(0.7, top * 2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.minorticks_off()
    log_ticks(axes.xaxis)
    time_ticks(axes.xaxis)
    axes.set_xlabel("time of one (s)" if single else "time of one, mean of its group (s)")
    axes.set_ylabel(what)
    axes.grid(color=paper.theme.line, linewidth=0.6)
    paper.title(_finding(ranked, sums, means, what), _single(rows) if single else _what(what, rows))
    paper.legend()


def _finding(ranked: list[str], sums: dict[str, float], means: dict[str, float], what: str) -> str:
    most = ranked[0]
    all_of_it = format_time(sums[most] * means[most])
    text = f"{most}: {format_time(means[most])} each, {all_of_it} in all {sums[most]:,.0f} {what}"
    others = [name for name in ranked[1:] if sums[name] >= 0.01 * sum(sums.values())]
    if others:
        other = max(others, key=lambda name: sums[name])
        text += f"; one {other} costs {format_time(means[other])}"
    return text


def _single(rows: Any) -> str:
    return (
        f"Time of each of {int(rows['count'].sum()):,} calls, the probes' part taken out; what takes less than that"
        " varies by, some tens of nanoseconds, stands at the left edge"
    )


def _what(what: str, rows: Any) -> str:
    text = f"Time of one of the {what}: means over {len(rows):,} groups of one slice and code, not single {what}"
    missing = int(rows["count"][rows["timed"] == 0].sum())
    if missing:
        text += f"; {missing:,} of {int(rows['count'].sum()):,} without a timed one beside them are at the overall mean"
    return text
