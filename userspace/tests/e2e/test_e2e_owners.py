# SPDX-License-Identifier: GPL-2.0
"""Which block a fault is charged to, where blocks change place, size, hands or process; and runs of faults.

Every number of pages is known from the program, and getrusage around its loops bears it out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faults import Faults, stacks
from harness import Recording, record, record_several, site_line, tool, workload

pytestmark = pytest.mark.root

SMALL, LARGE = 101, 307
CLEARED = ("zero", "zero_upgrade", "zero_huge", "zero_mthp")
SWEPT_PAGES = 65537


def run(out: Path, *command: object) -> tuple[Recording, Faults, dict[str, Any]]:
    name, *words = map(str, command)
    recording = record(out, command=[workload(name), *words])
    return recording, Faults(recording), recording.witness[-1]


def cleared_in(faults: Faults, marker: str) -> int:
    """Pages cleared in blocks made at a marked line."""
    return faults.allocated("owners.c", marker).of(*CLEARED).pages


Several = tuple[Recording, dict[str, dict[str, Any]]]
SWEEPS = {"down": 5003, "skip": 5009}  # of so many runs a slice keeps each


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Several:
    """Programs one after the other, told apart by their processes, or by the lines that only one of them has."""
    commands: dict[str, list[object]] = {
        "alternate": ["owners", "alternate", 211],
        "grow": ["owners", "grow"],
        "remap": ["owners", "remap"],
        **{marker: ["sweep", pages, marker] for marker, pages in SWEEPS.items()},
    }
    return record_several(tmp_path_factory.mktemp("several") / "several.memtoll", commands)


def of(several: Several, name: str) -> tuple[Faults, dict[str, Any]]:
    recording, said = several
    return Faults(recording).by(said[name]["pid"]), said[name]


def test_two_calls_share_an_address(several: Several) -> None:
    """Two calls, the same address 2 x 211 times: each has its own pages."""
    faults, witness = of(several, "alternate")
    assert witness["same"] == 2 * 211 - 1, "the address was not reused: the test shows nothing"
    assert cleared_in(faults, "used") == 211 * 127
    assert cleared_in(faults, "full") == 211 * 257


def test_realloc(several: Several) -> None:
    """Fresh pages belong to the realloc, moved ones to nobody again."""
    faults, witness = of(several, "grow")
    assert (witness["moved"], witness["in_place"], witness["faults"]) == (2, 1, LARGE - SMALL)
    # A mapping that moved with its pages.
    assert cleared_in(faults, "mapped") == SMALL
    assert cleared_in(faults, "grow_mapped") == LARGE - SMALL
    # In place on the heap; a neighbour's header may share the last page.
    assert cleared_in(faults, "top") == pytest.approx(SMALL, abs=1)
    assert cleared_in(faults, "top") + cleared_in(faults, "grow_top") == pytest.approx(LARGE, abs=1)
    # By copying: the pages that were there to copy.
    assert cleared_in(faults, "grow_copied") == pytest.approx(LARGE, abs=1)


def test_mappings_of_the_program(several: Several) -> None:
    """Regions of 64 KiB and more that the program maps itself are allocations."""
    faults, witness = of(several, "remap")
    mine = faults.touched("owners.c", "touch").of(*CLEARED)
    # 307 pages of the first region; moved, they are there; then as many that are fresh.
    assert mine.pages == witness["fresh"]
    assert mine.allocated("owners.c", "map").pages + mine.allocated("owners.c", "remap").pages == mine.pages
    assert {row.allocated_call for row in mine.rows} <= {"mmap", "mremap"}
    assert several[0].site("owners.c", "map", "mmap").calls == 2


def test_exec(out: Path) -> None:
    """A block of the image before and one of the image after, at one address."""
    recording = record(out, command=[tool("setarch"), "-R", workload("owners"), "exec"])
    before, after = recording.witness
    assert before["block"] == after["block"], "memory is laid out at random: the test shows nothing"
    faults = Faults(recording)
    assert cleared_in(faults, "before") == SMALL
    assert cleared_in(faults, "after") == LARGE


def test_handed_from_thread_to_thread(out: Path) -> None:
    """Eight threads, each frees what its neighbour made, while all of them fault. No page goes astray."""
    rounds = 101
    recording, faults, witness = run(out, "owners", "hand", rounds)
    for thread, (pages, size) in enumerate(zip(witness["pages"], witness["block_pages"])):
        assert pages == rounds * size, f"thread {thread} did not fault as it should: the test shows nothing"
        assert cleared_in(faults, f"hand{thread}") == pages, thread
        site = recording.site("owners.c", f"hand{thread}", "malloc", "calloc", "aligned_alloc", "memalign")
        assert (site.calls, site.freed) == (rounds, rounds)


def test_made_by_one_touched_in_order_by_another(out: Path) -> None:
    """Pages of many blocks are one run, with the clock read now and then: each block is known when its first comes."""
    rounds = 20_011
    recording = record(
        out,
        "--min-size",
        "4K",
        "--overhead-limit",
        "none",
        command=[workload("owners"), "order", str(rounds)],
        env={"LD_PRELOAD": str(workload("libbump.so"))},
    )
    witness, faults = recording.witness[-1], Faults(recording)
    assert witness["behind"] >= 0.99 * 2 * rounds, "the blocks are not in order: the test shows nothing"
    assert witness["faults"] >= (3 + 5) * rounds
    [[untimed]] = recording.query("SELECT SUM(faults - timed_faults) FROM fault WHERE class = 'zero'")
    assert untimed > 0.3 * 8 * rounds, "all was timed: the test shows nothing"
    assert cleared_in(faults, "three") == 3 * rounds
    assert cleared_in(faults, "five") == 5 * rounds


# Runs.


def runs(recording: Recording, marker: str) -> list[tuple[int, int, int]]:
    """Rows of table fault_run: address, pages, faults, of the code at a marked line of sweep.c."""
    wanted = stacks(recording, "sweep.c", marker)
    rows = recording.query("SELECT touched_stack, address, pages, faults FROM fault_run ORDER BY address")
    return [(address, pages, faults) for stack, address, pages, faults in rows if stack in wanted]


def test_sweep_is_a_handful_of_runs(out: Path) -> None:
    """256 MiB: a run a slice or so, exact in space."""
    recording, faults, witness = run(out, "sweep", SWEPT_PAGES, "up")
    swept = runs(recording, "up")
    [[slices]] = recording.query("SELECT count(*) FROM slice")
    # The end of a slice ends a run, and so may the ends of the loop.
    assert len(swept) <= slices + 2, (len(swept), slices)
    assert sum(pages for _, pages, _ in swept) == sum(faults for _, _, faults in swept) == SWEPT_PAGES
    at = witness["start"]
    for address, pages, _ in swept:
        assert address == at
        at += pages * 4096
    assert faults.allocated("sweep.c", "block").of("zero").pages == SWEPT_PAGES
    assert faults.touched("sweep.c", "up").pages == SWEPT_PAGES


@pytest.mark.parametrize("marker", SWEEPS)
def test_other_sweeps_are_exact(several: Several, marker: str) -> None:
    pages = SWEEPS[marker]
    swept = runs(several[0], marker)
    assert sum(count for _, count, _ in swept) == pages
    addresses = [address + page * 4096 for address, count, _ in swept for page in range(count)]
    assert len(set(addresses)) == pages
    assert of(several, marker)[0].allocated("sweep.c", "block").of("zero").pages == pages
    assert several[0].report["losses"]["ring_faults"] == 0


def test_calls_that_are_left(out: Path) -> None:
    """A front's malloc jumps to libc's, one call of two parts; every other is left by longjmp, at the same depth."""
    count = 1009
    recording = record(out, command=[workload("leaver"), str(count)], env={"LD_PRELOAD": str(workload("libfront.so"))})
    assert recording.witness[-1]["returned"] == count
    assert recording.report["losses"]["return_missed"] == count
    lines = {}
    for row in recording.report["allocations"]:
        for frame in row["allocated_at"]:
            if Path(frame["file"]).name == "leaver.c" and row["call"] == "malloc":
                lines[frame["line"]] = (row["calls"], row["bytes"])
                break
    assert lines == {site_line("leaver.c", "kept"): (count, 67 * count)}
    [[nested]] = recording.query("SELECT SUM(nested_calls) FROM call WHERE call = 'malloc'")
    # libc's, each inside the front's; what the program's start makes comes by both, or by libc's alone.
    [[made]] = recording.query("SELECT SUM(calls) FROM call WHERE call = 'malloc'")
    assert count <= nested <= made < count + 50
