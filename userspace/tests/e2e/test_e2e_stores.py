# SPDX-License-Identifier: GPL-2.0
"""Clearing and copying by whatever code does it, filling with other values, and what only looks like these."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness import Program, Recording, finish, load, record, site_line, start_record, wait_attached, workload

pytestmark = pytest.mark.root

# The kinds of workloads/stores.c by the first part of their names.
PLACES = {"wipe": "memset", "fill": "user", "copy": "copy", "plain": "user"}
# Places that say that something else was going on.
ELSEWHERE = {"kernel", "fault", "probe", "map", "read"}

IN_FUNCTION = """
    SELECT f.function, s.place, s.allocated_call, SUM(s.samples) FROM sample s
    JOIN stack_frame sf ON sf.stack_id = s.stack_id JOIN frame f ON f.frame_id = sf.frame_id
    WHERE f.function GLOB '[wfcp]*_*' GROUP BY 1, 2, 3"""


# What stores for a kind that is a loop of calls: how much the loop itself takes depends on the processor.
INNER = {"wipe_pieces": "wipe_one", "wipe_array": "wipe_local"}

IN_SLICE = """
    SELECT f.function, leaf.function, s.place, s.slice, SUM(s.samples) FROM sample s
    JOIN stack_frame sf ON sf.stack_id = s.stack_id JOIN frame f ON f.frame_id = sf.frame_id
    JOIN stack_frame first ON first.stack_id = s.stack_id AND first.depth = 0
    JOIN frame leaf ON leaf.frame_id = first.frame_id
    WHERE f.function GLOB '[wfcp]*_*' GROUP BY 1, 2, 3, 4"""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "stores.memtoll"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("stores") / "stores.memtoll"
    return record(path, command=[workload("stores"), "300"], exact=False)


def kinds(recording: Recording) -> list[str]:
    return [str(line["kind"]) for line in recording.witness]


def test_each_kind_is_known_by_its_code(stores: Recording) -> None:
    """
    Some 30 samples of each; the first of a loop, before it was decoded, is judged by the later ones of its slice:
    where a kind begins at a slice's end there are none.
    """
    wrong = []
    rows = stores.query(IN_SLICE)
    assert len(kinds(stores)) == 18
    for kind in kinds(stores):
        slices = Counter[int]()
        of_kind = [row[2:] for row in rows if row[0] == kind and row[1] == INNER.get(kind, row[1])]
        for place, number, samples in of_kind:
            slices[number] += samples if place not in ELSEWHERE else 0
        begun = min(slices)
        judged = [number for number in slices if number > begun or slices[begun] > slices.total() / 2]
        seen = Counter[str]()
        for place, number, samples in of_kind:
            if place not in ELSEWHERE and number in judged:
                seen[place] += samples
        right = seen.get(PLACES[kind.split("_")[0]], 0)
        if sum(seen.values()) < 5 or right < 0.8 * sum(seen.values()):
            wrong.append(f"{kind}: {seen}")
    assert not wrong


def test_function_that_stores_is_named_after_its_return(stores: Recording) -> None:
    """Its return waits for a short rep stos, and a sample falls behind it, in the caller."""
    leaves = dict(
        stores.query(
            "SELECT f.function, SUM(s.samples) FROM sample s JOIN stack_frame sf USING (stack_id)"
            " JOIN frame f USING (frame_id) WHERE s.place = 'memset' AND sf.depth = 0 AND s.stack_id IN"
            " (SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE function = 'wipe_pieces') GROUP BY 1"
        )
    )
    # Before the place is decoded its first sample has the caller's name.
    assert leaves.get("wipe_one", 0) >= 0.7 * sum(leaves.values()) > 0, leaves


def test_shares_are_those_of_the_kinds(stores: Recording) -> None:
    """Against the workload's own clock: nine kinds of eighteen clear, three copy."""
    spent = {str(line["kind"]): int(line["kind_ns"]) for line in stores.witness}
    observed = stores.report["target"]["observed_s"]
    for toll, name in (("zero.app", "wipe"), ("copy.app", "copy")):
        figures = stores.report["toll"][toll]
        truth = sum(ns for kind, ns in spent.items() if kind.startswith(name)) / 1e9 / observed
        # Three standard errors of random samples; these come at regular times, and vary far less.
        margin = (figures["high"] - figures["low"]) / 2
        assert figures["low"] - margin <= truth <= figures["high"] + margin, (toll, truth, figures)


