# SPDX-License-Identifier: GPL-2.0
"""Who allocates and maps, where all do so by one wrapper: operator new, or a function of the program's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import MIB, SOURCES, Recording, record, site_line, tool

pytestmark = pytest.mark.root

ROUNDS = 5003
MAPPED_ROUNDS = 211
# Callers of one wrapper, each by so many ways: sixteen callers' callers, and as many of theirs; and main() once.
PLACES, WAYS = 1009, 16
# Calls that a site may get of others before it is seen to have several callers: one in eight is looked at.
UNSEEN = 128


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wrapped") / "wrapped"
    source = SOURCES / "wrapped.cc"
    subprocess.run([tool("g++"), "-std=c++17", "-O2", "-g", source, "-o", path], check=True, timeout=60)
    return path


def called(recording: Recording, table: str, marker: str) -> int:
    """Calls of malloc, or of mmap in it, whose stack comes by the marked line."""
    line = site_line("wrapped.cc", marker)
    condition = "m.call = 'malloc'" if table == "call" else "m.call = 'mmap' AND m.in_call = 'malloc'"
    ((calls,),) = recording.query(
        f"""SELECT COALESCE(SUM(m.calls), 0) FROM {table} m WHERE {condition}
        AND EXISTS (SELECT 1 FROM stack_frame s JOIN frame f ON f.frame_id = s.frame_id
            WHERE s.stack_id = m.stack_id AND f.file LIKE '%/wrapped.cc' AND f.line = {line})"""
    )
    return int(calls)


@pytest.mark.parametrize("wrapper", ["new", "xmalloc"])
def test_small_blocks_belong_to_who_asked_for_them(out: Path, program: Path, wrapper: str) -> None:
    recording = record(out, command=[program, wrapper, str(ROUNDS), "3001"])
    start, once, twice = (called(recording, "call", marker) for marker in ("start", "once", "twice"))
    assert once + twice + start == 3 * ROUNDS + 1
    assert 1 <= start <= UNSEEN
    assert ROUNDS - UNSEEN <= once <= ROUNDS
    assert 2 * ROUNDS - UNSEEN <= twice <= 2 * ROUNDS


@pytest.mark.parametrize("wrapper", ["new", "xmalloc"])
def test_mappings_belong_to_who_asked_for_them(out: Path, program: Path, wrapper: str) -> None:
    recording = record(out, command=[program, wrapper, str(MAPPED_ROUNDS), str(41 * MIB)])
    assert called(recording, "map_call", "start") == 0
    assert called(recording, "map_call", "once") == MAPPED_ROUNDS
    assert called(recording, "map_call", "twice") == 2 * MAPPED_ROUNDS
    advice = {each["code"]: each["text"] for each in recording.report["verdict"]["advice"]}
    # In milliseconds: which of the two took longer is the machine's.
    places = [f"wrapped.cc:{site_line('wrapped.cc', name)} ({name}" for name in ("once", "twice")]
    assert sum(place in advice["map-storm"] for place in places) == 1
    assert "at_start" not in advice["map-storm"]


def many_places(directory: Path) -> Path:
    lines = [
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>",
        '#define APART(n) __asm__ volatile("" : : "i"(n) : "memory")',
        "static void *volatile sink;",
        "__attribute__((noinline)) static void *xmalloc(size_t n) { void *b = malloc(n); APART(0); return b; }",
        *(
            f"__attribute__((noinline)) static void place_{i}(void) {{ free(sink = xmalloc(3001)); APART({i}); }}"
            for i in range(PLACES)
        ),
        f"static void (*const places[])(void) = {{ {', '.join(f'place_{i}' for i in range(PLACES))} }};",
        *(f"__attribute__((noinline)) static void near_{i}(int k) {{ places[k](); APART({i}); }}" for i in range(WAYS)),
        f"static void (*const nears[])(int) = {{ {', '.join(f'near_{i}' for i in range(WAYS))} }};",
        *(
            f"__attribute__((noinline)) static void far_{i}(int j, int k) {{ nears[j](k); APART({i}); }}"
            for i in range(WAYS)
        ),
        f"static void (*const fars[])(int, int) = {{ {', '.join(f'far_{i}' for i in range(WAYS))} }};",
        "int main(void) {",
        '    printf("{\\"pid\\": %d}\\n", getpid()); fflush(stdout);',
        f"    for (int k = 0; k < {PLACES}; k++) {{",
        "        places[k]();",
        f"        for (int i = 0; i < {WAYS}; i++) for (int j = 0; j < {WAYS}; j++) fars[i](j, k);",
        "    }",
        "}",
    ]
    source, path = directory / "places.c", directory / "places"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run([tool("gcc"), "-O1", "-g", source, "-o", path], check=True, timeout=60)
    return path


def test_of_a_thousand_callers_each_has_its_own(out: Path, tmp_path: Path) -> None:
    """Their callers are a hundred times as many, and no more than these matter."""
    recording = record(out, command=[many_places(tmp_path)])
    calls = dict(
        recording.query(
            """SELECT f.function, SUM(c.calls) FROM call c JOIN stack_frame s ON s.stack_id = c.stack_id AND s.depth = 2
            JOIN frame f ON f.frame_id = s.frame_id WHERE c.call = 'malloc' AND f.function LIKE 'place_%' GROUP BY 1"""
        )
    )
    every = WAYS * WAYS + 1
    # One or another whose stack was walked before the program's code was known ends there: unwind_mapping.
    assert 0.99 * PLACES * every <= sum(calls.values()) <= PLACES * every
    # Of those whose notes have no room, some thirty by where they lie, all are the first one's.
    assert sum(count == every for count in calls.values()) >= 0.9 * PLACES, sorted(calls.values())
