# SPDX-License-Identifier: GPL-2.0
"""glibc's thresholds: what they are, when they changed, and which call changed them.

Witnesses: glibc's rules (mallopt(3)), mallinfo2(3) in the workload, and what it sets itself by mallopt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    PAGE,
    Program,
    Recording,
    finish,
    load,
    memtoll,
    own_frame,
    record,
    site_line,
    start_record,
    wait_attached,
    wait_slices,
    workload,
)

pytestmark = pytest.mark.root

DEFAULT = 131072


def state(recording: Recording) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in recording.report["thresholds"]}


def changes(recording: Recording, name: str) -> list[tuple[int, int | None, str]]:
    rows = recording.query(
        f"SELECT low_bytes, high_bytes, how FROM threshold WHERE name = '{name}' ORDER BY time_ns, rowid"
    )
    return [(low, high, how) for low, high, how in rows]


def mapping_of(size: int) -> int:
    return -(-(size + 16) // PAGE) * PAGE


def test_dynamic_rule(out: Path) -> None:
    """Each free of a larger mapped block raises it; the last is beyond glibc's limit of 32 MiB."""
    sizes = [200_000, 150_000, 3 * MIB, 33 * MIB]
    recording = record(out, command=[workload("mallopts"), "keep", *map(str, sizes)])
    # mallinfo2: 150,000 bytes came from the heap, by then.
    assert recording.witness[0]["mapped"] == 3
    moved = [mapping_of(200_000), mapping_of(3 * MIB)]
    found = changes(recording, "mmap_threshold")
    assert [row for row in found if row[2] == "freed"] == [(size, size, "freed") for size in moved]
    assert found[0] == (DEFAULT, DEFAULT, "default")
    assert [row for row in changes(recording, "trim_threshold") if row[2] == "freed"] == [
        (2 * size, 2 * size, "freed") for size in moved
    ]
    rows = recording.query("SELECT DISTINCT stack_id FROM threshold WHERE how = 'freed'")
    assert len(rows) == 1
    in_free = recording.query(
        "SELECT COUNT(*) FROM threshold t JOIN stack_frame s USING (stack_id) JOIN frame f USING (frame_id)"
        f" WHERE t.how = 'freed' AND f.function = 'drop_block' AND f.line = {site_line('mallopts.c', 'free')}"
    )
    assert in_free == [(4,)]


def test_set_by_mallopt(out: Path) -> None:
    """A running process: the values are read from libc; a change without a free is no free's doing."""
    with Program(workload("mallopts"), "set", "3145728") as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "none")
        wait_attached(tracer, program.pid)
        wait_slices(out, 1)
        program.go()
        count = len(program.lines)
        wait_slices(out, 3)
        assert len(program.lines) >= count
        program.go()
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    now = state(recording)
    expected = {"mmap_threshold": 7 * MIB, "trim_threshold": 5 * MIB, "top_pad": 3 * MIB}
    for name, value in expected.items():
        row = now[name]
        assert row["low_bytes"] <= value <= (row["high_bytes"] or value), row
        assert row["how"] != "freed", row
        assert row["changes"] == 1, row
    # What the first look found: the free before it had raised it.
    first = changes(recording, "mmap_threshold")[0]
    assert first == (mapping_of(3 * MIB), mapping_of(3 * MIB), "read")


def test_tunables(out: Path) -> None:
    tunables = "glibc.malloc.mmap_threshold=262144:glibc.malloc.top_pad=65536"
    recording = record(
        out, command=[workload("mallopts"), "keep", "300000", "200000"], env={"GLIBC_TUNABLES": tunables}
    )
    now = state(recording)
    assert (now["mmap_threshold"]["low_bytes"], now["mmap_threshold"]["how"]) == (262144, "tunable")
    assert (now["top_pad"]["low_bytes"], now["top_pad"]["how"]) == (65536, "tunable")
    assert recording.witness[0]["mapped"] == 1
    assert not [row for row in changes(recording, "mmap_threshold") if row[2] == "freed"]


def test_text_and_place(out: Path) -> None:
    recording = record(out, command=[workload("mallopts"), "keep", "10485760"])
    text = memtoll("report", "--full", recording.path).stdout
    assert "GLIBC'S THRESHOLDS" in text
    line = site_line("mallopts.c", "free")
    rows = recording.query("SELECT low_bytes FROM threshold WHERE how = 'freed' AND name = 'trim_threshold'")
    assert rows == [(2 * mapping_of(10 * MIB),)]
    assert f"{mapping_of(10 * MIB):,}" in text
    assert f"free at mallopts.c:{line}" in " ".join(text.split())


def test_another_allocator_has_none(out: Path) -> None:
    recording = record(out, command=[workload("mallopts"), "keep", "10485760"], env={"LD_PRELOAD": "libjemalloc.so.2"})
    assert recording.report["thresholds"] == []
    assert "GLIBC'S THRESHOLDS" not in memtoll("report", "--full", recording.path).stdout
    assert own_frame(recording.report["allocations"][0]["allocated_at"])
