# SPDX-License-Identifier: GPL-2.0
"""The judgements on shared memory: new pages of it, and pages that others have made. No root, no tracer."""

from __future__ import annotations

from typing import Any

import pytest

from facts import MIB, MS, US, Facts


@pytest.fixture
def backends() -> Facts:
    """Three processes, a second each; the price of a fault is what it takes."""
    made = Facts()
    made.prices()
    made.slice()
    for pid in (42, 43, 44):
        made.process(pid, "backend")
        made.cpu(100 * MS, pid, rss_bytes=23 * MIB)
    return made


def place(made: Facts) -> int:
    return made.stack(("read_pages", "/src/backend.c", 23), ("main", "/src/backend.c", 43))


def advice(made: Facts) -> dict[str, str]:
    return {row["code"]: row["text"] for row in made.rows("SELECT code, text FROM finding")}


def map_in(made: Facts, segment: str, pids: tuple[int, ...], **columns: Any) -> None:
    for pid in pids:
        made.fault(
            "shared_minor",
            9_973,
            8 * US,
            pid=pid,
            touched_stack=place(made),
            **({"area": "shared", "area_name": segment} | columns),
        )


@pytest.mark.parametrize(
    ("segment", "said_as", "remedy"),
    [
        ("/SYSV0052e2c1", "System V, key 0x0052e2c1", "SHM_HUGETLB"),
        ("/memfd:pool", "/memfd:pool", "MFD_HUGETLB"),
        ("/dev/shm/pool", "/dev/shm/pool", "huge=within_size"),
    ],
)
def test_pages_that_others_made(backends: Facts, segment: str, said_as: str, remedy: str) -> None:
    map_in(backends, segment, (42, 43, 44))
    said = backends.one("SELECT * FROM verdict")["sentence"]
    assert said.startswith("Mapping shared memory in takes")
    assert f"29,919 faults map 117 MiB that are there already ({said_as}) into 3 processes" in said
    assert "File access" not in said
    given = advice(backends)
    assert "file-fault" not in given
    assert remedy in given["shared-map"]
    assert "Each of 3 processes pays" in given["shared-map"]
    assert "read()" not in given["shared-map"]
    assert backends.toll("zero.kernel")["count"] == 0


def test_one_process_alone(backends: Facts) -> None:
    backends.database.execute("DELETE FROM process_slice WHERE pid > 42")
    map_in(backends, "/memfd:ring", (42,))
    assert "into one process" in backends.one("SELECT * FROM verdict")["sentence"]
    assert "A mapping that is kept pays once" in advice(backends)["shared-map"]


def test_files_are_none_of_it(backends: Facts) -> None:
    """Faults on files keep their own advice, and its gain is of theirs alone."""
    map_in(backends, "/memfd:ring", (42,))
    backends.fault("file_minor", 19_937, 8 * US, pid=43, area="file", area_name="/srv/data")
    said = backends.one("SELECT * FROM verdict")["sentence"]
    assert said.startswith("File access takes")
    assert "19,937 faults map file pages" in said
    gain = {row["code"]: row["gain"] for row in backends.rows("SELECT code, gain FROM finding")}
    assert gain["file-fault"] == pytest.approx(2 * gain["shared-map"], rel=0.01)


def test_new_pages_are_cleared(backends: Facts) -> None:
    backends.database.execute("DELETE FROM process_slice WHERE pid > 42")
    backends.fault(
        "shared_zero", 19_937, 8 * US, touched_stack=place(backends), area="shared", area_name="/SYSV0052e2c1"
    )
    assert backends.toll("zero.kernel")["count"] == 19_937
    assert backends.toll("zero.kernel")["pages"] == 19_937
    assert backends.toll("file.fault")["count"] == 0
    assert backends.one("SELECT * FROM verdict")["dominant"] == "zeroing"
    told = advice(backends)["first-touch"]
    assert "New pages of shared memory (System V, key 0x0052e2c1), touched at backend.c:23 (read_pages)" in told
    assert "shmem_enabled" in told
    # Of anonymous memory nobody speaks of segments.
    backends.database.execute("UPDATE fault SET class = 'zero', area = 'anon', area_name = ''")
    told = advice(backends)["first-touch"]
    assert "shared memory" not in told
    assert "shmem_enabled" not in told
