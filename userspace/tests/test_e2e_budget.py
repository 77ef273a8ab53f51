# SPDX-License-Identifier: GPL-2.0
"""The overhead budget on programs that run: it is kept, what it costs in knowledge is said, and nothing is left."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness import (
    Program,
    Recording,
    bpf_objects,
    changed_text,
    finish,
    kernel_objects,
    load,
    memtoll,
    record,
    start_record,
    uprobe_pages,
    wait_attached,
    wait_until,
    workload,
)

pytestmark = [pytest.mark.root, pytest.mark.measure]

LIMIT = 5.0

# Some work and a pair of malloc and free, and now and then a block that libc clears: two million pairs a second or
# more, half of that where neighbours are busy.
BUSY = ("--work", "100", "--every", "3000", "--size", str(10 << 20))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "budget.memtoll"


def paces(program: Program, since_ns: int, until_ns: int) -> list[tuple[float, float]]:
    """CPU time and calls between the pace lines of a time."""
    lines = [line for line in program.lines if "pace" in line and since_ns <= line["time_ns"] <= until_ns]
    return [(b["cpu_ns"] - a["cpu_ns"], b["calls"] - a["calls"]) for a, b in zip(lines, lines[1:])]


def lost(taken: list[tuple[float, float]]) -> float:
    """How much of its CPU time a program lost to what came and went: all of it against the usual pace.

    Most pace lines lie outside of every window, so that their median is the program's own speed at that very time.
    """
    usual = sorted(cpu / calls for cpu, calls in taken if calls)[len(taken) // 2]
    return 1 - usual * sum(calls for _, calls in taken) / sum(cpu for cpu, _ in taken)


def leftovers(program: Program) -> Any:
    return changed_text(program.pid) or uprobe_pages(program.pid) > 1


def test_clearing_of_a_calloc_that_comes_and_goes(out: Path) -> None:
    """Its memset is reached by a jump: outside of the windows samples alone tell that it is calloc's."""
    recording = record(out, command=[workload("clears"), "6", str(1 << 20), "100"], exact=False)
    said = recording.witness[-1]
    assert recording.report["overhead"]["duty_cycle"]["calloc"] < 0.5, recording.report["overhead"]
    cleared, outside = recording.toll("zero.libc", "time_s"), recording.toll("zero.app", "time_s")
    print(said, cleared, outside)
    assert recording.dominant == "zeroing"
    assert outside < 0.02 * cleared
    # Samples are 99 a second: three standard errors of those. The program's own clock has the probes of its windows.
    assert cleared == pytest.approx(said["calloc_ns"] / 1e9, rel=0.12)
    site = recording.report["sites"][0]
    assert (site["toll"], site["call"]) == ("zero.libc", "calloc")
    made = next(row for row in recording.report["allocations"] if row["call"] == "calloc" and row["bytes"] > 1 << 30)
    assert abs(made["calls"] - said["calls"]) <= made["calls_error"], made


