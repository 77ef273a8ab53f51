# SPDX-License-Identifier: GPL-2.0
"""What heeding the advice saves, where no setting does it but the program: at least half of what is claimed.

The workload has both ways; the program's own CPU time is the witness, of runs side by side that nobody traces. What
settings save is in test_measure_proofs.py.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from facts import Facts
from harness import environment, record, workload
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]

# Some 50 ms of processor time each.
ROUNDS = {
    "own-storm": 61,
    "stack-storm": 101,
    "let-go": 101,
    "file-fault": 101,
    "shared-map": 31,
    "cow": 7,
    "never-used": 10_007,
    "map-churn": 61,
    "memset-app": 307,
    "app-double-clear": 3,
    "calloc-memset": 20_011,
    "zeros-read": 407,
    "small-steps": 3,
    "alloc-cpu": 7,
}
# Proved by counts and bytes against the kernel's: memory that would be enough, and what waits asleep.
ELSEWHERE = {
    "swap-in": "e2e/test_e2e_swap.py",
    "reclaim-stall": "e2e/test_e2e_swap.py",
    "given-out": "e2e/test_e2e_swap.py",
    "file-thrash": "e2e/test_e2e_page_cache.py",
    "read-around": "e2e/test_e2e_page_cache.py",
    "read-ahead-off": "e2e/test_e2e_page_cache.py",
    "file-reread": "e2e/test_e2e_reads.py",
    "file-read": "e2e/test_e2e_reads.py",
    "userfault": "e2e/test_e2e_handled.py",
    "arena-lock": "e2e/test_e2e_latency.py",
}


def alone(shape: str, *heeded: str) -> int:
    command = [str(workload("remedies")), shape, str(ROUNDS[shape]), *heeded]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    return int(json.loads(done.stdout.splitlines()[-1])["cpu_ns"])


@pytest.mark.parametrize("code", ROUNDS)
def test_heeded_it_saves_half_of_the_time_claimed(tmp_path: Path, code: str) -> None:
    recording = record(tmp_path / "r", command=[workload("remedies"), code, str(ROUNDS[code])])
    given = {one["code"]: one for one in recording.report["verdict"]["advice"]}
    assert code in given, given
    gain = float(given[code]["gain"])
    if code != "small-steps":  # the storm that growth makes says of its time that it is in both
        assert sum(one["gain"] for one in given.values()) < 1.02, "no time is promised twice"

    def once() -> dict[str, float]:
        return {"saved of what is claimed": (1 - alone(code, "heeded") / alone(code)) / gain}

    settle(once, {"saved of what is claimed": Bound(least=0.5)}, 45)


def test_every_saving_is_proved() -> None:
    rows = Facts().rows("SELECT code FROM advice WHERE code NOT IN (SELECT code FROM advice_text WHERE try <> '')")
    assert {str(row["code"]) for row in rows} == ROUNDS.keys() | ELSEWHERE.keys()
