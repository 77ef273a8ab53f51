# SPDX-License-Identifier: GPL-2.0
"""What the benchmark sees of a hot program is what there must be: it does attach what it says that it attaches."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from harness import TESTS
from measuring import Bound, between, control, settle

sys.path.insert(0, str(TESTS / "bench"))

import tools  # noqa: E402
from lines import Cost, Target, price  # noqa: E402

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
