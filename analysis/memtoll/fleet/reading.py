# SPDX-License-Identifier: GPL-2.0
"""Files of a table as a DataFrame: what pandas gets as a whole, and Dask's workers by parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import DamagedRecording
from ..extras import need
from .schema import PARTITION, TABLES, arrow_schema, conform, version_of
from .store import File


def read_files(root: Path, table: str, files: Sequence[File], names: Sequence[str]) -> pd.DataFrame:
    """Columns of files, "host" and "day" out of their paths; with no files the same, empty.

    DamagedRecording, NewerFormat: of the first file that is so.
    """
    arrow, parquet = need("arrow", "pyarrow"), need("arrow", "pyarrow.parquet")
    inside = [column.name for column in TABLES[table] if column.name in names]
    schema = arrow_schema(table)
    kinds = [arrow.string() if name in PARTITION else schema.field(name).type for name in names]
    parts = []
    for file in files:
        path = root / file.path
        try:
            with parquet.ParquetFile(path) as opened:
                version = version_of(opened.schema_arrow, str(path))
                there = set(opened.schema_arrow.names)
                # At least one column, or there would be no number of rows.
                part = opened.read([name for name in inside if name in there] or ["recording"])
        except FileNotFoundError:
            raise DamagedRecording(f"{path} is gone; the dataset says it was added") from None
        except (arrow.ArrowInvalid, arrow.ArrowIOError) as error:
            raise DamagedRecording(f"{path} is damaged: {' '.join(str(error).split())}") from None
        made = conform(part, table, version, str(path), inside)
        for name, value in (("host", file.host), ("day", file.day)):
            if name in names:
                made = made.append_column(name, arrow.repeat(value, len(part)))
        parts.append(made.select(list(names)))
    whole = arrow.concat_tables(parts) if parts else arrow.schema(list(zip(names, kinds))).empty_table()
    # By type, not by what is in them: parts of a table are to have the same dtypes.
    dtypes = {arrow.int64(): pd.Int64Dtype(), arrow.bool_(): pd.BooleanDtype()}
    return pd.DataFrame(whole.to_pandas(types_mapper=dtypes.get))


@dataclass(frozen=True)
class Reader:
    """read_files for Dask: what it is called with goes over the wire to a worker."""

    root: str
    table: str
    names: tuple[str, ...]

    def __call__(self, group: Sequence[tuple[str, str, str]]) -> Any:
        files = [File(self.table, path, 0, host, day) for path, host, day in group]
        return read_files(Path(self.root), self.table, files, self.names)
