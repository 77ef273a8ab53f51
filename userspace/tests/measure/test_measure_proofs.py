# SPDX-License-Identifier: GPL-2.0
"""What the trial of each finding saves, by `memtoll compare`, against what the finding claims.

The counts behind each of them are in test_e2e_proofs.py; MEMTOLL_PROOFS=FILE adds a line of each to a table.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from test_e2e_compare import compare, loop
from test_e2e_proofs import PROOFS, Proof, options_of

from harness import record
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]

# Longer than for counts: some 0.3 s a run.
LONGER = 5


def longer(proof: Proof) -> list[str | Path]:
    name, shape, rounds, *rest = proof.words
    return replace(proof, words=(name, shape, LONGER * int(rounds), *rest)).command


def prove(tmp_path: Path, name: str, code: str, command: list[str | Path], env: dict[str, str]) -> None:
    """Of several rounds the median: the time saved, as a part of what is claimed of it."""
    recording = record(tmp_path / "before.memtoll", command=command, env=env)
    (advice,) = (one for one in recording.report["verdict"]["advice"] if one["code"] == code)
    saved: list[float] = []

    def once() -> dict[str, float]:
        found = compare(*options_of(advice), command=command, runs=1, env=env)
        saved.append(1 - float(found.plain("CPU time")["ratio"]))
        return {"saved of what is claimed": saved[-1] / float(advice["gain"])}

    settle(once, {"saved of what is claimed": Bound(least=0.5)}, 45)
    if table := os.environ.get("MEMTOLL_PROOFS"):
        middle = sorted(saved)[len(saved) // 2]
        with Path(table).open("a", encoding="utf-8") as out:
            out.write(f"| {code} | {name} | {100 * advice['gain']:.0f} % | {100 * middle:.0f} % |\n")


@pytest.mark.parametrize("name", PROOFS)
def test_trial_saves_half_of_the_time_claimed(tmp_path: Path, name: str) -> None:
    proof = PROOFS[name]
    prove(tmp_path, name, proof.code, longer(proof), proof.env)


def test_calloc_that_is_pinned(tmp_path: Path) -> None:
    prove(tmp_path, "calloc of 10 MiB, not used", "calloc-reuse-memset", loop(1009), {})
