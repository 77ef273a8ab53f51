# SPDX-License-Identifier: GPL-2.0
"""What a sentence calls a place, of real programs: neither what is compiled into them, nor a library with lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import golang
from harness import (
    MIB,
    SOURCES,
    Program,
    Recording,
    finish,
    load,
    record,
    site_line,
    start_record,
    tool,
    wait_slices,
    workload,
)

pytestmark = pytest.mark.root

ROUNDS, PAGES = 11, 307


def own_places(recording: Recording, own: str) -> dict[str, int]:
    """Of the stacks that have such a frame: what they are called, and how many pages were touched there."""
    return dict(
        recording.query(
            "SELECT p.code, COALESCE(SUM(f.pages), 0) FROM stack_place p"
            " LEFT JOIN fault f ON f.touched_stack = p.stack_id AND f.class = 'zero'"
            f" WHERE p.stack_id IN (SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE {own})"
            " GROUP BY 1"
        )
    )


# Code that is compiled into the program.

CPP = {"lines": ("-O2", "-g"), "lines, nothing inlined": ("-O0", "-g"), "names": ("-O1",)}
FILLS = ("by_vector", "by_string", "by_template", "by_instruction", "by_algorithm")


@pytest.mark.parametrize("form", CPP)
def test_cpp(out: Path, tmp_path: Path, form: str) -> None:
    """Templates, operators, functions that are one instruction: the place is the function that uses them."""
    program = tmp_path / "places"
    command = [tool("g++"), "-std=c++17", *CPP[form], SOURCES / "places.cc", "-o", program]
    subprocess.run([str(word) for word in command], check=True, timeout=60)
    recording = record(out, "--overhead-limit", "none", command=[program, str(ROUNDS), str(PAGES)])
    found = own_places(recording, "function GLOB 'by_*'")
    for name in FILLS:
        begins = f"places.cc:{site_line('places.cc', name)} ({name}" if "lines" in form else name
        pages = sum(count for place, count in found.items() if place.startswith(begins))
        # Of a block that is a mapping, one more has the allocator's words.
        assert ROUNDS * PAGES <= pages <= ROUNDS * (PAGES + 1), (name, found)
    if "lines" in form:
        assert all(place.startswith("places.cc:") for place in found), found
    else:
        assert all(place.startswith("by_") for place in found), found


GO = {
    "with DWARF": (),
    "trimmed": golang.INDEPENDENT,
    "trimmed and stripped": (*golang.INDEPENDENT, golang.STRIPPED),
}


@pytest.mark.parametrize("form", GO)
def test_go(out: Path, tmp_path: Path, form: str) -> None:
    program = golang.build(SOURCES / "packages.go", tmp_path / "packages", *GO[form])
    recording = record(out, command=[program, "2", str(16 * MIB)], env={"GOGC": "off"}, exact=False)
    found = own_places(recording, "function GLOB 'main.*' AND file GLOB '*packages.go'")
    assert all(place.startswith("packages.go:") for place in found), found
    # Fresh memory is touched in all of them, as nothing is collected; by which of its packages is Go's business.
    functions = {place.split("(main.")[1].rstrip(")") for place, pages in found.items() if pages}
    assert {"buffers", "repeats", "reads", "joins"} <= functions, found
    library = recording.query("SELECT COUNT(*) FROM frame WHERE line > 0 AND function GLOB 'bytes.*'")
    assert library != [(0,)]


# Code made at run time.

BESIDE, INSTALLED = "beside", "installed"
# A file that each system has there, in place of which the library stands, for this program alone.
SYSTEM = "/usr/lib/os-release"
# To clear them takes longer than whatever interrupts a call that maps.
CALLS, BLOCK = 401, 10 * MIB


def jitted(out: Path, where: str, *words: str) -> Recording:
    library = workload("libpasses.so")
    command: list[str | Path] = [workload("jitted"), library if where == BESIDE else SYSTEM, *words]
    if where == INSTALLED:
        mounted = ["--propagation", "private", "sh", "-c", f'mount --bind "$0" {SYSTEM} && exec "$@"', str(library)]
        command = [tool("unshare"), "--mount", *mounted, *command]
    with Program(*command, str(CALLS), str(BLOCK)) as program:
        map_of_names = Path(f"/tmp/perf-{program.lines[0]['pid']}.map")
        try:
            tracer = start_record(out, "--overhead-limit", "none", "-p", str(program.pid))
            wait_slices(out, 1)
            program.go()
            assert program.last()["rounds"] == CALLS
            result = finish(tracer)
        finally:
            map_of_names.unlink()
    assert result.status == 0, result
    return load(out, result)


def callers(recording: Recording) -> dict[str, int]:
    return dict(
        recording.query(
            "SELECT p.caller, SUM(c.calls) FROM call c JOIN stack_place p USING (stack_id)"
            " WHERE c.call = 'calloc' GROUP BY 1"
        )
    )


@pytest.mark.parametrize(
    ("where", "order", "place"),
    [
        (INSTALLED, "inner", "made_by_us ([jit])"),
        (INSTALLED, "outer", "made_by_us ([jit])"),
        # A library that lies with the program may be its own.
        (BESIDE, "inner", "pass_on"),
        (BESIDE, "outer", "made_by_us ([jit])"),
    ],
)
def test_code_made_at_run_time_and_a_library_with_lines(out: Path, where: str, order: str, place: str) -> None:
    recording = jitted(out, where, order, "kept")
    if place == "pass_on":
        place = f"libpasses.c:{site_line('libpasses.c', 'passes')} (pass_on)"
    # Its lines are there in both.
    functions = recording.query("SELECT function, MIN(line) > 0 FROM frame WHERE file GLOB '*/libpasses.c' GROUP BY 1")
    assert functions == [("pass_on" if order == "inner" else "call_back", 1)]
    assert callers(recording) == {place: CALLS}
    verdict = recording.report["verdict"]
    assert recording.dominant == "zeroing" and f"at {place}" in verdict["sentence"], verdict
    assert not any("frame pointers" in note for note in recording.report["notes"])


def test_stacks_that_end_in_code_made_at_run_time(out: Path) -> None:
    """It uses the register of the frame pointer for something else: nobody can tell who called it."""
    recording = jitted(out, BESIDE, "outer", "lost")
    assert callers(recording) == {"made_by_us ([jit])": CALLS}
    rows = recording.query(
        "SELECT stopped <> '', SUM(calls) FROM call JOIN stack USING (stack_id) WHERE call = 'calloc' GROUP BY 1"
    )
    assert rows == [(1, CALLS)]
    (note,) = [note for note in recording.report["notes"] if "frame pointers" in note]
    assert "end in code made at run time" in note and "Java" not in note
