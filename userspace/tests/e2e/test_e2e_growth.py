# SPDX-License-Identifier: GPL-2.0
"""Blocks that grow by realloc: what moved, what was copied for it, and whether growth is by a factor.

The workload counts for itself where its block came to another place. mimalloc copies wherever a size class
ends, and its realloc goes on by a jump to a function that the library does not export.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import libraries
from harness import Recording, record, site_line, workload

pytestmark = pytest.mark.root

STEP = 4099
SIZE = 3000017


def grower(out: Path, rounds: int, step: str, *options: str) -> Recording:
    """Without options every call is watched."""
    env = {"LD_PRELOAD": str(libraries.preloadable("mimalloc"))}
    command: list[str | Path] = [workload("grower"), str(rounds), step, str(SIZE)]
    return record(out, *options, command=command, env=env, exact=not options)


def check_counts(recording: Recording) -> None:
    witness = recording.witness[-1]
    (counted,) = recording.query("SELECT SUM(grown_calls), SUM(copied_calls), SUM(copied_bytes) FROM call")
    assert counted == (witness["grown"], witness["moved"], witness["moved_bytes"])
    assert witness["moved"] > 0


def test_small_steps(out: Path) -> None:
    recording = grower(out, 37, str(STEP))
    check_counts(recording)
    advice = {each["code"]: each["text"] for each in recording.report["verdict"]["advice"]}
    assert (
        f"realloc at grower.c:{site_line('grower.c', 'grow')} (grow) makes blocks larger by 4.00 KiB"
        in (advice["small-steps"])
    )
    assert recording.query("SELECT SUM(grown_bytes) / SUM(grown_calls) FROM call") == [(STEP,)]


def test_growth_by_a_factor(out: Path) -> None:
    recording = grower(out, 101, "factor")
    check_counts(recording)
    assert "small-steps" not in {each["code"] for each in recording.report["verdict"]["advice"]}


@pytest.mark.parametrize("limit", ["none", "0", "1"])
def test_frames_without_a_name_are_the_allocators(out: Path, limit: str) -> None:
    """Samples which no probe has marked: of free where all is watched, else of all outside of the windows."""
    recording = grower(out, 701, str(STEP), "--overhead-limit", limit)
    # Not what it does before it is called, at its load, nor what the dynamic linker does at its first calls.
    inside = """FROM sample s WHERE EXISTS (SELECT 1 FROM stack_frame l JOIN frame f ON f.frame_id = l.frame_id
        WHERE l.stack_id = s.stack_id AND l.depth < 4 AND f.module LIKE '%/libmimalloc.so%')
        AND EXISTS (SELECT 1 FROM stack_line l WHERE l.stack_id = s.stack_id AND l.function = 'build')
        AND NOT EXISTS (SELECT 1 FROM stack_frame l JOIN frame f ON f.frame_id = l.frame_id
        WHERE l.stack_id = s.stack_id AND f.module LIKE '%/ld-linux%')"""
    assert recording.query(f"SELECT COALESCE(SUM(samples), 0) > 0 {inside} AND place = 'allocator'") == [(1,)]
    assert recording.query(f"SELECT COALESCE(SUM(samples), 0) {inside} AND place IN ('user', 'copy', 'kernel')") == [
        (0,)
    ]
