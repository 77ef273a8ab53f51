# SPDX-License-Identifier: GPL-2.0
"""Frames as CSV, NDJSON and Parquet, by chunks, to the last digit."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ..extras import need
from ..frames import Frame
from ..opening import Progress
from ..visible import cell
from .about import About
from .schema import HEAD, arrow_schema, csv_metadata
from .values import plain

if TYPE_CHECKING:
    from ..recording import Recording

ROWS: Final = 65_536
# Parquet: rows of one row group.
GROUP_ROWS: Final = 1 << 20


def _table(rec: Recording, frame: Frame) -> pd.DataFrame:
    """A frame with its index as a column, in the order of the documentation."""
    table = getattr(rec, frame.name)
    if frame.index:
        table = table.reset_index()
    return table[[column.name for column in frame.columns]]


def _chunks(table: pd.DataFrame, frame: Frame, rows: int, progress: Progress | None) -> Iterator[pd.DataFrame]:
    for begin in range(0, len(table), rows):
        yield table.iloc[begin : begin + rows]
        if progress:
            progress(f"writing {frame.name}", min(begin + rows, len(table)), len(table))


def _values(chunk: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Rows of plain Python values, None where one is missing."""
    return zip(*(plain(chunk[name]) for name in chunk.columns))


def write_csv(rec: Recording, frame: Frame, path: Path, progress: Progress | None) -> None:
    """A frame as CSV (RFC 4180, UTF-8): a head line, nothing where a value is missing, no text that is a formula."""
    table = _table(rec, frame)
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        for chunk in _chunks(table, frame, ROWS, progress):
            for row in _values(chunk):
                writer.writerow(str(value).lower() if isinstance(value, bool) else cell(value) for value in row)


def write_csv_metadata(tables: Sequence[tuple[Frame, str]], about: About, path: Path) -> None:
    """What the columns of CSV files are, and what was lost: CSV itself has no place for it."""
    path.write_text(json.dumps(csv_metadata(tables, about), indent=1) + "\n", encoding="utf-8")


def write_ndjson(rec: Recording, about: About, frames: Sequence[Frame], path: Path, progress: Progress | None) -> None:
    """Frames as lines of JSON; member "frame" says of which. The first line is the recording."""
    encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(encode({"frame": HEAD, **about.as_dict()}) + "\n")
        for frame in frames:
            table = _table(rec, frame)
            names = list(table.columns)
            for chunk in _chunks(table, frame, ROWS, progress):
                for row in _values(chunk):
                    file.write(encode({"frame": frame.name, **dict(zip(names, map(_finite, row)))}) + "\n")


def _finite(value: Any) -> Any:
    # JSON has no infinity; a ratio that is one is unknown to its readers.
    return None if isinstance(value, float) and math.isinf(value) else value


def write_parquet(rec: Recording, about: About, frame: Frame, path: Path, progress: Progress | None) -> None:
    """A frame as Parquet, with units, meanings and the recording in its metadata."""
    arrow, parquet = need("arrow", "pyarrow"), need("arrow", "pyarrow.parquet")
    schema = arrow_schema(frame, about)
    table = _table(rec, frame)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for chunk in _chunks(table, frame, GROUP_ROWS, progress):
            # They are in the schema's metadata; pyarrow would try to write them as JSON, and warn.
            chunk.attrs = {}
            writer.write_table(arrow.Table.from_pandas(chunk, schema=schema, preserve_index=False))
