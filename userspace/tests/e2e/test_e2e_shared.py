# SPDX-License-Identifier: GPL-2.0
"""Shared memory: swapped, and mapped into processes for which others have made it.

Witnesses: the kernel's counts of the processes and of their cgroup. Each page of a segment differs from all others,
so that none is all zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import MIB, PAGE, Program, Recording, finish, load, record, start_record, wait_attached, workload
from swapping import in_cgroup, memory_with_swap, swapped_in

pytestmark = pytest.mark.root

# Swap areas are the machine's: whose pages go to which is nobody's choice.
machine = pytest.mark.machine

LIMIT = 24 * MIB
PAGES = 9_973  # 39 MiB


@pytest.fixture
def small_memory() -> Iterator[Path]:
    with memory_with_swap("file", LIMIT, 160 * MIB) as cgroup:
        yield cgroup


def pages(recording: Recording, classes: str) -> int:
    ((count,),) = recording.query(
        f"SELECT COALESCE(SUM(pages), 0) FROM fault WHERE area = 'shared' AND class LIKE '{classes}'"
    )
    return int(count)


def swapped(recording: Recording, what: str) -> int:
    ((count,),) = recording.query(f"SELECT COALESCE(SUM(pages), 0) FROM swap WHERE pid > 0 AND what LIKE '{what}'")
    return int(count)


def assert_swapped(recording: Recording, kernel: int, majors: int, name: str) -> None:
    """Swap it is, of a segment that is named; kernel: pages that the cgroup had back by the kernel's count."""
    came = pages(recording, "swap%")
    assert pages(recording, "%") - came - pages(recording, "shared_minor") in (0, PAGES)
    assert swapped(recording, "in%") == pytest.approx(kernel, rel=0.03, abs=128)
    assert [name for name, row in recording.report["checks"].items() if not row["ok"]] == []
    ((ours,),) = recording.query("SELECT SUM(faults) FROM fault WHERE class LIKE '%_major'")
    assert ours == pytest.approx(majors, abs=16)
    # Every page that came back had gone out, and no other process's count has it.
    out = swapped(recording, "shared_out")
    assert out == pytest.approx(swapped(recording, "out%"), rel=0.02, abs=128)
    assert came > PAGES
    assert recording.dominant == "swap"
    sentence = recording.report["verdict"]["sentence"]
    assert name in sentence
    advice = {row["code"]: row["text"] for row in recording.report["verdict"]["advice"]}
    assert "file-fault" not in advice
    assert "the allocator" not in advice["swap-in"]
    memory = recording.report["memory"]
    assert memory["limit_bytes"] == LIMIT
    # Of a page that several processes wait for it is not known whether it came once; attached to, what never went out
    # is not known.
    assert PAGES * PAGE * 0.7 < memory["fits_bytes"] <= LIMIT + PAGES * PAGE


@machine
def test_swapped(out: Path, small_memory: Path) -> None:
    """A memfd, in order: each pass finds all of it pushed out."""
    before = swapped_in(small_memory)
    command = in_cgroup(small_memory, workload("segment"), "memfd", str(PAGES), "3", "order", "0")
    recording = record(out, command=command)
    kernel = swapped_in(small_memory) - before
    assert_swapped(recording, kernel, recording.witness[-1]["majflt"], "/memfd:memtoll-segment")
    # Now and then a page is spared, or reclaim does not get to write it.
    assert 3 * PAGES - 128 < pages(recording, "swap%") <= 3 * PAGES
    assert pages(recording, "shared_zero") == PAGES
    access = recording.report["access"][0]
    assert (access["pattern"], access["call"]) == ("cyclic sweep", "mmap")
    assert access["returns"] == pytest.approx(3.0, rel=0.02)
    assert 3 * PAGES - 512 < swapped(recording, "shared_out") < 4 * PAGES + 512


@machine
def test_swapped_before_it_was_attached_to(out: Path, small_memory: Path) -> None:
    """A System V segment, in no order: more than a third of it is out when that begins."""
    words = ("sysv", str(PAGES), "3", "chance", "0", "wait")
    with Program(*in_cgroup(small_memory, workload("segment"), *words)) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        before = swapped_in(small_memory)
        faults = program.lines[0]
        program.go()
        witness = program.last()
        kernel = swapped_in(small_memory) - before
        result = finish(tracer)
    recording = load(out, result)
    assert_swapped(recording, kernel, witness["majflt"] - faults["majflt"], "System V, key 0x0020d1f4")
    assert recording.report["access"][0]["pattern"] == "random"


@machine
def test_swapped_in_several_processes(out: Path, small_memory: Path) -> None:
    """Three at once, which share each page that comes back: it is one page."""
    before = swapped_in(small_memory)
    command = in_cgroup(small_memory, workload("segment"), "anonymous", str(PAGES), "2", "order", "3")
    recording = record(out, command=command)
    kernel = swapped_in(small_memory) - before
    witness = recording.witness[-1]
    assert_swapped(recording, kernel, witness["majflt"] + witness["children_majflt"], "in shared memory of mmap at")
    assert recording.report["memory"]["came_back_bytes"] == pytest.approx(PAGES * PAGE, rel=0.02)


@pytest.mark.parametrize("kind", ["memfd", "tmpfs"])
def test_made_by_another_process(out: Path, kind: str) -> None:
    """Five children go over what their parent has made: each maps each page, and nothing is read or cleared."""
    recording = record(out, command=[workload("segment"), kind, str(PAGES), "1", "order", "5"])
    assert pages(recording, "shared_minor") == 5 * PAGES
    assert pages(recording, "shared_zero") == PAGES
    assert pages(recording, "swap%") == 0
    assert recording.toll("zero.kernel", "pages") < PAGES + 1_000
    advice = {row["code"]: row["text"] for row in recording.report["verdict"]["advice"]}
    assert "file-fault" not in advice
    if recording.dominant == "file":
        assert f"{5 * PAGES:,} faults map" in recording.report["verdict"]["sentence"]
        assert "into 5 processes" in recording.report["verdict"]["sentence"]
