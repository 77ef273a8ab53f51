# SPDX-License-Identifier: GPL-2.0
"""Faults that clear nothing, by who answers them; and huge pages, by how much of each is used.

Witnesses: the handlers' own counts, getrusage, /proc/vmstat.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from test_e2e_classes import huge_on_request

from faults import Faults
from harness import MIB, Recording, record, site_line, workload

pytestmark = [pytest.mark.root, pytest.mark.machine]

__all__ = ["huge_on_request"]

# Of missing pages, of those that another process brings, write-protected, minor, forbidden.
PAGES = {"missing": 1_009, "outside": 503, "protected": 701, "minor": 307, "forbidden": 409}
HUGE_PAGES = 512


def test_what_a_handler_brings_is_not_cleared(out: Path) -> None:
    """Each is in class user, with the time that its thread slept; what is forbidden is nobody's page."""
    recording = record(out, command=[workload("handled"), *map(str, PAGES.values())])
    faults, witness = Faults(recording), recording.witness[-1]
    handled = {name: count for name, count in PAGES.items() if name != "forbidden"}
    assert witness["answered"] == sum(handled.values()) - PAGES["outside"]
    assert witness["forbidden"] == PAGES["forbidden"]
    for name, count in handled.items():
        # A wait that something interrupts (task work) is begun anew, by another fault.
        assert count <= faults.touched("handled.c", name).of("user").faults <= count + 5, name
        assert faults.touched("handled.c", name).kinds == {"user"}, name
    seen = faults.touched("handled.c", "forbidden")
    assert seen.of("forbidden").faults == PAGES["forbidden"]
    assert seen.kinds <= {"forbidden", "reuse"}
    assert recording.toll("fault.user", "count") == faults.of("user").faults
    # They slept for as long as the handlers did at least.
    assert recording.toll("fault.user", "blocked_s") > 0.9 * sum(handled.values()) * 150e-6
    assert recording.dominant == "userfault"
    sentence = recording.report["verdict"]["sentence"]
    assert sentence.startswith("Waiting for a userfaultfd handler takes")
    codes = {each["code"] for each in recording.report["verdict"]["advice"]}
    assert "userfault" in codes and "first-touch" not in codes
    assert_handlers(recording, witness["answered"], handled["outside"])
    # The kernel's own pages with the time are mapped into each program.
    assert {"other"} == {row.kind for row in faults.rows if row.area == "device"}


def assert_handlers(recording: Recording, by_thread: int, by_child: int) -> None:
    """Who answers is watched from a moment after the first wait on: the thread, and the child before it."""
    handlers = recording.report["handlers"]
    ((main,),) = recording.query("SELECT pid FROM process WHERE parent_pid NOT IN (SELECT pid FROM process)")
    answered: Counter[tuple[bool, str]] = Counter()
    for thread in handlers["threads"]:
        assert thread["comm"] == thread["process"] == "handled"
        # The request is the leaf; lines that call libc are the program's own.
        lines = {f"handled.c:{site_line('handled.c', site)} (answer)" for site in ("allow", "go", "copy")}
        assert thread["place"] in lines
        answered[thread["pid"] == main, thread["request"]] += thread["waits"]
    assert handlers["waits"] == answered.total()
    assert sum(answered[True, request] for request in ("UFFDIO_COPY", "UFFDIO_WRITEPROTECT", "UFFDIO_CONTINUE")) > 0
    thread = sum(waits for (own, _), waits in answered.items() if own)
    assert 0 < thread <= by_thread
    assert handlers["waits"] - thread <= by_child
    assert 150_000 <= handlers["p50_ns"] <= handlers["p99_ns"] <= handlers["longest_ns"]
    assert handlers["longest_place"].startswith("handled.c:")
    ((counted,),) = recording.query("SELECT SUM(waits) FROM fault_wait")
    assert counted == handlers["waits"]
    # All that were answered are timed, in windows and out of them.
    ((timed,),) = recording.query("SELECT SUM(timed_faults) FROM fault WHERE class LIKE 'user%'")
    assert timed >= handlers["waits"]


def assert_cleared(recording: Recording, huge_pages: int) -> None:
    """By the clock of the very moments, and not of the calibration's, unless they waited for more than clearing.

    Those that are timed are some, and one may take ten times as long as another, where the host has yet to find memory.
    """
    cleared_ns, witness = recording.toll("zero.kernel", "clear_s") * 1e9, recording.witness[-1]
    ((timed, clear_ns),) = recording.query("SELECT timed_faults, clear_ns FROM fault_price WHERE class = 'zero_huge'")
    assert timed >= 8
    if clear_ns is None:
        ((rate,),) = recording.query("SELECT clear_2m_bytes_per_s FROM calibrated")
        assert cleared_ns >= 0.99 * huge_pages * 2 * MIB * 1e9 / rate
    else:
        assert 0.9 * witness["least_ns"] <= cleared_ns / huge_pages <= 1.1 * witness["most_ns"]


@pytest.mark.parametrize("use", ["sparse", "dense"])
def test_how_much_of_huge_pages_is_used(out: Path, huge_on_request: None, use: str) -> None:
    pages, rounds = 23, 11
    recording = record(out, command=[workload("huge"), str(pages), str(rounds), use])
    faults, witness = Faults(recording), recording.witness[-1]
    assert 0 <= witness["faults"] - pages * rounds <= 2, "the machine gave no huge pages: the test shows nothing"
    assert faults.touched("huge.c", "use").of("zero_huge").faults == pages * rounds
    ((looked, used_pages),) = recording.query("SELECT looked, used_pages FROM huge_look")
    assert looked >= 8
    # A page that came again may be in the middle of being filled.
    assert used_pages == looked if use == "sparse" else used_pages > 0.5 * looked * HUGE_PAGES
    if recording.dominant == "zeroing":
        assert "huge pages, which clear 2.00 MiB each" in recording.report["verdict"]["sentence"]
    advice = {each["code"]: each["text"] for each in recording.report["verdict"]["advice"]}
    assert ("huge-sparse" in advice) == (use == "sparse")
    if use == "sparse":
        assert "of which 4.00 KiB is used on average" in advice["huge-sparse"]
        assert_cleared(recording, pages * rounds)
    assert not any("MADV_HUGEPAGE) can save" in text for text in advice.values())
