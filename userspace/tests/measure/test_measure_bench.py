# SPDX-License-Identifier: GPL-2.0
"""What the benchmark sees of a hot program is what there must be; each of its lines and figures runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from harness import MEMTOLL, TESTS, environment
from measuring import Bound, between, control, settle

BENCH: Final = TESTS / "bench"
sys.path.insert(0, str(BENCH))

import table  # noqa: E402
import tools  # noqa: E402
from lines import LINES, Cost, Target, price  # noqa: E402

pytestmark = [pytest.mark.root, pytest.mark.measure]


def test_probes_cost_many_times_a_pair(tmp_path: Path) -> None:
    """Tens of nanoseconds bare, half a microsecond a probe and more."""

    def cost(target: Target, contender: str) -> Cost:
        with tools.attached(contender, target.pid, tmp_path):
            target.work(0.1)
            return target.work(0.2)

    with price("pair")([], tmp_path) as target:
        turns = [partial(cost, target, name) for name in (tools.FLOOR, tools.FULL, tools.BARE)]
        made = between(partial(cost, target, tools.BARE), turns, Cost.mean)

        def once() -> Mapping[str, float]:
            bare, (floor, full, again) = next(made)
            return {
                "empty probes, times bare": floor.cpu_ns / bare.cpu_ns,
                "memtoll, times bare": full.cpu_ns / bare.cpu_ns,
                "bare against bare": again.cpu_ns / bare.cpu_ns,
            }

        bounds = {
            "empty probes, times bare": Bound(least=5),
            "memtoll, times bare": Bound(least=5),
            "bare against bare": control(1),
        }
        settle(once, bounds, 35)


# ---- all of it, once


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All lines and figures, each once."""
    out = tmp_path_factory.mktemp("bench") / "results.json"
    command = ["/usr/bin/python3", "-B", str(BENCH / "bench.py"), "--quick", "--out", str(out)]
    env = environment({"MEMTOLL": str(MEMTOLL)})
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=330, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(out.read_text())
    return results


def test_every_line_runs_once(quick: dict[str, Any]) -> None:
    assert [line["name"] for line in quick["lines"]] == [line.name for line in LINES]
    for line in quick["lines"]:
        assert line["failed"] == {}, line
        costs = {row["name"]: row["cpu_ns"] for row in line["contenders"]}
        assert {"bare", "bare, afterwards"} < set(costs), line
        assert all(len(runs) == 1 and runs[0] > 0 for runs in costs.values()), line
        assert f"| {line['name']}, per" in table.table(quick)


def test_figures(quick: dict[str, Any]) -> None:
    assert [figure["unit"] for figure in quick["figures"]] == ["ns", "s", "s"] + 5 * ["times"]
    assert all(len(figure["runs"]) == 1 for figure in quick["figures"])
    # The first is a difference, which a busy machine can make anything; the others are times.
    assert all(figure["runs"][0] > 0 for figure in quick["figures"][1:])
