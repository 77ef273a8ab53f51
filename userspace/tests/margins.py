# SPDX-License-Identifier: GPL-2.0
"""margins.py [RUNS]: how near do the bounds lie that the tests assert, and how much does what is compared vary?

What of `make test` pytest runs, so many times (default: 3), and then, nearest first, comparisons that passed and
whose bound was less than SURE standard deviations away. Of three runs the deviation is known badly: a bound that fails
once in a few hundred runs is among them more often than not, and so are numbers that never reach theirs by chance (a
part of a whole): the reader tells these apart. Not seen are comparisons with zero, which has no distance as a factor,
those within all() or a list, and those of modules that are no tests.

Collected by suite.py where MEMTOLL_MARGINS names a directory. Exit status: 0 printed, 1 nothing was collected, 2 usage.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from _pytest.assertion import rewrite

MARGINS: Final = "MEMTOLL_MARGINS"
# Without it pytest does not look at what passes.
ADDOPTS: Final = "-o enable_assertion_pass_hook=true"
TESTS: Final = Path(__file__).resolve().parent
SURE: Final = 4.0

Place = tuple[str, str]  # a test, and file:line of what it asserts


def directory() -> Path | None:
    name = os.environ.get(MARGINS)
    return Path(name) if name else None


# ---- what is compared ----


def number(value: Any) -> float | None:
    try:
        return None if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError):
        return None


def of_order(less: Any, more: Any) -> float | None:
    """By which factor, as a logarithm; only of what is above zero."""
    low, high = number(less), number(more)
    return math.log(high / low) if low is not None and high is not None and 0 < low <= high else None


def of_approximation(left: Any, right: Any) -> float | None:
    """The part of the tolerance that is left."""
    value, about = (right, left) if hasattr(left, "tolerance") else (left, right)
    tolerance, expected, found = (number(getattr(about, "tolerance", None)), None, number(value))
    if tolerance:
        expected = number(about.expected)
    if not tolerance or expected is None or found is None or found == expected:
        return None
    return 1 - abs(found - expected) / tolerance


def margin(operator: str, left: Any, right: Any) -> float | None:
    if operator in ("<", "<="):
        return of_order(left, right)
    if operator in (">", ">="):
        return of_order(right, left)
    return of_approximation(left, right) if operator == "==" else None


class Collector:
    """A plugin of pytest: of each comparison of an assertion that passed, what was left of its bound."""

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.file = (place / f"{os.getpid()}.jsonl").open("a", buffering=1)
        # pytest's hook for what passed is given the last comparison of a chain alone.
        self.compared = rewrite._call_reprcompare
        vars(rewrite)["_call_reprcompare"] = self.note

    def note(
        self, operators: Sequence[str], results: Sequence[bool], texts: Sequence[str], values: Sequence[object]
    ) -> str:
        for operator, left, right in zip(operators, values, values[1:]):
            found = margin(operator, left, right)
            if found is not None and found >= 0:
                self.keep(found, f"{left} {operator} {right}", sys._getframe(1))
        return self.compared(operators, results, texts, values)

    def keep(self, found: float, text: str, frame: FrameType) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        if test.endswith(" (call)"):
            place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            self.file.write(json.dumps([test.removesuffix(" (call)").partition("@")[0], place, found, text]) + "\n")

    def pytest_assertion_pass(self, item: pytest.Item, lineno: int, orig: str, expl: str) -> None:
        """That there is one makes pytest explain what passes."""


# ---- what that comes to ----


@dataclass(frozen=True)
class Near:
    place: Place
    distance: float  # in standard deviations
    nearest: str


def read(place: Path) -> Iterator[tuple[Place, float, str]]:
    for file in sorted(place.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            test, at, found, text = json.loads(line)
            yield (test, at), found, text


def nearest(place: Path) -> dict[Place, tuple[float, str]]:
    """Of one run: of what is compared at a place more than once, what was nearest."""
    found: dict[Place, tuple[float, str]] = {}
    for key, left, text in read(place):
        if key not in found or left < found[key][0]:
            found[key] = (left, text)
    return found


def judged(runs: Sequence[Path]) -> list[Near]:
    together: dict[Place, list[tuple[float, str]]] = defaultdict(list)
    for run in runs:
        for key, value in nearest(run).items():
            together[key].append(value)
    near = []
    for key, values in together.items():
        margins = [value for value, _ in values]
        spread = statistics.stdev(margins) if len(margins) > 1 else 0.0
        if spread > 0 and statistics.mean(margins) < SURE * spread:
            near.append(Near(key, statistics.mean(margins) / spread, min(values)[1]))
    return sorted(near, key=lambda one: one.distance)


def short(test: str) -> str:
    file, _, name = test.partition("::")
    return f"{Path(file).name}::{name}"


def main(words: list[str]) -> int:
    count = int(words[0]) if words else 3
    if count < 2:
        print("margins: what varies shows in two runs at least", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="memtoll-margins-") as name:
        runs = [Path(name) / str(number) for number in range(count)]
        failed = 0
        for run in runs:
            env = {**os.environ, MARGINS: str(run), "PYTEST_ADDOPTS": ADDOPTS}
            failed += subprocess.run([TESTS / "run", "test"], env=env, check=False).returncode != 0
        print(f"\nbounds nearer than {SURE:g} standard deviations of {count} runs, {failed} of which failed:")
        for one in judged(runs):
            print(f"{one.distance:4.1f}  {one.place[1]}  {short(one.place[0])}: {one.nearest}")
        return 0 if all(any(read(run)) for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
