# SPDX-License-Identifier: GPL-2.0
"""Figures in sentences read as base/units.h says, which C and the analysis package follow, too."""

from __future__ import annotations

import re
import sqlite3

import pytest

from facts import blank
from harness import ROOT

UNITS = ROOT / "userspace" / "tests" / "base" / "units.h"
ROWS = re.findall(r'^\{ "(\w)", ([\d.]+), "[^"]*", "([^"]*)" \},$', UNITS.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """View figure over these values instead of a recording's."""
    database = sqlite3.connect(":memory:")
    blank().backup(database)
    (view,) = database.execute("SELECT sql FROM sqlite_master WHERE name = 'figure'").fetchone()
    database.execute("CREATE TEMP TABLE figure_value (name, kind, value)")
    values = [(f"{kind} {value}", kind, float(value) if "." in value else int(value)) for kind, value, _ in ROWS]
    database.executemany("INSERT INTO figure_value VALUES (?, ?, ?)", values)
    return dict(database.execute(view.split(" AS", 1)[1]).fetchall())


@pytest.mark.parametrize(("kind", "value", "sentence"), ROWS)
def test_units(texts: dict[str, str], kind: str, value: str, sentence: str) -> None:
    assert texts[f"{kind} {value}"] == sentence


def test_every_row_is_read() -> None:
    assert len(ROWS) == UNITS.read_text().count("\n{ ") > 20
