# SPDX-License-Identifier: GPL-2.0
"""--sample: one block in so many bytes is followed, its free pairs with it, and the intervals hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import Recording, assert_refused, memtoll, record, workload

pytestmark = pytest.mark.root

SITES = 101


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "sample.memtoll"


def test_intervals_hold_the_truth(out: Path) -> None:
    """A hundred sites are as many runs: each has a stack of its own and counts what it asked for itself.

    Of 101 intervals of 95 % some 96 hold; chance leaves less than 83 once in a million times.
    """
    recording = record(out, "--sample", "8K", command=[workload("sites"), str(SITES), "997"])
    truth = {line["site"]: line for line in recording.witness if "site" in line}
    rows = by_site(recording)
    assert len(truth) == SITES
    assert rows.keys() <= truth.keys()
    for figure, error in (("bytes", "bytes_error"), ("live_bytes", "live_bytes_error")):
        told = "bytes" if figure == "bytes" else "live"
        held = sum(abs(rows[site][figure] - truth[site][told]) <= rows[site][error] for site in rows)
        assert held >= 83, (figure, held)
        # The intervals say something: most are less than half of what they bound.
        narrow = sum(rows[site][error] < 0.75 * truth[site]["bytes"] for site in rows)
        assert narrow > 0.9 * SITES, (figure, narrow)
    estimate = sum(row["bytes"] for row in rows.values())
    assert estimate == pytest.approx(sum(line["bytes"] for line in truth.values()), rel=0.1)
    # What was not chosen is counted all the same, exactly.
    assert recording.report["calls"]["malloc"] >= SITES * 997


def by_site(recording: Recording) -> dict[int, dict[str, int]]:
    """Rows by the number that the chain of calls spells; inlined or cut frames would show here."""
    rows: dict[int, dict[str, int]] = {}
    for row in recording.report["sampled"]:
        chain = [frame["function"] for frame in row["allocated_at"] if frame["function"] in ("left", "right")]
        if len(chain) != 15:
            continue
        # Leaf first; the outermost call is left() in any case.
        bits = chain[:14][::-1]
        rows[sum((name == "right") << level for level, name in enumerate(bits))] = row
    return rows


def test_large_blocks_are_exact(out: Path) -> None:
    """What --min-size covers is followed one by one, as without."""
    command: list[str | Path] = [workload("calloc_loop"), str(1 << 20), "211"]
    recording = record(out, "--sample", "64K", "--probes", "alloc", command=command)
    site = recording.site("calloc_loop.c", "calloc", "calloc")
    assert (site.calls, site.freed) == (211, 211)
    assert recording.query("SELECT value FROM meta WHERE key = 'sample_bytes'") == [("65536",)]


def test_no_samples_without_the_option(out: Path) -> None:
    assert record(out, "--probes", "alloc", command=[workload("churn"), "1009"]).report["sampled"] == []


@pytest.mark.parametrize("size", ["0", "1", "x", "-5", "8G"])
def test_bad_sample(size: str, tmp_path: Path) -> None:
    assert_refused(memtoll("record", "--sample", size, "--", "true", cwd=tmp_path), 2, size)
