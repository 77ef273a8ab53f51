# SPDX-License-Identifier: GPL-2.0
"""Files of a table as a DataFrame: what pandas gets as a whole, and Dask's workers by parts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from ..errors import DamagedRecording
from ..extras import need
from .schema import PARTITION, TABLES, arrow_schema, conform, version_of
from .store import File

THREADS: Final = 4


def read_files(root: Path, table: str, files: Sequence[File], names: Sequence[str]) -> pd.DataFrame:
    """Columns of files, "host" and "day" out of their paths; with no files the same, empty.

    DamagedRecording, NewerFormat: of the first file that is so.
    """
    arrow = need("arrow", "pyarrow")
    inside = [column.name for column in TABLES[table] if column.name in names]
    schema = arrow_schema(table)
    kinds = [arrow.string() if name in PARTITION else schema.field(name).type for name in names]

    def read(file: File) -> Any:
        columns, rows = _read_file(root / file.path, table, inside)
        for name, value in (("host", file.host), ("day", file.day)):
            columns[name] = arrow.repeat(value, rows)
        return arrow.table({name: columns[name] for name in names})

    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(read, files))
    whole = arrow.concat_tables(parts) if parts else arrow.schema(list(zip(names, kinds))).empty_table()
    # By type, not by what is in them: parts of a table are to have the same dtypes.
    dtypes = {arrow.int64(): pd.Int64Dtype(), arrow.bool_(): pd.BooleanDtype()}
    return pd.DataFrame(whole.to_pandas(types_mapper=dtypes.get))


def _read_file(path: Path, table: str, inside: list[str]) -> tuple[dict[str, Any], int]:
    """Columns of one file, and how many rows it has."""
    arrow, parquet = need("arrow", "pyarrow"), need("arrow", "pyarrow.parquet")
    try:
        with path.open("rb") as source, parquet.ParquetFile(source) as opened:
            schema = opened.schema_arrow
            version = version_of(schema, str(path))
            there = [name for name in inside if name in set(schema.names)]
            # The files are small: threads of Arrow's own would cost more than they save.
            part = opened.read(there, use_threads=False)
            return conform(part, table, version, str(path), inside), opened.metadata.num_rows
    except FileNotFoundError:
        raise DamagedRecording(f"{path} is gone; the dataset says it was added") from None
    except (arrow.ArrowInvalid, arrow.ArrowIOError) as error:
        raise DamagedRecording(f"{path} is damaged: {' '.join(str(error).split())}") from None


@dataclass(frozen=True)
class Reader:
    """read_files for Dask: what it is called with goes over the wire to a worker."""

    root: str
    table: str
    names: tuple[str, ...]

    def __call__(self, group: Sequence[tuple[str, str, str]]) -> Any:
        files = [File(self.table, path, 0, host, day) for path, host, day in group]
        return read_files(Path(self.root), self.table, files, self.names)
