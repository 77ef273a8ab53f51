# SPDX-License-Identifier: GPL-2.0
"""memtoll explain: the advice in its long form, from the tables of a recording. No root, no tracer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import facts
from harness import MEMTOLL, ROOT, assert_refused, memtoll

ROWS = facts.Facts().rows("SELECT * FROM advice ORDER BY position")
OLD = ROOT / "analysis" / "tests" / "recordings" / "format-1.memtoll"


def words(text: str) -> str:
    return " ".join(text.split())


def test_lists_every_code() -> None:
    result = memtoll("explain")
    assert (result.status, result.stderr) == (0, "")
    assert [line.split(maxsplit=1) for line in result.stdout.splitlines()] == [
        [row["code"], row["title"]] for row in ROWS
    ]


@pytest.mark.parametrize("row", ROWS, ids=[row["code"] for row in ROWS])
def test_prints_what_the_tables_hold(row: dict[str, str]) -> None:
    result = memtoll("explain", row["code"])
    assert (result.status, result.stderr) == (0, "")
    printed = words(result.stdout)
    assert printed.startswith(f"{row['code']}: {row['title']}")
    for column in ("condition", "gain"):
        assert words(row[column]) in printed
    for paragraph in row["explain"].split("\n\n"):
        assert words(paragraph) in printed
    blank = facts.Facts()
    said = [part["text"] for part in blank.rows("SELECT text FROM advice_text WHERE code = ?", row["code"])]
    for template in (*said, row["evidence"], row["cost"]):
        assert words(re.sub(r"\{(\w+)\}", r"<\1>", template)) in printed
    assert "{" not in printed
    for line in result.stdout.splitlines():
        assert len(line) <= 80 or " " not in line.strip(), line


def test_fills_in_a_recording_s_figures(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    (row,) = made.judged("finding", "SELECT * FROM finding")
    made.database.close()
    result = memtoll("explain", "calloc-reuse-memset", path)
    assert (result.status, result.stderr) == (0, "")
    printed = words(result.stdout)
    assert "Given: it can save at most 96 % of the observed time." in printed
    assert words(row["evidence"]) in printed and words(row["cost"]) in printed and words(row["try"]) in printed
    assert not re.search(r"<[a-z_]+>", printed)


def test_says_why_advice_is_not_given(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    assert "its condition does not hold" in words(memtoll("explain", "cow", path).stdout)
    assert "could save at most 0.7 % of" in words(memtoll("explain", "calloc-double-clear", path).stdout)


def test_refuses(tmp_path: Path) -> None:
    assert_refused(memtoll("explain", "caloc"), 2, "no code 'caloc'", "calloc-reuse-memset", "calloc-memset")
    assert_refused(memtoll("explain", "swap_in"), 2, "nearest: swap-in")
    assert_refused(memtoll("explain", ""), 2, "no code ''")
    assert_refused(memtoll("explain", "cow", "a", "b"), 2, "b: a code and one file at most")
    assert_refused(memtoll("explain", "--all"), 2, "--all")
    assert_refused(memtoll("explain", "cow", tmp_path / "none"), 1, tmp_path / "none")
    assert "its condition does not hold" in words(memtoll("explain", "cow", OLD).stdout)
    assert memtoll("explain", "--help").status == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_is_no_success() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([MEMTOLL, "explain", "cow"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and done.stderr.startswith(b"memtoll: ")
