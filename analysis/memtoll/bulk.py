# SPDX-License-Identifier: GPL-2.0
"""Millions of rows of a table into arrays.

Python's SQLite cursor makes an object of every value: 24 s for 10 million fault runs of 13 columns
on the development machine (2 cores). ADBC's SQLite driver fills Arrow arrays instead, 13 s of
processor time, and lets go of Python's lock, so that it runs on several parts at once: extra
"arrow". connectorx was measured too: as fast, but it keeps the whole table in memory at 64 bits a value.
What the cursor reads is put into arrays by chunks, so that memory is bounded by the result either way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from .extras import have
from .opening import Progress, reading
from .views import Views

Array = npt.NDArray[Any]

CHUNK: Final = 65_536
# Below that the drivers' start costs more than it saves.
WORTH_ARROW: Final = 200_000
THREADS: Final = 4


@dataclass(frozen=True)
class Source:
    """One column to read: SQL expression, and the dtype of the array; 'text' is coded."""

    name: str
    sql: str
    dtype: str


@dataclass
class Codes:
    """Texts as numbers, in the order they were first seen; used by several threads."""

    texts: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def of(self, text: str | None) -> int:
        key = text or ""
        with self.lock:
            number = self.numbers.setdefault(key, len(self.texts))
            if number == len(self.texts):
                self.texts.append(key)
        return number


class Arrays:
    """Chunks of columns, in the order of the table; columns() joins them and lets go of the chunks."""

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.codes = {source.name: Codes() for source in sources if source.dtype == "text"}
        self.parts: dict[int, list[list[Array]]] = {}

    def add(self, part: int, chunk: list[Array]) -> None:
        self.parts.setdefault(part, []).append(chunk)

    def columns(self) -> Iterator[tuple[Source, Array]]:
        chunks = [chunk for part in sorted(self.parts) for chunk in self.parts[part]]
        self.parts.clear()
        for number, source in enumerate(self.sources):
            dtype = "int32" if source.dtype == "text" else source.dtype
            pieces = [chunk[number] for chunk in chunks]
            for chunk in chunks:
                chunk[number] = np.empty(0, dtype)
            yield source, np.concatenate(pieces) if pieces else np.empty(0, dtype)


def load(
    views: Views, table: str, sources: list[Source], *, in_place: bool, progress: Progress | None = None
) -> Arrays:
    """Columns of a main table with row ids, in their order.

    in_place: the file itself may be read by another connection, for it is finished. Memory: the
    result, and one column of it twice. Errors: DamagedRecording.
    """
    arrays = Arrays(sources)
    ((first, last),) = views.rows(f"SELECT MIN(rowid), MAX(rowid) FROM main.{table}")
    if last is None:
        return arrays
    rows = last - first + 1
    done, lock = 0, Lock()

    def count(more: int) -> None:
        nonlocal done
        with lock:
            done += more
            if progress:
                progress("loading fault runs", min(done, rows), rows)

    select = "SELECT " + ", ".join(f"{source.sql} AS {source.name}" for source in sources) + f" FROM main.{table}"
    if in_place and rows >= WORTH_ARROW and have("adbc_driver_sqlite.dbapi") and have("pyarrow"):
        _load_arrow(views.path, select, first, last, arrays, count)
    else:
        _load_cursor(views, select, arrays, count)
    return arrays


def _load_cursor(views: Views, select: str, arrays: Arrays, count: Callable[[int], None]) -> None:
    cursor = views.execute(f"{select} ORDER BY rowid")
    while True:
        with reading(views.path):
            rows = cursor.fetchmany(CHUNK)
        if not rows:
            return
        chunk: list[Array] = []
        for source, values in zip(arrays.sources, zip(*rows, strict=True), strict=True):
            if source.dtype == "text":
                codes = arrays.codes[source.name]
                known = {text: codes.of(text) for text in set(values)}
                chunk.append(np.fromiter((known[text] for text in values), "int32", len(rows)))
            else:
                chunk.append(np.fromiter(values, "int64", len(rows)).astype(source.dtype))
        arrays.add(0, chunk)
        count(len(rows))


def _load_arrow(path: Path, select: str, first: int, last: int, arrays: Arrays, count: Callable[[int], None]) -> None:
    from adbc_driver_sqlite import dbapi

    parts = max(1, min(THREADS, os.cpu_count() or 1))
    edges = [first + (last - first + 1) * part // parts for part in range(parts + 1)]
    stop = False

    def read(part: int) -> None:
        uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        where = f" WHERE rowid >= {edges[part]} AND rowid < {edges[part + 1]} ORDER BY rowid"
        with dbapi.connect(uri) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(CHUNK)})
            cursor.execute(select + where)
            for batch in cursor.fetch_record_batch():
                if stop:
                    return
                arrays.add(part, [_array(source, batch.column(i), arrays) for i, source in enumerate(arrays.sources)])
                count(batch.num_rows)

    for part in range(parts):
        arrays.parts[part] = []
    with ThreadPoolExecutor(parts) as pool:
        tasks = [pool.submit(read, part) for part in range(parts)]
        try:
            for task in tasks:
                task.result()
        finally:
            stop = True


def _array(source: Source, column: Any, arrays: Arrays) -> Array:
    if source.dtype != "text":
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(source.dtype, copy=False)
    coded = column.dictionary_encode()
    codes = arrays.codes[source.name]
    known = np.array([codes.of(text) for text in coded.dictionary.to_pylist()], dtype="int32")
    return np.asarray(known[coded.indices.to_numpy(zero_copy_only=False)], dtype="int32")
