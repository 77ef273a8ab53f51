# SPDX-License-Identifier: GPL-2.0
"""Frames: as documented, equal to the report's JSON, and adding up."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import memtoll
from memtoll.commands.frames import markdown
from memtoll.frames import BY_NAME, FRAMES
from memtoll.queried import read_from

import facts
import harness
from package import ANALYSIS

JSON_NAMES = {"low": "share_low", "high": "share_high"}


def said(path: Path) -> dict[str, Any]:
    """What the C program prints."""
    result = harness.memtoll("report", path, "--json")
    assert result.status == 0, result
    data = json.loads(result.stdout)
    assert isinstance(data, dict)
    return data


def same(ours: Any, theirs: Any) -> bool:
    if theirs is None:
        return bool(pd.isna(ours))
    return bool(ours == theirs)


def frames_of(rec: memtoll.Recording, stack_id: int) -> list[dict[str, Any]]:
    return [
        {"function": f.function, "module": f.module, "file": f.file, "line": f.line, "kind": f.kind}
        for f in rec.stack(stack_id)
    ]


def test_wall_clock(tmp_path: Path) -> None:
    """UTC, from the one moment that the recording knows of both clocks; and where it was made, on each Table."""
    path = tmp_path / "a.memtoll"
    made = facts.heap_blocks(path)
    with made.database as database:
        database.execute("DELETE FROM meta WHERE key IN ('start_ns', 'start_realtime_ns')")
        meta = {"start_ns": str(facts.S), "start_realtime_ns": str(1_790_000_000 * facts.S + 7), "host": "web3"}
        database.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", [*meta.items(), ("exit_status", "3"), ("tool_version", "7.0")]
        )
    made.database.close()
    with memtoll.open(path) as rec:
        for name, column in [("timeline", "start"), ("process_timeline", "start"), ("processes", "start")]:
            frame = getattr(rec, name)
            moments = frame[f"{column}_utc"]
            assert str(moments.dtype) == "datetime64[ns, UTC]"
            since = (moments - pd.Timestamp(1_790_000_000 * facts.S + 7, tz="UTC")) // pd.Timedelta(1, "ns")
            assert list(since) == list(frame[f"{column}_ns"] - facts.S) and len(since)
        assert list(rec.wall_clock(rec.timeline["start_ns"])) == list(rec.timeline["start_utc"])
        attrs = rec.toll.attrs
        assert (attrs["host"], attrs["exit_status"]) == ("web3", 3) and attrs["tool_version"] == "7.0"
        assert attrs["started"] == pd.Timestamp(1_790_000_000 * facts.S + 7, tz="UTC")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM meta WHERE key = 'start_realtime_ns'")
    with memtoll.open(path) as rec:
        assert rec.timeline["start_utc"].isna().all() and rec.toll.attrs["started"] is None


def check_sites(rec: memtoll.Recording, printed: list[dict[str, Any]]) -> None:
    """Sites that the JSON would print alike are one row there, their figures added up."""
    sums: dict[str, dict[str, Any]] = {}
    for _, row in rec.sites.iterrows():
        stacks = [frames_of(rec, row[name]) for name in ("allocated_stack", "touched_stack")]
        site = sums.setdefault(json.dumps([row["toll"], row["call"], row["area"], *stacks]), Counter())
        site.update({name: row[name] for name in ("bytes", "count", "time_s", "share")} | {"rows": 1})
    assert len(sums) == len(printed)
    for site in printed:
        row = sums[json.dumps([site[name] for name in ("toll", "call", "area", "allocated_at", "touched_at")])]
        assert (row["bytes"], row["count"]) == (site["bytes"], site["count"])
        assert abs(row["time_s"] - site["time_s"]) <= (row["rows"] - 1) * 1e-9 + 1e-15
        assert abs(row["share"] - site["share"]) <= (row["rows"] - 1) * 1e-6 + 1e-12


def check_against(path: Path, report: dict[str, Any]) -> None:
    """Every figure of the JSON is in a frame, to the last digit."""
    with memtoll.open(path) as rec:
        assert rec.report == report
        assert rec.verdict == report["verdict"]
        assert rec.target == report["target"]
        assert rec.zeroing == report["zeroing"]
        assert rec.notes == report["notes"]
        assert list(rec.toll.index) == list(report["toll"])
        for toll, figures in report["toll"].items():
            for name, value in figures.items():
                assert same(rec.toll.loc[toll, JSON_NAMES.get(name, name)], value), (toll, name, value)
            assert same(rec.toll.loc[toll, "not_captured"], report["not_captured"].get(toll))
        check_sites(rec, report["sites"])
        for (_, row), made in zip(rec.allocations.iterrows(), report["allocations"], strict=True):
            for name in set(made) - {"allocated_at"}:
                assert same(row[name], made[name]), name
            assert frames_of(rec, row["allocated_stack"]) == made["allocated_at"]
        for (_, row), some in zip(rec.sampled.iterrows(), report["sampled"], strict=True):
            for name in set(some) - {"allocated_at"}:
                assert same(row[name], some[name]), name
            assert frames_of(rec, row["allocated_stack"]) == some["allocated_at"]
        assert rec.duty_cycle["share"].to_dict() == report["overhead"]["duty_cycle"]
        tolls = rec.process_tolls.set_index(["pid", "toll"])["time_s"]
        for process in report["processes"]:
            row = rec.processes.loc[process["pid"]]
            for name in ("comm", "command", "exit_code", "observed_s"):
                assert same(row[name], process[name]), name
            for toll, time in process["toll_s"].items():
                assert tolls[(process["pid"], toll)] == time
        assert rec.losses["count"].to_dict() == report["losses"]
        assert rec.checks.to_dict("index") == report["checks"]
        overhead = report["overhead"]
        for name in ("limit_pct", "estimated_pct", "error_pct", "source", "hits", "held_s"):
            assert rec.overhead.attrs[name] == overhead[name]
        for probe, price in overhead["ns_per_hit"].items():
            assert rec.overhead.loc[probe, "ns_per_hit"] == price
        for (_, row), pattern in zip(rec.access_patterns.iterrows(), report.get("access", []), strict=True):
            assert row["pattern"] == pattern["pattern"]
            assert row["returns"] == pattern["returns"]
            assert row["in_pages"] == pattern["swap_in_pages"]


def check_reads(path: Path, report: dict[str, Any]) -> None:
    """Files and their curves: factors are printed with four digits."""
    with memtoll.open(path) as rec:
        assert len(rec.files) == len(report["files"]) > 0
        for (_, row), told in zip(rec.files.iterrows(), report["files"], strict=True):
            for name in ("path", "device", "inode", "kind", "file_bytes", "bytes", "time_s", "blocked_s"):
                assert same(row[name], told[name]), name
            for name in ("direct_bytes", "cached_bytes", "filled_bytes"):
                assert row[name] == told[name], name
            assert row["calls"] == told["count"]
            for name in ("reread_factor", "reread_low", "reread_high"):
                assert same(row[name] if told[name] is None else round(row[name], 4), told[name]), name
            points = rec.miss_ratio[(rec.miss_ratio["subject"] == "file") & (rec.miss_ratio["file"] == row["file"])]
            check_curve(points, told["miss_ratio_curve"])
        check_curve(rec.miss_ratio[rec.miss_ratio["subject"] == "files"], report["miss_ratio_curve"]["files"])


def check_curve(points: pd.DataFrame, told: list[dict[str, Any]]) -> None:
    assert points["cache_bytes"].tolist() == [point["cache_bytes"] for point in told]
    assert points["miss_ratio"].tolist() == pytest.approx([point["miss_ratio"] for point in told], abs=1e-6)


def check_sums(path: Path) -> None:
    """Slices add up to the whole: whole numbers exactly, seconds to rounding (1 ns)."""
    with memtoll.open(path) as rec:
        captured = rec.toll[rec.toll["not_captured"].isna()]
        sums = rec.timeline.groupby("toll", observed=True)[["time_s", "count", "bytes", "pages"]].sum()
        assert set(sums.index) == set(captured.index)
        for toll, row in sums.iterrows():
            assert row["time_s"] == pytest.approx(captured.loc[toll, "time_s"], rel=1e-9, abs=2e-9), toll
            for name in ("count", "bytes", "pages"):
                assert row[name] == captured.loc[toll, name], (toll, name)
        assert (rec.timeline[["time_s", "count", "bytes", "pages"]] >= 0).all().all()
        slices = rec.query("SELECT COUNT(*) AS n FROM main.slice")["n"].iloc[0]
        assert len(rec.timeline) == slices * len(captured)


@pytest.mark.slow
def test_equal_to_the_report(scenario: Path) -> None:
    check_against(scenario, said(scenario))


@pytest.mark.slow
def test_equal_to_the_report_busy(busy: Path) -> None:
    report = said(busy)
    assert len(report["processes"]) == 3
    assert report["losses"]["runs_unstored"] == 7
    check_against(busy, report)


def test_slices_add_up(scenario: Path) -> None:
    check_sums(scenario)


@pytest.mark.slow
def test_slices_add_up_busy(busy: Path) -> None:
    check_sums(busy)
    with memtoll.open(busy) as rec:
        zero = rec.timeline[rec.timeline["toll"] == "zero.kernel"]
        price = rec.classes["mean_ns"]
        rows = rec.query(
            "SELECT slice, class, SUM(faults) AS faults FROM main.fault WHERE class LIKE 'zero%' GROUP BY slice, class"
        )
        by_hand = (rows["faults"] * rows["class"].map(price.to_dict())).groupby(rows["slice"]).sum() / 1e9
        ours = zero.set_index("slice")["time_s"]
        assert np.allclose(ours.reindex(by_hand.index), by_hand, rtol=1e-9)


def sliced(path: Path) -> facts.Facts:
    """Two slices without anything in them."""
    made = facts.Facts(path)
    made.meta(format="1", target_command="./box", complete="1")
    made.prices()
    made.row("price", probe="read", hit_ns=250.0, inside_ns=200.0, error_ns=10.0)
    made.process()
    made.allocator()
    for number in (1, 2):
        made.row("slice", slice=number, start_ns=number * facts.S, end_ns=(number + 1) * facts.S)
        made.row("process_slice", slice=number, pid=42, cpu_ns=facts.S, minor_faults=0, major_faults=0)
    return made


def by_slice(made: facts.Facts, path: Path) -> dict[str, list[float]]:
    """Seconds of each toll, slice by slice; they add up to the view's."""
    made.save()
    made.database.close()
    check_sums(path)
    with memtoll.open(path) as rec:
        told = rec.timeline.sort_values("slice").groupby("toll", observed=True)["time_s"].apply(list).to_dict()
        assert {toll: sum(row) for toll, row in told.items()} == pytest.approx(
            {toll: row for toll, row in rec.toll["time_s"].dropna().to_dict().items()}, abs=1e-8
        )
        return told


