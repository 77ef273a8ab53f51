# SPDX-License-Identifier: GPL-2.0
"""What the trial of each finding saves of the CPU time, against what the finding claims.

By runs that nobody traces, one without and one with what the trial sets, side by side: the program's own CPU time is
the witness. The counts behind each of them are in test_e2e_proofs.py; MEMTOLL_PROOFS=FILE adds a line of each to a
table.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from test_e2e_proofs import PROOFS, Proof, alone, settings
from test_e2e_seldom_watched import ROUNDS, SHAPES

from harness import MIB, record
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]

CLAIMS = 3

# Of those whose counts are proved by fewer rounds, or less memory: as much as a time needs.
LONGER: dict[str, tuple[str | int, ...]] = {
    "a thread's heap, trimmed": ("kept", "blocks", 61, 7_000_003, 7_000_003, "thread"),
    "several at once": ("storms", "blocks", 5, 3, 34 * MIB + 1),
    "blocks above 32 MiB, in a thread": ("kept", "blocks", 11, 41 * MIB, 41 * MIB, "thread"),
    "blocks that no arena can hold": ("kept", "blocks", 5, 101 * MIB, 101 * MIB, "thread"),
    "pinned low by a tunable": ("storms", "blocks", 61, 1, 3 * MIB),
    "blocks that are not used": ("kept", "blocks", 20011, 33 * MIB, 1),
    "such blocks in a thread": ("kept", "blocks", 20011, 101 * MIB, 1, "thread"),
    "tcmalloc, a setting": ("storms", "blocks", 41, 1, 4 * MIB),
    "huge pages used sparsely": ("kept", "sparse", 1, 300_000_007, 1_273_831),
    "a heap given back once, to calloc": ("kept", "cleared", 2, 100_003, 2_003),
}


def prove(tmp_path: Path, name: str, proof: Proof) -> None:
    """Of several rounds the median: the time saved, as a part of what is claimed of it."""
    # What is claimed is of that run, and as much too much as its memory is the machine's to find: the least of some.
    claims = []
    for number in range(CLAIMS):
        alone(proof, {})
        recording = record(tmp_path / f"{number}.memtoll", command=proof.command, env=proof.env)
        claims += [one for one in recording.report["verdict"]["advice"] if one["try"]]
    assert [claim["code"] for claim in claims] == [proof.code] * CLAIMS
    advice = min(claims, key=lambda claim: float(claim["gain"]))
    saved: list[float] = []
    env = settings(advice, proof)

    def once() -> dict[str, float]:
        saved.append(1 - alone(proof, env) / alone(proof, {}))
        return {"saved of what is claimed": saved[-1] / float(advice["gain"])}

    settle(once, {"saved of what is claimed": Bound(least=0.5)}, 45)
    if table := os.environ.get("MEMTOLL_PROOFS"):
        middle = sorted(saved)[len(saved) // 2]
        with Path(table).open("a", encoding="utf-8") as out:
            out.write(f"| {advice['code']} | {name} | {100 * advice['gain']:.0f} % | {100 * middle:.0f} % |\n")


@pytest.mark.parametrize("name", PROOFS)
def test_trial_saves_half_of_the_time_claimed(tmp_path: Path, name: str) -> None:
    proof = PROOFS[name]
    prove(tmp_path, name, replace(proof, words=LONGER.get(name, proof.words), counts="cpu_ns"))


def test_every_longer_one_has_a_proof() -> None:
    assert LONGER.keys() <= PROOFS.keys()


def test_blocks_of_many_sizes_for_longer(tmp_path: Path) -> None:
    """Enough of it comes again to be a storm, which has the trial then, and not first-touch."""
    proof = Proof("map-storm", ("kept", "varied", 11, 33 * MIB), counts="cpu_ns")
    prove(tmp_path, "blocks of many sizes, for longer", proof)


def test_calloc_that_is_pinned(tmp_path: Path) -> None:
    proof = Proof("calloc-reuse-memset", ("calloc_loop", 10 * MIB, 1009), counts="cpu_ns")
    prove(tmp_path, "calloc of 10 MiB, not used", proof)


@pytest.mark.parametrize("name", SHAPES)
def test_settings_of_callocs_that_are_seldom_watched(name: str) -> None:
    """What test_e2e_seldom_watched.py has advised saves, and what it must not find advised does not."""
    shape = SHAPES[name]
    # What is paid once is no more than a part of it: the faults of a heap that is kept.
    rounds = ROUNDS if shape.code.endswith("storm") else 4 * ROUNDS

    def once() -> dict[str, float]:
        with_it, without = (shape.alone(setting, rounds)["cpu_ns"] for setting in (shape.setting, ""))
        return {"with it, of what it takes without": with_it / without}

    settle(once, {"with it, of what it takes without": Bound(most=0.7) if shape.code else Bound(least=1.0)}, 45)
