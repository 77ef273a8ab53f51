# SPDX-License-Identifier: GPL-2.0
"""Exports that need no extras, and what holds for all: whole or not at all, nothing replaced unasked."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import memtoll
from memtoll import frames
from memtoll.export import FORMATS, BadExport, Exists, export, format_of, tables, writing
from memtoll.export.schema import CSV_TYPES

import harness
from package import Cli

LOSS = "69 ring_fault"


def plain(value: Any) -> Any:
    """None where a value is missing."""
    return None if value is None or value is pd.NA or value != value else value


def rows_of(rec: memtoll.Recording, name: str) -> list[dict[str, Any]]:
    frame = frames.BY_NAME[name]
    table = getattr(rec, name)
    table = table.reset_index() if frame.index else table
    return [{key: plain(value) for key, value in row.items()} for row in table.to_dict("records")]


# ---- folded


@pytest.mark.slow
def test_folded_is_what_the_report_prints(scenario: Path, tmp_path: Path) -> None:
    """Of the toll that has most lines, and of one that the recording has not; of each toll: the next test."""
    folded = {}
    with memtoll.open(scenario) as rec:
        for toll in frames.TOLLS:
            export(rec, tmp_path / f"{toll}.folded", toll=toll)
            folded[toll] = (tmp_path / f"{toll}.folded").read_text()
    absent = next(toll for toll in frames.TOLLS if not folded[toll])
    for toll in (max(folded, key=lambda toll: folded[toll].count("\n")), absent):
        report = harness.memtoll("report", scenario, "--folded", toll)
        assert (report.status, report.stdout) == (0, folded[toll]), (toll, report.stderr)


@pytest.mark.slow
def test_folded_of_all_tolls(busy: Path, tmp_path: Path) -> None:
    expected = []
    for toll in frames.TOLLS:
        printed = harness.memtoll("report", busy, "--folded", toll)
        assert printed.status == 0, printed.stderr
        expected += [f"{toll};{line}" for line in printed.stdout.splitlines()]
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "out.folded")
    first, *rest = (tmp_path / "out.folded").read_text().splitlines()
    assert rest == expected
    assert len(expected) > 7
    # Said of the losses, in a line that programs for folded stacks skip: no number at its end.
    assert first.startswith("# ") and LOSS in first
    assert not re.search(r"\s\d+(\.\d*)?$", first)


# ---- CSV


@pytest.mark.slow
def test_csv_to_the_last_digit(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "tables", "csv")
        about = json.loads((tmp_path / "tables" / "csv-metadata.json").read_text())
        described = {table["url"]: table["tableSchema"]["columns"] for table in about["tables"]}
        assert {path.name for path in (tmp_path / "tables").iterdir()} == {*described, "csv-metadata.json"}
        for frame in frames.FRAMES:
            with (tmp_path / "tables" / f"{frame.name}.csv").open(newline="", encoding="utf-8") as file:
                read = list(csv.DictReader(file))
            expected = rows_of(rec, frame.name)
            assert len(read) == len(expected)
            columns = {column["name"]: column["datatype"] for column in described[f"{frame.name}.csv"]}
            for got, row in zip(read, expected):
                assert list(got) == [column.name for column in frame.columns] == list(columns)
                for column in frame.columns:
                    assert csv_value(got[column.name], columns[column.name]) == (row[column.name] or None) or (
                        row[column.name] == csv_value(got[column.name], columns[column.name])
                    ), (frame.name, column.name)
    assert about["notes"][0]["losses"]["ring_fault"]["count"] == 69
    assert LOSS in about["notes"][0]["note"]


def csv_value(text: str, datatype: str) -> Any:
    if text == "":
        return None
    if datatype == "double":
        return float(text)
    if datatype == "boolean":
        return {"true": True, "false": False}[text]
    return int(text) if datatype in ("long", "int", "unsignedLong") else text


def test_one_table_as_csv(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "toll.csv", frames=["toll"])
        with (tmp_path / "toll.csv").open(newline="") as file:
            assert [row["toll"] for row in csv.DictReader(file)] == list(rec.toll.index)
    about = json.loads((tmp_path / "toll.csv-metadata.json").read_text())
    assert about["url"] == "toll.csv"
    assert about["notes"][0]["losses"]["ring_fault"]["count"] == 69
    units = {column["name"]: column.get("schema:unitText") for column in about["tableSchema"]["columns"]}
    assert (units["time_s"], units["bytes"], units["toll"]) == ("s", "bytes", None)


def test_every_dtype_has_a_type() -> None:
    assert {column.dtype for frame in frames.FRAMES for column in frame.columns} <= set(CSV_TYPES)


# ---- NDJSON


@pytest.mark.slow
def test_ndjson_to_the_last_digit(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "all.ndjson")
        lines = [json.loads(line) for line in (tmp_path / "all.ndjson").read_text().splitlines()]
        head, *rest = lines
        assert head["frame"] == "recording"
        assert head["losses"] == rec.toll.attrs["losses"]
        assert head["complete"] is True
        assert head["verdict"] == rec.verdict.sentence
        for frame in frames.FRAMES:
            got = [line for line in rest if line["frame"] == frame.name]
            assert got == [{"frame": frame.name, **row} for row in rows_of(rec, frame.name)]
            for row in got:
                assert not any(isinstance(value, float) and not math.isfinite(value) for value in row.values())
    assert len(rest) == sum(1 for line in rest if line["frame"] in frames.BY_NAME)


@pytest.mark.slow
def test_chunks(busy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same whatever a chunk holds; progress ends at the end."""
    seen: list[tuple[str, int, int]] = []
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "one.ndjson")
        monkeypatch.setattr(tables, "ROWS", 7)
        export(rec, tmp_path / "two.ndjson", progress=lambda *step: seen.append(step))
        count = len(rec.faults)
    assert (tmp_path / "one.ndjson").read_bytes() == (tmp_path / "two.ndjson").read_bytes()
    assert [step for step in seen if step[0] == "writing faults"][-1] == ("writing faults", count, count)


