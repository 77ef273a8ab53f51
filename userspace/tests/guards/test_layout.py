# SPDX-License-Identifier: GPL-2.0
"""Where things are, and which way they look: folders, lengths, the order of views. userspace/README tells why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from facts import SQL, VIEWS
from harness import ROOT

USERSPACE: Final = ROOT / "userspace"
BPF: Final = ROOT / "bpf"

# What the files of a folder may include besides their own folder's, and wire/ of bpf/.
MAY_INCLUDE: Final = {
    folder: set(others.split())
    for folder, others in {
        "base": "",
        "host": "base",
        "symbols": "base host",
        "unwind": "base host symbols",
        "python": "base host symbols",
        "allocators": "base host symbols",
        "hold": "base host symbols allocators",
        "events": "base",
        "ledger": "base events",
        "recording": "base host events symbols python allocators ledger",
        "probes": "base host allocators unwind events",
        "targets": "base host symbols unwind python allocators events ledger recording probes",
        "budget": "base events recording probes targets",
        "session": "base host events symbols python ledger recording probes targets budget",
        "report": "base symbols recording",
        "compare": "base host recording session report",
        "gate": "base recording session report compare",
        "doctor": "base host events symbols allocators probes session",
        "top": "base host recording",
        "watch": "base host recording probes session report",
        "cli": "base host symbols unwind python allocators events ledger recording probes targets budget session "
        "report compare gate doctor top watch hold",
    }.items()
}
# The same for the folders of bpf/, each of which may include wire/, too.
BPF_MAY_INCLUDE: Final = {
    folder: set(others.split())
    for folder, others in {
        "wire": "",
        "state": "",
        "memory": "state",
        "stacks": "state memory",
        "probes": "state memory stacks",
        "checks": "memory probes",
        "machine": "memory probes",
    }.items()
}
# One enum, in a header of its own: the order of glibc's thresholds.
ALLOWED: Final = {("ledger/thresholds.h", "allocators/threshold_names.h")}

LONGEST_FUNCTION, LONGEST_FILE, COLUMNS = 80, 700, 100


def sources() -> list[Path]:
    """The product's own, without the tests."""
    return sorted(
        path
        for folder in (USERSPACE, BPF)
        for ending in ("c", "h", "cc")
        for path in folder.glob(f"*/*.{ending}")
        if path.parent.name != "tests"
    )


def included(path: Path) -> list[str]:
    return re.findall(r'^#include "([^"]+/[^"]+)"', path.read_text(), re.MULTILINE)


def test_every_source_is_in_a_folder() -> None:
    assert not [path for folder in (USERSPACE, BPF) for path in folder.glob("*.[ch]")]
    assert {path.parent.name for path in sources() if path.is_relative_to(USERSPACE)} == set(MAY_INCLUDE)
    assert {path.parent.name for path in sources() if path.is_relative_to(BPF)} == set(BPF_MAY_INCLUDE)


def test_includes_look_one_way() -> None:
    wrong = []
    for path in sources():
        folder = path.parent.name
        for name in included(path) if path.is_relative_to(USERSPACE) else ():
            other, _, file = name.partition("/")
            if other == "bpf":
                good = file.startswith("wire/")
            else:
                good = other == folder or other in MAY_INCLUDE[folder] or (f"{folder}/{path.name}", name) in ALLOWED
            if not good:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong


def test_includes_of_bpf_look_one_way() -> None:
    wrong = []
    for path in sources():
        folder = path.parent.name
        for name in included(path) if path.is_relative_to(BPF) else ():
            other = name.partition("/")[0]
            if other not in {folder, "wire"} | BPF_MAY_INCLUDE[folder]:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong


@pytest.mark.parametrize("may_include", [MAY_INCLUDE, BPF_MAY_INCLUDE], ids=["userspace", "bpf"])
def test_folders_make_no_circle(may_include: dict[str, set[str]]) -> None:
    """Whoever may be included may not include, however far round."""
    seen: dict[str, bool] = {}

    def visit(folder: str) -> None:
        assert seen.get(folder, True), f"{folder} is in a circle"
        if folder not in seen:
            seen[folder] = False
            for other in may_include[folder]:
                visit(other)
            seen[folder] = True

    for folder in may_include:
        visit(folder)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Names and lengths in lines, by the style: a brace of its own line opens a body, one closes it."""
    head, opened = "", 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line == "{":
            opened = number
        elif line == "}" and opened:
            yield head, number - opened + 1
            opened = 0
        elif not opened and (name := re.search(r"^[a-zA-Z].*?(\w+)\(", line)):
            head = name[1]


def test_functions_are_short() -> None:
    long = {f"{path.name} {name}" for path in sources() for name, lines in functions(path) if lines > LONGEST_FUNCTION}
    assert not long


def test_files_are_short() -> None:
    long = {path.name for path in sources() if len(path.read_text().splitlines()) > LONGEST_FILE}
    assert not long


def scripts() -> list[str]:
    """In their order; advice_source stands for text that is made of tables."""
    return [name for name in SQL if name != "advice_source"]


def test_every_script_has_its_place() -> None:
    assert sorted(scripts()) == sorted(path.name for path in VIEWS.glob("*.sql"))


def test_views_use_earlier_ones() -> None:
    text = "\n".join((VIEWS / name).read_text() for name in scripts())
    text = re.sub(r"--.*", "", text)
    views = re.findall(r"CREATE (?:TEMP )?VIEW (\w+)\b(.*?);", text, re.DOTALL)
    order = {name: place for place, (name, _) in enumerate(views)}
    later = [
        f"{name} uses {other}"
        for name, body in views
        for tables in re.findall(r"\b(?:FROM|JOIN)\s+(\w+(?:\s+\w+)?(?:\s*,\s*\w+(?:\s+\w+)?)*)", body)
        for other in re.findall(r"(?:^|,)\s*(\w+)", tables)
        if order.get(other, -1) > order[name]
    ]
    assert len(views) > 80 and not later


def test_sql_is_within_its_columns() -> None:
    """A setting that is one word cannot be broken, nor an option of a command line."""
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in (VIEWS, ROOT / "analysis" / "memtoll")
        for path in sorted(folder.glob("*.sql"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line.expandtabs(8)) > COLUMNS and " " in line.strip() and not line.startswith("'--set ")
    ]
    assert not wide


def test_having_follows_a_group_by() -> None:
    """SQLite takes it without one from 3.39 on; the views are for 3.37, too (tolls.sql)."""
    bare = []
    for name in scripts():
        text = re.sub(r"--.*|'(?:[^']|'')*'", "", (VIEWS / name).read_text())
        grouped = [False]
        for word in re.findall(r"[();]|\w+", text):
            if word == "(":
                grouped.append(False)
            elif word == ")":
                grouped.pop()
            elif word in ("SELECT", ";", "GROUP"):
                grouped[-1] = word == "GROUP"
            elif word == "HAVING" and not grouped[-1]:
                bare.append(name)
        assert len(grouped) == 1, name
    assert not bare
