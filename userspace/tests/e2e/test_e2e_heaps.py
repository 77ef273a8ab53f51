# SPDX-License-Identifier: GPL-2.0
"""Memory of whole heaps of glibc's arenas: given back by madvise, by munmap, by brk, and got again.

heaps.c counts itself what leaves the process and what it faults in, but for its first round: all rounds do the
same, so of what is given back in them the last one's does not come again. With what is advised nothing of it goes,
which is proved on runs that nobody traces.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    PAGE,
    PATIENCE,
    Program,
    Recording,
    environment,
    finish,
    load,
    own_frame,
    record,
    site_line,
    start_record,
    wait_attached,
    workload,
)

pytestmark = pytest.mark.root

SIZE = 100_003
KEPT = 131072 // PAGE  # trim_threshold, and top_pad


@dataclass(frozen=True)
class Shape:
    name: str
    rounds: int
    count: int
    threads: int
    ways: frozenset[str]
    codes: frozenset[str]  # of the findings that may come first
    marker: str = "free"
    env: dict[str, str] = field(default_factory=dict)

    def command(self, *more: str) -> list[str | Path]:
        return [workload("heaps"), self.name, *map(str, (self.rounds, self.count, SIZE, self.threads)), *more]

    @property
    def margin(self) -> int:
        """Pages: what stays at the top of a heap that threads share depends on who frees last."""
        return 2 * KEPT * self.rounds if self.env else 0


SHAPES = {
    "forward": Shape("forward", 5, 2003, 1, frozenset({"heap", "dontneed"}), frozenset({"heap-storm", "trim-storm"})),
    "reverse": Shape("reverse", 4, 2003, 1, frozenset({"heap", "dontneed"}), frozenset({"trim-storm"})),
    "malloc_trim": Shape("trim", 4, 1009, 2, frozenset({"dontneed"}), frozenset({"own-storm"}), "trim"),
    "main": Shape("forward", 4, 709, 2, frozenset({"brk"}), frozenset({"trim-storm"}), env={"MALLOC_ARENA_MAX": "1"}),
}


def storms(recording: Recording) -> dict[str, dict[str, Any]]:
    given = {advice["code"]: advice for advice in recording.report["verdict"]["advice"]}
    return {code: advice for code, advice in given.items() if code.endswith("-storm")}


def plain(shape: Shape, tunables: str) -> int:
    """Faults of the program alone, nobody tracing it."""
    env = environment(shape.env | ({"GLIBC_TUNABLES": tunables} if tunables else {}))
    words = [str(word) for word in shape.command()]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return int(json.loads(done.stdout.splitlines()[-1])["faults"])


@pytest.fixture(scope="module", params=SHAPES)
def heaps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shape, Recording]:
    shape = SHAPES[str(request.param)]
    path = tmp_path_factory.mktemp("heaps") / "recording.memtoll"
    return shape, record(path, command=shape.command(), env=shape.env)


def assert_counted(shape: Shape, recording: Recording, witness: dict[str, Any], traced: int) -> None:
    """traced: rounds, the witness's and those before them, that were seen."""
    rows = recording.report["giveback"]
    gone, rounds = witness["gone_pages"], shape.rounds - 1
    assert gone >= 10_007 * rounds
    gave, again = (sum(row[f"{what}_bytes"] for row in rows) // PAGE for what in ("gave", "again"))
    assert abs(gave - gone * traced / rounds) <= shape.margin
    assert abs(again - gone * (traced - 1) / rounds) <= shape.margin
    assert {row["how"] for row in rows if row["gave_bytes"]} == shape.ways
    if "heap" in shape.ways:
        assert witness["gone_heaps"] == rounds
        assert sum(row["calls"] for row in rows if row["how"] == "heap") == traced


def assert_named(shape: Shape, recording: Recording, *getters: str) -> None:
    """Both ends, also by what is found."""
    free = site_line("heaps.c", shape.marker)
    got = [f" at heaps.c:{site_line('heaps.c', marker)} " for marker in getters]
    for row in recording.report["giveback"]:
        frame = own_frame(row["gave_at"])
        assert frame and frame["line"] == free
        assert row["gave_call"] == ("free" if shape.marker == "free" else "")
    assert recording.dominant == "zeroing"
    given = storms(recording)
    assert given and given.keys() <= shape.codes
    for one in given.values():
        assert re.search(rf"{shape.marker}\w* at heaps\.c:{free} |malloc_trim, called at heaps\.c:{free} ", one["text"])
        assert shape.marker == "trim" or any(place in one["text"] for place in got), one["text"]


def assert_first(shape: Shape, recording: Recording) -> None:
    """Before any finding that says it was used for the first time."""
    codes = [one["code"] for one in recording.report["verdict"]["advice"]]
    assert codes[0] in shape.codes, codes


def test_pages_that_come_again(heaps: tuple[Shape, Recording]) -> None:
    shape, recording = heaps
    assert_counted(shape, recording, recording.witness[-1], shape.rounds)


def test_both_ends_are_named(heaps: tuple[Shape, Recording]) -> None:
    shape, recording = heaps
    assert_named(shape, recording, "malloc")
    assert_first(shape, recording)
    for row in recording.report["giveback"]:
        frame = own_frame(row["got_at"])
        assert row["got_call"] == "malloc" and frame and frame["line"] == site_line("heaps.c", "malloc")


def test_calls_take_time(heaps: tuple[Shape, Recording]) -> None:
    """Those that give back are nearly all of the program's mapping calls that cost something."""
    _, recording = heaps
    rows = recording.report["giveback"]
    assert all(row["gave_s"] > 0 for row in rows if row["gave_bytes"])
    assert 0.5 < sum(row["gave_s"] for row in rows) / recording.toll("map", "time_s") <= 1.001


def test_blocks_move_no_threshold(heaps: tuple[Shape, Recording]) -> None:
    """None has a mapping of its own, also where the one that is freed goes with its heap."""
    _, recording = heaps
    moved = "SELECT COUNT(*) FROM threshold WHERE name = 'mmap_threshold' AND how = 'freed'"
    assert recording.query(moved) == [(0,)]


def test_advice_keeps_the_heaps(heaps: tuple[Shape, Recording]) -> None:
    """One trial, by whichever finding, and with it no page faults again; trim_threshold is not enough for arenas."""
    shape, recording = heaps
    trials = {advice["try"] for advice in recording.report["verdict"]["advice"] if advice["try"]}
    if shape.marker == "trim":
        assert not trials
        return
    (trial,) = trials
    tunables = re.search(r"GLIBC_TUNABLES=(\S+)", trial)
    assert tunables, trial
    before = plain(shape, "")
    assert plain(shape, tunables[1]) <= 0.01 * before
    alone = plain(shape, f"glibc.malloc.trim_threshold={512 * MIB}")
    assert (alone > 0.2 * before) == ("heap" in shape.ways), (alone, before)


@pytest.mark.parametrize("name", ["forward", "reverse", "malloc_trim"])
def test_attached_half_way(out: Path, name: str) -> None:
    """Of heaps that were there before nothing is known, but what is seen of them afterwards is."""
    shape = SHAPES[name]
    with Program(*shape.command("wait"), env=shape.env) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        witness = program.last()
        result = finish(tracer)
    assert result.status == 0
    recording = load(out, result)
    assert_counted(shape, recording, witness, shape.rounds - 1)
    assert_named(shape, recording, "malloc")
    assert_first(shape, recording)
