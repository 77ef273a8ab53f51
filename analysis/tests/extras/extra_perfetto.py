# SPDX-License-Identifier: GPL-2.0
"""The trace, as Perfetto's trace processor reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processor import ask

import memtoll
from memtoll.export import export

from busy import PIDS, SLICES
from facts import Facts, S

STATS = "SELECT name, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')"
RUNS = (
    "SELECT s.ts, s.dur, s.name, t.name AS track, th.tid, p.pid, s.arg_set_id FROM slice s"
    " JOIN track t ON t.id = s.track_id JOIN thread_track x ON x.id = t.parent_id OR x.id = t.id"
    " JOIN thread th ON th.utid = x.utid JOIN process p ON p.upid = th.upid ORDER BY s.ts, p.pid, s.name"
)
ARGUMENTS = "SELECT arg_set_id, key, COALESCE(string_value, CAST(int_value AS TEXT)) AS value FROM args"


COUNTERS = (
    "SELECT t.name, c.ts, c.value FROM counter c JOIN track t ON t.id = c.track_id"
    " WHERE t.id NOT IN (SELECT id FROM process_counter_track) ORDER BY t.name, c.ts"
)
PROCESSES = (
    "SELECT p.pid, p.name AS process, t.name, COUNT(*) AS n, MAX(c.value) AS most FROM counter c"
    " JOIN process_counter_track t ON t.id = c.track_id JOIN process p USING (upid) GROUP BY 1, 2, 3"
)
VERDICT = (
    "SELECT s.name, s.ts, s.dur, a.key, a.int_value, a.string_value FROM slice s"
    " JOIN track t ON t.id = s.track_id JOIN args a USING (arg_set_id) WHERE t.name = 'memtoll recording'"
)

Answers = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def asked(_busy_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[memtoll.Recording, Answers]]:
    """The recording, and what its trace answers to each query: to start the processor takes seconds."""
    work = tmp_path_factory.mktemp("perfetto")
    queries = (STATS, RUNS, ARGUMENTS, COUNTERS, PROCESSES, VERDICT)
    with memtoll.open(_busy_once) as rec:
        export(rec, work / "busy.pftrace")
        yield rec, dict(zip(queries, ask(work / "busy.pftrace", queries, work)))


def arguments(rows: list[dict[str, Any]]) -> dict[int, dict[str, str]]:
    sets: dict[int, dict[str, str]] = {}
    for row in rows:
        sets.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("debug.")] = row["value"]
    return sets


def test_every_run_is_a_slice_of_its_thread(asked: tuple[memtoll.Recording, Answers]) -> None:
    rec, answers = asked
    stats, runs, args = (answers[query] for query in (STATS, RUNS, ARGUMENTS))
    assert stats == []
    sets = arguments(args)
    found = sorted(
        (
            row["ts"],
            row["dur"],
            row["pid"],
            row["tid"],
            row["name"],
            row["track"],
            sets[row["arg_set_id"]]["pages"],
            int(sets[row["arg_set_id"]]["address"]),
            sets[row["arg_set_id"]]["toll"],
            sets[row["arg_set_id"]]["allocated_at"],
            sets[row["arg_set_id"]]["touched_at"],
        )
        for row in runs
    )
    expected = sorted(
        (
            run["start_ns"],
            run["end_ns"] - run["start_ns"],
            run["pid"],
            run["tid"],
            run["class"],
            "swap-ins" if run["toll"] == "swap.in" else "faults",
            str(run["pages"]),
            run["address"],
            run["toll"],
            run["allocated_at"],
            run["touched_at"],
        )
        for run in rec.faults.to_dict("records")
    )
    assert len(expected) > 200
    assert {row[5] for row in expected} == {"faults", "swap-ins"}
    assert found == expected


def test_counters(asked: tuple[memtoll.Recording, Answers]) -> None:
    rec, answers = asked
    counters, processes = answers[COUNTERS], answers[PROCESSES]
    tolls = {row["name"] for row in counters}
    assert tolls == set(rec.timeline["toll"].unique())
    for toll in tolls:
        values = [(row["ts"], row["value"]) for row in counters if row["name"] == toll]
        rows = rec.timeline[rec.timeline["toll"] == toll]
        per_s = rows["time_s"] * 1e12 / (rows["end_ns"] - rows["start_ns"])
        assert len(values) == SLICES + 1
        assert [time for time, _ in values] == [*rows["start_ns"].tolist(), rows["end_ns"].iloc[-1]]
        assert [value for _, value in values[:-1]] == pytest.approx(per_s.tolist())
        assert values[-1][1] == 0
    assert {row["pid"] for row in processes} == set(PIDS)
    assert {row["process"] for row in processes} == {f"worker{pid}" for pid in PIDS}
    blocked = rec.query(
        "SELECT pid, MAX(ns) AS ns FROM (SELECT f.pid, SUM(f.blocked_ns) * 1e3 / (s.end_ns - s.start_ns) AS ns"
        " FROM main.fault f JOIN main.slice s ON s.slice = f.slice GROUP BY f.pid, f.slice) GROUP BY pid"
    )
    most = {row["pid"]: row["most"] for row in processes if row["name"] == "asleep in faults"}
    assert most == pytest.approx(dict(zip(blocked["pid"].tolist(), blocked["ns"].tolist())))
    assert "stalled in reclaim" in {row["name"] for row in processes}


def test_verdict_and_losses_are_exported(asked: tuple[memtoll.Recording, Answers]) -> None:
    rec, answers = asked
    rows = answers[VERDICT]
    assert {row["name"] for row in rows} == {rec.verdict.sentence}
    assert rows[0]["ts"] == rec.origin_ns
    assert rows[0]["dur"] == round(rec.duration_s * 1e9)
    values = {row["key"]: row["int_value"] for row in rows}
    assert values["debug.lost ring_fault"] == 3 * SLICES
    assert values["debug.lost runs_unstored"] == 7
    notes = {row["key"]: row["string_value"] for row in rows}
    assert "69 ring_fault" in notes["debug.note"]


def test_overlapping_runs_and_single_faults(tmp_path: Path) -> None:
    """Runs of one thread that overlap keep their lengths; one fault is an instant."""
    made = Facts(tmp_path / "overlap.memtoll")
    made.prices()
    made.slice()
    made.process()
    spans = [(0, 700), (100, 300), (150, 900), (800, 800), (900, 1100)]
    for first, last in spans:
        made.row(
            "fault_run", slice=1, pid=42, tid=43, **{"class": "zero"}, address=1 << 40, pages=3, faults=3,
            first_ns=1000 * S + first, last_ns=1000 * S + last, allocated_stack=0, touched_stack=0,
        )  # fmt: skip
    made.meta(format="1", target_command="x", complete="1", start_realtime_ns=str(1_795_000_000 * S))
    made.save()
    path = tmp_path / "overlap.pftrace"
    with memtoll.open(tmp_path / "overlap.memtoll") as rec:
        export(rec, path)
    stats, runs = ask(path, [STATS, RUNS], tmp_path)
    assert stats == []
    assert sorted((row["ts"] - 1000 * S, row["ts"] - 1000 * S + row["dur"]) for row in runs) == sorted(spans)
    assert {(row["pid"], row["tid"]) for row in runs} == {(42, 43)}