def test_what_the_kernel_does_in_calls_is_in_its_slices(tmp_path: Path) -> None:
    """By the samples: zeros for a read, the end of a process; of mprotect the calls' own record, once."""
    path = tmp_path / "one.memtoll"
    made = sliced(path)
    stack = made.stack(("mprotect", "", 0), ("scan", "/src/scan.c", 8))
    made.samples("clear", 30, stack, in_call="read")
    made.samples("pages", 40, in_call="exit_group", slice=2)
    made.map_call("mprotect", stack, 101, facts.PAGE, 100 * facts.MS + 101 * facts.MAP_INSIDE)
    made.samples("pages", 10, stack, in_call="mprotect")
    made.samples("user", 60)
    made.samples("user", 60, slice=2)
    # Such a fault is no first touch, and the kernel does not count it.
    made.fault("forbidden", 1_009, None, slice=2)
    told = by_slice(made, path)
    each = 2.0 / 200
    assert told["zero.kernel"] == pytest.approx([30 * each, 0])
    assert told["map"] == pytest.approx([0.1, 40 * each])
    assert told["fault.other"] == pytest.approx([0, 1_009 * facts.FAULT_NS / 1e9])
    assert told["compute"][0] == pytest.approx(1 - 30 * each - 0.1)


def test_reads_past_the_page_cache_have_their_own_price_of_a_fault(tmp_path: Path) -> None:
    """What the kernel faults in for them costs less than a fault, and hits no probe."""
    path = tmp_path / "one.memtoll"
    made = sliced(path)
    made.samples("user", 60)
    made.fault("zero_populated", 5_003, 100.0)
    made.fault("zero", 5_003, facts.FAULT_NS + facts.FAULT_INSIDE, slice=2)
    row: dict[str, Any] = {"pid": 42, "file": 1, "stack_id": 7, "calls": 101, "failed": 0, "bytes": 101 * facts.MIB}
    row |= {"cached_calls": 0, "cached_bytes": 0, "filled_pages": 0, "blocked_ns": 0, "faults": 50_021}
    for number, direct in ((1, 1), (2, 0)):
        made.row("file_read", call="pread64", slice=number, direct=direct, cpu_ns=101 * 200 + 80 * facts.MS, **row)
    told = by_slice(made, path)["file.read"]
    assert told == pytest.approx([0.08 - 50_021 * 100e-9, 0.08 - 50_021 * (facts.FAULT_NS + facts.FAULT_HIT) / 1e9])


