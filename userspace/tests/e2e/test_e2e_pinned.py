# SPDX-License-Identifier: GPL-2.0
"""Pages that the kernel faults in inside a system call, and pages that it frees behind one.

Witness: getrusage around the calls.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from faults import Faults
from harness import PAGE, Recording, integrity, record, workload

pytestmark = pytest.mark.root

SOURCE = "pinned.c"
PAGES = 2_003


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pinned") / "file"
    path.write_bytes(b"x" * PAGES * PAGE)
    return path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Recording:
    """Calls that are watched, one after the other."""
    words = [word for how in ("lock", "onfault", "madvise", "shared", "again", "direct") for word in (how, "3", PAGES)]
    path = tmp_path_factory.mktemp("watched") / "watched.memtoll"
    return record(path, command=[workload("pinned"), file, *map(str, words), "future", "1", "5003"])


def witness(recording: Recording, how: str) -> int:
    (line,) = (line for line in recording.witness if line["how"] == how)
    return int(line["faults"])


def cleared_for(watched: Recording, how: str) -> Faults:
    """Faults inside a call, but for the C library's own code, which comes in as it is needed."""
    faults = Faults(watched).touched(SOURCE, how)
    return Faults(watched, (row for row in faults.rows if row.area != "library"))


def test_every_page_is_counted(watched: Recording) -> None:
    check = watched.report["checks"]["minor_faults"]
    assert check["ok"], check


@pytest.mark.parametrize(
    ("how", "call", "owner"), [("lock", "mlock", "fresh"), ("madvise", "madvise", "fresh"), ("shared", "mmap", None)]
)
def test_pages_of_a_mapping_call(watched: Recording, how: str, call: str, owner: str | None) -> None:
    """New pages are cleared, and charged to the call that faults them in and to the mapping they are in."""
    assert witness(watched, how) in range(3 * PAGES, 3 * PAGES + 4)
    if how == "shared":  # `again` maps its memfd at the same line: its first round makes the pages
        cleared = Faults(watched).touched(SOURCE, "shared").of("zero_populated")
        assert (cleared.faults, cleared.pages) == (4 * PAGES, 4 * PAGES)
        assert {row.area for row in cleared.rows} == {"shared"}
    else:
        cleared = cleared_for(watched, how)
        assert (cleared.kinds, cleared.faults, cleared.pages) == ({"zero_populated"}, 3 * PAGES, 3 * PAGES)
        assert cleared.allocated(SOURCE, owner or "").pages == 3 * PAGES
    (row,) = watched.query(f"SELECT SUM(populated), SUM(populated_ns), SUM(cpu_ns) FROM map_call WHERE call = '{call}'")
    assert row[0] >= 3 * PAGES and 0 < row[1] < row[2]


def test_shared_memory_that_is_there_is_not_cleared(watched: Recording) -> None:
    """One fault brings 16 pages that are in the page cache."""
    there = Faults(watched).touched(SOURCE, "shared").of("shared_populated")
    assert there.faults == pytest.approx(witness(watched, "again"), abs=3)
    assert there.pages == pytest.approx(3 * PAGES, rel=0.02)


def test_locked_as_it_is_used(watched: Recording) -> None:
    assert witness(watched, "onfault") in range(3 * (PAGES // 10), 3 * (PAGES // 10) + 4)
    assert watched.query("SELECT COUNT(*) FROM map_call WHERE call = 'mlock2' AND populated > 0") == [(0,)]


def test_direct_read_into_a_fresh_buffer(watched: Recording) -> None:
    read = cleared_for(watched, "direct")
    assert (read.kinds, read.faults, read.pages) == ({"zero_populated"}, 3 * PAGES, 3 * PAGES)
    assert read.allocated(SOURCE, "fresh").pages == 3 * PAGES


def test_stack_of_a_thread_under_mlockall(watched: Recording) -> None:
    assert Faults(watched).touched(SOURCE, "thread").of("zero_populated").pages >= 5_003
    assert watched.query("SELECT SUM(populated) FROM map_call WHERE call = 'mprotect'")[0][0] >= 5_003


def test_what_is_there_already_is_never_called_unused(watched: Recording) -> None:
    assert watched.query("SELECT SUM(never_used_bytes) FROM block WHERE call = 'mmap'")[0][0] < 4 * PAGES * PAGE


def test_calls_that_are_not_watched(out: Path, file: Path) -> None:
    """CPU samples tell which, the kernel's count how many pages: zeroing, not computing."""
    recording = record(out, command=[workload("pinned"), file, "ring", "101", str(PAGES)])
    assert integrity(out) == "ok"
    faults = witness(recording, "ring")
    assert faults in range(101 * PAGES, 101 * PAGES + 50)
    assert recording.toll("zero.kernel", "pages") == pytest.approx(faults, rel=0.01)
    assert recording.dominant == "zeroing"
    assert "inside io_uring_register" in recording.report["verdict"]["sentence"]
    assert "populated" in [advice["code"] for advice in recording.report["verdict"]["advice"]]


def test_pages_of_shared_memory_that_are_made_and_freed(out: Path, file: Path) -> None:
    """fallocate and the last close: no mapping call is made, and no fault taken."""
    recording = record(out, command=[workload("pinned"), file, "store", "211", str(PAGES)])
    calls = {call for (call,) in recording.query("SELECT DISTINCT in_call FROM sample WHERE place = 'pages'")}
    assert calls >= {"fallocate", "close"}
    assert recording.dominant == "mapping"
    assert recording.toll("zero.kernel", "pages") < 100
