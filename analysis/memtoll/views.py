# SPDX-License-Identifier: GPL-2.0
"""The SQL views over a recording (schema.py), each evaluated once.

Views use other views a lot, and SQLite evaluates a view again at each mention. So they become
temporary tables of the same names, in their order, exactly as `memtoll report` does: a view uses
only earlier ones, and unqualified names are looked up among the temporary tables first. The
recording itself is not touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .opening import Opened, Progress, bounded, limit_values, reading
from .queried import read_from
from .schema import columns_of, schema, split

# What only a report in text, long or short, or only its JSON, is made of is named after it: work for each site.
ENDINGS: Final = ("_page", "_short", "_json")


class Views:
    """The connection of a recording, with its views as temporary tables where they were asked for."""

    def __init__(self, opened: Opened, progress: Progress | None = None) -> None:
        self.connection = opened.connection
        self.path = opened.path
        self._budget = opened.budget
        self.progress = progress
        self._made: set[str] = set()
        self._all_put = False

    def make(self, last: str) -> None:
        """Work out the view named last and those before it, as far as it needs them."""
        limit_values(self.connection, made=last.endswith("_json"))
        if last in self._made:
            return
        queries = schema().views
        names = list(queries)
        names = names[: names.index(last) + 1]
        todo = [
            name
            for name in names
            if name not in self._made
            and name not in schema().kept
            and not any(name.endswith(ending) and not last.endswith(ending) for ending in ENDINGS)
        ]
        for done, name in enumerate(todo):
            if self.progress:
                self.progress("working out the tolls", done, len(todo))
            self._all_put = False  # not this one, where it comes to nothing
            limit_values(self.connection, made=name.endswith("_json"))
            with self._whole():
                self.connection.execute(f'DROP VIEW IF EXISTS temp."{name}"')
                self.connection.execute(f'CREATE TEMP TABLE "{name}" AS {queries[name]}')
                if columns := schema().indexed.get(name):
                    self.connection.execute(f'CREATE INDEX temp."{name}_index" ON "{name}" ({columns})')
            self._made.add(name)
        if self.progress:
            self.progress("working out the tolls", len(todo), len(todo))

    def put_all(self, sql: str) -> None:
        """Those that a query reads from, and the others as what they are: it may name any of them.

        To plan one that rests on all others takes SQLite seconds, to work them out one by one a tenth of that.
        """
        named = read_from(sql) & (schema().views.keys() - schema().kept)
        for name in named:
            self.make(name)
        limit_values(self.connection, made=any(name.endswith("_json") for name in named))
        if self._all_put:
            return
        for name, query in schema().views.items():
            if name not in self._made and name not in schema().kept:
                with reading(self.path):
                    self.connection.execute(f'CREATE TEMP VIEW IF NOT EXISTS "{name}" AS {query}')
        self._all_put = True

    def run(self, name: str, script: str) -> None:
        """Once: statements that make temporary tables of a name of ours."""
        if name in self._made:
            return
        with self._whole():
            for statement in split(script):
                self.connection.execute(statement)
        self._made.add(name)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is made in it, or nothing: where it fails the views are there as before, and say the same again."""
        self.execute("SAVEPOINT made")
        try:
            with bounded(self.connection, self.path, self._budget):
                yield
        except BaseException:
            # Of an interrupt SQLite may have rolled back all by itself.
            if self.connection.in_transaction:
                self.execute("ROLLBACK TO made")
            raise
        finally:
            if self.connection.in_transaction:
                self.execute("RELEASE made")

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """One statement; errors as those of memtoll.open."""
        with reading(self.path):
            return self.connection.execute(sql, values)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query of ours, which the file's facts may make a long one."""
        with bounded(self.connection, self.path, self._budget):
            return self.connection.execute(sql, values).fetchall()

    def columns(self, table: str) -> list[str]:
        """Names of the columns that the file's own table has."""
        with reading(self.path):
            return columns_of(self.connection, table)