# ---- whole or not at all


def test_nothing_is_replaced_unasked(heap_blocks: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.folded"
    target.write_text("mine")
    link = tmp_path / "link.folded"
    link.symlink_to(tmp_path / "nowhere")
    with memtoll.open(heap_blocks) as rec:
        for path in (target, link):
            with pytest.raises(Exists, match="--force"):
                export(rec, path)
        assert target.read_text() == "mine"
        assert not (tmp_path / "nowhere").exists()
        export(rec, target, force=True)
    assert "round_once" in target.read_text()


def test_a_file_that_came_in_between_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def write() -> None:
        with writing.new_file(target, force=False, may=0o600) as temporary:
            temporary.write_text("new")
            target.write_text("came in between")

    with pytest.raises(Exists):
        write()
    assert target.read_text() == "came in between"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["out.ndjson", "tables"])
def test_a_failure_leaves_nothing(
    heap_blocks: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = set(tmp_path.iterdir())
    with memtoll.open(heap_blocks) as rec:
        monkeypatch.setattr(tables, "_values", full)
        with pytest.raises(OSError, match="No space"):
            export(rec, tmp_path / name, "csv" if name == "tables" else None)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_directories(heap_blocks: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    with memtoll.open(heap_blocks) as rec:
        for force in (False, True):
            with pytest.raises(Exists):
                export(rec, mine, "csv", force=force)
        assert (mine / "letter").read_text() == "dear"
        export(rec, tmp_path / "tables", "csv")
        (tmp_path / "tables" / "toll.csv").write_text("old")
        with pytest.raises(Exists):
            export(rec, tmp_path / "tables", "csv")
        export(rec, tmp_path / "tables", "csv", force=True)
        assert "zero.libc" in (tmp_path / "tables" / "toll.csv").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "tables", heap_blocks.name}


@pytest.mark.slow
def test_modes_follow_the_umask(heap_blocks: Path, tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with memtoll.open(heap_blocks) as rec:
            export(rec, tmp_path / "out.folded")
            export(rec, tmp_path / "tables", "csv")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out.folded").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "tables").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "tables" / "toll.csv").stat().st_mode) == 0o640
    # A recording is its owner's alone, and so is what is made of it.
    heap_blocks.chmod(0o600)
    with memtoll.open(heap_blocks) as rec:
        export(rec, tmp_path / "own.folded")
        export(rec, tmp_path / "own", "csv")
    assert stat.S_IMODE((tmp_path / "own.folded").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "own" / "toll.csv").stat().st_mode) == 0o600


# ---- what does not go together


def test_formats_by_suffix() -> None:
    for each in FORMATS.values():
        for suffix in each.suffixes:
            assert format_of(f"some.where/x{suffix}") == each.name
    with pytest.raises(BadExport, match=re.escape(".pb.gz")):
        format_of("x.docx")


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("x.docx", {}, "--format"),
        ("x.csv", {"toll": "map"}, "pprof, folded"),
        ("x.folded", {"toll": "nothing"}, "zero.kernel"),
        ("x.folded", {"frames": ["toll"]}, "csv"),
        ("x.pb.gz", {"owner": "nobody"}, "touched"),
        ("x.csv", {"frames": ["nothing"]}, "sites"),
        ("x", {"format": "docx"}, "perfetto"),
        ("-", {"format": "csv"}, "one frame"),
        ("x.csv", {}, "--format csv"),
    ],
)
def test_refused(heap_blocks: Path, tmp_path: Path, name: str, options: dict[str, Any], says: str) -> None:
    before = set(tmp_path.iterdir())
    with memtoll.open(heap_blocks) as rec, pytest.raises(BadExport, match=re.escape(says)):
        export(rec, name if name == "-" else tmp_path / name, **options)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("x.pb.gz", "google.protobuf.descriptor_pb2", "pprof"),
        ("x.pftrace", "perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto"),
        ("x.parquet", "pyarrow", "arrow"),
    ],
)
def test_a_missing_extra_is_named(
    heap_blocks: Path, tmp_path: Path, name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, module, None)
    with (
        memtoll.open(heap_blocks) as rec,
        pytest.raises(memtoll.MissingExtra, match=re.escape(f"pip install 'memtoll[{extra}]'")),
    ):
        export(rec, tmp_path / name, frames=["toll"] if extra == "arrow" else None)
    assert set(tmp_path.iterdir()) == before


