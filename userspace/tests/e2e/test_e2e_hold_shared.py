# SPDX-License-Identifier: GPL-2.0
"""memtoll hold, of processes that share their memory since a fork: to look at it leaves it shared. Witness: what the
kernel says that each of them has of it (Pss), and how much is in huge pages.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from harness import MIB, Program, memtoll, workload

pytestmark = pytest.mark.root
CHILDREN = 5
HEAP = 32 * MIB


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kernels_sums(pids: list[int]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for pid in pids:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        sums.update({name: int(size) * 1024 for name, size in re.findall(r"^(\w+): +(\d+) kB", text, re.M)})
    return sums


def test_what_processes_share_stays_shared() -> None:
    with Program(workload("holder"), "forked", str(HEAP // MIB)) as program:
        pids = [program.pid, *children(program.pid)]
        assert len(pids) == CHILDREN + 1
        before = kernels_sums(pids)
        # One of them, and all together.
        for who in (str(pids[-1]), ",".join(map(str, pids))):
            result = memtoll("hold", "--json", "-p", who)
            assert result.status == 0, result
        after = kernels_sums(pids)
    assert before["Pss"] < 2 * HEAP + 8 * MIB
    assert after["Pss"] == pytest.approx(before["Pss"], abs=MIB)
    assert after["AnonHugePages"] == before["AnonHugePages"]
    found = json.loads(result.stdout)
    assert sum(process["sum"]["pss"] for process in found["processes"]) == pytest.approx(before["Pss"], rel=0.02)
