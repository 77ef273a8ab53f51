# SPDX-License-Identifier: GPL-2.0
"""Libraries for data with allocators of their own: NumPy, Polars and Arrow, as pip installs them.

The program's own line is named, not one of theirs, and of each allocator its own variable.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

import pytest

import interpreted
import libraries
from contiguous import joined_bytes
from environments import python_with
from harness import MIB, PAGE, SOURCES, Recording, memtoll, site_line

pytestmark = [pytest.mark.root, pytest.mark.releases]

SCRIPT = "columns.py"
RELEASES: Final = ("numpy==2.4.6", "polars==2.1.0", "pyarrow==26.0.1")
# What the jemalloc that is in a library reads.
VARIABLE = {"polars": "_RJEM_MALLOC_CONF", "arrow": "JE_ARROW_MALLOC_CONF"}


@pytest.fixture(scope="module")
def python() -> Path:
    with libraries.patience():
        return python_with(RELEASES)


def command(python: Path, library: str, what: str, rounds: int, *variables: str) -> list[str | Path]:
    # Arrow has several allocators; the others do not read this.
    words: list[str | Path] = ["env", "ARROW_DEFAULT_MEMORY_POOL=jemalloc", *variables]
    return [*words, python, SOURCES / SCRIPT, library, what, str(rounds)]


def advice(recording: Recording) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in recording.report["verdict"]["advice"]}


@pytest.mark.parametrize(("library", "rounds"), [("polars", 7), ("arrow", 13)])
def test_memory_that_goes_back(out: Path, python: Path, library: str, rounds: int) -> None:
    recording = interpreted.traced(out, *command(python, library, "gives", rounds))
    faults = recording.witness[-1]["faults"]
    assert faults * PAGE >= rounds * recording.witness[-1]["bytes"]
    # At least one of a round's two columns is where another one has been; of jemalloc's ways to give back one is lazy.
    assert (
        sum(site["again_bytes"] for site in recording.report["giveback"])
        >= rounds // 2 * recording.witness[-1]["bytes"]
    )
    assert recording.dominant == "zeroing", recording.report["verdict"]
    place = f"{SCRIPT}:{site_line(SCRIPT, f'{library}-gives')} ({library}.<locals>.gives)"
    assert place in recording.report["verdict"]["sentence"]
    found = advice(recording)
    assert place in found["purge-storm"]["text"]
    setting = f"{VARIABLE[library]}=dirty_decay_ms:-1"
    assert setting in found["purge-storm"]["text"]
    assert ("ARROW_DEFAULT_MEMORY_POOL=mimalloc" in found["purge-storm"]["text"]) == (library == "arrow")
    for row in found.values():
        words = shlex.split(row["try"] or "")
        assert not [word for word in words if "MALLOC" in word and word != setting], row
    # It does what is said of it, by the kernel's count.
    other = ["ARROW_DEFAULT_MEMORY_POOL=mimalloc"] if library == "arrow" else []
    for words in ([setting], other):
        assert not words or interpreted.alone(*command(python, library, "gives", rounds, *words)) < 0.5 * faults


def test_mappings_that_numpy_makes_again(out: Path, python: Path) -> None:
    """Its memory is from malloc: glibc's thresholds are what decides."""
    rounds, before = 23, joined_bytes()
    recording = interpreted.traced(out, *command(python, "numpy", "gives", rounds))
    size = recording.witness[-1]["bytes"]
    assert recording.toll("zero.kernel", "bytes") >= rounds * size - (joined_bytes() - before)
    # To add and to sum takes about as long as to clear, which are huge pages here.
    place = f"{SCRIPT}:{site_line(SCRIPT, 'numpy-gives')} (numpy.<locals>.gives)"
    assert place in advice(recording)["map-storm"]["text"]
    assert "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=" in advice(recording)["map-storm"]["text"]


@pytest.mark.parametrize(("library", "rounds"), [("numpy", 101), ("polars", 13), ("arrow", 13)])
def test_columns_that_are_cleared(out: Path, python: Path, library: str, rounds: int) -> None:
    before = joined_bytes()
    recording = interpreted.traced(out, *command(python, library, "clears", rounds))
    joined = joined_bytes() - before
    assert recording.dominant == "zeroing", recording.report["verdict"]
    place = f"{SCRIPT}:{site_line(SCRIPT, f'{library}-clears')} ({library}.<locals>.clears)"
    assert place in recording.report["verdict"]["sentence"]
    if library == "numpy":
        assert recording.toll("zero.kernel", "bytes") >= rounds * recording.witness[-1]["bytes"] - 2 * MIB - joined
    else:
        assert recording.toll("zero.kernel", "count") >= 0.99 * recording.witness[-1]["faults"]


@pytest.mark.parametrize("library", ["numpy", "polars", "arrow"])
def test_columns_that_are_kept(out: Path, python: Path, library: str) -> None:
    recording = interpreted.traced(out, *command(python, library, "keeps", 211))
    assert recording.witness[-1]["faults"] * PAGE < recording.witness[-1]["bytes"]
    assert recording.dominant == "compute", recording.report["verdict"]
    assert set(advice(recording)) == {"none"}


def test_allocators_of_one_process_are_told_apart(out: Path, python: Path) -> None:
    """Each has what its own columns take, of all of which the kernel's count tells."""
    rounds = 5
    recording = interpreted.traced(out, *command(python, "several", "clears", rounds))
    by_module = {Path(row["module"]).name: row for row in recording.report["allocators"]}
    polars, arrow, libc = (
        next(row for name, row in by_module.items() if name.startswith(start))
        for start in ("_polars_runtime", "libarrow", "libc.")
    )
    assert {polars["kind"], arrow["kind"]} == {"jemalloc"} and libc["kind"] == "glibc"
    took = [row["tolls"].get("zero.kernel", 0.0) for row in (polars, arrow, libc)]
    whole = recording.toll("zero.kernel", "time_s")
    assert all(row["calls"] >= rounds for row in (polars, arrow, libc))
    # Each made a third of the columns: of 4 KiB pages, or, in part, of huge ones, which cost less.
    assert min(took) > 0 and 0.9 * whole <= sum(took) <= whole, (took, whole)
    full = " ".join(memtoll("report", "--full", out).stdout.split())
    assert full.count("Its calls and blocks: ") >= 3 and full.count("zero.kernel ") >= 3