def test_two_million_pairs_stay_within_the_budget(out: Path) -> None:
    """The limit plus one percentage point, by the program's own count and clock; and afterwards nothing is left."""
    with Program(workload("pairs"), "--seconds", "60", "--work", "350") as program:
        wait_until(lambda: len(program.lines) > 30, "thirty pace lines", 20)
        noise = lost(paces(program, 0, time.monotonic_ns()))
        tracer = start_record(out, "-p", str(program.pid), "-d", "10s", "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)
        began = time.monotonic_ns()
        held = bpf_objects(tracer.pid)
        result = finish(tracer)
        ended = time.monotonic_ns()
        assert result.status == 0, result
        measured = lost(paces(program, began, ended))
        wait_until(lambda: not leftovers(program), "the breakpoints to go")
        wait_until(lambda: not held["link"] & kernel_objects("link"), "the links to go")
        wait_until(lambda: not held["prog"] & kernel_objects("prog"), "the programs to go")
    recording = load(out, result)
    overhead = recording.report["overhead"]
    print(f"lost {100 * measured:.1f} %, noise {100 * noise:.1f} %, estimated {overhead['estimated_pct']:.1f} %")
    assert overhead["limit_pct"] == LIMIT
    assert overhead["estimated_pct"] - overhead["error_pct"] <= LIMIT + 1
    assert overhead["error_pct"] < LIMIT
    # The median of a busy machine's pace lies above or below its mean: as much as without us.
    assert 100 * measured <= LIMIT + 1 + 100 * max(0, noise)
    assert 0 < overhead["duty_cycle"]["malloc"] < 0.5
    assert overhead["duty_cycle"]["malloc"] == pytest.approx(overhead["duty_cycle"]["free"])
    rows = [row for row in recording.report["allocations"] if row["call"] in ("malloc", "free")]
    assert rows
    for row in rows:
        assert row["estimated"]
        assert row["calls_error"] > 0
        assert row["freed"] is None and row["live_bytes"] is None
    assert any("malloc: watched" in note for note in recording.report["notes"])


def shares(recording: Recording, figure: str) -> dict[str, float]:
    return {name: 100 * (toll[figure] or 0) for name, toll in recording.report["toll"].items()}


def test_verdict_and_shares_are_those_of_the_full_trace(out: Path) -> None:
    full = record(out, command=[workload("pairs"), "--pairs", "400003", *BUSY])
    part = record(out.with_name("part.memtoll"), command=[workload("pairs"), "--seconds", "8", *BUSY], exact=False)
    busy = part.witness[-1]
    assert busy["pairs"] > 1e6 * busy["cpu_ns"] / 1e9, "too few pairs a second for a proof"
    again = record(out.with_name("again.memtoll"), command=[workload("pairs"), "--pairs", "400003", *BUSY])
    # The full trace has an error, too: of 500 ns that a hit takes, a few are as much as malloc does. And memory is as
    # fast as the neighbours leave it.
    low, high = (
        {name: pick(shares(full, figure)[name], shares(again, figure)[name]) for name in shares(full, figure)}
        for pick, figure in ((min, "low"), (max, "high"))
    )
    estimated = shares(part, "share")
    print(low, high, estimated, sep="\n")
    # Where nine tenths of the full trace's time are its own probes it names what else may be the first.
    first = {"alloc": "allocator", "compute": "compute", "zero.libc": "zeroing"}
    least = max(low.values())
    assert part.dominant in {first[name] for name in first if high[name] >= least}
    # What malloc and free take and what the program computes is told apart by the price of a hit alone.
    for shown in (low, high, estimated):
        shown["alloc and compute"] = min(100, shown.pop("alloc") + shown.pop("compute"))
    for name in low:
        assert low[name] - 5 <= estimated[name] <= high[name] + 5, (name, low, high, estimated)
    site = full.site("pairs.c", "malloc", "malloc")
    assert site.calls == full.witness[-1]["pairs"]
    # What was estimated keeps its bounds; calloc, watched nearly all the time, is nearly exact.
    truth = part.witness[-1]
    for call, marker, count in (("malloc", "malloc", "pairs"), ("calloc", "calloc", "callocs")):
        rows = [row for row in part.report["allocations"] if row["call"] == call]
        calls, error = sum(row["calls"] for row in rows), sum(row["calls_error"] for row in rows)
        assert abs(calls - truth[count]) <= error, (call, calls, error, truth)
        assert part.site("pairs.c", marker, call).calls > 0.9 * calls
    assert part.report["overhead"]["duty_cycle"]["calloc"] > 0.9


def test_what_costs_little_is_watched_all_the_time(out: Path) -> None:
    """By default, and so its counts are exact."""
    recording = record(out, command=[workload("calloc_loop"), str(10 << 20), "211"], exact=False)
    assert recording.report["overhead"]["limit_pct"] == LIMIT
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == 211
    assert recording.report["overhead"]["duty_cycle"]["calloc"] == 1
    assert not any(row["estimated"] for row in recording.report["allocations"])


def test_probes_come_back(out: Path) -> None:
    """A program that stops allocating is watched all the time again."""
    with Program(workload("pairs"), "--seconds", "9", "--calm", "6", "--work", "350", "--wait") as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)
        program.go()
        program.last()
        result = finish(tracer)
    recording = load(out, result)
    last = recording.query("SELECT MAX(slice) FROM slice")[0][0]
    missed = [row[0] for row in recording.query("SELECT DISTINCT slice FROM watch WHERE call = 'malloc'")]
    assert missed, "it was never over the budget"
    assert max(missed) < last - 1, (missed, last)


def test_zero_means_tracepoints_only(out: Path) -> None:
    with Program(workload("pairs"), "--seconds", "30", "--work", "350") as program:
        tracer = start_record(out, "-p", str(program.pid), "-d", "1s", "--overhead-limit", "0")
        wait_until(lambda: bpf_objects(tracer.pid)["link"], "the links")
        while tracer.poll() is None:
            assert changed_text(program.pid) == []
            time.sleep(0.05)
        result = finish(tracer)
    recording = load(out, result)
    assert recording.report["overhead"]["limit_pct"] == 0
    assert recording.report["allocations"] == []
    assert "alloc" in recording.report["not_captured"]


