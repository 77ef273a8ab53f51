# SPDX-License-Identifier: GPL-2.0
"""Stacks of a recording as chains of names, found by nm in the program's file and not by memtoll."""

from __future__ import annotations

import bisect
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness import Recording, tool

# What a chain has in place of a run of frames that are not the program's own.
OTHERS = "*"


@dataclass(frozen=True)
class Symbol:
    start: int
    end: int
    name: str


def symbols(program: Path) -> list[Symbol]:
    """Functions of an unstripped file, ascending; parts that the compiler moved away bear their function's name."""
    lines = subprocess.run(
        [tool("nm"), "-C", "-S", "--defined-only", str(program)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWi] (.+)$", lines, re.M)
    all_of_them = [
        Symbol(int(start, 16), int(start, 16) + int(size, 16), re.sub(r"(\.cold| \[clone [^]]*\])+$", "", name))
        for start, size, name in found
    ]
    return sorted(all_of_them, key=lambda symbol: (symbol.start, symbol.end))


@dataclass(frozen=True)
class Frame:
    address: int
    function: str
    module: str
    offset: int


@dataclass(frozen=True)
class Stack:
    pid: int
    how: str
    complete: bool
    stopped: str
    frames: tuple[Frame, ...]


class Stacks:
    """All stacks of a recording; inlined functions are left out."""

    def __init__(self, recording: Recording) -> None:
        frames: dict[int, list[Frame]] = {}
        for stack_id, *frame in recording.query(
            "SELECT s.stack_id, s.address, f.function, f.module, f.module_offset"
            " FROM stack_frame s JOIN frame f USING (frame_id) WHERE NOT s.inlined ORDER BY s.stack_id, s.depth"
        ):
            frames.setdefault(stack_id, []).append(Frame(*frame))
        self.by_id = {
            stack_id: Stack(pid, how, bool(complete), stopped, tuple(frames.get(stack_id, ())))
            for stack_id, pid, how, complete, stopped in recording.query(
                "SELECT stack_id, pid, how, complete, stopped FROM stack"
            )
        }


class Program:
    """The file that runs, and its unstripped twin with the names. own: those of its source."""

    def __init__(self, file: Path, twin: Path, own: frozenset[str]) -> None:
        self.file = file
        self.twin = twin
        self.own = own

    @cached_property
    def _symbols(self) -> tuple[list[int], list[Symbol]]:
        mine = [symbol for symbol in symbols(self.twin) if symbol.name in self.own]
        return [symbol.start for symbol in mine], mine

    def name(self, frame: Frame) -> str:
        """Of the program's own function, else OTHERS."""
        if frame.module != str(self.file):
            return OTHERS
        starts, mine = self._symbols
        at = bisect.bisect_right(starts, frame.offset) - 1
        # A return address may be the first byte after its function.
        return mine[at].name if at >= 0 and frame.offset <= mine[at].end else OTHERS

    def chain(self, stack: Stack) -> tuple[str, ...]:
        """Names from the leaf on; a run of other modules' frames is one OTHERS."""
        names: list[str] = []
        for frame in stack.frames:
            name = self.name(frame)
            if name != OTHERS or not names or names[-1] != OTHERS:
                names.append(name)
        return tuple(names)


@dataclass(frozen=True)
class Call:
    """One row of table call, summed over slices."""

    pid: int
    call: str
    stack_id: int
    calls: int
    bytes: int


def calls(recording: Recording) -> list[Call]:
    rows = recording.query(
        "SELECT pid, call, stack_id, SUM(calls), SUM(bytes) FROM call WHERE calls > 0 GROUP BY pid, call, stack_id"
    )
    return [Call(*row) for row in rows]
