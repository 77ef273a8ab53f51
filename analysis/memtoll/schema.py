# SPDX-License-Identifier: GPL-2.0
"""The schema of a recording, and this package's own views over it.

A recording contains its views, so that any SQLite shell can query it. They are not used here: whoever made
the file could have put any verdict into them. Temporary tables of the same names take precedence, here those that
hold judgements, in views.py what the views come to. userspace/recording/recording_schema.c does the same.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from .errors import DamagedRecording

# A view whose text the view named here tells (userspace/views/order).
ADVICE_SOURCE: Final = "advice_source"
VIEW: Final = re.compile(r"(?:\s|--[^\n]*\n)*CREATE VIEW (\w+)\s+AS\s+")


@dataclass(frozen=True)
class Column:
    """default: SQL of what stands in where an older recording lacks it; None: all recordings have it."""

    name: str
    default: str | None


@dataclass(frozen=True)
class Table:
    """rows: what the schema itself puts in: judgements, and no facts. later: older recordings may lack it."""

    name: str
    sql: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    later: bool


@dataclass(frozen=True)
class Schema:
    """views: name and query, in their order: each uses only those before it. kept: never made tables of.

    indexed: the columns that a view's table is looked up by, of the few that are.
    """

    tables: tuple[Table, ...]
    views: dict[str, str]
    kept: frozenset[str]
    indexed: dict[str, str]


def _files() -> list[str]:
    folder = resources.files(__package__) / "sql"
    names = (folder / "order").read_text(encoding="utf-8").split()
    return [name if name == ADVICE_SOURCE else (folder / name).read_text(encoding="utf-8") for name in names]


def _table(database: sqlite3.Connection, name: str, sql: str, later: bool) -> Table:
    columns = [
        Column(column, "NULL" if default is None and not needed and not key else default)
        for _, column, _, needed, default, key in database.execute("SELECT * FROM pragma_table_info(?)", (name,))
    ]
    rows = database.execute(f'SELECT * FROM "{name}"').fetchall()
    return Table(name, sql, tuple(columns), tuple(rows), later)


def split(script: str) -> list[str]:
    """The statements of a script, one after the other."""
    statements, text = [], ""
    for part in script.split(";"):
        text += part + ";"
        if sqlite3.complete_statement(text):
            statements.append(text)
            text = ""
    return statements


@cache
def schema() -> Schema:
    """What an empty recording of this version has. SQLite takes long to make the views: only their text is read."""
    views: dict[str, str] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        for script in _files():
            if script == ADVICE_SOURCE:
                rests_on = f"WITH advice_rule AS ({views['advice_rule']})"
                (script,) = database.execute(f"{rests_on} {views[ADVICE_SOURCE]}").fetchone()
            for statement in split(script):
                if view := VIEW.match(statement):
                    views[view[1]] = statement[view.end() :].rstrip().removesuffix(";").rstrip()
                else:
                    database.execute(statement)
        kept = frozenset(name for (name,) in database.execute(views["kept_view"]))
        indexed = dict(database.execute(views["indexed_view"]))
        later = {name for (name,) in database.execute("SELECT name FROM later_table")}
        made = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
        tables = tuple(_table(database, name, sql, name in later) for name, sql in made)
        return Schema(tables, views, kept, indexed)


class Word(NamedTuple):
    """What a toll looks like and is called, wherever it is shown."""

    colour: str
    meaning: str


@cache
def toll_words() -> dict[str, Word]:
    """The words of each toll, in no order: view toll_word, which rests on no table."""
    with closing(sqlite3.connect(":memory:")) as database:
        rows = database.execute(f"SELECT toll, colour, meaning FROM ({schema().views['toll_word']})").fetchall()
    return {toll: Word(colour, meaning) for toll, colour, meaning in rows}


def _put_table_before(connection: sqlite3.Connection, path: Path, table: Table, plain: bool | None) -> None:
    """plain: the file has it as a plain table, as something else, or not (None)."""
    if table.rows or (plain is None and table.later):
        connection.execute(table.sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
        marks = ", ".join("?" * len(table.columns))
        connection.executemany(f'INSERT INTO temp."{table.name}" VALUES ({marks})', table.rows)
        return
    if plain is None:
        raise DamagedRecording(f"{path} lacks a table of a recording: {table.name}")
    if not plain:
        raise DamagedRecording(f"{path} is damaged: its {table.name} is no table")
    there = columns_of(connection, table.name)
    missing = [column for column in table.columns if column.name not in there]
    for column in missing:
        if column.default is None:
            raise DamagedRecording(f"{path} is damaged: its table {table.name} has no column {column.name}")
    if missing:
        select = ", ".join(
            f'"{column.name}"' if column.name in there else f'{column.default} AS "{column.name}"'
            for column in table.columns
        )
        connection.execute(f'CREATE TEMP VIEW "{table.name}" AS SELECT {select} FROM main."{table.name}"')


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """Names of the columns that the file's own table has, in its order."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (table,))
    return [str(name) for (name,) in rows]


def put_before(connection: sqlite3.Connection, path: Path) -> frozenset[str]:
    """From here on an unqualified name is a table of the file's with all its columns, or one of this package's, or one
    of its views that stay views. The others are made where they are wanted (views.py): of most recordings few are.

    Returns the names in the file that are no plain tables, which nobody is to read: its views. Errors: those of
    SQLite; DamagedRecording where it lacks what all recordings of its format have.
    """
    # That no table is virtual was looked at before (opening.py).
    there = connection.execute(
        "SELECT LOWER(name), type = 'table' FROM main.sqlite_master WHERE type IN ('table', 'view')"
    )
    plain: dict[str, bool] = {str(name): bool(is_plain) for name, is_plain in there}
    own = schema()
    for table in own.tables:
        _put_table_before(connection, path, table, plain.get(table.name))
    for name in own.views:
        # It would be read by whatever goes without ours.
        if plain.get(name):
            raise DamagedRecording(f"{path} is damaged: its {name} is no view")
    # All of them rest on tables and each other, and on these, which become tables only when others are made.
    for name in (*own.kept, "library_frame", "system_frame", "frame_line"):
        connection.execute(f'CREATE TEMP VIEW "{name}" AS {own.views[name]}')
    return frozenset(name for name, is_plain in plain.items() if not is_plain)
