# SPDX-License-Identifier: GPL-2.0
"""Reads millions of rows of a table into arrays: from the file's pages (pages.py), else through SQLite.

Memory is bounded by the result either way: rows are converted to arrays of the final types by chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .opening import Progress, reading
from .pages import Unusual, read_table
from .views import Views

Array = npt.NDArray[Any]

CHUNK: Final = 65_536
# Below that threads and buffers cost more than they save.
WORTH_PAGES: Final = 50_000


@dataclass(frozen=True)
class Source:
    """A column to read: SQL expression, and the dtype of the array; "text" is coded.

    column: the same as a column of the table; None where the SQL is more than that.
    """

    name: str
    sql: str
    dtype: str
    column: str | None


@dataclass
class Codes:
    """Texts as numbers, in the order they were first seen."""

    texts: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, text: str | None) -> int:
        key = text or ""
        number = self.numbers.setdefault(key, len(self.texts))
        if number == len(self.texts):
            self.texts.append(key)
        return number


class Arrays:
    """Chunks of columns, in the order of the table; columns() joins them and lets go of the chunks."""

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.codes = {source.name: Codes() for source in sources if source.dtype == "text"}
        self.chunks: list[list[Array]] = []

    def columns(self) -> Iterator[tuple[Source, Array]]:
        """Each source with its values; texts as int32 codes into codes[name].texts."""
        for number, source in enumerate(self.sources):
            dtype = "int32" if source.dtype == "text" else source.dtype
            pieces = [chunk[number] for chunk in self.chunks]
            for chunk in self.chunks:
                chunk[number] = np.empty(0, dtype)
            yield source, np.concatenate(pieces) if pieces else np.empty(0, dtype)


def load(
    views: Views, table: str, sources: list[Source], *, in_place: bool, progress: Progress | None = None
) -> Arrays:
    """Columns of a main table with row ids, in their order.

    in_place: the connection is to the file itself, not to a copy of it. Memory: the result, and
    one column of it twice. Errors: DamagedRecording.
    """
    ((rows,),) = views.rows(f"SELECT COUNT(*) FROM main.{table}")
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress:
            progress("loading fault runs", min(done, rows), rows)

    if in_place and rows >= WORTH_PAGES:
        try:
            arrays = _load_pages(views, table, sources, count)
            if sum(len(chunk[0]) for chunk in arrays.chunks) == rows:
                return arrays
        except Unusual:
            pass
        done = 0
    return _load_cursor(views, table, sources, count)


def _load_cursor(views: Views, table: str, sources: list[Source], count: Callable[[int], None]) -> Arrays:
    arrays = Arrays(sources)
    select = ", ".join(source.sql for source in sources)
    cursor = views.execute(f"SELECT {select} FROM main.{table} ORDER BY rowid")
    while True:
        with reading(views.path):
            rows = cursor.fetchmany(CHUNK)
        if not rows:
            return arrays
        chunk: list[Array] = []
        for source, values in zip(sources, zip(*rows, strict=True), strict=True):
            if source.dtype == "text":
                codes = arrays.codes[source.name]
                known = {text: codes.of(text) for text in set(values)}
                chunk.append(np.fromiter((known[text] for text in values), "int32", len(rows)))
            else:
                chunk.append(np.fromiter(values, "int64", len(rows)).astype(source.dtype))
        arrays.chunks.append(chunk)
        count(len(rows))


def _load_pages(views: Views, table: str, sources: list[Source], count: Callable[[int], None]) -> Arrays:
    arrays = Arrays(sources)
    names = views.columns(table)
    ((root,),) = views.rows("SELECT rootpage FROM main.sqlite_master WHERE type = 'table' AND name = ?", table)
    wanted = {names.index(source.column): source.dtype for source in sources if source.column}
    order = list(wanted)
    views.execute("BEGIN")  # nobody writes while a transaction reads
    try:
        views.rows("SELECT 1 FROM main.sqlite_master LIMIT 1")
        for values in read_table(views.path, root, len(names), wanted):
            found = dict(zip(order, values, strict=True))
            rows = len(values[0][0] if isinstance(values[0], tuple) else values[0])
            chunk: list[Array] = []
            for source in sources:
                if not source.column:
                    # The default that stands in for a column older recordings lack.
                    code = arrays.codes[source.name].of(source.sql.strip("'"))
                    chunk.append(np.full(rows, code, "int32"))
                    continue
                value = found[names.index(source.column)]
                if source.dtype == "text":
                    codes = arrays.codes[source.name]
                    known = np.array([codes.of(text) for text in value[1]] or [0], "int32")
                    value = known[value[0]]
                chunk.append(value)
            arrays.chunks.append(chunk)
            count(rows)
    finally:
        views.execute("COMMIT")
    return arrays
