# SPDX-License-Identifier: GPL-2.0
"""The overhead budget by a program's own count and clock: it is kept, and what is seen of a part is true of the whole.

What does not depend on the machine's mood is in test_e2e_budget.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import (
    Program,
    Recording,
    finish,
    load,
    memtoll,
    query,
    record,
    start_record,
    wait_attached,
    wait_until,
    workload,
)
from measuring import Bound, between, control, middle, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]

LIMIT = 5.0

# Some work and a pair of malloc and free, and now and then a block that libc clears: two million pairs a second or
# more, half of that where neighbours are busy.
BUSY = ("--work", "100", "--every", "3000", "--size", str(10 << 20))


class Names:
    """A path for each recording, none twice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0

    def next(self) -> Path:
        self.number += 1
        return self.folder / f"{self.number}.memtoll"


@pytest.fixture
def names(tmp_path: Path) -> Names:
    return Names(tmp_path)


def call_ns(program: Program, since_ns: int, until_ns: int) -> float:
    """CPU time of a call, by the program's pace lines of a time."""
    lines = [line for line in program.lines if "pace" in line and since_ns <= line["time_ns"] <= until_ns]
    assert len(lines) >= 2 and lines[-1]["calls"] > lines[0]["calls"], "no two pace lines lie in that time"
    return float(lines[-1]["cpu_ns"] - lines[0]["cpu_ns"]) / float(lines[-1]["calls"] - lines[0]["calls"])


def alone(program: Program, seconds: float) -> float:
    """Of a call, for so long from now on, nobody looking."""
    begun, first = time.monotonic_ns(), len(program.lines)

    def there() -> bool:
        return len(program.lines) >= first + 2 and program.lines[-1]["time_ns"] > begun + seconds * 1e9

    wait_until(there, "pace lines", 60)
    return call_ns(program, begun, time.monotonic_ns())


