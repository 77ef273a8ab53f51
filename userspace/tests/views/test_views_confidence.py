# SPDX-License-Identifier: GPL-2.0
"""What a reader has to know before trusting the figures, and nothing that only frightens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import facts
from facts import MS, Facts
from harness import memtoll


def why(limit: str, slices: list[tuple[float, int]], probe: str, error: float = 0.0, **meta: str) -> str:
    """Slices of half a second, each with its processor time (ms) and hits of that probe, which take 500 ns each."""
    made = Facts()
    made.prices()
    made.database.execute("UPDATE price SET hit_ns = 500, error_ns = ? WHERE probe = ?", (error, probe))
    made.process()
    for number, (cpu_ms, hits) in enumerate(slices, 1):
        made.slice(number, seconds=0.5)
        made.cpu(cpu_ms * MS, number=number)
        made.row("hit", slice=number, pid=42, probe=probe, hits=hits)
    made.meta(overhead_limit=limit, **meta)
    return str(made.one("SELECT text FROM overhead_why")["text"])


COMMAND = {"target_command": "./program"}
GROUP = {"target_command": "cgroup /sys/fs/cgroup/service", "cgroup": "/sys/fs/cgroup/service"}
AFTER = "kept after the first second of CPU time"
NOT_HELD = "the first second of CPU time is not held to it"
# The first second of CPU time ends in the third slice; the second of these has hits after it, too.
STARTS = [(490, 200_003), (500, 100_003), (490, 2_003), (500, 2_011), (490, 2_017)]
STAYS = [(490, 3), (500, 100_003), (490, 100_043), (500, 2_011), (490, 100_057)]


@pytest.mark.parametrize(
    ("limit", "slices", "probe", "more", "said"),
    [
        ("5", [(1_000, 20_011)], "malloc", COMMAND, ""),
        ("none", [(100, 20_011)], "malloc", COMMAND, ""),
        ("5", [(100, 20_011)], "malloc", COMMAND, NOT_HELD),
        # However long it takes: one that sleeps, and a CPU that is shared with others.
        ("5", [(7, 2_003)] * 101, "malloc", COMMAND, NOT_HELD),
        ("5", [(7, 2_003)] * 101, "malloc", {}, "not kept"),
        ("5", [(7, 2_003)] * 101, "malloc", GROUP, "not kept"),
        ("5", [(100, 11_003)], "malloc", {"error": 200.0}, "+- 2.2 %: whether it is kept is not known"),
        ("5", [(100, 20_011)], "fault", {}, "faults and system calls alone take more, and are always counted"),
        ("5", STARTS, "malloc", COMMAND, AFTER),
        ("5", [*STARTS[:3], (490, 0)], "malloc", {}, AFTER),
        ("5", [(95, 40_009)] * 11 + [(95, 3)] * 20, "malloc", COMMAND, AFTER),
        ("5", STAYS, "malloc", COMMAND, "not kept"),
        # Several threads: a second of theirs has gone by in the first slice.
        ("5", [(3_000, 400_009), (3_000, 400_031)], "malloc", COMMAND, "not kept"),
        ("5", [(990, 200_003), (11, 0)], "malloc", COMMAND, AFTER),
    ],
)
def test_overhead_above_the_limit_says_why(
    limit: str, slices: list[tuple[float, int]], probe: str, more: dict[str, Any], said: str
) -> None:
    assert why(limit, slices, probe, **more) == said


def test_the_report_says_it(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    made.database.execute("UPDATE meta SET value = '0.001' WHERE key = 'overhead_limit'")
    made.save()
    for more in ([], ["--full"]):
        text = " ".join(memtoll("report", *more, path).stdout.split())
        assert "(limit 0.001 %, the first second of CPU time is not held to it)" in text


def test_small_losses_are_one_quiet_line(tmp_path: Path) -> None:
    """By name in the full report, none of them marked; those beyond the limit are."""
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    for name, count in [("ring_faults", 3), ("python_unreadable", 41), ("ring_block", 100_003)]:
        made.row("loss", slice=1, name=name, count=count)
        made.database.execute("INSERT OR REPLACE INTO loss_kind VALUES (?, 'not recorded', 'do this')", (name,))
    made.save()
    full = memtoll("report", "--full", path).stdout
    quiet = " ".join(full[full.index("Lost, within the limit: ") :].split())
    assert "ring_faults 3 (0.12 % of its kind: not recorded), python_unreadable 41 (not recorded). !!! ring_b" in quiet
    assert full.count("!!! ") == 1
    short = memtoll("report", path).stdout
    assert "ring_faults" not in short and short.count("!!! ") == 1 and "LOSSES as above" in short


@pytest.mark.parametrize("build_id", ["", "0123456789abcdef"])
@pytest.mark.slow
def test_code_without_names_says_what_to_get(tmp_path: Path, build_id: str) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    assert not made.rows("SELECT * FROM nameless")
    # What is called by code without a name has one itself: nothing is missing in what is said of it.
    made.database.execute(
        "UPDATE frame SET function = '', file = '', line = 0 WHERE frame_id IN (SELECT frame_id FROM stack_frame k"
        " WHERE depth > (SELECT MIN(depth) FROM stack_line l WHERE l.stack_id = k.stack_id AND usable = 0))"
    )
    assert not made.rows("SELECT * FROM nameless")
    made.database.execute(
        "UPDATE frame SET function = '', file = '', line = 0, build_id = ?, module_offset = 4099"
        " WHERE module = '/srv/program'",
        (build_id,),
    )
    made.save()
    full = " ".join(memtoll("report", "--full", path).stdout.split())
    assert "of the time is at code of program that has no names" in full and "dpkg -S /srv/program" in full
    assert ("debuginfod-find debuginfo 0123456789abcdef" in full) == bool(build_id)
    assert "at code of program without names: --full" in " ".join(memtoll("report", path).stdout.split())
