# SPDX-License-Identifier: GPL-2.0
"""Swap (casebook 4): which block goes through it, at which line, and what stalls. Witness: /proc/vmstat.

Makes a swap file and a memory cgroup of its own, and takes both down again, whatever happens. Swap that the
machine had before stays as it was; the limit of the cgroup alone makes pages move.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    PAGE,
    Program,
    Recording,
    assert_refused,
    changed_text,
    finish,
    load,
    memtoll,
    record,
    site_line,
    start_record,
    wait_attached,
    workload,
)
from swapping import LIMIT, in_cgroup, memory_with_swap, vmstat

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def small_memory() -> Iterator[Path]:
    """A cgroup whose processes have 80 MiB and swap."""
    with memory_with_swap() as cgroup:
        yield cgroup


def pagez(out: Path, cgroup: Path, *words: int | str) -> tuple[Recording, dict[str, int]]:
    """Record pagez in the cgroup, and what /proc/vmstat counted meanwhile."""
    before = vmstat()
    recording = record(out, command=in_cgroup(cgroup, workload("pagez"), *map(str, words)))
    after = vmstat()
    return recording, {name: after[name] - before[name] for name in ("pswpin", "pswpout", "pgmajfault")}


def frames(recording: Recording, toll: str, owner: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(site, frame) for site in recording.report["sites"] if site["toll"] == toll for frame in site[owner]]


def pages_at(recording: Recording, toll: str, owner: str, marker: str) -> float:
    """Pages of a toll whose owner's stack goes through a marked line of pagez."""
    line = site_line("pagez.c", marker)
    return sum(
        site["bytes"] / PAGE
        for site, frame in frames(recording, toll, owner)
        if Path(frame["file"]).name == "pagez.c" and frame["line"] == line
    )


@pytest.mark.parametrize("marker", ["change", "store"])
def test_cyclic_sweep_thrashes(out: Path, small_memory: Path, marker: str) -> None:
    """B: 160 MiB, four times over, in 80 MiB. Every page of three passes comes back from swap."""
    words = ["--store"] if marker == "store" else []
    recording, counted = pagez(out, small_memory, 20, 4, *words)
    pages = 20 * 8 * MIB // PAGE
    assert recording.dominant == "swap"
    assert recording.report["verdict"]["share"] > 0.5
    swapped = recording.toll("swap.in", "pages")
    assert swapped == pytest.approx(counted["pswpin"], rel=0.01)
    assert swapped == pytest.approx(3 * pages, rel=0.01)
    assert recording.toll("swap.out", "pages") == pytest.approx(counted["pswpout"], rel=0.05)
    assert recording.toll("reclaim", "time_s") > 0
    # Both owners: the malloc and the line of the loop.
    assert pages_at(recording, "swap.in", "allocated_at", "malloc") >= 0.99 * swapped
    assert pages_at(recording, "swap.in", "touched_at", marker) >= 0.99 * swapped
    # One page is cleared once, however often it is written.
    assert recording.toll("zero.kernel", "pages") == pytest.approx(pages, rel=0.01)
    check = recording.report["checks"]["major_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)
    assert check["kernel"] == pytest.approx(recording.witness[-1]["majflt"], rel=0.01)
    assert "swap-in" in {advice["code"] for advice in recording.report["verdict"]["advice"]}


def test_one_pass_sweep_is_no_thrash(out: Path, small_memory: Path) -> None:
    """A: 640 MiB, once, in 80 MiB. Pages go out and stay out."""
    recording, counted = pagez(out, small_memory, 80, 1)
    pages = 80 * 8 * MIB // PAGE
    pushed = recording.toll("swap.out", "pages")
    assert pushed == pytest.approx(counted["pswpout"], rel=0.01)
    assert recording.toll("swap.in", "pages") < 0.005 * pushed
    assert recording.toll("zero.kernel", "pages") == pytest.approx(pages, rel=0.01)
    # All of it by the target itself, in the reclaim of its cgroup.
    rows = dict(recording.query("SELECT what, SUM(pages) FROM swap GROUP BY what"))
    assert rows["out_self"] == pushed
    assert rows["reclaim_memcg"] == pytest.approx(pushed, rel=0.01)
    advice = {advice["code"]: advice["text"] for advice in recording.report["verdict"]["advice"]}
    assert "no thrash" in advice["reclaim-stall"]
    assert "swap-in" not in advice


def test_pushed_out_by_a_neighbour(out: Path, small_memory: Path) -> None:
    """A process that idles on 48 MiB, and another in its cgroup that needs 64."""
    with Program(*in_cgroup(small_memory, workload("pagez"), "6", "1", "--hold")) as victim:
        tracer = start_record(out, "-p", str(victim.pid))
        wait_attached(tracer, victim.pid)
        before = vmstat()
        subprocess.run(in_cgroup(small_memory, workload("pagez"), "8", "1"), check=True, timeout=60, capture_output=True)
        after = vmstat()
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    rows = dict(recording.query("SELECT what, SUM(pages) FROM swap GROUP BY what"))
    assert "out_self" not in rows
    assert 0 < rows["out_other"] + rows.get("out_kswapd", 0) <= after["pswpout"] - before["pswpout"]
    assert recording.toll("reclaim", "count") == 0
    assert any("none of them by the target itself" in note for note in recording.report["notes"])


def test_processes_of_a_cgroup(out: Path, small_memory: Path) -> None:
    """One that is there, one that comes later; what is outside stays outside. Named as below the root."""
    loop = workload("calloc_loop")
    with (
        Program(*in_cgroup(small_memory, loop, str(MIB), "0", "--seconds", "60")) as first,
        Program(loop, str(MIB), "0", "--seconds", "60") as outside,
    ):
        tracer = start_record(out, "-c", small_memory.name)
        wait_attached(tracer, first.pid)
        with Program(*in_cgroup(small_memory, loop, str(MIB), "0", "--seconds", "60")) as second:
            wait_attached(tracer, second.pid)
            second.beats()
            assert changed_text(outside.pid) == []
            tracer.send_signal(signal.SIGINT)
            result = finish(tracer)
            pids = {first.pid, second.pid}
    assert result.status == 0, result
    recording = load(out, result)
    assert set(recording.report["target"]["pids"]) == pids
    limit = recording.query("SELECT value FROM meta WHERE key = 'cgroup_memory_limit_bytes'")
    assert limit == [(str(LIMIT),)]
    assert recording.dominant == "zeroing"


def test_no_such_cgroup(out: Path) -> None:
    assert_refused(memtoll("record", "-o", out, "-c", "memtoll/none", "-d", "1s"), 1, "memtoll/none")
    assert not out.exists()


def test_what_fits_does_not_swap(out: Path, small_memory: Path) -> None:
    """C: 16 MiB, two hundred times, in 80 MiB."""
    recording, counted = pagez(out, small_memory, 2, 200)
    assert counted["pswpin"] == counted["pswpout"] == 0
    for toll in ("swap.in", "swap.out", "reclaim"):
        assert recording.toll(toll, "count") == 0
    assert recording.dominant != "swap"
    assert recording.toll("zero.kernel", "pages") == pytest.approx(2 * 8 * MIB // PAGE, rel=0.01)
