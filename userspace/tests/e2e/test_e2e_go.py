# SPDX-License-Identifier: GPL-2.0
"""Go programs, as they are shipped: without symbols and DWARF. The functions and lines are the runtime's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import golang
from harness import MIB, PAGE, SOURCES, Recording, record, site_line
from releases import others

pytestmark = pytest.mark.root

SOURCE = "memory.go"
ROUNDS, RETURNS = 4001, 23
NEWEST = "of the newest release"
FORMS = {
    "with DWARF": (),
    "stripped": (golang.STRIPPED,),
    "stripped, position-independent": (golang.STRIPPED, *golang.INDEPENDENT),
    NEWEST: (golang.STRIPPED,),
}


class Programs(dict[str, Path]):
    """By their forms, each built when it is asked for."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def __missing__(self, form: str) -> Path:
        release = golang.NEWEST if form == NEWEST else ""
        program = self.directory / f"program{len(self)}"
        self[form] = golang.build(SOURCES / SOURCE, program, *FORMS[form], release=release)
        return self[form]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("go"))


def functions(recording: Recording, program: Path) -> dict[str, int]:
    """Of the program's code: how many frames there are of each function. "" has none."""
    return dict(recording.query(f"SELECT function, COUNT(*) FROM frame WHERE module = '{program}' GROUP BY 1"))


def advice(recording: Recording) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in recording.report["verdict"]["advice"]}


@pytest.mark.parametrize("form", [*(form for form in FORMS if form != NEWEST), *others([NEWEST])])
def test_clearing_has_a_function_and_a_line(out: Path, programs: Programs, form: str) -> None:
    program = programs[form]
    recording = record(out, command=[program, "clears", str(ROUNDS), str(MIB)], exact=False)
    assert recording.witness[-1]["allocated"] >= ROUNDS * MIB
    assert recording.dominant == "zeroing", recording.report["verdict"]
    assert f"{SOURCE}:{site_line(SOURCE, 'clears')} (main.answer)" in recording.report["verdict"]["sentence"]
    top = max((site for site in recording.report["sites"] if site["toll"] == "zero.app"), key=lambda s: s["time_s"])
    frame = next(frame for frame in top["touched_at"] if Path(frame["file"]).name == SOURCE)
    assert (frame["function"], frame["line"]) == ("main.answer", site_line(SOURCE, "clears"))
    called = [frame["function"] for frame in top["touched_at"]]
    # Inlined and not, from the store to the goroutine's first function.
    assert called[0] == "runtime.memclrNoHeapPointers" and {"runtime.makeslice", "main.main"} <= set(called)
    assert called[-1] == "runtime.goexit"
    found = functions(recording, program)
    assert "" not in found and found["main.answer"] >= 1
    assert recording.report["stacks"]["whole_share"] >= 0.9, recording.report["stacks"]
    (said,) = [row["text"] for code, row in advice(recording).items() if code in ("memset-app", "app-double-clear")]
    assert "sync.Pool" in said and "calloc" not in said


@pytest.mark.parametrize("form", ["stripped", *others([NEWEST])])
def test_memory_that_the_program_returns(out: Path, programs: Programs, form: str) -> None:
    size = 48 * MIB
    recording = record(out, command=[programs[form], "returns", str(RETURNS), str(size)], exact=False)
    pages = RETURNS * size // PAGE
    assert recording.witness[-1]["minflt"] >= pages
    assert recording.toll("zero.kernel", "pages") >= pages * 0.99
    assert recording.dominant == "zeroing", recording.report["verdict"]
    # Go's own scavenger, which runs beside it, may have been first with any part of it.
    given = advice(recording)
    storms = {code: given[code]["text"] for code in ("own-storm", "allocator-storm") if code in given}
    assert storms, given
    for text in storms.values():
        assert f"{SOURCE}:{site_line(SOURCE, 'uses')} (main.use)" in text
        assert "GOMEMLIMIT" in text
    if "own-storm" in storms:
        assert f"{SOURCE}:{site_line(SOURCE, 'returns')} (main.release)" in storms["own-storm"]
        assert "debug.FreeOSMemory()" in storms["own-storm"]
    again = sum(row["again_bytes"] for row in recording.report["giveback"])
    # New is what no round had before: each may get another part of the heap.
    assert again >= RETURNS * size * 0.99 - recording.witness[-1]["heap"]


@pytest.mark.parametrize("form", ["stripped", *others([NEWEST])])
def test_a_buffer_that_is_kept(out: Path, programs: Programs, form: str) -> None:
    recording = record(out, command=[programs[form], "keeps", "997", str(MIB)], exact=False)
    assert recording.dominant == "compute"
    assert set(advice(recording)) == {"none"}