@pytest.mark.root
def test_equal_to_the_report_real(tmp_path: Path) -> None:
    path = tmp_path / "real.memtoll"
    harness.record(path, command=[harness.workload("threads8"), "3"])
    check_against(path, said(path))
    check_sums(path)


@pytest.mark.root
def test_reads_are_equal_to_the_report(tmp_path: Path) -> None:
    """Three passes over a file: the curve falls where all of it fits."""
    path, data = tmp_path / "reads.memtoll", tmp_path / "data"
    data.write_bytes(bytes(103 * 4096))
    harness.record(path, command=[harness.workload("reader"), data, "pread", "4096", "103", "3"])
    report = said(path)
    check_reads(path, report)
    (told,) = (row for row in report["files"] if row["path"] == str(data))
    assert (told["count"], told["bytes"], told["reread_factor"]) == (309, 309 * 4096, 3.0)
    assert told["miss_ratio_curve"][-1]["miss_ratio"] == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.slow
def test_dtypes_and_columns(busy: Path) -> None:
    """What the list documents is what there is, with rows and without."""
    empty = busy.with_name("empty.memtoll")
    nothing = facts.Facts(empty)
    nothing.meta(format="1", complete="1")
    nothing.save()
    for path in (busy, empty):
        with memtoll.open(path) as rec:
            for frame in FRAMES:
                table = getattr(rec, frame.name)
                assert isinstance(table, memtoll.Table)
                columns = [column for column in frame.columns if column.name != frame.index]
                assert list(table.columns) == [column.name for column in columns], frame.name
                assert (table.index.name or "") == frame.index
                for column in columns:
                    assert str(table[column.name].dtype) == column.dtype, (frame.name, column.name)