def test_two_million_pairs_stay_within_the_budget(names: Names) -> None:
    """The limit plus one percentage point, of all CPU time from the first probe to the last."""
    overheads: list[dict[str, Any]] = []

    def traced(program: Program) -> float:
        out = names.next()
        tracer = start_record(out, "-p", str(program.pid), "-d", "5s", "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)
        began = time.monotonic_ns()
        result = finish(tracer)
        ended = time.monotonic_ns()
        assert result.status == 0, result
        overheads.append(load(out, result).report["overhead"])
        return call_ns(program, began, ended)

    # A workload ends after two minutes.
    def rounds() -> Generator[Mapping[str, float], None, None]:
        while True:
            with Program(workload("pairs"), "--seconds", "100", "--work", "350") as program:
                begun = time.monotonic()
                bare_run = partial(alone, program, 1)
                for bare, (took, again) in between(bare_run, [partial(traced, program), bare_run], middle):
                    overhead = overheads[-1]
                    yield {
                        "lost, %": 100 * (1 - bare / took),
                        "estimated, less its error, %": overhead["estimated_pct"] - overhead["error_pct"],
                        "error, %": overhead["error_pct"],
                        "bare against bare": again / bare,
                    }
                    if time.monotonic() > begun + 60:
                        break

    with closing(rounds()) as made:
        settle(
            lambda: next(made),
            {
                "lost, %": Bound(most=LIMIT + 1),
                "estimated, less its error, %": Bound(most=LIMIT + 1),
                "error, %": Bound(most=LIMIT),
                "bare against bare": control(1),
            },
            90,
        )


def percents(recording: Recording, figure: str) -> dict[str, float]:
    """The time of malloc and free and that of the program itself are separated by the price of a hit alone."""
    shown: dict[str, float] = {name: 100 * (toll[figure] or 0) for name, toll in recording.report["toll"].items()}
    shown["alloc and compute"] = min(100, shown.pop("alloc") + shown.pop("compute"))
    return shown


FAMILY = {"alloc": "allocator", "compute": "compute", "zero.libc": "zeroing"}
Range = dict[str, tuple[float, float]]


def may_dominate(recording: Recording) -> set[str]:
    """Where nine tenths of the full trace's time are its own probes it names what else may be the first."""
    toll = recording.report["toll"]
    least = max(row["low"] or 0 for row in toll.values())
    return {family for name, family in FAMILY.items() if (toll[name]["high"] or 0) >= least}


def wider(one: tuple[Range, set[str]], other: tuple[Range, set[str]]) -> tuple[Range, set[str]]:
    """The full trace has an error, too: of 500 ns that a hit takes, a few are as much as malloc does."""
    ranges = {name: (min(low, other[0][name][0]), max(high, other[0][name][1])) for name, (low, high) in one[0].items()}
    return ranges, one[1] | other[1]


def test_verdict_and_shares_are_those_of_the_full_trace(names: Names) -> None:
    def full() -> tuple[Range, set[str]]:
        # So many that its start, and the first of its large blocks, is no part of it, as it is none of the other's.
        recording = record(names.next(), command=[workload("pairs"), "--pairs", "2000003", *BUSY])
        assert recording.site("pairs.c", "malloc", "malloc").calls == recording.witness[-1]["pairs"]
        low, high = percents(recording, "low"), percents(recording, "high")
        return {name: (low[name], high[name]) for name in low}, may_dominate(recording)

    def part() -> Recording:
        return record(names.next(), command=[workload("pairs"), "--seconds", "4", *BUSY], exact=False)

    made = between(full, [part], wider)

    def once() -> Mapping[str, float]:
        (ranges, first), (seen,) = next(made)
        truth, shares = seen.witness[-1], percents(seen, "share")
        beyond = {name: max(low - shares[name], shares[name] - high) for name, (low, high) in ranges.items()}
        print(truth, ranges, shares, seen.dominant, first)
        given = {
            "pairs in a second": truth["pairs"] / truth["cpu_ns"] * 1e9,
            "beyond the full trace's bounds, %": max(beyond.values()),
            "another verdict": float(seen.dominant not in first),
            "calloc watched": seen.report["overhead"]["duty_cycle"]["calloc"],
        }
        for call, count in (("malloc", "pairs"), ("calloc", "callocs")):
            rows = [row for row in seen.report["allocations"] if row["call"] == call]
            calls, error = sum(row["calls"] for row in rows), sum(row["calls_error"] for row in rows)
            given[f"{call}: error, of the stated"] = abs(calls - truth[count]) / max(error, 1)
            assert seen.site("pairs.c", call, call).calls > 0.9 * calls
        return given

    settle(
        once,
        {
            "pairs in a second": Bound(least=1e6),
            "beyond the full trace's bounds, %": Bound(most=5),
            "another verdict": Bound(most=0),
            "calloc watched": Bound(least=0.9),
            "malloc: error, of the stated": Bound(most=1),
            "calloc: error, of the stated": Bound(most=1),
        },
        80,
    )


def test_clearing_of_a_calloc_that_comes_and_goes(names: Names) -> None:
    """Its memset is reached by a jump: outside of the windows samples alone tell that it is calloc's."""

    def once() -> Mapping[str, float]:
        command: list[str | Path] = [workload("clears"), "4", str(1 << 20), "100"]
        recording = record(names.next(), command=command, exact=False)
        said = recording.witness[-1]
        rows = [row for row in recording.report["allocations"] if row["call"] == "calloc"]
        large = max(rows, key=lambda row: int(row["bytes"]))
        cleared, outside = recording.toll("zero.libc", "time_s"), recording.toll("zero.app", "time_s")
        return {
            "calloc watched": recording.report["overhead"]["duty_cycle"]["calloc"],
            # The program's own clock has the probes of its windows.
            "cleared, of its own clock's": cleared / (said["calloc_ns"] / 1e9),
            "told as another's": outside / max(cleared, 1e-9),
            "calls: error, of the stated": abs(large["calls"] - said["calls"]) / max(large["calls_error"], 1),
        }

    settle(
        once,
        {
            "calloc watched": Bound(most=0.5),
            "cleared, of its own clock's": Bound(0.88, 1.12),
            "told as another's": Bound(most=0.02),
            "calls: error, of the stated": Bound(most=1),
        },
        50,
    )


def test_price_does_not_double_with_sixteen_threads(names: Names) -> None:
    """Sixteen threads on few cores share the counters of each site: CPU time of a counted pair."""

    def pair_ns(threads: int) -> float:
        pairs = ["--pairs", str(200_000 // threads), "--work", "10", "--threads", str(threads)]
        traced = record(names.next(), "--probes", "alloc", command=[workload("pairs"), *pairs]).witness[-1]
        return float(traced["cpu_ns"]) / float(traced["pairs"])

    made = between(partial(pair_ns, 1), [partial(pair_ns, 16), partial(pair_ns, 1)], middle)

    def once() -> Mapping[str, float]:
        one, (sixteen, again) = next(made)
        return {"sixteen threads, times one": sixteen / one, "one against one": again / one}

    settle(once, {"sixteen threads, times one": Bound(most=2), "one against one": control(1)}, 50)


def test_doctor_predicts() -> None:
    """Rates of a running program, per second of its own CPU time, against its own count; and what they would cost."""
    large = ("--every", "1000", "--size", "4096")
    with Program(workload("pairs"), "--seconds", "100", "--work", "2000", *large) as program:

        def once() -> Mapping[str, float]:
            pairs = 1e9 / alone(program, 0.5)
            result = memtoll("doctor", "--json", "-p", str(program.pid))
            assert result.status == 0, result
            rows = {row["probes"]: row for row in json.loads(result.stdout)["load"]}
            pair, calloc = rows["malloc, free"], rows["calloc"]
            return {
                # By the price of a hit, which is half of a window's time and more, in a moment of a tenth of a second.
                "malloc and free, times its own count": pair["hits_per_s"] / pairs,
                "calloc, times its own count": calloc["hits_per_s"] / (pairs / 1000),
                "cost, %": pair["cost_pct"],
                "cost, times calloc's": pair["cost_pct"] / max(calloc["cost_pct"], 1e-9),
            }

        settle(
            once,
            {
                "malloc and free, times its own count": Bound(1, 10),
                "calloc, times its own count": Bound(0.5, 1.5),
                "cost, %": Bound(20, 90),
                "cost, times calloc's": Bound(100, 1e6),
            },
            35,
        )


def test_tracer_keeps_up_with_ten_thousand_new_sites(names: Names) -> None:
    """Each with a stack of its own, all within a moment: none is left without its place."""

    def once() -> Mapping[str, float]:
        path = names.next()
        command: list[str | Path] = [workload("sites"), "10007", "1", "--size", "65536"]
        assert memtoll("record", "-o", path, "--overhead-limit", "none", "--", *command).status == 0
        # Without the report, which is 124 MB: a round of it took longer than the measurement.
        ((sites,),) = query(path, "SELECT COUNT(DISTINCT stack_id) FROM call WHERE call = 'malloc'")
        ((lost,),) = query(path, "SELECT COALESCE(SUM(count), 0) FROM loss WHERE name = 'call_sites'")
        return {"sites": sites, "calls without their place": lost}

    settle(once, {"sites": Bound(least=10007), "calls without their place": Bound(most=0)}, 70)


def test_tracer_costs_little(names: Names) -> None:
    """At default rates, while it records: less than a twentieth of a core, each second."""
    with Program(workload("pairs"), "--seconds", "60", "--work", "350", "--every", "3000") as program:
        tracer = start_record(names.next(), "-p", str(program.pid), "-d", "50s", "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)

        def cpu_ns() -> int:
            # Of all its threads: its CPU clock (clock_getcpuclockid(3)).
            return time.clock_gettime_ns((~tracer.pid << 3) | 2)

        def once() -> Mapping[str, float]:
            used, begun = cpu_ns(), time.monotonic_ns()
            time.sleep(1)  # the measured interval itself
            assert tracer.poll() is None
            return {"part of a core": (cpu_ns() - used) / (time.monotonic_ns() - begun)}

        settle(once, {"part of a core": Bound(most=0.05)}, 30)


def test_speed_is_restored(names: Names) -> None:
    """The hottest target there is: one left breakpoint would make it fifty times slower, for good.

    A fresh program each time, as what is left would be there before the next recording, too.
    """

    def once() -> Mapping[str, float]:
        with Program(workload("churn"), "0", "--seconds", "60") as program:
            alone(program, 0.3)
            before, again = alone(program, 0.5), alone(program, 0.5)
            record(names.next(), "-p", str(program.pid), "-d", "1s")
            after = alone(program, 0.5)
            return {"a call, times before": after / middle(before, again), "bare against bare": again / before}

    settle(once, {"a call, times before": Bound(most=1.1), "bare against bare": control(1)}, 50)
