# SPDX-License-Identifier: GPL-2.0
"""Parquet, as pyarrow reads it, and NDJSON, as its own schema has it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas as pd
import pyarrow.parquet as parquet
import pytest

import memtoll
from memtoll import frames
from memtoll.export import export, schema, tables


@pytest.mark.parametrize("group_rows", [tables.GROUP_ROWS, 11])
def test_parquet_gives_the_frames_back(
    busy: Path, tmp_path: Path, group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "GROUP_ROWS", group_rows)
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "tables", "parquet")
        assert {path.stem for path in (tmp_path / "tables").iterdir()} == set(frames.BY_NAME)
        for frame in frames.FRAMES:
            path = tmp_path / "tables" / f"{frame.name}.parquet"
            table = getattr(rec, frame.name)
            expected = pd.DataFrame(table.reset_index() if frame.index else table)
            read = pd.read_parquet(path)
            assert list(read.columns) == [column.name for column in frame.columns]
            for column in frame.columns:
                values = [None if pd.isna(value) else value for value in read[column.name]]
                meant = [None if pd.isna(value) else value for value in expected[column.name]]
                assert values == meant, (frame.name, column.name)
                if column.dtype in ("int64", "int32", "uint64", "float64", "bool", "category") and len(read):
                    assert read[column.name].dtype.name == column.dtype, (frame.name, column.name)


def test_parquet_says_units_and_losses(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "sites.parquet", frames=["sites"])
    made = parquet.read_schema(tmp_path / "sites.parquet")
    about = json.loads(made.metadata[b"memtoll.recording"])
    assert about["losses"]["ring_fault"]["count"] == 69
    assert "69 ring_fault" in about["note"]
    for column in frames.BY_NAME["sites"].columns:
        assert made.field(column.name).metadata[b"unit"].decode() == column.unit


def test_ndjson_is_as_its_schema_says(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "all.ndjson")
    validator = jsonschema.Draft202012Validator(schema("ndjson"))
    jsonschema.Draft202012Validator.check_schema(schema("ndjson"))
    lines = (tmp_path / "all.ndjson").read_text().splitlines()
    seen = set()
    for line in lines:
        row = json.loads(line)
        if row["frame"] in seen and row["frame"] in ("faults", "timeline", "process_timeline"):
            continue  # of many alike one is enough
        seen.add(row["frame"])
        validator.validate(row)
    # It is no schema that allows anything.
    broken = json.loads(lines[1])
    for change in ({"frame": "nothing"}, {"time_s": "long"}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(broken | change)


def test_parquet_schema_is_printed(busy: Path) -> None:
    lines = schema("parquet", ["toll"])["toll"]
    assert "time_s: double" in lines
