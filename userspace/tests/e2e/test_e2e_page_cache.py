# SPDX-License-Identifier: GPL-2.0
"""Pages of files that are pushed out and read again, in a memory cgroup and without swap.

Witnesses: the program's own count of the pages it used, and the kernel's count of pages that came back to the group.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from harness import (
    MIB,
    PAGE,
    WORKLOADS,
    Program,
    Recording,
    finish,
    load,
    record,
    site_line,
    start_record,
    wait_attached,
    wait_until,
    workload,
)
from leftovers import noted
from swapping import in_cgroup, make_cgroup, set_limit

pytestmark = pytest.mark.root

PAGES: Final = 10_007
LIMIT: Final = 24 * MIB


@pytest.fixture(scope="module")
def data() -> Iterator[Path]:
    """A file of 39 MiB, each page of which begins with a function that returns; none of it in memory."""
    path = WORKLOADS / f"filewalk.{os.getpid()}.data"
    with noted("file", path):
        with path.open("wb") as file:
            for page in range(PAGES):
                file.write(b"\xc3" + bytes([page & 0xFF]) * (PAGE - 1))
            file.flush()
            os.fsync(file.fileno())
        yield path


@pytest.fixture
def box(data: Path) -> Iterator[Path]:
    """A cgroup of 24 MiB."""
    with data.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with ExitStack() as stack:
        yield make_cgroup(stack, LIMIT)


def refaults(cgroup: Path) -> int:
    rows = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    return int(rows["workingset_refault_file"])


def walk(out: Path, box: Path, data: Path, *words: str) -> tuple[Recording, dict[str, Any]]:
    recording = record(out, command=in_cgroup(box, workload("filewalk"), data, *words))
    return recording, recording.report["page_cache"]


def advice(recording: Recording) -> set[str]:
    return {advice["code"] for advice in recording.report["verdict"]["advice"]}


def assert_sweep(recording: Recording, data: Path, passes: int, rel: float = 0.02) -> None:
    """All passes over all pages; those after the first bring back what was thrown out."""
    cache, said = recording.report["page_cache"], recording.report["verdict"]["sentence"]
    assert (cache["thrash"], cache["pattern"], cache["path"]) == (True, "cyclic sweep", str(data))
    assert cache["again_pages"] == pytest.approx((passes - 1) * PAGES, rel=rel)
    assert cache["returns"] == pytest.approx(passes - 1, rel=rel)
    assert cache["limit_bytes"] == LIMIT
    # All of the file, and next to nothing else is there.
    assert PAGES * PAGE <= cache["fits_bytes"] <= PAGES * PAGE + 2 * MIB
    assert "page cache thrashes" in said
    assert "24.0 MiB" in said
    assert "file-thrash" in advice(recording)
    assert not advice(recording) & {"file-fault", "file-reread", "file-read"}


def test_cyclic_sweep(out: Path, box: Path, data: Path) -> None:
    """Pages come in by read-ahead in minor faults, many at once: no count of faults shows it."""
    recording, cache = walk(out, box, data, "4")
    assert recording.dominant == "file"
    assert recording.witness[-1]["used"] == 4 * PAGES
    assert recording.witness[-1]["majflt"] < PAGES // 10
    assert_sweep(recording, data, 4)
    # A folio of several pages is one return to the kernel.
    assert PAGES // 8 < refaults(box) <= cache["again_pages"] + cache["vain_pages"]


def test_attached(out: Path, box: Path, data: Path) -> None:
    with Program(*in_cgroup(box, workload("filewalk"), data, "4", "--wait")) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        witness = program.last()
        result = finish(tracer)
    assert witness["used"] == 4 * PAGES
    assert result.status == 0, result
    # What it used while its probes were being attached comes in again as if for the first time.
    assert_sweep(load(out, result), data, 4, rel=0.05)


def test_one_pass_is_no_thrash(out: Path, box: Path, data: Path) -> None:
    """What read-ahead brought may be gone when its turn comes, and come again: it is used once."""
    recording, cache = walk(out, box, data, "1")
    assert cache["filled_pages"] >= PAGES
    assert cache["again_pages"] < PAGES // 20
    assert (cache["thrash"], cache["pattern"]) == (False, "one-pass sweep")
    assert "thrash" not in recording.report["verdict"]["sentence"]
    assert "file-thrash" not in advice(recording)


def test_random_order(out: Path, box: Path, data: Path) -> None:
    """With MADV_RANDOM each page comes by itself: the kernel's count is ours."""
    recording, cache = walk(out, box, data, "2", "--random", "--rare")
    assert recording.witness[-1]["used"] == 2 * PAGES
    assert cache["filled_pages"] == pytest.approx(recording.witness[-1]["majflt"], abs=16)
    assert cache["again_pages"] == pytest.approx(refaults(box), abs=16)
    assert cache["vain_pages"] < 16
    assert (cache["thrash"], cache["pattern"]) == (True, "random")
    assert "in no order" in recording.report["verdict"]["sentence"]
    assert advice(recording) == {"file-thrash"}
    # Those that came again were remembered in the page cache, and are a class of their own.
    ((again,),) = recording.query("SELECT SUM(pages) FROM fault WHERE class = 'file_again_major'")
    assert again == pytest.approx(cache["again_pages"], abs=16)


