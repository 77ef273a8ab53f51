# SPDX-License-Identifier: GPL-2.0
"""The benchmark runs, every line of it; the README's table is what its results give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from harness import MEMTOLL, TESTS, environment

BENCH: Final = TESTS / "bench"
sys.path.insert(0, str(BENCH))

import table  # noqa: E402


def test_readme_has_the_results() -> None:
    results = json.loads(table.RESULTS.read_text())
    assert table.README.read_text() == table.readme_with(results)
    assert "malloc and free" in {line["name"] for line in results["lines"]}


def test_ratios_are_of_the_same_round() -> None:
    bare = {"name": "bare", "rounds": [0, 1, 2], "cpu_ns": [10.0, 20.0, 40.0]}
    traced = {"name": "traced", "rounds": [0, 2], "cpu_ns": [20.0, 60.0]}
    assert table.ratios(traced, bare, "cpu_ns") == [2.0, 1.5]
    assert table.spread([2.0, 1.5]) == "1.75 (1.50-2.00)"
    assert table.added({"contenders": [bare, traced]}, "traced") == 15.0
    assert table.added({"contenders": [bare]}, "traced") is None


@pytest.mark.root
def test_every_line_runs_once(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command = ["/usr/bin/python3", "-B", str(BENCH / "bench.py"), "--quick", "--out", str(out)]
    env = environment({"MEMTOLL": str(MEMTOLL)})
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=85, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(out.read_text())
    assert len(results["lines"]) == 8
    costs: dict[str, dict[str, float]] = {}
    for line in results["lines"]:
        assert line["failed"] == {}, line
        costs[line["name"]] = {row["name"]: row["cpu_ns"][0] for row in line["contenders"]}
        assert {"bare", "bare, afterwards", "memtoll, no limit"} <= set(costs[line["name"]])
        assert all(cost > 0 for cost in costs[line["name"]].values())
    # So far apart that no neighbour hides it: tens of nanoseconds bare, half a microsecond a probe and more.
    pair = costs["malloc and free"]
    assert 5 * pair["bare"] < pair["empty probes, entry and return"] < pair["memtoll, no limit"]
    assert pair["memtoll, no limit"] > 5 * pair["bare, afterwards"]
    assert [figure["unit"] for figure in results["figures"]] == ["ns", "s", "s"]
    assert all(len(figure["runs"]) == 1 for figure in results["figures"])
    # The table takes it.
    assert table.table(results).count("\n|") > 20
