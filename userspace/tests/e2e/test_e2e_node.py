# SPDX-License-Identifier: GPL-2.0
"""Functions of JavaScript in stacks of Node.js, started without any option. The witness is V8's stack of an Error."""

from __future__ import annotations

import signal
from collections import defaultdict
from pathlib import Path

import pytest

import interpreted
import nodejs
from harness import (
    MIB,
    PAGE,
    SOURCES,
    Program,
    Recording,
    finish,
    load,
    lost,
    site_line,
    start_record,
    stop,
    tool,
    wait_slices,
    wait_until,
)
from releases import others

pytestmark = pytest.mark.root

SCRIPT = "memory.js"
ROUNDS, BLOCK = 1009, 4 * MIB
# Buffers of more than glibc ever keeps in its heap; and arrays, which have pages of V8's own.
RETURNS = [("returns", "fetch", 13, 40 * MIB), ("lists", "list", 43, 8 * MIB)]
NEWEST = max(nodejs.RELEASES)
CASES = {"nested", "through the engine", "constructor", "not ASCII"}


def advice(recording: Recording) -> dict[str, str]:
    return {row["code"]: row["text"] for row in recording.report["verdict"]["advice"]}


def nameless(recording: Recording) -> int:
    """Stacks in which code that V8 made has no name."""
    return int(
        recording.query(
            "SELECT COUNT(DISTINCT stack_id) FROM stack_frame JOIN frame USING (frame_id)"
            " WHERE kind = 'jit' AND function = '' AND stack_id NOT IN"
            " (SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE kind = 'javascript')"
        )[0][0]
    )


@pytest.mark.parametrize(
    ("release", "workers"), [("", 0), ("", 3), *others((release, 0) for release in nodejs.RELEASES)], ids=str
)
def test_every_chain_is_the_engines(out: Path, release: str, workers: int) -> None:
    """... also where each of several threads has an engine of its own."""
    options = ("--overhead-limit", "none", "--probes", "alloc")
    words = ("stacks", str(workers)) if workers else ("stacks",)
    node = nodejs.of(release)
    recording = interpreted.traced(out, node, SOURCES / SCRIPT, *words, options=options, stays=True)
    witness = [line for line in recording.witness if "case" in line]
    assert sorted(line["case"] for line in witness) == sorted([*CASES] * (workers or 1))
    least = witness[0]["bytes"]
    found: dict[tuple[str, ...], int] = defaultdict(int)
    lines: set[int] = set()
    for chain, size in interpreted.allocated(recording, "javascript", least, "calloc").items():
        names = [name for name, _ in chain]
        if "allocate" in names:
            at = names.index("allocate")
            lines.add(chain[at][1])
            found[tuple(names[at + 1 : names.index("stacks")])] += size
    # Functions that V8 compiles together have one frame: these few rounds are interpreted.
    for case in witness:
        called = tuple(case["chain"][: case["chain"].index("stacks")])
        assert found[called] == case["count"] * case["bytes"] * (workers or 1), (case, found)
    assert lines == {site_line(SCRIPT, "allocates")}
    assert not nameless(recording)
    assert lost(out, "python_unreadable") == 0


def test_names_that_are_gone_are_counted(out: Path) -> None:
    """The tracer does not get on until the program has ended: its calls are counted, its frames have no names."""
    with Program(tool("node"), SOURCES / SCRIPT, "stacks") as program:
        tracer = start_record(out, "--overhead-limit", "none", "--probes", "alloc", "-p", str(program.pid))
        wait_slices(out, 1)
        stop(tracer)
        program.go()
        wait_until(lambda: "faults" in program.lines[-1], "the program's last line")
        program.go()
        program.last()
        tracer.send_signal(signal.SIGCONT)
        result = finish(tracer)
    recording = load(out, result)
    witness = [line for line in program.lines if "case" in line]
    found = interpreted.allocated(recording, "javascript", witness[0]["bytes"], "calloc")
    assert found == {(): sum(case["count"] * case["bytes"] for case in witness)}
    # Of the four chains at least what makes the buffer, allocate() and stacks().
    assert lost(out, "python_unreadable") >= 4 * 4


@pytest.mark.parametrize("release", ["", *others([NEWEST])])
def test_clearing(out: Path, release: str) -> None:
    recording = interpreted.traced(out, nodejs.of(release), SOURCES / SCRIPT, "clears", str(ROUNDS), str(BLOCK))
    # The newest marks what is alive beside it, on threads of its own, for about as long.
    sentence = recording.report["verdict"]["sentence"]
    assert recording.dominant == "zeroing" or (release and "most in zeroing" in sentence), recording.report["verdict"]
    # Compiled, the function may be a part of its caller.
    places = [
        f"{SCRIPT}:{site_line(SCRIPT, site)} ({name})" for site, name in (("clears", "answer"), ("works", "work"))
    ]
    said = " ".join([sentence, *advice(recording).values()])
    assert any(place in said for place in places), said
    # Not in all runs is there an advice: V8 decides when buffers are collected, and so what is used again.
    for code, text in advice(recording).items():
        assert not code.startswith("calloc-") or "Buffer.allocUnsafe()" in text
    assert nameless(recording) <= 0.1 * recording.query("SELECT COUNT(*) FROM stack")[0][0]
    assert recording.report["stacks"]["whole_share"] >= 0.9, recording.report["stacks"]


@pytest.mark.parametrize("release", ["", *others([NEWEST])])
@pytest.mark.parametrize(("what", "function", "rounds", "size"), RETURNS)
def test_memory_that_goes_back(out: Path, what: str, function: str, rounds: int, size: int, release: str) -> None:
    words = (str(rounds), str(size))
    recording = interpreted.traced(out, nodejs.of(release), SOURCES / SCRIPT, what, *words)
    faults = recording.witness[-1]["faults"]
    assert faults * PAGE >= rounds * size
    assert recording.toll("zero.kernel", "pages") >= 0.95 * faults
    # The collector's threads may be late with one, and the next is in another place then.
    assert sum(row["again_bytes"] for row in recording.report["giveback"]) >= rounds // 2 * size
    place = f"{SCRIPT}:{site_line(SCRIPT, what)} ({function})"
    storms = {code: text for code, text in advice(recording).items() if code.endswith("-storm")}
    assert storms and all(place in text for text in storms.values()), advice(recording)
    assert ("own-storm" in storms) == (what == "lists"), storms
    assert all("Node.js" in text and "kept" in text for text in storms.values()), storms
    # What the advice says of it.
    assert interpreted.alone(nodejs.of(release), SOURCES / SCRIPT, "keeps", *words) < 0.1 * faults


@pytest.mark.parametrize("release", ["", *others([NEWEST])])
def test_buffer_that_is_kept(out: Path, release: str) -> None:
    recording = interpreted.traced(out, nodejs.of(release), SOURCES / SCRIPT, "keeps", str(ROUNDS), str(BLOCK))
    assert recording.witness[-1]["faults"] < 4 * BLOCK // PAGE
    assert recording.dominant == "compute", recording.report["verdict"]
    assert set(advice(recording)) == {"none"}
    functions = {name for (name,) in recording.query("SELECT function FROM frame WHERE kind = 'javascript'")}
    assert functions & {"change", "work"}, functions