def hit_price(out: Path, threads: int) -> float:
    """CPU time that a counted pair costs, by the program's own clock: probed less bare, per call."""
    pairs = 400_000
    command = [workload("pairs"), "--pairs", str(pairs // threads), "--work", "10", "--threads", str(threads)]
    traced = record(out.with_name(f"{out.name}-{threads}.memtoll"), "--probes", "alloc", command=command).witness[-1]
    return float(traced["cpu_ns"]) / traced["pairs"]


def test_price_does_not_double_with_sixteen_threads(out: Path) -> None:
    """Sixteen threads on few cores share the counters of each site. Best of interleaved runs."""
    runs = [(hit_price(out.with_name(f"a{i}"), 1), hit_price(out.with_name(f"b{i}"), 16)) for i in range(3)]
    one, sixteen = min(run[0] for run in runs), min(run[1] for run in runs)
    print(f"a pair: {one:.0f} ns with one thread, {sixteen:.0f} ns with sixteen")
    assert sixteen < 2 * one


def test_doctor_predicts(out: Path) -> None:
    """Rates of a running program, per second of its own CPU time, against its own count; and what they would cost."""
    with Program(
        workload("pairs"), "--seconds", "60", "--work", "2000", "--every", "1000", "--size", "4096"
    ) as program:
        wait_until(lambda: len(program.lines) > 10, "ten pace lines", 20)
        taken = paces(program, 0, time.monotonic_ns())
        # The median of three moments: in each the price is that of its own calibration.
        moments = []
        for _ in range(3):
            result = memtoll("doctor", "--json", "-p", str(program.pid))
            assert result.status == 0, result
            moments.append({row["probes"]: row for row in json.loads(result.stdout)["load"]})
        program.beats()
        assert changed_text(program.pid) == []
    load = sorted(moments, key=lambda moment: float(moment["malloc, free"]["hits_per_s"]))[1]
    pairs = sum(calls for _, calls in taken) / sum(cpu for cpu, _ in taken) * 1e9
    # By the price of a hit, which is half of a window's time and more, in a moment of a tenth of a second.
    assert pairs < load["malloc, free"]["hits_per_s"] < 2 * 5 * pairs
    assert load["calloc"]["hits_per_s"] == pytest.approx(pairs / 1000, rel=0.5)
    assert load["malloc, free"]["cost_pct"] > 100 * load["calloc"]["cost_pct"] > 0
    assert 20 < load["malloc, free"]["cost_pct"] < 90
    text = memtoll("doctor").stdout
    assert "What probes would cost" not in text


def resident_kib(pid: int) -> int:
    """What a process holds of memory; what is mapped twice, as libbpf maps a ring buffer, counts once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (ProcessLookupError, FileNotFoundError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def test_tracer_is_small(out: Path) -> None:
    """Ten thousand call sites, each with a stack of its own. Of its size 16 MiB are the ring buffer."""
    tracer = start_record(out, "-d", "60s", "--", workload("sites"), "10007", "1", "--size", "65536")
    sizes = []
    while tracer.poll() is None:
        sizes.append(resident_kib(tracer.pid))
        time.sleep(0.02)
    recording = load(out, finish(tracer))
    print(f"tracer: {max(sizes) / 1024:.0f} MiB, seen {len(sizes)} times")
    sites = {row[0] for row in recording.query("SELECT DISTINCT stack_id FROM call WHERE call = 'malloc'")}
    losses = recording.report["losses"]
    assert (losses["calls_full"], losses["call_sites"]) == (0, 0)
    assert len(sites) >= 10007 and recording.report["calls"]["malloc"] >= 10007
    assert recording.report["losses"]["stacks_full"] == 0
    assert len(sizes) > 50 and 30 < max(sizes) / 1024 < 64


def cpu_seconds(pid: int) -> float:
    """Of all its threads, user and system, in hundredths."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_tracer_costs_little(out: Path) -> None:
    """At default rates, while it records: less than a twentieth of a core."""
    with Program(workload("pairs"), "--seconds", "60", "--work", "350", "--every", "3000") as program:
        tracer = start_record(out, "-p", str(program.pid), "-d", "14s", "--overhead-limit", "5%")
        wait_attached(tracer, program.pid)
        begun, before = program.lines[-1]["time_ns"], cpu_seconds(tracer.pid)
        wait_until(lambda: program.lines[-1]["time_ns"] > begun + 10e9, "ten seconds", 30)
        used, seconds = cpu_seconds(tracer.pid) - before, (program.lines[-1]["time_ns"] - begun) / 1e9
        assert tracer.poll() is None
        assert finish(tracer).status == 0
    print(f"tracer: {100 * used / seconds:.1f} % of a core")
    assert used / seconds < 0.05
