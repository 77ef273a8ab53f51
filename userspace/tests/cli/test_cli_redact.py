# SPDX-License-Identifier: GPL-2.0
"""report --redact: nothing of what is hidden is in any output, and every figure is as it was."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import facts
from harness import MEMTOLL, ROOT, finish, memtoll, spawn
from shape import TOLLS

EXAMPLES = sorted((ROOT / "analysis" / "memtoll" / "examples").glob("*.memtoll"))
KEPT = ROOT / "analysis" / "tests" / "recordings" / "format-1.memtoll"
# Names of files, programs, the host and cgroups; command lines.
HIDDEN = {
    "process": ("comm", "command", "executable", "memory_cgroup"),
    "frame": ("module", "file", "build_id"),
    "fault": ("area_name",),
    "allocator": ("module",),
    "file": ("path",),
    "meta": ("value",),
}
TELLS = ("host", "command_line", "target_command")


def secrets(path: Path) -> set[str]:
    """Whole, and the last part of each path, which is what sentences say; but what the language itself says."""
    texts = set()
    with closing(sqlite3.connect(path)) as database:
        for table, columns in HIDDEN.items():
            where = f"WHERE key IN {TELLS}" if table == "meta" else ""
            with suppress(sqlite3.OperationalError):  # of before there was such a table
                rows = database.execute(f"SELECT {', '.join(columns)} FROM {table} {where}")
                texts |= {str(text) for row in rows for text in row if text}
    texts |= {text.rsplit("/", 1)[-1] for text in texts if "/" in text}
    plain = {"libc.so.6", "libc.so", "python3", "a", "heap", "stack", "program", "file", "box", "vm"}
    return {text for text in texts if len(text) > 2 and text not in plain and not text.startswith("[")}


def numbers(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Each number, and truth, with where it stands; lists may be in another order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, f"{at}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item, f"{at}[]")
    elif not isinstance(value, str):
        yield at, value


def outputs(path: Path, toll: str) -> dict[str, str]:
    options = {"short": (), "full": ("--full", "--compute"), "json": ("--json",), "folded": ("--folded", toll)}
    said = {}
    for name, words in options.items():
        result = memtoll("report", "--redact", *words, path)
        assert result.status == 0, result
        said[name] = result.stdout + result.stderr
    return said


@pytest.mark.parametrize("path", [*EXAMPLES[1:], KEPT], ids=lambda path: str(path.stem))
@pytest.mark.slow
def test_nothing_is_told_and_nothing_changes(path: Path) -> None:
    plain = json.loads(memtoll("report", "--json", path).stdout)
    hidden = secrets(path)
    assert len(hidden) > 5
    said = outputs(path, max(TOLLS, key=lambda toll: plain["toll"][toll]["time_s"] or 0))
    for name, text in said.items():
        assert not {secret for secret in hidden if secret in text}, name
        assert str(path) not in text
        assert path.name not in text
        # Of an address of the program's.
        assert not re.search(r"0x[0-9a-f]{9,}", text), name
    redacted = json.loads(said["json"])
    assert sorted(map(str, numbers(redacted))) == sorted(map(str, numbers(plain)))
    assert redacted["verdict"]["dominant"] == plain["verdict"]["dominant"]
    assert [each["code"] for each in redacted["verdict"]["advice"]] == [
        each["code"] for each in plain["verdict"]["advice"]
    ]


@pytest.mark.parametrize("name", sorted(facts.SCENARIOS)[::4])
def test_figures_stay(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.memtoll"
    facts.SCENARIOS[name](path).database.close()
    plain, redacted = (json.loads(memtoll("report", "--json", *words, path).stdout) for words in ([], ["--redact"]))
    assert sorted(map(str, numbers(redacted))) == sorted(map(str, numbers(plain)))


def test_from_standard_input() -> None:
    with KEPT.open("rb") as file:
        result = finish(spawn([MEMTOLL, "report", "--redact", "-"], stdin=file))
    assert result.status == 0, result
    assert "program-1 ..." in result.stdout
    assert "calloc_loop" not in result.stdout