def test_pread(out: Path, box: Path, data: Path) -> None:
    recording, cache = walk(out, box, data, "3", "--pread")
    assert recording.witness[-1]["used"] == 3 * PAGES
    assert_sweep(recording, data, 3)
    assert cache["again_pages"] + cache["vain_pages"] == pytest.approx(refaults(box), rel=0.02)


def test_code_pages(out: Path, box: Path, data: Path) -> None:
    recording, cache = walk(out, box, data, "3", "--text")
    assert (cache["thrash"], cache["code"], cache["path"]) == (True, True, str(data))
    assert cache["again_pages"] == pytest.approx(2 * PAGES, rel=0.02)
    assert "the program's own code" in recording.report["verdict"]["sentence"]
    (text,) = (a["text"] for a in recording.report["verdict"]["advice"] if a["code"] == "file-thrash")
    assert "own code (text)" in text


@pytest.mark.parametrize(
    ("words", "how", "marker"),
    [(["--give", "pageout"], "madvise", "pageout"), (["--pread", "--give", "fadvise"], "fadvise", "fadvise")],
)
def test_given_back_by_the_program(out: Path, box: Path, data: Path, words: list[str], how: str, marker: str) -> None:
    """There is room for all of the file: it asks the kernel to throw it out, and reads it again."""
    assert set_limit(box, 80 * MIB)
    recording, cache = walk(out, box, data, "3", *words)
    assert cache["again_pages"] == pytest.approx(2 * PAGES, rel=0.02)
    dropped = Counter[str]()
    for row in recording.report["dropped"]:
        dropped[row["how"]] += row["pages"] if row["what"] == "file" else 0
    # A few may be others': where the machine pushes out what nobody uses (DAMON).
    assert dropped[how] == pytest.approx(3 * PAGES, rel=0.02)
    assert dropped.total() - dropped[how] < 0.02 * PAGES, dropped
    said = recording.report["verdict"]["sentence"]
    assert f"filewalk.c:{site_line('filewalk.c', marker)} (give_back)" in said
    assert "24.0 MiB" not in said
    (text,) = (a["text"] for a in recording.report["verdict"]["advice"] if a["code"] == "file-thrash")
    assert "Do not give back what is used again" in text


def test_unmapped_by_the_program(out: Path, box: Path, data: Path) -> None:
    """MADV_DONTNEED of the mapping: all of it comes in again, each pass, from the page cache."""
    assert set_limit(box, 80 * MIB)
    recording, _ = walk(out, box, data, "7", "--give", "dontneed")
    place = f"filewalk.c:{site_line('filewalk.c', 'dontneed')} (give_back)"
    ((calls, given, again),) = recording.query("SELECT SUM(calls), SUM(bytes), SUM(again_pages) FROM advised")
    assert (calls, given, again) == (7, 7 * PAGES * PAGE, 6 * PAGES)
    ((said,),) = recording.query("SELECT let_go_place FROM advised_measure")
    assert said == place
    given = {each["code"]: each["text"] for each in recording.report["verdict"]["advice"]}
    assert given["let-go"].startswith(f"madvise(MADV_DONTNEED) at {place} takes pages of files or shared memory")
    assert f": {6 * PAGES * PAGE / MIB:.0f} MiB are mapped in again in " in given["let-go"]
    assert not given.keys() & {"map-churn", "file-fault"}


def test_thrown_out_by_a_neighbour(out: Path, box: Path, data: Path) -> None:
    """A file of 39 MiB in a group of 48, until another process there uses as much of another file."""
    assert set_limit(box, 48 * MIB)
    other = data.with_suffix(".other")
    try:
        other.write_bytes(bytes(PAGES * PAGE))
        os.sync()
        with other.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with Program(*in_cgroup(box, workload("filewalk"), data, "2", "--wait", "--wait-again")) as program:
            tracer = start_record(out, "-p", str(program.pid))
            wait_attached(tracer, program.pid)
            program.go()
            wait_until(lambda: len(program.lines) > 1, "the first pass")
            neighbour = in_cgroup(box, workload("filewalk"), other, "3")
            subprocess.run(neighbour, check=True, timeout=60, stdout=subprocess.DEVNULL)
            program.go()
            program.last()
            result = finish(tracer)
    finally:
        other.unlink(missing_ok=True)
    assert result.status == 0, result
    recording = load(out, result)
    rows = {(row["how"], row["comm"]): row for row in recording.report["dropped"] if row["what"] == "file"}
    assert rows["other", "filewalk"]["memory_cgroup"] == box.name
    assert rows["other", "filewalk"]["pages"] > PAGES // 4
    # It brought its own back for itself then, and so threw out some of the other's.
    assert recording.report["page_cache"]["again_pages"] > PAGES // 4