def test_bytes_are_an_estimate_of_the_right_size(stores: Recording) -> None:
    for toll, name in (("zero.app", "wipe"), ("copy.app", "copy")):
        figures = stores.report["toll"][toll]
        written = sum(int(line["bytes"]) for line in stores.witness if str(line["kind"]).startswith(name))
        assert figures["bytes_estimated"]
        assert written / 6 <= figures["bytes"] <= 6 * written, (toll, written, figures)
        # Calibrated at another moment, of a machine that may be slower or faster by then.
        assert figures["bytes_low"] / 2 <= written <= 2 * figures["bytes_high"], (toll, written, figures)
        assert figures["bytes_low"] < figures["bytes"] < figures["bytes_high"]
    assert stores.report["zeroing"]["bytes_app"] == stores.toll("zero.app", "bytes")


def test_first_touch_by_a_loop_that_clears_is_clearing_twice(stores: Recording) -> None:
    """The block is new when its first kind clears it, byte by byte; the other one is filled with 0x77 by memset."""
    block = 1000003 // 4096
    assert block * 4096 <= stores.report["zeroing"]["bytes_twice"] <= (block + 3) * 4096


def test_block_that_is_written_to_is_named(stores: Recording) -> None:
    for toll in ("zero.app", "copy.app"):
        sites = [site for site in stores.report["sites"] if site["toll"] == toll and not site["area"]]
        owned = [site for site in sites if site["call"] == "malloc"]
        assert sum(site["count"] for site in owned) >= 0.7 * sum(site["count"] for site in sites)
        lines = {(Path(frame["file"]).name, frame["line"]) for site in owned for frame in site["allocated_at"]}
        assert ("stores.c", site_line("stores.c", "block")) in lines
    # All kinds last as long: whose memory most of the clearing is in is by chance.
    owners = ("in memory of malloc", "in the static data of", "stack")
    said = stores.report["verdict"]["sentence"]
    assert any(owner in said for owner in owners) or stores.dominant != "zeroing", said


def test_memory_that_is_no_block_is_named(stores: Recording) -> None:
    """The array on the stack, the static one; how long a filling is, by the code or by its registers."""
    rows = stores.query(
        "SELECT f.function, s.area, s.area_name, s.length_bytes, SUM(s.samples) FROM sample s"
        " JOIN stack_frame sf USING (stack_id) JOIN frame f USING (frame_id) WHERE s.place = 'memset' AND"
        " f.function IN ('wipe_array', 'wipe_static', 'wipe_string') GROUP BY 1, 2, 3, 4"
    )
    whose = {"wipe_array": ("stack", "stores"), "wipe_static": ("static", str(workload("stores")))}
    for function, owner in whose.items():
        all_samples = sum(row[4] for row in rows if row[0] == function)
        right = sum(row[4] for row in rows if row[:3] == (function, *owner))
        assert right >= 0.7 * all_samples > 0, rows
    # A sample falls behind the array's clearing, in its function or where that returns to.
    lengths = {row[3]: row[4] for row in rows if row[0] == "wipe_array" and row[3]}
    assert lengths.keys() <= {16008} and lengths, rows
    long = [(row[3], row[4]) for row in rows if row[0] == "wipe_string" and row[3]]
    mean = sum(length * samples for length, samples in long) / sum(samples for _, samples in long)
    assert 1000000 / 2 <= mean <= 1000000 * 1.5, rows
    areas = {site["area"] for site in stores.report["sites"] if site["toll"] == "zero.app"}
    assert {"stack of thread stores", f"static data of {workload('stores')}"} <= areas


def test_calloc_reached_by_a_jump_clears_for_libc(out: Path) -> None:
    """It goes on to memset by a jump, too: what memset returns to is known from the calls that were watched."""
    command: list[str | Path] = [workload("clears"), "3", str(1 << 20), "100", "jump"]
    recording = record(out, "--overhead-limit", "0.3%", command=command, exact=False)
    ((outside, inside),) = recording.query(
        "SELECT SUM(CASE place WHEN 'memset' THEN samples ELSE 0 END),"
        " SUM(CASE place WHEN 'calloc_memset' THEN samples ELSE 0 END) FROM sample"
    )
    assert inside >= 3
    assert outside <= 0.05 * inside


def test_clearing_is_seen_from_outside_as_well(out: Path) -> None:
    with Program(workload("stores"), "30", "wait") as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        result = finish(tracer)
    assert result.status == 0, result
    rows = load(out, result).query(IN_FUNCTION)
    places = {row[1] for row in rows if row[0].startswith("wipe")} - ELSEWHERE
    assert "memset" in places