def test_units_are_in_the_names() -> None:
    suffix = {"s": "_s", "ns": "_ns", "bytes": "bytes", "pages": "pages"}
    for frame in FRAMES:
        for column in frame.columns:
            assert column.meaning
            if column.unit in suffix and column.name not in ("ns_per_hit", "bytes_at_least"):
                name = re.sub("_(error|low|high)$", "", column.name)
                assert name.endswith(suffix[column.unit]), (frame.name, column.name)


def test_documented_in_the_readme() -> None:
    text = (ANALYSIS / "README.md").read_text()
    assert markdown(FRAMES) in text, "python3 -m memtoll frames --markdown has changed"


def test_times_are_relative(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        assert rec.origin_ns == 1000 * facts.S
        for table in (rec.timeline, rec.faults, rec.processes):
            assert np.allclose(table["start_s"], (table["start_ns"] - rec.origin_ns) / 1e9)
        assert rec.timeline["start_s"].min() == 0
        assert rec.timeline["end_s"].max() == pytest.approx(rec.duration_s)


def test_categories(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        assert tuple(rec.sites["toll"].cat.categories) == memtoll.frames.TOLLS
        assert tuple(rec.toll.index) == memtoll.frames.TOLLS
        assert list(dict.fromkeys(rec.toll["family"])) == list(memtoll.frames.FAMILIES)
        for table in (rec.sites, rec.faults, rec.allocations):
            assert table["call"].notna().all()
        assert set(rec.faults["class"].cat.categories) >= set(rec.faults["class"])


def test_older_recordings_lack_columns(busy: Path) -> None:
    """Columns that came later have their documented stand-ins."""
    import sqlite3
    from contextlib import closing

    with memtoll.open(busy) as rec:
        runs = rec.faults.drop(columns=["call", "area"])
    with closing(sqlite3.connect(busy)) as database:
        for table in ("latency", "outlier", "file_read", "threshold"):
            database.execute(f"DROP TABLE {table}")
        for table, column in (
            ("fault_run", "allocated_call"), ("fault_run", "area"), ("process_slice", "rss_bytes"),
            ("process_slice", "swap_bytes"), ("process", "memory_cgroup"),
        ):  # fmt: skip
            # Not DROP COLUMN: it wants every view to be whole.
            database.execute("PRAGMA writable_schema = ON")
            database.execute(f"CREATE TABLE copy AS SELECT * FROM {table}")
            names = [row[1] for row in database.execute("PRAGMA table_info(copy)") if row[1] != column]
            database.execute(f"DROP TABLE {table}")
            database.execute(f"CREATE TABLE {table} AS SELECT {', '.join(names)} FROM copy")
            database.execute("DROP TABLE copy")
        database.commit()
    with memtoll.open(busy) as rec:
        pd.testing.assert_frame_equal(rec.faults.drop(columns=["call", "area"]), runs)
        assert set(rec.faults["call"]) == {""}
        assert len(rec.latency) == len(rec.outliers) == len(rec.files) == len(rec.thresholds) == 0
        assert rec.process_timeline["rss_bytes"].isna().all()
        assert rec.processes["memory_cgroup"].isna().all()


def test_query(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        table = rec.query("SELECT pid, SUM(cpu_ns) AS cpu_ns FROM main.process_slice WHERE pid > ? GROUP BY pid", 42)
        assert list(table["pid"]) == [43, 47]
        with pytest.raises(memtoll.Error):
            rec.query("SELECT nonsense")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT a, b FROM Toll", {"toll"}),
        (
            "SELECT toll FROM main.fault_class, temp.verdict v JOIN [site_page] USING (a, rank)",
            {"verdict", "site_page"},
        ),
        (
            'SELECT * FROM "toll" t, `sites` AS s, finding WHERE a IN (1, stack) AND b IN note',
            {"toll", "sites", "finding", "note"},
        ),
        ("SELECT 'x'' FROM sites' -- FROM toll\n, /* FROM note, */ 1 FROM finding", {"finding"}),
        (
            "WITH toll(a) AS (SELECT 1 FROM note), sites AS NOT MATERIALIZED (SELECT 2) SELECT * FROM toll, sites",
            {"note"},
        ),
        (
            "SELECT * FROM (SELECT MAX(a, b), c FROM toll GROUP BY a, note), (sites, finding)",
            {"toll", "sites", "finding"},
        ),
        ("SELECT a IS DISTINCT FROM note, b FROM toll ORDER BY c, sites", {"toll"}),
        ("SELECT (SELECT 1 FROM toll), note FROM json_each('[1]') UNION SELECT 2, sites", {"toll", "json_each"}),
        (") , ( FROM", set()),
    ],
)
def test_what_a_query_reads_from(sql: str, names: set[str]) -> None:
    """Names in literals and comments, of columns, and of what the query itself defines are none."""
    assert read_from(sql) == names


def test_what_a_query_may_make_is_as_large_as_a_report_only_where_it_asks_for_one(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        assert rec.report
        large = "SELECT LENGTH(zeroblob(5000000)) AS n"
        with pytest.raises(memtoll.Error):
            rec.query(large)
        assert rec.query(f"{large} FROM report_json")["n"].iloc[0] == 5_000_000
        assert rec.query("SELECT toll FROM toll")["toll"].iloc[0] == "zero.kernel"


def test_every_frame_has_a_property() -> None:
    assert set(BY_NAME) == {name for name in memtoll.recording.NAMES if hasattr(memtoll.Recording, name)}
