# SPDX-License-Identifier: GPL-2.0
"""Frames of an interpreter in the stacks of a recording."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

from harness import (
    PAGE,
    Program,
    Recording,
    finish,
    load,
    query,
    start_record,
    wait_more_slices,
    wait_slices,
    wait_until,
)

# MEMTOLL_PYTHON_DEPTH: deeper frames of an interpreter are left out.
DEPTH = 48

Chain = tuple[tuple[str, int], ...]


def traced(path: Path, *command: str | Path, options: tuple[str, ...] = (), stays: bool = False) -> Recording:
    """From when it is there to its end: what the interpreter does to start is no part of it. The witness is all that
    it said. stays: after its last line, until its code has been read, and then is killed: what it would call to end
    nobody could read the names of.
    """
    with Program(*command) as program:
        tracer = start_record(path, *options, "-p", str(program.pid))
        wait_slices(path, 1)
        program.go()
        if stays:
            wait_until(lambda: bool({"faults", "done"} & program.lines[-1].keys()), "the program's last line")
            wait_more_slices(path, 2)
            program.process.kill()
        else:
            program.last()
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(path, result)
    recording.witness = program.lines
    return recording


def started(path: Path, last: str, *command: str | Path, options: tuple[str, ...] = ()) -> Recording:
    """From its first instruction, until the function that it calls last has its name: then its standard input ends. As
    it ends an interpreter takes its code down, which is read too late on a busy machine.
    """
    tracer = start_record(path, *options, "--", *command, stdin=subprocess.PIPE)
    wait_slices(path, 1)
    wait_until(lambda: bool(query(path, f"SELECT 1 FROM frame WHERE function = '{last}'")), f"{last} in the recording")
    result = finish(tracer)
    assert result.status == 0, result
    recording = load(path, result)
    assert recording.complete
    return recording


def alone(*command: str | Path) -> int:
    """Faults that the same program says of itself when nobody traces it."""
    with Program(*command) as program:
        program.go()
        return int(program.last()["faults"])


def chains(recording: Recording, kind: str) -> dict[int, Chain]:
    """Of each stack with such frames: function and line, innermost first."""
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for stack, function, line in recording.query(
        "SELECT stack_id, function, line FROM stack_frame JOIN frame USING (frame_id)"
        f" WHERE kind = '{kind}' ORDER BY stack_id, depth"
    ):
        found[stack].append((function, line))
    return {stack: tuple(chain) for stack, chain in found.items()}


def touched(recording: Recording, kind: str) -> dict[Chain, int]:
    """Bytes that were faulted in by each chain."""
    by_stack = chains(recording, kind)
    found: dict[Chain, int] = defaultdict(int)
    for stack, pages in recording.query("SELECT touched_stack, SUM(pages) FROM fault GROUP BY 1"):
        if stack in by_stack:
            found[by_stack[stack]] += pages * PAGE
    return found


def allocated(recording: Recording, kind: str, least: int, call: str = "malloc") -> dict[Chain, int]:
    """Bytes that such calls returned to each chain, in blocks of at least so many on average."""
    by_stack = chains(recording, kind)
    found: dict[Chain, int] = defaultdict(int)
    for stack, size in recording.query(
        f"SELECT stack_id, SUM(bytes) FROM call WHERE call = '{call}' GROUP BY 1"
        f" HAVING SUM(calls) > 0 AND SUM(bytes) >= SUM(calls) * {least}"
    ):
        found[by_stack.get(stack, ())] += size
    return found


def check_cases(found: dict[Chain, int], witness: list[dict[str, Any]], exact: bool) -> None:
    """Each case's memory is at its chain, and at no other one that begins alike."""
    for case in witness:
        chain = tuple((entry[0], entry[-1]) for entry in case["chain"])[:DEPTH]
        size = case["count"] * case["bytes"]
        assert size <= found[chain] <= (1 if exact else 1.01) * size, (case, found[chain])
        alike = {other: size for other, size in found.items() if other[:1] == chain[:1] and other != chain}
        assert not alike, (case, alike)


def woven(recording: Recording) -> bool:
    """All such frames stand where the interpreter's loops do."""
    return not recording.query("SELECT SUM(count) FROM loss WHERE name = 'python_unwoven'")[0][0]


def own(frames: list[dict[str, Any]], kind: str) -> tuple[str, str, int]:
    """The innermost one: its function, the name of its file, its line."""
    frame = next(frame for frame in frames if frame["kind"] == kind)
    return frame["function"], Path(frame["file"]).name, frame["line"]
