# SPDX-License-Identifier: GPL-2.0
"""memtoll demo: the recordings that come with the binary, and what is shown where nothing can be traced."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from harness import MEMTOLL, ROOT, assert_refused, memtoll, tool
from shape import check_report

EXAMPLES = ROOT / "analysis" / "memtoll" / "examples"
KEPT = ROOT / "analysis" / "tests" / "recordings"
GROUPS = (
    "SELECT path FROM memory_cgroup UNION SELECT limit_path FROM memory_cgroup"
    " UNION SELECT path FROM memory_cgroup_counter UNION SELECT memory_cgroup FROM process"
)
WORDS = {
    "zeroing": ("ZEROING 98 %", "calloc_loop.c:29 (clear_block)", "saves at most"),
    "swap": ("SWAP 98 %", "pagez.c:27 (change_pages)", "161 MiB", "saves at most"),
    "healthy": ("COMPUTE 100 %", "checks ok"),
}


@pytest.mark.parametrize("name", WORDS)
def test_example(name: str, tmp_path: Path) -> None:
    """One screen, said to be recorded elsewhere; the same file as the Python package has."""
    shown = memtoll("demo", name, cwd=tmp_path)
    assert (shown.status, shown.stderr) == (0, "")
    assert "Recorded before: " in shown.stdout
    assert len(shown.stdout.splitlines()) <= 24, "one screen"
    assert [word for word in WORDS[name] if word not in shown.stdout] == []
    assert f"memtoll demo --full {name}" in shown.stdout
    assert memtoll("demo", name, "-o", "here.memtoll", cwd=tmp_path).status == 0
    assert (tmp_path / "here.memtoll").read_bytes() == (EXAMPLES / f"{name}.memtoll").read_bytes()
    assert (tmp_path / "here.memtoll").stat().st_size < 300_000
    check_report(json.loads(memtoll("report", "--json", "here.memtoll", cwd=tmp_path).stdout))
    assert_refused(memtoll("demo", name, "-o", "here.memtoll", cwd=tmp_path), 1, "here.memtoll")


def test_examples_tell_nothing_of_where_they_were_made() -> None:
    """Nor the recording that the analysis' tests keep. Groups: the one they are said to have run in, and the root."""
    for path in [*(EXAMPLES / f"{name}.memtoll" for name in WORDS), *KEPT.glob("*.memtoll")]:
        data = path.read_bytes()
        assert b"/tmp/" not in data and b"/home/" not in data and b"/work/" not in data
        with closing(sqlite3.connect(path)) as database:
            groups = database.execute(GROUPS).fetchall()
        assert {group for (group,) in groups} <= {"/service", "/", "", None}, path


def test_without_privileges_a_recording_is_shown_and_said(tmp_path: Path) -> None:
    words = [] if os.geteuid() else [tool("setpriv"), "--bounding-set", "-all"]
    done = subprocess.run(
        [*words, MEMTOLL, "demo"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done
    assert "cap_bpf" in done.stderr and "what follows is a recording" in done.stderr
    assert "ZEROING 98 %" in done.stdout and "on example" in done.stdout


def test_what_there_is_not(tmp_path: Path) -> None:
    assert_refused(memtoll("demo", "swapp", cwd=tmp_path), 2, "swapp", "zeroing, swap and healthy")
    assert_refused(memtoll("demo", "swap", "healthy", cwd=tmp_path), 2, "healthy")
    assert_refused(memtoll("demo", "-o", "x.memtoll", cwd=tmp_path), 2, "x.memtoll")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """The recording lies in a file only for as long as it is read."""
    done = subprocess.run(
        [MEMTOLL, "demo", "healthy"], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, check=False
    )
    assert done.returncode == 0 and list(tmp_path.iterdir()) == []
    failed = subprocess.run(
        [MEMTOLL, "demo", "healthy"],
        env={**os.environ, "TMPDIR": str(tmp_path / "not" / "there")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1
