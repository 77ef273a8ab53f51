# SPDX-License-Identifier: GPL-2.0
"""Text from recordings is data wherever it is shown: no terminal, browser or spreadsheet obeys it."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import memtoll
from memtoll.export import export
from memtoll.visible import FORMULA, cell, visible_lines

from hostile import FORMULAS, SCRIPT, hostile

# What a terminal, or an editor, obeys; line breaks and tabs are ours.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile") / "hostile.memtoll"
    hostile(made)
    return made


def test_words_on_a_terminal_and_in_a_notebook(path: Path) -> None:
    with memtoll.open(path) as rec:
        shown = [rec, rec.verdict, rec.sites, rec.stacks, rec.stack_frames, rec.processes, rec.losses, rec.faults]
        for each in shown:
            assert not OBEYED.search(str(each)) and not OBEYED.search(repr(each)), type(each)
            html = each._repr_html_() or ""
            assert not OBEYED.search(html)
            assert SCRIPT not in html and not re.search(r"<(?:script|img|svg)", html)
        assert "\\u202e" in repr(rec.stack_frames["function"].to_frame().head(40).pipe(memtoll.Table))


@pytest.mark.slow
def test_cells_are_no_formulas(path: Path, tmp_path: Path) -> None:
    with memtoll.open(path) as rec:
        export(rec, tmp_path / "tables", "csv")
    seen = set()
    for file in (tmp_path / "tables").glob("*.csv"):
        with file.open(newline="", encoding="utf-8", errors="surrogateescape") as text:
            for row in csv.DictReader(text):
                for value in row.values():
                    assert not value.startswith(FORMULA) or re.fullmatch(r"-?[\d.]+(?:e[+-]\d+)?", value), value
                    assert not OBEYED.search(value), value
                    seen.add(value)
    assert not OBEYED.search((tmp_path / "tables" / "csv-metadata.json").read_text(encoding="utf-8"))
    assert {f"'{name}" for name in FORMULAS} <= seen
    assert [cell(value) for value in ("=1", -1, None, True, "a=1")] == ["'=1", -1, None, True, "a=1"]


def test_a_stack_is_one_line(path: Path, tmp_path: Path) -> None:
    with memtoll.open(path) as rec:
        export(rec, tmp_path / "all.folded")
        tolls = [str(toll) for toll in rec.toll.index]
    text = (tmp_path / "all.folded").read_bytes().decode("utf-8", "surrogateescape")
    assert not OBEYED.search(text)
    for line in text.splitlines():
        assert line.startswith(("# ", *tolls)) and (line.startswith("# ") or re.search(r" \d+$", line)), line


@pytest.mark.slow
def test_lines_of_json_stay_lines(path: Path, tmp_path: Path) -> None:
    with memtoll.open(path) as rec:
        export(rec, tmp_path / "all.ndjson")
    for line in (tmp_path / "all.ndjson").read_bytes().split(b"\n")[:-1]:
        assert line.isascii() and json.loads(line)["frame"]


def test_breaks_between_lines_stay() -> None:
    assert visible_lines("a\x1b[31m\nb\r\n") == "a\\x1b[31m\nb\\x0d\n"
