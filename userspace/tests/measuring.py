# SPDX-License-Identifier: GPL-2.0
"""How a measurement is made and judged, by the benchmark and by the tests that ask for a quiet machine.

Runs that are compared lie side by side in time: bare, traced, bare, traced ... A machine that becomes slower meanwhile
does so for all of them. Each round gives a figure, a ratio or a difference; what counts is their median, with an
interval by order statistics, which assumes nothing of how they are spread. The rounds go on until the interval lies
on one side of the bound, or the time is over: then it is undecided.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")
U = TypeVar("U")

# Probability that the median lies outside of an interval, on one side: of reported intervals, and of those by which a
# test fails. The latter is smaller, as it is tested again after each round and a failure blames the product.
REPORTED: Final = 0.025
SURE: Final = 0.005
# With fewer values even the smallest and the greatest are no such interval of their median.
FEWEST: Final = math.ceil(-math.log2(REPORTED))
FEWEST_TO_FAIL: Final = math.ceil(-math.log2(SURE))
# A test fails only if other work, kernel threads included, keeps at most this many processors busy: it takes not only
# time, but caches, memory bandwidth and, where two processors share a core, speed.
OTHERS: Final = 0.2


@dataclass(frozen=True)
class Interval:
    low: float
    middle: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.middle:.4g} ({self.low:.4g} to {self.high:.4g}; {self.count} rounds)"


def median_bounds(values: Sequence[float], outside: float = REPORTED) -> tuple[float, float]:
    """The median's interval by order statistics; the least and the greatest where there are too few for one."""
    ordered, count = sorted(values), len(values)
    below, rank = 0.0, 0
    while rank < count // 2 and below + math.comb(count, rank) / 2**count <= outside:
        below += math.comb(count, rank) / 2**count
        rank += 1
    return ordered[max(rank - 1, 0)], ordered[-max(rank, 1)]


def interval(values: Sequence[float], outside: float = REPORTED) -> Interval:
    low, high = median_bounds(values, outside)
    return Interval(low, statistics.median(values), high, len(values))


class Answer(Enum):
    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Bound:
    """What a figure must be: the median itself, not each round's."""

    least: float = -math.inf
    most: float = math.inf

    def answer(self, within: Interval) -> Answer:
        if self.least <= within.low and within.high <= self.most:
            return Answer.HOLDS
        return Answer.FAILS if within.high < self.least or within.low > self.most else Answer.UNDECIDED

    def __str__(self) -> str:
        if self.least == self.most:
            return f"to be {self.most:g}"
        least = "" if self.least == -math.inf else f"at least {self.least:g}"
        most = "" if self.most == math.inf else f"at most {self.most:g}"
        return " and ".join(filter(None, (least, most)))


@dataclass(frozen=True)
class Control(Bound):
    """Of the bare run against itself: where there is a difference the machine made it, and nothing can be told."""

    def answer(self, within: Interval) -> Answer:
        there = within.low <= self.most and self.least <= within.high
        return Answer.HOLDS if there else Answer.UNDECIDED


def control(no_difference: float) -> Control:
    return Control(no_difference, no_difference)


def decide(bound: Bound, values: Sequence[float]) -> Answer:
    """It holds by an interval of 95 %; it fails by one of 99 %, and not before there are enough rounds for that."""
    if len(values) >= FEWEST and bound.answer(interval(values)) is Answer.HOLDS:
        return Answer.HOLDS
    if len(values) >= FEWEST_TO_FAIL and bound.answer(interval(values, SURE)) is Answer.FAILS:
        return Answer.FAILS
    return Answer.UNDECIDED


def decide_all(bounds: Mapping[str, Bound], values: Mapping[str, Sequence[float]]) -> Answer:
    """All have to hold. One fails alone, but not where a control is off."""
    answers = {name: decide(bound, values[name]) for name, bound in bounds.items()}
    if all(answer is Answer.HOLDS for answer in answers.values()):
        return Answer.HOLDS
    quiet = all(answers[name] is Answer.HOLDS for name, bound in bounds.items() if isinstance(bound, Control))
    return Answer.FAILS if quiet and Answer.FAILS in answers.values() else Answer.UNDECIDED


def between(
    bare: Callable[[], T], turns: Sequence[Callable[[], U]], mean: Callable[[T, T], T]
) -> Iterator[tuple[T, list[U]]]:
    """Rounds without end: the mean of the bare runs before and after, and what the turns between them gave.

    Each turn comes first as often as last. A turn that is bare, too, is the control.
    """
    before = bare()
    for number in itertools.count():
        given = {at: turns[at]() for at in list(range(len(turns)))[:: -1 if number % 2 else 1]}
        after = bare()
        yield mean(before, after), [given[at] for at in range(len(turns))]
        before = after


def middle(one: float, other: float) -> float:
    """The geometric mean: of three noisy runs, the one against the mean of two, the ratio's median is 1."""
    return math.sqrt(one * other)


# ---- who else is at work ----


def _ticks(fields: list[str]) -> int:
    """User and system time of a process and of its children that have ended: fields 14 to 17 of its stat."""
    return sum(map(int, fields[11:15]))


def own_ticks() -> int:
    """CPU time of this process and of all that it has started, those that have ended among them."""
    found: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[int(entry.name)] = (int(fields[1]), _ticks(fields))
    ours, new = set(), {os.getpid()}
    while new:
        ours |= new
        new = {pid for pid, (parent, _) in found.items() if parent in new}
    return sum(found[pid][1] for pid in ours if pid in found)


def busy_ticks() -> int:
    """Of all processors: user, nice, system, and what the host took away (steal)."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    return sum(fields[:3]) + (fields[7] if len(fields) > 7 else 0)


class Others:
    """How many processors others have kept busy since this was made."""

    def __init__(self) -> None:
        self.began, self.busy, self.own = time.monotonic(), busy_ticks(), own_ticks()

    def processors(self) -> float:
        ticks = (busy_ticks() - self.busy) - (own_ticks() - self.own)
        seconds = ticks / os.sysconf("SC_CLK_TCK")
        return max(0.0, seconds / max(time.monotonic() - self.began, 0.01))


# ---- a test ----


def figures(bounds: Mapping[str, Bound], values: Mapping[str, Sequence[float]]) -> str:
    return "; ".join(
        f"{name} {interval(values[name])}, wanted {bound}" if values[name] else f"{name}: none, wanted {bound}"
        for name, bound in bounds.items()
    )


def settle(
    once: Callable[[], Mapping[str, float]],
    bounds: Mapping[str, Bound],
    seconds: float,
    others: Callable[[], float] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Interval]:
    """Rounds until all bounds hold, or one does not, or the time is over. once: a round's figures, by name.

    Where others are at work nothing fails: that it is they is then as likely.
    """
    values: dict[str, list[float]] = {name: [] for name in bounds}
    others = others or Others().processors
    end = clock() + seconds
    while True:
        for name, value in once().items():
            values[name].append(value)
        answer, busy = decide_all(bounds, values), others()
        said = f"{figures(bounds, values)}; others kept {busy:.2f} processors busy"
        if answer is Answer.HOLDS:
            print(said)
            return {name: interval(values[name]) for name in bounds}
        if answer is Answer.FAILS and busy <= OTHERS:
            raise AssertionError(said)
        if clock() >= end:
            # Here, as the benchmark does without pytest.
            from suite import undecided

            undecided(f"{said}; after {seconds:g} s" + ("; it would fail" if answer is Answer.FAILS else ""))
