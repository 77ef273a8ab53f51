# SPDX-License-Identifier: GPL-2.0
"""Large callocs beside so many small ones that the budget has calloc watched a part of the time only.

What is advised then must not cost more than it saves: the program runs alone with the setting, and its own counts
(getrusage, what of a block is resident before it is used) tell what that does. test_measure_proofs.py has the times.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import MIB, PAGE, Recording, environment, record, workload

pytestmark = pytest.mark.root

TUNABLES = "GLIBC_TUNABLES"
CPU_MS = 800  # of the program, however long that takes
ROUNDS = 23  # of a run alone
FEW = 11

PIN = "glibc.malloc.mmap_threshold=131072"
KEEP = "glibc.malloc.mmap_threshold=67108864:glibc.malloc.trim_threshold=268435456"


@dataclass(frozen=True)
class Shape:
    small: int  # callocs beside
    kinds: tuple[str, ...]
    code: str  # of the finding that has a trial, or none
    setting: str  # what that sets, or would set
    threads: int = 1

    def command(self, rounds: int = 0) -> list[str | Path]:
        small = FEW if rounds else self.small
        return [workload("beside"), *map(str, (CPU_MS, rounds, small, self.threads)), *self.kinds]

    def alone(self, setting: str, rounds: int = ROUNDS) -> dict[str, Any]:
        """The witness of a run that nobody traces."""
        done = subprocess.run(
            [str(word) for word in self.command(rounds)],
            env=environment({TUNABLES: setting} if setting else {}), capture_output=True, text=True, timeout=60,
            check=True,
        )  # fmt: skip
        witness = json.loads(done.stdout.splitlines()[-1])
        assert isinstance(witness, dict)
        return witness

    def pages(self, places: str) -> int:
        """What a round of all threads asks for there."""
        kinds = [kind.split(":") for kind in self.kinds]
        return self.threads * sum(-(-int(size) // PAGE) for place, size, _ in kinds if place in places)


def block(place: str, size: int, used: int) -> str:
    return f"{place}:{size}:{used}"


SHAPES = {
    "mapped, a page used, and none": Shape(
        197, (block("a", 40 * MIB, 1), block("b", 37 * MIB, 0)), "", KEEP),
    "mapped, all used": Shape(20_011, (block("a", 40 * MIB, 40 * MIB),), "map-storm", KEEP),
    "mapped, beside a malloc that is used in part": Shape(
        997, (block("a", 40 * MIB, 1), block("m", 34 * MIB, MIB // 2)), "", KEEP),
    "mapped, beside a malloc that is used": Shape(
        9973, (block("a", 40 * MIB, 1), block("m", 34 * MIB, 34 * MIB)), "map-storm", KEEP),
    "heap, not used": Shape(997, (block("a", 10 * MIB, 1),), "calloc-reuse-memset", PIN),
    "heap, all used": Shape(997, (block("a", 10 * MIB, 10 * MIB),), "", PIN),
    "heap, half used": Shape(997, (block("a", 10 * MIB, 5 * MIB),), "", PIN),
    "heap, used at one of two places": Shape(
        997, (block("a", 3 * MIB, 3 * MIB), block("b", 5 * MIB, 1)), "", PIN),
    "heap, beside a malloc that is used": Shape(
        997, (block("a", 10 * MIB, 1), block("m", 9 * MIB, 9 * MIB)), "", PIN),
    "two threads' heaps, all used": Shape(997, (block("a", 10 * MIB, 10 * MIB),), "", PIN, threads=2),
    "trimmed, a little used": Shape(
        997, (block("a", 10 * MIB, 40 * PAGE), block("b", 10 * MIB, 40 * PAGE)), "", KEEP),
    "trimmed, all used": Shape(
        9973, (block("a", 10 * MIB, 10 * MIB), block("b", 10 * MIB, 10 * MIB)), "trim-storm", KEEP),
}  # fmt: skip


def seldom(path: Path, shape: Shape) -> Recording:
    recording = record(path, command=shape.command(), exact=False)
    assert 0 < recording.report["overhead"]["duty_cycle"]["calloc"] < 1, recording.report["overhead"]
    return recording


def advised(recording: Recording, shape: Shape) -> tuple[str, float]:
    """What its trial sets, or would set where there is none, as there must not be; and the gain."""
    found = [one for one in recording.report["verdict"]["advice"] if one["try"]]
    assert [one["code"] for one in found] == ([shape.code] if shape.code else []), found
    if not found:
        assert not any(TUNABLES in one["text"] for one in recording.report["verdict"]["advice"])
        return shape.setting, 0.0
    words = shlex.split(found[0]["try"])
    assert words[:3] == ["memtoll", "compare", "--set"] and words[4] == "--"
    return words[3].removeprefix(f"{TUNABLES}="), float(found[0]["gain"])


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_advised_saves(out: Path, name: str) -> None:
    shape = SHAPES[name]
    recording = seldom(out, shape)
    setting, gain = advised(recording, shape)
    before, after = shape.alone(""), shape.alone(setting)
    asked, heads = shape.pages("ab"), shape.threads * len([kind for kind in shape.kinds if kind[0] != "m"])
    if shape.setting == PIN:
        # calloc clears all of each block, and with the setting none, for a fault of each page that is used.
        assert (before["cleared"], after["cleared"]) == ((asked + heads) * PAGE, heads * PAGE)
        more = after["faults"] - before["faults"]
        if gain:
            assert more < 0
        else:
            assert more > 100 * ROUNDS * heads, "for each block's memset"
        return
    # The other way round. What comes again are the pages that are used; of a trimmed heap some that calloc clears.
    assert after["cleared"] >= asked * PAGE > 20 * before["cleared"]
    again = before["faults"] / ROUNDS
    if gain:
        assert after["faults"] < before["faults"] / 4
        assert again > asked / 4, "a fault, and its clearing, for less than four pages of memset"
    else:
        assert again < asked / 40, "for more than forty"
