# SPDX-License-Identifier: GPL-2.0
"""What a reader has to know before trusting the figures, and nothing that only frightens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import facts
from facts import MS, Facts
from harness import memtoll


def why(limit: str, seconds: float, error: float = 0.0, **hits: int) -> str:
    """100 ms of processor time, hits that take 500 ns each."""
    made = Facts()
    made.prices()
    for probe in ("malloc", "fault"):
        made.database.execute("UPDATE price SET hit_ns = 500, error_ns = ? WHERE probe = ?", (error, probe))
    made.slice(seconds=seconds)
    made.process()
    made.cpu(100 * MS)
    made.hits(**hits)
    made.meta(overhead_limit=limit)
    ((text,),) = made.database.execute("SELECT text FROM overhead_why").fetchall()
    return str(text)


@pytest.mark.parametrize(
    ("limit", "arguments", "said"),
    [
        ("5", {"seconds": 60, "malloc": 2_003}, ""),
        ("none", {"seconds": 60, "malloc": 20_011}, ""),
        ("5", {"seconds": 1, "malloc": 20_011}, "the first second is not held to it"),
        ("5", {"seconds": 60, "malloc": 20_011}, "not kept"),
        ("5", {"seconds": 60, "malloc": 11_003, "error": 200.0}, "no more than that within its error"),
        ("5", {"seconds": 60, "fault": 20_011}, "faults and system calls alone take more, and are always counted"),
        ("5", {"seconds": 60, "fault": 2_003, "malloc": 20_011}, "not kept"),
    ],
)
def test_overhead_above_the_limit_says_why(limit: str, arguments: dict[str, Any], said: str) -> None:
    assert why(limit, **arguments) == said


def test_the_report_says_it(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    made.database.execute("UPDATE meta SET value = '0.001' WHERE key = 'overhead_limit'")
    made.save()
    for more in ([], ["--full"]):
        text = " ".join(memtoll("report", *more, path).stdout.split())
        assert "(limit 0.001 %, the first second is not held to it)" in text


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
def test_code_without_names_says_what_to_get(tmp_path: Path, build_id: str) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    assert made.database.execute("SELECT COUNT(*) FROM nameless").fetchall() == [(0,)]
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