# ---- command line


@pytest.mark.slow
def test_command_line(cli: Cli, heap_blocks: Path, tmp_path: Path) -> None:
    out = tmp_path / "z.folded"
    done = cli("export", heap_blocks, "-o", out, "--toll", "zero.libc")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"memtoll: wrote {out}\n")
    text = out.read_text()
    again = cli("export", heap_blocks, "-o", out)
    assert again.returncode == 1
    assert re.fullmatch(r"memtoll: .*z\.folded exists already; .*--force.*\n", again.stderr)
    assert out.read_text() == text
    assert cli("export", heap_blocks, "-o", out, "--force", "--toll", "map").returncode == 0
    assert out.read_text() != text
    piped = cli("export", heap_blocks, "-o", "-", "-f", "folded", "--toll", "zero.libc")
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, text, "")
    table = cli("export", heap_blocks, "-o", "-", "-f", "csv", "--frame", "toll")
    assert table.stdout.splitlines()[0].startswith("toll,family,time_s")


@pytest.mark.parametrize(
    "words",
    [
        ["FILE"],
        ["-o", "x.csv"],
        ["FILE", "-o", "x.docx"],
        ["FILE", "-o", "x.csv", "--toll", "map"],
        ["--schema"],
        ["--schema", "-f", "pprof"],
        ["FILE", "-o", "x", "-f", "nothing"],
    ],
)
def test_usage(cli: Cli, heap_blocks: Path, words: list[str]) -> None:
    done = cli("export", *[str(heap_blocks) if word == "FILE" else word for word in words])
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("memtoll: export: ") and done.stderr.count("\n") == 1


def test_printed_schema(cli: Cli) -> None:
    done = cli("export", "--schema", "-f", "ndjson")
    schema = json.loads(done.stdout)
    kinds = {each["properties"]["frame"]["const"]: each for each in schema["oneOf"]}
    assert set(kinds) == {"recording", *frames.BY_NAME}
    assert kinds["toll"]["properties"]["time_s"]["x-unit"] == "s"
    one = json.loads(cli("export", "--schema", "-f", "csv", "--frame", "losses").stdout)
    assert one["url"] == "losses.csv"


def test_incomplete_recordings_say_so(heap_blocks: Path, tmp_path: Path, cli: Cli) -> None:
    with closing(sqlite3.connect(heap_blocks)) as database, database:
        database.execute("DELETE FROM meta WHERE key = 'complete'")
    out = tmp_path / "x.ndjson"
    assert cli("export", heap_blocks, "-o", out).returncode == 0
    head = json.loads(out.read_text().splitlines()[0])
    assert head["complete"] is False
    assert "incomplete" in head["note"]


def test_recordings_export_themselves(heap_blocks: Path, tmp_path: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        rec.export(tmp_path / "method.folded", toll="zero.libc")
        export(rec, tmp_path / "function.folded", toll="zero.libc")
    assert (tmp_path / "method.folded").read_bytes() == (tmp_path / "function.folded").read_bytes()


def test_dataset_is_at_the_top() -> None:
    assert memtoll.dataset is memtoll.fleet.dataset
