# SPDX-License-Identifier: GPL-2.0
"""Sites as they are printed: what a reader cannot tell apart is one row, and nothing is lost by that."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from facts import PAGE, Facts, S, finished
from harness import memtoll

SHOWN = 6


def deep(made: Facts, below: str, pid: int = 42) -> int:
    """A stack of eight frames, of which a page shows six; below: the function of the seventh."""
    names = [*(f"level_{number}" for number in range(SHOWN)), below, "main"]
    return made.stack(*((name, "/src/deep.c", 10 + number) for number, name in enumerate(names)), pid=pid)


@pytest.fixture
def alike(tmp_path: Path) -> Path:
    """Three processes with a stack each for the same lines; one stack that differs where no page shows it."""
    made = Facts(tmp_path / "alike.memtoll")
    made.prices()
    made.slice()
    for pid in (42, 43, 44):
        made.process(pid=pid)
        made.cpu(S, pid=pid)
        made.fault("zero", 10 * pid, 1_100, pid=pid, touched_stack=deep(made, "below", pid))
    made.fault("zero", 7, 1_100, touched_stack=deep(made, "elsewhere"))
    # These are told apart: by their area, toll, line and depth.
    made.fault("zero", 11, 1_100, touched_stack=deep(made, "below"), area="heap")
    made.fault("cow", 13, 1_100, touched_stack=deep(made, "below"))
    made.fault("zero", 17, 1_100, touched_stack=made.stack(("level_0", "/src/deep.c", 11), ("main", "/src/deep.c", 9)))
    made.fault("zero", 19, 1_100, touched_stack=made.stack(("level_0", "/src/deep.c", 11)))
    finished(made, "./alike")
    return Path(tmp_path / "alike.memtoll")


def printed(text: str) -> list[tuple[int, str]]:
    """Counts, and what else there is to tell a site by."""
    (title,) = re.findall(r"^SITES \((\d+) in all\)$", text, re.MULTILINE)
    body = text.split(f"SITES ({title} in all)\n")[1].split("\n\n")[0]
    found = []
    for site in re.split(r"\n(?= *\d+\.\d %)", body):
        first, _, rest = site.partition("\n")
        _, _, _, _, toll, *_ = first.split()
        count = re.search(r"([\d,]+) (x|samples?)", first)
        assert count, first
        found.append((int(count[1].replace(",", "")), f"{toll}\n{rest}"))
    assert len(found) == int(title)
    return found


def sums(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    tolls = {site["toll"] for site in report["sites"]}
    return {
        toll: tuple(sum(site[name] for site in report["sites"] if site["toll"] == toll) for name in ("count", "bytes"))
        for toll in tolls
    }


def test_text_lists_what_looks_alike_once(alike: Path) -> None:
    sites = printed(memtoll("report", "--full", alike, "--sites", "0").stdout)
    assert len({what for _, what in sites}) == len(sites), "two rows are the same to a reader"
    assert [count for count, _ in sites] == [420 + 430 + 440 + 7, 19, 17, 13, 11]


def test_json_lists_equal_frames_once(alike: Path) -> None:
    """It has all frames: what differs below the sixth is two rows."""
    report = json.loads(memtoll("report", alike, "--json").stdout)
    assert [site["count"] for site in report["sites"]] == [420 + 430 + 440, 19, 17, 13, 11, 7]
    names = ("toll", "call", "area", "allocated_at", "touched_at")
    assert len({json.dumps([site[name] for name in names]) for site in report["sites"]}) == len(report["sites"])
    first = report["sites"][0]
    assert first["bytes"] == 1_290 * PAGE
    assert first["time_s"] == pytest.approx(1_290 * 1e-6)
    assert first["share"] == pytest.approx(first["time_s"] / report["target"]["observed_s"], abs=1e-6)
    toll = report["toll"]
    assert sums(report) == {name: (toll[name]["count"], toll[name]["bytes"]) for name in sums(report)}


@pytest.mark.slow
def test_number_of_sites_is_that_of_printed_ones(alike: Path) -> None:
    every = memtoll("report", "--full", alike, "--sites", "0").stdout
    two = memtoll("report", "--full", alike, "--sites", "2").stdout
    assert "SITES (5 in all)" in two
    assert [line for line in two.splitlines() if line in every.splitlines()] == two.splitlines()
    whole = json.loads(memtoll("report", alike, "--json").stdout)["sites"]
    assert json.loads(memtoll("report", alike, "--json", "--sites", "2").stdout)["sites"] == whole[:2]


@pytest.mark.slow
def test_facts_stay_apart(alike: Path) -> None:

    with closing(sqlite3.connect(alike)) as database:
        (number,) = database.execute("SELECT COUNT(*) FROM sites").fetchone()
    assert number == 8


@pytest.mark.parametrize("processes", [1, 7])
def test_place_of_most_is_that_of_all_processes(processes: int) -> None:
    """Each has a stack of its own for a place: none of them is the largest, all together are."""
    made = Facts()
    made.slice()
    made.process()
    made.cpu(S)
    one = made.stack(("alone", "/src/once.c", 7), ("main", "/src/once.c", 9))
    made.fault("cow", 1009, 1_100, touched_stack=one)
    for pid in range(100, 100 + processes):
        made.process(pid=pid)
        each = made.stack(("look", "/src/each.c", 5), ("main", "/src/each.c", 9), pid=pid)
        made.fault("cow", 1000, 1_100, pid=pid, touched_stack=each)
    place = made.one("SELECT touched_place FROM top_site WHERE toll = 'cow'")["touched_place"]
    assert place == ("once.c:7 (alone)" if processes == 1 else "each.c:5 (look)")
